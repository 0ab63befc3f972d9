/* ls_machine.c - fxtap ls for programs: JSON and CSV. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "describe.h"
#include "ls.h"

static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
static const char *const kind_names[] = {"", "indexed", "named", "plain", "file"};
static const char *const state_names[] = {"", "whole", "failed", "partial"};

/* Opened at a failed or unfinished step: then that is meant. */
static bool has_whole_step(fxtap_reader *reader, const selection *chosen)
{
    const fxtap_graph_info **graphs;
    size_t n_graphs;
    bool found = false;
    if (select_graphs(reader, chosen, &graphs, &n_graphs)) {
        for (size_t i = 0; i < n_graphs; i++) {
            found |= graphs[i]->n_steps > 0;
        }
        free(graphs);
    }
    return found;
}

static fxtap_tensor_list *list_all(fxtap_reader *reader, const ls_options *options)
{
    fxtap_tensor_query query = query_of(&options->chosen);
    fxtap_tensor_list *list = NULL;
    query.with_incomplete = options->all || !has_whole_step(reader, &options->chosen);
    if (fxtap_reader_tensors(reader, &query, &list) != FXTAP_OK) {
        report_library_error();
    }
    return list;
}

static bool is_listed(const ls_options *options, const fxtap_node_info *node)
{
    const char *pattern = options->chosen.pattern;
    return (options->all || node->skipped == NULL) && (pattern == NULL || fxtap_node_matches(pattern, node));
}

/* ---- JSON ---- */

static void json_place(fxtap_json *json, const fxtap_reader *reader, const fxtap_graph_info *graph)
{
    fxtap_json_int(json, "rank", fxtap_reader_rank(reader, graph->rank_i)->rank);
    fxtap_json_int(json, "run", graph->run);
    fxtap_json_uint(json, "graph", graph->graph);
}

static void json_step(fxtap_json *json, const fxtap_step_info *step)
{
    fxtap_json_begin_object(json, NULL);
    fxtap_json_int(json, "step", step->step);
    fxtap_json_int(json, "call", step->call);
    fxtap_json_string(json, "state", state_names[step->state]);
    fxtap_json_string(json, "folder", step->folder);
    fxtap_json_string(json, "reason", step->reason);
    fxtap_json_uint(json, "started_us", step->started_us);
    fxtap_json_uint(json, "ended_us", step->ended_us);
    fxtap_json_end_object(json);
}

static void json_graph(fxtap_json *json, fxtap_reader *reader, const fxtap_graph_info *graph)
{
    const fxtap_step_info *const *steps;
    size_t n_steps;
    char key[33];
    fxtap_json_begin_object(json, NULL);
    json_place(json, reader, graph);
    fxtap_json_string(json, "kind", graph_kind_name(graph->kind));
    if (graph->has_keys) {
        describe_hash(key, graph->strict_key);
        fxtap_json_string(json, "strict_key", key);
        describe_hash(key, graph->structural_key);
        fxtap_json_string(json, "structural_key", key);
        fxtap_json_uint(json, "occurrence", graph->occurrence);
    }
    fxtap_json_uint(json, "nodes", graph->n_nodes);
    fxtap_json_uint(json, "dumped", graph->n_dumped);
    fxtap_json_string(json, "path", graph->path);
    fxtap_json_begin_array(json, "steps");
    if (fxtap_reader_steps(reader, graph, &steps, &n_steps) == FXTAP_OK) {
        for (size_t i = 0; i < n_steps; i++) {
            json_step(json, steps[i]);
        }
    }
    fxtap_json_end_array(json);
    fxtap_json_end_object(json);
}

static void json_tensor(fxtap_json *json, const fxtap_reader *reader, const fxtap_tensor_info *info)
{
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "name", info->name);
    if (info->node != NULL) {
        json_place(json, reader, info->node->graph);
        fxtap_json_int(json, "step", info->step->step);
        fxtap_json_string(json, "state", state_names[info->step->state]);
        fxtap_json_uint(json, "order", info->node->order);
        fxtap_json_string(json, "node", info->node->name);
        fxtap_json_string(json, "target", info->node->target);
        fxtap_json_string(json, "io", io_names[info->io]);
        fxtap_json_string(json, "position", info->position);
        fxtap_json_string(json, "argument", info->arg_name[0] != '\0' ? info->arg_name : NULL);
        fxtap_json_uint(json, "stamp_us", info->stamp_us);
    }
    fxtap_json_string(json, "path", info->path);
    if (info->skipped != NULL) {
        fxtap_json_string(json, "skipped", info->skipped);
    } else if (!info->has_meta) {
        fxtap_json_bool(json, "unreadable", true);
    }
    describe_tensor_json(json, info);
    fxtap_json_end_object(json);
}

