/* cmd_graph.c - fxtap graph: a captured graph as Python, JSON, a picture, TorchAir's files; its operators as a CSV. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fxtap/print.h"
#include "select.h"
#include "table.h"
#include "text.h"

typedef struct graph_options {
    selection chosen;
    const char *format;
    const char *html; /* the page's file */
    const char *output;
    bool force;
    bool summary;
    bool english;
    bool optimised;
    const char *around;
    int64_t hops;
    const char *op;
    const char *module;
} graph_options;

/* ---- selecting the graph ---- */

static void list_graphs(const fxtap_reader *reader, const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    static const table_column columns[] = {
        {"graph", true, ELIDE_NEVER, 0, 0}, {"rank", true, ELIDE_NEVER, 0, 0},  {"run", true, ELIDE_NEVER, 0, 0},
        {"kind", false, ELIDE_NEVER, 0, 1}, {"nodes", true, ELIDE_NEVER, 0, 1}, {"dumped", true, ELIDE_NEVER, 0, 1},
    };
    text_table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_graph_info *graph = graphs[i];
        const long long numbers[] = {graph->graph,
                                     fxtap_reader_rank(reader, graph->rank_i)->rank,
                                     graph->run,
                                     0,
                                     (long long)graph->n_nodes,
                                     (long long)graph->n_dumped};
        for (size_t column = 0; column < 6; column++) {
            char text[24];
            snprintf(text, sizeof text, "%lld", numbers[column]);
            table_cell(table, column == 0 ? STYLE_BOLD : STYLE_PLAIN,
                       column == 3 ? graph_kind_name(graph->kind) : text);
        }
    }
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    table_print(table, &out);
    table_free(table);
    flush_buffer(&out);
}

/* Moves graphs with the node to the front; returns their number. */
static size_t keep_those_with(fxtap_reader *reader, const char *node, const fxtap_graph_info **graphs, size_t n_graphs)
{
    size_t n_kept = 0;
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_graph_info *graph = graphs[i];
        if (find_in_graph(reader, graph, node) != NULL) {
            graphs[i] = graphs[n_kept];
            graphs[n_kept++] = graph;
        }
    }
    return n_kept;
}

static void complain_of_several(const fxtap_reader *reader, const char *node, const fxtap_graph_info *const *graphs,
                                size_t n_graphs)
{
    list_graphs(reader, graphs, n_graphs);
    if (node == NULL) {
        report_error("%zu graphs: choose one with --graph G (and --rank R, --run N)", n_graphs);
        return;
    }
    fxtap_buffer numbers; /* different ranks may have the same graph */
    fxtap_buffer_init(&numbers);
    for (size_t i = 0; i < n_graphs; i++) {
        fxtap_buffer_printf(&numbers, "%s%u", i > 0 ? ", " : "", (unsigned)graphs[i]->graph);
    }
    report_error("graphs %s have a node \"%s\": choose one with --graph G (and --rank R, --run N)",
                 numbers.bytes != NULL ? numbers.bytes : "", node);
    fxtap_buffer_clear(&numbers);
}

/* The selected graph; NULL after an error message. */
static const fxtap_graph_info *choose_graph(fxtap_reader *reader, const graph_options *options)
{
    const fxtap_graph_info **graphs = NULL;
    const fxtap_graph_info *graph = NULL;
    const selection *chosen = &options->chosen;
    size_t n_graphs = 0;
    if (!select_graphs(reader, chosen, &graphs, &n_graphs)) {
        return NULL;
    }
    size_t n_meant = n_graphs;
    if (n_graphs > 1 && options->around != NULL) {
        n_meant = keep_those_with(reader, options->around, graphs, n_graphs);
    }
    if (n_meant == 1) {
        graph = graphs[0];
    } else if (n_meant > 1) {
        complain_of_several(reader, options->around, graphs, n_meant);
    } else if (n_graphs > 1) {
        complain_of_node(reader, graphs, n_graphs, chosen->graph, options->around);
    } else {
        report_error("%s: the dump has no graph", fxtap_reader_path(reader));
    }
    free(graphs);
    return graph;
}

