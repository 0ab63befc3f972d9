/* check.c - checking a dump: steps, names, values. Files are read in check_files.c. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/schema.h"
#include "reader/check.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "reader/tensors.h"
#include "util/error.h"
#include "util/memory.h"

fxtap_status fx_check_add(fxtap_check *check, const fxtap_problem *problem)
{
    if (!fx_grow((void **)&check->problems, &check->problems_capacity, check->n_problems + 1,
                 sizeof *check->problems)) {
        return FXTAP_E_NOMEM;
    }
    fxtap_problem *copy = &check->problems[check->n_problems];
    *copy = *problem;
    if (problem->tensor != NULL) {
        copy->node = problem->tensor->node;
        copy->step = problem->tensor->step;
    }
    copy->path = fx_text_copy(&check->arena, problem->path, strlen(problem->path));
    copy->detail = fx_text_copy(&check->arena, problem->detail, strlen(problem->detail));
    if (copy->path == NULL || copy->detail == NULL) {
        return FXTAP_E_NOMEM;
    }
    check->n_problems++;
    return FXTAP_OK;
}

/* ---- the index ---- */

/* The text of a warning that begins with this path. */
static const char *warning_about(const fxtap_reader *reader, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < reader->n_warnings; i++) {
        const char *line = reader->warnings[i];
        if (strncmp(line, path, length) == 0 && line[length] == ':') {
            return line + length + 2;
        }
    }
    return NULL;
}

static fxtap_status check_index(fxtap_check *check, fx_rank *rank, bool read_data)
{
    const char *path = fx_reader_join(check->reader, rank->info.path, FX_INDEX_FILE);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    const char *warning = warning_about(check->reader, path);
    fxtap_problem problem = {.kind = FXTAP_PROBLEM_INDEX, .path = path, .detail = warning};
    if (warning != NULL) {
        return fx_check_add(check, &problem);
    }
    if (!rank->info.has_index || !read_data) {
        return FXTAP_OK;
    }
    char detail[512];
    bool is_sound = true;
    fxtap_status status = fx_index_is_sound(check->reader, rank, &is_sound, detail, sizeof detail);
    problem.detail = detail;
    return status != FXTAP_OK || is_sound ? status : fx_check_add(check, &problem);
}

/* ---- steps ---- */

static fxtap_status check_step(fxtap_check *check, const fx_rank *rank, const fx_step *step)
{
    fxtap_problem problem = {.path = step->info.folder, .detail = ""};
    switch (step->info.state) {
    case FXTAP_STEP_PARTIAL:
        problem.kind = FXTAP_PROBLEM_PARTIAL_STEP;
        problem.detail = "still being written, or its process was killed";
        break;
    case FXTAP_STEP_FAILED:
        problem.kind = FXTAP_PROBLEM_FAILED_STEP;
        problem.detail = step->info.reason[0] != '\0' ? step->info.reason : "the call failed";
        break;
    case FXTAP_STEP_WHOLE:
        if (!rank->info.has_index || step->id != 0) {
            return FXTAP_OK;
        }
        problem.kind = FXTAP_PROBLEM_UNINDEXED;
        problem.detail = "step is not in the index";
        break;
    }
    return fx_check_add(check, &problem);
}

static fxtap_status check_steps(fxtap_check *check, const fx_rank *rank)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < rank->n_graphs; i++) {
        const fx_graph *graph = rank->graphs[i];
        for (size_t j = 0; j < graph->n_steps && status == FXTAP_OK; j++) {
            status = check_step(check, rank, (const fx_step *)graph->steps[j]);
        }
    }
    return status;
}

/* ---- unknown files ---- */

static fxtap_status check_entry(fxtap_check *check, const fx_rank *rank, const char *path, const fx_entry *entry)
{
    fxtap_problem problem = {.path = path};
    if (entry->type == DT_LNK) {
        problem.kind = FXTAP_PROBLEM_BAD_FILE;
        problem.detail = "a symbolic link, not followed";
        return fx_check_add(check, &problem);
    }
    if (entry->type != DT_REG || !fx_has_suffix(path, ".npy") ||
        fx_texts_find(&check->paths, path, strlen(path)) != NULL) {
        return FXTAP_OK;
    }
    check->n_files++;
    problem.kind = FXTAP_PROBLEM_UNINDEXED;
    problem.detail = rank->info.has_index ? "not in the index" : "not a valid tensor file name";
    return fx_check_add(check, &problem);
}

#define MAX_DEPTH 3 /* rank, graph, step */

