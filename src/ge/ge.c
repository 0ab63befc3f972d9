/* The graph of GE operators: names, operators, attributes, constants. */
#include "ge/ge.h"

#include <string.h>

#include "graph/python.h"
#include "util/error.h"
#include "util/memory.h"

/* ---- names ---- */

typedef struct op_name { /* the value of a text */
    size_t count;        /* operators of this type so far */
    bool is_taken;       /* an operator has this name */
} op_name;

/* The entry of a text, added if new. NULL: out of memory. */
static op_name *name_of(fx_ge_graph *graph, const char *text)
{
    fx_texts_entry *entry = fx_texts_add(&graph->names, text, strlen(text));
    if (entry != NULL && entry->value == NULL) {
        entry->value = fx_arena_calloc(&graph->arena, 1, sizeof(op_name));
    }
    graph->arena.failed |= entry == NULL;
    return entry != NULL ? entry->value : NULL;
}

static const char *take_name(fx_ge_graph *graph, const char *type)
{
    for (;;) {
        op_name *counted = name_of(graph, type);
        if (counted == NULL) {
            return NULL;
        }
        size_t count = counted->count++;
        const char *text = count == 0 ? type : fx_arena_printf(&graph->arena, "%s_%zu", type, count);
        op_name *own = text == NULL ? NULL : name_of(graph, text);
        if (own == NULL) {
            return NULL;
        }
        if (!own->is_taken) {
            own->is_taken = true;
            return fx_texts_keep(&graph->names, text, strlen(text));
        }
    }
}

/* ---- graph ---- */

fx_ge_graph *fx_ge_graph_new(void)
{
    fx_ge_graph *graph = fx_calloc(1, sizeof *graph);
    if (graph == NULL) {
        return NULL;
    }
    graph->with_py = true;
    fxtap_buffer_init(&graph->py);
    fx_arena_init(&graph->arena);
    graph->arena.stays_failed = true;
    graph->names.arena = &graph->arena;
    return graph;
}

void fx_ge_graph_free(fx_ge_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    fxtap_buffer_clear(&graph->py);
    for (size_t i = 0; i < graph->n_bodies; i++) {
        fx_ge_graph_free(graph->bodies[i].graph);
    }
    fxtap_graph_free(graph->record);
    fx_free(graph->ops);
    fx_texts_clear(&graph->names);
    fx_arena_clear(&graph->arena);
    fx_free(graph);
}

fxtap_status fx_ge_graph_status(const fx_ge_graph *graph)
{
    if (graph->arena.failed) {
        return FXTAP_E_NOMEM;
    }
    return fxtap_buffer_status(&graph->py);
}

/* ---- operators ---- */

