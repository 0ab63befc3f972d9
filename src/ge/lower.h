/*
 * lower.h - lowers a graph record to a graph of GE operators.
 *
 * fx_lower_graph() first derives the lowered record (no-ops removed, view replaced by reshape, symbolic sizes read from
 * tensors), then walks it. The lowering of an ATen operator is data: a recipe in recipes/, in the language of recipe.h.
 */
#ifndef FX_GE_LOWER_H
#define FX_GE_LOWER_H

#include "fxtap/graph.h"
#include "ge/ge.h"

typedef struct fx_recipe {
    const char *target; /* "aten.add.Tensor" */
    const char *params; /* "self, other, alpha=1" */
    const char *body;   /* see recipe.h; NULL: known, but never lowered */
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
    const fxtap_graph *graph; /* the lowered record */
    fx_recipe_list recipes;
    fx_val *results;      /* of each node of `graph` */
    fx_pending **pending; /* of each node; NULL: none */
    fxtap_node *root;     /* of each node: the node whose memory it has */
    fxtap_node node;      /* being lowered */
    fxtap_node_desc desc; /* of that node */
    fxtap_node *made;     /* pending views made for this node: undone if it cannot be lowered */
    size_t n_made;
    const char *raised; /* why the node cannot be lowered; NULL: it can */
    fx_texts seen;      /* places in the source whose "# File" texts have been written */
    fx_symbol *symbols;
    size_t n_symbols, symbols_capacity;
    fx_ref seed, offsets; /* of the random operators; op NULL before the first one */
    int32_t n_random;
    size_t n_data;
    uint64_t *weight; /* of each node: the cost of a walk over its result */
    uint64_t walked;  /* the cost of walks over the results named so far */
    fxtap_status status;
} fx_lower;

/* The lowered record of a graph: the result of TorchAir's passes. The caller frees *out. */
fxtap_status fx_lower_passes(const fxtap_graph *aot, fxtap_graph **out);

/*
 * Lowers a graph; writes its py form only on request. The caller frees *out with fx_ge_graph_free().
 * FXTAP_E_NOMEM; FXTAP_E_UNSUPPORTED for a graph that would be far larger than its record.
 */
fxtap_status fx_lower_graph(const fxtap_graph *aot, bool with_py, fx_ge_graph **out);

/* True if the operator's result may share its first argument's memory. */
bool fx_lower_is_view(const fx_recipe_list *recipes, const char *target);

/* Rewrites the graph as TorchAir does before it compiles: names, layouts, no unused Data. */
fxtap_status fx_ge_optimise(fx_ge_graph *graph);

/* ---- inside the lowering ---- */

/* The same for a record that has been through fx_lower_passes() already and outlives the graph: a body, or (path NULL)
 * the graph itself. A body keeps all inputs and outputs, since the operator refers to them by index. */
fxtap_status fx_lower_record(const fxtap_graph *lowered, bool with_py, const char *path, fx_ge_graph **out);

/*
 * lower_cost.c: a node's result is written wherever the node is named, and may consist of other nodes' results, so each
 * has a weight. The sum over all names in a graph is limited to fx_graph_weight_max(). All set `status`.
 */
void fx_lower_charge(fx_lower *lower, uint64_t weight);
void fx_lower_charge_arguments(fx_lower *lower); /* of the current node, before it is lowered */
void fx_lower_weigh(fx_lower *lower);            /* of the current node's result, after it is lowered */

/* lower_bodies.c: names of the subgraphs; a subgraph, lowered on first use; the value of a get_attr node. */
bool fx_lower_find_bodies(fx_lower *lower);
fx_val fx_lower_body(fx_lower *lower, fxtap_value value);
fx_val fx_lower_attribute(fx_lower *lower);
void fx_take_back_bodies(fx_ge_graph *graph); /* the py form was truncated: lines after its end must be written again */

/* Records why the current node cannot be lowered; the first reason is kept. */
void fx_lower_raise(fx_lower *lower, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A record value as a recipe value: node references resolved, pending views made, lists with symbols packed. */
fx_val fx_lower_value(fx_lower *lower, fxtap_value value);
fx_val fx_lower_node_value(fx_lower *lower, fxtap_node node); /* the result of a node, with its pending view made */

/* A Data operator, with its py line. `dims` and `meta` are on the arena. */
fx_ge_op *fx_lower_add_data(fx_lower *lower, const char *name, int dtype, const int64_t *dims, size_t n_dims,
                            const char *place);

bool fx_is_size_list(const fx_lower *lower, fxtap_value value); /* numbers, at least one of them symbolic */
/* All arguments of the current node; room for n_args and n_kwargs. False if the node cannot be lowered. */
bool fx_lower_arguments(fx_lower *lower, fx_val *positional, fx_val *named);

/* Runs the recipe on the current node. */
fx_val fx_run_recipe(fx_lower *lower, const fx_recipe *recipe);
bool fx_collect_recipes(fx_arena *arena, fx_recipe_list *out);                   /* false: no memory */
const fx_recipe *fx_find_recipe(const fx_recipe_list *list, const char *target); /* NULL: there is none */

/* Sets the description of a tensor from its meta in the record. `fx_name`: the name of the node's output, or NULL. */
void fx_describe(fx_lower *lower, fx_ref ref, fxtap_value meta, const char *fx_name);
/* lower_opaque.c: the current node as an operator unknown to GE, with the reason. */
fx_val fx_lower_opaque(fx_lower *lower, const char *why);
/* If no result has elements, constants replace them and the operator is not lowered. */
bool fx_lower_empty(fx_lower *lower, fx_val *out);

/* Pending views. True if the node is a view that is now pending. */
bool fx_lower_view(fx_lower *lower, fx_val *out);
fx_val fx_pending_make(fx_lower *lower, fxtap_node node);

/* FX Code and File lines of the current node. */
void fx_lower_comment(fx_lower *lower);
void fx_lower_code_line(fx_lower *lower); /* "## FX Code: ..." */
/* The node's call; `is_source`: its constants as Python reads them back, not as TorchAir writes them. */
void fx_lower_code(const fx_lower *lower, fxtap_buffer *out, bool is_source);
bool fx_lower_has_trace(const fx_lower *lower);
/* torch's str() of a node's result: "Tensor(dtype=torch.float32, shape=torch.Size([2, 3])". */
const char *fx_meta_text(fx_lower *lower, fxtap_value meta, size_t *length_out);
void fx_value_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value); /* str() of a record value */

/* The random operators' seed and the next offset. */
fx_ref fx_random_seed(fx_lower *lower);
fx_ref fx_random_offset(fx_lower *lower);

/* Meta of a value: its dims (-1: symbolic) on the arena; false if it is not a tensor. */
bool fx_meta_dims(fx_lower *lower, fxtap_value meta, const int64_t **dims_out, size_t *n_out);
bool fx_same_shape(const fx_lower *lower, fxtap_value a, fxtap_value b); /* symbols compared by their text */
int fx_meta_dtype(const fx_lower *lower, fxtap_value meta);              /* FX_GE_UNDEFINED if it is not a tensor */
fx_ref fx_symbol_ref(const fx_lower *lower, const char *expression);     /* op NULL if none is known */
void fx_add_symbol(fx_lower *lower, const char *expression, fx_ref ref);

#endif
