/*
 * fxtap/graph.h - the graph record: a captured graph, independent of Python.
 *
 * A record is built node by node in execution order, then used by the index, the keys, the printers, the summary and
 * the comparison. Values (arguments, constants, results of nodes) are small trees, referred to by handles into the
 * record.
 *
 * Ownership: every string and array passed in is copied. Results of accessors are borrowed and valid as long as the
 * record. Thread rule: one thread builds a record; any number of threads may read a finished one.
 */
#ifndef FXTAP_GRAPH_H
#define FXTAP_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dtype.h"
#include "fxtap/stats.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_graph fxtap_graph;

typedef uint32_t fxtap_value; /* a handle; 0 is "no value" */
typedef uint32_t fxtap_node;  /* 0 .. node_count-1, in execution order */

typedef enum fxtap_value_kind { /* pinned: serialised */
                                FXTAP_V_NONE = 1,
                                FXTAP_V_BOOL = 2,
                                FXTAP_V_INT = 3,
                                FXTAP_V_BIGINT = 4, /* text: decimal, outside int64 */
                                FXTAP_V_FLOAT = 5,  /* a Python float */
                                FXTAP_V_COMPLEX = 6,
                                FXTAP_V_STRING =
                                    7, /* bytes with a length: UTF-8, lone surrogates as WTF-8; may hold NUL */
                                FXTAP_V_BYTES = 8,
                                FXTAP_V_DTYPE = 9,          /* text: "torch.float32" */
                                FXTAP_V_DEVICE = 10,        /* text: "cpu", "npu:0" */
                                FXTAP_V_LAYOUT = 11,        /* text: "torch.strided" */
                                FXTAP_V_MEMORY_FORMAT = 12, /* text: "torch.contiguous_format" */
                                FXTAP_V_NODE = 13,          /* another node's result */
                                FXTAP_V_SYMINT = 14,        /* text: sympy expression, "s77 + 2"; may have a hint */
                                FXTAP_V_SYMFLOAT = 15,
                                FXTAP_V_SYMBOOL = 16,
                                FXTAP_V_LIST = 17,
                                FXTAP_V_TUPLE = 18,
                                FXTAP_V_DICT = 19,  /* items: key, value, key, value ... */
                                FXTAP_V_SLICE = 20, /* items: start, stop, step */
                                FXTAP_V_ELLIPSIS = 21,
                                FXTAP_V_TENSOR =
                                    22, /* meta of a tensor, with its bytes if it is a constant of the graph */
                                FXTAP_V_GRAPH = 23, /* a subgraph (cond's branches, ...) */
                                FXTAP_V_OTHER = 24  /* text: repr() of any other object */
} fxtap_value_kind;

typedef enum fxtap_node_op { /* pinned: serialised */
                             FXTAP_OP_PLACEHOLDER = 1,
                             FXTAP_OP_CALL_FUNCTION = 2,
                             FXTAP_OP_GET_ATTR = 3,
                             FXTAP_OP_OUTPUT = 4,
                             FXTAP_OP_CALL_MODULE = 5,
                             FXTAP_OP_CALL_METHOD = 6
} fxtap_node_op;

typedef enum fxtap_graph_kind { /* pinned: serialised */
                                FXTAP_GRAPH_INFERENCE = 1,
                                FXTAP_GRAPH_FORWARD = 2,
                                FXTAP_GRAPH_BACKWARD = 3,
                                FXTAP_GRAPH_SUBGRAPH = 4
} fxtap_graph_kind;

typedef struct fxtap_tensor_meta {
    size_t struct_size;
    fxtap_dtype dtype;
    const char *device; /* "cpu", "cuda:0" */
    const char *layout; /* NULL: "torch.strided" */
    bool requires_grad;
    bool is_fake;               /* only its meta is known */
    const fxtap_value *shape;   /* n_dims handles of kind INT or SYMINT */
    const fxtap_value *strides; /* n_dims handles, or NULL if unknown */
    size_t n_dims;
    const void *bytes; /* data of a constant, row-major, original dtype; NULL if unknown */
    size_t n_bytes;
} fxtap_tensor_meta;

