/* cmd_show.c - fxtap show: one operator in full. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "describe.h"
#include "select.h"
#include "text.h"
#include "values.h"

typedef struct show_options {
    selection chosen;
    bool whole_stack;
    bool no_values;
    bool json;
} show_options;

#define MAX_STACK_LINES 8

/* ---- finding the node ---- */

static char *copy_part(const char *text, size_t length)
{
    char *part = must_realloc(NULL, length + 1, 1);
    memcpy(part, text, length);
    part[length] = '\0';
    return part;
}

/* A tensor's name, or its file's path, stands for its node. */
static char *node_name_of(const char *typed)
{
    const char *slash = strrchr(typed, '/');
    const char *base = slash != NULL ? slash + 1 : typed;
    return copy_part(base, strcspn(base, "-"));
}

typedef struct found_node {
    const fxtap_node_info *node;
    size_t n_others; /* graphs that have one of that name too */
} found_node;

static found_node find_node(fxtap_reader *reader, const show_options *options, const char *typed)
{
    found_node found = {0};
    const fxtap_graph_info **graphs;
    size_t n_graphs;
    if (!select_graphs(reader, &options->chosen, &graphs, &n_graphs)) {
        return found;
    }
    char *part = node_name_of(typed);
    const char *const tries[] = {typed, part};
    for (size_t t = 0; t < 2 && found.node == NULL; t++) {
        for (size_t i = 0; i < n_graphs; i++) {
            const fxtap_node_info *node = find_in_graph(reader, graphs[i], tries[t]);
            found.n_others += node != NULL && found.node != NULL;
            found.node = found.node == NULL ? node : found.node;
        }
    }
    if (found.node == NULL) {
        complain_of_node(reader, graphs, n_graphs, options->chosen.graph, part);
    }
    free(part);
    free(graphs);
    return found;
}

/* ---- the node ---- */

static void append_head(fxtap_buffer *out, const fxtap_reader *reader, const found_node *found,
                        const fxtap_step_info *step)
{
    const fxtap_node_info *node = found->node;
    const fxtap_graph_info *graph = node->graph;
    text_append_styled(out, STYLE_BOLD, node->name);
    fxtap_buffer_text(out, "  ");
    text_append(out, node->target);
    fxtap_buffer_text(out, "\n  ");
    if (fxtap_reader_rank_count(reader) > 1) {
        fxtap_buffer_printf(out, "rank %d, ", fxtap_reader_rank(reader, graph->rank_i)->rank);
    }
    const char *kind = graph_kind_name(graph->kind);
    fxtap_buffer_printf(out, "graph %u%s%s%s", (unsigned)graph->graph, kind[0] != '\0' ? " (" : "", kind,
                        kind[0] != '\0' ? ")" : "");
    if (step != NULL) {
        fxtap_buffer_text(out, ", ");
        append_step(out, step);
    }
    fxtap_buffer_printf(out, ", node %zu of %zu", node->order, graph->n_nodes);
    if (found->n_others > 0) {
        fxtap_buffer_printf(out, "; %zu other graph%s one of that name (--graph G)", found->n_others,
                            found->n_others == 1 ? " has" : "s have");
    }
    fxtap_buffer_text(out, "\n");
}

static size_t count_lines(const char *text)
{
    size_t n = text[0] != '\0';
    for (; *text != '\0'; text++) {
        n += *text == '\n' && text[1] != '\0';
    }
    return n;
}

/* In `File "model.py", line 3, in forward` the path gives way, in code the end. */
static void append_stack_line(fxtap_buffer *out, const char *line)
{
    static const char mark[] = "File \"";
    size_t indent = strspn(line, " ");
    const char *path = line + indent + sizeof mark - 1;
    const char *end = strncmp(line + indent, mark, sizeof mark - 1) == 0 ? strchr(path, '"') : NULL;
    if (end == NULL) {
        text_append_fitted(out, STYLE_DIM, line, KEEPS_HEAD, 0);
        return;
    }
    char *before = copy_part(line, (size_t)(path - line)), *own = copy_part(path, (size_t)(end - path));
    text_append_styled(out, STYLE_DIM, before);
    text_append_fitted(out, STYLE_DIM, own, KEEPS_TAIL, text_columns_cleaned(end));
    text_append_styled(out, STYLE_DIM, end);
    free(before);
    free(own);
}

