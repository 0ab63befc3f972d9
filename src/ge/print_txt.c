/* The GE graph in protobuf's text format. Map entries are written in descending order of their keys. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ge/ge.h"
#include "util/buffer.h"
#include "util/memory.h"
#include "util/number.h"

static void indent_by(fxtap_buffer *out, int n)
{
    static const char BLANKS[] = "                                ";
    while (n > 0) {
        int part = n > 32 ? 32 : n;
        fx_buffer_put(out, BLANKS, (size_t)part);
        n -= part;
    }
}

static void line(fxtap_buffer *out, int indent, const char *text)
{
    indent_by(out, indent);
    fx_buffer_put_text(out, text);
    fx_buffer_put(out, "\n", 1);
}

/* The letter of a character's short escape; 0 if it has none. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\'':
    case '\\':
        return (char)c;
    default:
        return 0;
    }
}

/* Escapes unprintable and non-ASCII bytes in octal. */
static void escaped(fxtap_buffer *out, const char *bytes, size_t length)
{
    size_t plain = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\') {
            continue;
        }
        fx_buffer_put(out, bytes + plain, i - plain);
        plain = i + 1;
        char pair[2] = {'\\', short_escape(c)};
        if (pair[1] != 0) {
            fx_buffer_put(out, pair, 2);
        } else {
            char octal[4] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)), (char)('0' + (c & 7))};
            fx_buffer_put(out, octal, 4);
        }
    }
    fx_buffer_put(out, bytes + plain, length - plain);
}

/* A string or bytes field. */
static void text_field(fxtap_buffer *out, int indent, const char *key, const char *bytes, size_t length)
{
    indent_by(out, indent);
    fx_buffer_put_text(out, key);
    fx_buffer_put(out, ": \"", 3);
    escaped(out, bytes, length);
    fx_buffer_put(out, "\"\n", 2);
}

static void int_field(fxtap_buffer *out, int indent, const char *key, int64_t value)
{
    char text[FX_NUMBER_BYTES];
    indent_by(out, indent);
    fx_buffer_put_text(out, key);
    fx_buffer_put(out, ": ", 2);
    fx_buffer_put(out, text, fx_i64_text(value, text));
    fx_buffer_put(out, "\n", 1);
}

static void float_field(fxtap_buffer *out, int indent, double value)
{
    char text[FX_NUMBER_BYTES];
    size_t length = fx_float_text((float)value, text);
    if (length > 2 && memcmp(text + length - 2, ".0", 2) == 0) {
        length -= 2;
    }
    indent_by(out, indent);
    fxtap_buffer_printf(out, "f: %.*s\n", (int)length, text);
}

/* ---- values ---- */

static double number_of(const fx_val *value)
{
    switch (value->kind) {
    case FX_VAL_FLOAT:
        return value->u.f;
    case FX_VAL_BOOL:
        return value->u.b;
    case FX_VAL_INT:
    case FX_VAL_DTYPE:
        return (double)value->u.i;
    default:
        return 0;
    }
}

static int64_t integer_of(const fx_val *value)
{
    double number = number_of(value);
    if (value->kind == FX_VAL_INT || value->kind == FX_VAL_DTYPE) {
        return value->u.i;
    }
    return number >= -9.2e18 && number <= 9.2e18 ? (int64_t)number : 0;
}

static void single_value(fxtap_buffer *out, int indent, const fx_val *value, char kind)
{
    if (kind == 's') {
        text_field(out, indent, "s", value->kind == FX_VAL_TEXT ? value->u.text.bytes : "",
                   value->kind == FX_VAL_TEXT ? value->u.text.length : 0);
    } else if (kind == 'f') {
        float_field(out, indent, number_of(value));
    } else if (kind == 'b') {
        line(out, indent, number_of(value) != 0 ? "b: true" : "b: false");
    } else {
        int_field(out, indent, kind == 'd' ? "dt" : "i", integer_of(value));
    }
}