fx_ge_op *fx_ge_add_op(fx_ge_graph *graph, const char *type, const char *name, size_t n_inputs, size_t n_outputs)
{
    fx_arena *arena = &graph->arena;
    fx_ge_op *op = fx_arena_calloc(arena, 1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    op->inputs = fx_arena_calloc(arena, n_inputs + 1, sizeof *op->inputs);
    op->input_descs = fx_arena_calloc(arena, n_inputs + 1, sizeof *op->input_descs);
    op->outputs = fx_arena_calloc(arena, n_outputs + 1, sizeof *op->outputs);
    op->type = type;
    op->n_inputs = n_inputs;
    op->n_outputs = n_outputs;
    op->counted_as = name != NULL ? name : type;
    op->name = take_name(graph, op->counted_as);
    if (op->name == NULL || op->inputs == NULL || op->input_descs == NULL || op->outputs == NULL) {
        return NULL;
    }
    if (!fx_grow((void **)&graph->ops, &graph->ops_capacity, graph->n_ops + 1, sizeof *graph->ops)) {
        arena->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n_outputs; i++) {
        op->outputs[i].dtype = FX_GE_UNDEFINED;
        op->outputs[i].layout = op->outputs[i].name = "";
    }
    for (size_t i = 0; i < n_inputs; i++) {
        op->input_descs[i].dtype = FX_GE_UNDEFINED;
        op->input_descs[i].layout = op->input_descs[i].name = "";
    }
    graph->ops[graph->n_ops++] = op;
    return op;
}

void fx_ge_truncate(fx_ge_graph *graph, size_t n_ops)
{
    while (graph->n_ops > n_ops) {
        const fx_ge_op *op = graph->ops[--graph->n_ops];
        op_name *own = name_of(graph, op->name);
        op_name *counted = name_of(graph, op->counted_as);
        if (own != NULL) {
            own->is_taken = false;
        }
        if (counted != NULL && counted->count > 0) {
            counted->count--;
        }
    }
}

static bool push_attr(fx_arena *arena, fx_ge_attr **attrs, size_t *n, size_t *capacity, const fx_ge_attr *attr)
{
    if (*n == *capacity) {
        size_t wanted = *capacity == 0 ? 2 : *capacity * 2;
        fx_ge_attr *more = fx_arena_calloc(arena, wanted, sizeof *more);
        if (more == NULL) {
            return false;
        }
        if (*n > 0) {
            memcpy(more, *attrs, *n * sizeof *more);
        }
        *attrs = more;
        *capacity = wanted;
    }
    (*attrs)[(*n)++] = *attr;
    return true;
}

bool fx_ge_add_attr(fx_ge_graph *graph, fx_ge_op *op, const char *name, fx_attr_kind kind, fx_val value)
{
    fx_ge_attr attr = {name, kind, value};
    return push_attr(&graph->arena, &op->attrs, &op->n_attrs, &op->attrs_capacity, &attr);
}

bool fx_ge_add_graph_attr(fx_ge_graph *graph, const char *name, fx_attr_kind kind, fx_val value)
{
    fx_ge_attr attr = {name, kind, value};
    return push_attr(&graph->arena, &graph->attrs, &graph->n_attrs, &graph->attrs_capacity, &attr);
}

const fx_ge_attr *fx_ge_find_attr(const fx_ge_op *op, const char *name)
{
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, name) == 0) {
            return &op->attrs[i];
        }
    }
    return NULL;
}

void fx_ge_set_input(fx_ge_op *op, size_t index, const char *name, fx_ref from)
{
    fx_ge_desc *desc = &op->input_descs[index];
    op->inputs[index] = from;
    if (from.op == NULL) {
        desc->is_unfed = true;
        desc->dtype = FX_GE_UNDEFINED;
        desc->layout = "";
    } else {
        *desc = from.op->outputs[from.output];
    }
    desc->name = name;
}

/* ---- constants ---- */

static int natural_dtype(const fx_val *value)
{
    switch (value->kind) {
    case FX_VAL_BOOL:
        return FX_GE_BOOL;
    case FX_VAL_FLOAT:
        return FX_GE_FLOAT;
    case FX_VAL_COMPLEX:
        return FX_GE_COMPLEX64;
    case FX_VAL_TENSOR:
        return fx_ge_dtype_of(value->u.tensor->dtype);
    case FX_VAL_LIST:
    case FX_VAL_TUPLE: {
        int dtype = FX_GE_INT64;
        for (size_t i = 0; i < value->u.list.n; i++) {
            int item = natural_dtype(&value->u.list.items[i]);
            if (i == 0 || item == FX_GE_FLOAT) {
                dtype = item;
            }
        }
        return dtype;
    }
    default:
        return FX_GE_INT64;
    }
}

static const int64_t *const_dims(fx_ge_graph *graph, const fx_val *value, size_t *n_out)
{
    if (value->kind == FX_VAL_TENSOR) {
        *n_out = value->u.tensor->n_dims;
        return value->u.tensor->dims;
    }
    *n_out = 0;
    if (value->kind != FX_VAL_LIST && value->kind != FX_VAL_TUPLE) {
        return NULL;
    }
    int64_t *dims = fx_arena_calloc(&graph->arena, 1, sizeof *dims);
    if (dims != NULL) {
        dims[0] = (int64_t)value->u.list.n;
        *n_out = 1;
    }
    return dims;
}

