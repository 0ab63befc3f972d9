/*
 * print_fx.c - a graph as a Python module with an equivalent function `forward`.
 *
 * Constants are exact to the bit. Whatever the record does not contain (an argument known only by its repr) becomes a
 * call of _unrecorded(), which raises when executed. A call that must not run (fx_python_may_call) becomes a comment
 * behind such a call: the text always compiles, runs up to there, and imports only torch and Python's own modules.
 */
#include <stdio.h>
#include <string.h>

#include "graph/print.h"
#include "graph/python.h"
#include "graph/symbols.h"
#include "util/memory.h"

#define NEEDS_CONSTANT 1u
#define NEEDS_UNRECORDED 2u
#define NEEDS_SYMBOLS 4u

/* Names of the module and of Python that the text uses; nodes must not have them. */
static const char *const reserved_names[] = {
    "torch",      "math",        "operator",  "base64",     "builtins",   "forward",      "float",
    "complex",    "slice",       "max",       "min",        "bytearray",  "int",          "ValueError",
    "_constant",  "_unrecorded", "_sym",      "getattr",    "Max",        "Min",          "Mod",
    "PythonMod",  "FloorDiv",    "CeilDiv",   "CleanDiv",   "IntTrueDiv", "FloatTrueDiv", "ToFloat",
    "TruncToInt", "FloorToInt",  "CeilToInt", "RoundToInt", "Eq",         "Ne",           NULL};

typedef struct function { /* the function being printed: of the graph or of a subgraph */
    const fxtap_graph *graph;
    fx_names names;
    fx_texts symbols;     /* symbols that a variable holds, */
    const char **sources; /* and by their id the text of the variable */
    size_t n_sources;
    size_t sources_capacity;
    unsigned indent;
    const char *file; /* of the last source comment */
    int32_t line;
    const char *code;
} function;

typedef struct printer {
    fxtap_buffer *out;
    function *f;
    unsigned needs;
    bool no_memory;
} printer;

static void print_value(printer *p, fxtap_value value);

static void indent(printer *p)
{
    for (unsigned i = 0; i < p->f->indent; i++) {
        fxtap_buffer_text(p->out, "    ");
    }
}

static void unrecorded(printer *p, const char *what, size_t length)
{
    p->needs |= NEEDS_UNRECORDED;
    fxtap_buffer_text(p->out, "_unrecorded(");
    fx_python_string(p->out, what, length);
    fxtap_buffer_text(p->out, ")");
}

/* ---- symbolic sizes ---- */

static const char *source_of_symbol(const function *f, const char *name, size_t length)
{
    const fx_texts_entry *entry = fx_texts_find(&f->symbols, name, length);
    return entry == NULL || entry->id >= f->n_sources ? NULL : f->sources[entry->id];
}

/* From here on `source` is the text of the symbol, unless it has one already. */
static void learn_symbol(printer *p, fxtap_value value, const char *variable, size_t dim, bool is_size)
{
    function *f = p->f;
    const fx_value_row *row = fx_graph_value(f->graph, value);
    if (row->kind < FXTAP_V_SYMINT || row->kind > FXTAP_V_SYMBOOL) {
        return;
    }
    size_t length = fx_texts_entry_of(row->as.text)->length;
    if (!fx_is_symbol(row->as.text, length) || source_of_symbol(f, row->as.text, length) != NULL) {
        return;
    }
    const char *source = is_size ? fx_arena_printf(&f->names.arena, "%s.size(%zu)", variable, dim) : variable;
    if (source == NULL || !fx_grow((void **)&f->sources, &f->sources_capacity, f->n_sources + 1, sizeof *f->sources) ||
        fx_texts_keep(&f->symbols, row->as.text, length) == NULL) {
        p->no_memory = true;
        return;
    }
    f->sources[f->n_sources++] = source; /* its index is that of the symbol */
}

static void learn_symbols(printer *p, fxtap_value meta, const char *variable, bool sizes)
{
    const fx_value_row *row = fx_graph_value(p->f->graph, meta);
    if (!sizes) {
        learn_symbol(p, meta, variable, 0, false);
    } else if (row->kind == FXTAP_V_TENSOR) {
        const fxtap_tensor_meta *tensor = &p->f->graph->tensors[row->index];
        for (size_t i = 0; i < tensor->n_dims; i++) {
            learn_symbol(p, tensor->shape[i], variable, i, true);
        }
    }
}