static void list_value(fxtap_buffer *out, int indent, const fx_val *value, char kind, const char *val_type)
{
    bool is_list = value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE;
    line(out, indent, "list {");
    for (size_t i = 0; is_list && i < value->u.list.n; i++) {
        const fx_val *item = &value->u.list.items[i];
        single_value(out, indent + 2, item, kind != 0 ? kind : item->kind == FX_VAL_TEXT ? 's' : 'i');
    }
    if (val_type != NULL) {
        line(out, indent + 2, val_type);
    }
    line(out, indent, "}");
}

static void shape_field(fxtap_buffer *out, int indent, const fx_ge_desc *desc)
{
    line(out, indent, "shape {");
    for (size_t i = 0; i < desc->n_dims; i++) {
        int_field(out, indent + 2, "dim", desc->dims == NULL ? -1 : desc->dims[i]);
    }
    line(out, indent, "}");
}

static void dtype_field(fxtap_buffer *out, int indent, int dtype)
{
    const char *text = dtype == FX_GE_UNDEFINED ? NULL : fx_ge_dtype_text(dtype);
    if (text == NULL) {
        return;
    }
    indent_by(out, indent);
    fxtap_buffer_printf(out, "dtype: %s\n", text);
}

static void const_value(fxtap_buffer *out, int indent, const fx_ge_op *op)
{
    assert(op != NULL); /* a graph has no constants among its own attributes */
    const fx_ge_desc *desc = &op->outputs[0];
    line(out, indent, "t {");
    line(out, indent + 2, "desc {");
    dtype_field(out, indent + 4, desc->dtype);
    shape_field(out, indent + 4, desc);
    line(out, indent + 4, "layout: \"ND\"");
    line(out, indent + 2, "}");
    if (op->n_bytes > 0) {
        text_field(out, indent + 2, "data", op->bytes, op->n_bytes);
    }
    line(out, indent, "}");
}

static void print_ops(fxtap_buffer *out, int indent, const fx_ge_graph *graph, const char *name);

/* A body in the attribute of the operator that runs it. Depth: at most FX_GRAPH_DEPTH_MAX. */
static void body_value(fxtap_buffer *out, int indent, const fx_ge_body *body)
{
    line(out, indent, "g {");
    print_ops(out, indent + 2, body->graph, body->path);
    line(out, indent, "}");
}

void fx_txt_attr_value(fxtap_buffer *out, int indent, const fx_ge_op *op, const fx_ge_attr *attr)
{
    switch (attr->kind) {
    case FX_ATTR_INT:
        single_value(out, indent, &attr->value, 'i');
        break;
    case FX_ATTR_FLOAT:
        single_value(out, indent, &attr->value, 'f');
        break;
    case FX_ATTR_BOOL:
        single_value(out, indent, &attr->value, 'b');
        break;
    case FX_ATTR_TEXT:
        single_value(out, indent, &attr->value, 's');
        break;
    case FX_ATTR_DTYPE:
        single_value(out, indent, &attr->value, 'd');
        break;
    case FX_ATTR_INTS:
        list_value(out, indent, &attr->value, 'i', "val_type: VT_LIST_INT");
        break;
    case FX_ATTR_FLOATS:
        list_value(out, indent, &attr->value, 'f', "val_type: VT_LIST_FLOAT");
        break;
    case FX_ATTR_TEXTS:
        list_value(out, indent, &attr->value, 's', "val_type: VT_LIST_STRING");
        break;
    case FX_ATTR_PLAIN_LIST:
        list_value(out, indent, &attr->value, 0, NULL);
        break;
    case FX_ATTR_CONST:
        const_value(out, indent, op);
        break;
    case FX_ATTR_GRAPH:
        body_value(out, indent, attr->value.u.body);
        break;
    case FX_ATTR_EMPTY:
        break;
    }
}

static int descending(const void *a, const void *b)
{
    const fx_ge_attr *const *x = a, *const *y = b;
    return -strcmp((*x)->name, (*y)->name);
}

static void print_attr(fxtap_buffer *out, int indent, const fx_ge_op *op, const fx_ge_attr *attr)
{
    line(out, indent, "attr {");
    text_field(out, indent + 2, "key", attr->name, strlen(attr->name));
    line(out, indent + 2, "value {");
    fx_txt_attr_value(out, indent + 4, op, attr);
    line(out, indent + 2, "}");
    line(out, indent, "}");
}

