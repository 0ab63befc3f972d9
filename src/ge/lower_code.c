/* The comment lines of py: "# File ..." and "## FX Code: ...", and torch's str() of metas and values. */
#include <string.h>

#include "ge/lower.h"
#include "graph/python.h"
#include "util/buffer.h"
#include "util/memory.h"
#include "util/utf8.h"

/*
 * A comment line ends at a newline, must be UTF-8, and is printed to terminals: control characters and bidirectional
 * marks are written as \\xNN, byte by byte.
 */
static void append_line_text(fxtap_buffer *out, const char *bytes, size_t length)
{
    size_t start = 0, i = 0;
    while (i < length) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f) { /* mostly */
            i++;
            continue;
        }
        size_t used;
        uint32_t c = fx_utf8_decode(bytes + i, length - i, &used);
        bool is_shown = used > 0 && fx_utf8_is_shown(c);
        size_t end = i + (used > 0 ? used : 1);
        if (!is_shown) {
            fx_buffer_put(out, bytes + start, i - start);
            for (; i < end; i++) {
                fxtap_buffer_printf(out, "\\x%02x", (unsigned char)bytes[i]);
            }
            start = end;
        }
        i = end;
    }
    fx_buffer_put(out, bytes + start, length - start);
}

/* Whether str() of a text is the text itself: printable ASCII without quotes and backslashes. */
static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x20 || text[i] >= 0x7f || strchr("'\"\\", text[i]) != NULL) {
            return false;
        }
    }
    return length > 0;
}

/* ---- str() of a record value, or (is_source) a Python expression for it ---- */

static void value_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source);

static void dims_text(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_value *dims, size_t n)
{
    fx_buffer_put_text(out, "[");
    for (size_t i = 0; i < n; i++) {
        fx_buffer_put_text(out, i > 0 ? ", " : "");
        fx_value_text(out, graph, dims[i]);
    }
    fx_buffer_put_text(out, "]");
}

static void text_value(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    size_t length;
    const char *text = fxtap_value_text(graph, value, &length);
    fxtap_value_kind kind = fxtap_value_kind_of(graph, value);
    if (kind == FXTAP_V_STRING && (is_source || !is_plain(text, length))) {
        fx_python_string(out, text, length);
    } else if (kind == FXTAP_V_BYTES) {
        fx_python_bytes(out, text, length);
    } else if (kind == FXTAP_V_DEVICE && is_source) {
        fx_buffer_put_text(out, "torch.device(");
        fx_python_string(out, text, length);
        fx_buffer_put_text(out, ")");
    } else {
        append_line_text(out, text, length);
    }
}

static void items_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(graph, value, &n);
    bool is_tuple = fxtap_value_kind_of(graph, value) == FXTAP_V_TUPLE;
    fx_buffer_put_text(out, is_tuple ? "(" : "[");
    for (size_t i = 0; i < n; i++) {
        fx_buffer_put_text(out, i > 0 ? ", " : "");
        value_text(out, graph, items[i], is_source || fxtap_value_kind_of(graph, items[i]) == FXTAP_V_STRING);
    }
    fx_buffer_put_text(out, is_tuple ? (n == 1 ? ",)" : ")") : "]");
}

static void slice_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(graph, value, &n);
    fx_buffer_put_text(out, "slice(");
    for (size_t i = 0; i < n; i++) {
        fx_buffer_put_text(out, i > 0 ? ", " : "");
        value_text(out, graph, items[i], is_source);
    }
    fx_buffer_put_text(out, ")");
}

static void dict_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(graph, value, &n);
    fx_buffer_put_text(out, "{");
    for (size_t i = 0; i + 1 < n; i += 2) {
        fx_buffer_put_text(out, i > 0 ? ", " : "");
        value_text(out, graph, items[i], is_source);
        fx_buffer_put_text(out, ": ");
        value_text(out, graph, items[i + 1], is_source);
    }
    fx_buffer_put_text(out, "}");
}

static void number_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    fx_val number = {.kind = FX_VAL_FLOAT};
    if (fxtap_value_kind_of(graph, value) == FXTAP_V_COMPLEX) {
        number.kind = FX_VAL_COMPLEX;
        number.u.c.real = fxtap_value_float(graph, value, &number.u.c.imag);
    } else {
        number.u.f = fxtap_value_float(graph, value, NULL);
    }
    if (is_source) {
        fx_val_source(out, &number);
    } else {
        fx_val_repr(out, &number);
    }
}

