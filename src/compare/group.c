/*
 * group.c - which step of which graph is compared with which.
 *
 * Ranks pair by number (a lone rank pairs with a lone rank). Graphs of a rank pair by strict key and occurrence, then by
 * structural key, then by number, then by order, never an unlike kind. Steps pair by number, a lone step asked for
 * with a lone step asked for. What is left stands alone.
 */
#include <string.h>

#include "compare/batch.h"
#include "store/list_step.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct graph_entry {
    const fxtap_graph_info *info; /* NULL: plain files */
    int32_t rank;
    size_t first_set;
    size_t n_sets;
    size_t partner; /* index on the other side, or FX_MISSING */
    fxtap_pairing pairing;
    double confidence;
    bool same_structure;
} graph_entry;

typedef struct graph_list {
    graph_entry *items;
    size_t n_items;
} graph_list;

static fxtap_status list_graphs(fx_arena *arena, const fx_side *side, graph_list *out)
{
    out->items = fx_arena_calloc(arena, side->n_sets, sizeof *out->items);
    if (out->items == NULL) {
        return FXTAP_E_NOMEM;
    }
    out->n_items = 0;
    for (size_t i = 0; i < side->n_sets; i++) {
        const fxtap_step_info *step = side->sets[i].step;
        const fxtap_graph_info *info = step == NULL ? NULL : step->graph;
        if (out->n_items > 0 && out->items[out->n_items - 1].info == info) {
            out->items[out->n_items - 1].n_sets++;
            continue;
        }
        const fxtap_rank_info *rank = info == NULL ? NULL : fxtap_reader_rank(side->reader, info->rank_i);
        out->items[out->n_items++] = (graph_entry){.info = info, .rank = rank == NULL ? 0 : rank->rank,
                                                   .first_set = i, .n_sets = 1, .partner = FX_MISSING};
    }
    return FXTAP_OK;
}

static bool has_one_rank(const graph_list *list)
{
    for (size_t i = 1; i < list->n_items; i++) {
        if (list->items[i].rank != list->items[0].rank) {
            return false;
        }
    }
    return true;
}

typedef bool (*graphs_match)(const graph_entry *golden, const graph_entry *target);

