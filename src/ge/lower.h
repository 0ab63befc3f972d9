/*
 * lower.h - from the graph record to a graph of GE operators.
 *
 * fx_lower_graph() first derives the lowered record (no-ops gone, view become reshape, symbolic sizes read from tensors), then
 * walks it. What an ATen operator becomes is data: a recipe, in the tables of lower/. See recipe.h for their language.
 */
#ifndef FX_GE_LOWER_H
#define FX_GE_LOWER_H

#include "fxtap/graph.h"
#include "ge/ge.h"

typedef struct fx_recipe {
    const char *target; /* "aten.add.Tensor" */
    const char *params; /* "self, other, alpha=1" */
    const char *body;   /* see recipe.h; NULL: known, and never lowered */
    bool is_view;       /* the result may share its first argument's memory */
} fx_recipe;

typedef struct fx_recipe_table {
    const fx_recipe *recipes;
    size_t n;
} fx_recipe_table;

typedef struct fx_recipe_list { /* all tables, sorted by target */
    const fx_recipe **recipes;
    size_t n;
} fx_recipe_list;

extern const fx_recipe_table fx_recipes_elementwise, fx_recipes_compare, fx_recipes_reduce, fx_recipes_views,
    fx_recipes_matmul, fx_recipes_convolution, fx_recipes_norm, fx_recipes_index, fx_recipes_pooling,
    fx_recipes_creation, fx_recipes_random, fx_recipes_symbol, fx_recipes_foreach, fx_recipes_loss, fx_recipes_misc;

typedef struct fx_pending fx_pending; /* a view that has not been made yet: lower_views.c */

typedef struct fx_symbol { /* the tensor that holds a symbolic expression's value */
    const char *expression;
    fx_ref ref;
} fx_symbol;

typedef struct fx_lower {
    fx_ge_graph *ge;
    const fxtap_graph *graph;   /* the lowered record */
    fx_recipe_list recipes;
    fx_val *results;            /* of each node of `graph` */
    fx_pending **pending;       /* of each node; NULL: none */
    fxtap_node *root;           /* of each node: the node whose memory it has */
    fxtap_node node;            /* being lowered */
    fxtap_node_desc desc;       /* of that node */
    fxtap_node *made;           /* pending views made for this node: unmade when it cannot be lowered */
    size_t n_made;
    const char *raised;         /* why the node cannot be lowered; NULL: it can */
    fx_texts seen;              /* places in the source whose "# File" texts have been written */
    fx_symbol *symbols;
    size_t n_symbols, symbols_capacity;
    fx_ref seed, offsets;       /* of the random operators; op NULL before the first one */
    int32_t n_random;
    size_t n_data;
    uint64_t *weight;           /* of each node: what a walk over its result costs */
    uint64_t walked;            /* what walks over the results cost that were named so far */
    fxtap_status status;
} fx_lower;

/* The lowered record of a graph: what TorchAir's passes leave of it. The caller frees *out. */
fxtap_status fx_lower_passes(const fxtap_graph *aot, fxtap_graph **out);

/*
 * Lowers a graph; its py form is written only on demand. The caller frees *out with fx_ge_graph_free().
 * FXTAP_E_NOMEM; FXTAP_E_UNSUPPORTED for a graph that would be far larger than its record.
 */
fxtap_status fx_lower_graph(const fxtap_graph *aot, bool with_py, fx_ge_graph **out);

/* True where the operator's result may share its first argument's memory. */
bool fx_lower_is_view(const fx_recipe_list *recipes, const char *target);

/* Rewrites the graph as TorchAir does before it compiles: names of inputs and outputs, layouts, unused Data gone. */
fxtap_status fx_ge_optimise(fx_ge_graph *graph);

/* ---- inside the lowering ---- */

/* The same for a record that has been through fx_lower_passes() already and outlives the graph: a body, or (path NULL)
 * the graph itself. A body keeps all of its inputs and outputs, since the operator counts them. */
fxtap_status fx_lower_record(const fxtap_graph *lowered, bool with_py, const char *path, fx_ge_graph **out);

/*
 * lower_cost.c: a node's result is written out wherever the node is named, and may itself be made of other nodes' results;
 * so each has a weight, and those that a graph names may come to FX_GRAPH_WEIGHT_MAX together. All set `status`.
 */
