/* pair_tensors.c - the tensors of paired nodes, place by place: every tensor of either side ends in exactly one pair. */
#include <string.h>

#include "compare/pair_nodes.h"
#include "util/memory.h"

static bool has_shape_of(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

static fxtap_status list_nodes(fx_arena *arena, const fxtap_tensor_list *list, size_t first, size_t end,
                               fx_node_list *out)
{
    size_t n_tensors = end - first;
    out->n_items = 0;
    out->items = fx_arena_calloc(arena, n_tensors + 1, sizeof *out->items);
    if (out->items == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, first + i);
        fx_node_entry *last = out->n_items > 0 ? &out->items[out->n_items - 1] : NULL;
        if (last == NULL || tensor->node == NULL || last->info != tensor->node) {
            last = &out->items[out->n_items++];
            *last = (fx_node_entry){
                .info = tensor->node,
                .name = tensor->node == NULL ? tensor->name : tensor->node->name,
                .target = tensor->node == NULL ? "" : tensor->node->target,
                .first = first + i,
                .partner = FX_MISSING,
            };
        }
        last->n_tensors++;
        if (tensor->io != FXTAP_INPUT && tensor->has_meta) {
            last->output = last->output == NULL ? tensor : last->output;
            last->n_alike += has_shape_of(last->output, tensor);
        } else if (tensor->io == FXTAP_INPUT && tensor->has_meta && last->input == NULL) {
            last->input = tensor;
        }
    }
    return FXTAP_OK;
}

static const char *keep(fx_texts *texts, const char *text)
{
    return fx_texts_keep(texts, text, strlen(text));
}

/* Copies into the report what a pair says of one side. */
static bool describe(fx_texts *texts, fxtap_pair *pair, const fxtap_tensor_info *tensor)
{
    const fxtap_node_info *node = tensor->node;
    pair->name = keep(texts, tensor->name);
    pair->node = node == NULL ? pair->name : keep(texts, node->name);
    pair->target = keep(texts, node == NULL ? "" : node->target);
    pair->source_file = keep(texts, node == NULL ? "" : node->source_file);
    pair->source_line = node == NULL ? 0 : node->source_line;
    pair->source_code = keep(texts, node == NULL ? "" : node->source_code);
    pair->module_path = keep(texts, node == NULL ? "" : node->module_path);
    pair->position = keep(texts, tensor->position == NULL ? "" : tensor->position);
    pair->order = node == NULL ? 0 : node->order;
    pair->io = tensor->io;
    pair->detail = "";
    return pair->name != NULL && pair->node != NULL && pair->target != NULL && pair->source_file != NULL &&
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
        *shape_out = (const int64_t *)(const void *)fx_texts_keep(&comparison->texts, bytes, n_bytes); /* aligned by the arena */
    }
    return (tensor->path == NULL || *path_out != NULL) && (!tensor->has_meta || *shape_out != NULL);
}

static int64_t step_number(const fxtap_step_info *step)
{
    return step == NULL ? -1 : step->step;
}

static int64_t call_number(const fx_set *set)
{
    return set == NULL || set->step == NULL ? -1 : set->step->call;
}

static uint32_t graph_number(const fxtap_graph_info *graph)
{
    return graph == NULL ? 0 : graph->graph;
}

static const fxtap_step_info *step_of(const fx_set *set)
{
    return set == NULL ? NULL : set->step;
}

/* Which step of which graph the pair stands in. */
static void place(const fx_group_work *group, fxtap_pair *pair, bool has_golden, bool has_target)
{
    pair->rank = group->rank;
    pair->graph = graph_number(has_golden ? group->golden_graph : group->target_graph);
    pair->step = step_number(step_of(has_golden ? group->golden : group->target));
    pair->target_graph = has_target ? graph_number(group->target_graph) : 0;
    pair->target_step = has_target ? step_number(step_of(group->target)) : -1;
}

