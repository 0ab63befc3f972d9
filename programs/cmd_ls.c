/* cmd_ls.c - fxtap ls: the graphs of a dump, and the operators or tensors of a step, as tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "describe.h"
#include "ls.h"
#include "text.h"

#define DIGITS 4

/* ---- the overview ---- */

static void append_line_of_graph(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_graph_info *graph)
{
    const fxtap_rank_info *rank = fxtap_reader_rank(reader, graph->rank_i);
    const char *kind = graph_kind_name(graph->kind);
    if (fxtap_reader_rank_count(reader) > 1 || rank->world_size > 1) {
        fxtap_buffer_printf(out, "rank %d  ", rank->rank);
    }
    fxtap_buffer_printf(out, "graph %u%s%s", (unsigned)graph->graph, kind[0] != '\0' ? "  " : "", kind);
    fxtap_buffer_printf(out, "  %zu of %zu nodes dumped  %zu step%s", graph->n_dumped, graph->n_nodes, graph->n_steps,
                        graph->n_steps == 1 ? "" : "s");
}

static uint64_t bytes_of_list(const fxtap_tensor_list *list)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        n_bytes += fxtap_tensor_list_at(list, i)->bytes;
    }
    return n_bytes;
}

static void append_size_of_step(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options,
                                const fxtap_graph_info *graph)
{
    const fxtap_step_info *step = select_step(reader, &options->chosen, graph);
    fxtap_tensor_list *list = step != NULL ? list_step(reader, &options->chosen, step) : NULL;
    if (list != NULL) {
        ls_options meta_only = {.no_stats = true};
        for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
            ls_load(&meta_only, list, i);
        }
        text_append_bytes(out, bytes_of_list(list));
    }
    fxtap_tensor_list_free(list);
}

static void add_graph_row(text_table *table, fxtap_reader *reader, const ls_options *options,
                          const fxtap_graph_info *graph)
{
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    fxtap_buffer_printf(&cell, "%d", fxtap_reader_rank(reader, graph->rank_i)->rank);
    table_take(table, STYLE_PLAIN, &cell);
    if (options->chosen.run != 0 && graph->run > 0) {
        fxtap_buffer_printf(&cell, "%lld", (long long)graph->run);
    }
    table_take(table, STYLE_PLAIN, &cell);
    fxtap_buffer_printf(&cell, "%u", (unsigned)graph->graph);
    table_take(table, STYLE_BOLD, &cell);
    table_cell(table, STYLE_PLAIN, graph_kind_name(graph->kind));
    fxtap_buffer_printf(&cell, "%zu", graph->n_nodes);
    table_take(table, STYLE_PLAIN, &cell);
    fxtap_buffer_printf(&cell, "%zu", graph->n_dumped);
    table_take(table, STYLE_PLAIN, &cell);
    fxtap_buffer_printf(&cell, "%zu", graph->n_steps);
    table_take(table, STYLE_PLAIN, &cell);
    append_size_of_step(&cell, reader, options, graph);
    table_take(table, STYLE_PLAIN, &cell);
}

static void print_overview(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options,
                           const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    static const table_column columns[] = {
        {"rank", true, ELIDE_NEVER, 0, 0},  {"run", true, ELIDE_NEVER, 0, 0},    {"graph", true, ELIDE_NEVER, 0, 0},
        {"kind", false, ELIDE_NEVER, 0, 1}, {"nodes", true, ELIDE_NEVER, 0, 2},  {"dumped", true, ELIDE_NEVER, 0, 3},
        {"steps", true, ELIDE_NEVER, 0, 0}, {"a step", true, ELIDE_NEVER, 0, 1},
    };
    text_table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < n_graphs; i++) {
        add_graph_row(table, reader, options, graphs[i]);
    }
    table_print(table, out);
    table_free(table);
    text_append_styled(out, STYLE_DIM, "--graph G lists the operators of one, --op GLOB finds operators in all");
    fxtap_buffer_text(out, "\n");
}

/* ---- operators ---- */