void fx_lower_charge(fx_lower *lower, uint64_t weight);
void fx_lower_charge_arguments(fx_lower *lower); /* of the current node, before it is lowered */
void fx_lower_weigh(fx_lower *lower);            /* the current node's result, when it is */

/* lower_bodies.c: names of the subgraphs; one of them, lowered where it is seen first; what a get_attr node holds. */
bool fx_lower_find_bodies(fx_lower *lower);
fx_val fx_lower_body(fx_lower *lower, fxtap_value value);
fx_val fx_lower_attribute(fx_lower *lower);
void fx_take_back_bodies(fx_ge_graph *graph); /* the py form was cut: those behind its end are to come again */

/* The current node cannot be lowered: says why, once. */
void fx_lower_raise(fx_lower *lower, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A record value as a recipe sees it: node references resolved, pending views made, lists with symbols packed. */
fx_val fx_lower_value(fx_lower *lower, fxtap_value value);
fx_val fx_lower_node_value(fx_lower *lower, fxtap_node node); /* the result of a node, its pending view made */

/* A Data operator, with its py line. `dims` and `meta` are on the arena. */
fx_ge_op *fx_lower_add_data(fx_lower *lower, const char *name, int dtype, const int64_t *dims, size_t n_dims,
                            const char *place);

bool fx_is_size_list(const fx_lower *lower, fxtap_value value); /* numbers, at least one of them symbolic */
/* All arguments of the current node; room for n_args and n_kwargs. False where the node cannot be lowered. */
bool fx_lower_arguments(fx_lower *lower, fx_val *positional, fx_val *named);

/* Runs the recipe on the current node. */
fx_val fx_run_recipe(fx_lower *lower, const fx_recipe *recipe);
bool fx_collect_recipes(fx_arena *arena, fx_recipe_list *out); /* false: no memory */
const fx_recipe *fx_find_recipe(const fx_recipe_list *list, const char *target); /* NULL: there is none */

/* What the record says of a tensor, written into its description. `fx_name`: the name of the node's output, or NULL. */
void fx_describe(fx_lower *lower, fx_ref ref, fxtap_value meta, const char *fx_name);
/* lower_opaque.c: the current node as an operator that is none of GE's, and why. */
fx_val fx_lower_opaque(fx_lower *lower, const char *why);
/* Where no result has elements, constants replace them and the operator is not lowered. */
bool fx_lower_empty(fx_lower *lower, fx_val *out);

/* Pending views. True where the node was a view that only became pending. */
bool fx_lower_view(fx_lower *lower, fx_val *out);
fx_val fx_pending_make(fx_lower *lower, fxtap_node node);

/* FX Code and File lines of the current node. */
void fx_lower_comment(fx_lower *lower);
void fx_lower_code_line(fx_lower *lower); /* "## FX Code: ..." */
/* The node's call; `is_source`: its constants as Python reads them back, not as TorchAir writes them. */
void fx_lower_code(const fx_lower *lower, fxtap_buffer *out, bool is_source);
bool fx_lower_has_trace(const fx_lower *lower);
/* The text that torch's str() gives for what a node yields: "Tensor(dtype=torch.float32, shape=torch.Size([2, 3])". */
const char *fx_meta_text(fx_lower *lower, fxtap_value meta, size_t *length_out);
void fx_value_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value); /* str() of a record value */

/* The random operators' seed and the next offset. */
fx_ref fx_random_seed(fx_lower *lower);
fx_ref fx_random_offset(fx_lower *lower);

/* Meta of a value: its dims (-1: symbolic) on the arena; false where it is no tensor. */
bool fx_meta_dims(fx_lower *lower, fxtap_value meta, const int64_t **dims_out, size_t *n_out);
bool fx_same_shape(const fx_lower *lower, fxtap_value a, fxtap_value b); /* symbols compared by their text */
int fx_meta_dtype(const fx_lower *lower, fxtap_value meta); /* FX_GE_UNDEFINED where it is no tensor */
fx_ref fx_symbol_ref(const fx_lower *lower, const char *expression); /* op NULL where none is known */
void fx_add_symbol(fx_lower *lower, const char *expression, fx_ref ref);

#endif
