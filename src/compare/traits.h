/*
 * traits.h - what is known of a node by itself, in a form in which nodes of two programs can be held against each other:
 * operator family, module path without what wraps the model, line, value; and who reads what it yields.
 */
#ifndef FX_COMPARE_TRAITS_H
#define FX_COMPARE_TRAITS_H

#include "compare/execution.h"

typedef struct fx_trait {
    uint64_t base;     /* of the operator's name without namespace, overload and trailing "_"; 0: takes no part */
    uint64_t family;   /* the same for all spellings of one operator */
    uint64_t module;   /* 0: not known */
    uint64_t line;     /* function and text; 0: not known */
    uint64_t literals; /* the numbers in the code */
    const fxtap_tensor_info *value; /* what it yields; NULL: not known */
    size_t source;     /* itself, or the node whose value it only passes on */
    size_t first_user, n_users;
    bool is_input;     /* a placeholder or get_attr */
    bool is_tuple;     /* its results are taken out by getitem: these are the values */
    bool is_output;    /* what a graph gives back: it reads results, and yields nothing */
    bool is_permuting; /* its elements are its input's, elsewhere: statistics do not tell the two apart */
    bool is_part;      /* a part of its input, which the numbers in the code choose */
    bool is_commutative;
    bool is_trivial;   /* `value` says little */
    bool is_sampled;   /* `samples` were looked for */
    const double *samples; /* some elements of `value`; NULL: not looked for, or not known */
} fx_trait;

typedef struct fx_user { /* node `node` reads a value at `edge` of its inputs */
    uint32_t node;
    uint32_t edge;
} fx_user;

typedef struct fx_traits {
    fx_arena *arena; /* takes what is looked up later */
    const fx_execution *execution;
    fx_trait *items; /* one a node */
    fx_user *users;
    bool has_lines;  /* most nodes have one */
} fx_traits;

/* All in `arena`. Module paths of models that hang under different roots are made comparable. FXTAP_E_NOMEM. */
fxtap_status fx_traits_create(fx_arena *arena, const fx_execution *golden, const fx_execution *target, fx_traits out[2]);

/* What two recorded values are to each other. CLOSE: one quantity in one precision; ROUGHLY: it may be, in two. */
typedef enum fx_closeness { FX_VALUES_UNKNOWN, FX_VALUES_STRANGE, FX_VALUES_ROUGHLY, FX_VALUES_CLOSE, FX_VALUES_EQUAL } fx_closeness;

fx_closeness fx_compare_values(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);

/* Whether a view could make one shape of the other, and keep what is contiguous: the same but for ones, or the last is the same. */
bool fx_may_be_reshaped(const fxtap_tensor_info *a, const fxtap_tensor_info *b);

/* ---- sample.c ---- */

typedef enum fx_sampling { FX_SAMPLES_UNKNOWN, FX_SAMPLES_DIFFER, FX_SAMPLES_AGREE } fx_sampling;

/* Whether elements at the same places of two values of one shape are near; read from the files, once. */
fx_sampling fx_compare_samples(fx_arena *arena, fx_trait *golden, fx_trait *target);

/* ---- operators.c ---- */

uint64_t fx_operator_base(const char *target);
uint64_t fx_operator_family(const char *target);
/* Whether two targets are one operator, whatever the overload, and in place or not. */
bool fx_same_operator(const char *golden, const char *target);
/* Whether the order of its first two arguments does not count. */
bool fx_is_commutative(const char *target);
/* Whether a node's value is its first input's, as it is; the second: where it has the same shape. */
bool fx_passes_on(const char *target);
bool fx_keeps_values(const char *target);
/* Whether a result is a part of the first input, which an index or a range chooses. */
bool fx_is_part(const char *target);
/* Whether the elements of a result are the input's in another order. */
bool fx_is_permuting(const char *target);

#endif
