/*
 * print_json.c - a graph as JSON; docs/graph-json.md has the schema. Only strings use the writer of util/output.h,
 * since values nest deeper than it supports.
 */
#include <math.h>
#include <string.h>

#include "graph/print.h"
#include "graph/python.h"
#include "util/utf8.h"

static void put_text_n(fxtap_buffer *out, const char *text, size_t length)
{
    fxtap_json json;
    fxtap_json_init(&json, out, false);
    fxtap_json_string_n(&json, NULL, text, length);
}

static void put_text(fxtap_buffer *out, const char *text)
{
    if (text == NULL) {
        fxtap_buffer_text(out, "null");
    } else {
        put_text_n(out, text, strlen(text));
    }
}

/* `, "KEY": "TEXT"` */
static void put_member(fxtap_buffer *out, const char *key, const char *text)
{
    fxtap_buffer_printf(out, ", \"%s\": ", key);
    put_text(out, text);
}

/* A number, or a text for values that are not JSON numbers. */
static void put_double(fxtap_buffer *out, double value)
{
    if (isfinite(value)) {
        fxtap_buffer_double(out, value);
    } else {
        fxtap_buffer_text(out, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    }
}

/* Integers that a double cannot hold exactly are texts. */
static void put_int(fxtap_buffer *out, int64_t value)
{
    bool exact = value >= -9007199254740992 && value <= 9007199254740992;
    fxtap_buffer_printf(out, exact ? "%lld" : "{\"int\": \"%lld\"}", (long long)value);
}

static void put_value(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value);

static void put_values(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_value *values, size_t n_values)
{
    fxtap_buffer_text(out, "[");
    for (size_t i = 0; i < n_values; i++) {
        fxtap_buffer_text(out, i == 0 ? "" : ", ");
        put_value(out, graph, values[i]);
    }
    fxtap_buffer_text(out, "]");
}

static void put_tensor(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_tensor_meta *meta)
{
    fxtap_buffer_printf(out, "{\"tensor\": {\"dtype\": \"%s\"", fxtap_dtype_name(meta->dtype));
    put_member(out, "device", meta->device);
    put_member(out, "layout", meta->layout != NULL ? meta->layout : "torch.strided");
    fxtap_buffer_text(out, ", \"shape\": ");
    put_values(out, graph, meta->shape, meta->n_dims);
    fxtap_buffer_text(out, ", \"strides\": ");
    if (meta->strides != NULL) {
        put_values(out, graph, meta->strides, meta->n_dims);
    } else {
        fxtap_buffer_text(out, "null");
    }
    fxtap_buffer_printf(out, ", \"requires_grad\": %s", meta->requires_grad ? "true" : "false");
    if (meta->bytes != NULL) {
        fxtap_buffer_text(out, ", \"data\": \"");
        fx_base64(out, meta->bytes, meta->n_bytes);
        fxtap_buffer_text(out, "\"");
    }
    fxtap_buffer_text(out, "}}");
}

static void put_string(fxtap_buffer *out, const char *bytes, size_t length)
{
    if (fx_utf8_is_valid(bytes, length)) {
        fxtap_buffer_text(out, "{\"string\": ");
        put_text_n(out, bytes, length);
        fxtap_buffer_text(out, "}");
    } else {
        fxtap_buffer_text(out, "{\"string_base64\": \"");
        fx_base64(out, bytes, length);
        fxtap_buffer_text(out, "\"}");
    }
}

/* {"KEY": "TEXT"} */
static void put_named(fxtap_buffer *out, const char *key, const fx_value_row *row)
{
    fxtap_buffer_printf(out, "{\"%s\": ", key);
    put_text_n(out, row->as.text, fx_texts_entry_of(row->as.text)->length);
    fxtap_buffer_text(out, "}");
}

static void put_symbol(fxtap_buffer *out, const char *key, const fx_value_row *row)
{
    fxtap_buffer_printf(out, "{\"%s\": ", key);
    put_text(out, row->as.text);
    fxtap_buffer_text(out, ", \"hint\": ");
    if (row->flag) {
        put_double(out, row->number);
    } else {
        fxtap_buffer_text(out, "null");
    }
    fxtap_buffer_text(out, "}");
}

static void put_dict(fxtap_buffer *out, const fxtap_graph *graph, const fx_value_row *row)
{
    fxtap_buffer_text(out, "{\"dict\": [");
    for (uint32_t i = 0; i + 1 < row->index; i += 2) {
        fxtap_buffer_text(out, i == 0 ? "" : ", ");
        put_values(out, graph, row->as.items + i, 2);
    }
    fxtap_buffer_text(out, "]}");
}

static void put_items(fxtap_buffer *out, const fxtap_graph *graph, const char *key, const fx_value_row *row)
{
    fxtap_buffer_printf(out, "{\"%s\": ", key);
    put_values(out, graph, row->as.items, row->index);
    fxtap_buffer_text(out, "}");
}

/* Depth: at most FX_VALUE_DEPTH_MAX. */
static void put_value(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    switch (row->kind) {
    case FXTAP_V_BOOL:
        fxtap_buffer_text(out, row->flag ? "true" : "false");
        break;
    case FXTAP_V_INT:
        put_int(out, row->as.integer);
        break;
    case FXTAP_V_BIGINT:
        put_named(out, "int", row);
        break;
    case FXTAP_V_FLOAT:
        fxtap_buffer_text(out, "{\"float\": ");
        put_double(out, row->number);
        fxtap_buffer_text(out, "}");
        break;
    case FXTAP_V_COMPLEX:
        fxtap_buffer_text(out, "{\"complex\": [");
        put_double(out, row->number);
        fxtap_buffer_text(out, ", ");
        put_double(out, row->as.imag);
        fxtap_buffer_text(out, "]}");
        break;
    case FXTAP_V_STRING:
        put_string(out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_BYTES:
        fxtap_buffer_text(out, "{\"bytes\": \"");
        fx_base64(out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        fxtap_buffer_text(out, "\"}");
        break;
    case FXTAP_V_DTYPE:
        put_named(out, "dtype", row);
        break;
    case FXTAP_V_DEVICE:
        put_named(out, "device", row);
        break;
    case FXTAP_V_LAYOUT:
        put_named(out, "layout", row);
        break;
    case FXTAP_V_MEMORY_FORMAT:
        put_named(out, "memory_format", row);
        break;
    case FXTAP_V_NODE:
        fxtap_buffer_printf(out, "{\"node\": %u}", (unsigned)row->index);
        break;
    case FXTAP_V_SYMINT:
        put_symbol(out, "symint", row);
        break;
    case FXTAP_V_SYMFLOAT:
        put_symbol(out, "symfloat", row);
        break;
    case FXTAP_V_SYMBOOL:
        put_symbol(out, "symbool", row);
        break;
    case FXTAP_V_LIST:
        put_values(out, graph, row->as.items, row->index);
        break;
    case FXTAP_V_TUPLE:
        put_items(out, graph, "tuple", row);
        break;
    case FXTAP_V_DICT:
        put_dict(out, graph, row);
        break;
    case FXTAP_V_SLICE:
        put_items(out, graph, "slice", row);
        break;
    case FXTAP_V_ELLIPSIS:
        fxtap_buffer_text(out, "{\"ellipsis\": true}");
        break;
    case FXTAP_V_TENSOR:
        put_tensor(out, graph, &graph->tensors[row->index]);
        break;
    case FXTAP_V_GRAPH:
        fxtap_buffer_printf(out, "{\"graph\": %u}", (unsigned)row->index);
        break;
    case FXTAP_V_OTHER:
        put_named(out, "other", row);
        break;
    default:
        fxtap_buffer_text(out, "null");
        break;
    }
}

static void put_arguments(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_node_desc *desc)
{
    fxtap_buffer_text(out, ", \"args\": ");
    put_values(out, graph, desc->args, desc->n_args);
    if (desc->arg_names != NULL) {
        fxtap_buffer_text(out, ", \"arg_names\": [");
        for (size_t i = 0; i < desc->n_args; i++) {
            fxtap_buffer_text(out, i == 0 ? "" : ", ");
            put_text(out, desc->arg_names[i]);
        }
        fxtap_buffer_text(out, "]");
    }
    fxtap_buffer_text(out, ", \"kwargs\": [");
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        fxtap_buffer_text(out, i == 0 ? "[" : ", [");
        put_text(out, desc->kwarg_names[i]);
        fxtap_buffer_text(out, ", ");
        put_value(out, graph, desc->kwarg_values[i]);
        fxtap_buffer_text(out, "]");
    }
    fxtap_buffer_text(out, "]");
}

static void put_flags(fxtap_buffer *out, uint32_t flags)
{
    static const char *const names[] = {"mutates", "undefined", "random", "async", "aten", "view", "weight"};
    const char *comma = "";
    fxtap_buffer_text(out, ", \"flags\": [");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags >> i & 1u) != 0) {
            fxtap_buffer_printf(out, "%s\"%s\"", comma, names[i]);
            comma = ", ";
        }
    }
    fxtap_buffer_text(out, "]");
}

