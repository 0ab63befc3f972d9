/*
 * batch.c - runs a comparison one batch of groups at a time, so that the memory for tensor infos does not grow with the
 * number of steps. While threads judge one batch, the next is listed and paired.
 */
#include "compare/batch.h"

#include <string.h>

#include "util/error.h"
#include "util/memory.h"

static size_t batch_pairs = 1024; /* a batch ends with the group that reaches this limit */

size_t fx_batch_limit(size_t n_pairs)
{
    size_t before = batch_pairs;
    batch_pairs = n_pairs;
    return before;
}

const fxtap_tensor_info *fx_batch_golden(const fx_batch *batch, size_t i)
{
    return i == FX_MISSING ? NULL : fxtap_tensor_list_at(batch->golden, i);
}

const fxtap_tensor_info *fx_batch_target(const fx_batch *batch, size_t i)
{
    return i == FX_MISSING ? NULL : fxtap_tensor_list_at(batch->target, i);
}

fxtap_pair *fx_batch_add_pair(fx_batch *batch, size_t golden, size_t target)
{
    size_t n = batch->n_pairs;
    if (!fx_grow((void **)&batch->pairs, &batch->pairs_capacity, n + 1, sizeof *batch->pairs) ||
        !fx_grow((void **)&batch->sources, &batch->sources_capacity, n + 1, sizeof *batch->sources)) {
        return NULL;
    }
    memset(&batch->pairs[n], 0, sizeof batch->pairs[n]);
    batch->sources[n] = (fx_sources){golden, target};
    batch->n_pairs = n + 1;
    return &batch->pairs[n];
}

static void free_batch(fx_batch *batch)
{
    if (batch == NULL) {
        return;
    }
    for (size_t i = 0; i < batch->n_groups; i++) {
        fx_wiring_free(batch->groups[i].golden_wiring);
        fx_wiring_free(batch->groups[i].target_wiring);
    }
    fxtap_tensor_list_free(batch->golden);
    fxtap_tensor_list_free(batch->target);
    fx_free(batch->groups);
    fx_free(batch->pairs);
    fx_free(batch->sources);
    fx_arena_clear(&batch->arena);
    fx_free(batch);
}

