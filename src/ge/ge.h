/*
 * ge.h - a graph of GE operators: built by the lowering, written by the printers.
 *
 * Everything is in the graph's arena and is freed with it. Operators are in order of creation, as in the text form; an
 * input has a copy of its producer's description from the time when the operator was created, since it does not show
 * later changes of the producer. Dtypes are GE's numbers (0 float, 1 float16, ...).
 */
#ifndef FX_GE_GE_H
#define FX_GE_GE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/graph.h"
#include "ge/table.h"
#include "util/arena.h"
#include "util/output.h"
#include "util/texts.h"

enum { /* the GE data types used by the lowering; the whole list is in dtype.c */
       FX_GE_FLOAT = 0,
       FX_GE_FLOAT16 = 1,
       FX_GE_INT8 = 2,
       FX_GE_INT32 = 3,
       FX_GE_UINT8 = 4,
       FX_GE_UINT32 = 8,
       FX_GE_INT64 = 9,
       FX_GE_UINT64 = 10,
       FX_GE_DOUBLE = 11,
       FX_GE_BOOL = 12,
       FX_GE_COMPLEX64 = 16,
       FX_GE_BF16 = 27,
       FX_GE_UNDEFINED = 28
};

typedef struct fx_ge_op fx_ge_op;

typedef struct fx_ref { /* one output of an operator */
    fx_ge_op *op;       /* NULL: no tensor */
    int32_t output;
} fx_ref;

/* A value of a recipe: a Python value or a tensor of the GE graph. */
typedef enum fx_val_kind {
    FX_VAL_NONE = 0,
    FX_VAL_BOOL,
    FX_VAL_INT,
    FX_VAL_FLOAT,
    FX_VAL_COMPLEX,
    FX_VAL_TEXT,
    FX_VAL_DTYPE, /* a GE data type number, printed as a number */
    FX_VAL_LIST,
    FX_VAL_TUPLE,
    FX_VAL_TENSOR, /* a constant tensor of the record */
    FX_VAL_REF,    /* a tensor (or a symbolic integer) of the GE graph */
    FX_VAL_GRAPH   /* a body of cond, while_loop, map */
} fx_val_kind;

typedef struct fx_ge_tensor { /* a constant tensor: row-major, little-endian */
    fxtap_dtype dtype;
    const int64_t *dims;
    size_t n_dims;
    const void *bytes; /* NULL if the record has none */
    size_t n_bytes;
} fx_ge_tensor;

typedef struct fx_val fx_val;
struct fx_val {
    fx_val_kind kind;
    bool is_symbol;   /* a REF that is a symbolic number */
    bool is_alias;    /* a REF that is a returned argument */
    fxtap_value meta; /* its meta in the record; 0 if there is none */
    union {
        bool b;
        int64_t i;
        double f;
        struct {
            double real, imag;
        } c;
        struct {
            const char *bytes;
            size_t length;
        } text;
        struct {
            fx_val *items;
            size_t n;
        } list;
        const fx_ge_tensor *tensor;
        fx_ref ref;
        const struct fx_ge_body *body;
    } u;
};

typedef struct fx_ge_desc {
    const char *name;
    int dtype;         /* FX_GE_UNDEFINED if unknown */
    bool is_unfed;     /* a missing optional input */
    const char *place; /* "CPU", "NPU": the device of an input; else NULL */
    bool has_shape;
    const int64_t *dims; /* -1: symbolic */
    size_t n_dims;
    const char *layout; /* "" if not set */
    const char *meta;   /* NULL: none */
    size_t meta_length;
    const char *fx_name; /* NULL: none */
} fx_ge_desc;

typedef enum fx_attr_kind {
    FX_ATTR_INT,
    FX_ATTR_FLOAT,
    FX_ATTR_BOOL,
    FX_ATTR_TEXT,
    FX_ATTR_DTYPE,
    FX_ATTR_INTS,
    FX_ATTR_FLOATS,
    FX_ATTR_TEXTS,
    FX_ATTR_PLAIN_LIST, /* strings or numbers, without val_type: layout and name lists */
    FX_ATTR_CONST,      /* a Const's value */
    FX_ATTR_GRAPH,      /* a body */
    FX_ATTR_EMPTY       /* a key without a value */
} fx_attr_kind;

typedef struct fx_ge_attr {
    const char *name;
    fx_attr_kind kind;
    fx_val value; /* lists of PLAIN_LIST: strings first, then numbers */
} fx_ge_attr;

struct fx_ge_op {
    const char *type;
    const char *name;
    const fx_ge_def *def; /* NULL: Data, Const, NetOutput and operators without a lowering */
    fx_ref *inputs;
    fx_ge_desc *input_descs;
    size_t n_inputs;
    fx_ge_attr *attrs;
    size_t n_attrs, attrs_capacity;
    fx_ge_desc *outputs;
    size_t n_outputs;
    const char *inline_text; /* "ge.Const(1, dtype=0)": its text in py where it is used; NULL: its name */
    const void *bytes;       /* a Const's data, little-endian */
    size_t n_bytes;
    const char *counted_as; /* the base of its name */
    bool is_read;           /* it is an input of an operator: set while the graph is optimised */
};

typedef struct fx_ge_body { /* of a cond, while_loop, map */
    const char *name;
    const char *path;          /* its name with those of the enclosing graphs: "true_graph_0/body_graph_0" */
    struct fx_ge_graph *graph; /* owned; NULL before it is lowered */
    bool is_in_py;
    size_t py_start; /* its position in the py form of the enclosing graph */
} fx_ge_body;

