/* tree.c - the graphs, steps and nodes of a rank, merged from the index and the folders. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/folder.h"
#include "reader/index.h"
#include "reader/names.h"
#include "reader/rows.h"
#include "reader/tree.h"
#include "util/error.h"
#include "util/memory.h"

/* ---- graphs and steps ---- */

fxtap_status fx_graph_create(fxtap_reader *reader, fx_rank *rank, uint32_t number, fx_graph **out)
{
    if (!fx_grow((void **)&rank->graphs, &rank->graphs_capacity, rank->n_graphs + 1, sizeof *rank->graphs)) {
        return FXTAP_E_NOMEM;
    }
    fx_graph *graph = fx_arena_calloc(&reader->arena, 1, sizeof *graph);
    if (graph == NULL) {
        return FXTAP_E_NOMEM;
    }
    char name[32];
    snprintf(name, sizeof name, "graph_%u", (unsigned)number);
    graph->info.path = reader->has_only_graph ? reader->only_graph_path : fx_reader_join(reader, rank->info.path, name);
    if (graph->info.path == NULL) {
        return FXTAP_E_NOMEM;
    }
    graph->rank = rank;
    graph->info.graph = number;
    graph->stems.arena = &reader->arena;
    for (graph->info.rank_i = 0; reader->ranks[graph->info.rank_i] != rank; graph->info.rank_i++) {
    }
    rank->graphs[rank->n_graphs++] = graph;
    *out = graph;
    return FXTAP_OK;
}

fxtap_status fx_graph_add_step(fxtap_reader *reader, fx_graph *graph, const fx_step *step)
{
    if (!fx_grow((void **)&graph->steps, &graph->steps_capacity, graph->n_steps + 1, sizeof *graph->steps)) {
        return FXTAP_E_NOMEM;
    }
    fx_step *copy = fx_arena_calloc(&reader->arena, 1, sizeof *copy);
    if (copy == NULL) {
        return FXTAP_E_NOMEM;
    }
    *copy = *step;
    copy->info.graph = &graph->info;
    graph->steps[graph->n_steps++] = &copy->info;
    graph->info.n_steps += step->info.state == FXTAP_STEP_WHOLE;
    return FXTAP_OK;
}

/* The newest graph with that number, to which folders that are not in the index are assigned. */
static fxtap_status newest_graph(fxtap_reader *reader, fx_rank *rank, uint32_t number, fx_graph **out)
{
    fx_graph *newest = NULL;
    for (size_t i = 0; i < rank->n_graphs; i++) {
        fx_graph *graph = rank->graphs[i];
        if (graph->info.graph == number && (newest == NULL || graph->info.run >= newest->info.run)) {
            newest = graph;
        }
    }
    if (newest == NULL) {
        return fx_graph_create(reader, rank, number, out);
    }
    *out = newest;
    return FXTAP_OK;
}

/* ---- folders ---- */

/* Marks steps whose folder is `path` or below it as reached by a link. */
static void mark_links(fx_rank *rank, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < rank->n_graphs; i++) {
        for (size_t j = 0; j < rank->graphs[i]->n_steps; j++) {
            fx_step *step = (fx_step *)rank->graphs[i]->steps[j];
            if (strncmp(step->info.folder, path, length) == 0 &&
                (step->info.folder[length] == '\0' || step->info.folder[length] == '/')) {
                step->is_link = true;
            }
        }
    }
}

static fxtap_status refuse_link(fxtap_reader *reader, fx_rank *rank, const char *path)
{
    mark_links(rank, path);
    return fx_reader_warn(reader, "%s: a symbolic link, not followed", path);
}

static fxtap_status add_found_step(fxtap_reader *reader, fx_graph *graph, const char *name, const char *path)
{
    fx_step step = {.info = {.state = FXTAP_STEP_WHOLE, .call = -1, .folder = path, .reason = ""}};
    int64_t number = 0;
    fx_step_folder_parse(name, &step.info.state, &number);
    bool is_partial = step.info.state == FXTAP_STEP_PARTIAL;
    step.info.step = is_partial ? -1 : number;
    return fx_graph_add_step(reader, graph, &step);
}

/* `folders`: absolute paths of the folders of steps in the index. */
static fxtap_status scan_step(fxtap_reader *reader, fx_rank *rank, uint32_t number, const char *graph_path,
                              const fx_entry *entry, const fx_texts *folders)
{
    fxtap_step_state state;
    int64_t step;
    if ((entry->type != DT_DIR && entry->type != DT_LNK) || !fx_step_folder_parse(entry->name, &state, &step)) {
        return FXTAP_OK;
    }
    const char *path = fx_reader_join(reader, graph_path, entry->name);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (entry->type == DT_LNK) {
        return refuse_link(reader, rank, path);
    }
    if (fx_texts_find(folders, path, strlen(path)) != NULL) {
        return FXTAP_OK;
    }
    fx_graph *graph;
    fxtap_status status = newest_graph(reader, rank, number, &graph);
    return status != FXTAP_OK ? status : add_found_step(reader, graph, entry->name, path);
}

