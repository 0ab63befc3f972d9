/*
 * calls.c - which calls of a graph are paired with each other.
 *
 * A graph may be called for each layer, or for several models with the same structure, and one side may call it once
 * more or in another order: then pairing by number is wrong. Calls with the same weights are paired; if there are
 * several, in order. A backward graph without weights is identified by its other inputs; for other graphs these are
 * data and may be wrong.
 */
#include <string.h>

#include "pair/calls.h"
#include "pair/wiring.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_CALLS 1024 /* if there are more, their inputs are not read in advance */
#define MAX_INPUTS 8   /* examined */

/* The inputs of nodes that distinguish calls of one graph. */
typedef struct graph_inputs {
    fx_wiring *wiring; /* owns the positions; NULL: no record */
    const fxtap_node_info *nodes[MAX_INPUTS];
    const char *positions[MAX_INPUTS];
    size_t n;
} graph_inputs;

/* The first node inputs that are weights or, without weights, any inputs of the graph. */
static void list_inputs(const fxtap_node_info *const *nodes, size_t n_nodes, bool weights, graph_inputs *out)
{
    for (size_t i = 0; i < n_nodes && i < fx_wiring_node_count(out->wiring); i++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(out->wiring, i, &n_inputs);
        for (size_t k = 0; k < n_inputs && out->n < MAX_INPUTS && nodes[i]->skipped == NULL; k++) {
            if (weights ? fx_wiring_is_weight(out->wiring, inputs[k])
                        : fx_wiring_is_placeholder(out->wiring, inputs[k])) {
                out->nodes[out->n] = nodes[i];
                out->positions[out->n++] = fx_wiring_position(out->wiring, i, k);
            }
        }
    }
}

static fxtap_status find_inputs(fxtap_reader *reader, const fxtap_graph_info *graph, graph_inputs *out)
{
    const fxtap_graph *record = NULL;
    const fxtap_node_info *const *nodes;
    size_t n_nodes;
    if (fxtap_reader_record(reader, graph, &record) != FXTAP_OK) {
        return FXTAP_OK;
    }
    fxtap_status status = fxtap_reader_nodes(reader, graph, &nodes, &n_nodes);
    if (status == FXTAP_OK) {
        status = fx_wiring_create(&(fx_wiring_part){record, n_nodes}, 1, &out->wiring);
    }
    if (status == FXTAP_OK) {
        list_inputs(nodes, n_nodes, true, out);
        if (out->n == 0 && graph->kind == FXTAP_GRAPH_BACKWARD) {
            list_inputs(nodes, n_nodes, false, out);
        }
    }
    return status;
}

uint64_t fx_add_to_signature(uint64_t signature, fxtap_hash128 hash)
{
    return XXH3_64bits_withSeed(&hash, sizeof hash, signature) | 1u;
}

/* Calls of one graph. */
static fxtap_status sign_calls(fxtap_reader *reader, const fxtap_step_info *const *calls, size_t n, uint64_t *out)
{
    graph_inputs inputs = {0};
    fxtap_hash128 *hashes = fx_calloc(n, sizeof *hashes);
    fxtap_status status = hashes == NULL ? FXTAP_E_NOMEM : find_inputs(reader, calls[0]->graph, &inputs);
    for (size_t k = 0; k < inputs.n && status == FXTAP_OK; k++) {
        status = fxtap_reader_input_hashes(reader, inputs.nodes[k], inputs.positions[k], calls, n, hashes);
        for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
            if (hashes[i].high != 0 || hashes[i].low != 0) {
                out[i] = fx_add_to_signature(out[i], hashes[i]);
            }
        }
    }
    fx_wiring_free(inputs.wiring);
    fx_free(hashes);
    return status;
}

fxtap_status fx_sign_calls(const fx_side *side, const fxtap_step_info *const *calls, size_t n, uint64_t *out)
{
    fxtap_status status = FXTAP_OK;
    for (size_t first = 0, end; first < n && status == FXTAP_OK; first = end) {
        for (end = first + 1; end < n && calls[end]->graph == calls[first]->graph;) {
            end++;
        }
        status = sign_calls(side->reader, calls + first, end - first, out + first);
    }
    return status;
}

fxtap_status fx_pair_calls(fx_arena *arena, const fx_side *golden_side, const fxtap_step_info *const *golden,
                           size_t n_golden, const fx_side *target_side, const fxtap_step_info *const *target,
                           size_t n_target, fx_call_partners *partners)
{
    if (n_golden * n_target <= 1 || n_golden > MAX_CALLS || n_target > MAX_CALLS) {
        return FXTAP_OK;
    }
    uint64_t *left = fx_arena_calloc(arena, n_golden, sizeof *left);
    uint64_t *right = fx_arena_calloc(arena, n_target, sizeof *right);
    fxtap_status status =
        left == NULL || right == NULL ? FXTAP_E_NOMEM : fx_sign_calls(golden_side, golden, n_golden, left);
    status = status == FXTAP_OK ? fx_sign_calls(target_side, target, n_target, right) : status;
    for (size_t g = 0; g < n_golden && status == FXTAP_OK; g++) {
        for (size_t t = 0; t < n_target && left[g] != 0 && partners->of_golden[g] == FX_MISSING; t++) {
            if (left[g] == right[t] && !partners->is_taken[t]) {
                partners->of_golden[g] = t;
                partners->is_taken[t] = true;
            }
        }
    }
    return status;
}