/* Functions of SymPy and torch that sizes may call: from the prelude, or Python's own. */
static const char *function_name(const char *name, size_t length)
{
    static const char *const names[] = {
        "Max",          "Min",     "Mod",        "PythonMod",  "FloorDiv",  "CeilDiv",    "CleanDiv", "IntTrueDiv",
        "FloatTrueDiv", "ToFloat", "TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt", "Eq",       "Ne"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return names[i];
        }
    }
    return NULL;
}

/* Prints the token at `at` of an expression and returns its length; 0 if it is unknown. */
static size_t print_token(printer *p, fxtap_buffer *out, const char *at)
{
    size_t length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    bool is_number = *at >= '0' && *at <= '9';
    if (length == 0 || is_number) {
        length = strspn(at, is_number ? "0123456789.e" : " +-*/%(),<>=!&|~.");
        fxtap_buffer_append(out, at, length);
        return length;
    }
    const char *text = NULL;
    if (at[length] == '(') {
        text = function_name(at, length);
    } else if (fx_is_symbol(at, length)) {
        text = source_of_symbol(p->f, at, length);
    } else if ((length == 4 && memcmp(at, "True", 4) == 0) || (length == 5 && memcmp(at, "False", 5) == 0)) {
        text = length == 4 ? "True" : "False";
    }
    fxtap_buffer_text(out, text == NULL ? "" : text);
    return text == NULL ? 0 : length;
}

static void print_expression(printer *p, const char *expression)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    const char *at = expression;
    for (size_t n = 1; *at != '\0' && n > 0; at += n) {
        n = print_token(p, &text, at);
    }
    if (*at == '\0' && text.length > 0) {
        p->needs |= NEEDS_SYMBOLS;
        fxtap_buffer_text(p->out, "(");
        fxtap_buffer_append(p->out, text.bytes, text.length);
        fxtap_buffer_text(p->out, ")");
    } else {
        unrecorded(p, expression, strlen(expression));
    }
    p->no_memory |= fxtap_buffer_status(&text) != FXTAP_OK;
    fxtap_buffer_clear(&text);
}

/* ---- values ---- */

static void print_constant(printer *p, const fxtap_tensor_meta *meta, const char *what)
{
    if (meta->bytes == NULL) {
        unrecorded(p, what, strlen(what));
        return;
    }
    p->needs |= NEEDS_CONSTANT;
    fxtap_buffer_printf(p->out, "_constant(torch.%s, [", fxtap_dtype_name(meta->dtype));
    for (size_t i = 0; i < meta->n_dims; i++) {
        fxtap_buffer_text(p->out, i == 0 ? "" : ", ");
        print_value(p, meta->shape[i]);
    }
    fxtap_buffer_text(p->out, "], '");
    fx_base64(p->out, meta->bytes, meta->n_bytes);
    fxtap_buffer_text(p->out, "', ");
    fx_python_string(p->out, meta->device, strlen(meta->device));
    fxtap_buffer_text(p->out, ")");
}

static void print_items(printer *p, const fx_value_row *row)
{
    static const char *const open[] = {"[", "(", "{", "slice("};
    static const char *const close[] = {"]", ")", "}", ")"};
    unsigned which = row->kind - FXTAP_V_LIST;
    fxtap_buffer_text(p->out, open[which]);
    for (uint32_t i = 0; i < row->index; i++) {
        fxtap_buffer_text(p->out, i == 0 ? "" : row->kind == FXTAP_V_DICT && i % 2 == 1 ? ": " : ", ");
        print_value(p, row->as.items[i]);
    }
    fxtap_buffer_text(p->out, row->kind == FXTAP_V_TUPLE && row->index == 1 ? "," : "");
    fxtap_buffer_text(p->out, close[which]);
}

/* A name such as "torch.float32". */
static void print_dotted(printer *p, const fx_value_row *row)
{
    if (strncmp(row->as.text, "torch.", 6) == 0 && fx_python_is_dotted(row->as.text)) {
        fxtap_buffer_text(p->out, row->as.text);
    } else {
        unrecorded(p, row->as.text, fx_texts_entry_of(row->as.text)->length);
    }
}