/* ---- statistics, for the page ---- */

typedef struct node_range {
    const char *name;
    size_t first, count; /* among the list's tensors */
} node_range;

typedef struct statistics {
    fxtap_tensor_list *list; /* of one step; may be NULL */
    node_range *nodes;       /* by name */
    size_t n_nodes;
    fxtap_print_stat *stats; /* of the last requested node */
    fxtap_buffer texts;      /* its positions and shapes */
} statistics;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const node_range *)a)->name, ((const node_range *)b)->name);
}

/* The tensors of a node are adjacent in the list. */
static void find_nodes(statistics *s)
{
    size_t n_tensors = s->list == NULL ? 0 : fxtap_tensor_list_count(s->list);
    size_t most = 0;
    s->nodes = must_realloc(NULL, n_tensors + 1, sizeof *s->nodes);
    for (size_t i = 0; i < n_tensors; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(s->list, i);
        if (info->node == NULL) {
            continue;
        }
        node_range *last = s->n_nodes > 0 ? &s->nodes[s->n_nodes - 1] : NULL;
        if (last == NULL || strcmp(last->name, info->node->name) != 0) {
            s->nodes[s->n_nodes++] = (node_range){.name = info->node->name, .first = i};
            last = &s->nodes[s->n_nodes - 1];
        }
        last->count = i - last->first + 1;
        most = last->count > most ? last->count : most;
    }
    s->stats = must_realloc(NULL, most + 1, sizeof *s->stats);
    qsort(s->nodes, s->n_nodes, sizeof *s->nodes, by_name);
}

/* "INPUT.0" and "2, 3", one after the other, separated by a NUL. */
static void append_texts(fxtap_buffer *out, const fxtap_tensor_info *info)
{
    static const char *const places[] = {"INPUT", "OUTPUT", "INOUT"};
    fxtap_buffer_printf(out, "%s.%s", places[info->io], info->position);
    fxtap_buffer_append(out, "", 1);
    for (int32_t i = 0; info->has_meta && i < info->ndim; i++) {
        fxtap_buffer_printf(out, "%s%lld", i == 0 ? "" : ", ", (long long)info->shape[i]);
    }
    fxtap_buffer_append(out, "", 1);
}

/* Implements fxtap_print_stats. */
static size_t stats_of(void *context, const char *node, const fxtap_print_stat **out)
{
    statistics *s = context;
    node_range wanted = {.name = node};
    const node_range *range = bsearch(&wanted, s->nodes, s->n_nodes, sizeof *s->nodes, by_name);
    fxtap_buffer_clear(&s->texts);
    for (size_t i = 0; range != NULL && i < range->count; i++) {
        append_texts(&s->texts, fxtap_tensor_list_at(s->list, range->first + i));
    }
    if (range == NULL || fxtap_buffer_status(&s->texts) != FXTAP_OK) {
        return 0;
    }
    const char *text = s->texts.bytes;
    size_t n_stats = 0;
    for (size_t i = 0; i < range->count; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(s->list, range->first + i);
        fxtap_print_stat stat = {.place = text, .shape = text + strlen(text) + 1, .path = info->path};
        text = stat.shape + strlen(stat.shape) + 1;
        stat.stats = info->stats;
        stat.stats.dtype = info->dtype;
        stat.has_stats = info->has_stats;
        if (info->skipped == NULL) {
            s->stats[n_stats++] = stat;
        }
    }
    *out = s->stats;
    return n_stats;
}

static void clear_statistics(statistics *s)
{
    fxtap_tensor_list_free(s->list);
    free(s->nodes);
    free(s->stats);
    fxtap_buffer_clear(&s->texts);
}

/* ---- printing ---- */