static void json_node(fxtap_json *json, const fxtap_reader *reader, const fxtap_node_info *node)
{
    fxtap_json_begin_object(json, NULL);
    json_place(json, reader, node->graph);
    fxtap_json_uint(json, "order", node->order);
    fxtap_json_string(json, "node", node->name);
    fxtap_json_string(json, "target", node->target);
    fxtap_json_string(json, "source_file", node->source_file);
    fxtap_json_int(json, "source_line", node->source_line);
    fxtap_json_string(json, "source_function", node->source_function);
    fxtap_json_string(json, "source_code", node->source_code);
    fxtap_json_string(json, "module_path", node->module_path);
    fxtap_json_string(json, "module_type", node->module_type);
    fxtap_json_string(json, "skipped", node->skipped);
    fxtap_json_end_object(json);
}

static void json_runs(fxtap_json *json, fxtap_reader *reader, size_t rank_i)
{
    fxtap_json_begin_array(json, "runs");
    for (size_t i = 0; i < fxtap_reader_run_count(reader, rank_i); i++) {
        const fxtap_run_info *run = fxtap_reader_run(reader, rank_i, i);
        fxtap_json_begin_object(json, NULL);
        fxtap_json_int(json, "run", run->run);
        fxtap_json_int(json, "pid", run->pid);
        fxtap_json_string(json, "host", run->host);
        fxtap_json_string(json, "type", run->type);
        fxtap_json_string(json, "versions", run->versions);
        fxtap_json_string(json, "command", run->command);
        fxtap_json_uint(json, "started_us", run->started_us);
        fxtap_json_uint(json, "ended_us", run->ended_us);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

static void json_ranks(fxtap_json *json, fxtap_reader *reader)
{
    fxtap_json_begin_array(json, "ranks");
    for (size_t i = 0; i < fxtap_reader_rank_count(reader); i++) {
        const fxtap_rank_info *rank = fxtap_reader_rank(reader, i);
        fxtap_json_begin_object(json, NULL);
        fxtap_json_int(json, "rank", rank->rank);
        fxtap_json_int(json, "world_size", rank->world_size);
        fxtap_json_string(json, "path", rank->path);
        fxtap_json_bool(json, "has_index", rank->has_index);
        json_runs(json, reader, i);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

static int json_nodes(fxtap_json *json, fxtap_reader *reader, const ls_options *options,
                      const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    fxtap_json_begin_array(json, "nodes");
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_node_info *const *nodes;
        size_t n_nodes;
        if (fxtap_reader_nodes(reader, graphs[i], &nodes, &n_nodes) != FXTAP_OK) {
            return report_library_error();
        }
        for (size_t j = 0; j < n_nodes; j++) {
            if (is_listed(options, nodes[j])) {
                json_node(json, reader, nodes[j]);
            }
        }
    }
    fxtap_json_end_array(json);
    return EXIT_SUCCESS;
}

static int json_tensors(fxtap_json *json, fxtap_reader *reader, const ls_options *options)
{
    fxtap_tensor_list *list = list_all(reader, options);
    if (list == NULL) {
        return EXIT_TROUBLE;
    }
    fxtap_json_begin_array(json, "tensors");
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        ls_load(options, list, i);
        json_tensor(json, reader, fxtap_tensor_list_at(list, i));
    }
    fxtap_json_end_array(json);
    fxtap_tensor_list_free(list);
    return EXIT_SUCCESS;
}

static void json_warnings(fxtap_json *json, const fxtap_reader *reader)
{
    fxtap_json_begin_array(json, "warnings");
    for (size_t i = 0; i < fxtap_reader_warning_count(reader); i++) {
        fxtap_json_string(json, NULL, fxtap_reader_warning(reader, i));
    }
    fxtap_json_end_array(json);
}

int ls_print_json(fxtap_reader *reader, const ls_options *options)
{
    fxtap_buffer out;
    fxtap_json json;
    const fxtap_graph_info **graphs;
    size_t n_graphs;
    if (!select_graphs(reader, &options->chosen, &graphs, &n_graphs)) {
        return EXIT_TROUBLE;
    }
    fxtap_buffer_init(&out);
    fxtap_json_init(&json, &out, true);
    fxtap_json_begin_object(&json, NULL);
    fxtap_json_string(&json, "path", fxtap_reader_path(reader));
    fxtap_json_string(&json, "kind", kind_names[fxtap_reader_kind(reader)]);
    json_ranks(&json, reader);
    fxtap_json_begin_array(&json, "graphs");
    for (size_t i = 0; i < n_graphs; i++) {
        json_graph(&json, reader, graphs[i]);
    }
    fxtap_json_end_array(&json);
    int result =
        options->nodes ? json_nodes(&json, reader, options, graphs, n_graphs) : json_tensors(&json, reader, options);
    json_warnings(&json, reader);
    fxtap_json_end_object(&json);
    fxtap_buffer_text(&out, "\n");
    free(graphs);
    if (result != EXIT_SUCCESS) {
        fxtap_buffer_clear(&out);
        return result;
    }
    return flush_buffer(&out) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

/* ---- CSV ---- */

static void csv_header(fxtap_buffer *out, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        fxtap_csv_field(out, names[i], i == 0);
    }
    fxtap_csv_end_row(out);
}

static void csv_int(fxtap_buffer *out, int64_t value, bool first)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    fxtap_csv_field(out, text, first);
}

/* A field that is made in a buffer, which is emptied. */
static void csv_take(fxtap_buffer *out, fxtap_buffer *field)
{
    fxtap_csv_field(out, field->bytes != NULL ? field->bytes : "", false);
    fxtap_buffer_clear(field);
}

static void csv_place(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_graph_info *graph)
{
    csv_int(out, fxtap_reader_rank(reader, graph->rank_i)->rank, true);
    csv_int(out, graph->run, false);
    csv_int(out, graph->graph, false);
}

static void csv_type(fxtap_buffer *out, const fxtap_tensor_info *info)
{
    fxtap_buffer field;
    fxtap_buffer_init(&field);
    fxtap_csv_field(out, info->has_meta ? fxtap_dtype_name(info->dtype) : "", false);
    for (int32_t i = 0; info->has_meta && i < info->ndim; i++) {
        fxtap_buffer_printf(&field, "%s%lld", i > 0 ? "x" : "", (long long)info->shape[i]);
    }
    csv_take(out, &field);
    if (info->has_meta) {
        csv_int(out, (int64_t)info->bytes, false);
    } else {
        fxtap_csv_field(out, "", false);
    }
}

static void csv_stats(fxtap_buffer *out, const fxtap_stats *stats)
{
    fxtap_buffer field;
    fxtap_buffer_init(&field);
    for (int is_max = 0; is_max < 2; is_max++) {
        if (stats->has_range) {
            describe_bound(&field, stats, is_max != 0, 17);
        }
        csv_take(out, &field);
    }
    const double reals[] = {stats->abs_max, stats->mean, stats->std, stats->rms, stats->l2_norm};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        if (i > 0 || !isnan(reals[i])) { /* absent where the range is */
            fxtap_buffer_double(&field, reals[i]);
        }
        csv_take(out, &field);
    }
    const uint64_t counts[] = {stats->count, stats->nan_count, stats->pos_inf_count, stats->neg_inf_count,
                               stats->zero_count};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        csv_int(out, (int64_t)counts[i], false);
    }
}