#define FXTAP_NODE_MUTATES 1u      /* its schema mutates at least one argument */
#define FXTAP_NODE_UNDEFINED 2u    /* its output is uninitialised memory (empty, new_empty, ...) */
#define FXTAP_NODE_RANDOM 4u       /* draws from a random generator (torch's nondeterministic_seeded tag) */
#define FXTAP_NODE_ASYNC 8u        /* an asynchronous collective: its result is ready after wait_tensor */
#define FXTAP_NODE_TARGET_ATEN 16u /* the target is an ATen operator */
#define FXTAP_NODE_VIEW 32u        /* its schema returns an alias of an argument */
#define FXTAP_NODE_TRACKED 128u    /* with UNDEFINED: the dump records which elements of each value are undefined */
#define FXTAP_NODE_WEIGHT 64u      /* a placeholder for a parameter or a buffer of the model */

typedef struct fxtap_node_desc {
    size_t struct_size;
    fxtap_node_op op;
    const char *name;          /* "add_1" */
    const char *target;        /* str(target): "aten.add.Tensor", "operator.mul", "arg0_1", "output" */
    const char *target_python; /* as in Python code: "torch.ops.aten.add.Tensor", "operator.mul"; NULL: target */
    const fxtap_value *args;
    size_t n_args;
    const char *const *arg_names; /* n_args names from the schema; NULL, or NULL entries, if unknown */
    const char *const *kwarg_names;
    const fxtap_value *kwarg_values;
    size_t n_kwargs;
    fxtap_value meta;        /* its result: TENSOR, SYMINT, LIST of them ...; 0 if unknown */
    const char *stack_trace; /* as torch prints it, all frames; NULL if there is none */
    const char *module_path; /* "L['self'].blocks.0.fc" of the innermost module; NULL if there is none */
    const char *module_type; /* "torch.nn.modules.linear.Linear" */
    uint32_t flags;          /* FXTAP_NODE_ bits */
} fxtap_node_desc;

/* ---- building ---- */

/* An empty record. The caller owns *out and frees it with fxtap_graph_free(). */
FXTAP_API fxtap_status fxtap_graph_create(fxtap_graph_kind kind, fxtap_graph **out);
FXTAP_API void fxtap_graph_free(fxtap_graph *graph);

FXTAP_API fxtap_status fxtap_graph_add_none(fxtap_graph *graph, fxtap_value *out);
FXTAP_API fxtap_status fxtap_graph_add_bool(fxtap_graph *graph, bool value, fxtap_value *out);
FXTAP_API fxtap_status fxtap_graph_add_int(fxtap_graph *graph, int64_t value, fxtap_value *out);
FXTAP_API fxtap_status fxtap_graph_add_float(fxtap_graph *graph, double value, fxtap_value *out);
FXTAP_API fxtap_status fxtap_graph_add_complex(fxtap_graph *graph, double real, double imag, fxtap_value *out);
/* BIGINT, STRING, BYTES, DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, ELLIPSIS (no text), OTHER. */
FXTAP_API fxtap_status fxtap_graph_add_text(fxtap_graph *graph, fxtap_value_kind kind, const char *bytes, size_t length,
                                            fxtap_value *out);
/* SYMINT, SYMFLOAT, SYMBOOL; `hint` may be NULL. */
FXTAP_API fxtap_status fxtap_graph_add_symbol(fxtap_graph *graph, fxtap_value_kind kind, const char *expression,
                                              const double *hint, fxtap_value *out);
/* A reference to an existing node. FXTAP_E_INVALID if there is no such node. */
FXTAP_API fxtap_status fxtap_graph_add_node_ref(fxtap_graph *graph, fxtap_node node, fxtap_value *out);
/* LIST, TUPLE, DICT, SLICE. */
FXTAP_API fxtap_status fxtap_graph_add_items(fxtap_graph *graph, fxtap_value_kind kind, const fxtap_value *items,
                                             size_t n_items, fxtap_value *out);
