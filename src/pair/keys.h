/*
 * keys.h - hash keys of what nodes of two programs may have in common: nodes with equal keys are candidates for a pair.
 */
#ifndef FX_PAIR_KEYS_H
#define FX_PAIR_KEYS_H

#include "pair/traits.h"

typedef struct fx_keyed {
    uint64_t key;
    size_t node;
} fx_keyed;

/* 0: the node is left out. */
typedef uint64_t (*fx_key_function)(const fx_traits *traits, size_t node);

uint64_t fx_key_by_value(const fx_traits *traits, size_t node);       /* operator and value */
uint64_t fx_key_by_value_alone(const fx_traits *traits, size_t node); /* value, any operator */
uint64_t fx_key_by_elements(const fx_traits *traits, size_t node);    /* value up to dimensions of size one */
uint64_t fx_key_by_place(const fx_traits *traits, size_t node);       /* operator, module, line and shape */
uint64_t fx_key_by_literals(const fx_traits *traits, size_t node);    /* the same, and the literals */
uint64_t fx_key_by_line(const fx_traits *traits, size_t node);        /* operator, line and shape */
uint64_t fx_key_by_module(const fx_traits *traits, size_t node);      /* operator, module and shape */
uint64_t fx_key_by_spot(const fx_traits *traits, size_t node);        /* module, line and shape, any operator */
/* Magnitude to four digits and shape, any operator; the two round at different points. */
uint64_t fx_key_by_size(const fx_traits *traits, size_t node);
uint64_t fx_key_by_shifted_size(const fx_traits *traits, size_t node);
uint64_t fx_key_by_name(const fx_traits *traits, size_t node);
uint64_t fx_key_by_operator(const fx_traits *traits, size_t node); /* operator and shape */

/* The unpaired nodes, sorted by key, then in order of execution. NULL: no memory. */
fx_keyed *fx_list_keys(fx_arena *arena, const fx_traits *traits, fx_key_function key_of, size_t *n_out);

#endif
