/* print_dot.c - a graph for Graphviz: a box for an operator, a frame for a module, a dashed frame for a subgraph. */
#include <stdio.h>
#include <string.h>

#include "graph/modules.h"
#include "graph/print.h"
#include "graph/python.h"
#include "util/memory.h"

#define LABEL_BYTES 120

typedef struct dot {
    fxtap_buffer *out;
    const fxtap_graph *graph;
    fx_modules modules;
    const char *prefix;   /* of node ids: "n", "n_0_" for the first subgraph */
    unsigned *n_clusters; /* of the whole picture, since names must differ */
    uint32_t *next_node;  /* lists of the nodes of each module: */
    uint32_t *first_node; /* node + 1 of each module; 0: none */
    fxtap_node node;      /* whose edges are being written */
    bool no_memory;
} dot;

/* In a quoted string: escapes quotes and backslashes; unprintable bytes become \xNN. */
static void put_label(dot *d, const char *text)
{
    fxtap_buffer plain;
    fxtap_buffer_init(&plain);
    fx_plain_text(&plain, text, LABEL_BYTES);
    for (size_t i = 0; i < plain.length; i++) {
        if (plain.bytes[i] == '"' || plain.bytes[i] == '\\') {
            fxtap_buffer_text(d->out, "\\");
        }
        fxtap_buffer_append(d->out, plain.bytes + i, 1);
    }
    d->no_memory |= fxtap_buffer_status(&plain) != FXTAP_OK;
    fxtap_buffer_clear(&plain);
}

static void put_type(dot *d, fxtap_value meta)
{
    fxtap_buffer type;
    fxtap_buffer_init(&type);
    fx_type_text(&type, d->graph, meta);
    if (type.length > 0) {
        fxtap_buffer_text(d->out, "\\n");
        put_label(d, type.bytes);
    }
    d->no_memory |= fxtap_buffer_status(&type) != FXTAP_OK;
    fxtap_buffer_clear(&type);
}

static void put_node(dot *d, fxtap_node node)
{
    static const char *const colours[] = {"", "#dbeafe", "#ffffff", "#fef3c7", "#dcfce7", "#ffffff", "#ffffff"};
    const fxtap_node_desc *desc = &d->graph->nodes[node].desc;
    const fx_source *source = &d->graph->nodes[node].source;
    fxtap_buffer_printf(d->out, "%s%u [label=\"", d->prefix, (unsigned)node);
    put_label(d, desc->name);
    if (desc->op != FXTAP_OP_PLACEHOLDER && desc->op != FXTAP_OP_OUTPUT) {
        fxtap_buffer_text(d->out, "\\n");
        put_label(d, desc->target);
    }
    put_type(d, desc->meta);
    fxtap_buffer_printf(d->out, "\", fillcolor=\"%s\"", colours[desc->op]);
    if (source->file[0] != '\0') {
        fxtap_buffer_text(d->out, ", tooltip=\"");
        put_label(d, source->file);
        fxtap_buffer_printf(d->out, ":%d ", (int)source->line);
        put_label(d, source->code);
        fxtap_buffer_text(d->out, "\"");
    }
    fxtap_buffer_text(d->out, "];\n");
}

static void begin_cluster(dot *d, const char *style)
{
    fxtap_buffer_printf(d->out, "subgraph cluster_%u {\nstyle=\"%s\"; label=\"", (*d->n_clusters)++, style);
}

/* Prints the nodes of a module and of the modules in it. Depth: at most FX_MODULE_DEPTH_MAX. */
static void put_module(dot *d, uint32_t module)
{
    for (uint32_t node = d->first_node[module]; node != 0; node = d->next_node[node - 1]) {
        put_node(d, node - 1);
    }
    for (uint32_t child = d->modules.modules[module].first_child; child != 0; child = d->modules.modules[child].next) {
        const fx_module *m = &d->modules.modules[child];
        char name[LABEL_BYTES + 8];
        size_t length = m->name_length < sizeof name ? m->name_length : sizeof name - 1;
        memcpy(name, m->name, length);
        name[length] = '\0';
        begin_cluster(d, "rounded");
        put_label(d, name);
        if (m->type != NULL) {
            const char *dot_ = strrchr(m->type, '.');
            fxtap_buffer_text(d->out, " ");
            put_label(d, dot_ != NULL ? dot_ + 1 : m->type);
        }
        fxtap_buffer_text(d->out, "\";\n");
        put_module(d, child);
        fxtap_buffer_text(d->out, "}\n");
    }
}

static bool put_edge(void *context, fxtap_node input)
{
    dot *d = context;
    fxtap_buffer_printf(d->out, "%s%u -> %s%u;\n", d->prefix, (unsigned)input, d->prefix, (unsigned)d->node);
    return true;
}

/* Builds the list of nodes of each module, in order. */
static bool sort_nodes(dot *d)
{
    d->first_node = fx_calloc(d->modules.n_modules, sizeof *d->first_node);
    d->next_node = fx_calloc(d->graph->n_nodes, sizeof *d->next_node);
    if (d->first_node == NULL || d->next_node == NULL) {
        return false;
    }
    for (size_t i = d->graph->n_nodes; i > 0; i--) {
        uint32_t *first = &d->first_node[d->modules.of_node[i - 1]];
        d->next_node[i - 1] = *first;
        *first = (uint32_t)i;
    }
    return true;
}

static bool put_graph(fxtap_buffer *out, const fxtap_graph *graph, const char *prefix, unsigned *n_clusters);

/* Depth: at most FX_GRAPH_DEPTH_MAX. */
static void put_subgraphs(dot *d)
{
    for (size_t i = 0; !d->no_memory && i < d->graph->n_subgraphs; i++) {
        char prefix[FX_GRAPH_DEPTH_MAX * 12 + 16];
        snprintf(prefix, sizeof prefix, "%s%zu_", d->prefix, i);
        begin_cluster(d, "dashed");
        fxtap_buffer_printf(d->out, "subgraph %zu\";\n", i);
        d->no_memory |= !put_graph(d->out, d->graph->subgraphs[i], prefix, d->n_clusters);
        fxtap_buffer_text(d->out, "}\n");
    }
}

static bool put_graph(fxtap_buffer *out, const fxtap_graph *graph, const char *prefix, unsigned *n_clusters)
{
    dot d = {.out = out, .graph = graph, .prefix = prefix, .n_clusters = n_clusters};
    d.no_memory = !fx_modules_init(&d.modules, graph) || !sort_nodes(&d);
    if (!d.no_memory) {
        put_module(&d, 0);
        put_subgraphs(&d);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            d.node = (fxtap_node)i;
            fx_graph_node_refs(graph, d.node, put_edge, &d);
        }
    }
    fx_modules_clear(&d.modules);
    fx_free(d.first_node);
    fx_free(d.next_node);
    return !d.no_memory;
}

fxtap_status fx_print_dot(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    unsigned n_clusters = 0;
    dot head = {.out = out};
    fxtap_buffer_text(out, "digraph \"");
    put_label(&head, options->title != NULL ? options->title : "graph");
    fxtap_buffer_text(out, "\" {\ngraph [fontname=\"sans-serif\", fontsize=11, color=\"#94a3b8\"];\n"
                           "node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", "
                           "fontsize=10];\nedge [color=\"#64748b\", arrowsize=0.6];\n");
    bool ok = put_graph(out, graph, "n", &n_clusters) && !head.no_memory;
    fxtap_buffer_text(out, "}\n");
    return ok ? FXTAP_OK : FXTAP_E_NOMEM;
}