/* The innermost frames come last and matter most. */
static void append_stack(fxtap_buffer *out, const char *stack, bool is_whole)
{
    size_t n_lines = count_lines(stack);
    size_t n_left_out = !is_whole && n_lines > MAX_STACK_LINES ? n_lines - MAX_STACK_LINES : 0;
    if (n_left_out > 0) {
        fxtap_buffer_printf(out, "    %s... (--stack shows %zu lines more)%s\n", text_begin(STYLE_DIM), n_left_out,
                            text_end(STYLE_DIM));
    }
    for (size_t i = 0; *stack != '\0'; i++) {
        size_t length = strcspn(stack, "\n");
        if (i >= n_left_out && length > 0) {
            char *line = copy_part(stack, length);
            fxtap_buffer_text(out, "  ");
            append_stack_line(out, line);
            fxtap_buffer_text(out, "\n");
            free(line);
        }
        stack += length + (stack[length] == '\n');
    }
}

static void append_source_line(fxtap_buffer *out, const fxtap_node_info *node)
{
    fxtap_buffer rest;
    fxtap_buffer_init(&rest);
    fxtap_buffer_printf(&rest, ":%d%s", node->source_line, node->source_function[0] != '\0' ? " in " : "");
    text_append(&rest, node->source_function);
    text_append_fitted(out, STYLE_PLAIN, node->source_file, KEEPS_TAIL, text_columns(rest.bytes, rest.length));
    fxtap_buffer_append(out, rest.bytes, rest.length);
    fxtap_buffer_text(out, "\n");
    fxtap_buffer_clear(&rest);
}

static void append_origin(fxtap_buffer *out, const fxtap_node_info *node, bool whole_stack)
{
    if (node->source_file[0] != '\0') {
        fxtap_buffer_text(out, "  source  ");
        append_source_line(out, node);
    }
    if (node->source_code[0] != '\0') {
        fxtap_buffer_text(out, "          ");
        text_append_fitted(out, STYLE_BOLD, node->source_code, KEEPS_HEAD, 0);
        fxtap_buffer_text(out, "\n");
    }
    if (node->module_path[0] != '\0') {
        fxtap_buffer_text(out, "  module  ");
        text_append(out, node->module_path);
        fxtap_buffer_text(out, "  ");
        text_append_styled(out, STYLE_DIM, node->module_type);
        fxtap_buffer_text(out, "\n");
    }
    if (node->stack[0] != '\0' && (count_lines(node->stack) > 2 || whole_stack)) {
        fxtap_buffer_text(out, "  stack\n");
        append_stack(out, node->stack, whole_stack);
    }
    if (node->skipped != NULL) {
        fxtap_buffer_text(out, "  not dumped: ");
        text_append(out, node->skipped);
        fxtap_buffer_text(out, "\n");
    }
}

/* ---- its tensors ---- */

static void append_layout(fxtap_buffer *out, const fxtap_tensor_info *info)
{
    bool is_dense_list = info->ndim == 1 && info->strides != NULL && info->strides[0] == 1;
    if (info->dtype != info->saved_dtype) {
        fxtap_buffer_printf(out, " (saved as %s)", fxtap_dtype_name(info->saved_dtype));
    }
    if (info->layout[0] != '\0' && strcmp(info->layout, "torch.strided") != 0) {
        fxtap_buffer_text(out, "  ");
        text_append(out, info->layout);
    }
    if (info->strides != NULL && info->ndim > 0 && !is_dense_list) {
        fxtap_buffer_text(out, "  strides ");
        for (int32_t i = 0; i < info->ndim; i++) {
            fxtap_buffer_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)info->strides[i]);
        }
    }
    if (info->device[0] != '\0' && strcmp(info->device, "cpu") != 0) {
        fxtap_buffer_text(out, "  ");
        text_append(out, info->device);
    }
}

static void append_title(fxtap_buffer *out, const fxtap_tensor_info *info)
{
    static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
    fxtap_buffer_printf(out, "\n%s%s.", text_begin(STYLE_BOLD), io_names[info->io]);
    text_append(out, info->position);
    fxtap_buffer_printf(out, "%s", text_end(STYLE_BOLD));
    if (info->arg_name[0] != '\0' && strcmp(info->arg_name, info->position) != 0) {
        fxtap_buffer_text(out, " ");
        text_append(out, info->arg_name);
    }
}

static void append_scalar_or_text(fxtap_buffer *out, fxtap_npy *npy)
{
    const char *text;
    if (fxtap_npy_view(npy)->dtype != FXTAP_STRING) {
        fxtap_buffer_text(out, " = ");
        (void)values_append_scalar(out, npy);
    } else if (fxtap_npy_text(npy, &text) == FXTAP_OK) {
        fxtap_buffer_text(out, " = \"");
        text_append(out, text);
        fxtap_buffer_text(out, "\"");
    }
}

