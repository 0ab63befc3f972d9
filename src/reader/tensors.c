/* tensors.c - lists of the tensors that a query selects, in order. */
#include <stdlib.h>
#include <string.h>

#include "fxtap/output.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "reader/names.h"
#include "reader/rows.h"
#include "reader/tensors.h"
#include "reader/tree.h"
#include "reader/values.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/sort.h"

#define STAMP_TAIL_BYTES ((size_t)25) /* .YYYYMMDDHHMMSSffffff.npy */

bool fx_query_has(const fxtap_tensor_query *query, const fxtap_node_info *node, const char *tensor_name, fxtap_io io)
{
    if (query->io >= 0 && query->io != (int)io) {
        return false;
    }
    const char *pattern = query->pattern;
    if (pattern == NULL || fxtap_glob_match(pattern, tensor_name)) {
        return true;
    }
    return node != NULL && fxtap_node_matches(pattern, node);
}

fx_tensor *fx_tensor_list_add(fxtap_tensor_list *list)
{
    if (!fx_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        return NULL;
    }
    fx_tensor *tensor = fx_arena_calloc(&list->arena, 1, sizeof *tensor);
    if (tensor != NULL) {
        tensor->info.layout = "";
        tensor->info.device = "";
        tensor->info.arg_name = "";
        tensor->info.position = "";
        list->items[list->count++] = tensor;
    }
    return tensor;
}

const char *fx_tensor_list_path(fxtap_tensor_list *list, const char *folder, const char *name, size_t name_length)
{
    size_t folder_length = strlen(folder);
    char *path = fx_arena_calloc(&list->arena, 1, folder_length + name_length + 2);
    if (path != NULL) {
        memcpy(path, folder, folder_length);
        path[folder_length] = '/';
        memcpy(path + folder_length + 1, name, name_length);
    }
    return path;
}

/* ---- from file names ---- */

