/* around.c - details of an origin: the graph around it, and the distribution of the values. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/batch.h"
#include "compare/link.h"
#include "tensor/npy_file.h"
#include "util/error.h"
#include "util/memory.h"

#define MAX_NODES 48
#define N_BINS 48
#define FAR INT32_MAX

/* Stores the distance of the producers of `node` in depth[], as negative numbers. */
static void mark_above(const fx_wiring *wiring, int32_t *depth, size_t node)
{
    depth[node] = 0;
    for (size_t i = node + 1; i > 0; i--) {
        size_t at = i - 1, n_inputs;
        if (depth[at] == FAR || depth[at] <= -FX_AROUND_HOPS) {
            continue;
        }
        const size_t *inputs = fx_wiring_inputs(wiring, at, &n_inputs);
        for (size_t k = 0; k < n_inputs; k++) {
            if (depth[inputs[k]] == FAR || depth[inputs[k]] < depth[at] - 1) {
                depth[inputs[k]] = depth[at] - 1;
            }
        }
    }
}

static void mark_below(const fx_wiring *wiring, int32_t *depth, size_t node)
{
    size_t n_nodes = fx_wiring_node_count(wiring);
    for (size_t at = node + 1; at < n_nodes; at++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(wiring, at, &n_inputs);
        for (size_t k = 0; k < n_inputs; k++) {
            int32_t above = depth[inputs[k]];
            if (above != FAR && above >= 0 && above < FX_AROUND_HOPS && above + 1 < depth[at]) {
                depth[at] = above + 1;
            }
        }
    }
}

static bool describe(fx_arena *arena, const fx_group_nodes *group, const fx_node_health *health, size_t node,
                     int32_t depth, fxtap_neighbour *out)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    const fx_exec_call *call = group->golden_calls;
    while (node >= call->first_node + call->n_nodes) {
        call++;
    }
    if (call->record == NULL ||
        fxtap_graph_node(call->record, (fxtap_node)(node - call->first_node), &desc) != FXTAP_OK) {
        desc.name = desc.target = "";
    }
    out->node = fx_arena_strdup(arena, desc.name);
    out->operator_name = fx_arena_strdup(arena, desc.target);
    out->depth = depth;
    out->is_judged = health[node].is_judged;
    out->is_bad = health[node].is_bad;
    out->rel_l2 = health[node].rel_l2;
    return out->node != NULL && out->operator_name != NULL;
}

typedef struct selection {
    size_t nodes[MAX_NODES]; /* in execution order */
    size_t n_nodes;
} selection;

static selection select_nodes(const int32_t *depth, size_t n, size_t node)
{
    selection chosen = {.n_nodes = 0};
    size_t n_before = 0;
    for (size_t i = 0; i < n; i++) {
        n_before += i < node && depth[i] != FAR;
    }
    size_t skip = n_before > MAX_NODES / 2 ? n_before - MAX_NODES / 2 : 0; /* the origin is always included */
    for (size_t i = 0; i < n && chosen.n_nodes < MAX_NODES; i++) {
        if (depth[i] == FAR) {
            continue;
        }
        if (skip > 0 && i < node) {
            skip--;
            continue;
        }
        chosen.nodes[chosen.n_nodes++] = i;
    }
    return chosen;
}

static size_t place_of(const selection *chosen, size_t node)
{
    for (size_t i = 0; i < chosen->n_nodes; i++) {
        if (chosen->nodes[i] == node) {
            return i;
        }
    }
    return MAX_NODES;
}

static bool add_edges(fx_arena *arena, const fx_wiring *wiring, const selection *chosen, fxtap_neighbourhood *out)
{
    uint32_t *edges = NULL;
    size_t capacity = 0, n = 0;
    bool done = true;
    for (size_t c = 0; c < chosen->n_nodes && done; c++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(wiring, chosen->nodes[c], &n_inputs);
        for (size_t k = 0; k < n_inputs && done; k++) {
            size_t p = place_of(chosen, inputs[k]);
            if (p == MAX_NODES) {
                continue;
            }
            done = fx_grow((void **)&edges, &capacity, 2 * n + 2, sizeof *edges);
            if (done) {
                edges[2 * n] = (uint32_t)p;
                edges[2 * n + 1] = (uint32_t)c;
                n++;
            }
        }
    }
    out->edges = fx_arena_memdup(arena, edges, 2 * n * sizeof *edges);
    out->n_edges = n;
    fx_free(edges);
    return done && out->edges != NULL;
}