static fxtap_status add_pair(fx_batch *batch, const fx_group_work *group, size_t g, size_t t, fxtap_pairing pairing,
                             double confidence)
{
    fx_comparison *comparison = batch->comparison;
    const fxtap_tensor_info *golden = fx_batch_golden(batch, g);
    const fxtap_tensor_info *target = fx_batch_target(batch, t);
    fxtap_pair *pair = fx_batch_add_pair(batch, g, t);
    if (pair == NULL || !describe(&comparison->texts, pair, golden != NULL ? golden : target)) {
        return FXTAP_E_NOMEM;
    }
    place(group, pair, golden != NULL, target != NULL);
    pair->pairing = golden == NULL || target == NULL ? FXTAP_PAIR_NONE : pairing;
    pair->confidence = golden == NULL || target == NULL ? 0.0 : confidence;
    pair->verdict = golden == NULL ? FXTAP_ONLY_TARGET : target == NULL ? FXTAP_ONLY_GOLDEN : FXTAP_NOT_COMPARED;
    bool copied = true;
    if (golden != NULL) {
        copied &= copy_meta(comparison, golden, &pair->golden_path, &pair->golden_dtype, &pair->ndim, &pair->shape);
    }
    if (target != NULL) {
        copied &= copy_meta(comparison, target, &pair->target_path, &pair->target_dtype, &pair->target_ndim,
                            &pair->target_shape);
    }
    if (golden != NULL && target != NULL && strcmp(golden->name, target->name) != 0) {
        pair->target_name = keep(&comparison->texts, target->name);
        copied &= pair->target_name != NULL;
    }
    pair->golden_recorded = golden != NULL && golden->has_meta;
    pair->target_recorded = target != NULL && target->has_meta;
    return copied ? FXTAP_OK : FXTAP_E_NOMEM;
}

static bool same_place(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->node == NULL || b->node == NULL || (a->io == b->io && strcmp(a->position, b->position) == 0);
}

/* Where the operators differ only their results stand for the same thing. */
static bool may_pair(const fx_node_entry *golden, const fx_node_entry *target, const fxtap_tensor_info *tensor)
{
    return strcmp(golden->target, target->target) == 0 || tensor->io != FXTAP_INPUT || golden->pairing == FXTAP_PAIR_MAPPED;
}

static fxtap_status pair_places(fx_batch *batch, const fx_group_work *group, const fx_node_entry *golden,
                                const fx_node_entry *target)
{
    bool *taken = fx_arena_calloc(&batch->arena, target->n_tensors, sizeof *taken);
    if (taken == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = FXTAP_OK;
    for (size_t g = golden->first; g < golden->first + golden->n_tensors && status == FXTAP_OK; g++) {
        const fxtap_tensor_info *left = fx_batch_golden(batch, g);
        size_t partner = FX_MISSING;
        for (size_t t = 0; t < target->n_tensors && partner == FX_MISSING; t++) {
            const fxtap_tensor_info *right = fx_batch_target(batch, target->first + t);
            if (!taken[t] && same_place(left, right) && may_pair(golden, target, left)) {
                partner = target->first + t;
                taken[t] = true;
            }
        }
        status = add_pair(batch, group, g, partner, golden->pairing, golden->confidence);
    }
    for (size_t t = 0; t < target->n_tensors && status == FXTAP_OK; t++) {
        if (!taken[t]) {
            status = add_pair(batch, group, FX_MISSING, target->first + t, FXTAP_PAIR_NONE, 0.0);
        }
    }
    return status;
}

static fxtap_status add_alone(fx_batch *batch, const fx_group_work *group, const fx_node_entry *node, bool is_golden)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = node->first; i < node->first + node->n_tensors && status == FXTAP_OK; i++) {
        status = add_pair(batch, group, is_golden ? i : FX_MISSING, is_golden ? FX_MISSING : i, FXTAP_PAIR_NONE, 0.0);
    }
    return status;
}

static bool glob_hits(const char *pattern, const fx_node_entry *node, const fxtap_tensor_list *list)
{
    if (node == NULL) {
        return false;
    }
    return fxtap_glob_match(pattern, node->name) || fxtap_glob_match(pattern, node->target) ||
           (node->info != NULL && fxtap_glob_match(pattern, node->info->module_path)) ||
           fxtap_glob_match(pattern, fxtap_tensor_list_at(list, node->first)->name);
}