static const char *const tensor_names[] = {
    "rank",     "run",      "graph",       "step",        "order",       "node", "target",  "io",
    "position", "argument", "dtype",       "shape",       "bytes",       "min",  "max",     "abs_max",
    "mean",     "std",      "rms",         "l2_norm",     "count",       "nan",  "pos_inf", "neg_inf",
    "zero",     "skipped",  "source_file", "source_line", "module_path", "hash", "path"};
enum { N_PLACE_FIELDS = 10, N_STATS_FIELDS = 12 };

static void csv_tensor_place(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_tensor_info *info)
{
    if (info->node == NULL) {
        for (int i = 0; i < N_PLACE_FIELDS; i++) {
            fxtap_csv_field(out, i == 5 ? info->name : "", i == 0);
        }
        return;
    }
    csv_place(out, reader, info->node->graph);
    csv_int(out, info->step->step, false);
    csv_int(out, (int64_t)info->node->order, false);
    fxtap_csv_field(out, info->node->name, false);
    fxtap_csv_field(out, info->node->target, false);
    fxtap_csv_field(out, io_names[info->io], false);
    fxtap_csv_field(out, info->position, false);
    fxtap_csv_field(out, info->arg_name, false);
}

static void csv_tensor(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_tensor_info *info)
{
    char hash[33] = "";
    csv_tensor_place(out, reader, info);
    csv_type(out, info);
    if (info->has_stats) {
        csv_stats(out, &info->stats);
    } else {
        for (int i = 0; i < N_STATS_FIELDS; i++) {
            fxtap_csv_field(out, "", false);
        }
    }
    fxtap_csv_field(out, info->skipped != NULL ? info->skipped : info->has_meta ? "" : "unreadable", false);
    fxtap_csv_field(out, info->node != NULL ? info->node->source_file : "", false);
    csv_int(out, info->node != NULL ? info->node->source_line : 0, false);
    fxtap_csv_field(out, info->node != NULL ? info->node->module_path : "", false);
    if (info->has_hash) {
        describe_hash(hash, info->hash);
    }
    fxtap_csv_field(out, hash, false);
    fxtap_csv_field(out, info->path != NULL ? info->path : "", false);
    fxtap_csv_end_row(out);
}

