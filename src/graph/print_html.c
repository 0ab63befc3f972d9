/*
 * print_html.c - a graph as one page: page/page.html with the style, the scripts and the graph as JSON inserted at its
 * marks.
 *
 * The JSON is in a script element of its own type; "<", ">" and "&" are escaped in it, so that no name can end it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/modules.h"
#include "graph/print.h"
#include "graph/python.h"
#include "util/number.h"

extern const char fx_page_html[], fx_page_css[], fx_page_data_js[], fx_page_layout_js[], fx_page_draw_js[],
    fx_page_view_js[], fx_page_panel_js[], fx_page_main_js[];

/* Parts of one function; see page/data.js. */
static const char *const SCRIPTS[] = {fx_page_data_js, fx_page_layout_js, fx_page_draw_js,
                                      fx_page_view_js, fx_page_panel_js,  fx_page_main_js};

typedef struct page {
    fxtap_json json;
    const fxtap_graph *graph;
    const fxtap_print_options *options;
    fxtap_buffer text; /* room for one member's text */
    bool no_memory;
} page;

/* Writes a member whose text is in p->text. */
static void put_text(page *p, const char *key)
{
    fxtap_json_string_n(&p->json, key, p->text.bytes == NULL ? "" : p->text.bytes, p->text.length);
}

static void put_type(page *p, const char *key, fxtap_value value)
{
    p->text.length = 0;
    fx_type_text(&p->text, p->graph, value);
    put_text(p, key);
}

static void put_arguments(page *p, const fxtap_node_desc *desc)
{
    fxtap_buffer *text = &p->text;
    text->length = 0;
    for (size_t i = 0; i < desc->n_args; i++) {
        const char *name = desc->arg_names == NULL ? NULL : desc->arg_names[i];
        fxtap_buffer_printf(text, "%s%s%s", i == 0 ? "" : "\n", name == NULL ? "" : name, name == NULL ? "" : " = ");
        fx_type_text(text, p->graph, desc->args[i]);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        fxtap_buffer_printf(text, "%s%s = ", text->length == 0 ? "" : "\n", desc->kwarg_names[i]);
        fx_type_text(text, p->graph, desc->kwarg_values[i]);
    }
    put_text(p, "args");
}

static bool put_input(void *context, fxtap_node input)
{
    fxtap_json_uint(&((page *)context)->json, NULL, input);
    return true;
}

/* Lists the subgraphs that a value refers to. Depth: at most FX_VALUE_DEPTH_MAX. */
static void put_graphs_of(page *p, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(p->graph, value);
    if (row->kind == FXTAP_V_GRAPH) {
        fxtap_json_uint(&p->json, NULL, row->index);
    } else if (row->kind >= FXTAP_V_LIST && row->kind <= FXTAP_V_SLICE) {
        for (uint32_t i = 0; i < row->index; i++) {
            put_graphs_of(p, row->as.items[i]);
        }
    }
}

static void put_wires(page *p, fxtap_node node, const fxtap_node_desc *desc)
{
    fxtap_json_begin_array(&p->json, "inputs");
    fx_graph_node_refs(p->graph, node, put_input, p);
    fxtap_json_end_array(&p->json);
    fxtap_json_begin_array(&p->json, "graphs");
    put_graphs_of(p, desc->meta);
    for (size_t i = 0; i < desc->n_args; i++) {
        put_graphs_of(p, desc->args[i]);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        put_graphs_of(p, desc->kwarg_values[i]);
    }
    fxtap_json_end_array(&p->json);
}

static void put_source(page *p, const fx_source *source)
{
    if (source->file[0] == '\0') {
        fxtap_json_null(&p->json, "source");
        return;
    }
    fxtap_json_begin_object(&p->json, "source");
    fxtap_json_string(&p->json, "file", source->file);
    fxtap_json_int(&p->json, "line", source->line);
    fxtap_json_string(&p->json, "function", source->function);
    fxtap_json_string(&p->json, "code", source->code);
    fxtap_json_end_object(&p->json);
}