static void print_attrs(fxtap_buffer *out, int indent, const fx_ge_op *op, const fx_ge_attr *attrs, size_t n)
{
    const fx_ge_attr **sorted = fx_calloc(n, sizeof *sorted);
    if (sorted == NULL) {
        out->status = out->status != FXTAP_OK ? out->status : FXTAP_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &attrs[i];
    }
    qsort(sorted, n, sizeof *sorted, descending);
    for (size_t i = 0; i < n; i++) {
        print_attr(out, indent, op, sorted[i]);
    }
    fx_free(sorted);
}

/* ---- descriptions ---- */

static void text_attr(fxtap_buffer *out, int indent, const char *key, const char *text, size_t length)
{
    line(out, indent, "attr {");
    text_field(out, indent + 2, "key", key, strlen(key));
    line(out, indent + 2, "value {");
    text_field(out, indent + 4, "s", text, length);
    line(out, indent + 2, "}");
    line(out, indent, "}");
}

void fx_txt_desc(fxtap_buffer *out, int indent, const fx_ge_desc *desc)
{
    if (desc->name[0] != 0) {
        text_field(out, indent, "name", desc->name, strlen(desc->name));
    }
    dtype_field(out, indent, desc->dtype);
    if (desc->has_shape) {
        shape_field(out, indent, desc);
    }
    if (desc->layout[0] != 0) {
        text_field(out, indent, "layout", desc->layout, strlen(desc->layout));
    }
    if (desc->meta != NULL) {
        text_attr(out, indent, "_meta", desc->meta, desc->meta_length);
    }
    if (desc->is_unfed) {
        line(out, indent, "attr {");
        line(out, indent + 2, "key: \"_is_unfed_optional\"");
        line(out, indent + 2, "value {");
        line(out, indent + 4, "i: 1");
        line(out, indent + 2, "}");
        line(out, indent, "}");
    }
    if (desc->fx_name != NULL) {
        text_attr(out, indent, "_fx_tensor_name", desc->fx_name, strlen(desc->fx_name));
    }
    if (desc->place != NULL) {
        line(out, indent, strcmp(desc->place, "NPU") == 0 ? "device_type: \"NPU\"" : "device_type: \"CPU\"");
    }
}

/* ---- operators ---- */

static void print_op(fxtap_buffer *out, int indent, const fx_ge_op *op)
{
    line(out, indent, "op {");
    text_field(out, indent + 2, "name", op->name, strlen(op->name));
    text_field(out, indent + 2, "type", op->type, strlen(op->type));
    for (size_t i = 0; i < op->n_inputs; i++) {
        const fx_ge_op *producer = op->inputs[i].op;
        if (producer == NULL) {
            line(out, indent + 2, "input: \"\"");
            continue;
        }
        indent_by(out, indent + 2);
        fx_buffer_put_text(out, "input: \"");
        escaped(out, producer->name, strlen(producer->name));
        fxtap_buffer_printf(out, ":%d\"\n", op->inputs[i].output);
    }
    print_attrs(out, indent + 2, op, op->attrs, op->n_attrs);
    size_t n_descs = strcmp(op->type, "Data") == 0 ? 1 : op->n_inputs;
    for (size_t i = 0; i < n_descs; i++) {
        line(out, indent + 2, "input_desc {");
        fx_txt_desc(out, indent + 4, &op->input_descs[i]);
        line(out, indent + 2, "}");
    }
    for (size_t i = 0; i < op->n_outputs; i++) {
        line(out, indent + 2, "output_desc {");
        fx_txt_desc(out, indent + 4, &op->outputs[i]);
        line(out, indent + 2, "}");
    }
    line(out, indent, "}");
}

static void print_ops(fxtap_buffer *out, int indent, const fx_ge_graph *graph, const char *name)
{
    text_field(out, indent, "name", name, strlen(name));
    for (size_t i = 0; i < graph->n_ops; i++) {
        print_op(out, indent, graph->ops[i]);
    }
    print_attrs(out, indent, NULL, graph->attrs, graph->n_attrs);
}

void fx_ge_print_txt(const fx_ge_graph *graph, const char *name, fxtap_buffer *out)
{
    print_ops(out, 0, graph, name);
}