static const table_column operator_columns[] = {
    {"#", true, ELIDE_NEVER, 0, 0},       {"node", false, ELIDE_NAME, 14, 0}, {"target", false, ELIDE_MIDDLE, 16, 0},
    {"output", false, ELIDE_TYPE, 12, 0}, {"mean", true, ELIDE_NEVER, 0, 3},  {"std", true, ELIDE_NEVER, 0, 2},
    {"absmax", true, ELIDE_NEVER, 0, 5},  {"", false, ELIDE_NEVER, 0, 0},     {"source", false, ELIDE_START, 15, 4},
};

static void take_number(text_table *table, fxtap_buffer *cell, double value)
{
    text_append_number(cell, value, DIGITS);
    table_take(table, STYLE_PLAIN, cell);
}

static void add_three_numbers(text_table *table, fxtap_buffer *cell, const fxtap_tensor_info *info)
{
    if (info != NULL && info->has_stats && info->stats.count > 0) {
        take_number(table, cell, info->stats.mean);
        take_number(table, cell, info->stats.std);
        take_number(table, cell, info->stats.abs_max);
        return;
    }
    for (int i = 0; i < 3; i++) {
        table_take(table, STYLE_PLAIN, cell);
    }
}

static void append_output(fxtap_buffer *cell, const ls_row *row)
{
    if (row->output == NULL) {
        return;
    }
    if (row->output->has_meta) {
        text_append_type(cell, row->output->dtype, row->output->shape, row->output->ndim);
    } else {
        fxtap_buffer_text(cell, "unreadable");
    }
    if (row->n_outputs > 1) {
        fxtap_buffer_printf(cell, " +%zu", row->n_outputs - 1);
    }
}

/* "aten.relu.default" is aten.relu to people. */
static void append_target(fxtap_buffer *cell, const char *target)
{
    static const char suffix[] = ".default";
    size_t length = strlen(target), suffix_length = sizeof suffix - 1;
    text_append(cell, target);
    if (length > suffix_length && strcmp(target + length - suffix_length, suffix) == 0) {
        cell->length -= suffix_length;
        cell->bytes[cell->length] = '\0';
    }
}

static const char *flags_of_row(const fxtap_tensor_list *list, const ls_row *row)
{
    bool has_nan = false, has_inf = false;
    for (size_t i = row->first; i < row->end; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        if (info->io != FXTAP_INPUT && info->has_stats) {
            has_nan |= info->stats.nan_count > 0;
            has_inf |= info->stats.pos_inf_count + info->stats.neg_inf_count > 0;
        }
    }
    return has_nan && has_inf ? "nan inf" : has_nan ? "nan" : has_inf ? "inf" : "";
}

static void add_operator(text_table *table, const fxtap_tensor_list *list, const ls_row *row)
{
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    bool is_bad = row->n_non_finite > 0;
    fxtap_buffer_printf(&cell, "%zu", row->node->order);
    table_take(table, STYLE_DIM, &cell);
    table_cell(table, is_bad ? STYLE_BAD : STYLE_BOLD, row->node->name);
    append_target(&cell, row->node->target);
    table_take(table, STYLE_PLAIN, &cell);
    append_output(&cell, row);
    table_take(table, STYLE_PLAIN, &cell);
    add_three_numbers(table, &cell, row->output);
    table_cell(table, STYLE_BAD, flags_of_row(list, row));
    text_append_source(&cell, row->node->source_file, row->node->source_line);
    table_take(table, STYLE_DIM, &cell);
}

static void add_skipped(text_table *table, const fxtap_node_info *node)
{
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    fxtap_buffer_printf(&cell, "%zu", node->order);
    table_take(table, STYLE_DIM, &cell);
    table_cell(table, STYLE_DIM, node->name);
    append_target(&cell, node->target);
    table_take(table, STYLE_DIM, &cell);
    fxtap_buffer_text(&cell, "skipped: ");
    text_append(&cell, node->skipped != NULL ? node->skipped : "not run");
    table_take_over(table, STYLE_DIM, &cell);
    for (int i = 0; i < 4; i++) {
        table_take(table, STYLE_DIM, &cell);
    }
    text_append_source(&cell, node->source_file, node->source_line);
    table_take(table, STYLE_DIM, &cell);
}