/* As text: the page does not show more digits, and the shortest exact form would dominate the run time. */
static void put_number(page *p, double value)
{
    char text[FX_NUMBER_BYTES] = "NaN";
    if (isfinite(value)) {
        fx_double_digits(value, 5, text);
    } else if (!isnan(value)) {
        strcpy(text, value > 0 ? "Inf" : "-Inf");
    }
    fxtap_json_string(&p->json, NULL, text);
}

/* Integers as texts: a double would round them. */
static void put_bound(page *p, const fxtap_stats *stats, double value, int64_t integer)
{
    fxtap_dtype_class class_of = fxtap_dtype_class_of(stats->dtype);
    char text[FX_NUMBER_BYTES];
    if (!stats->has_range) {
        fxtap_json_null(&p->json, NULL);
    } else if (class_of == FXTAP_CLASS_INT) {
        fx_i64_text(integer, text);
        fxtap_json_string(&p->json, NULL, text);
    } else if (class_of == FXTAP_CLASS_UINT || class_of == FXTAP_CLASS_BOOL) {
        fx_u64_text((uint64_t)integer, text);
        fxtap_json_string(&p->json, NULL, text);
    } else {
        put_number(p, value);
    }
}

/* A row without names, which would be half of the page: page/data.js has the order of its members. */
static void put_stat(page *p, const fxtap_print_stat *stat)
{
    const fxtap_stats *stats = &stat->stats;
    fxtap_json_begin_array(&p->json, NULL);
    fxtap_json_string(&p->json, NULL, stat->place);
    fxtap_json_string(&p->json, NULL, fxtap_dtype_name(stats->dtype));
    fxtap_json_string(&p->json, NULL, stat->shape);
    fxtap_json_string(&p->json, NULL, stat->path);
    if (stat->has_stats) {
        fxtap_json_uint(&p->json, NULL, stats->count);
        fxtap_json_uint(&p->json, NULL, stats->nan_count);
        fxtap_json_uint(&p->json, NULL, stats->pos_inf_count + stats->neg_inf_count);
        fxtap_json_uint(&p->json, NULL, stats->zero_count);
        put_bound(p, stats, stats->min, stats->min_int);
        put_bound(p, stats, stats->max, stats->max_int);
        put_number(p, stats->mean);
        put_number(p, stats->std);
        put_number(p, stats->rms);
        if (isnan(stats->abs_max)) { /* absent, like the range */
            fxtap_json_null(&p->json, NULL);
        } else {
            put_number(p, stats->abs_max);
        }
    }
    fxtap_json_end_array(&p->json);
}

/* Statistics are of the graph's own nodes: those of subgraphs are not dumped. */
static void put_stats(page *p, const char *node, bool is_whole)
{
    const fxtap_print_stat *stats = NULL;
    size_t n_stats = 0;
    if (is_whole && p->options->stats != NULL) {
        n_stats = p->options->stats(p->options->context, node, &stats);
    }
    fxtap_json_begin_array(&p->json, "stats");
    for (size_t i = 0; i < n_stats; i++) {
        put_stat(p, &stats[i]);
    }
    fxtap_json_end_array(&p->json);
}

static void put_flags(page *p, uint32_t flags)
{
    static const char *const names[] = {"changes an argument",
                                        "gives uninitialised memory",
                                        "random",
                                        "asynchronous",
                                        NULL,
                                        "gives a view",
                                        "a weight"};
    char text[128] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags >> i & 1u) != 0 && names[i] != NULL) {
            strcat(strcat(text, text[0] == '\0' ? "" : ", "), names[i]);
        }
    }
    fxtap_json_string(&p->json, "flags", text);
}

