/* record.c - making, freeing and reading graph records. */
#include "graph/record.h"

#include <string.h>

#include "util/error.h"
#include "util/memory.h"

fxtap_status fxtap_graph_create(fxtap_graph_kind kind, fxtap_graph **out)
{
    FX_REQUIRE(out);
    if (kind < FXTAP_GRAPH_INFERENCE || kind > FXTAP_GRAPH_SUBGRAPH) {
        return fx_error(FXTAP_E_INVALID, "unknown graph kind %d", (int)kind);
    }
    fxtap_graph *graph = fx_calloc(1, sizeof *graph);
    if (graph == NULL) {
        return FXTAP_E_NOMEM;
    }
    graph->kind = kind;
    graph->depth = 1;
    if (!fx_grow((void **)&graph->values, &graph->values_capacity, 1, sizeof *graph->values) ||
        fx_texts_keep(&graph->texts, "", 0) == NULL) {
        fxtap_graph_free(graph);
        return FXTAP_E_NOMEM;
    }
    memset(&graph->values[0], 0, sizeof graph->values[0]);
    graph->n_values = 1;
    *out = graph;
    return FXTAP_OK;
}

void fxtap_graph_free(fxtap_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    for (size_t i = 0; i < graph->n_subgraphs; i++) {
        fxtap_graph_free(graph->subgraphs[i]); /* as deep as FX_GRAPH_DEPTH_MAX at most */
    }
    fx_free(graph->subgraphs);
    fx_free(graph->values);
    fx_free(graph->nodes);
    fx_free(graph->tensors);
    fx_free(graph->node_of_string);
    fx_texts_clear(&graph->texts);
    fx_free(graph);
}

fxtap_graph_kind fxtap_graph_kind_of(const fxtap_graph *graph)
{
    return graph->kind;
}

size_t fxtap_graph_node_count(const fxtap_graph *graph)
{
    return graph->n_nodes;
}

size_t fxtap_graph_subgraph_count(const fxtap_graph *graph)
{
    return graph->n_subgraphs;
}

const fxtap_graph *fxtap_graph_subgraph(const fxtap_graph *graph, size_t index)
{
    return index < graph->n_subgraphs ? graph->subgraphs[index] : NULL;
}

/* Copies as much of a struct as the caller's version has. */
static fxtap_status fill(void *out, size_t out_bytes, const void *from, size_t from_bytes)
{
    if (out_bytes < sizeof(size_t) || out_bytes > from_bytes) {
        return fx_error(FXTAP_E_INVALID, "unknown struct_size %zu", out_bytes);
    }
    memcpy(out, from, out_bytes);
    memcpy(out, &out_bytes, sizeof out_bytes); /* struct_size comes first */
    return FXTAP_OK;
}

fxtap_status fxtap_graph_node(const fxtap_graph *graph, fxtap_node node, fxtap_node_desc *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    if (node >= graph->n_nodes) {
        return fx_error(FXTAP_E_INVALID, "no node %u in a graph of %zu", (unsigned)node, graph->n_nodes);
    }
    return fill(out, out->struct_size, &graph->nodes[node].desc, sizeof(fxtap_node_desc));
}

fxtap_status fxtap_graph_find_node(const fxtap_graph *graph, const char *name, fxtap_node *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(name);
    FX_REQUIRE(out);
    const fx_texts_entry *entry = fx_texts_find(&graph->texts, name, strlen(name));
    uint32_t id = entry == NULL ? UINT32_MAX : entry->id;
    if (id >= graph->node_of_string_capacity || graph->node_of_string[id] == 0) {
        return fx_error(FXTAP_E_NOT_FOUND, "no node named %s", name);
    }
    *out = graph->node_of_string[id] - 1;
    return FXTAP_OK;
}

void fxtap_graph_source(const fxtap_graph *graph, fxtap_node node, const char **file_out, int32_t *line_out,
                        const char **function_out, const char **code_out)
{
    static const fx_source none = {"", "", "", 0};
    const fx_source *source = node < graph->n_nodes ? &graph->nodes[node].source : &none;
    if (file_out != NULL) {
        *file_out = source->file;
    }
    if (line_out != NULL) {
        *line_out = source->line;
    }
    if (function_out != NULL) {
        *function_out = source->function;
    }
    if (code_out != NULL) {
        *code_out = source->code;
    }
}

const fx_value_row *fx_graph_value(const fxtap_graph *graph, fxtap_value value)
{
    return &graph->values[value < graph->n_values ? value : 0];
}

fxtap_value_kind fxtap_value_kind_of(const fxtap_graph *graph, fxtap_value value)
{
    return (fxtap_value_kind)fx_graph_value(graph, value)->kind;
}

bool fxtap_value_bool(const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    return row->kind == FXTAP_V_BOOL && row->flag;
}

int64_t fxtap_value_int(const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    return row->kind == FXTAP_V_INT ? row->as.integer : row->kind == FXTAP_V_BOOL ? row->flag : 0;
}

double fxtap_value_float(const fxtap_graph *graph, fxtap_value value, double *imag_out)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    if (imag_out != NULL) {
        *imag_out = row->kind == FXTAP_V_COMPLEX ? row->as.imag : 0;
    }
    return row->kind == FXTAP_V_FLOAT || row->kind == FXTAP_V_COMPLEX ? row->number : 0;
}

const char *fxtap_value_text(const fxtap_graph *graph, fxtap_value value, size_t *length_out)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    bool has_text = (row->kind >= FXTAP_V_STRING && row->kind <= FXTAP_V_MEMORY_FORMAT) ||
                    (row->kind >= FXTAP_V_SYMINT && row->kind <= FXTAP_V_SYMBOOL) || row->kind == FXTAP_V_BIGINT ||
                    row->kind == FXTAP_V_OTHER;
    if (length_out != NULL) {
        *length_out = has_text ? fx_texts_entry_of(row->as.text)->length : 0;
    }
    return has_text ? row->as.text : "";
}

bool fxtap_value_hint(const fxtap_graph *graph, fxtap_value value, double *out)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    bool has_hint = row->kind >= FXTAP_V_SYMINT && row->kind <= FXTAP_V_SYMBOOL && row->flag;
    if (has_hint && out != NULL) {
        *out = row->number;
    }
    return has_hint;
}

fxtap_node fxtap_value_node(const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    return row->kind == FXTAP_V_NODE ? row->index : UINT32_MAX;
}

const fxtap_value *fxtap_value_items(const fxtap_graph *graph, fxtap_value value, size_t *n_out)
{
    static const fxtap_value none[1] = {0};
    const fx_value_row *row = fx_graph_value(graph, value);
    bool has_items = row->kind >= FXTAP_V_LIST && row->kind <= FXTAP_V_SLICE;
    if (n_out != NULL) {
        *n_out = has_items ? row->index : 0;
    }
    return has_items ? row->as.items : none;
}

fxtap_status fxtap_value_tensor(const fxtap_graph *graph, fxtap_value value, fxtap_tensor_meta *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    const fx_value_row *row = fx_graph_value(graph, value);
    if (row->kind != FXTAP_V_TENSOR) {
        return fx_error(FXTAP_E_INVALID, "value %u is not a tensor", (unsigned)value);
    }
    return fill(out, out->struct_size, &graph->tensors[row->index], sizeof(fxtap_tensor_meta));
}

size_t fxtap_value_subgraph(const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    return row->kind == FXTAP_V_GRAPH ? row->index : SIZE_MAX;
}