static bool same_hash(fxtap_hash128 a, fxtap_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

static bool both_have_keys(const graph_entry *golden, const graph_entry *target)
{
    return golden->info != NULL && target->info != NULL && golden->info->has_keys && target->info->has_keys;
}

static bool kinds_agree(const graph_entry *golden, const graph_entry *target)
{
    return golden->info == NULL || target->info == NULL || golden->info->kind == 0 || target->info->kind == 0 ||
           golden->info->kind == target->info->kind;
}

static bool by_strict_key(const graph_entry *golden, const graph_entry *target)
{
    return both_have_keys(golden, target) && same_hash(golden->info->strict_key, target->info->strict_key) &&
           golden->info->occurrence == target->info->occurrence;
}

static bool by_structural_key(const graph_entry *golden, const graph_entry *target)
{
    return both_have_keys(golden, target) && kinds_agree(golden, target) &&
           same_hash(golden->info->structural_key, target->info->structural_key);
}

static bool by_number(const graph_entry *golden, const graph_entry *target)
{
    return kinds_agree(golden, target) && golden->info != NULL && target->info != NULL &&
           golden->info->graph == target->info->graph;
}

static bool by_order(const graph_entry *golden, const graph_entry *target)
{
    return kinds_agree(golden, target);
}

static void pair_graphs_pass(graph_list *golden, graph_list *target, bool ignore_rank, graphs_match match,
                             const graph_entry *as)
{
    for (size_t g = 0; g < golden->n_items; g++) {
        for (size_t t = 0; t < target->n_items && golden->items[g].partner == FX_MISSING; t++) {
            graph_entry *a = &golden->items[g], *b = &target->items[t];
            if (b->partner != FX_MISSING || (!ignore_rank && a->rank != b->rank) || !match(a, b)) {
                continue;
            }
            a->partner = t;
            b->partner = g;
            a->pairing = as->pairing;
            a->confidence = as->confidence;
            a->same_structure = as->same_structure || by_structural_key(a, b);
        }
    }
}

static fxtap_status add_group(fx_comparison *comparison, const fx_group_work *work)
{
    if (!fx_grow((void **)&comparison->groups, &comparison->groups_capacity, comparison->n_groups + 1,
                 sizeof *comparison->groups)) {
        return FXTAP_E_NOMEM;
    }
    comparison->groups[comparison->n_groups] = *work;
    comparison->groups[comparison->n_groups].number = comparison->n_groups;
    comparison->n_groups++;
    return FXTAP_OK;
}

/* By number or by its folder. */
static bool is_step_asked_for(const fx_side *side)
{
    return side->query.step >= 0 || fx_reader_is_one_step(side->reader);
}

static bool steps_match(const fx_comparison *comparison, const fx_set *golden, const fx_set *target)
{
    const fxtap_step_info *a = golden->step, *b = target->step;
    bool both_asked_for = is_step_asked_for(&comparison->golden) && is_step_asked_for(&comparison->target);
    return a == NULL || b == NULL || both_asked_for || a->step == b->step;
}

/* Pairs the steps of one pair of graphs; either side may be missing. `rank` is what the pairs are reported under. */
static fxtap_status pair_steps(fx_comparison *comparison, const graph_entry *golden, const graph_entry *target,
                               int32_t rank)
{
    size_t n_golden = golden == NULL ? 0 : golden->n_sets, n_target = target == NULL ? 0 : target->n_sets;
    bool *taken = fx_arena_calloc(&comparison->arena, n_target + 1, sizeof *taken);
    if (taken == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_group_work work = {.golden_graph = golden == NULL ? NULL : golden->info,
                          .target_graph = target == NULL ? NULL : target->info,
                          .rank = rank};
    if (golden != NULL && target != NULL) {
        work.pairing = golden->pairing;
        work.confidence = golden->confidence;
        work.same_structure = golden->same_structure;
    }
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0; g < n_golden && status == FXTAP_OK; g++) {
        work.golden = &comparison->golden.sets[golden->first_set + g];
        work.target = NULL;
        for (size_t t = 0; t < n_target && work.target == NULL; t++) {
            const fx_set *candidate = &comparison->target.sets[target->first_set + t];
            if (!taken[t] && steps_match(comparison, work.golden, candidate)) {
                work.target = candidate;
                taken[t] = true;
            }
        }
        status = add_group(comparison, &work);
    }
    work.golden = NULL;
    for (size_t t = 0; t < n_target && status == FXTAP_OK; t++) {
        if (!taken[t]) {
            work.target = &comparison->target.sets[target->first_set + t];
            status = add_group(comparison, &work);
        }
    }
    return status;
}

static void pair_graphs(const fx_comparison *comparison, graph_list *golden, graph_list *target)
{
    bool lone = has_one_rank(golden) && has_one_rank(target);
    if (comparison->options->golden_graph >= 0 && comparison->options->target_graph >= 0) {
        pair_graphs_pass(golden, target, lone, by_order,
                         &(graph_entry){.pairing = FXTAP_PAIR_MAPPED, .confidence = 1.0});
    }
    pair_graphs_pass(golden, target, lone, by_strict_key,
                     &(graph_entry){.pairing = FXTAP_PAIR_EXACT, .confidence = 1.0, .same_structure = true});
    pair_graphs_pass(golden, target, lone, by_structural_key,
                     &(graph_entry){.pairing = FXTAP_PAIR_EXACT, .confidence = 0.95, .same_structure = true});
    pair_graphs_pass(golden, target, lone, by_number,
                     &(graph_entry){.pairing = FXTAP_PAIR_ORDER, .confidence = 0.7});
    pair_graphs_pass(golden, target, lone, by_order,
                     &(graph_entry){.pairing = FXTAP_PAIR_ORDER, .confidence = 0.4});
}

fxtap_status fx_pair_groups(fx_comparison *comparison)
{
    graph_list golden, target;
    if (list_graphs(&comparison->arena, &comparison->golden, &golden) != FXTAP_OK ||
        list_graphs(&comparison->arena, &comparison->target, &target) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    pair_graphs(comparison, &golden, &target);
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0; g < golden.n_items && status == FXTAP_OK; g++) {
        size_t partner = golden.items[g].partner;
        status = pair_steps(comparison, &golden.items[g], partner == FX_MISSING ? NULL : &target.items[partner],
                            golden.items[g].rank);
    }
    for (size_t t = 0; t < target.n_items && status == FXTAP_OK; t++) {
        if (target.items[t].partner == FX_MISSING) {
            status = pair_steps(comparison, NULL, &target.items[t], target.items[t].rank);
        }
    }
    return status;
}

static bool are_replicas(const graph_entry *original, const graph_entry *replica)
{
    return both_have_keys(original, replica) ? by_strict_key(original, replica) : by_number(original, replica);
}

/* Pairs the first rank's graphs [0, n_originals) with those of one other rank, [first, end). */
static fxtap_status pair_rank(fx_comparison *comparison, graph_list *list, size_t n_originals, size_t first, size_t end)
{
    int32_t rank = list->items[first].rank;
    fxtap_status status = FXTAP_OK;
    for (size_t t = first; t < end; t++) {
        list->items[t].partner = FX_MISSING;
    }
    for (size_t g = 0; g < n_originals && status == FXTAP_OK; g++) {
        graph_entry *original = &list->items[g], *replica = NULL;
        for (size_t t = first; t < end && replica == NULL; t++) {
            bool is_one = list->items[t].partner == FX_MISSING && are_replicas(original, &list->items[t]);
            replica = is_one ? &list->items[t] : NULL;
        }
        if (replica != NULL) {
            replica->partner = g;
            original->pairing = FXTAP_PAIR_EXACT;
            original->confidence = 1.0;
            original->same_structure = both_have_keys(original, replica);
        }
        status = pair_steps(comparison, original, replica, rank);
    }
    for (size_t t = first; t < end && status == FXTAP_OK; t++) {
        if (list->items[t].partner == FX_MISSING) {
            status = pair_steps(comparison, NULL, &list->items[t], rank);
        }
    }
    return status;
}

/* Replicas: the graphs of every other rank are held against the first rank's. Both sides list the same tensors. */
fxtap_status fx_pair_ranks(fx_comparison *comparison)
{
    graph_list list;
    if (comparison->golden.n_sets != comparison->target.n_sets) {
        return fx_error_at(FXTAP_E_IO, comparison->report->golden_path, "it changed while it was read");
    }
    if (list_graphs(&comparison->arena, &comparison->golden, &list) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    size_t n_originals = 0;
    while (n_originals < list.n_items && list.items[n_originals].rank == list.items[0].rank) {
        n_originals++;
    }
    if (n_originals == list.n_items) {
        return fx_error_at(FXTAP_E_NOT_FOUND, comparison->report->golden_path,
                           "only rank %d is here: nothing to compare it with", (int)list.items[0].rank);
    }
    fxtap_status status = FXTAP_OK;
    for (size_t first = n_originals, end; first < list.n_items && status == FXTAP_OK; first = end) {
        end = first + 1;
        while (end < list.n_items && list.items[end].rank == list.items[first].rank) {
            end++;
        }
        status = pair_rank(comparison, &list, n_originals, first, end);
    }
    return status;
}