static fx_batch *create_batch(fx_comparison *comparison)
{
    fx_batch *batch = fx_calloc(1, sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    fx_arena_init(&batch->arena);
    batch->comparison = comparison;
    batch->first_pair = comparison->n_paired;
    if (fxtap_tensor_list_create(&batch->golden) != FXTAP_OK || fxtap_tensor_list_create(&batch->target) != FXTAP_OK) {
        free_batch(batch);
        return NULL;
    }
    return batch;
}

/* ---- preparing ---- */

/* Lists the tensors of some calls one after the other; the calls are allocated in the batch's arena. */
static fxtap_status list_calls(fx_batch *batch, const fx_side *side, const fxtap_step_info *const *steps,
                               size_t n_steps, fxtap_tensor_list *list, fx_exec_call **out)
{
    fx_exec_call *calls = fx_arena_calloc(&batch->arena, n_steps + 1, sizeof *calls);
    fxtap_status status = calls == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (size_t i = 0; i < n_steps && status == FXTAP_OK; i++) {
        calls[i] = (fx_exec_call){.step = steps[i],
                                  .graph = steps[i] == NULL ? NULL : steps[i]->graph,
                                  .first_tensor = fxtap_tensor_list_count(list)};
        if (calls[i].graph != NULL &&
            fxtap_reader_record(side->reader, calls[i].graph, &calls[i].record) == FXTAP_E_NOMEM) {
            return FXTAP_E_NOMEM;
        }
        status = fxtap_reader_list_step(side->reader, steps[i], &side->query, list);
        calls[i].end_tensor = fxtap_tensor_list_count(list);
    }
    *out = calls;
    return status;
}

static fxtap_status add_group(fx_batch *batch, const fx_group_work *work)
{
    fx_comparison *c = batch->comparison;
    if (!fx_grow((void **)&batch->groups, &batch->groups_capacity, batch->n_groups + 1, sizeof *batch->groups)) {
        return FXTAP_E_NOMEM;
    }
    fx_group_nodes *group = &batch->groups[batch->n_groups++];
    *group = (fx_group_nodes){.group = work};
    fxtap_status status =
        list_calls(batch, &c->golden, work->golden, work->n_golden, batch->golden, &group->golden_calls);
    if (status == FXTAP_OK) {
        status = list_calls(batch, &c->target, work->target, work->n_target, batch->target, &group->target_calls);
    }
    if (status == FXTAP_OK) {
        status = fx_pair_group(batch, group);
    }
    return status == FXTAP_OK ? fx_mark_undefined(batch, group) : status;
}

static bool in_shard(const fxtap_compare_options *options, size_t group)
{
    return options->n_shards == 0 || group % options->n_shards == options->shard;
}

/* Lists and pairs the next groups; *out is NULL if none are left. */
static fxtap_status prepare(fx_comparison *c, fx_batch **out)
{
    *out = NULL;
    fx_batch *batch = c->n_begun < c->groups.n_items ? create_batch(c) : NULL;
    if (batch == NULL) {
        return c->n_begun < c->groups.n_items ? FXTAP_E_NOMEM : FXTAP_OK;
    }
    fxtap_status status = FXTAP_OK;
    while (c->n_begun < c->groups.n_items && batch->n_pairs < batch_pairs && status == FXTAP_OK) {
        if (in_shard(c->options, c->n_begun)) {
            status = add_group(batch, &c->groups.items[c->n_begun]);
        }
        c->n_begun++;
    }
    c->n_paired += batch->n_pairs;
    if (status != FXTAP_OK) {
        free_batch(batch);
        return status;
    }
    *out = batch;
    return FXTAP_OK;
}

/* ---- after judging ---- */

/* The first batch's array becomes the report's: with one step there is only one batch. */
static fxtap_status append_pairs(fx_batch *batch)
{
    fxtap_report *report = batch->comparison->report;
    size_t n = report->n_pairs + batch->n_pairs;
    batch->comparison->n_judged = n;
    if (report->n_pairs == 0) {
        fx_free(report->pairs);
        report->pairs = batch->pairs;
        report->pairs_capacity = batch->pairs_capacity;
        report->n_pairs = n;
        batch->pairs = NULL;
        return FXTAP_OK;
    }
    if (!fx_grow((void **)&report->pairs, &report->pairs_capacity, n, sizeof *report->pairs)) {
        return FXTAP_E_NOMEM;
    }
    if (batch->n_pairs > 0) {
        memcpy(report->pairs + report->n_pairs, batch->pairs, batch->n_pairs * sizeof *batch->pairs);
    }
    report->n_pairs = n;
    return FXTAP_OK;
}

static fxtap_status finish(fx_batch *batch)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < batch->n_groups && status == FXTAP_OK; i++) {
        status = fx_find_origins(batch, &batch->groups[i]);
    }
    return status == FXTAP_OK ? append_pairs(batch) : status;
}

/* Judges `batch` and prepares the next one at the same time. */
static fxtap_status judge_and_prepare(fx_comparison *c, fx_batch *batch, fx_batch **next_out)
{
    fx_judging *judging = NULL;
    fxtap_status status = c->found_bad ? FXTAP_OK : fx_judging_begin(batch, &judging);
    if (status != FXTAP_OK) {
        return status;
    }
    status = prepare(c, next_out);
    if (judging == NULL) {
        return status;
    }
    fx_error_copy error;
    fx_error_save(status, &error);
    if (status != FXTAP_OK) {
        atomic_store(&c->stop, true);
    }
    fxtap_status judged = fx_judging_end(judging);
    return status != FXTAP_OK ? fx_error_restore(&error) : judged;
}

fxtap_status fx_run_batches(fx_comparison *comparison)
{
    fx_batch *batch = NULL;
    fxtap_status status = prepare(comparison, &batch);
    while (status == FXTAP_OK && batch != NULL) {
        fx_batch *next = NULL;
        status = judge_and_prepare(comparison, batch, &next);
        if (status == FXTAP_OK) {
            status = finish(batch);
        }
        free_batch(batch);
        batch = next;
    }
    free_batch(batch);
    return status;
}
