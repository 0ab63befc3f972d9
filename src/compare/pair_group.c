/*
 * pair_group.c - makes the pairs of one group from the lists of tensors: every tensor of either side is in exactly one.
 */
#include <string.h>

#include "compare/batch.h"
#include "pair/align.h"
#include "pair/places.h"
#include "util/memory.h"

static const char *keep(fx_texts *texts, const char *text)
{
    return fx_texts_keep(texts, text, strlen(text));
}

/* Copies one side of a pair into the report. */
static bool describe(fx_texts *texts, fxtap_pair *pair, const fxtap_tensor_info *tensor)
{
    const fxtap_node_info *node = tensor->node;
    pair->name = keep(texts, tensor->name);
    pair->node = node == NULL ? pair->name : keep(texts, node->name);
    pair->operator_name = keep(texts, node == NULL ? "" : node->target);
    pair->source_file = keep(texts, node == NULL ? "" : node->source_file);
    pair->source_line = node == NULL ? 0 : node->source_line;
    pair->source_code = keep(texts, node == NULL ? "" : node->source_code);
    pair->module_path = keep(texts, node == NULL ? "" : node->module_path);
    pair->position = keep(texts, tensor->position == NULL ? "" : tensor->position);
    pair->order = node == NULL ? 0 : node->order;
    pair->io = tensor->io;
    pair->detail = "";
    return pair->name != NULL && pair->node != NULL && pair->operator_name != NULL && pair->source_file != NULL &&
           pair->source_code != NULL && pair->module_path != NULL && pair->position != NULL;
}

static bool copy_meta(fx_comparison *comparison, const fxtap_tensor_info *tensor, const char **path_out,
                      fxtap_dtype *dtype_out, int32_t *ndim_out, const int64_t **shape_out)
{
    *path_out = tensor->path == NULL ? NULL : fx_arena_strdup(&comparison->report->arena, tensor->path);
    if (tensor->has_meta) {
        *dtype_out = tensor->dtype;
        *ndim_out = tensor->ndim;
        size_t n_bytes = (size_t)tensor->ndim * sizeof *tensor->shape;
        const char *bytes = n_bytes == 0 ? "" : (const char *)tensor->shape;
        *shape_out =
            (const int64_t *)(const void *)fx_texts_keep(&comparison->texts, bytes, n_bytes); /* aligned by the arena */
    }
    return (tensor->path == NULL || *path_out != NULL) && (!tensor->has_meta || *shape_out != NULL);
}

static int64_t step_number(const fxtap_step_info *step)
{
    return step == NULL ? -1 : step->step;
}

static uint32_t graph_number(const fxtap_step_info *step)
{
    return step == NULL ? 0 : step->graph->graph;
}

/* Sets graph and step of the pair. */
static void place(const fx_group_work *group, fxtap_pair *pair, const fxtap_tensor_info *golden,
                  const fxtap_tensor_info *target)
{
    const fxtap_step_info *first = golden != NULL ? golden->step : target->step;
    pair->rank = group->rank;
    pair->graph = graph_number(first);
    pair->step = step_number(first);
    pair->target_graph = target != NULL ? graph_number(target->step) : 0;
    pair->target_step = target != NULL ? step_number(target->step) : -1;
}

typedef struct pairing { /* one group while its pairs are added */
    fx_batch *batch;
    fx_group_nodes *group;
    fx_execution golden, target;
    fx_places places;
    size_t next_target; /* target's nodes without a counterpart have been added up to here */
} pairing;

/* How the two nodes of a pair were matched. */
static fxtap_pairing kind_of(const fx_node_pair *node)
{
    uint32_t evidence = node->evidence, place = FX_EV_LINE | FX_EV_MODULE;
    if ((evidence & FX_EV_MAP) != 0) {
        return FXTAP_PAIR_MAPPED;
    }
    if ((evidence & FX_EV_STRUCTURE) != 0) {
        return FXTAP_PAIR_EXACT;
    }
    if (node->is_region) {
        return FXTAP_PAIR_REGION;
    }
    bool is_known = node->golden != NULL && node->target != NULL && strcmp(node->golden->name, node->target->name) == 0;
    bool is_exact = (evidence & FX_EV_OPERATOR) != 0 && (evidence & (FX_EV_NAME | FX_EV_VALUE | place)) != 0;
    if ((is_known && is_exact) || evidence == FX_EV_NAME) { /* only the name: plain files with equal names */
        return FXTAP_PAIR_EXACT;
    }
    return (evidence & place) != 0                          ? FXTAP_PAIR_SOURCE
           : (evidence & (FX_EV_INPUTS | FX_EV_USERS)) != 0 ? FXTAP_PAIR_WIRING
                                                            : FXTAP_PAIR_ORDER;
}

