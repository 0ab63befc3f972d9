/* Calls an operator of the table: inputs, literals, attributes and the py line. */
#include <string.h>

#include "ge/ge.h"
#include "util/error.h"
#include "util/number.h"

const fx_ge_def *fx_ge_def_find(const char *type)
{
    size_t low = 0, high = fx_n_ge_defs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(fx_ge_defs[middle].type, type);
        if (order == 0) {
            return &fx_ge_defs[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* ---- words of a definition ---- */

typedef struct word {
    const char *text;
    size_t length;
    bool is_list, is_optional, is_fixed;
} word;

static bool next_word(const char **at, word *out)
{
    while (**at == ' ') {
        (*at)++;
    }
    if (**at == 0) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->text = *at;
    for (; **at != 0 && **at != ' '; (*at)++) {
        out->is_list |= **at == '*';
        out->is_optional |= **at == '?';
        out->is_fixed |= **at == '!';
        if (**at != '*' && **at != '?' && **at != '!') {
            out->length++;
        }
    }
    return true;
}

static const char *indexed_name(fx_ge_graph *graph, const word *name, size_t index)
{
    return fx_arena_printf(&graph->arena, "%.*s%zu", (int)name->length, name->text, index);
}

/* ---- literals ---- */

typedef struct dtypes_seen {
    uint64_t bits; /* of the tensors among the arguments */
} dtypes_seen;

static void see(dtypes_seen *seen, const fx_val *value)
{
    if (value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE) {
        for (size_t i = 0; i < value->u.list.n; i++) {
            see(seen, &value->u.list.items[i]);
        }
    } else if (value->kind == FX_VAL_REF && value->u.ref.op != NULL && strcmp(value->u.ref.op->type, "Const") != 0) {
        int dtype = value->u.ref.op->outputs[value->u.ref.output].dtype;
        seen->bits |= dtype >= 0 && dtype < 64 ? (uint64_t)1 << dtype : 0;
    }
}

static int only_one_of(uint64_t bits, uint64_t wanted, int otherwise)
{
    bits &= wanted;
    if (bits == 0 || (bits & (bits - 1)) != 0) {
        return otherwise;
    }
    int dtype = 0;
    while ((bits >> dtype & 1) == 0) {
        dtype++;
    }
    return dtype;
}

#define BIT(dtype) ((uint64_t)1 << (dtype))
#define INTEGERS (BIT(FX_GE_INT8) | BIT(FX_GE_UINT8) | BIT(FX_GE_INT32) | BIT(FX_GE_UINT32) | BIT(FX_GE_INT64))
#define FLOATS (BIT(FX_GE_FLOAT) | BIT(FX_GE_FLOAT16) | BIT(FX_GE_BF16) | BIT(FX_GE_DOUBLE))

/* The dtype of a bare number: the only dtype of its kind among the other inputs, else int64 or float. */
static int literal_dtype(const fx_val *value, dtypes_seen seen, bool is_fixed)
{
    if (value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE) {
        for (size_t i = 0; i < value->u.list.n; i++) {
            if (value->u.list.items[i].kind == FX_VAL_FLOAT) {
                return only_one_of(seen.bits, FLOATS, seen.bits == 0 ? FX_GE_FLOAT : FX_GE_DOUBLE);
            }
        }
        return value->u.list.n == 0 ? FX_GE_INT64 : literal_dtype(&value->u.list.items[0], seen, is_fixed);
    }
    if (value->kind == FX_VAL_INT) {
        return is_fixed ? FX_GE_INT64 : only_one_of(seen.bits, INTEGERS, FX_GE_INT64);
    }
    if (value->kind == FX_VAL_FLOAT) {
        return only_one_of(seen.bits, FLOATS, FX_GE_FLOAT);
    }
    return FX_GE_UNDEFINED;
}

static fx_ref input_ref(fx_ge_graph *graph, const fx_val *value, dtypes_seen seen, bool is_fixed)
{
    if (value->kind == FX_VAL_REF) {
        return value->u.ref;
    }
    if (value->kind == FX_VAL_NONE) {
        fx_ref none = {NULL, 0};
        return none;
    }
    return fx_ge_const(graph, value, literal_dtype(value, seen, is_fixed));
}

/* ---- inputs ---- */

static size_t count_inputs(const fx_ge_def *def, const fx_val *args, size_t n_args)
{
    const char *at = def->inputs;
    size_t n = 0;
    word name;
    for (size_t i = 0; next_word(&at, &name); i++) {
        n += name.is_list ? (i < n_args && args[i].kind == FX_VAL_LIST ? args[i].u.list.n : 0) : 1;
    }
    return n;
}

/*
 * A literal becomes a Const, which precedes the calling operator. Inputs with a dtype of their own (sizes, axes) come
 * first, then those that take the dtype of the others.
 */
static bool make_inputs(fx_ge_graph *graph, const fx_ge_def *def, const fx_val *args, size_t n_args, bool is_fixed,
                        fx_ref *refs, const char **names)
{
    const char *at = def->inputs;
    dtypes_seen seen = {0};
    size_t n = 0;
    word name;
    for (size_t i = 0; i < n_args; i++) {
        see(&seen, &args[i]);
    }
    for (size_t i = 0; next_word(&at, &name); i++) {
        fx_val missing = {.kind = FX_VAL_NONE};
        const fx_val *value = i < n_args ? &args[i] : &missing;
        if (name.is_fixed != is_fixed) {
            n += name.is_list ? (value->kind == FX_VAL_LIST ? value->u.list.n : 0) : 1;
            continue;
        }
        if (name.is_list) {
            for (size_t j = 0; value->kind == FX_VAL_LIST && j < value->u.list.n; j++) {
                refs[n] = input_ref(graph, &value->u.list.items[j], seen, is_fixed);
                names[n++] = indexed_name(graph, &name, j);
            }
            continue;
        }
        refs[n] = input_ref(graph, value, seen, is_fixed);
        names[n++] = fx_text_copy(&graph->arena, name.text, name.length);
        if (value->kind == FX_VAL_NONE && !name.is_optional) {
            fx_error(FXTAP_E_UNSUPPORTED, "input %zu of %s is missing", i, def->type);
            return false;
        }
    }
    return !graph->arena.failed;
}

/* ---- outputs ---- */

static size_t count_outputs(const fx_ge_def *def, size_t n_list_outputs)
{
    const char *at = def->outputs;
    size_t n = 0;
    word name;
    while (next_word(&at, &name)) {
        n += name.is_list ? n_list_outputs : 1;
    }
    return n;
}

static void name_outputs(fx_ge_graph *graph, fx_ge_op *op, const fx_ge_def *def, size_t n_list_outputs)
{
    const char *at = def->outputs;
    size_t n = 0;
    word name;
    while (next_word(&at, &name)) {
        if (!name.is_list) {
            op->outputs[n++].name = fx_text_copy(&graph->arena, name.text, name.length);
        }
        for (size_t i = 0; name.is_list && i < n_list_outputs; i++) {
            op->outputs[n++].name = indexed_name(graph, &name, i);
        }
    }
}

/* ---- attributes ---- */

static fx_attr_kind attr_kind(const char *text, size_t length)
{
    static const struct {
        const char *text;
        fx_attr_kind kind;
    } KINDS[] = {{"i", FX_ATTR_INT},    {"f", FX_ATTR_FLOAT}, {"b", FX_ATTR_BOOL},    {"s", FX_ATTR_TEXT},
                 {"dt", FX_ATTR_DTYPE}, {"li", FX_ATTR_INTS}, {"lf", FX_ATTR_FLOATS}, {"ls", FX_ATTR_TEXTS}};
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strlen(KINDS[i].text) == length && memcmp(KINDS[i].text, text, length) == 0) {
            return KINDS[i].kind;
        }
    }
    return FX_ATTR_EMPTY;
}

static fx_val default_value(fx_attr_kind kind, const char *text, size_t length)
{
    fx_val value = {.kind = FX_VAL_INT};
    switch (kind) {
    case FX_ATTR_FLOAT:
        value.kind = FX_VAL_FLOAT;
        value.u.f = 0;
        fx_read_double(text, &value.u.f);
        break;
    case FX_ATTR_BOOL:
        value.kind = FX_VAL_BOOL;
        value.u.b = length == 4;
        break;
    case FX_ATTR_TEXT:
        value.kind = FX_VAL_TEXT;
        value.u.text.bytes = text;
        value.u.text.length = length;
        break;
    default:
        fx_read_i64(text, &value.u.i);
        break;
    }
    return value;
}

static const fx_val *given_value(const fx_named_val *attrs, size_t n_attrs, const char *name, size_t length)
{
    for (size_t i = 0; i < n_attrs; i++) {
        if (attrs[i].name_length == length && memcmp(attrs[i].name, name, length) == 0) {
            return &attrs[i].value;
        }
    }
    return NULL;
}

static bool add_attrs(fx_ge_graph *graph, fx_ge_op *op, const fx_named_val *attrs, size_t n_attrs)
{
    for (const char *at = op->def->attributes; *at != 0;) {
        const char *end = strstr(at, " | ");
        size_t length = end == NULL ? strlen(at) : (size_t)(end - at);
        const char *colon = memchr(at, ':', length);
        const char *equals = memchr(at, '=', length);
        size_t name_length = (size_t)(colon - at);
        size_t kind_length = (size_t)((equals == NULL ? at + length : equals) - colon - 1);
        fx_attr_kind kind = attr_kind(colon + 1, kind_length);
        const fx_val *given = given_value(attrs, n_attrs, at, name_length);
        const char *name = fx_text_copy(&graph->arena, at, name_length);
        if (given == NULL && equals == NULL) {
            fx_error(FXTAP_E_UNSUPPORTED, "attribute %s of %s is missing", name == NULL ? "" : name, op->type);
            return false;
        }
        fx_val value = given != NULL ? *given : default_value(kind, equals + 1, (size_t)(at + length - equals - 1));
        if (name == NULL || !fx_ge_add_attr(graph, op, name, kind, value)) {
            return false;
        }
        at += length + (end == NULL ? 0 : 3);
    }
    return true;
}

/* input_layout_info / output_layout_info: the formats, "ND" first, then the indices. */
static bool add_layout_attr(fx_ge_graph *graph, fx_ge_op *op, const char *name, const char *layouts, bool is_input)
{
    fx_val value = {.kind = FX_VAL_LIST};
    size_t n_places = is_input ? op->n_inputs : op->n_outputs, n = 0;
    fx_val *items = fx_arena_calloc(&graph->arena, 2 * n_places + 2, sizeof *items);
    fx_val *indices = fx_arena_calloc(&graph->arena, n_places + 1, sizeof *indices);
    if (items == NULL || indices == NULL) {
        return false;
    }
    for (int pass = 0; pass < 2; pass++) {
        const char *at = layouts;
        word format;
        for (size_t i = 0; i < n_places && next_word(&at, &format) && format.text[0] != '>'; i++) {
            bool is_nd = format.length == 2 && memcmp(format.text, "ND", 2) == 0;
            if (format.text[0] == '-' || is_nd != (pass == 0) || (is_input && op->inputs[i].op == NULL)) {
                continue;
            }
            items[n].kind = FX_VAL_TEXT;
            items[n].u.text.bytes = format.text;
            items[n].u.text.length = format.length;
            indices[n].kind = FX_VAL_INT;
            indices[n++].u.i = (int64_t)i;
        }
    }
    memcpy(items + n, indices, n * sizeof *items);
    value.u.list.items = items;
    value.u.list.n = 2 * n;
    return fx_ge_add_attr(graph, op, name, FX_ATTR_PLAIN_LIST, value);
}

static void set_layouts_now(fx_ge_graph *graph, const char *layouts, fx_ge_desc *descs, size_t n)
{
    word format;
    for (size_t i = 0; i < n && next_word(&layouts, &format) && format.text[0] != '>'; i++) {
        const char *text = format.text[0] == '-' ? NULL : fx_text_copy(&graph->arena, format.text, format.length);
        if (text != NULL) {
            descs[i].layout = text;
        }
    }
}

static bool add_layouts(fx_ge_graph *graph, fx_ge_op *op)
{
    const char *arrow = strchr(op->def->layouts, '>');
    if (arrow == NULL) {
        return true;
    }
    if (op->def->layouts[0] == '=') {
        set_layouts_now(graph, op->def->layouts + 1, op->input_descs, op->n_inputs);
        set_layouts_now(graph, arrow + 1, op->outputs, op->n_outputs);
        return true;
    }
    return add_layout_attr(graph, op, "input_layout_info", op->def->layouts, true) &&
           add_layout_attr(graph, op, "output_layout_info", arrow + 1, false);
}

/* ---- the py line ---- */

static void py_line(fx_ge_graph *graph, const fx_ge_op *op, const fx_val *args, size_t n_args,
                    const fx_named_val *attrs, size_t n_attrs)
{
    fxtap_buffer *py = &graph->py;
    bool is_list = op->n_outputs != 1 || strchr(op->def->outputs, '*') != NULL;
    const char *separator = "";
    if (!graph->with_py) {
        return;
    }
    fxtap_buffer_text(py, is_list ? "[" : "");
    for (size_t i = 0; i < op->n_outputs; i++) {
        fx_ref ref = {(fx_ge_op *)(uintptr_t)op, (int32_t)i};
        fxtap_buffer_text(py, i > 0 ? ", " : "");
        fx_ge_ref_text(py, ref);
    }
    fxtap_buffer_printf(py, "%s = ge.%s(", is_list ? "]" : "", op->def->api != NULL ? op->def->api : op->type);
    for (size_t i = 0; i < n_args; i++, separator = ", ") {
        fxtap_buffer_text(py, separator);
        fx_val_source(py, &args[i]);
    }
    for (size_t i = 0; i < n_attrs; i++, separator = ", ") {
        fxtap_buffer_printf(py, "%s%.*s=", separator, (int)attrs[i].name_length, attrs[i].name);
        fx_val_source(py, &attrs[i].value);
    }
    if (!is_list) {
        fxtap_buffer_printf(py, "%snode_name=\"%s\"", separator, op->name);
    }
    fxtap_buffer_text(py, ")\n");
}

/* An input that is a number is described as one. */
static bool is_symbol(const fx_ge_op *data)
{
    static const char PREFIX[] = "<class 'torch.Sym";
    const fx_ge_desc *desc = &data->outputs[0];
    return desc->meta != NULL && desc->meta_length > sizeof PREFIX &&
           strncmp(desc->meta, PREFIX, sizeof PREFIX - 1) == 0;
}

bool fx_ge_is_pack_of_symbols(const fx_ge_op *op)
{
    bool all = op->n_inputs > 0;
    for (size_t i = 0; i < op->n_inputs; i++) {
        all &= op->inputs[i].op != NULL && strcmp(op->inputs[i].op->type, "Data") == 0 && is_symbol(op->inputs[i].op);
    }
    return all;
}

fx_ge_op *fx_ge_call(fx_ge_graph *graph, const char *type, const fx_val *args, size_t n_args, const fx_named_val *attrs,
                     size_t n_attrs, size_t n_list_outputs)
{
    const fx_ge_def *def = fx_ge_def_find(type);
    if (def == NULL) {
        fx_error(FXTAP_E_UNSUPPORTED, "no GE operator %s", type);
        return NULL;
    }
    size_t n_inputs = count_inputs(def, args, n_args);
    fx_ref *refs = fx_arena_calloc(&graph->arena, n_inputs + 1, sizeof *refs);
    const char **names = fx_arena_calloc(&graph->arena, n_inputs + 1, sizeof *names);
    if (refs == NULL || names == NULL || !make_inputs(graph, def, args, n_args, true, refs, names) ||
        !make_inputs(graph, def, args, n_args, false, refs, names)) {
        return NULL;
    }
    fx_ge_op *op = fx_ge_add_op(graph, def->type, NULL, n_inputs, count_outputs(def, n_list_outputs));
    if (op == NULL) {
        return NULL;
    }
    op->def = def;
    for (size_t i = 0; i < n_inputs; i++) {
        fx_ge_set_input(op, i, names[i], refs[i]);
    }
    name_outputs(graph, op, def, n_list_outputs);
    if (strcmp(type, "Pack") == 0 && fx_ge_is_pack_of_symbols(op)) {
        fx_val yes = {.kind = FX_VAL_BOOL, .u.b = true};
        fx_ge_add_attr(graph, op, "_inputs_all_sym", FX_ATTR_BOOL, yes);
    }
    if (!add_attrs(graph, op, attrs, n_attrs) || !add_layouts(graph, op) || graph->arena.failed) {
        return NULL;
    }
    py_line(graph, op, args, n_args, attrs, n_attrs);
    return op;
}