static fxtap_status walk(fxtap_check *check, const fx_rank *rank, const char *folder, int depth)
{
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(folder, &listing);
    if (status == FXTAP_E_IO && !fx_error_may_pass()) {
        fxtap_problem problem = {.kind = FXTAP_PROBLEM_BAD_FILE, .path = folder, .detail = fxtap_error_message()};
        return fx_check_add(check, &problem);
    }
    for (size_t i = 0; i < listing.count && status == FXTAP_OK; i++) {
        const fx_entry *entry = &listing.entries[i];
        const char *path = fx_reader_join(check->reader, folder, entry->name);
        if (path == NULL) {
            status = FXTAP_E_NOMEM;
        } else if (entry->type == DT_DIR && depth < MAX_DEPTH) {
            status = walk(check, rank, path, depth + 1);
        } else {
            status = check_entry(check, rank, path, entry);
        }
    }
    fx_listing_clear(&listing);
    return status;
}

static fxtap_status walk_rank(fxtap_check *check, const fx_rank *rank)
{
    const fxtap_reader *reader = check->reader;
    if (!reader->has_only_graph) {
        return walk(check, rank, rank->info.path, 1);
    }
    return walk(check, rank, reader->path, reader->only_step != NULL ? MAX_DEPTH : MAX_DEPTH - 1);
}

/* ---- non-finite values ---- */

static bool is_non_finite(const fxtap_tensor_info *info)
{
    return info->has_stats && info->stats.nan_count + info->stats.pos_inf_count + info->stats.neg_inf_count > 0;
}

/* Uninitialised memory says nothing about the model. If individual elements are tracked, statistics exclude them. */
static bool is_judged(const fxtap_tensor_info *info)
{
    uint32_t flags = info->node == NULL ? 0 : info->node->flags;
    return info->io == FXTAP_INPUT || (flags & FXTAP_NODE_UNDEFINED) == 0 || (flags & FXTAP_NODE_TRACKED) != 0;
}

static void append_count(char *text, size_t capacity, uint64_t count, const char *what)
{
    size_t length = strlen(text);
    if (count > 0) {
        snprintf(text + length, capacity - length, "%s%llu %s", length > 0 ? ", " : "", (unsigned long long)count,
                 what);
    }
}

static fxtap_status add_non_finite(fxtap_check *check, const fxtap_tensor_info *info, bool is_origin)
{
    char detail[160] = "";
    append_count(detail, sizeof detail, info->stats.nan_count, "NaN");
    append_count(detail, sizeof detail, info->stats.pos_inf_count, "+Inf");
    append_count(detail, sizeof detail, info->stats.neg_inf_count, "-Inf");
    size_t length = strlen(detail);
    snprintf(detail + length, sizeof detail - length, " among %llu", (unsigned long long)info->stats.count);
    fxtap_problem problem = {.kind = FXTAP_PROBLEM_NON_FINITE,
                             .path = info->path != NULL ? info->path : info->name,
                             .detail = detail,
                             .tensor = info,
                             .is_origin = is_origin};
    return fx_check_add(check, &problem);
}

/* Checks the tensors [first, end) of one execution of one node. */
static fxtap_status check_node_run(fxtap_check *check, size_t first, size_t end)
{
    bool has_bad_input = false;
    for (size_t i = first; i < end; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(check->list, i);
        has_bad_input |= info->io == FXTAP_INPUT && is_non_finite(info);
    }
    fxtap_status status = FXTAP_OK;
    for (size_t i = first; i < end && status == FXTAP_OK; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(check->list, i);
        if (is_non_finite(info) && is_judged(info)) {
            bool is_origin = info->node != NULL && info->io != FXTAP_INPUT && !has_bad_input;
            status = add_non_finite(check, info, is_origin);
        }
    }
    return status;
}

static int compare_size(size_t a, size_t b)
{
    return a < b ? -1 : a > b;
}

/* Origins first; then in order of execution: calls by start time, tensors of a call in the list's order. */
static int compare_non_finite(const void *a, const void *b)
{
    const fxtap_problem *x = a, *y = b;
    if (x->is_origin != y->is_origin) {
        return x->is_origin ? -1 : 1;
    }
    const fxtap_step_info *step_x = x->tensor->step, *step_y = y->tensor->step;
    if (step_x != NULL && step_y != NULL && step_x != step_y) {
        if (step_x->graph->rank_i != step_y->graph->rank_i) {
            return compare_size(step_x->graph->rank_i, step_y->graph->rank_i);
        }
        if (step_x->started_us != step_y->started_us) {
            return step_x->started_us < step_y->started_us ? -1 : 1;
        }
    }
    return compare_size(((const fx_tensor *)x->tensor)->place, ((const fx_tensor *)y->tensor)->place);
}

static bool is_same_run(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->node != NULL && a->node == b->node && a->step == b->step;
}