typedef struct fx_ge_graph {
    fx_arena arena;
    fx_ge_op **ops;
    size_t n_ops, ops_capacity;
    fx_ge_attr *attrs; /* of the graph itself */
    size_t n_attrs, attrs_capacity;
    fx_texts names;
    bool with_py;     /* write the py form: true in a new graph */
    fxtap_buffer py;  /* the py form, written as the graph is built */
    const char *path; /* of a body, borrowed; NULL: the graph itself */
    fx_ge_body *bodies;
    size_t n_bodies;
    uint64_t walked;     /* the cost of writing it: see lower.h */
    fxtap_graph *record; /* the record that it was lowered from, if owned: texts and constants are borrowed from it */
} fx_ge_graph;

fx_ge_graph *fx_ge_graph_new(void); /* NULL: no memory */
void fx_ge_graph_free(fx_ge_graph *graph);
/* FXTAP_E_NOMEM after any failed allocation, else OK. */
fxtap_status fx_ge_graph_status(const fx_ge_graph *graph);

/* ---- dtypes ---- */

int fx_ge_dtype_of(fxtap_dtype dtype);                               /* FX_GE_UNDEFINED if GE has none */
const char *fx_ge_dtype_text(int ge_dtype);                          /* "DT_FLOAT"; NULL outside the enumeration */
bool fx_ge_dtype_by_name(const char *name, size_t length, int *out); /* f32, bf16, i64, bool ... */
size_t fx_ge_dtype_bytes(int ge_dtype);                              /* of one element; 0: none */

/* ---- operators ---- */

/* A new operator with a unique name (its type, numbered from the second on; or `name` if not NULL). */
fx_ge_op *fx_ge_add_op(fx_ge_graph *graph, const char *type, const char *name, size_t n_inputs, size_t n_outputs);
/* Removes the operators from index n_ops on; nothing may refer to them. */
void fx_ge_truncate(fx_ge_graph *graph, size_t n_ops);
bool fx_ge_add_attr(fx_ge_graph *graph, fx_ge_op *op, const char *name, fx_attr_kind kind, fx_val value);
bool fx_ge_add_graph_attr(fx_ge_graph *graph, const char *name, fx_attr_kind kind, fx_val value);
const fx_ge_attr *fx_ge_find_attr(const fx_ge_op *op, const char *name);
void fx_ge_set_input(fx_ge_op *op, size_t index, const char *name, fx_ref from);

/* A Const from a Python value as `dtype`, or as the value's own dtype if that is FX_GE_UNDEFINED. */
fx_ref fx_ge_const(fx_ge_graph *graph, const fx_val *value, int dtype);

/* The same with a given name; NULL: "Const", numbered. */
fx_ref fx_ge_named_const(fx_ge_graph *graph, const char *name, const fx_val *value, int dtype);

/* A Pack of only symbolic inputs. */
bool fx_ge_is_pack_of_symbols(const fx_ge_op *op);

typedef struct fx_named_val {
    const char *name;
    size_t name_length;
    fx_val value;
} fx_named_val;

/*
 * Calls an operator of the table: literals among `args` become Consts in order, missing attributes get their defaults,
 * and the py line is written. `n_list_outputs` is for operators with a variable number of outputs. Output i of the
 * result is {op, i}. NULL with the thread's error set if out of memory, the type is unknown or an attribute is missing.
 */
fx_ge_op *fx_ge_call(fx_ge_graph *graph, const char *type, const fx_val *args, size_t n_args, const fx_named_val *attrs,
                     size_t n_attrs, size_t n_list_outputs);

/* ---- text ---- */

/* The graph as GE's protobuf text, with a name ("graph_1"). */
void fx_ge_print_txt(const fx_ge_graph *graph, const char *name, fxtap_buffer *out);
/* The same as a TensorFlow GraphDef in text. */
void fx_ge_print_pbtxt(const fx_ge_graph *graph, fxtap_buffer *out);

/* Parts of the text form, indented by a number of spaces; for print_pbtxt.c. */
void fx_txt_desc(fxtap_buffer *out, int indent, const fx_ge_desc *desc);
void fx_txt_attr_value(fxtap_buffer *out, int indent, const fx_ge_op *op, const fx_ge_attr *attr);

/* Other characters than letters and digits become "_", which also precedes a digit at the start; "_" for no name. */
void fx_ge_identifier(fxtap_buffer *out, const char *name);
void fx_ge_function(fxtap_buffer *out, const char *name); /* the same, "_" behind a keyword */
void fx_ge_ref_text(fxtap_buffer *out, fx_ref ref);       /* "Add_1_0", or "ge.Const(1, dtype=0)" */
/* As Python's repr, with inf and nan; REFs as in py. */
void fx_val_repr(fxtap_buffer *out, const fx_val *value);
/* The same as a Python expression: float('inf'). */
void fx_val_source(fxtap_buffer *out, const fx_val *value);
void fx_tensor_repr(fxtap_buffer *out, const fx_ge_tensor *tensor); /* as torch's str */
/* Bytes of a number or nested list of numbers in a dtype, little-endian; false for any other value. */
bool fx_val_encode(const fx_val *value, int dtype, uint8_t *out);

#endif
