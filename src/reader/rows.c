/* rows.c - runs, graphs, steps, nodes and slots from the index. Each row is validated. */
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fxtap/output.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "reader/rows.h"
#include "reader/tree.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/sort.h"

/* Calls `take` for each row of a query. */
typedef fxtap_status (*take_row)(fx_rows *rows, void *context);

static fxtap_status for_each_row(fxtap_reader *reader, fx_rank *rank, const char *sql, const int64_t *parameters,
                                 take_row take, void *context)
{
    fx_rows rows;
    fxtap_status status = fx_rows_begin(reader, rank, sql, parameters, &rows);
    if (status != FXTAP_OK) {
        return status;
    }
    bool more = true;
    while (status == FXTAP_OK) {
        status = fx_rows_next(&rows, &more);
        if (status != FXTAP_OK || !more) {
            break;
        }
        status = take(&rows, context);
    }
    fx_rows_end(&rows);
    return status;
}

/* ---- runs ---- */

typedef struct run_list {
    fxtap_run_info *runs;
    size_t count;
    size_t capacity;
} run_list;

static fxtap_status take_run(fx_rows *rows, void *context)
{
    run_list *list = context;
    if (!fx_grow((void **)&list->runs, &list->capacity, list->count + 1, sizeof *list->runs)) {
        return FXTAP_E_NOMEM;
    }
    fxtap_run_info run = {
        .run = fx_rows_int(rows, 0),
        .pid = fx_rows_int(rows, 1),
        .host = fx_rows_text(rows, 2),
        .versions = fx_rows_text(rows, 3),
        .command = fx_rows_text(rows, 4),
        .type = fx_rows_text(rows, 5),
        .started_us = (uint64_t)fx_rows_int(rows, 6),
        .ended_us = (uint64_t)fx_rows_int(rows, 7),
    };
    if (run.host == NULL || run.versions == NULL || run.command == NULL || run.type == NULL) {
        return FXTAP_E_NOMEM;
    }
    list->runs[list->count++] = run;
    return FXTAP_OK;
}

fxtap_status fx_index_load_runs(fxtap_reader *reader, fx_rank *rank)
{
    static const char sql[] =
        "SELECT id, pid, host, versions, command, type, started_us, ended_us FROM run WHERE id > 0 ORDER BY id";
    run_list list = {0};
    fxtap_status status = for_each_row(reader, rank, sql, NULL, take_run, &list);
    if (status != FXTAP_OK) {
        fx_free(list.runs);
        return status;
    }
    rank->runs = list.runs;
    rank->n_runs = list.count;
    return FXTAP_OK;
}

/* ---- graphs ---- */

typedef struct graph_context {
    fxtap_reader *reader;
    fx_rank *rank;
    fx_texts *folders;
    fx_graph *graph; /* of the previous node */
} graph_context;

static fxtap_graph_kind kind_from_text(const char *text)
{
    static const char *const names[] = {"inference", "forward", "backward", "subgraph"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            return (fxtap_graph_kind)((int)FXTAP_GRAPH_INFERENCE + (int)i);
        }
    }
    return (fxtap_graph_kind)0;
}

static fxtap_status take_graph(fx_rows *rows, void *context)
{
    graph_context *at = context;
    int64_t number = fx_rows_int(rows, 2);
    if (number < 0 || number > UINT32_MAX || (at->reader->has_only_graph && number != at->reader->only_graph)) {
        return FXTAP_OK;
    }
    const char *kind = fx_rows_text(rows, 3);
    fx_graph *graph;
    fxtap_status status =
        kind != NULL ? fx_graph_create(at->reader, at->rank, (uint32_t)number, &graph) : FXTAP_E_NOMEM;
    if (status != FXTAP_OK) {
        return status;
    }
    graph->id = fx_rows_int(rows, 0);
    graph->info.run = fx_rows_int(rows, 1);
    graph->info.kind = kind_from_text(kind);
    graph->info.has_keys = true;
    graph->info.strict_key = fx_rows_hash(rows, 4);
    graph->info.structural_key = fx_rows_hash(rows, 5);
    graph->info.occurrence = (uint32_t)fx_rows_int(rows, 6);
    return FXTAP_OK;
}