/* With --all the nodes that were not dumped stand between the others, where the rows are in order of execution. */
static bool print_operators(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options,
                            const fxtap_tensor_list *list, const ls_row *rows, size_t n_rows,
                            const fxtap_graph_info *graph)
{
    const fxtap_node_info *const *nodes = NULL;
    size_t n_nodes = 0, next = 0;
    if (options->all && fxtap_reader_nodes(reader, graph, &nodes, &n_nodes) != FXTAP_OK) {
        report_library_error();
        return false;
    }
    text_table *table = table_create(operator_columns, sizeof operator_columns / sizeof *operator_columns);
    for (size_t i = 0; i < n_rows; i++) {
        for (; next < n_nodes && nodes[next]->order < rows[i].node->order; next++) {
            add_skipped(table, nodes[next]);
        }
        add_operator(table, list, &rows[i]);
        next += next < n_nodes && nodes[next] == rows[i].node;
    }
    for (; next < n_nodes; next++) {
        add_skipped(table, nodes[next]);
    }
    table_print(table, out);
    table_free(table);
    return true;
}

/* ---- every tensor ---- */

static const table_column tensor_columns[] = {
    {"#", true, ELIDE_NEVER, 0, 0},       {"node", false, ELIDE_NAME, 10, 0},  {"tensor", false, ELIDE_END, 8, 0},
    {"argument", false, ELIDE_END, 6, 4}, {"type", false, ELIDE_TYPE, 12, 0},  {"mean", true, ELIDE_NEVER, 0, 3},
    {"std", true, ELIDE_NEVER, 0, 2},     {"absmax", true, ELIDE_NEVER, 0, 5}, {"", false, ELIDE_NEVER, 0, 0},
};

/* One number, whose statistics are itself, but for its sign. */
static bool is_scalar(const fxtap_tensor_info *info)
{
    const fxtap_stats *stats = &info->stats;
    return info->has_meta && info->ndim == 0 && info->has_stats && stats->count == 1 &&
           (stats->has_range || (stats->nan_count == 1 && fxtap_dtype_class_of(info->dtype) != FXTAP_CLASS_COMPLEX));
}

static void append_value(fxtap_buffer *cell, const fxtap_stats *stats)
{
    fxtap_buffer_text(cell, " = ");
    if (!stats->has_range) {
        fxtap_buffer_text(cell, "nan");
    } else if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_BOOL) {
        fxtap_buffer_text(cell, stats->max_int != 0 ? "True" : "False");
    } else {
        describe_bound(cell, stats, true, DIGITS);
    }
}

static void append_type_of(fxtap_buffer *cell, const fxtap_tensor_info *info)
{
    if (info->skipped != NULL) {
        text_append(cell, info->skipped);
    } else if (info->has_meta) {
        text_append_type(cell, info->dtype, info->shape, info->ndim);
        if (is_scalar(info)) {
            append_value(cell, &info->stats);
        }
    } else {
        fxtap_buffer_text(cell, "unreadable");
    }
}

/* = "sum", of a file that holds one text. */
static void append_text(fxtap_buffer *cell, const fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    fxtap_npy *npy = NULL;
    const char *text;
    if (!info->has_meta || info->dtype != FXTAP_STRING || info->ndim != 0 || info->path == NULL) {
        return;
    }
    if (fxtap_tensor_open(list, i, &npy) == FXTAP_OK && fxtap_npy_text(npy, &text) == FXTAP_OK) {
        fxtap_buffer_text(cell, " = \"");
        text_append(cell, text);
        fxtap_buffer_text(cell, "\"");
    }
    fxtap_npy_close(npy);
}

static void add_tensor(text_table *table, const fxtap_tensor_list *list, size_t i, bool is_first)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    if (is_first) {
        fxtap_buffer_printf(&cell, "%zu", info->node->order);
    }
    table_take(table, STYLE_DIM, &cell);
    table_cell(table, STYLE_BOLD, is_first ? info->node->name : "");
    fxtap_buffer_printf(&cell, "%s.", io_names[info->io]);
    text_append(&cell, info->position);
    table_take(table, STYLE_PLAIN, &cell);
    table_cell(table, STYLE_DIM, info->arg_name);
    append_type_of(&cell, info);
    append_text(&cell, list, i);
    table_take(table, info->skipped != NULL ? STYLE_DIM : info->has_meta ? STYLE_PLAIN : STYLE_BAD, &cell);
    add_three_numbers(table, &cell, is_scalar(info) ? NULL : info);
    if (info->has_stats) {
        describe_non_finite(&cell, &info->stats);
    }
    table_take(table, STYLE_BAD, &cell);
}

