#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

fxtap_reader *open_dump(const char *path)
{
    fxtap_reader *reader = NULL;
    if (fxtap_reader_open(path, &reader) != FXTAP_OK) {
        report_library_error();
        return NULL;
    }
    return reader;
}

void print_warnings(const fxtap_reader *reader)
{
    for (size_t i = 0; i < fxtap_reader_warning_count(reader); i++) {
        report_error("warning: %s", fxtap_reader_warning(reader, i));
    }
}

fxtap_tensor_query query_of(const selection *chosen)
{
    return (fxtap_tensor_query){.struct_size = sizeof(fxtap_tensor_query),
                                .run = chosen->run,
                                .rank = chosen->rank,
                                .graph = chosen->graph,
                                .step = chosen->step,
                                .pattern = chosen->pattern,
                                .io = -1};
}

static bool is_selected(const fxtap_reader *reader, const selection *chosen, const fxtap_graph_info *graph)
{
    int64_t rank = fxtap_reader_rank(reader, graph->rank_i)->rank;
    return (chosen->rank < 0 || rank == chosen->rank) && (chosen->graph < 0 || (int64_t)graph->graph == chosen->graph);
}

static void complain_of_selection(const selection *chosen, const char *path)
{
    if (chosen->graph >= 0) {
        report_error("no graph %lld in %s", (long long)chosen->graph, path);
    } else if (chosen->rank >= 0) {
        report_error("no rank %lld in %s", (long long)chosen->rank, path);
    } else if (chosen->run > 0) {
        report_error("no run %lld in %s", (long long)chosen->run, path);
    }
}

bool select_graphs(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info ***out, size_t *n_out)
{
    const fxtap_graph_info *const *all;
    size_t n_all, n = 0;
    if (fxtap_reader_graphs(reader, chosen->run, &all, &n_all) != FXTAP_OK) {
        report_library_error();
        return false;
    }
    const fxtap_graph_info **meant = must_realloc(NULL, n_all, sizeof *meant);
    for (size_t i = 0; i < n_all; i++) {
        if (is_selected(reader, chosen, all[i])) {
            meant[n++] = all[i];
        }
    }
    bool is_selective = chosen->graph >= 0 || chosen->rank >= 0 || chosen->run > 0;
    if (n == 0 && is_selective) {
        complain_of_selection(chosen, fxtap_reader_path(reader));
        free(meant);
        return false;
    }
    *out = meant;
    *n_out = n;
    return true;
}

/* Sets the range of the steps of the graphs; returns whether the requested step exists. */
static bool find_step(fxtap_reader *reader, int64_t step, const fxtap_graph_info *const *graphs, size_t n_graphs,
                      int64_t *first_out, int64_t *last_out)
{
    *first_out = *last_out = -1;
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_step_info *const *steps;
        size_t n = 0;
        if (fxtap_reader_steps(reader, graphs[i], &steps, &n) != FXTAP_OK) {
            n = 0;
        }
        for (size_t j = 0; j < n; j++) {
            if (steps[j]->step == step) {
                return true;
            }
            *last_out = steps[j]->step > *last_out ? steps[j]->step : *last_out;
            *first_out =
                *first_out < 0 || (steps[j]->step >= 0 && steps[j]->step < *first_out) ? steps[j]->step : *first_out;
        }
    }
    return false;
}

bool check_selection(fxtap_reader *reader, const selection *chosen, bool with_skipped,
                     const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    int64_t first, last;
    if (chosen->step >= 0 && !find_step(reader, chosen->step, graphs, n_graphs, &first, &last)) {
        char there[64] = "the dump has none";
        if (first >= 0) {
            snprintf(there, sizeof there, first == last ? "the dump has step %lld" : "the dump has steps %lld to %lld",
                     (long long)first, (long long)last);
        }
        report_error("no step %lld in %s: %s", (long long)chosen->step, fxtap_reader_path(reader), there);
        return false;
    }
    if (chosen->pattern != NULL &&
        fxtap_reader_check_pattern(reader, chosen->run, chosen->pattern, with_skipped) != FXTAP_OK) {
        report_library_error();
        return false;
    }
    return true;
}

const fxtap_node_info *find_in_graph(fxtap_reader *reader, const fxtap_graph_info *graph, const char *name)
{
    const fxtap_node_info *const *nodes;
    size_t n;
    if (fxtap_reader_nodes(reader, graph, &nodes, &n) != FXTAP_OK) {
        report_library_error();
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(nodes[i]->name, name) == 0) {
            return nodes[i];
        }
    }
    return NULL;
}

void complain_of_node(fxtap_reader *reader, const fxtap_graph_info *const *graphs, size_t n_graphs, int64_t graph,
                      const char *name)
{
    char where[32] = ""; /* "graph 2 of " */
    const char **names = NULL;
    size_t n_names = 0;
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_node_info *const *nodes;
        size_t n;
        if (fxtap_reader_nodes(reader, graphs[i], &nodes, &n) != FXTAP_OK) {
            break;
        }
        names = must_realloc(names, n_names + n, sizeof *names);
        for (size_t j = 0; j < n; j++) {
            names[n_names++] = nodes[j]->name;
        }
    }
    if (graph >= 0) {
        snprintf(where, sizeof where, "graph %lld of ", (long long)graph);
    }
    const char *nearest = fxtap_nearest_name(name, names, n_names);
    if (nearest != NULL) {
        report_error("no operator \"%s\" in %s%s, did you mean %s?", name, where, fxtap_reader_path(reader), nearest);
    } else {
        report_error("no operator \"%s\" in %s%s", name, where, fxtap_reader_path(reader));
    }
    free(names);
}

const fxtap_step_info *select_step(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info *graph)
{
    const fxtap_step_info *const *steps;
    const fxtap_step_info *found = NULL;
    size_t n;
    if (fxtap_reader_steps(reader, graph, &steps, &n) != FXTAP_OK) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        bool is_whole = steps[i]->state == FXTAP_STEP_WHOLE;
        bool is_asked = chosen->step < 0 || steps[i]->step == chosen->step;
        if (is_asked && (found == NULL || is_whole || found->state != FXTAP_STEP_WHOLE)) {
            found = steps[i];
        }
    }
    return found;
}

fxtap_tensor_list *list_step(fxtap_reader *reader, const selection *chosen, const fxtap_step_info *step)
{
    fxtap_tensor_query query = query_of(chosen);
    fxtap_tensor_list *list = NULL;
    query.rank = fxtap_reader_rank(reader, step->graph->rank_i)->rank;
    query.graph = step->graph->graph;
    query.step = step->state == FXTAP_STEP_PARTIAL ? -1 : step->step;
    query.with_incomplete = step->state != FXTAP_STEP_WHOLE;
    if (fxtap_reader_tensors(reader, &query, &list) != FXTAP_OK) {
        report_library_error();
    }
    return list;
}

const char *graph_kind_name(fxtap_graph_kind kind)
{
    switch (kind) {
    case FXTAP_GRAPH_INFERENCE:
        return "inference";
    case FXTAP_GRAPH_FORWARD:
        return "forward";
    case FXTAP_GRAPH_BACKWARD:
        return "backward";
    case FXTAP_GRAPH_SUBGRAPH:
        return "subgraph";
    }
    return "";
}

void append_step(fxtap_buffer *out, const fxtap_step_info *step)
{
    if (step->state == FXTAP_STEP_PARTIAL) {
        fxtap_buffer_text(out, "a partial step");
    } else {
        fxtap_buffer_printf(out, "step %lld%s", (long long)step->step,
                            step->state == FXTAP_STEP_FAILED ? " (failed)" : "");
    }
}