static fxtap_status add_file(fxtap_reader *reader, const fx_step *step, const fx_file *file,
                             const fxtap_tensor_query *query, fxtap_tensor_list *list)
{
    fx_name parts = {0};
    const fx_name *parsed = &parts;
    fx_name_parse(file->name, strlen(file->name), &parts); /* succeeded when the folder was read */
    const char *name = fx_texts_keep(&reader->texts, file->name, parsed->name_length);
    if (name == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (!fx_query_has(query, &file->node->info, name, parsed->io)) {
        return FXTAP_OK;
    }
    fx_tensor *tensor = fx_tensor_list_add(list);
    if (tensor == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_tensor_info *info = &tensor->info;
    info->step = &step->info;
    info->node = &file->node->info;
    info->io = parsed->io;
    info->name = name;
    info->stamp_us = parsed->stamp_us;
    info->position = fx_texts_keep(&reader->texts, file->name + parsed->position_offset, parsed->position_length);
    info->path = fx_tensor_list_path(list, step->info.folder, file->name, parsed->name_length + STAMP_TAIL_BYTES);
    return info->position != NULL && info->path != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

static fxtap_status add_files(fxtap_reader *reader, const fx_step *step, const fxtap_tensor_query *query,
                              fxtap_tensor_list *list)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < step->n_files && status == FXTAP_OK; i++) {
        const fx_file *file = &step->files[i];
        if (query->run == -1 || file->run + 1 == step->n_runs) {
            status = add_file(reader, step, file, query, list);
        }
    }
    return status;
}

static int compare_named(const void *a, const void *b)
{
    const fxtap_tensor_info *x = &(*(fx_tensor *const *)a)->info, *y = &(*(fx_tensor *const *)b)->info;
    if (x->node->order != y->node->order) {
        return x->node->order < y->node->order ? -1 : 1;
    }
    if (x->io != y->io) {
        return x->io < y->io ? -1 : 1;
    }
    int order = fx_position_compare(x->position, y->position);
    if (order != 0) {
        return order;
    }
    return x->stamp_us < y->stamp_us ? -1 : x->stamp_us > y->stamp_us;
}

static int compare_indexed(const void *a, const void *b)
{
    const fx_tensor *x = *(fx_tensor *const *)a, *y = *(fx_tensor *const *)b;
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    return x->info.stamp_us < y->info.stamp_us ? -1 : x->info.stamp_us > y->info.stamp_us;
}

/* ---- steps, graphs, ranks ---- */

/* Lists the rows of an indexed step; if the index turns out to be damaged, the folder is read instead. */
static fxtap_status add_indexed_step(fxtap_reader *reader, fx_graph *graph, fx_step *step,
                                     const fxtap_tensor_query *query, fxtap_tensor_list *list)
{
    size_t first = list->count;
    fxtap_status status = FXTAP_E_DATABASE;
    for (int tries = 0; tries < 2 && status == FXTAP_E_DATABASE; tries++) {
        list->count = first;
        status = fx_index_load_slots(reader, graph);
        if (status == FXTAP_OK) {
            status = fx_index_load_tensors(reader, graph, step, query, list);
        }
        if (status == FXTAP_E_DATABASE) {
            fx_index_release(reader);
        }
    }
    if (status != FXTAP_E_DATABASE) {
        return status;
    }
    list->count = first;
    step->id = 0;
    status = fx_reader_warn(reader, "%s; reading by file names instead", fxtap_error_message());
    if (status == FXTAP_OK) {
        status = fx_step_read_files(reader, graph, step);
    }
    return status != FXTAP_OK ? status : fx_graph_number_nodes(reader, graph);
}

static fxtap_status add_step(fxtap_reader *reader, fx_graph *graph, fx_step *step, const fxtap_tensor_query *query,
                             fxtap_tensor_list *list)
{
    size_t first = list->count;
    fxtap_status status = FXTAP_OK;
    if (step->id != 0) {
        status = add_indexed_step(reader, graph, step, query, list);
    }
    if (status == FXTAP_OK && step->id == 0) {
        status = fx_step_read_files(reader, graph, step);
        if (status == FXTAP_OK) {
            status = add_files(reader, step, query, list);
        }
    }
    if (status == FXTAP_OK && list->count - first > 1) {
        fx_sort(list->items + first, list->count - first, sizeof *list->items,
                step->id != 0 ? compare_indexed : compare_named);
    }
    return status;
}

static bool wants_step(const fxtap_tensor_query *query, const fxtap_step_info *step)
{
    if (step->state != FXTAP_STEP_WHOLE && !query->with_incomplete) {
        return false;
    }
    return query->step < 0 || step->step == query->step;
}

typedef struct step_list {
    const fxtap_step_info **items;
    size_t count;
    size_t capacity;
} step_list;

static fxtap_status find_steps_of_graph(fxtap_reader *reader, fx_graph *graph, const fxtap_tensor_query *query,
                                        step_list *out)
{
    fxtap_status status = fx_graph_load_nodes(reader, graph);
    for (size_t i = 0; i < graph->n_steps && status == FXTAP_OK; i++) {
        if (!wants_step(query, graph->steps[i])) {
            continue;
        }
        if (!fx_grow((void **)&out->items, &out->capacity, out->count + 1, sizeof *out->items)) {
            return FXTAP_E_NOMEM;
        }
        out->items[out->count++] = graph->steps[i];
    }
    return status;
}

static fxtap_status find_steps_of_rank(fxtap_reader *reader, fx_rank *rank, const fxtap_tensor_query *query,
                                       step_list *out)
{
    if (query->rank >= 0 && rank->info.rank != query->rank) {
        return FXTAP_OK;
    }
    fxtap_status status = fx_rank_load(reader, rank);
    if (status != FXTAP_OK) {
        return status;
    }
    int64_t latest = fx_rank_latest_run(reader, rank);
    for (size_t i = 0; i < rank->n_graphs && status == FXTAP_OK; i++) {
        fx_graph *graph = rank->graphs[i];
        if (fx_graph_is_of_run(graph, query->run, latest) &&
            (query->graph < 0 || (int64_t)graph->info.graph == query->graph)) {
            status = find_steps_of_graph(reader, graph, query, out);
        }
    }
    return status;
}

static fxtap_status find_steps(fxtap_reader *reader, const fxtap_tensor_query *query, step_list *out)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < reader->n_ranks && status == FXTAP_OK; i++) {
        status = find_steps_of_rank(reader, reader->ranks[i], query, out);
    }
    return status;
}

static fxtap_status list_step(fxtap_reader *reader, const fxtap_step_info *step, const fxtap_tensor_query *query,
                              fxtap_tensor_list *list)
{
    return add_step(reader, (fx_graph *)step->graph, (fx_step *)step, query, list);
}

/* ---- plain folders and single files ---- */

static fxtap_status add_plain(fxtap_reader *reader, const char *name, const fxtap_tensor_query *query,
                              fxtap_tensor_list *list)
{
    if (!fx_query_has(query, NULL, name, FXTAP_OUTPUT)) {
        return FXTAP_OK;
    }
    fx_tensor *tensor = fx_tensor_list_add(list);
    if (tensor == NULL) {
        return FXTAP_E_NOMEM;
    }
    tensor->info.io = FXTAP_OUTPUT;
    tensor->info.name = name;
    tensor->info.path =
        reader->kind == FXTAP_READ_FILE ? reader->path : fx_tensor_list_path(list, reader->path, name, strlen(name));
    return tensor->info.path != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* ---- lists ---- */

static fxtap_status add_plain_files(fxtap_reader *reader, const fxtap_tensor_query *query, fxtap_tensor_list *list)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < reader->n_plain_files && status == FXTAP_OK; i++) {
        status = add_plain(reader, reader->plain_files[i], query, list);
    }
    return status;
}

