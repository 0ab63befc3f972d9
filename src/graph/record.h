/*
 * record.h - the internals of a graph record, private to src/graph.
 *
 * Rows are in growable tables and refer to each other by index; everything of variable size (strings, item arrays,
 * bytes) is in the arena of the texts, which never moves, so that pointers from accessors stay valid while the record
 * grows.
 *
 * The items of a value precede it, and so do the values and node references of a node: there are no cycles. `depth` and
 * `weight` bound the cost of a walk over a value, also in hostile records: an item shared by many lists counts once for
 * each. `entered` bounds the cost of a walk that enters subgraphs as often as they are named. Neither bounds a walk
 * that follows references to results of nodes: it must keep its own count. fx_graph_weight_max() limits all of them in
 * proportion to the size of the record, so that a record whose expansion is exponential is rejected.
 */
#ifndef FX_GRAPH_RECORD_H
#define FX_GRAPH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/graph.h"
#include "util/texts.h"

#define FX_VALUE_DEPTH_MAX 64 /* lists within lists */
#define FX_GRAPH_DEPTH_MAX 16 /* subgraphs within subgraphs */
#define FX_VALUE_WEIGHT_MAX (1u << 24)
#define FX_GRAPH_WEIGHT_MAX (1u << 26) /* of any record; fx_graph_weight_max() is a record's own limit */
#define FX_SIZE_WEIGHT_MAX 256         /* per unit of size; at most 1 was measured for graphs of torch.compile */
#define FX_SIZE_MIN 256                /* of an empty record */

typedef struct fx_value_row {
    uint8_t kind; /* fxtap_value_kind; 0 for row 0 */
    uint8_t depth;
    bool flag; /* BOOL: the value; symbols: whether there is a hint */
    uint32_t weight;
    uint32_t index;   /* NODE, TENSOR, GRAPH: index; items: their number */
    uint32_t entered; /* weight of the subgraphs that it, or the node it refers to, names */
    double number;    /* FLOAT, COMPLEX: real; symbols: the hint */
    union {
        int64_t integer;
        double imag;
        const char *text; /* interned */
        const fxtap_value *items;
    } as;
} fx_value_row;

typedef struct fx_source {
    const char *file; /* interned; "" */
    const char *function;
    const char *code;
    int32_t line;
} fx_source;

typedef struct fx_node_row {
    fxtap_node_desc desc; /* strings interned, arrays in the arena */
    fx_source source;
    uint32_t n_values; /* number of values when the node was added, for the serialised form */
} fx_node_row;

struct fxtap_graph {
    fxtap_graph_kind kind;
    fx_texts texts;       /* interned; the arena also has arrays and bytes */
    fx_value_row *values; /* row 0 is "no value" */
    size_t n_values;
    size_t values_capacity;
    fx_node_row *nodes;
    size_t n_nodes;
    size_t nodes_capacity;
    fxtap_tensor_meta *tensors;
    size_t n_tensors;
    size_t tensors_capacity;
    fxtap_graph **subgraphs; /* owned */
    size_t n_subgraphs;
    size_t subgraphs_capacity;
    fx_source source;         /* of the previous trace: consecutive nodes often share one */
    const char *source_trace; /* interned; NULL before the first */
    uint32_t *node_of_string; /* by string id: node + 1; 0: none */
    size_t node_of_string_capacity;
    uint64_t size;    /* items, arguments and constants, and all of its subgraphs */
    uint64_t weight;  /* of its nodes and its subgraphs, each counted once */
    uint64_t entered; /* of its nodes' values */
    uint32_t depth;   /* 1 for a graph without subgraphs */
};

/*
 * The maximum cost of a walk over a record, in units of one value. A subgraph raises the limit of its owner by its own
 * limit, so that the order in which subgraphs are added does not matter.
 */
uint64_t fx_graph_weight_max(const fxtap_graph *graph);

/* The row of a handle; row 0 for an invalid one. */
const fx_value_row *fx_graph_value(const fxtap_graph *graph, fxtap_value value);

/* Called for a node that a value refers to; false stops the walk. */
typedef bool (*fx_ref_visit)(void *context, fxtap_node node);

/* Visits every node that a value, or the arguments of a node, refer to, in order, with duplicates. */
bool fx_graph_value_refs(const fxtap_graph *graph, fxtap_value value, fx_ref_visit visit, void *context);
bool fx_graph_node_refs(const fxtap_graph *graph, fxtap_node node, fx_ref_visit visit, void *context);

/* The two halves of fxtap_graph_add_subgraph(): add the subgraph to the record; add a value that names it. */
fxtap_status fx_graph_own_subgraph(fxtap_graph *graph, fxtap_graph *subgraph);
fxtap_status fx_graph_add_subgraph_ref(fxtap_graph *graph, size_t index, fxtap_value *out);

/* A part of a text; not NUL-terminated. */
typedef struct fx_span {
    const char *bytes;
    size_t length;
} fx_span;

typedef struct fx_frame {
    fx_span file;
    fx_span function;
    fx_span code;
    int32_t line;
} fx_frame;

/* The innermost frame of a stack trace that names a real file, else the innermost one; false if there are no frames. */
bool fx_trace_innermost(const char *trace, fx_frame *out);

#endif