/* Whether the other side should have this value too: the graphs are equal, or the other side has its operator. */
static bool is_expected(const pairing *p, const fx_node_pair *node, const fxtap_tensor_info *tensor)
{
    const fx_group_work *work = p->group->group;
    bool is_rewritten = p->golden.wiring != NULL || p->target.wiring != NULL ||
                        (work->n_golden > 0 && work->n_target > 0 && p->golden.calls[0].graph != NULL &&
                         p->target.calls[0].graph != NULL && p->golden.calls[0].graph->has_keys &&
                         p->target.calls[0].graph->has_keys && !work->same_structure);
    bool has_counterpart = node->golden_node != FX_MISSING && node->target_node != FX_MISSING && !node->is_region &&
                           (tensor->io != FXTAP_INPUT || (p->golden.wiring == NULL && p->target.wiring == NULL));
    return tensor->skipped == NULL && !work->is_extra && (!is_rewritten || has_counterpart);
}

/* Whether the tensor is a number, a string or a list of these in the code, by the record of its side. */
static bool is_literal(const fx_execution *side, size_t node, const fxtap_tensor_info *tensor)
{
    if (node == FX_MISSING || tensor == NULL || tensor->io != FXTAP_INPUT || (tensor->has_meta && tensor->ndim > 1)) {
        return false;
    }
    const fx_exec_call *call = &side->calls[side->nodes[node].call];
    return fx_call_is_literal(call, node - call->first_node, tensor->position);
}

#define MOST_OPERATORS 64 /* operators counted per region */

/* Number of operators that compute the result of `node` from values that have a counterpart, including `node`. */
static uint32_t count_operators(const fx_execution *side, size_t node)
{
    size_t found[MOST_OPERATORS] = {node}, n = side->wiring == NULL ? 0 : 1, n_dumped = 0;
    for (size_t i = 0; i < n; i++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(side->wiring, found[i], &n_inputs);
        n_dumped += side->nodes[found[i]].n_tensors > 0;
        for (size_t k = 0; k < n_inputs && n < MOST_OPERATORS; k++) {
            bool is_open =
                side->nodes[inputs[k]].partner == FX_MISSING && !fx_wiring_is_placeholder(side->wiring, inputs[k]);
            for (size_t seen = 0; seen < n && is_open; seen++) {
                is_open = found[seen] != inputs[k];
            }
            if (is_open) {
                found[n++] = inputs[k];
            }
        }
    }
    return n_dumped > 0 ? (uint32_t)n_dumped : 1;
}

static void note_region(const pairing *p, const fx_node_pair *node, fxtap_pair *pair)
{
    if (pair->pairing == FXTAP_PAIR_REGION && pair->io == FXTAP_OUTPUT) {
        pair->n_golden_operators = count_operators(&p->golden, node->golden_node);
        pair->n_target_operators = count_operators(&p->target, node->target_node);
    }
}