static fxtap_status scan_graph(fxtap_reader *reader, fx_rank *rank, uint32_t number, const char *path,
                               const fx_texts *folders)
{
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(path, &listing);
    if (status == FXTAP_E_IO) {
        return fx_reader_leave_out(reader);
    }
    if (status == FXTAP_OK) {
        fx_graph *graph; /* a graph without steps is added too */
        status = newest_graph(reader, rank, number, &graph);
    }
    for (size_t i = 0; i < listing.count && status == FXTAP_OK; i++) {
        status = scan_step(reader, rank, number, path, &listing.entries[i], folders);
    }
    fx_listing_clear(&listing);
    return status;
}

static fxtap_status scan_rank(fxtap_reader *reader, fx_rank *rank, const fx_texts *folders)
{
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(rank->info.path, &listing);
    if (status == FXTAP_E_IO) {
        return fx_reader_leave_out(reader);
    }
    for (size_t i = 0; i < listing.count && status == FXTAP_OK; i++) {
        const fx_entry *entry = &listing.entries[i];
        uint32_t number;
        if ((entry->type != DT_DIR && entry->type != DT_LNK) || !fx_graph_folder_parse(entry->name, &number)) {
            continue;
        }
        const char *path = fx_reader_join(reader, rank->info.path, entry->name);
        if (path == NULL) {
            status = FXTAP_E_NOMEM;
        } else if (entry->type == DT_LNK) {
            status = refuse_link(reader, rank, path);
        } else {
            status = scan_graph(reader, rank, number, path, folders);
        }
    }
    fx_listing_clear(&listing);
    return status;
}

/* Opened at a graph or a step: scans only that. */
static fxtap_status scan_only(fxtap_reader *reader, fx_rank *rank, const fx_texts *folders)
{
    if (reader->only_step == NULL) {
        return scan_graph(reader, rank, reader->only_graph, reader->only_graph_path, folders);
    }
    if (fx_texts_find(folders, reader->path, strlen(reader->path)) != NULL) {
        return FXTAP_OK;
    }
    fx_graph *graph;
    fxtap_status status = newest_graph(reader, rank, reader->only_graph, &graph);
    return status != FXTAP_OK ? status : add_found_step(reader, graph, reader->only_step, reader->path);
}

/* ---- a rank ---- */

static int compare_steps(const void *a, const void *b)
{
    const fxtap_step_info *x = *(const fxtap_step_info *const *)a, *y = *(const fxtap_step_info *const *)b;
    bool is_partial_x = x->state == FXTAP_STEP_PARTIAL, is_partial_y = y->state == FXTAP_STEP_PARTIAL;
    if (is_partial_x != is_partial_y) {
        return is_partial_x ? 1 : -1;
    }
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    if (x->state != y->state) {
        return x->state < y->state ? -1 : 1;
    }
    return fx_natural_compare(x->folder, y->folder);
}

static int compare_graphs(const void *a, const void *b)
{
    const fxtap_graph_info *x = &(*(fx_graph *const *)a)->info, *y = &(*(fx_graph *const *)b)->info;
    if (x->run != y->run) {
        return x->run < y->run ? -1 : 1;
    }
    return x->graph < y->graph ? -1 : x->graph > y->graph;
}

static void sort_rank(fx_rank *rank)
{
    if (rank->n_graphs > 1) {
        qsort(rank->graphs, rank->n_graphs, sizeof(fx_graph *), compare_graphs);
    }
    for (size_t i = 0; i < rank->n_graphs; i++) {
        fx_graph *graph = rank->graphs[i];
        if (graph->n_steps > 1) {
            qsort(graph->steps, graph->n_steps, sizeof *graph->steps, compare_steps);
        }
    }
}

void fx_rank_clear(fx_rank *rank)
{
    for (size_t i = 0; i < rank->n_graphs; i++) {
        fx_graph *graph = rank->graphs[i];
        fxtap_graph_free(graph->record);
        fx_texts_clear(&graph->stems);
        for (size_t j = 0; j < graph->n_steps; j++) {
            fx_step_drop_files((fx_step *)graph->steps[j]);
        }
        fx_free(graph->steps);
        fx_free(graph->slots);
    }
    fx_free(rank->graphs);
    rank->graphs = NULL;
    rank->n_graphs = rank->graphs_capacity = 0;
    rank->has_slot_ids = false;
}

static fxtap_status load_from_index(fxtap_reader *reader, fx_rank *rank, fx_texts *folders)
{
    fxtap_status status = fx_index_load_graphs(reader, rank);
    return status != FXTAP_OK ? status : fx_index_load_steps(reader, rank, folders);
}