static int compare_graph_id(const void *key, const void *item)
{
    int64_t id = *(const int64_t *)key, other = (*(fx_graph *const *)item)->id;
    return id < other ? -1 : id > other;
}

static void add_to_range(fx_id_range *range, int64_t id)
{
    range->first = range->last == 0 || id < range->first ? id : range->first;
    range->last = id > range->last ? id : range->last;
}

static fx_graph *graph_by_id(const fx_rank *rank, int64_t id)
{
    fx_graph **found =
        rank->n_graphs == 0 ? NULL : bsearch(&id, rank->graphs, rank->n_graphs, sizeof *rank->graphs, compare_graph_id);
    return found != NULL ? *found : NULL;
}

static fxtap_status count_node(fx_rows *rows, void *context)
{
    graph_context *at = context;
    int64_t id = fx_rows_int(rows, 0), graph_id = fx_rows_int(rows, 1);
    if (at->graph == NULL || at->graph->id != graph_id) {
        at->graph = graph_by_id(at->rank, graph_id);
    }
    if (at->graph != NULL) { /* NULL for a graph that is not read */
        add_to_range(&at->graph->node_ids, id);
        at->graph->info.n_nodes++;
        at->graph->info.n_dumped += fx_rows_int(rows, 2) != 0;
    }
    return FXTAP_OK;
}

/*
 * Nodes are found by the range of their ids, because the writer gives the nodes of a graph consecutive ids. Tables have
 * no SQL indexes: these would cost the writer time, and a reader adds nothing to a file.
 */
fxtap_status fx_index_load_graphs(fxtap_reader *reader, fx_rank *rank)
{
    static const char sql[] = "SELECT id, run_id, graph, kind, strict_key, structural_key, occurrence FROM graph"
                              " WHERE id > 0 AND run_id > 0 ORDER BY id";
    static const char nodes_sql[] = "SELECT id, graph_id, skipped IS NULL FROM node WHERE id > 0";
    graph_context context = {.reader = reader, .rank = rank};
    fxtap_status status = for_each_row(reader, rank, sql, NULL, take_graph, &context);
    return status == FXTAP_OK ? for_each_row(reader, rank, nodes_sql, NULL, count_node, &context) : status;
}

/* ---- steps ---- */

/* Whether `folder` is "graph_1/STEP" with this graph's number and nothing else; *name_out is STEP. */
static bool is_folder_of(const fx_graph *graph, const char *folder, const char **name_out)
{
    char expected[32];
    int n = snprintf(expected, sizeof expected, "graph_%u/", (unsigned)graph->info.graph);
    fxtap_step_state state;
    int64_t number;
    *name_out = folder + n;
    return strncmp(folder, expected, (size_t)n) == 0 && fx_step_folder_parse(folder + n, &state, &number);
}

