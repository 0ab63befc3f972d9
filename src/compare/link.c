/*
 * link.c - origins of all groups: in order of execution, without errors that came from an earlier call.
 *
 * A graph input that differs is not an origin if, by both sides' hashes, it is a result of an earlier call of the same
 * rank. If an earlier call went wrong in any way, an input that differs may follow from it (through code outside the
 * graphs: a loss, an optimiser) and is marked so. The origins of shards are linked when the shards are merged.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/link.h"
#include "compare/report.h"
#include "util/memory.h"

/* The group of a pair; the pairs of a group are contiguous. */
const fxtap_group *fx_group_of(const fxtap_report *report, const fxtap_pair *pair)
{
    size_t index = (size_t)(pair - report->pairs), low = 0, high = report->n_groups;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (report->groups[middle].first_pair <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &report->groups[low];
}

int fx_compare_groups(const fxtap_group *a, const fxtap_group *b)
{
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->call != b->call) {
        return (uint64_t)a->call < (uint64_t)b->call ? -1 : 1; /* -1 (unknown) sorts last */
    }
    return (a > b) - (a < b);
}

static int compare_origins(const void *left, const void *right, void *context)
{
    const fxtap_report *report = context;
    const fxtap_origin *a = left, *b = right;
    int order = fx_compare_groups(fx_group_of(report, a->pair), fx_group_of(report, b->pair));
    return order != 0 ? order : (a->pair > b->pair) - (a->pair < b->pair);
}

static int compare_hashes(const fxtap_pair *a, const fxtap_pair *b)
{
    const uint64_t left[] = {a->golden_hash.high, a->golden_hash.low, a->target_hash.high, a->target_hash.low};
    const uint64_t right[] = {b->golden_hash.high, b->golden_hash.low, b->target_hash.high, b->target_hash.low};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    const fxtap_pair *const *a = left, *const *b = right;
    int order = compare_hashes(*a, *b);
    return order != 0 ? order : (*a > *b) - (*a < *b);
}

typedef struct results { /* bad results with hashes, sorted by hash */
    const fxtap_pair **items;
    size_t n;
} results;

static fxtap_status list_results(const fxtap_report *report, results *out)
{
    out->items = fx_calloc(report->n_pairs, sizeof *out->items);
    if (out->items == NULL) {
        return FXTAP_E_NOMEM;
    }
    out->n = 0;
    for (size_t i = 0; i < report->n_pairs; i++) {
        if (report->pairs[i].has_hashes && report->pairs[i].io != FXTAP_INPUT) {
            out->items[out->n++] = &report->pairs[i];
        }
    }
    qsort(out->items, out->n, sizeof *out->items, compare_entries);
    return FXTAP_OK;
}

/* Whether this input is a result of an earlier call. */
static bool came_out_before(const fxtap_report *report, const results *from, const fxtap_pair *input)
{
    size_t low = 0, high = from->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_hashes(from->items[middle], input) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const fxtap_group *group = fx_group_of(report, input);
    for (; low < from->n && compare_hashes(from->items[low], input) == 0; low++) {
        const fxtap_group *other = fx_group_of(report, from->items[low]);
        if (other->rank == group->rank && fx_compare_groups(other, group) < 0) {
            return true;
        }
    }
    return false;
}

static bool came_from_outside(const fxtap_origin *origin)
{
    return origin->reason == FXTAP_ORIGIN_INPUT || origin->reason == FXTAP_ORIGIN_WEIGHT;
}

static bool may_follow(const fxtap_origin *origin)
{
    return came_from_outside(origin) || origin->reason == FXTAP_ORIGIN_DRIFT || origin->reason == FXTAP_ORIGIN_BEFORE;
}

/* Drops inputs that are results of earlier calls; later operators propagate the rank's first origin. */
static void drop_carried(fxtap_report *report, const results *from)
{
    size_t n_kept = 0, first_of_rank = SIZE_MAX;
    for (size_t i = 0; i < report->n_origins; i++) {
        fxtap_origin origin = report->origins[i];
        bool is_new_rank = first_of_rank == SIZE_MAX || report->origins[first_of_rank].pair->rank != origin.pair->rank;
        bool is_carried = !is_new_rank && came_from_outside(&origin) && origin.pair->has_hashes &&
                          came_out_before(report, from, origin.pair);
        if (is_carried) {
            report->origins[first_of_rank].n_carried += origin.n_carried;
            continue;
        }
        first_of_rank = is_new_rank ? n_kept : first_of_rank;
        const fxtap_origin *first = first_of_rank < n_kept ? &report->origins[first_of_rank] : NULL;
        origin.follows = first != NULL && may_follow(&origin) &&
                         fx_group_of(report, first->pair) != fx_group_of(report, origin.pair);
        report->origins[n_kept++] = origin;
    }
    report->n_origins = n_kept;
}