static void print_tensors(fxtap_buffer *out, const fxtap_tensor_list *list, const ls_row *rows, size_t n_rows)
{
    text_table *table = table_create(tensor_columns, sizeof tensor_columns / sizeof *tensor_columns);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t j = rows[i].first; j < rows[i].end; j++) {
            add_tensor(table, list, j, j == rows[i].first);
        }
    }
    table_print(table, out);
    table_free(table);
}

/* ---- graphs ---- */

static int print_step(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options, const fxtap_step_info *step)
{
    fxtap_tensor_list *list = list_step(reader, &options->chosen, step);
    if (list == NULL) {
        return EXIT_TROUBLE;
    }
    size_t n_rows;
    bool is_well = true;
    ls_row *rows = ls_collect(options, list, step, &n_rows);
    if (options->is_long) {
        print_tensors(out, list, rows, n_rows);
    } else {
        is_well = print_operators(out, reader, options, list, rows, n_rows, step->graph);
    }
    free(rows);
    fxtap_tensor_list_free(list);
    return is_well ? EXIT_SUCCESS : EXIT_TROUBLE;
}

/* One line on standard error where no operator was dumped at all. */
static void explain_empty(fxtap_reader *reader, const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    const fxtap_node_info *first = NULL;
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_node_info *const *nodes;
        size_t n_nodes;
        if (graphs[i]->n_dumped > 0 || fxtap_reader_nodes(reader, graphs[i], &nodes, &n_nodes) != FXTAP_OK) {
            return;
        }
        for (size_t j = 0; j < n_nodes && first == NULL; j++) {
            const char *reason = nodes[j]->skipped;
            bool is_told = reason != NULL && strcmp(reason, "not an operator") != 0 && strcmp(reason, "getitem") != 0;
            first = is_told ? nodes[j] : NULL;
        }
    }
    if (first != NULL) {
        report_error("no operator was dumped: %s is skipped (%s)", first->name, first->skipped);
    }
}

static int print_graph(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options,
                       const fxtap_graph_info *graph)
{
    const fxtap_step_info *step = select_step(reader, &options->chosen, graph);
    append_line_of_graph(out, reader, graph);
    if (step == NULL) {
        fxtap_buffer_text(out, options->chosen.step >= 0 ? "; not this one\n" : "\n");
        return EXIT_SUCCESS;
    }
    fxtap_buffer_text(out, "; ");
    append_step(out, step);
    fxtap_buffer_text(out, ":\n");
    return print_step(out, reader, options, step);
}

/* ---- folders without operators ---- */

static int print_plain(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options)
{
    static const table_column columns[] = {
        {"file", false, ELIDE_NAME, 20, 0}, {"type", false, ELIDE_TYPE, 12, 0},  {"mean", true, ELIDE_NEVER, 0, 3},
        {"std", true, ELIDE_NEVER, 0, 2},   {"absmax", true, ELIDE_NEVER, 0, 5}, {"", false, ELIDE_NEVER, 0, 0},
    };
    fxtap_tensor_query query = query_of(&options->chosen);
    fxtap_tensor_list *list = NULL;
    if (fxtap_reader_tensors(reader, &query, &list) != FXTAP_OK) {
        return report_library_error();
    }
    text_table *table = table_create(columns, sizeof columns / sizeof *columns);
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        ls_load(options, list, i);
        table_cell(table, STYLE_BOLD, info->name);
        append_type_of(&cell, info);
        table_take(table, info->has_meta ? STYLE_PLAIN : STYLE_BAD, &cell);
        add_three_numbers(table, &cell, is_scalar(info) ? NULL : info);
        if (info->has_stats) {
            describe_non_finite(&cell, &info->stats);
        }
        table_take(table, STYLE_BAD, &cell);
    }
    table_print(table, out);
    table_free(table);
    fxtap_tensor_list_free(list);
    return EXIT_SUCCESS;
}

