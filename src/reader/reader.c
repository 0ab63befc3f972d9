/* reader.c - opening and closing a reader; ranks, runs, graphs, steps and nodes. */
#include "fxtap/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "reader/folder.h"
#include "reader/index.h"
#include "reader/reader.h"
#include "reader/rows.h"
#include "reader/tree.h"
#include "util/error.h"
#include "util/memory.h"

fxtap_status fxtap_reader_open(const char *path, fxtap_reader **out)
{
    return fxtap_reader_open_with(path, 0, out);
}

fxtap_status fxtap_reader_open_with(const char *path, uint32_t flags, fxtap_reader **out)
{
    FX_REQUIRE(path);
    FX_REQUIRE(out);
    char resolved[PATH_MAX];
    if ((flags & ~FXTAP_READ_COPY) != 0) {
        return fx_error(FXTAP_E_INVALID, "unknown read flags 0x%x", (unsigned)flags);
    }
    if (realpath(path, resolved) == NULL) {
        return fx_error_errno(errno, "open", path);
    }
    fxtap_reader *reader = fx_calloc(1, sizeof *reader);
    if (reader == NULL) {
        return FXTAP_E_NOMEM;
    }
    reader->texts.arena = &reader->arena;
    reader->flags = flags;
    reader->path = fx_text_copy(&reader->arena, resolved, strlen(resolved));
    fxtap_status status = reader->path != NULL ? fx_reader_find(reader) : FXTAP_E_NOMEM;
    fx_index_release(reader);
    if (status != FXTAP_OK) {
        fxtap_reader_close(reader);
        return status;
    }
    *out = reader;
    return FXTAP_OK;
}

void fxtap_reader_close(fxtap_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    fx_index_drop(reader);
    for (size_t i = 0; i < reader->n_ranks; i++) {
        fx_rank_clear(reader->ranks[i]);
        fx_free(reader->ranks[i]->runs);
    }
    for (fx_graph_list *list = reader->lists; list != NULL; list = list->next) {
        fx_free(list->graphs);
    }
    fx_free(reader->ranks);
    fx_free(reader->warnings);
    fx_free(reader->plain_files);
    fx_texts_clear(&reader->texts);
    fx_arena_clear(&reader->arena);
    fx_free(reader);
}

fxtap_origin_kind fxtap_reader_kind(const fxtap_reader *reader)
{
    return reader->kind;
}

const char *fxtap_reader_path(const fxtap_reader *reader)
{
    return reader->path;
}

size_t fxtap_reader_warning_count(const fxtap_reader *reader)
{
    return reader->n_warnings;
}

const char *fxtap_reader_warning(const fxtap_reader *reader, size_t i)
{
    return i < reader->n_warnings ? reader->warnings[i] : NULL;
}

fxtap_status fxtap_reader_left_out(const fxtap_reader *reader)
{
    return reader->left_out.status == FXTAP_OK ? FXTAP_OK : fx_error_restore(&reader->left_out);
}

size_t fxtap_reader_rank_count(const fxtap_reader *reader)
{
    return reader->n_ranks;
}

const fxtap_rank_info *fxtap_reader_rank(const fxtap_reader *reader, size_t i)
{
    return i < reader->n_ranks ? &reader->ranks[i]->info : NULL;
}

/* ---- runs ---- */

static void load_runs(fxtap_reader *reader, fx_rank *rank)
{
    if (rank->has_runs || !rank->info.has_index) {
        return;
    }
    fxtap_status status = fx_index_load_runs(reader, rank);
    if (status != FXTAP_OK) {
        rank->n_runs = 0;
        (void)fx_reader_warn(reader, "%s", fxtap_error_message());
    }
    rank->has_runs =
        status == FXTAP_OK || status == FXTAP_E_DATABASE; /* other errors may be temporary: the next call tries again */
    fx_index_release(reader);
}

size_t fxtap_reader_run_count(fxtap_reader *reader, size_t rank_i)
{
    if (rank_i >= reader->n_ranks) {
        return 0;
    }
    load_runs(reader, reader->ranks[rank_i]);
    return reader->ranks[rank_i]->n_runs;
}

