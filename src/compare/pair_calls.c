/*
 * pair_calls.c - which calls of a graph are paired with each other.
 *
 * A graph may be called for each layer, or for several models with the same structure, and one side may call it once
 * more or in another order: then pairing by number is wrong. Calls with the same weights are paired; if there are
 * several, in order. A backward graph without weights is identified by its other inputs; for other graphs these are
 * data and may be wrong.
 */
#include <string.h>

#include "compare/report.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MOST_CALLS 1024 /* if there are more, the inputs are not listed in advance */
#define MOST_READ 8     /* inputs examined */

typedef struct graph_input { /* a node's input that is an input of the graph */
    const char *node;
    const char *position;
} graph_input;

/* The first node inputs that are weights or, without weights, any inputs of the graph. Borrowed from the wiring. */
static size_t list_given(const fx_wiring *wiring, const fxtap_node_info *const *nodes, size_t n_nodes, bool weights,
                         graph_input out[MOST_READ])
{
    size_t n = 0;
    for (size_t i = 0; i < n_nodes && i < fx_wiring_node_count(wiring); i++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(wiring, i, &n_inputs);
        for (size_t k = 0; k < n_inputs && n < MOST_READ && nodes[i]->skipped == NULL; k++) {
            if (weights ? fx_wiring_is_weight(wiring, inputs[k]) : fx_wiring_is_placeholder(wiring, inputs[k])) {
                out[n++] = (graph_input){nodes[i]->name, fx_wiring_position(wiring, i, k)};
            }
        }
    }
    return n;
}

static bool is_given(const graph_input *given, size_t n, const fxtap_tensor_info *tensor)
{
    for (size_t i = 0; i < n; i++) {
        if (tensor->node != NULL && strcmp(tensor->node->name, given[i].node) == 0 &&
            strcmp(tensor->position, given[i].position) == 0) {
            return true;
        }
    }
    return false;
}

/* The inputs that distinguish calls of one graph. */
typedef struct graph_inputs {
    const fxtap_graph_info *graph;
    fx_wiring *wiring; /* owns the positions */
    graph_input items[MOST_READ];
    size_t n;
} graph_inputs;

static fxtap_status list_inputs(fxtap_reader *reader, const fxtap_graph_info *graph, graph_inputs *out)
{
    const fxtap_graph *record = NULL;
    const fxtap_node_info *const *nodes;
    size_t n_nodes;
    fx_wiring_free(out->wiring);
    *out = (graph_inputs){.graph = graph};
    if (fxtap_reader_record(reader, graph, &record) != FXTAP_OK) {
        return FXTAP_OK;
    }
    fxtap_status status = fxtap_reader_nodes(reader, graph, &nodes, &n_nodes);
    if (status == FXTAP_OK) {
        status = fx_wiring_create(&(fx_wiring_part){record, n_nodes}, 1, &out->wiring);
    }
    if (status == FXTAP_OK) {
        out->n = list_given(out->wiring, nodes, n_nodes, true, out->items);
        if (out->n == 0 && graph->kind == FXTAP_GRAPH_BACKWARD) {
            out->n = list_given(out->wiring, nodes, n_nodes, false, out->items);
        }
    }
    return status;
}

static fxtap_status sign_call(const fx_side *side, const fxtap_step_info *step, const graph_inputs *inputs,
                              uint64_t *out)
{
    fxtap_tensor_query query = side->query;
    query.io = FXTAP_INPUT;
    fxtap_tensor_list *list = NULL;
    fxtap_status status = fxtap_tensor_list_create(&list);
    if (status == FXTAP_OK) {
        status = fxtap_reader_list_step(side->reader, step, &query, list);
    }
    size_t n = status == FXTAP_OK ? fxtap_tensor_list_count(list) : 0;
    for (size_t i = 0; i < n; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, i);
        if (tensor->has_hash && is_given(inputs->items, inputs->n, tensor)) {
            *out = XXH3_64bits_withSeed(&tensor->hash, sizeof tensor->hash, *out) | 1u;
        }
    }
    fxtap_tensor_list_free(list);
    return status;
}

fxtap_status fx_sign_calls(const fx_side *side, const fxtap_step_info *const *calls, size_t n, uint64_t *out)
{
    graph_inputs inputs = {0};
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        const fxtap_step_info *step = calls[i];
        status = step->graph == inputs.graph ? FXTAP_OK : list_inputs(side->reader, step->graph, &inputs);
        if (status == FXTAP_OK && inputs.n > 0) {
            status = sign_call(side, step, &inputs, &out[i]);
        }
    }
    fx_wiring_free(inputs.wiring);
    return status;
}

fxtap_status fx_pair_calls(fx_comparison *c, const fxtap_step_info *const *golden, size_t n_golden,
                           const fxtap_step_info *const *target, size_t n_target, size_t *partners, bool *is_taken)
{
    for (size_t g = 0; g < n_golden; g++) {
        partners[g] = FX_MISSING;
    }
    if (n_golden * n_target <= 1 || n_golden > MOST_CALLS || n_target > MOST_CALLS) {
        return FXTAP_OK;
    }
    uint64_t *left = fx_arena_calloc(&c->arena, n_golden, sizeof *left);
    uint64_t *right = fx_arena_calloc(&c->arena, n_target, sizeof *right);
    fxtap_status status =
        left == NULL || right == NULL ? FXTAP_E_NOMEM : fx_sign_calls(&c->golden, golden, n_golden, left);
    status = status == FXTAP_OK ? fx_sign_calls(&c->target, target, n_target, right) : status;
    for (size_t g = 0; g < n_golden && status == FXTAP_OK; g++) {
        for (size_t t = 0; t < n_target && left[g] != 0 && partners[g] == FX_MISSING; t++) {
            if (left[g] == right[t] && !is_taken[t]) {
                partners[g] = t;
                is_taken[t] = true;
            }
        }
    }
    return status;
}