static fxtap_status print_page(fxtap_reader *reader, const graph_options *options, const fxtap_graph_info *info,
                               const fxtap_graph *graph, fxtap_print_options *print, fxtap_buffer *out)
{
    const fxtap_step_info *step = select_step(reader, &options->chosen, info);
    statistics s = {.list = step == NULL ? NULL : list_step(reader, &options->chosen, step)};
    fxtap_buffer_init(&s.texts);
    find_nodes(&s);
    print->stats = stats_of;
    print->context = &s;
    fxtap_status status = fxtap_graph_print(graph, print, out);
    clear_statistics(&s);
    return status;
}

static fxtap_status print_graph(fxtap_reader *reader, const graph_options *options, const fxtap_graph_info *info,
                                const fxtap_graph *graph, fxtap_buffer *out)
{
    if (options->summary) {
        fxtap_summary_options summary = {.struct_size = sizeof summary, .english = options->english};
        return fxtap_graph_summary(graph, &summary, out);
    }
    fxtap_buffer title;
    fxtap_buffer_init(&title);
    fxtap_buffer_printf(&title, "graph_%u (%s) of %s", (unsigned)info->graph, graph_kind_name(info->kind),
                        fxtap_reader_rank(reader, info->rank_i)->path);
    char name[32]; /* the name of the graph in TorchAir's format */
    snprintf(name, sizeof name, "graph_%u", (unsigned)info->graph);
    fxtap_print_options print = {.struct_size = sizeof print, .title = title.bytes, .optimised = options->optimised};
    const char *format = options->html != NULL ? "html" : options->format;
    fxtap_status status = fxtap_print_format_from_name(format, &print.format);
    print.title = status == FXTAP_OK && print.format == FXTAP_PRINT_TXT ? name : print.title;
    if (status == FXTAP_OK && print.format == FXTAP_PRINT_HTML) {
        status = print_page(reader, options, info, graph, &print, out);
    } else if (status == FXTAP_OK) {
        status = fxtap_graph_print(graph, &print, out);
    }
    fxtap_buffer_clear(&title);
    return status;
}

/* The record, or the part of it that the options select, which is then in *part_out, owned by the caller. */
static fxtap_status find_record(fxtap_reader *reader, const graph_options *options, const fxtap_graph_info *info,
                                const fxtap_graph **out, fxtap_graph **part_out)
{
    fxtap_select_options select = {
        .struct_size = sizeof select, .around = options->around, .op = options->op, .module = options->module};
    select.hops = options->hops > UINT32_MAX ? UINT32_MAX : (uint32_t)options->hops;
    fxtap_status status = fxtap_reader_record(reader, info, out);
    if (status == FXTAP_OK && (select.around != NULL || select.op != NULL || select.module != NULL)) {
        status = fxtap_graph_select(*out, &select, part_out);
        *out = status == FXTAP_OK ? *part_out : *out;
    }
    return status;
}

static int write_text(const graph_options *options, fxtap_buffer *out)
{
    const char *path = options->html != NULL ? options->html : options->output;
    if (path == NULL || strcmp(path, "-") == 0) {
        return flush_buffer(out) ? EXIT_SUCCESS : EXIT_TROUBLE;
    }
    if (!write_file(path, out->bytes, out->length, options->force)) {
        return EXIT_TROUBLE;
    }
    fprintf(stderr, "Wrote ");
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    text_append(&line, path);
    fprintf(stderr, "%s\n", line.bytes == NULL ? "" : line.bytes);
    fxtap_buffer_clear(&line);
    return EXIT_SUCCESS;
}

static int print_chosen(fxtap_reader *reader, const graph_options *options)
{
    const fxtap_graph_info *info = choose_graph(reader, options);
    if (info == NULL) {
        return EXIT_TROUBLE;
    }
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    const fxtap_graph *graph = NULL;
    fxtap_graph *part = NULL;
    fxtap_status status = find_record(reader, options, info, &graph, &part);
    if (status == FXTAP_OK) {
        status = print_graph(reader, options, info, graph, &out);
    }
    int result = status == FXTAP_OK ? write_text(options, &out) : report_library_error();
    fxtap_graph_free(part);
    fxtap_buffer_clear(&out);
    return result;
}