fxtap_status fx_link_origins(fxtap_report *report, bool is_whole)
{
    if (report->n_origins == 0) {
        return FXTAP_OK;
    }
    for (size_t i = 0; i < report->n_origins; i++) {
        report->origins[i].pair = &report->pairs[report->origin_pairs[i]];
    }
    qsort_r(report->origins, report->n_origins, sizeof *report->origins, compare_origins, report);
    if (!is_whole) {
        return FXTAP_OK;
    }
    results from;
    fxtap_status status = list_results(report, &from);
    if (status == FXTAP_OK) {
        drop_carried(report, &from);
        fx_free(from.items);
    }
    return status;
}

bool fx_update_before(const fxtap_report *report, const fxtap_origin *origin, int64_t *step_out)
{
    const fxtap_group *own = fx_group_of(report, origin->pair), *before = NULL;
    if (origin->reason != FXTAP_ORIGIN_WEIGHT || origin->follows) {
        return false;
    }
    for (size_t i = 0; i < report->n_origins; i++) { /* in order of execution: earlier entries began earlier */
        const fxtap_group *other = fx_group_of(report, report->origins[i].pair);
        if (other != own && other->rank == own->rank && fx_compare_groups(other, own) < 0) {
            return false;
        }
    }
    for (size_t i = 0; i < report->n_groups; i++) {
        const fxtap_group *other = &report->groups[i];
        bool is_earlier = other->rank == own->rank && other->graph == own->graph && other->step < own->step;
        before = is_earlier && (before == NULL || other->step > before->step) ? other : before;
    }
    if (before == NULL) {
        return false;
    }
    *step_out = before->step;
    return true;
}

/* ---- details ---- */

typedef struct worst_pairs { /* largest rel_l2 first; among equals the earlier first */
    size_t items[2 * FX_DETAILED];
    size_t n;
    size_t n_most;
} worst_pairs;

static double badness(const fxtap_pair *pair)
{
    return isnan(pair->rel_l2) ? INFINITY : pair->rel_l2;
}

static void keep_worst(const fxtap_report *report, worst_pairs *worst, size_t pair)
{
    size_t at = worst->n;
    while (at > 0 && badness(&report->pairs[worst->items[at - 1]]) < badness(&report->pairs[pair])) {
        at--;
    }
    if (at == worst->n_most) {
        return;
    }
    worst->n += worst->n < worst->n_most;
    memmove(&worst->items[at + 1], &worst->items[at], (worst->n - 1 - at) * sizeof worst->items[0]);
    worst->items[at] = pair;
}

/* Merging the shards may show that this input is a result of an earlier call. */
static bool may_be_dropped(const fxtap_origin *origin)
{
    return came_from_outside(origin) && origin->pair->has_hashes;
}

static void choose_origins(const fxtap_report *report, bool is_whole, bool *chosen)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_origins && n < FX_DETAILED; i++) {
        chosen[report->origins[i].pair - report->pairs] = true;
        n += is_whole || !may_be_dropped(&report->origins[i]);
    }
}

fxtap_status fx_choose_details(const fxtap_report *report, bool is_whole, bool **out)
{
    bool *chosen = fx_calloc(report->n_pairs, sizeof *chosen);
    if (chosen == NULL) {
        return FXTAP_E_NOMEM;
    }
    choose_origins(report, is_whole, chosen);
    /* a shard also keeps pairs that its own origins displace, because merging may drop those origins */
    worst_pairs worst = {.n_most = is_whole ? FX_DETAILED : 2 * FX_DETAILED};
    for (size_t i = 0; i < report->n_pairs; i++) {
        const fxtap_pair *pair = &report->pairs[i];
        bool has_values = pair->verdict == FXTAP_DIFFERENT && pair->measured && pair->golden_stats != NULL;
        if (has_values && !(is_whole && chosen[i])) {
            keep_worst(report, &worst, i);
        }
    }
    for (size_t i = 0; i < worst.n; i++) {
        chosen[worst.items[i]] = true;
    }
    *out = chosen;
    return FXTAP_OK;
}

void fx_trim_details(fxtap_report *report, const bool *chosen)
{
    for (size_t i = 0; i < report->n_pairs; i++) {
        if (!chosen[i]) {
            report->pairs[i].histograms = NULL;
        }
    }
    for (size_t i = FX_DETAILED; i < report->n_origins; i++) {
        report->origins[i].around = NULL;
    }
}
