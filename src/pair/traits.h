/*
 * traits.h - the properties of a node, in a form that can be compared between two programs: operator family, module
 * path without wrappers of the model, line, value; and the readers of its value.
 */
#ifndef FX_PAIR_TRAITS_H
#define FX_PAIR_TRAITS_H

#include "pair/execution.h"

typedef struct fx_trait {
    uint64_t base;     /* hash of the operator's name without namespace, overload and trailing "_"; 0: left out */
    uint64_t family;   /* the same for all variants of one operator */
    uint64_t module;   /* 0: unknown */
    uint64_t line;     /* function and text; 0: unknown */
    uint64_t literals; /* hash of the numbers in the code */
    const fxtap_tensor_info *value; /* its result; NULL: unknown */
    size_t source;                  /* itself, or the node whose value it passes on unchanged */
    size_t first_user, n_users;
    bool is_input;     /* a placeholder or get_attr */
    bool is_tuple;     /* its results are read through getitem nodes, which have the values */
    bool is_output;    /* the output node of a graph: it reads the results, and has no value */
    bool is_permuting; /* it permutes its input's elements: statistics do not distinguish the two */
    bool is_part;      /* a part of its input, selected by literals */
    bool is_commutative;
    bool is_trivial;       /* equality of `value` is weak evidence */
    bool is_sampled;       /* reading `samples` was attempted */
    const double *samples; /* some elements of `value`; NULL: not read, or unknown */
} fx_trait;

typedef struct fx_user { /* `node` reads a value through the input number `edge` */
    uint32_t node;
    uint32_t edge;
} fx_user;

typedef struct fx_traits {
    fx_arena *arena; /* for samples, which are read later */
    const fx_execution *execution;
    fx_trait *items; /* one per node */
    fx_user *users;
    bool has_lines; /* most nodes have a line */
} fx_traits;

/* Everything is in `arena`. Makes module paths comparable if the models have different roots. FXTAP_E_NOMEM. */
fxtap_status fx_traits_create(fx_arena *arena, const fx_execution *golden, const fx_execution *target,
                              fx_traits out[2]);

/*
 * Relation of two recorded values. CLOSE: the same quantity and precision; ROUGHLY: may be the same in two precisions.
 */
typedef enum fx_closeness {
    FX_VALUES_UNKNOWN,
    FX_VALUES_STRANGE,
    FX_VALUES_ROUGHLY,
    FX_VALUES_CLOSE,
    FX_VALUES_EQUAL
} fx_closeness;

fx_closeness fx_compare_values(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);

/*
 * Whether one may be a view of the other that keeps contiguous rows: equal apart from ones, or equal last dimensions.
 */
bool fx_may_be_reshaped(const fxtap_tensor_info *a, const fxtap_tensor_info *b);

/* ---- sample.c ---- */

typedef enum fx_sampling { FX_SAMPLES_UNKNOWN, FX_SAMPLES_DIFFER, FX_SAMPLES_AGREE } fx_sampling;

/* Whether elements at the same indices of two values with equal shapes are near; reads each file at most once. */
fx_sampling fx_compare_samples(fx_arena *arena, fx_trait *golden, fx_trait *target);

/* ---- operators.c ---- */

uint64_t fx_operator_base(const char *target);
uint64_t fx_operator_family(const char *target);
/* Whether two operator names are the same operator, ignoring the overload and whether it is in place. */
bool fx_same_operator(const char *golden, const char *target);
/* Whether the order of its first two arguments is irrelevant. */
bool fx_is_commutative(const char *target);
/* Whether a node's value is its first input, unchanged; the second function: if the shape is the same. */
bool fx_passes_on(const char *target);
bool fx_keeps_values(const char *target);
/* Whether a result is a part of the first input, selected by an index or a range. */
bool fx_is_part(const char *target);
/* Whether a result has the input's elements in another order. */
bool fx_is_permuting(const char *target);

#endif