static void print_value(printer *p, fxtap_value value)
{
    const fxtap_graph *graph = p->f->graph;
    const fx_value_row *row = fx_graph_value(graph, value);
    switch (row->kind) {
    case FXTAP_V_NONE:
        fxtap_buffer_text(p->out, "None");
        break;
    case FXTAP_V_BOOL:
        fxtap_buffer_text(p->out, row->flag ? "True" : "False");
        break;
    case FXTAP_V_INT:
        fxtap_buffer_printf(p->out, "%lld", (long long)row->as.integer);
        break;
    case FXTAP_V_BIGINT:
        fx_python_bigint(p->out, row->as.text);
        break;
    case FXTAP_V_FLOAT:
        fx_python_float(p->out, row->number);
        break;
    case FXTAP_V_COMPLEX:
        fx_python_complex(p->out, row->number, row->as.imag);
        break;
    case FXTAP_V_STRING:
        fx_python_string(p->out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_BYTES:
        fx_python_bytes(p->out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_DTYPE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
        print_dotted(p, row);
        break;
    case FXTAP_V_DEVICE:
        fxtap_buffer_text(p->out, "torch.device(");
        fx_python_string(p->out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        fxtap_buffer_text(p->out, ")");
        break;
    case FXTAP_V_NODE:
        fxtap_buffer_text(p->out, p->f->names.names[row->index]);
        break;
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        print_expression(p, row->as.text);
        break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        print_items(p, row);
        break;
    case FXTAP_V_ELLIPSIS:
        fxtap_buffer_text(p->out, "...");
        break;
    case FXTAP_V_TENSOR:
        print_constant(p, &graph->tensors[row->index], "a tensor");
        break;
    case FXTAP_V_GRAPH:
        fxtap_buffer_printf(p->out, FX_GRAPH_PREFIX "%u", (unsigned)row->index);
        break;
    case FXTAP_V_OTHER:
        unrecorded(p, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    default:
        fxtap_buffer_text(p->out, "None");
        break;
    }
}

/* ---- calls ---- */

static void print_arguments(printer *p, const fxtap_node_desc *desc, size_t first)
{
    const char *comma = "";
    for (size_t i = first; i < desc->n_args; i++, comma = ", ") {
        fxtap_buffer_text(p->out, comma);
        print_value(p, desc->args[i]);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++, comma = ", ") {
        const char *name = desc->kwarg_names[i];
        bool plain = fx_python_is_identifier(name, strlen(name));
        fxtap_buffer_text(p->out, comma);
        if (plain) {
            fxtap_buffer_printf(p->out, "%s=", name);
        } else {
            fxtap_buffer_text(p->out, "**{");
            fx_python_string(p->out, name, strlen(name));
            fxtap_buffer_text(p->out, ": ");
        }
        print_value(p, desc->kwarg_values[i]);
        fxtap_buffer_text(p->out, plain ? "" : "}");
    }
}

/* "_unrecorded('os.system')  # os.system('touch x')" */
static void print_comment_call(printer *p, const fxtap_node_desc *desc)
{
    const char *target = desc->target_python != NULL ? desc->target_python : desc->target;
    unrecorded(p, target, strlen(target));
    fxtap_buffer_text(p->out, "  # ");
    fx_plain_text(p->out, target, 256);
    fxtap_buffer_text(p->out, "(");
    print_arguments(p, desc, 0);
    fxtap_buffer_text(p->out, ")");
}

static void print_function_call(printer *p, const fxtap_node_desc *desc)
{
    const char *target = desc->target_python != NULL ? desc->target_python : desc->target;
    if (strcmp(desc->target, "operator.getitem") == 0 && desc->n_args == 2 && desc->n_kwargs == 0) {
        print_value(p, desc->args[0]);
        fxtap_buffer_text(p->out, "[");
        print_value(p, desc->args[1]);
        fxtap_buffer_text(p->out, "]");
        return;
    }
    bool is_aten =
        desc->target_python == NULL && (strncmp(target, "aten.", 5) == 0 || strncmp(target, "prims.", 6) == 0);
    fxtap_buffer name; /* a record built without torch has "aten.add.Tensor" */
    fxtap_buffer_init(&name);
    fxtap_buffer_printf(&name, "%s%s", is_aten ? "torch.ops." : "", target);
    p->no_memory |= fxtap_buffer_status(&name) != FXTAP_OK;
    if (!p->no_memory && fx_python_may_call(name.bytes)) {
        fxtap_buffer_text(p->out, name.bytes);
        fxtap_buffer_text(p->out, "(");
        print_arguments(p, desc, 0);
        fxtap_buffer_text(p->out, ")");
    } else {
        print_comment_call(p, desc);
    }
    fxtap_buffer_clear(&name);
}

static void print_method_call(printer *p, const fxtap_node_desc *desc)
{
    if (!fx_python_may_call_method(desc->target)) {
        print_comment_call(p, desc);
        return;
    }
    fxtap_buffer_text(p->out, "(");
    print_value(p, desc->n_args > 0 ? desc->args[0] : 0);
    fxtap_buffer_printf(p->out, ").%s(", desc->target);
    print_arguments(p, desc, desc->n_args > 0);
    fxtap_buffer_text(p->out, ")");
}

/* The value of a get_attr node: a constant, or a subgraph, which is printed as a function. */
static void print_attribute(printer *p, const fxtap_node_desc *desc)
{
    fxtap_value value = desc->n_args > 0 ? desc->args[0] : desc->meta;
    const fx_value_row *row = fx_graph_value(p->f->graph, value);
    if (row->kind == FXTAP_V_TENSOR) {
        print_constant(p, &p->f->graph->tensors[row->index], desc->target);
    } else if (row->kind == FXTAP_V_GRAPH) {
        print_value(p, value);
    } else {
        unrecorded(p, desc->target, strlen(desc->target));
    }
}

static void print_source(printer *p, fxtap_node node)
{
    const char *file, *function_name_, *code;
    int32_t line;
    fxtap_graph_source(p->f->graph, node, &file, &line, &function_name_, &code);
    if (file[0] == '\0' || (file == p->f->file && line == p->f->line && code == p->f->code)) {
        return;
    }
    p->f->file = file;
    p->f->line = line;
    p->f->code = code;
    fxtap_buffer_text(p->out, "\n");
    indent(p);
    fxtap_buffer_text(p->out, "# File \"");
    fx_plain_text(p->out, file, 4096);
    fxtap_buffer_printf(p->out, "\", line %d, in ", (int)line);
    fx_plain_text(p->out, function_name_, 256);
    fxtap_buffer_text(p->out, code[0] != '\0' ? ": " : "");
    fx_plain_text(p->out, code, 256);
    fxtap_buffer_text(p->out, "\n");
}

static void print_call(printer *p, const fxtap_node_desc *desc)
{
    switch (desc->op) {
    case FXTAP_OP_CALL_FUNCTION:
        print_function_call(p, desc);
        break;
    case FXTAP_OP_CALL_METHOD:
        print_method_call(p, desc);
        break;
    case FXTAP_OP_GET_ATTR:
        print_attribute(p, desc);
        break;
    default:
        print_comment_call(p, desc); /* modules are not recorded */
        break;
    }
}

static void print_node(printer *p, fxtap_node node)
{
    const fxtap_node_desc *desc = &p->f->graph->nodes[node].desc;
    const char *variable = p->f->names.names[node];
    if (desc->op == FXTAP_OP_PLACEHOLDER) {
        return;
    }
    if (desc->op == FXTAP_OP_OUTPUT) {
        indent(p);
        fxtap_buffer_text(p->out, "return ");
        print_value(p, desc->n_args > 0 ? desc->args[0] : 0);
        fxtap_buffer_text(p->out, "\n");
        return;
    }
    print_source(p, node);
    indent(p);
    fxtap_buffer_printf(p->out, "%s = ", variable);
    print_call(p, desc);
    if (fx_graph_value(p->f->graph, desc->meta)->kind != 0) {
        fxtap_buffer_text(p->out, "  # ");
        fx_type_text(p->out, p->f->graph, desc->meta);
    }
    fxtap_buffer_text(p->out, "\n");
    learn_symbols(p, desc->meta, variable, false);
    learn_symbols(p, desc->meta, variable, true);
}

/* ---- functions ---- */

static void print_graph(printer *p, const fxtap_graph *graph, const char *name, unsigned level);

/* Parameters, one per line, with their types. */
static void print_parameters(printer *p)
{
    const fxtap_graph *graph = p->f->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &graph->nodes[i].desc;
        if (desc->op == FXTAP_OP_PLACEHOLDER) {
            fxtap_buffer_text(p->out, n++ == 0 ? "\n" : "");
            indent(p);
            fxtap_buffer_printf(p->out, "%s,", p->f->names.names[i]);
            fxtap_buffer_text(p->out, fx_graph_value(graph, desc->meta)->kind != 0 ? "  # " : "");
            fx_type_text(p->out, graph, desc->meta);
            fxtap_buffer_text(p->out, "\n");
        }
    }
    for (int sizes = 0; sizes < 2; sizes++) { /* prefer a size that is a parameter */
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const fxtap_node_desc *desc = &graph->nodes[i].desc;
            if (desc->op == FXTAP_OP_PLACEHOLDER) {
                learn_symbols(p, desc->meta, p->f->names.names[i], sizes == 1);
            }
        }
    }
}

static void print_body(printer *p)
{
    const fxtap_graph *graph = p->f->graph;
    bool returned = false;
    for (size_t i = 0; i < graph->n_subgraphs; i++) {
        char name[32];
        snprintf(name, sizeof name, FX_GRAPH_PREFIX "%zu", i);
        print_graph(p, graph->subgraphs[i], name, p->f->indent);
        fxtap_buffer_text(p->out, "\n");
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        print_node(p, (fxtap_node)i);
        returned |= graph->nodes[i].desc.op == FXTAP_OP_OUTPUT;
    }
    if (!returned) {
        indent(p);
        fxtap_buffer_text(p->out, "return None\n");
    }
}

/* Depth: at most FX_GRAPH_DEPTH_MAX. */
static void print_graph(printer *p, const fxtap_graph *graph, const char *name, unsigned level)
{
    function *outer = p->f;
    function f = {.graph = graph, .indent = level};
    p->f = &f;
    if (fx_names_init(&f.names, graph, reserved_names)) {
        indent(p);
        fxtap_buffer_printf(p->out, "def %s(", name);
        f.indent = level + 1;
        print_parameters(p);
        f.indent = level;
        if (p->out->length > 0 && p->out->bytes[p->out->length - 1] == '\n') {
            indent(p);
        }
        fxtap_buffer_text(p->out, "):\n");
        f.indent = level + 1;
        print_body(p);
    } else {
        p->no_memory = true;
    }
    fx_names_clear(&f.names);
    fx_texts_clear(&f.symbols);
    fx_free(f.sources);
    p->f = outer;
}

/* ---- the module ---- */

static const char constant_helper[] =
    "\n\n"
    "def _constant(dtype, shape, data, device):\n"
    "    data = bytearray(base64.b64decode(data))\n"
    "    if not data:\n"
    "        return torch.empty(shape, dtype=dtype, device=device)\n"
    "    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape).to(device)\n";

static const char unrecorded_helper[] =
    "\n\n"
    "def _unrecorded(what):\n"
    "    raise ValueError('not in the graph record, or not run from one: ' + what)\n";

static const char symbols_helper[] =
    "\n\n"
    "Max, Min, Mod, PythonMod, FloorDiv = max, min, operator.mod, operator.mod, operator.floordiv\n"
    "CleanDiv, IntTrueDiv, FloatTrueDiv = operator.floordiv, operator.truediv, operator.truediv\n"
    "ToFloat, TruncToInt, FloorToInt, CeilToInt = float, math.trunc, math.floor, math.ceil\n"
    "RoundToInt, Eq, Ne = round, operator.eq, operator.ne\n"
    "\n\n"
    "def CeilDiv(a, b):\n"
    "    return -(-a // b)\n";

static void print_head(printer *p, const fxtap_print_options *options, fxtap_buffer *out)
{
    if (options->title != NULL) {
        fxtap_buffer_text(out, "# ");
        fx_plain_text(out, options->title, 1000);
        fxtap_buffer_text(out, "\n");
    }
    fxtap_buffer_text(out, (p->needs & NEEDS_CONSTANT) != 0 ? "import base64\n" : "");
    fxtap_buffer_text(out, "import builtins\nimport math\nimport operator\n\nimport torch\n");
    fxtap_buffer_text(out, (p->needs & NEEDS_CONSTANT) != 0 ? constant_helper : "");
    fxtap_buffer_text(out, (p->needs & NEEDS_UNRECORDED) != 0 ? unrecorded_helper : "");
    fxtap_buffer_text(out, (p->needs & NEEDS_SYMBOLS) != 0 ? symbols_helper : "");
    fxtap_buffer_text(out, "\n\n");
}

fxtap_status fx_print_fx(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fxtap_buffer body;
    fxtap_buffer_init(&body);
    printer p = {.out = &body};
    print_graph(&p, graph, "forward", 0);
    print_head(&p, options, out);
    fxtap_buffer_append(out, body.bytes, body.length);
    fxtap_status status = p.no_memory ? FXTAP_E_NOMEM : fxtap_buffer_status(&body);
    fxtap_buffer_clear(&body);
    return status;
}