static int csv_tensors(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options)
{
    fxtap_tensor_list *list = list_all(reader, options);
    if (list == NULL) {
        return EXIT_TROUBLE;
    }
    csv_header(out, tensor_names, sizeof tensor_names / sizeof *tensor_names);
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        ls_load(options, list, i);
        csv_tensor(out, reader, fxtap_tensor_list_at(list, i));
    }
    fxtap_tensor_list_free(list);
    return EXIT_SUCCESS;
}

static void csv_node(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_node_info *node)
{
    csv_place(out, reader, node->graph);
    csv_int(out, (int64_t)node->order, false);
    fxtap_csv_field(out, node->name, false);
    fxtap_csv_field(out, node->target, false);
    fxtap_csv_field(out, node->source_file, false);
    csv_int(out, node->source_line, false);
    fxtap_csv_field(out, node->source_function, false);
    fxtap_csv_field(out, node->source_code, false);
    fxtap_csv_field(out, node->module_path, false);
    fxtap_csv_field(out, node->module_type, false);
    fxtap_csv_field(out, node->skipped != NULL ? node->skipped : "", false);
    fxtap_csv_end_row(out);
}

static int csv_nodes(fxtap_buffer *out, fxtap_reader *reader, const ls_options *options)
{
    static const char *const names[] = {"rank",        "run",         "graph",       "order",           "node",
                                        "target",      "source_file", "source_line", "source_function", "source_code",
                                        "module_path", "module_type", "skipped"};
    const fxtap_graph_info **graphs;
    size_t n_graphs;
    if (!select_graphs(reader, &options->chosen, &graphs, &n_graphs)) {
        return EXIT_TROUBLE;
    }
    csv_header(out, names, sizeof names / sizeof *names);
    int result = EXIT_SUCCESS;
    for (size_t i = 0; i < n_graphs && result == EXIT_SUCCESS; i++) {
        const fxtap_node_info *const *nodes;
        size_t n_nodes;
        if (fxtap_reader_nodes(reader, graphs[i], &nodes, &n_nodes) != FXTAP_OK) {
            result = report_library_error();
            break;
        }
        for (size_t j = 0; j < n_nodes; j++) {
            if (is_listed(options, nodes[j])) {
                csv_node(out, reader, nodes[j]);
            }
        }
    }
    free(graphs);
    return result;
}

int ls_print_csv(fxtap_reader *reader, const ls_options *options)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    int result = options->nodes ? csv_nodes(&out, reader, options) : csv_tensors(&out, reader, options);
    if (result != EXIT_SUCCESS) {
        fxtap_buffer_clear(&out);
        return result;
    }
    return flush_buffer(&out) ? EXIT_SUCCESS : EXIT_TROUBLE;
}
