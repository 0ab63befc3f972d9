/* steps.c - finding the iterations in a sequence of calls. */
#include "pair/steps.h"

#include <stdlib.h>
#include <string.h>

#include "fxtap/output.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static int compare_calls(const void *left, const void *right)
{
    const fxtap_step_info *a = *(const fxtap_step_info *const *)left, *b = *(const fxtap_step_info *const *)right;
    if (a->call != b->call) {
        return a->call < b->call ? -1 : 1;
    }
    return (a->graph->graph > b->graph->graph) - (a->graph->graph < b->graph->graph);
}

static fxtap_status class_of(fxtap_reader *reader, const fxtap_graph_info *graph, uint64_t *out)
{
    const fxtap_node_info *const *nodes;
    size_t n = 0;
    fxtap_status status = fxtap_reader_nodes(reader, graph, &nodes, &n);
    uint64_t hash = (uint64_t)graph->kind;
    for (size_t i = 0; status == FXTAP_OK && i < n; i++) {
        if (nodes[i]->source_code[0] != '\0') {
            hash = XXH3_64bits_withSeed(nodes[i]->source_code, strlen(nodes[i]->source_code), hash + 1);
            hash = XXH3_64bits_withSeed(nodes[i]->source_function, strlen(nodes[i]->source_function), hash);
            break;
        }
    }
    *out = hash;
    return status;
}

/* The class of the first graph that has a matching node; 0: none. */
static fxtap_status matching_class(fxtap_reader *reader, const fx_calls *calls, const char *pattern, uint64_t *out)
{
    fxtap_status status = FXTAP_OK;
    const fxtap_graph_info *before = NULL;
    *out = 0;
    for (size_t i = 0; i < calls->n && *out == 0 && status == FXTAP_OK; i++) {
        const fxtap_node_info *const *nodes;
        size_t n = 0;
        if (calls->items[i]->graph == before) {
            continue;
        }
        before = calls->items[i]->graph;
        status = fxtap_reader_nodes(reader, before, &nodes, &n);
        for (size_t k = 0; k < n && status == FXTAP_OK; k++) {
            if (fxtap_node_matches(pattern, nodes[k])) {
                *out = calls->classes[i];
                break;
            }
        }
    }
    return status;
}

/* The smallest number of calls after which the sequence repeats, at least once; 0: it does not repeat. */
static size_t find_period(const fx_calls *calls, size_t *border)
{
    size_t n = calls->n, length = 0;
    for (size_t i = 1; i < n; i++) { /* border[i]: the longest proper prefix of [0, i] that is its suffix too */
        while (length > 0 && calls->classes[i] != calls->classes[length]) {
            length = border[length - 1];
        }
        length += calls->classes[i] == calls->classes[length];
        border[i] = length;
    }
    size_t period = n > 0 ? n - border[n - 1] : 0;
    return n >= 2 * period ? period : 0;
}

static void split_by_period(fx_calls *calls, size_t period)
{
    calls->n_steps = 0;
    for (size_t at = 0; at < calls->n; at += period) {
        calls->first[calls->n_steps++] = at;
    }
    calls->first[calls->n_steps] = calls->n;
}

/* Begins a step with each call of `class`; with `after_another`, only if the previous call was of another class. */
static void split_by_class(fx_calls *calls, uint64_t class, bool after_another)
{
    calls->n_steps = 0;
    for (size_t i = 0; i < calls->n; i++) {
        bool begins = calls->classes[i] == class && !(after_another && i > 0 && calls->classes[i - 1] == class);
        if (i == 0 || begins) {
            calls->first[calls->n_steps++] = i;
        }
    }
    calls->first[calls->n_steps] = calls->n;
}

fxtap_status fx_calls_create(fx_arena *arena, fxtap_reader *reader, const fxtap_step_info **items, size_t n,
                             const char *step_of, fx_calls *out)
{
    *out = (fx_calls){.items = items,
                      .n = n,
                      .classes = fx_arena_calloc(arena, n + 1, sizeof *out->classes),
                      .first = fx_arena_calloc(arena, n + 2, sizeof *out->first)};
    size_t *border = fx_arena_calloc(arena, n + 1, sizeof *border);
    if (out->classes == NULL || out->first == NULL || border == NULL) {
        return FXTAP_E_NOMEM;
    }
    qsort(items, n, sizeof *items, compare_calls);
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        bool is_again = i > 0 && items[i]->graph == items[i - 1]->graph;
        status = is_again ? FXTAP_OK : class_of(reader, items[i]->graph, &out->classes[i]);
        out->classes[i] = is_again ? out->classes[i - 1] : out->classes[i];
    }
    uint64_t class = 0;
    if (status == FXTAP_OK && step_of != NULL) {
        status = matching_class(reader, out, step_of, &class);
    }
    if (status != FXTAP_OK || n == 0) {
        return status;
    }
    size_t period = class == 0 ? find_period(out, border) : 0;
    out->is_repeating = class != 0 || period > 0;
    if (period > 0) {
        split_by_period(out, period);
    } else {
        split_by_class(out, class != 0 ? class : out->classes[0], class == 0);
    }
    return FXTAP_OK;
}

static void take_as_one(fx_calls *calls, size_t n_together)
{
    size_t n_steps = 0;
    for (size_t i = 0; i < calls->n_steps; i += n_together) {
        calls->first[n_steps++] = calls->first[i];
    }
    calls->first[n_steps] = calls->n;
    calls->n_steps = n_steps;
}

static bool has_single_calls(const fx_calls *calls)
{
    return calls->n_steps == calls->n;
}

static double count_nodes(const fx_calls *calls, size_t end)
{
    double n = 0.0;
    for (size_t i = 0; i < end; i++) {
        n += (double)calls->items[i]->graph->n_nodes;
    }
    return n;
}

/* Decides by size whether the sequence that does not repeat is one iteration of the other side, or all of them
 * (layers). */
static bool is_one_iteration(const fx_calls *once, const fx_calls *repeating)
{
    double size = count_nodes(once, once->n), first = count_nodes(repeating, repeating->first[1]);
    return size * size <
           first * count_nodes(repeating, repeating->n); /* nearer to one iteration than to all, by ratio */
}

void fx_calls_balance(fx_calls *golden, fx_calls *target)
{
    if (golden->n_steps == target->n_steps || golden->n_steps == 0 || target->n_steps == 0) {
        return;
    }
    if (golden->is_repeating != target->is_repeating) {
        fx_calls *once = golden->is_repeating ? target : golden, *repeating = once == golden ? target : golden;
        if (is_one_iteration(once, repeating)) {
            take_as_one(once, once->n_steps);
            return;
        }
    }
    fx_calls *more = golden->n_steps > target->n_steps ? golden : target, *fewer = more == golden ? target : golden;
    if (!golden->is_repeating || !target->is_repeating) {
        take_as_one(golden, golden->n_steps);
        take_as_one(target, target->n_steps);
    } else if (more->n_steps % fewer->n_steps == 0 && has_single_calls(more)) {
        take_as_one(more, more->n_steps / fewer->n_steps); /* layers that are compiled separately */
    }
}