/* Appends the pairs of one node (either side may be missing), unless the pattern passes it over. */
static fxtap_status add_node(fx_batch *batch, fx_group_nodes *group, const fx_node_entry *golden,
                             const fx_node_entry *target)
{
    const char *pattern = batch->comparison->options->pattern;
    if (pattern != NULL && !glob_hits(pattern, golden, batch->golden) && !glob_hits(pattern, target, batch->target)) {
        return FXTAP_OK;
    }
    fx_node_pair *node = &group->nodes[group->n_nodes];
    const fx_node_entry *first = golden != NULL ? golden : target;
    *node = (fx_node_pair){.golden = golden == NULL ? NULL : golden->info,
                           .target = target == NULL ? NULL : target->info,
                           .pairing = first->pairing,
                           .confidence = first->confidence,
                           .first_pair = batch->n_pairs};
    fxtap_status status;
    if (golden != NULL && target != NULL) {
        status = pair_places(batch, group->group, golden, target);
    } else {
        status = add_alone(batch, group->group, first, golden != NULL);
    }
    node->n_pairs = batch->n_pairs - node->first_pair;
    group->n_nodes++;
    return status;
}

static fxtap_status add_nodes(fx_batch *batch, fx_group_nodes *group, const fx_node_list *golden,
                              const fx_node_list *target)
{
    group->nodes = fx_arena_calloc(&batch->arena, golden->n_items + target->n_items + 1, sizeof *group->nodes);
    if (group->nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0; g < golden->n_items && status == FXTAP_OK; g++) {
        size_t partner = golden->items[g].partner;
        status = add_node(batch, group, &golden->items[g], partner == FX_MISSING ? NULL : &target->items[partner]);
    }
    for (size_t t = 0; t < target->n_items && status == FXTAP_OK; t++) {
        if (target->items[t].partner == FX_MISSING) {
            status = add_node(batch, group, NULL, &target->items[t]);
        }
    }
    return status;
}

static fxtap_status add_group(fx_batch *batch, const fx_group_work *work, size_t first_pair)
{
    return fx_report_add_group(batch->comparison->report, &(fxtap_group){
        .rank = work->rank,
        .graph = graph_number(work->golden_graph != NULL ? work->golden_graph : work->target_graph),
        .target_graph = graph_number(work->target_graph),
        .step = step_number(step_of(work->golden)),
        .target_step = step_number(step_of(work->target)),
        .pairing = work->pairing,
        .call = call_number(work->golden != NULL ? work->golden : work->target),
        .first_pair = batch->first_pair + first_pair,
        .n_pairs = batch->n_pairs - first_pair,
    });
}

static fxtap_status match(fx_batch *batch, const fx_group_nodes *group, fx_node_list *golden, fx_node_list *target)
{
    fx_comparison *comparison = batch->comparison;
    if (list_nodes(&batch->arena, batch->golden, group->first_golden, group->end_golden, golden) != FXTAP_OK ||
        list_nodes(&batch->arena, batch->target, group->first_target, group->end_target, target) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    bool two_files = fxtap_reader_kind(comparison->golden.reader) == FXTAP_READ_FILE &&
                     fxtap_reader_kind(comparison->target.reader) == FXTAP_READ_FILE;
    if (two_files && golden->n_items == 1 && target->n_items == 1) {
        fx_join_nodes(golden, 0, target, 0, FXTAP_PAIR_EXACT, 1.0);
        return FXTAP_OK;
    }
    return fx_match_nodes(comparison->map, group->group->same_structure, golden, target);
}

fxtap_status fx_pair_nodes(fx_batch *batch, fx_group_nodes *group)
{
    fx_node_list golden, target;
    fxtap_status status = match(batch, group, &golden, &target);
    size_t first_pair = batch->n_pairs;
    if (status == FXTAP_OK) {
        status = add_nodes(batch, group, &golden, &target);
    }
    return status == FXTAP_OK ? add_group(batch, group->group, first_pair) : status;
}