/* The absolute path of a step's folder, which the scan of folders then skips. NULL: no memory. */
static const char *step_path(graph_context *at, const fx_graph *graph, const char *name)
{
    const char *path = fx_reader_join(at->reader, graph->info.path, name);
    return path != NULL && fx_texts_add(at->folders, path, strlen(path)) != NULL ? path : NULL;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Rows are committed before the folder is renamed: while the partial folder exists, the step is partial. */
static fxtap_status find_partial(graph_context *at, const fx_graph *graph, const char *name, fx_step *step)
{
    const char *path = step_path(at, graph, name);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (is_folder(path)) {
        step->final = step->info.folder;
        step->info.folder = path;
        step->info.state = FXTAP_STEP_PARTIAL;
        step->info.step = -1;
    }
    return FXTAP_OK;
}

static fxtap_status fill_step(graph_context *at, fx_rows *rows, const fx_graph *graph, const char *folder,
                              const char *partial, fx_step *step)
{
    step->id = fx_rows_int(rows, 0);
    step->info.step = fx_rows_int(rows, 2);
    step->info.call = fx_rows_int(rows, 3);
    step->info.folder = folder[0] != '\0' ? step_path(at, graph, folder) : "";
    step->info.reason = fx_rows_text(rows, 6);
    step->info.started_us = (uint64_t)fx_rows_int(rows, 7);
    step->info.ended_us = (uint64_t)fx_rows_int(rows, 8);
    const char *state = fx_rows_text(rows, 9);
    if (step->info.folder == NULL || step->info.reason == NULL || state == NULL) {
        return FXTAP_E_NOMEM;
    }
    bool has_failed = strcmp(state, "failed") == 0;
    step->info.state = has_failed ? FXTAP_STEP_FAILED : FXTAP_STEP_WHOLE;
    return partial[0] != '\0' && !has_failed ? find_partial(at, graph, partial, step) : FXTAP_OK;
}

static fxtap_status take_step(fx_rows *rows, void *context)
{
    graph_context *at = context;
    fx_graph *graph = graph_by_id(at->rank, fx_rows_int(rows, 1));
    if (graph == NULL) {
        return FXTAP_OK; /* of a graph that is not read */
    }
    const char *folder = fx_rows_text(rows, 4), *partial = fx_rows_text(rows, 5);
    if (folder == NULL || partial == NULL) {
        return FXTAP_E_NOMEM;
    }
    if ((folder[0] != '\0' && !is_folder_of(graph, folder, &folder)) ||
        (partial[0] != '\0' && !is_folder_of(graph, partial, &partial))) {
        return fx_reader_warn(at->reader, "%s: the index has a step with an invalid folder name: \"%.80s\"",
                              at->rank->info.path, folder);
    }
    const char *only = at->reader->only_step;
    if (only != NULL && strcmp(folder, only) != 0 && strcmp(partial, only) != 0) {
        return FXTAP_OK;
    }
    fx_step step = {0};
    fxtap_status status = fill_step(at, rows, graph, folder, partial, &step);
    return status == FXTAP_OK ? fx_graph_add_step(at->reader, graph, &step) : status;
}

/* Graphs must be in order of id, as they were loaded. */
fxtap_status fx_index_load_steps(fxtap_reader *reader, fx_rank *rank, fx_texts *folders)
{
    static const char sql[] = "SELECT id, graph_id, step, call, folder, partial, reason, started_us, ended_us,"
                              " state FROM step WHERE id > 0 AND step >= 0 ORDER BY id";
    graph_context context = {.reader = reader, .rank = rank, .folders = folders};
    return for_each_row(reader, rank, sql, NULL, take_step, &context);
}

/* ---- nodes ---- */

typedef struct node_context {
    fxtap_reader *reader;
    fx_graph *graph;
    fx_node *last;
    int64_t last_position;
    bool is_unordered;
    size_t slots_capacity;
    const fx_node *const *by_id;
} node_context;

static bool fill_node(fx_node *node, const fx_rows *rows)
{
    fxtap_node_info *info = &node->info;
    info->name = fx_rows_text(rows, 1);
    info->target = fx_rows_text(rows, 2);
    node->stem = fx_rows_text(rows, 3);
    info->source_file = fx_rows_text(rows, 4);
    int64_t line = fx_rows_int(rows, 5);
    info->source_line = line >= 0 && line <= INT32_MAX ? (int32_t)line : 0;
    info->source_function = fx_rows_text(rows, 6);
    info->source_code = fx_rows_text(rows, 7);
    info->stack = fx_rows_text(rows, 8);
    info->module_path = fx_rows_text(rows, 9);
    info->module_type = fx_rows_text(rows, 10);
    info->flags = (uint32_t)fx_rows_int(rows, 11);
    info->skipped = fx_rows_is_null(rows, 12) ? NULL : fx_rows_text(rows, 12);
    return info->name != NULL && info->target != NULL && node->stem != NULL && info->source_file != NULL &&
           info->source_function != NULL && info->source_code != NULL && info->stack != NULL &&
           info->module_path != NULL && info->module_type != NULL &&
           (info->skipped != NULL || fx_rows_is_null(rows, 12));
}

static fxtap_status take_node(fx_rows *rows, void *context)
{
    node_context *at = context;
    fx_node *node = fx_arena_calloc(&at->reader->arena, 1, sizeof *node);
    if (node == NULL || !fill_node(node, rows)) {
        return FXTAP_E_NOMEM;
    }
    node->id = fx_rows_int(rows, 0);
    node->info.graph = &at->graph->info;
    node->stem_length = strlen(node->stem);
    if (node->stem_length > 0) {
        fx_texts_entry *entry = fx_texts_add(&at->graph->stems, node->stem, node->stem_length);
        if (entry == NULL) {
            return FXTAP_E_NOMEM;
        }
        entry->value = node;
    }
    fx_node **link = at->last != NULL ? &at->last->next : &at->graph->first_node;
    *link = node;
    at->last = node;
    at->graph->n_nodes++;
    int64_t position = fx_rows_int(rows, 13);
    at->is_unordered = at->is_unordered || position < at->last_position;
    at->last_position = position;
    node->info.order = (size_t)position; /* until the nodes are numbered */
    return FXTAP_OK;
}

static int compare_node_ids(const void *a, const void *b)
{
    const fx_node *x = *(fx_node *const *)a, *y = *(fx_node *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_orders(const void *a, const void *b)
{
    const fx_node *x = *(fx_node *const *)a, *y = *(fx_node *const *)b;
    return x->info.order != y->info.order ? (x->info.order < y->info.order ? -1 : 1) : compare_node_ids(a, b);
}

static fxtap_status sort_nodes(fx_graph *graph)
{
    fx_node **nodes = fx_calloc(graph->n_nodes, sizeof *nodes);
    size_t n = 0;
    if (nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (fx_node *node = graph->first_node; node != NULL; node = node->next) {
        nodes[n++] = node;
    }
    fx_sort(nodes, n, sizeof *nodes, compare_orders);
    graph->first_node = nodes[0];
    for (size_t i = 0; i < n; i++) {
        nodes[i]->next = i + 1 < n ? nodes[i + 1] : NULL;
    }
    fx_free(nodes);
    return FXTAP_OK;
}

/* In the order of rows: ids and positions that the writer assigns ascend together. */
fxtap_status fx_index_load_nodes(fxtap_reader *reader, fx_graph *graph)
{
    static const char sql[] =
        "SELECT id, name, target, stem, source_file, source_line, source_function, source_code, stack, module_path,"
        " module_type, flags, skipped, position FROM node WHERE id BETWEEN ?1 AND ?2 AND graph_id = ?3 ORDER BY id";
    node_context context = {.reader = reader, .graph = graph};
    const int64_t parameters[] = {graph->node_ids.first, graph->node_ids.last, graph->id};
    fxtap_status status = for_each_row(reader, graph->rank, sql, parameters, take_node, &context);
    return status == FXTAP_OK && context.is_unordered ? sort_nodes(graph) : status;
}

/* ---- slots ---- */

static fx_node *node_by_id(const fx_node *const *nodes, size_t n_nodes, int64_t id)
{
    fx_node key = {.id = id};
    const fx_node *place = &key;
    const fx_node *const *found =
        n_nodes > 0 ? bsearch(&place, nodes, n_nodes, sizeof(fx_node *), compare_node_ids) : NULL;
    return found != NULL ? (fx_node *)*found : NULL;
}

/* The full "NODE-TARGET.IO.POSITION", unique among slots: usually the file's prefix without its last dot. */
static bool name_slot(fxtap_reader *reader, fx_slot *slot)
{
    const fxtap_node_info *node = &slot->node->info;
    const char *const parts[] = {node->name, "-", node->target, ".", fx_io_text(slot->io), ".", slot->position};
    size_t lengths[7], length = 0;
    for (size_t i = 0; i < 7; i++) {
        lengths[i] = strlen(parts[i]);
        length += lengths[i];
    }
    char *at = fx_arena_alloc(reader->texts.arena, length + 1);
    slot->name = at;
    for (size_t i = 0; i < 7 && at != NULL; i++) {
        memcpy(at, parts[i], lengths[i] + 1);
        at += lengths[i];
    }
    return at != NULL;
}

/* A file's name begins with it, so it must not contain a path. */
static bool is_prefix(const char *text)
{
    size_t length = strlen(text);
    return length > 1 && length < NAME_MAX && text[length - 1] == '.' && strchr(text, '/') == NULL;
}

static fxtap_status take_slot(fx_rows *rows, void *context)
{
    node_context *at = context;
    fx_graph *graph = at->graph;
    int64_t io = fx_rows_int(rows, 2);
    fx_slot slot = {.id = fx_rows_int(rows, 0), .io = (fxtap_io)io};
    slot.node = node_by_id(at->by_id, graph->n_nodes, fx_rows_int(rows, 1));
    if (slot.node == NULL) {
        return FXTAP_OK; /* of another graph */
    }
    slot.position = fx_rows_text(rows, 3);
    slot.arg_name = fx_rows_text(rows, 4);
    slot.prefix = fx_rows_text(rows, 5);
    if (slot.position == NULL || slot.arg_name == NULL || slot.prefix == NULL) {
        return FXTAP_E_NOMEM;
    }
    slot.prefix_length = strlen(slot.prefix);
    if (io < FXTAP_INPUT || io > FXTAP_INOUT || !is_prefix(slot.prefix)) {
        return fx_reader_warn(at->reader, "%s: the index has invalid slots", graph->rank->info.path);
    }
    if (!name_slot(at->reader, &slot) ||
        !fx_grow((void **)&graph->slots, &at->slots_capacity, graph->n_slots + 1, sizeof *graph->slots)) {
        return FXTAP_E_NOMEM;
    }
    graph->slots[graph->n_slots++] = slot;
    return FXTAP_OK;
}

static int compare_slot_ids(const void *a, const void *b)
{
    const fx_slot *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_slots(const void *a, const void *b)
{
    const fx_slot *x = *(fx_slot *const *)a, *y = *(fx_slot *const *)b;
    if (x->node->info.order != y->node->info.order) {
        return x->node->info.order < y->node->info.order ? -1 : 1;
    }
    if (x->io != y->io) {
        return x->io < y->io ? -1 : 1;
    }
    int order = fx_position_compare(x->position, y->position);
    return order != 0 ? order : x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts by id, the order of a step's rows, and numbers the slots of each graph: tensors are sorted by that number. */
static fxtap_status order_slots(fx_graph *graph)
{
    if (graph->n_slots > 1) {
        fx_sort(graph->slots, graph->n_slots, sizeof *graph->slots, compare_slot_ids);
    }
    fx_slot **sorted = fx_calloc(graph->n_slots, sizeof *sorted);
    if (sorted == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < graph->n_slots; i++) {
        sorted[i] = &graph->slots[i];
    }
    if (graph->n_slots > 1) {
        fx_sort(sorted, graph->n_slots, sizeof *sorted, compare_slots);
    }
    for (size_t i = 0; i < graph->n_slots; i++) {
        sorted[i]->order = i;
    }
    fx_free(sorted);
    return FXTAP_OK;
}

static int compare_node_ranges(const void *a, const void *b)
{
    const fx_id_range *x = &(*(fx_graph *const *)a)->node_ids, *y = &(*(fx_graph *const *)b)->node_ids;
    return x->last < y->first ? -1 : x->first > y->last; /* equal if they overlap */
}

static fxtap_status take_slot_id(fx_rows *rows, void *context)
{
    const fx_rank *sorted = context;
    const fx_graph key = {.node_ids = {fx_rows_int(rows, 1), fx_rows_int(rows, 1)}}, *place = &key;
    fx_graph **found = bsearch(&place, sorted->graphs, sorted->n_graphs, sizeof *sorted->graphs, compare_node_ranges);
    if (found != NULL) {
        add_to_range(&(*found)->slot_ids, fx_rows_int(rows, 0));
    }
    return FXTAP_OK;
}

/* If the ids of the graphs' nodes are not consecutive, as the writer assigns them, a slot may belong to any graph. */
static fxtap_status find_slot_ids(fxtap_reader *reader, fx_rank *rank)
{
    fx_rank sorted = {.graphs = fx_calloc(rank->n_graphs + 1, sizeof *sorted.graphs)};
    if (sorted.graphs == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < rank->n_graphs; i++) {
        rank->graphs[i]->slot_ids = (fx_id_range){0, 0};
        if (rank->graphs[i]->node_ids.last != 0) {
            sorted.graphs[sorted.n_graphs++] = rank->graphs[i];
        }
    }
    qsort(sorted.graphs, sorted.n_graphs, sizeof *sorted.graphs, compare_node_ranges);
    bool is_apart = sorted.n_graphs > 1;
    for (size_t i = 1; i < sorted.n_graphs && is_apart; i++) {
        is_apart = sorted.graphs[i - 1]->node_ids.last < sorted.graphs[i]->node_ids.first;
    }
    fxtap_status status = FXTAP_OK;
    if (is_apart) {
        status = for_each_row(reader, rank, "SELECT id, node_id FROM slot WHERE id > 0", NULL, take_slot_id, &sorted);
    }
    for (size_t i = 0; i < sorted.n_graphs && !is_apart; i++) {
        sorted.graphs[i]->slot_ids = (fx_id_range){1, INT64_MAX};
    }
    fx_free(sorted.graphs);
    rank->has_slot_ids = status == FXTAP_OK;
    return status;
}

fxtap_status fx_index_load_slots(fxtap_reader *reader, fx_graph *graph)
{
    static const char sql[] = "SELECT id, node_id, io, position, arg_name, prefix FROM slot"
                              " WHERE id BETWEEN ?1 AND ?2 AND node_id BETWEEN ?3 AND ?4";
    if (graph->has_slots) {
        return FXTAP_OK;
    }
    fxtap_status status = graph->rank->has_slot_ids ? FXTAP_OK : find_slot_ids(reader, graph->rank);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_node **by_id = fx_calloc(graph->n_nodes, sizeof *by_id);
    if (by_id == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        by_id[i] = (fx_node *)graph->nodes[i];
    }
    if (graph->n_nodes > 1) {
        fx_sort(by_id, graph->n_nodes, sizeof *by_id, compare_node_ids);
    }
    fx_free(graph->slots);
    graph->slots = NULL;
    graph->n_slots = 0;
    node_context context = {.reader = reader, .graph = graph, .by_id = (const fx_node *const *)by_id};
    const int64_t parameters[] = {graph->slot_ids.first, graph->slot_ids.last, graph->node_ids.first,
                                  graph->node_ids.last};
    status = for_each_row(reader, graph->rank, sql, parameters, take_slot, &context);
    fx_free(by_id);
    if (status == FXTAP_OK) {
        status = order_slots(graph);
    }
    graph->has_slots = status == FXTAP_OK;
    return status;
}

/* ---- the record ---- */

static fxtap_status take_record(fx_rows *rows, void *context)
{
    fx_graph *graph = context;
    const void *bytes = sqlite3_column_blob(rows->statement, 0);
    int n_bytes = sqlite3_column_bytes(rows->statement, 0);
    if (graph->record != NULL) {
        return fx_error_at(FXTAP_E_DATABASE, graph->info.path, "the index has two records of the graph");
    }
    return fxtap_graph_deserialise(bytes, (size_t)n_bytes, &graph->record);
}

fxtap_status fx_index_load_record(fxtap_reader *reader, fx_graph *graph)
{
    static const char sql[] = "SELECT record FROM graph WHERE id = ?1 AND length(record) > 0";
    fxtap_status status = FXTAP_E_DATABASE;
    for (int tries = 0; tries < 2 && status == FXTAP_E_DATABASE; tries++) {
        status = for_each_row(reader, graph->rank, sql, &graph->id, take_record, graph);
        if (status != FXTAP_OK) {
            fxtap_graph_free(graph->record); /* from the previous rows */
            graph->record = NULL;
            fx_index_release(reader);
        }
    }
    if (status == FXTAP_OK && graph->record == NULL) {
        return fx_error_at(FXTAP_E_NOT_FOUND, graph->info.path, "the index has no record of the graph");
    }
    return status;
}