const fxtap_neighbourhood *fx_neighbourhood(fx_arena *arena, const fx_group_nodes *group, const fx_wiring *wiring,
                                            const fx_node_health *health, size_t node)
{
    size_t n = fx_wiring_node_count(wiring);
    int32_t *depth = fx_calloc(n, sizeof *depth);
    fxtap_neighbourhood *around = fx_arena_calloc(arena, 1, sizeof *around);
    fxtap_neighbour *nodes = fx_arena_calloc(arena, MAX_NODES, sizeof *nodes);
    if (depth == NULL || around == NULL || nodes == NULL) {
        fx_free(depth);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        depth[i] = FAR;
    }
    mark_above(wiring, depth, node);
    mark_below(wiring, depth, node);
    selection chosen = select_nodes(depth, n, node);
    bool done = true;
    for (size_t i = 0; i < chosen.n_nodes && done; i++) {
        done = describe(arena, group, health, chosen.nodes[i], depth[chosen.nodes[i]], &nodes[i]);
    }
    around->nodes = nodes;
    around->n_nodes = chosen.n_nodes;
    done = done && add_edges(arena, wiring, &chosen, around);
    fx_free(depth);
    return done ? around : NULL;
}

/* ---- histograms ---- */

static void widen(const fxtap_stats *stats, double *low, double *high)
{
    if (stats->has_range && isfinite(stats->min) && isfinite(stats->max)) {
        *low = fmin(*low, stats->min);
        *high = fmax(*high, stats->max);
    }
}

static fxtap_status count_values(const char *path, uint32_t flags, double low, double high, uint64_t *bins)
{
    fxtap_npy *file;
    fxtap_status status = fx_npy_open_at(AT_FDCWD, path, path, flags, &file);
    if (status == FXTAP_OK) {
        status = fxtap_stats_histogram(fxtap_npy_view(file), low, high, N_BINS, bins);
        fxtap_npy_close(file);
    }
    return status;
}

/* Fills the histograms of one pair if both files can be read; fails only with FXTAP_E_NOMEM. */
static fxtap_status add_histogram(fx_arena *arena, fxtap_pair *pair, uint32_t flags)
{
    double low = INFINITY, high = -INFINITY;
    if (pair->golden_stats == NULL || pair->golden_path == NULL || pair->target_path == NULL) {
        return FXTAP_OK;
    }
    widen(pair->golden_stats, &low, &high);
    widen(pair->target_stats, &low, &high);
    if (!(low <= high)) {
        return FXTAP_OK;
    }
    fxtap_histograms *histograms = fx_arena_calloc(arena, 1, sizeof *histograms);
    uint64_t *golden = fx_arena_calloc(arena, N_BINS, sizeof *golden);
    uint64_t *target = fx_arena_calloc(arena, N_BINS, sizeof *target);
    if (histograms == NULL || golden == NULL || target == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = count_values(pair->golden_path, flags, low, high, golden);
    if (status == FXTAP_OK) {
        status = count_values(pair->target_path, flags, low, high, target);
    }
    if (status == FXTAP_OK) {
        *histograms = (fxtap_histograms){low, high, N_BINS, golden, target};
        pair->histograms = histograms;
    }
    return status == FXTAP_E_NOMEM ? status : FXTAP_OK;
}

fxtap_status fx_add_histograms(fxtap_report *report, const bool *chosen, uint32_t flags)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < report->n_pairs && status == FXTAP_OK; i++) {
        if (chosen[i]) {
            status = add_histogram(&report->arena, &report->pairs[i], flags);
        }
    }
    return status;
}