static fxtap_status add_pair(const pairing *p, const fx_node_pair *node, size_t g, size_t t)
{
    fx_comparison *comparison = p->batch->comparison;
    const fxtap_tensor_info *golden = fx_batch_golden(p->batch, g);
    const fxtap_tensor_info *target = fx_batch_target(p->batch, t);
    fxtap_pair *pair = fx_batch_add_pair(p->batch, g, t);
    if (pair == NULL || !describe(&comparison->texts, pair, golden != NULL ? golden : target)) {
        return FXTAP_E_NOMEM;
    }
    place(p->group->group, pair, golden, target);
    bool is_pair = golden != NULL && target != NULL, copied = true;
    int32_t score = node->golden_node != FX_MISSING ? p->golden.nodes[node->golden_node].score : 0;
    pair->pairing = is_pair ? kind_of(node) : FXTAP_PAIR_NONE;
    pair->confidence = is_pair ? fx_confidence(node->evidence, score) : 0.0;
    pair->evidence = is_pair ? node->evidence : 0;
    if (is_pair && node->evidence == 0) { /* the operators have no counterpart, but their inputs have one */
        pair->pairing = FXTAP_PAIR_WIRING;
        pair->evidence = FX_EV_INPUTS;
        pair->confidence = fx_confidence(FX_EV_INPUTS, 10);
    }
    pair->verdict = golden == NULL ? FXTAP_ONLY_TARGET : target == NULL ? FXTAP_ONLY_GOLDEN : FXTAP_NOT_COMPARED;
    pair->is_literal =
        is_literal(&p->golden, node->golden_node, golden) || is_literal(&p->target, node->target_node, target);
    bool is_called = p->group->group->n_golden > 0 && p->group->group->n_target > 0;
    pair->is_missing =
        !is_pair && (comparison->options->strict ||
                     ((!pair->is_literal || !is_called) && is_expected(p, node, golden != NULL ? golden : target)));
    if (golden != NULL) {
        copied &= copy_meta(comparison, golden, &pair->golden_path, &pair->golden_dtype, &pair->ndim, &pair->shape);
    }
    if (target != NULL) {
        copied &= copy_meta(comparison, target, &pair->target_path, &pair->target_dtype, &pair->target_ndim,
                            &pair->target_shape);
    }
    if (is_pair && strcmp(golden->name, target->name) != 0) {
        pair->target_name = keep(&comparison->texts, target->name);
        copied &= pair->target_name != NULL;
    }
    note_region(p, node, pair);
    pair->golden_recorded = golden != NULL && golden->has_meta;
    pair->target_recorded = target != NULL && target->has_meta;
    return copied ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* ---- nodes ---- */

static bool glob_hits(const char *pattern, const fx_exec_node *node, const fxtap_tensor_list *list)
{
    if (node == NULL) {
        return false;
    }
    bool hits = node->info != NULL && fxtap_node_matches(pattern, node->info);
    for (size_t i = 0; i < node->n_tensors && !hits; i++) {
        hits = fxtap_glob_match(pattern, fxtap_tensor_list_at(list, node->first_tensor + i)->name);
    }
    return hits;
}

static const fx_exec_node *node_at(const fx_execution *execution, size_t i)
{
    return i == FX_MISSING || execution->nodes[i].n_tensors == 0 ? NULL : &execution->nodes[i];
}

static bool is_wanted(const pairing *p, size_t g, size_t t)
{
    const char *pattern = p->batch->comparison->options->pattern;
    return pattern == NULL || glob_hits(pattern, node_at(&p->golden, g), p->batch->golden) ||
           glob_hits(pattern, node_at(&p->target, t), p->batch->target);
}

static fx_node_pair *begin_node(const pairing *p, size_t g, size_t t, uint32_t evidence, bool is_region)
{
    fx_node_pair *node = &p->group->nodes[p->group->n_nodes];
    *node = (fx_node_pair){.golden = g == FX_MISSING ? NULL : p->golden.nodes[g].info,
                           .target = t == FX_MISSING ? NULL : p->target.nodes[t].info,
                           .golden_node = g,
                           .target_node = t,
                           .evidence = evidence,
                           .is_region = is_region,
                           .first_pair = p->batch->n_pairs};
    return node;
}

static void end_node(const pairing *p, fx_node_pair *node)
{
    node->n_pairs = p->batch->n_pairs - node->first_pair;
    p->group->n_nodes += node->n_pairs > 0;
}

/* Adds the tensors of a target node that were compared with nothing. */
static fxtap_status add_rest(const pairing *p, const fx_node_pair *node, size_t t)
{
    const fx_exec_node *target = &p->target.nodes[t];
    fxtap_status status = FXTAP_OK;
    for (size_t i = target->first_tensor; i < target->first_tensor + target->n_tensors && status == FXTAP_OK; i++) {
        if (p->places.target[i - p->places.first_target] == FX_MISSING) {
            status = add_pair(p, node, FX_MISSING, i);
        }
    }
    return status;
}

static fxtap_status add_golden(const pairing *p, size_t g)
{
    const fx_exec_node *golden = &p->golden.nodes[g];
    bool is_call = fx_is_one_call(&p->golden, g, &p->target);
    size_t t = is_call ? golden->partner : p->places.counterparts[g];
    if (!is_wanted(p, g, t)) {
        return FXTAP_OK;
    }
    uint32_t evidence = t == FX_MISSING ? 0 : p->target.nodes[t].evidence;
    fx_node_pair *node = begin_node(p, g, t, evidence, t != FX_MISSING && !is_call);
    fxtap_status status = FXTAP_OK;
    for (size_t i = golden->first_tensor; i < golden->first_tensor + golden->n_tensors && status == FXTAP_OK; i++) {
        status = add_pair(p, node, i, p->places.golden[i - p->places.first_golden]);
    }
    if (status == FXTAP_OK && is_call) {
        status = add_rest(p, node, t);
    }
    end_node(p, node);
    return status;
}

/* Adds the tensors of a target node without a node pair that were not compared with those of a region. */
static fxtap_status add_target(const pairing *p, size_t t)
{
    const fx_exec_node *target = node_at(&p->target, t);
    bool is_done =
        target == NULL || (target->partner != FX_MISSING && fx_is_one_call(&p->golden, target->partner, &p->target));
    if (is_done || !is_wanted(p, FX_MISSING, t)) {
        return FXTAP_OK;
    }
    fx_node_pair *node = begin_node(p, FX_MISSING, t, 0, false);
    fxtap_status status = add_rest(p, node, t);
    end_node(p, node);
    return status;
}

static fxtap_status add_targets_before(pairing *p, size_t end)
{
    fxtap_status status = FXTAP_OK;
    for (; p->next_target < end && status == FXTAP_OK; p->next_target++) {
        status = add_target(p, p->next_target);
    }
    return status;
}

/* ---- groups of the report: one for each call ---- */

static fxtap_status add_report_group(const pairing *p, const fx_exec_call *golden, const fx_exec_call *target,
                                     size_t first_pair)
{
    const fx_group_work *work = p->group->group;
    const fxtap_step_info *first = golden != NULL ? golden->step : target->step;
    return fx_report_add_group(p->batch->comparison->report,
                               &(fxtap_group){
                                   .rank = work->rank,
                                   .graph = graph_number(first),
                                   .target_graph = target == NULL ? 0 : graph_number(target->step),
                                   .step = golden == NULL ? -1 : step_number(golden->step),
                                   .target_step = target == NULL ? -1 : step_number(target->step),
                                   .pairing = work->pairing,
                                   .unit = work->number,
                                   .call = first == NULL ? -1 : first->call,
                                   .first_pair = p->batch->first_pair + first_pair,
                                   .n_pairs = p->batch->n_pairs - first_pair,
                               });
}

/* The call of target that has the first counterpart of this call's nodes. */
static const fx_exec_call *counterpart_of(const pairing *p, const fx_exec_call *call)
{
    if (p->golden.n_calls == 1 && p->target.n_calls == 1) {
        return &p->target.calls[0];
    }
    for (size_t i = call->first_node; i < call->first_node + call->n_nodes; i++) {
        if (p->golden.nodes[i].n_tensors > 0 && p->golden.nodes[i].partner != FX_MISSING) {
            return &p->target.calls[p->target.nodes[p->golden.nodes[i].partner].call];
        }
    }
    return NULL;
}

static fxtap_status add_golden_call(pairing *p, const fx_exec_call *call, bool is_last)
{
    size_t first_pair = p->batch->n_pairs;
    fxtap_status status = FXTAP_OK;
    for (size_t g = call->first_node; g < call->first_node + call->n_nodes && status == FXTAP_OK; g++) {
        size_t partner = p->golden.nodes[g].partner;
        if (p->golden.nodes[g].n_tensors == 0) {
            continue;
        }
        if (partner != FX_MISSING && partner > p->next_target) {
            status = add_targets_before(p, partner);
        }
        if (status == FXTAP_OK) {
            status = add_golden(p, g);
        }
    }
    if (status == FXTAP_OK && is_last) {
        status = add_targets_before(p, p->target.n_nodes);
    }
    return status == FXTAP_OK ? add_report_group(p, call, counterpart_of(p, call), first_pair) : status;
}

static fxtap_status add_all(pairing *p)
{
    fxtap_status status = FXTAP_OK;
    size_t n = p->golden.n_calls;
    p->group->nodes =
        fx_arena_calloc(&p->batch->arena, p->golden.n_nodes + p->target.n_nodes + 1, sizeof *p->group->nodes);
    if (p->group->nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t c = 0; c < n && status == FXTAP_OK; c++) {
        status = add_golden_call(p, &p->golden.calls[c], c + 1 == n);
    }
    for (size_t c = 0; n == 0 && c < p->target.n_calls && status == FXTAP_OK; c++) {
        const fx_exec_call *call = &p->target.calls[c];
        size_t first_pair = p->batch->n_pairs;
        status = add_targets_before(p, call->first_node + call->n_nodes);
        status = status == FXTAP_OK ? add_report_group(p, NULL, call, first_pair) : status;
    }
    return status;
}

/* ---- one group ---- */

static bool are_two_files(const fx_comparison *comparison, const pairing *p)
{
    return fxtap_reader_kind(comparison->golden.reader) == FXTAP_READ_FILE &&
           fxtap_reader_kind(comparison->target.reader) == FXTAP_READ_FILE && p->golden.n_nodes == 1 &&
           p->target.n_nodes == 1;
}

static fxtap_status match(pairing *p, fx_arena *arena)
{
    fx_comparison *c = p->batch->comparison;
    fx_group_nodes *group = p->group;
    const fx_group_work *work = group->group;
    bool is_aligned = work->n_golden > 0 && work->n_target > 0 && !work->same_structure;
    fxtap_status status = fx_execution_open(&p->golden, arena, c->golden.reader, p->batch->golden, group->golden_calls,
                                            work->n_golden, is_aligned);
    if (status == FXTAP_OK) {
        status = fx_execution_open(&p->target, arena, c->target.reader, p->batch->target, group->target_calls,
                                   work->n_target, is_aligned);
    }
    group->n_target_nodes = p->target.n_nodes;
    if (status != FXTAP_OK || work->n_golden == 0 || work->n_target == 0) {
        return status;
    }
    if (are_two_files(c, p)) {
        fx_join(&p->golden, 0, &p->target, 0, FX_EV_STRUCTURE, 100);
        return FXTAP_OK;
    }
    if (is_aligned || c->map != NULL) {
        const fx_alignment_options options = {c->map, c->options->explain, &c->explanation};
        return fx_align(&options, &p->golden, &p->target);
    }
    fx_align_by_place(&p->golden, &p->golden.calls[0], &p->target, &p->target.calls[0]);
    return FXTAP_OK;
}

/* One flag per node, dumped or not. NULL: no memory. */
static const bool *list_partnered(fx_batch *batch, const fx_execution *execution)
{
    bool *flags = fx_arena_calloc(&batch->arena, execution->n_nodes + 1, sizeof *flags);
    for (size_t i = 0; flags != NULL && i < execution->n_nodes; i++) {
        flags[i] = execution->nodes[i].partner != FX_MISSING;
    }
    return flags;
}

fxtap_status fx_pair_group(fx_batch *batch, fx_group_nodes *group)
{
    pairing p = {.batch = batch, .group = group};
    fx_arena arena;
    fx_arena_init(&arena);
    fxtap_status status = match(&p, &arena);
    if (status == FXTAP_OK) {
        status = fx_places_create(&arena, batch->comparison->map, &p.golden, &p.target, &p.places);
    }
    if (status == FXTAP_OK) {
        status = add_all(&p);
    }
    if (status == FXTAP_OK && !group->group->same_structure) {
        group->has_golden_partner = list_partnered(batch, &p.golden);
        group->has_target_partner = list_partnered(batch, &p.target);
        status = group->has_golden_partner == NULL || group->has_target_partner == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    }
    group->golden_wiring = p.golden.wiring;
    group->target_wiring = p.target.wiring;
    group->has_golden_wiring = group->has_target_wiring = !group->group->same_structure;
    fx_arena_clear(&arena);
    return status;
}