FXTAP_API fxtap_status fxtap_graph_add_tensor(fxtap_graph *graph, const fxtap_tensor_meta *meta, fxtap_value *out);
/* Takes ownership of `subgraph` on success. */
FXTAP_API fxtap_status fxtap_graph_add_subgraph(fxtap_graph *graph, fxtap_graph *subgraph, fxtap_value *out);

FXTAP_API fxtap_status fxtap_graph_add_node(fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_node *out);

/* ---- reading ---- */

FXTAP_API fxtap_graph_kind fxtap_graph_kind_of(const fxtap_graph *graph);
FXTAP_API size_t fxtap_graph_node_count(const fxtap_graph *graph);
FXTAP_API size_t fxtap_graph_subgraph_count(const fxtap_graph *graph);
FXTAP_API const fxtap_graph *fxtap_graph_subgraph(const fxtap_graph *graph, size_t index); /* NULL past the end */

/* Fills a description (pointers borrowed from the record). `out->struct_size` is set by the caller. */
FXTAP_API fxtap_status fxtap_graph_node(const fxtap_graph *graph, fxtap_node node, fxtap_node_desc *out);
/* FXTAP_E_NOT_FOUND if no node has the name. */
FXTAP_API fxtap_status fxtap_graph_find_node(const fxtap_graph *graph, const char *name, fxtap_node *out);

/* The innermost frame of a node's stack trace that has a file; "" and 0 if there is none. */
FXTAP_API void fxtap_graph_source(const fxtap_graph *graph, fxtap_node node, const char **file_out, int32_t *line_out,
                                  const char **function_out, const char **code_out);

FXTAP_API fxtap_value_kind fxtap_value_kind_of(const fxtap_graph *graph, fxtap_value value);
FXTAP_API bool fxtap_value_bool(const fxtap_graph *graph, fxtap_value value);
FXTAP_API int64_t fxtap_value_int(const fxtap_graph *graph, fxtap_value value);
FXTAP_API double fxtap_value_float(const fxtap_graph *graph, fxtap_value value, double *imag_out);
/* Text and its length (length_out may be NULL); "" for kinds without text. NUL-terminated. */
FXTAP_API const char *fxtap_value_text(const fxtap_graph *graph, fxtap_value value, size_t *length_out);
/* A symbol's hint; false if there is none. */
FXTAP_API bool fxtap_value_hint(const fxtap_graph *graph, fxtap_value value, double *out);
FXTAP_API fxtap_node fxtap_value_node(const fxtap_graph *graph, fxtap_value value);
FXTAP_API const fxtap_value *fxtap_value_items(const fxtap_graph *graph, fxtap_value value, size_t *n_out);
FXTAP_API fxtap_status fxtap_value_tensor(const fxtap_graph *graph, fxtap_value value, fxtap_tensor_meta *out);
FXTAP_API size_t fxtap_value_subgraph(const fxtap_graph *graph, fxtap_value value); /* its index */

/* ---- keys and serialisation ---- */

/*
 * Two keys for pairing graphs of different dumps. Both ignore node names, symbol names, source lines, module paths and
 * hints.
 *  strict: targets, wiring, constants, dtypes, device kind (not its index), symbolic shapes with the symbols renamed
 *          in order of first sight over the placeholders.
 *  structural: targets and wiring only (not constants, dtypes, devices or shapes; but dtype-cast nodes such as
 *  aten._to_copy count, since they are targets).
 * Both halves are 0 if out of memory.
 */
FXTAP_API fxtap_hash128 fxtap_graph_strict_key(const fxtap_graph *graph);
FXTAP_API fxtap_hash128 fxtap_graph_structural_key(const fxtap_graph *graph);

/* The record as bytes: versioned, little-endian, checksummed. The caller frees *out with fxtap_free(). */
FXTAP_API fxtap_status fxtap_graph_serialise(const fxtap_graph *graph, void **out, size_t *n_bytes_out);
/* FXTAP_E_FORMAT if the bytes are not a complete record; FXTAP_E_UNSUPPORTED for a newer version. */
FXTAP_API fxtap_status fxtap_graph_deserialise(const void *bytes, size_t n_bytes, fxtap_graph **out);

#ifdef __cplusplus
}
#endif
#endif