static void put_node(page *p, fxtap_node node, uint32_t module, bool is_whole)
{
    static const char *const ops[] = {"",       "placeholder", "call_function", "get_attr",
                                      "output", "call_module", "call_method"};
    const fxtap_node_desc *desc = &p->graph->nodes[node].desc;
    fxtap_json_begin_object(&p->json, NULL);
    fxtap_json_string(&p->json, "name", desc->name);
    fxtap_json_string(&p->json, "op", ops[desc->op]);
    fxtap_json_string(&p->json, "target", desc->target);
    fxtap_json_uint(&p->json, "module", module);
    put_type(p, "type", desc->meta);
    put_arguments(p, desc);
    put_wires(p, node, desc);
    put_source(p, &p->graph->nodes[node].source);
    put_flags(p, desc->flags);
    put_stats(p, desc->name, is_whole);
    fxtap_json_end_object(&p->json);
}

static void put_modules(page *p, const fx_modules *modules)
{
    fxtap_json_begin_array(&p->json, "modules");
    for (size_t i = 0; i < modules->n_modules; i++) {
        const fx_module *m = &modules->modules[i];
        fxtap_json_begin_object(&p->json, NULL);
        fxtap_json_string_n(&p->json, "name", m->name, m->name_length);
        fxtap_json_string_n(&p->json, "path", m->path, m->path_length);
        fxtap_json_string(&p->json, "type", m->type != NULL ? m->type : "");
        fxtap_json_uint(&p->json, "parent", m->parent);
        fxtap_json_end_object(&p->json);
    }
    fxtap_json_end_array(&p->json);
}

/* A graph and then its subgraphs, named "0", "0.1", ... Depth: at most FX_GRAPH_DEPTH_MAX. */
static void put_graph(page *p, const fxtap_graph *graph, const char *name, bool is_whole)
{
    fx_modules modules;
    p->graph = graph;
    if (!fx_modules_init(&modules, graph)) {
        p->no_memory = true;
        fx_modules_clear(&modules);
        return;
    }
    fxtap_json_begin_object(&p->json, NULL);
    fxtap_json_string(&p->json, "name", name);
    put_modules(p, &modules);
    fxtap_json_begin_array(&p->json, "nodes");
    for (size_t i = 0; i < graph->n_nodes; i++) {
        put_node(p, (fxtap_node)i, modules.of_node[i], is_whole);
    }
    fxtap_json_end_array(&p->json);
    fxtap_json_end_object(&p->json);
    fx_modules_clear(&modules);
    for (size_t i = 0; i < graph->n_subgraphs; i++) {
        char inner[FX_GRAPH_DEPTH_MAX * 12 + 16];
        snprintf(inner, sizeof inner, "%s.%zu", name, i);
        put_graph(p, graph->subgraphs[i], inner, false);
    }
}

/* Writes the page up to a mark, and then the replacement of the mark. */
static const char *put_up_to(fxtap_buffer *out, const char *at, const char *mark)
{
    const char *found = strstr(at, mark);
    fxtap_buffer_append(out, at, (size_t)(found - at));
    return found + strlen(mark);
}

fxtap_status fx_print_html(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    page p = {.options = options};
    fxtap_buffer_init(&p.text);
    const char *rest = put_up_to(out, fx_page_html, "/*style*/");
    fxtap_buffer_text(out, fx_page_css);
    rest = put_up_to(out, rest, "/*data*/");
    fxtap_json_init(&p.json, out, false);
    p.json.for_html = true;
    fxtap_json_begin_object(&p.json, NULL);
    fxtap_json_string(&p.json, "title", options->title);
    fxtap_json_begin_array(&p.json, "graphs");
    put_graph(&p, graph, "0", true);
    fxtap_json_end_array(&p.json);
    fxtap_json_end_object(&p.json);
    rest = put_up_to(out, rest, "/*script*/");
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++) {
        fxtap_buffer_text(out, SCRIPTS[i]);
    }
    fxtap_buffer_text(out, rest);
    bool no_memory = p.no_memory || fxtap_buffer_status(&p.text) != FXTAP_OK;
    fxtap_buffer_clear(&p.text);
    return no_memory ? FXTAP_E_NOMEM : fxtap_buffer_status(out);
}