static void node_name_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    if (fxtap_graph_node(graph, fxtap_value_node(graph, value), &desc) == FXTAP_OK) {
        append_line_text(out, desc.name, strlen(desc.name));
    }
}

static void value_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    switch (value == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(graph, value)) {
    case FXTAP_V_NONE:
        fx_buffer_put_text(out, "None");
        break;
    case FXTAP_V_BOOL:
        fx_buffer_put_text(out, fxtap_value_bool(graph, value) ? "True" : "False");
        break;
    case FXTAP_V_INT:
        fxtap_buffer_printf(out, "%lld", (long long)fxtap_value_int(graph, value));
        break;
    case FXTAP_V_FLOAT:
    case FXTAP_V_COMPLEX:
        number_text(out, graph, value, is_source);
        break;
    case FXTAP_V_NODE:
        node_name_text(out, graph, value);
        break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
        items_text(out, graph, value, is_source);
        break;
    case FXTAP_V_SLICE:
        slice_text(out, graph, value, is_source);
        break;
    case FXTAP_V_DICT:
        dict_text(out, graph, value, is_source);
        break;
    case FXTAP_V_ELLIPSIS:
        fx_buffer_put_text(out, "Ellipsis");
        break;
    default:
        text_value(out, graph, value, is_source);
        break;
    }
}

void fx_value_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value)
{
    value_text(out, graph, value, false);
}

/* ---- results of nodes ---- */

static bool is_symbol(fxtap_value_kind kind)
{
    return kind == FXTAP_V_SYMINT || kind == FXTAP_V_SYMFLOAT || kind == FXTAP_V_SYMBOOL;
}

static const char *symbol_class(fxtap_value_kind kind)
{
    return kind == FXTAP_V_SYMFLOAT ? "SymFloat" : kind == FXTAP_V_SYMBOOL ? "SymBool" : "SymInt";
}

const char *fx_meta_text(fx_lower *lower, fxtap_value meta, size_t *length_out)
{
    const fxtap_graph *graph = lower->graph;
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(graph, meta);
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    fxtap_buffer text;
    const char *copy = NULL;
    fxtap_buffer_init(&text);
    if (kind == FXTAP_V_TENSOR && fxtap_value_tensor(graph, meta, &tensor) == FXTAP_OK) {
        fxtap_buffer_printf(&text, "Tensor(dtype=torch.%s, shape=torch.Size(", fxtap_dtype_name(tensor.dtype));
        dims_text(&text, graph, tensor.shape, tensor.n_dims);
        fx_buffer_put_text(&text, ")");
    } else if (is_symbol(kind)) {
        fxtap_buffer_printf(&text, "<class 'torch.%s'>(", symbol_class(kind));
        fx_value_text(&text, graph, meta);
        fx_buffer_put_text(&text, ")");
    }
    *length_out = text.length;
    if (text.length > 0) {
        copy = fx_text_copy(&lower->ge->arena, text.bytes, text.length);
    }
    if (fxtap_buffer_status(&text) != FXTAP_OK) {
        lower->status = FXTAP_E_NOMEM;
    }
    fxtap_buffer_clear(&text);
    return copy;
}

/* ": torch.float32[2, 3]cpu" or ": "Sym(s77)"" after a name; nothing for lists of tensors. */
static void type_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value meta)
{
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(graph, meta);
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (kind == FXTAP_V_TENSOR && fxtap_value_tensor(graph, meta, &tensor) == FXTAP_OK) {
        fxtap_buffer_printf(out, ": torch.%s", fxtap_dtype_name(tensor.dtype));
        dims_text(out, graph, tensor.shape, tensor.n_dims);
        fx_buffer_put_text(out, tensor.device == NULL ? "" : tensor.device);
    } else if (is_symbol(kind)) {
        fx_buffer_put_text(out, ": \"Sym(");
        fx_value_text(out, graph, meta);
        fx_buffer_put_text(out, ")\"");
    }
}

static void argument_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool is_source)
{
    value_text(out, graph, value, is_source);
    if (value == 0 || fxtap_value_kind_of(graph, value) != FXTAP_V_NODE) {
        return;
    }
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    if (fxtap_graph_node(graph, fxtap_value_node(graph, value), &desc) == FXTAP_OK) {
        type_text(out, graph, desc.meta);
    }
}