static void forget_rank(fxtap_reader *reader, fx_rank *rank, fx_texts *folders)
{
    fx_rank_clear(rank);
    fx_texts_clear(folders);
    fx_index_release(reader);
}

fxtap_status fx_rank_load(fxtap_reader *reader, fx_rank *rank)
{
    if (rank->is_loaded) {
        return FXTAP_OK;
    }
    fx_texts folders = {.arena = &reader->arena};
    fxtap_status status = FXTAP_OK;
    if (rank->info.has_index) {
        status = load_from_index(reader, rank, &folders);
        if (status == FXTAP_E_DATABASE) { /* SQLite may report the same for a failed read */
            forget_rank(reader, rank, &folders);
            status = load_from_index(reader, rank, &folders);
        }
        if (status == FXTAP_E_DATABASE) {
            forget_rank(reader, rank, &folders);
            rank->info.has_index = false;
            status = fx_reader_warn(reader, "%s; reading by file names instead", fxtap_error_message());
        }
    }
    if (status == FXTAP_OK) {
        status = reader->has_only_graph ? scan_only(reader, rank, &folders) : scan_rank(reader, rank, &folders);
    }
    fx_texts_clear(&folders);
    if (status != FXTAP_OK) {
        fx_rank_clear(rank);
        return status;
    }
    sort_rank(rank);
    rank->is_loaded = true;
    return FXTAP_OK;
}

static bool is_meant_when_alone(const fxtap_reader *reader, const fx_graph *graph)
{
    if (!reader->has_only_graph || reader->only_step == NULL) {
        return true;
    }
    for (size_t i = 0; i < graph->n_steps; i++) {
        if (strcmp(fx_path_base(graph->steps[i]->folder), reader->only_step) == 0) {
            return true;
        }
    }
    return false;
}

int64_t fx_rank_latest_run(const fxtap_reader *reader, const fx_rank *rank)
{
    int64_t latest = 0;
    for (size_t i = 0; i < rank->n_graphs; i++) {
        const fx_graph *graph = rank->graphs[i];
        if (graph->info.run > latest && is_meant_when_alone(reader, graph)) {
            latest = graph->info.run;
        }
    }
    return latest;
}

/* ---- nodes ---- */

fxtap_status fx_graph_number_nodes(fxtap_reader *reader, fx_graph *graph)
{
    /* A new array, because the caller may have the old one. */
    const fxtap_node_info **nodes = fx_arena_calloc(&reader->arena, 1, graph->n_nodes * sizeof *nodes);
    if (nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    graph->nodes = nodes;
    size_t order = 0;
    for (fx_node *node = graph->first_node; node != NULL; node = node->next) {
        node->info.order = order;
        nodes[order++] = &node->info;
    }
    return FXTAP_OK;
}

/* Restores the state before loading, which may be repeated after a failure. */
static void reset_nodes(fx_graph *graph)
{
    graph->first_node = NULL;
    graph->n_nodes = 0;
    fx_texts_clear(&graph->stems);
    for (size_t i = 0; i < graph->n_steps; i++) {
        ((fx_step *)graph->steps[i])->is_read = false;
    }
}

/* The graph is read by file names from now on. */
static fxtap_status forget_index(fxtap_reader *reader, fx_graph *graph)
{
    reset_nodes(graph);
    graph->id = 0;
    for (size_t i = 0; i < graph->n_steps; i++) {
        ((fx_step *)graph->steps[i])->id = 0;
    }
    return fx_reader_warn(reader, "%s; reading by file names instead", fxtap_error_message());
}

fxtap_status fx_graph_load_nodes(fxtap_reader *reader, fx_graph *graph)
{
    if (graph->has_nodes) {
        return FXTAP_OK;
    }
    reset_nodes(graph);
    fxtap_status status = FXTAP_OK;
    if (graph->id != 0) {
        status = fx_index_load_nodes(reader, graph);
        if (status == FXTAP_E_DATABASE) {
            reset_nodes(graph);
            fx_index_release(reader);
            status = fx_index_load_nodes(reader, graph);
        }
        if (status == FXTAP_E_DATABASE) {
            status = forget_index(reader, graph);
        }
    }
    for (size_t i = 0; i < graph->n_steps && status == FXTAP_OK; i++) {
        fx_step *step = (fx_step *)graph->steps[i];
        if (step->id == 0) {
            status = fx_step_read_files(reader, graph, step);
        }
    }
    if (status == FXTAP_OK) {
        status = fx_graph_number_nodes(reader, graph);
    }
    if (status == FXTAP_OK) {
        graph->has_nodes = true;
        if (graph->id == 0) {
            graph->info.n_nodes = graph->info.n_dumped = graph->n_nodes;
        }
    }
    return status;
}