/* ---- options ---- */

/* Rejects contradictory options; else EXIT_SUCCESS. */
static int check_options(const command_usage *usage, const graph_options *options, bool has_format)
{
    fxtap_print_format format;
    if (options->html != NULL && (options->output != NULL || options->summary || has_format)) {
        return usage_error(usage->command, "--html writes its own file: without --format, --output and --summary");
    }
    if (options->summary && has_format) {
        return usage_error(usage->command, "--summary is a CSV: without --format");
    }
    if (fxtap_print_format_from_name(options->format, &format) != FXTAP_OK) {
        return usage_error(usage->command, "%s", fxtap_error_message());
    }
    const char *path = options->html != NULL ? options->html : options->output;
    if (path == NULL && format == FXTAP_PRINT_HTML && text_is_terminal()) {
        return usage_error(usage->command, "cannot write a page to a terminal; use --html FILE");
    }
    return path == NULL || strcmp(path, "-") == 0 || may_write(path, options->force) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

static int run(const command_usage *usage, graph_options *options, char **operands, int n_operands)
{
    if (n_operands != 1) {
        return usage_error(usage->command, n_operands == 0 ? "expected a DUMP" : "expected one DUMP");
    }
    bool has_format = options->format != NULL;
    options->format = has_format ? options->format : "fx";
    int result = check_options(usage, options, has_format);
    if (result != EXIT_SUCCESS) {
        return result;
    }
    fxtap_reader *reader = open_dump(operands[0]);
    if (reader == NULL) {
        return EXIT_TROUBLE;
    }
    result = print_chosen(reader, options);
    return close_dump(reader, result);
}

int cmd_graph(int argc, char **argv)
{
    graph_options chosen = {.chosen = SELECTION_NONE, .hops = 1};
    const option_spec options[] = {
        {'f', "format", OPTION_TEXT, &chosen.format, "FORMAT",
         "fx: runnable Python (the default)\njson, dot (Graphviz), html\n"
         "py, txt, pbtxt: TorchAir's files, lowered"},
        {0, "html", OPTION_TEXT, &chosen.html, "FILE",
         "a page: picture, search, source lines, statistics\nof the step"},
        {0, "summary", OPTION_FLAG, &chosen.summary, NULL, "the operators as a CSV: calls and signatures"},
        {0, "english", OPTION_FLAG, &chosen.english, NULL, "with --summary: English names, not TorchAir's"},
        {0, "optimised", OPTION_FLAG, &chosen.optimised, NULL,
         "with py, txt, pbtxt: as TorchAir writes it before the\nfirst call"},
        {0, "around", OPTION_TEXT, &chosen.around, "NODE",
         "only that node and its neighbours, in the graph that\nhas it if none is chosen"},
        {0, "hops", OPTION_INT, &chosen.hops, "N", "maximum distance of neighbours (1)"},
        {0, "op", OPTION_TEXT, &chosen.op, "GLOB", "only operators that match: \"aten.add*\"\n(man fxtap: PATTERNS)"},
        {0, "module", OPTION_TEXT, &chosen.module, "GLOB", "only operators in modules that match"},
        SELECTION_OPTIONS(chosen.chosen),
        {'o', "output", OPTION_TEXT, &chosen.output, "FILE", "write to FILE instead of standard output"},
        {0, "force", OPTION_FLAG, &chosen.force, NULL, "overwrite an existing file"},
    };
    const command_usage usage = {
        .command = "graph",
        .operands = "DUMP",
        .about = "Print a captured graph from a dump's index.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "A part of a graph is printed as a graph: values from outside become its inputs.\n"
                "Exit status: 0; 2 if nothing could be printed.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    return run(&usage, &chosen, argv + first, argc - first);
}