static fxtap_status append_values(fxtap_buffer *out, const fxtap_npy *npy, fxtap_io io)
{
    fxtap_status status = values_append_places(out, "  ", npy);
    if (status == FXTAP_OK && io != FXTAP_INPUT) {
        status = values_append_histogram(out, "  ", npy, text_width() < 100 ? text_width() : 100);
    }
    return status == FXTAP_OK ? values_append_corners(out, "  ", npy) : status;
}

static void append_unreadable(fxtap_buffer *out)
{
    fxtap_buffer_text(out, "  ");
    text_append_styled(out, STYLE_BAD, fxtap_error_message());
    fxtap_buffer_text(out, "\n");
}

static bool append_from_file(fxtap_buffer *out, const show_options *options, fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    fxtap_npy *npy = NULL;
    if (fxtap_tensor_open(list, i, &npy) != FXTAP_OK) {
        append_unreadable(out);
        return false;
    }
    fxtap_status status = FXTAP_OK;
    if (info->ndim > 0 && !options->no_values) {
        status = append_values(out, npy, info->io);
    }
    fxtap_npy_close(npy);
    if (status != FXTAP_OK) {
        append_unreadable(out);
    }
    return status == FXTAP_OK;
}

/* True where the line tells all: of a number, a text or a short list. */
static bool append_few(fxtap_buffer *out, const show_options *options, fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    fxtap_npy *npy = NULL;
    bool is_told = false;
    if (info->path == NULL || info->ndim > 1 || fxtap_tensor_open(list, i, &npy) != FXTAP_OK) {
        return false;
    }
    if (info->ndim == 0) {
        append_scalar_or_text(out, npy);
        is_told = true;
    } else if (!options->no_values) {
        is_told = values_append_list(out, npy);
    }
    fxtap_npy_close(npy);
    return is_told;
}

static void append_undefined(fxtap_buffer *out, const fxtap_tensor_info *info)
{
    if (info->undefined_count > 0) {
        fxtap_buffer_text(out, "  ");
        text_append_count(out, info->undefined_count);
        fxtap_buffer_text(out, " undefined: memory that was never written; statistics are of the others\n");
    }
}

static bool append_many(fxtap_buffer *out, const show_options *options, fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    if (info->path != NULL && info->dtype != FXTAP_STRING) {
        (void)fxtap_tensor_load_stats(list, i);
    }
    if (info->has_stats && (info->stats.count > 0 || info->undefined_count == 0)) {
        describe_stats(out, "  ", &info->stats);
    }
    return info->path == NULL || append_from_file(out, options, list, i);
}

/* A number, a text or a short list in one line; arrays with their statistics. */
static bool append_tensor(fxtap_buffer *out, const show_options *options, fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    append_title(out, info);
    if (info->skipped != NULL) {
        fxtap_buffer_text(out, "  ");
        text_append_styled(out, STYLE_DIM, info->skipped);
        fxtap_buffer_text(out, "\n");
        return true;
    }
    if (info->path != NULL && fxtap_tensor_load_meta(list, i) != FXTAP_OK) {
        append_unreadable(out);
        return false;
    }
    fxtap_buffer_text(out, "  ");
    text_append_type(out, info->dtype, info->shape, info->ndim);
    bool is_told = append_few(out, options, list, i);
    append_layout(out, info);
    fxtap_buffer_text(out, "\n");
    append_undefined(out, info);
    bool is_well = is_told || append_many(out, options, list, i);
    if (info->path != NULL) {
        fxtap_buffer_text(out, "  ");
        text_append_fitted(out, STYLE_DIM, info->path, KEEPS_TAIL, 0);
        fxtap_buffer_text(out, "\n");
    }
    return is_well;
}

/* ---- JSON ---- */

static void json_node(fxtap_json *json, const fxtap_reader *reader, const fxtap_node_info *node)
{
    fxtap_json_int(json, "rank", fxtap_reader_rank(reader, node->graph->rank_i)->rank);
    fxtap_json_int(json, "run", node->graph->run);
    fxtap_json_uint(json, "graph", node->graph->graph);
    fxtap_json_uint(json, "order", node->order);
    fxtap_json_string(json, "node", node->name);
    fxtap_json_string(json, "target", node->target);
    fxtap_json_string(json, "source_file", node->source_file);
    fxtap_json_int(json, "source_line", node->source_line);
    fxtap_json_string(json, "source_function", node->source_function);
    fxtap_json_string(json, "source_code", node->source_code);
    fxtap_json_string(json, "stack", node->stack);
    fxtap_json_string(json, "module_path", node->module_path);
    fxtap_json_string(json, "module_type", node->module_type);
    fxtap_json_string(json, "skipped", node->skipped);
}