static fxtap_status fill(fxtap_reader *reader, const fxtap_tensor_query *query, fxtap_tensor_list *list)
{
    step_list steps = {0};
    fxtap_status status = find_steps(reader, query, &steps);
    for (size_t i = 0; i < steps.count && status == FXTAP_OK; i++) {
        status = list_step(reader, steps.items[i], query, list);
    }
    fx_free(steps.items);
    return status != FXTAP_OK ? status : add_plain_files(reader, query, list);
}

static fxtap_status check_query(const fxtap_tensor_query *query)
{
    if (query->struct_size != sizeof *query) {
        return fx_error(FXTAP_E_INVALID, "struct_size of the query is %zu, not %zu", query->struct_size, sizeof *query);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_tensor_list_create(fxtap_tensor_list **out)
{
    FX_REQUIRE(out);
    fxtap_tensor_list *list = fx_calloc(1, sizeof *list);
    if (list == NULL) {
        return FXTAP_E_NOMEM;
    }
    pthread_mutex_init(&list->lock, NULL);
    list->shapes.arena = &list->arena;
    *out = list;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_tensors(fxtap_reader *reader, const fxtap_tensor_query *query, fxtap_tensor_list **out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(query);
    FX_REQUIRE(out);
    fxtap_status status = check_query(query);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_tensor_list *list = NULL;
    status = fxtap_tensor_list_create(&list);
    if (status != FXTAP_OK) {
        return status;
    }
    list->flags = reader->flags;
    status = fill(reader, query, list);
    fx_index_release(reader);
    if (status != FXTAP_OK) {
        fxtap_tensor_list_free(list);
        return status;
    }
    *out = list;
    return FXTAP_OK;
}

/* ---- single steps ---- */

uint32_t fxtap_reader_flags(const fxtap_reader *reader)
{
    return reader->flags;
}

static fxtap_status drop_empty(fxtap_reader *reader, step_list *steps)
{
    size_t n_kept = 0;
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < steps->count && status == FXTAP_OK; i++) {
        const fx_step *step = (const fx_step *)steps->items[i];
        bool has_some = step->n_files > 0;
        if (step->id != 0) {
            status = fx_index_has_tensors(reader, (const fx_graph *)step->info.graph, step, &has_some);
        }
        if (has_some) {
            steps->items[n_kept++] = &step->info;
        }
    }
    steps->count = n_kept;
    return status;
}

fxtap_status fxtap_reader_query_steps(fxtap_reader *reader, const fxtap_tensor_query *query,
                                      const fxtap_step_info ***out, size_t *n_out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(query);
    FX_REQUIRE(out);
    FX_REQUIRE(n_out);
    step_list steps = {0};
    fxtap_status status = check_query(query);
    if (status == FXTAP_OK) {
        status = find_steps(reader, query, &steps);
    }
    if (status == FXTAP_OK) {
        status = drop_empty(reader, &steps);
    }
    if (status != FXTAP_OK) {
        fx_free(steps.items);
        return status;
    }
    *out = steps.items;
    *n_out = steps.count;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_list_step(fxtap_reader *reader, const fxtap_step_info *step, const fxtap_tensor_query *query,
                                    fxtap_tensor_list *list)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(query);
    FX_REQUIRE(list);
    list->flags = reader->flags;
    if (step == NULL) {
        return add_plain_files(reader, query, list);
    }
    fxtap_status status = list_step(reader, step, query, list);
    fx_step_drop_files((fx_step *)step);
    return status;
}

void fxtap_reader_release(fxtap_reader *reader)
{
    fx_index_release(reader);
}

void fxtap_tensor_list_free(fxtap_tensor_list *list)
{
    if (list == NULL) {
        return;
    }
    pthread_mutex_destroy(&list->lock);
    fx_texts_clear(&list->shapes);
    fx_free(list->items);
    fx_arena_clear(&list->arena);
    fx_free(list);
}

size_t fxtap_tensor_list_count(const fxtap_tensor_list *list)
{
    return list->count;
}

const fxtap_tensor_info *fxtap_tensor_list_at(const fxtap_tensor_list *list, size_t i)
{
    return i < list->count ? &list->items[i]->info : NULL;
}