static fxtap_status check_values(fxtap_check *check)
{
    size_t n = fxtap_tensor_list_count(check->list);
    size_t first_problem = check->n_problems;
    fxtap_status status = FXTAP_OK;
    for (size_t first = 0; first < n && status == FXTAP_OK;) {
        size_t end = first + 1;
        const fxtap_tensor_info *info = fxtap_tensor_list_at(check->list, first);
        while (end < n && is_same_run(info, fxtap_tensor_list_at(check->list, end))) {
            end++;
        }
        status = check_node_run(check, first, end);
        first = end;
    }
    size_t n_found = check->n_problems - first_problem;
    if (status == FXTAP_OK && n_found > 1) {
        qsort(check->problems + first_problem, n_found, sizeof *check->problems, compare_non_finite);
    }
    return status;
}

/* ---- findings ---- */

static fxtap_status add_findings(fxtap_check *check, const fxtap_tensor_query *query)
{
    fxtap_finding *findings = NULL;
    size_t n = 0;
    fxtap_status status = fxtap_reader_findings(check->reader, query, &findings, &n);
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        const fxtap_finding *finding = &findings[i];
        char detail[400];
        fxtap_finding_text(finding, detail, sizeof detail);
        fxtap_problem problem = {
            .kind = finding->kind == FXTAP_FINDING_UNDECLARED_WRITE ? FXTAP_PROBLEM_UNDECLARED_WRITE
                                                                    : FXTAP_PROBLEM_UNWRITTEN_READ,
            .path = finding->step->folder[0] != '\0' ? finding->step->folder : finding->node->name,
            .detail = detail,
            .node = finding->node,
            .step = finding->step,
        };
        status = fx_check_add(check, &problem);
    }
    fx_free(findings);
    return status;
}

/* ---- the whole dump ---- */

static fxtap_status number_tensors(fxtap_check *check)
{
    for (size_t i = 0; i < fxtap_tensor_list_count(check->list); i++) {
        const char *path = fxtap_tensor_list_at(check->list, i)->path;
        check->list->items[i]->place = i;
        if (path != NULL && fx_texts_add(&check->paths, path, strlen(path)) == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    return FXTAP_OK;
}

static fxtap_status check_ranks(fxtap_check *check, bool read_data)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < check->reader->n_ranks && status == FXTAP_OK; i++) {
        status = check_index(check, check->reader->ranks[i], read_data);
        if (status == FXTAP_OK) {
            status = check_steps(check, check->reader->ranks[i]);
        }
    }
    return status;
}

static fxtap_status check_all(fxtap_check *check, bool read_data, fxtap_progress progress, void *context)
{
    fxtap_tensor_query query = {
        .struct_size = sizeof query, .run = -1, .rank = -1, .graph = -1, .step = -1, .with_incomplete = true, .io = -1};
    fxtap_status status = fxtap_reader_tensors(check->reader, &query, &check->list);
    if (status == FXTAP_OK) {
        status = number_tensors(check);
    }
    if (status == FXTAP_OK) {
        status = check_ranks(check, read_data);
    }
    if (status == FXTAP_OK) {
        status = fx_check_files(check, read_data, progress, context);
    }
    for (size_t i = 0; i < check->reader->n_ranks && status == FXTAP_OK; i++) {
        status = walk_rank(check, check->reader->ranks[i]);
    }
    if (status == FXTAP_OK) {
        status = add_findings(check, &query);
    }
    return status == FXTAP_OK ? check_values(check) : status;
}

fxtap_status fxtap_reader_check(fxtap_reader *reader, bool read_data, fxtap_progress progress, void *context,
                                fxtap_check **out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(out);
    fxtap_check *check = fx_calloc(1, sizeof *check);
    if (check == NULL) {
        return FXTAP_E_NOMEM;
    }
    check->reader = reader;
    check->paths.arena = &check->arena;
    fxtap_status status = check_all(check, read_data, progress, context);
    fx_index_release(reader);
    if (status != FXTAP_OK) {
        fxtap_check_free(check);
        return status;
    }
    *out = check;
    return FXTAP_OK;
}

void fxtap_check_free(fxtap_check *check)
{
    if (check == NULL) {
        return;
    }
    fxtap_tensor_list_free(check->list);
    fx_texts_clear(&check->paths);
    fx_free(check->problems);
    fx_arena_clear(&check->arena);
    fx_free(check);
}

uint64_t fxtap_check_file_count(const fxtap_check *check)
{
    return check->n_files;
}

size_t fxtap_check_problem_count(const fxtap_check *check)
{
    return check->n_problems;
}

const fxtap_problem *fxtap_check_problem(const fxtap_check *check, size_t i)
{
    return i < check->n_problems ? &check->problems[i] : NULL;
}