static void put_node(fxtap_buffer *out, const fxtap_graph *graph, fxtap_node node)
{
    static const char *const ops[] = {"",       "placeholder", "call_function", "get_attr",
                                      "output", "call_module", "call_method"};
    const fxtap_node_desc *desc = &graph->nodes[node].desc;
    const fx_source *source = &graph->nodes[node].source;
    fxtap_buffer_text(out, "{\"name\": ");
    put_text(out, desc->name);
    fxtap_buffer_printf(out, ", \"op\": \"%s\"", ops[desc->op]);
    put_member(out, "target", desc->target);
    put_member(out, "python", desc->target_python != NULL ? desc->target_python : desc->target);
    put_arguments(out, graph, desc);
    fxtap_buffer_text(out, ", \"yields\": ");
    put_value(out, graph, desc->meta);
    put_flags(out, desc->flags);
    fxtap_buffer_text(out, ", \"source\": ");
    if (source->file[0] == '\0') {
        fxtap_buffer_text(out, "null");
    } else {
        fxtap_buffer_text(out, "{\"file\": ");
        put_text(out, source->file);
        fxtap_buffer_printf(out, ", \"line\": %d", (int)source->line);
        put_member(out, "function", source->function);
        put_member(out, "code", source->code);
        fxtap_buffer_text(out, "}");
    }
    put_member(out, "stack", desc->stack_trace);
    put_member(out, "module_path", desc->module_path);
    put_member(out, "module_type", desc->module_type);
    fxtap_buffer_text(out, "}");
}

/* Depth: at most FX_GRAPH_DEPTH_MAX. */
static void put_graph(fxtap_buffer *out, const fxtap_graph *graph)
{
    static const char *const kinds[] = {"", "inference", "forward", "backward", "subgraph"};
    fxtap_buffer_printf(out, "\"kind\": \"%s\", \"nodes\": [", kinds[graph->kind]);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        fxtap_buffer_text(out, i == 0 ? "\n" : ",\n");
        put_node(out, graph, (fxtap_node)i);
    }
    fxtap_buffer_text(out, "], \"subgraphs\": [");
    for (size_t i = 0; i < graph->n_subgraphs; i++) {
        fxtap_buffer_text(out, i == 0 ? "\n{" : ",\n{");
        put_graph(out, graph->subgraphs[i]);
        fxtap_buffer_text(out, "}");
    }
    fxtap_buffer_text(out, "]");
}

fxtap_status fx_print_json(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fxtap_buffer_text(out, "{\"format\": \"fxtap graph\", \"version\": 1, \"title\": ");
    put_text(out, options->title);
    fxtap_buffer_text(out, ", ");
    put_graph(out, graph);
    fxtap_buffer_text(out, "}\n");
    return FXTAP_OK;
}