static bool set_const_bytes(fx_ge_graph *graph, fx_ge_op *op, const fx_val *value, int dtype)
{
    if (value->kind == FX_VAL_TENSOR) {
        op->bytes = value->u.tensor->bytes;
        op->n_bytes = value->u.tensor->bytes == NULL ? 0 : value->u.tensor->n_bytes;
        return true;
    }
    bool is_list = value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE;
    size_t n = (is_list ? value->u.list.n : 1) * fx_ge_dtype_bytes(dtype);
    uint8_t *bytes = fx_arena_calloc(&graph->arena, n + 1, 1);
    if (bytes == NULL) {
        return false;
    }
    if (!fx_val_encode(value, dtype, bytes)) {
        n = 0;
    }
    op->bytes = bytes;
    op->n_bytes = n;
    return true;
}

fx_ref fx_ge_const(fx_ge_graph *graph, const fx_val *value, int dtype)
{
    return fx_ge_named_const(graph, NULL, value, dtype);
}

fx_ref fx_ge_named_const(fx_ge_graph *graph, const char *name, const fx_val *value, int dtype)
{
    fx_ref none = {NULL, 0};
    fx_ge_op *op = fx_ge_add_op(graph, "Const", name, 0, 1);
    if (op == NULL) {
        return none;
    }
    if (dtype == FX_GE_UNDEFINED) {
        dtype = natural_dtype(value);
    }
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    if (graph->with_py) {
        fx_val_source(&text, value);
        op->inline_text =
            fx_arena_printf(&graph->arena, "ge.Const(%s, dtype=%d)", text.bytes == NULL ? "" : text.bytes, dtype);
        text.length = 0;
    }
    fx_val_repr(&text, value);
    fx_val readable = {.kind = FX_VAL_TEXT};
    readable.u.text.bytes = fx_text_copy(&graph->arena, text.bytes == NULL ? "" : text.bytes, text.length);
    readable.u.text.length = text.length;
    if (fxtap_buffer_status(&text) != FXTAP_OK) {
        graph->arena.failed = true;
    }
    fxtap_buffer_clear(&text);
    fx_ge_desc *desc = &op->outputs[0];
    desc->dtype = dtype;
    desc->has_shape = true;
    desc->layout = "ND";
    desc->dims = const_dims(graph, value, &desc->n_dims);
    if (!set_const_bytes(graph, op, value, dtype) || !fx_ge_add_attr(graph, op, "value", FX_ATTR_CONST, *value) ||
        !fx_ge_add_attr(graph, op, "_readable_value", FX_ATTR_TEXT, readable) || graph->arena.failed) {
        return none;
    }
    fx_ref ref = {op, 0};
    return ref;
}

/* ---- text ---- */

void fx_ge_identifier(fxtap_buffer *out, const char *name)
{
    const char *plain = name, *c = plain;
    if (*name == 0 || (*name >= '0' && *name <= '9')) {
        fxtap_buffer_append(out, "_", 1);
    }
    for (; *c != 0; c++) {
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_') {
            continue;
        }
        fxtap_buffer_append(out, plain, (size_t)(c - plain));
        fxtap_buffer_append(out, "_", 1);
        plain = c + 1;
    }
    fxtap_buffer_append(out, plain, (size_t)(c - plain));
}

void fx_ge_function(fxtap_buffer *out, const char *name)
{
    size_t start = out->length;
    fx_ge_identifier(out, name);
    if (out->bytes != NULL && !fx_python_is_identifier(out->bytes + start, out->length - start)) {
        fxtap_buffer_append(out, "_", 1);
    }
}

void fx_ge_ref_text(fxtap_buffer *out, fx_ref ref)
{
    if (ref.op == NULL) {
        fxtap_buffer_text(out, "None");
        return;
    }
    if (ref.op->inline_text != NULL) {
        fxtap_buffer_text(out, ref.op->inline_text);
        return;
    }
    fx_ge_identifier(out, ref.op->name);
    fxtap_buffer_printf(out, "_%d", ref.output);
}