static bool json_tensor(fxtap_json *json, fxtap_tensor_list *list, size_t i)
{
    static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    fxtap_status status = info->path != NULL ? fxtap_tensor_load_stats(list, i) : FXTAP_OK;
    bool is_text = info->has_meta && info->dtype == FXTAP_STRING;
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "name", info->name);
    fxtap_json_string(json, "io", io_names[info->io]);
    fxtap_json_string(json, "position", info->position);
    fxtap_json_string(json, "argument", info->arg_name[0] != '\0' ? info->arg_name : NULL);
    fxtap_json_string(json, "path", info->path);
    if (info->skipped != NULL) {
        fxtap_json_string(json, "skipped", info->skipped);
    }
    if (status != FXTAP_OK && !is_text) {
        fxtap_json_string(json, "error", fxtap_error_message());
    }
    describe_tensor_json(json, info);
    fxtap_json_end_object(json);
    return status == FXTAP_OK || is_text;
}

/* ---- the command ---- */

static bool print_tensors(fxtap_buffer *out, fxtap_json *json, const show_options *options, fxtap_tensor_list *list,
                          const found_node *found, const fxtap_step_info *step)
{
    bool is_well = true;
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        if (info->node == found->node && info->step == step) {
            bool is_good = json != NULL ? json_tensor(json, list, i) : append_tensor(out, options, list, i);
            is_well = is_well && is_good;
        }
    }
    return is_well;
}

/* The pattern that matches this text alone. */
static char *pattern_of(const char *text)
{
    char *pattern = must_realloc(NULL, 2 * strlen(text) + 1, 1);
    char *c = pattern;
    for (; *text != '\0'; text++) {
        if (strchr("*?[]\\", *text) != NULL) {
            *c++ = '\\';
        }
        *c++ = *text;
    }
    *c = '\0';
    return pattern;
}

static int print_node(fxtap_reader *reader, const show_options *options, const found_node *found)
{
    selection chosen = options->chosen;
    const fxtap_step_info *step = select_step(reader, &chosen, found->node->graph);
    if (step == NULL && chosen.step >= 0) {
        report_error("no step %lld of graph %u", (long long)chosen.step, (unsigned)found->node->graph->graph);
        return EXIT_TROUBLE;
    }
    char *pattern = pattern_of(found->node->name);
    chosen.pattern = pattern;
    fxtap_tensor_list *list = step != NULL ? list_step(reader, &chosen, step) : NULL;
    free(pattern);
    if (step != NULL && list == NULL) {
        return EXIT_TROUBLE;
    }
    fxtap_buffer out;
    fxtap_json json;
    fxtap_buffer_init(&out);
    fxtap_json_init(&json, &out, true);
    if (options->json) {
        fxtap_json_begin_object(&json, NULL);
        json_node(&json, reader, found->node);
        fxtap_json_int(&json, "step", step != NULL ? step->step : -1);
        fxtap_json_begin_array(&json, "tensors");
    } else {
        append_head(&out, reader, found, step);
        append_origin(&out, found->node, options->whole_stack);
    }
    bool is_well = list == NULL || print_tensors(&out, options->json ? &json : NULL, options, list, found, step);
    if (options->json) {
        fxtap_json_end_array(&json);
        fxtap_json_end_object(&json);
        fxtap_buffer_text(&out, "\n");
    }
    fxtap_tensor_list_free(list);
    return flush_buffer(&out) && is_well ? EXIT_SUCCESS : EXIT_TROUBLE;
}

static int show(const char *path, const char *name, const show_options *options)
{
    fxtap_reader *reader = open_dump(path);
    if (reader == NULL) {
        return EXIT_TROUBLE;
    }
    int result = EXIT_TROUBLE;
    found_node found = find_node(reader, options, name);
    if (found.node != NULL) {
        result = print_node(reader, options, &found);
    }
    return close_dump(reader, result);
}

int cmd_show(int argc, char **argv)
{
    show_options chosen = {.chosen = SELECTION_NONE};
    const option_spec options[] = {
        SELECTION_OPTIONS(chosen.chosen),
        {0, "stack", OPTION_FLAG, &chosen.whole_stack, NULL, "the whole Python stack"},
        {0, "no-values", OPTION_FLAG, &chosen.no_values, NULL, "no histogram, no values"},
        {0, "json", OPTION_FLAG, &chosen.json, NULL, "as one JSON object"},
    };
    const command_usage usage = {
        .command = "show",
        .operands = "DUMP NODE",
        .about = "Shows one operator in full: where it comes from, what went in and what came out.\n"
                 "NODE is its name, as fxtap ls shows it, or the name or path of one of its files.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Without --step, the latest whole step is shown.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (argc - first != 2) {
        return usage_error(usage.command, "expected a DUMP and a NODE");
    }
    return show(argv[first], argv[first + 1], &chosen);
}