static int print_for_people(fxtap_reader *reader, const ls_options *options)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    const fxtap_graph_info **graphs = NULL;
    size_t n_graphs = 0;
    int result = EXIT_SUCCESS;
    const selection *chosen = &options->chosen;
    bool is_detailed = options->is_long || chosen->graph >= 0 || chosen->step >= 0 || chosen->pattern != NULL;
    if (fxtap_reader_rank_count(reader) == 0) {
        result = print_plain(&out, reader, options);
    } else if (!select_graphs(reader, chosen, &graphs, &n_graphs)) {
        return EXIT_TROUBLE;
    } else if (n_graphs > 1 && !is_detailed) {
        print_overview(&out, reader, options, graphs, n_graphs);
    } else if (n_graphs == 0 && fxtap_reader_left_out(reader) == FXTAP_OK) {
        fxtap_buffer_text(&out, "no graphs\n");
    }
    for (size_t i = 0; i < n_graphs && result == EXIT_SUCCESS && (n_graphs == 1 || is_detailed); i++) {
        fxtap_buffer_text(&out, i > 0 ? "\n" : "");
        result = print_graph(&out, reader, options, graphs[i]);
    }
    explain_empty(reader, graphs, n_graphs);
    free(graphs);
    return flush_buffer(&out) ? result : EXIT_TROUBLE;
}

/* What was asked for is there; else says what is. */
static bool is_there(fxtap_reader *reader, const ls_options *options)
{
    const fxtap_graph_info **graphs;
    size_t n_graphs;
    if (!select_graphs(reader, &options->chosen, &graphs, &n_graphs)) {
        return false;
    }
    bool is_found = check_selection(reader, &options->chosen, options->all, graphs, n_graphs);
    free(graphs);
    return is_found;
}

static int list_dump(const char *path, const ls_options *options)
{
    fxtap_reader *reader = open_dump(path);
    if (reader == NULL) {
        return EXIT_TROUBLE;
    }
    int result = !is_there(reader, options) ? EXIT_TROUBLE
                 : options->json            ? ls_print_json(reader, options)
                 : options->csv             ? ls_print_csv(reader, options)
                                            : print_for_people(reader, options);
    return close_dump(reader, result);
}

int cmd_ls(int argc, char **argv)
{
    ls_options chosen = {.chosen = SELECTION_NONE};
    const option_spec options[] = {
        {'l', "long", OPTION_FLAG, &chosen.is_long, NULL, "every tensor, not every operator"},
        {'a', "all", OPTION_FLAG, &chosen.all, NULL, "also operators that were not dumped, with the reason"},
        {'o', "op", OPTION_TEXT, &chosen.chosen.pattern, "GLOB",
         "operators that match: \"*gelu*\" (man fxtap: PATTERNS)"},
        SELECTION_OPTIONS(chosen.chosen),
        {0, "sort", OPTION_TEXT, &chosen.sort, "KEY",
         "by order (of execution, the default), node, target,\nbytes, absmax, mean, std or nonfinite"},
        {0, "reverse", OPTION_FLAG, &chosen.reverse, NULL, "the other way round"},
        {0, "no-stats", OPTION_FLAG, &chosen.no_stats, NULL, "do not read files for statistics the index lacks"},
        {0, "json", OPTION_FLAG, &chosen.json, NULL, "every tensor of every step as JSON"},
        {0, "csv", OPTION_FLAG, &chosen.csv, NULL, "every tensor of every step as CSV"},
        {0, "nodes", OPTION_FLAG, &chosen.nodes, NULL, "with --json, --csv: the nodes instead"},
    };
    const command_usage usage = {
        .command = "ls",
        .operands = "DUMP",
        .about = "Lists what a dump holds. DUMP is a dump's root, a rank, graph or step folder, or\n"
                 "any folder of .npy files. One graph: the operators of its latest step, in order\n"
                 "of execution. More: the graphs.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "A table fits the terminal; into a pipe or file it is as wide as it needs to be\n"
                "($COLUMNS is heeded).\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (argc - first != 1) {
        return usage_error(usage.command, first == argc ? "expected a DUMP" : "one DUMP at a time");
    }
    if (chosen.sort != NULL && !ls_sort_is_known(chosen.sort)) {
        return usage_error(usage.command, "--sort takes one of %s, not \"%s\"", ls_sort_keys, chosen.sort);
    }
    if (chosen.json && chosen.csv) {
        return usage_error(usage.command, "--json or --csv, not both");
    }
    return list_dump(argv[first], &chosen);
}