/* "torch.ops.aten.add.Tensor"; Python functions unchanged. */
static void target_text(fxtap_buffer *out, const fxtap_node_desc *desc)
{
    bool is_function = desc->op == FXTAP_OP_CALL_FUNCTION;
    bool is_python = strncmp(desc->target, "operator.", 9) == 0 || strncmp(desc->target, "math.", 5) == 0 ||
                     strncmp(desc->target, "torch.", 6) == 0 || strchr(desc->target, '.') == NULL;
    if (desc->target_python != NULL) {
        append_line_text(out, desc->target_python, strlen(desc->target_python));
    } else {
        fx_buffer_put_text(out, is_function && !is_python ? "torch.ops." : "");
        append_line_text(out, desc->target, strlen(desc->target));
    }
}

void fx_lower_code(const fx_lower *lower, fxtap_buffer *out, bool is_source)
{
    const fxtap_node_desc *desc = &lower->desc;
    const char *separator = "";
    append_line_text(out, desc->name, strlen(desc->name));
    type_text(out, lower->graph, desc->meta);
    fx_buffer_put_text(out, " = ");
    target_text(out, desc);
    fx_buffer_put_text(out, "(");
    for (size_t i = 0; i < desc->n_args; i++, separator = ", ") {
        fx_buffer_put_text(out, separator);
        argument_text(out, lower->graph, desc->args[i], is_source);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++, separator = ", ") {
        fx_buffer_put_text(out, separator);
        append_line_text(out, desc->kwarg_names[i], strlen(desc->kwarg_names[i]));
        fx_buffer_put_text(out, "=");
        argument_text(out, lower->graph, desc->kwarg_values[i], is_source);
    }
    fx_buffer_put_text(out, ")");
}

/* ---- "# File" ---- */

static const char *last_frame(const char *trace)
{
    const char *last = NULL;
    for (const char *at = trace; (at = strstr(at, "File \"")) != NULL; at++) {
        const char *line = at;
        while (line > trace && line[-1] == ' ') {
            line--;
        }
        if (line == trace || line[-1] == '\n') {
            last = at;
        }
    }
    return last;
}

/* Length of file and line number, the common prefix of all texts of one line. */
static size_t place_length(const char *text)
{
    static const char mark[] = "\", line ";
    const char *number = strstr(text, mark);
    return number == NULL ? strlen(text)
                          : (size_t)(number - text) + strlen(mark) + strspn(number + strlen(mark), "0123456789");
}

typedef struct seen {
    const char *text;
    struct seen *next; /* of the same line */
} seen;

/*
 * False if this text, or one that begins with it, was written before: the text of a statement is not repeated after
 * that of a part of it, which is the same text followed by the marks under that part.
 */
static bool is_first_sight(fx_lower *lower, const char *text)
{
    fx_texts_entry *place = fx_texts_add(&lower->seen, text, place_length(text));
    size_t length = strlen(text);
    for (const seen *s = place == NULL ? NULL : place->value; s != NULL; s = s->next) {
        if (strncmp(s->text, text, length) == 0) {
            return false;
        }
    }
    seen *added = place == NULL ? NULL : fx_arena_calloc(&lower->ge->arena, 1, sizeof *added);
    if (added == NULL) {
        lower->ge->arena.failed = true;
        return false;
    }
    *added = (seen){text, place->value};
    place->value = added;
    return true;
}

static void file_line(fx_lower *lower, const char *trace)
{
    const char *frame = last_frame(trace);
    if (frame == NULL) {
        return;
    }
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    for (const char *at = frame; *at != 0;) {
        size_t length = strcspn(at, "\n");
        append_line_text(&text, at, length);
        at += length + (at[length] != 0);
    }
    const char *copy = text.length == 0 ? NULL : fx_text_copy(&lower->ge->arena, text.bytes, text.length);
    fxtap_buffer_clear(&text);
    if (copy != NULL && is_first_sight(lower, copy)) {
        fxtap_buffer_printf(&lower->ge->py, "\n# %s\n", copy);
    }
}

void fx_lower_code_line(fx_lower *lower)
{
    fx_buffer_put_text(&lower->ge->py, "## FX Code: ");
    fx_lower_code(lower, &lower->ge->py, false);
    fx_buffer_put_text(&lower->ge->py, "\n");
}

bool fx_lower_has_trace(const fx_lower *lower)
{
    return lower->desc.stack_trace != NULL && lower->desc.stack_trace[0] != 0;
}

void fx_lower_comment(fx_lower *lower)
{
    if (!fx_lower_has_trace(lower)) {
        return;
    }
    file_line(lower, lower->desc.stack_trace);
    fx_lower_code_line(lower);
}
