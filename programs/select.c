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

int close_dump(fxtap_reader *reader, int result)
{
    for (size_t i = 0; i < fxtap_reader_warning_count(reader); i++) {
        report_error("warning: %s", fxtap_reader_warning(reader, i));
    }
    bool is_whole = fxtap_reader_left_out(reader) == FXTAP_OK;
    fxtap_reader_close(reader);
    return result == EXIT_SUCCESS && !is_whole ? EXIT_TROUBLE : result;
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

typedef struct number_range {
    int64_t first, last; /* -1: empty */
} number_range;

static void widen(number_range *range, int64_t value)
{
    range->first = range->first < 0 || (value >= 0 && value < range->first) ? value : range->first;
    range->last = value > range->last ? value : range->last;
}

static void complain_of_number(const fxtap_reader *reader, const char *what, int64_t wanted, const number_range *there)
{
    char has[64] = "the dump has none";
    if (there->first >= 0 && there->first == there->last) {
        snprintf(has, sizeof has, "the dump has %s %lld", what, (long long)there->first);
    } else if (there->first >= 0) {
        snprintf(has, sizeof has, "the dump has %ss %lld to %lld", what, (long long)there->first,
                 (long long)there->last);
    }
    report_error("no %s %lld in %s: %s", what, (long long)wanted, fxtap_reader_path(reader), has);
}

/* Names the first of run, rank and graph that no graph has together with those before it. */
static void complain_of_selection(fxtap_reader *reader, const selection *chosen)
{
    static const char *const names[] = {"run", "rank", "graph"};
    const int64_t wanted[] = {chosen->run > 0 ? chosen->run : -1, chosen->rank, chosen->graph};
    const fxtap_graph_info *const *all;
    size_t n_all;
    if (fxtap_reader_graphs(reader, chosen->run > 0 ? -1 : 0, &all, &n_all) != FXTAP_OK) {
        report_library_error();
        return;
    }
    for (size_t part = 0; part < 3; part++) {
        number_range there = {-1, -1};
        bool is_found = wanted[part] < 0;
        for (size_t i = 0; i < n_all; i++) {
            const int64_t own[] = {all[i]->run > 0 ? all[i]->run : -1, fxtap_reader_rank(reader, all[i]->rank_i)->rank,
                                   all[i]->graph};
            bool is_one = (part < 1 || wanted[0] < 0 || own[0] == wanted[0]) &&
                          (part < 2 || wanted[1] < 0 || own[1] == wanted[1]);
            if (is_one) {
                widen(&there, own[part]);
                is_found |= own[part] == wanted[part];
            }
        }
        if (!is_found) {
            complain_of_number(reader, names[part], wanted[part], &there);
            return;
        }
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
        complain_of_selection(reader, chosen);
        free(meant);
        return false;
    }
    *out = meant;
    *n_out = n;
    return true;
}

/* Sets the range of the steps of the graphs; returns whether the requested step exists. */
static bool find_step(fxtap_reader *reader, int64_t step, const fxtap_graph_info *const *graphs, size_t n_graphs,
                      number_range *out)
{
    *out = (number_range){-1, -1};
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
            widen(out, steps[j]->step);
        }
    }
    return false;
}

bool check_selection(fxtap_reader *reader, const selection *chosen, bool with_skipped,
                     const fxtap_graph_info *const *graphs, size_t n_graphs)
{
    number_range there;
    if (chosen->step >= 0 && !find_step(reader, chosen->step, graphs, n_graphs, &there)) {
        complain_of_number(reader, "step", chosen->step, &there);
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