const fxtap_run_info *fxtap_reader_run(fxtap_reader *reader, size_t rank_i, size_t i)
{
    return i < fxtap_reader_run_count(reader, rank_i) ? &reader->ranks[rank_i]->runs[i] : NULL;
}

/* ---- graphs ---- */

bool fx_graph_is_of_run(const fx_graph *graph, int64_t run, int64_t latest)
{
    if (run == -1) {
        return true;
    }
    /* A graph that is known only by its folder has no run number and counts as part of the latest run. */
    return run == 0 ? graph->info.run == latest || graph->id == 0 : graph->info.run == run;
}

static fxtap_status add_to_list(fxtap_reader *reader, fx_graph_list *list, size_t *capacity, fx_graph *graph)
{
    if (graph->id == 0) {
        fxtap_status status = fx_graph_load_nodes(reader, graph);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    if (!fx_grow((void **)&list->graphs, capacity, list->count + 1, sizeof *list->graphs)) {
        return FXTAP_E_NOMEM;
    }
    list->graphs[list->count++] = &graph->info;
    return FXTAP_OK;
}

static fxtap_status fill_list(fxtap_reader *reader, fx_graph_list *list)
{
    size_t capacity = 0;
    for (size_t i = 0; i < reader->n_ranks; i++) {
        fx_rank *rank = reader->ranks[i];
        fxtap_status status = fx_rank_load(reader, rank);
        if (status != FXTAP_OK) {
            return status;
        }
        int64_t latest = fx_rank_latest_run(reader, rank);
        for (size_t j = 0; j < rank->n_graphs && status == FXTAP_OK; j++) {
            if (fx_graph_is_of_run(rank->graphs[j], list->run, latest)) {
                status = add_to_list(reader, list, &capacity, rank->graphs[j]);
            }
        }
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return FXTAP_OK;
}

static fxtap_status make_list(fxtap_reader *reader, int64_t run, fx_graph_list **out)
{
    fx_graph_list *list = fx_arena_calloc(&reader->arena, 1, sizeof *list);
    if (list == NULL) {
        return FXTAP_E_NOMEM;
    }
    list->run = run;
    fxtap_status status = fill_list(reader, list);
    fx_index_release(reader);
    if (status != FXTAP_OK) {
        fx_free(list->graphs);
        return status;
    }
    list->next = reader->lists;
    reader->lists = list;
    *out = list;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_graphs(fxtap_reader *reader, int64_t run, const fxtap_graph_info *const **out, size_t *n_out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(out);
    FX_REQUIRE(n_out);
    fx_graph_list *list = reader->lists;
    while (list != NULL && list->run != run) {
        list = list->next;
    }
    if (list == NULL) {
        fxtap_status status = make_list(reader, run, &list);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    *out = list->graphs;
    *n_out = list->count;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_record(fxtap_reader *reader, const fxtap_graph_info *info, const fxtap_graph **out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(info);
    FX_REQUIRE(out);
    fx_graph *graph = (fx_graph *)info;
    if (graph->id == 0) {
        return fx_error_at(FXTAP_E_NOT_FOUND, info->path, "no index, so no record of the graph");
    }
    if (graph->record == NULL) {
        fxtap_status status = fx_index_load_record(reader, graph);
        fx_index_release(reader);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    *out = graph->record;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_steps(fxtap_reader *reader, const fxtap_graph_info *info, const fxtap_step_info *const **out,
                                size_t *n_out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(info);
    FX_REQUIRE(out);
    FX_REQUIRE(n_out);
    (void)reader;
    const fx_graph *graph = (const fx_graph *)info;
    *out = graph->steps;
    *n_out = graph->n_steps;
    return FXTAP_OK;
}

fxtap_status fxtap_reader_nodes(fxtap_reader *reader, const fxtap_graph_info *info, const fxtap_node_info *const **out,
                                size_t *n_out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(info);
    FX_REQUIRE(out);
    FX_REQUIRE(n_out);
    fx_graph *graph = (fx_graph *)info;
    fxtap_status status = fx_graph_load_nodes(reader, graph);
    fx_index_release(reader);
    if (status != FXTAP_OK) {
        return status;
    }
    *out = graph->nodes;
    *n_out = graph->n_nodes;
    return FXTAP_OK;
}
