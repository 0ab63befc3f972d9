/* align_calls.c - calls of two executions whose graphs have equal structure: their nodes pair by position. */
#include "pair/align.h"
#include "pair/calls.h"

#include <string.h>

#include "util/memory.h"

#define MOST_CELLS ((size_t)1 << 22) /* if a step has more calls, only the nodes are aligned */
#define MOST_READ 8                  /* graph inputs examined */

void fx_align_by_place(fx_execution *golden, const fx_exec_call *golden_call, fx_execution *target,
                       const fx_exec_call *target_call)
{
    for (size_t i = 0; i < golden_call->n_nodes && i < target_call->n_nodes; i++) {
        size_t g = golden_call->first_node + i, t = target_call->first_node + i;
        fx_exec_node *left = &golden->nodes[g], *right = &target->nodes[t];
        bool is_one = left->operator_name != NULL && right->operator_name != NULL && left->partner == FX_MISSING &&
                      right->partner == FX_MISSING;
        bool is_operator = is_one && left->n_tensors > 0 && right->n_tensors > 0;
        if (is_one && (!is_operator || strcmp(left->operator_name, right->operator_name) == 0)) {
            fx_join(golden, g, target, t, FX_EV_STRUCTURE, 100);
        }
    }
}

/* A hash of a call's weights or, for a backward without weights, of its first inputs. 0: unknown. */
static uint64_t sign_call(const fx_execution *execution, const fx_exec_call *call, bool weights)
{
    uint64_t signature = 0;
    size_t n = 0;
    for (size_t i = call->first_node;
         i < call->first_node + call->n_nodes && n < MOST_READ && execution->wiring != NULL; i++) {
        bool is_one =
            weights ? fx_wiring_is_weight(execution->wiring, i) : fx_wiring_is_placeholder(execution->wiring, i);
        const fxtap_tensor_info *value = is_one ? fx_execution_value(execution, i) : NULL;
        if (value != NULL && value->has_hash) {
            signature = fx_add_to_signature(signature, value->hash);
            n++;
        }
    }
    bool is_backward = call->graph != NULL && call->graph->kind == FXTAP_GRAPH_BACKWARD;
    return signature != 0 || !weights || !is_backward ? signature : sign_call(execution, call, false);
}

typedef struct call_pairing {
    fx_execution *sides[2];
    uint64_t *signatures[2];
    bool *is_known[2]; /* a call of equal structure on the other side has the same inputs */
    size_t n[2];
} call_pairing;

static bool same_structure(const call_pairing *p, size_t i, size_t k)
{
    return fx_same_structure(p->sides[0]->calls[i].graph, p->sides[1]->calls[k].graph);
}

static bool were_given_the_same(const call_pairing *p, size_t i, size_t k)
{
    return p->signatures[0][i] != 0 && p->signatures[0][i] == p->signatures[1][k];
}

static bool create(fx_arena *arena, call_pairing *p)
{
    for (int side = 0; side < 2; side++) {
        p->n[side] = p->sides[side]->n_calls;
        p->signatures[side] = fx_arena_calloc(arena, p->n[side] + 1, sizeof *p->signatures[side]);
        p->is_known[side] = fx_arena_calloc(arena, p->n[side] + 1, sizeof *p->is_known[side]);
        if (p->signatures[side] == NULL || p->is_known[side] == NULL) {
            return false;
        }
        for (size_t i = 0; i < p->n[side]; i++) {
            p->signatures[side][i] = sign_call(p->sides[side], &p->sides[side]->calls[i], true);
        }
    }
    for (size_t i = 0; i < p->n[0]; i++) {
        for (size_t k = 0; k < p->n[1]; k++) {
            if (were_given_the_same(p, i, k) && same_structure(p, i, k)) {
                p->is_known[0][i] = p->is_known[1][k] = true;
            }
        }
    }
    return true;
}

/* A call whose inputs match one call is no counterpart of another: there may be an extra layer, or another order. */
static uint32_t weight_of(const call_pairing *p, size_t i, size_t k)
{
    if (!same_structure(p, i, k)) {
        return 0;
    }
    bool is_same = were_given_the_same(p, i, k);
    return is_same ? 2 : p->is_known[0][i] || p->is_known[1][k] ? 0 : 1;
}

static void join_calls(const call_pairing *p, size_t i, size_t k)
{
    fx_align_by_place(p->sides[0], &p->sides[0]->calls[i], p->sides[1], &p->sides[1]->calls[k]);
    p->is_known[0][i] = p->is_known[1][k] = false;
}

/* Pairs the remaining calls in any order. */
static void join_reordered(const call_pairing *p)
{
    for (size_t i = 0; i < p->n[0]; i++) {
        for (size_t k = 0; k < p->n[1] && p->is_known[0][i]; k++) {
            if (p->is_known[1][k] && were_given_the_same(p, i, k) && same_structure(p, i, k)) {
                join_calls(p, i, k);
            }
        }
    }
}

bool fx_align_calls(fx_arena *arena, fx_execution *golden, fx_execution *target)
{
    call_pairing p = {.sides = {golden, target}};
    size_t n = golden->n_calls, m = target->n_calls, cells;
    if (!fx_mul_size(n + 1, m + 1, &cells) || cells > MOST_CELLS) {
        return true;
    }
    uint32_t *best =
        fx_arena_calloc(arena, cells, sizeof *best); /* weight of the heaviest common subsequence from here on */
    if (best == NULL || !create(arena, &p)) {
        return false;
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = m; k-- > 0;) {
            uint32_t skip = best[(i + 1) * (m + 1) + k], other = best[i * (m + 1) + k + 1],
                     weight = weight_of(&p, i, k);
            uint32_t both = weight > 0 ? best[(i + 1) * (m + 1) + k + 1] + weight : 0;
            skip = skip > other ? skip : other;
            best[i * (m + 1) + k] = both > skip ? both : skip;
        }
    }
    for (size_t i = 0, k = 0; i < n && k < m;) {
        uint32_t here = best[i * (m + 1) + k], weight = weight_of(&p, i, k);
        if (weight > 0 && here == best[(i + 1) * (m + 1) + k + 1] + weight) {
            join_calls(&p, i++, k++);
        } else if (best[(i + 1) * (m + 1) + k] >= best[i * (m + 1) + k + 1]) {
            i++;
        } else {
            k++;
        }
    }
    join_reordered(&p);
    return true;
}
