/* findings.c - findings of capture, from the index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/folder.h"
#include "reader/index.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct by_id {
    int64_t id;
    const void *info;
} by_id;

typedef struct finding_list {
    fxtap_finding *items;
    size_t count;
    size_t capacity;
    by_id *steps; /* of the current graph, ascending */
    size_t n_steps;
    by_id *nodes;
    size_t n_nodes;
} finding_list;

static int compare_ids(const void *a, const void *b)
{
    int64_t x = ((const by_id *)a)->id, y = ((const by_id *)b)->id;
    return x < y ? -1 : x > y;
}

static const void *find_id(const by_id *items, size_t n, int64_t id)
{
    by_id key = {.id = id};
    const by_id *found = n > 0 ? bsearch(&key, items, n, sizeof *items, compare_ids) : NULL;
    return found != NULL ? found->info : NULL;
}

/* Skips a finding of an unknown kind or node, or of a step that was not requested. */
static fxtap_status take_finding(fx_rows *rows, finding_list *list)
{
    int64_t kind = fx_rows_int(rows, 2);
    fxtap_finding finding = {
        .kind = (fxtap_finding_kind)kind,
        .step = find_id(list->steps, list->n_steps, fx_rows_int(rows, 0)),
        .node = find_id(list->nodes, list->n_nodes, fx_rows_int(rows, 1)),
        .position = fx_rows_text(rows, 3),
        .arg_name = fx_rows_text(rows, 4),
        .stamp_us = (uint64_t)fx_rows_int(rows, 5),
        .count = (uint64_t)fx_rows_int(rows, 6),
        .total = (uint64_t)fx_rows_int(rows, 7),
    };
    if (finding.position == NULL || finding.arg_name == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (finding.step == NULL || finding.node == NULL || kind < FXTAP_FINDING_UNDECLARED_WRITE ||
        kind > FXTAP_FINDING_UNWRITTEN_READ) {
        return FXTAP_OK;
    }
    if (!fx_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        return FXTAP_E_NOMEM;
    }
    list->items[list->count++] = finding;
    return FXTAP_OK;
}

static fxtap_status index_graph(finding_list *list, const fx_graph *graph, const fxtap_step_info *const *steps,
                                size_t n)
{
    fx_free(list->steps);
    fx_free(list->nodes);
    list->steps = fx_calloc(n, sizeof *list->steps);
    list->nodes = fx_calloc(graph->n_nodes, sizeof *list->nodes);
    list->n_steps = list->n_nodes = 0;
    if (list->steps == NULL || list->nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        list->steps[list->n_steps++] = (by_id){((const fx_step *)steps[i])->id, steps[i]};
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        list->nodes[list->n_nodes++] = (by_id){((const fx_node *)graph->nodes[i])->id, graph->nodes[i]};
    }
    qsort(list->steps, list->n_steps, sizeof *list->steps, compare_ids);
    qsort(list->nodes, list->n_nodes, sizeof *list->nodes, compare_ids);
    return FXTAP_OK;
}

/* Lists the findings in `n` steps of one graph. */
static fxtap_status read_graph(fxtap_reader *reader, fx_graph *graph, const fxtap_step_info *const *steps, size_t n,
                               finding_list *list)
{
    static const char sql[] =
        "SELECT f.step_id, f.node_id, f.kind, f.position, f.arg_name, f.stamp_us, f.count, f.total FROM finding f"
        " JOIN step s ON s.id = f.step_id WHERE s.graph_id = ?1 ORDER BY s.call, f.id";
    bool has_table = false;
    fxtap_status status = graph->id == 0 ? FXTAP_OK : fx_index_has_table(reader, graph->rank, "finding", &has_table);
    if (status != FXTAP_OK || !has_table) {
        return status;
    }
    status = index_graph(list, graph, steps, n);
    fx_rows rows = {0};
    if (status == FXTAP_OK) {
        status = fx_rows_begin(reader, graph->rank, sql, &graph->id, &rows);
    }
    bool more = status == FXTAP_OK;
    while (status == FXTAP_OK && more) {
        status = fx_rows_next(&rows, &more);
        if (status == FXTAP_OK && more) {
            status = take_finding(&rows, list);
        }
    }
    fx_rows_end(&rows);
    return status == FXTAP_E_DATABASE ? fx_reader_warn(reader, "%s", fxtap_error_message()) : status;
}

fxtap_status fxtap_reader_findings(fxtap_reader *reader, const fxtap_tensor_query *query, fxtap_finding **out,
                                   size_t *n_out)
{
    const fxtap_step_info **steps = NULL;
    size_t n_steps = 0;
    finding_list list = {0};
    fxtap_status status = fxtap_reader_query_steps(reader, query, &steps, &n_steps);
    for (size_t first = 0, end; first < n_steps && status == FXTAP_OK; first = end) {
        end = first + 1;
        while (end < n_steps && steps[end]->graph == steps[first]->graph) {
            end++;
        }
        status = read_graph(reader, (fx_graph *)steps[first]->graph, steps + first, end - first, &list);
    }
    fx_index_release(reader);
    fx_free(steps);
    fx_free(list.steps);
    fx_free(list.nodes);
    if (status != FXTAP_OK) {
        fx_free(list.items);
        return status;
    }
    *out = list.items;
    *n_out = list.count;
    return FXTAP_OK;
}

void fxtap_finding_text(const fxtap_finding *finding, char *dst, size_t capacity)
{
    char name[120];
    bool is_in_list = strchr(finding->position, '.') != NULL;
    snprintf(name, sizeof name, "%.80s", finding->arg_name[0] != '\0' ? finding->arg_name : finding->position);
    if (is_in_list && finding->arg_name[0] != '\0') {
        size_t length = strlen(name);
        snprintf(name + length, sizeof name - length, " (%.30s)", finding->position);
    }
    if (finding->kind == FXTAP_FINDING_UNDECLARED_WRITE) {
        snprintf(dst, capacity, "writes to its argument %s without declaring it: the hash of its input changed", name);
    } else {
        snprintf(dst, capacity,
                 "reads memory that was never written: %" PRIu64 " of %" PRIu64 " elements of its argument %s",
                 finding->count, finding->total, name);
    }
}
