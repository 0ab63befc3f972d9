/*
 * groups.c - which calls are compared with which.
 *
 * Ranks pair by number (two single ranks pair with each other). If every graph of a rank has a graph with an equal key
 * on the other side, steps pair by number (two single requested steps pair with each other) and nodes by position.
 * Otherwise the execution of one iteration is aligned with that of the other, all its calls together. Without an index,
 * graphs pair by number, then by order, and only if they are of the same kind. The rest have no counterpart.
 */
#include <assert.h>
#include <string.h>

#include "pair/calls.h"
#include "pair/execution.h"
#include "pair/groups.h"
#include "pair/steps.h"
#include "util/error.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct graph_entry {
    const fxtap_graph_info *info; /* NULL: plain files */
    int32_t rank;
    size_t first_step;
    size_t n_steps;
    size_t partner; /* index on the other side, or FX_MISSING */
    uint64_t text;  /* hash of all modules and lines; 0: not computed yet */
    uint64_t given; /* hash of the first call's inputs, for graphs that were compiled several times; 0: unknown */
    fxtap_pairing pairing;
    bool same_structure;
} graph_entry;

typedef struct graph_list {
    graph_entry *items;
    size_t n_items;
} graph_list;

static fxtap_status list_graphs(fx_arena *arena, const fx_side *side, graph_list *out)
{
    out->items = fx_arena_calloc(arena, side->n_steps, sizeof *out->items);
    if (out->items == NULL) {
        return FXTAP_E_NOMEM;
    }
    out->n_items = 0;
    for (size_t i = 0; i < side->n_steps; i++) {
        const fxtap_step_info *step = side->steps[i];
        const fxtap_graph_info *info = step == NULL ? NULL : step->graph;
        if (out->n_items > 0 && out->items[out->n_items - 1].info == info) {
            out->items[out->n_items - 1].n_steps++;
            continue;
        }
        const fxtap_rank_info *rank = info == NULL ? NULL : fxtap_reader_rank(side->reader, info->rank_i);
        out->items[out->n_items++] = (graph_entry){
            .info = info, .rank = rank == NULL ? 0 : rank->rank, .first_step = i, .n_steps = 1, .partner = FX_MISSING};
    }
    return FXTAP_OK;
}

typedef bool (*graphs_match)(const graph_entry *golden, const graph_entry *target);

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
    return both_have_keys(golden, target) && fx_same_hash(golden->info->strict_key, target->info->strict_key) &&
           golden->info->occurrence == target->info->occurrence;
}

/* Matches graphs that were compiled once for each of several models or layers. */
static bool by_what_was_given(const graph_entry *golden, const graph_entry *target)
{
    return both_have_keys(golden, target) && fx_same_hash(golden->info->strict_key, target->info->strict_key) &&
           golden->given != 0 && golden->given == target->given;
}

static bool by_structural_key(const graph_entry *golden, const graph_entry *target)
{
    return fx_same_structure(golden->info, target->info);
}

/* Graphs of equal structure may belong to several models: those with the same modules and lines pair first. */
static bool by_structure_and_text(const graph_entry *golden, const graph_entry *target)
{
    return golden->text != 0 && golden->text == target->text && by_structural_key(golden, target);
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

static void pair_graphs_pass(graph_list *golden, graph_list *target, graphs_match match, fxtap_pairing pairing)
{
    for (size_t g = 0; g < golden->n_items; g++) {
        for (size_t t = 0; t < target->n_items && golden->items[g].partner == FX_MISSING; t++) {
            graph_entry *a = &golden->items[g], *b = &target->items[t];
            if (b->partner == FX_MISSING && match(a, b)) {
                a->partner = t;
                b->partner = g;
                a->pairing = pairing;
                a->same_structure = by_strict_key(a, b) || by_structural_key(a, b);
            }
        }
    }
}

/* ---- groups ---- */

static fxtap_status add_group(fx_groups *groups, const fx_group_work *work)
{
    if (!fx_grow((void **)&groups->items, &groups->capacity, groups->n_items + 1, sizeof *groups->items)) {
        return FXTAP_E_NOMEM;
    }
    groups->items[groups->n_items] = *work;
    groups->items[groups->n_items].number = groups->n_items;
    groups->n_items++;
    return FXTAP_OK;
}

/* Whether a step was requested, by number or by its folder. */
static bool is_step_asked_for(const fx_side *side)
{
    const fxtap_step_info *first = side->n_steps == 0 ? NULL : side->steps[0];
    return side->query.step >= 0 || (first != NULL && strcmp(first->folder, fxtap_reader_path(side->reader)) == 0);
}

/* Whether the other side need not run this graph: target added it, or it is a backward and the other side has none. */
static bool is_extra(const graph_entry *golden, const graph_entry *target, bool other_has_backward)
{
    const graph_entry *alone = golden != NULL ? golden : target;
    assert(alone != NULL);
    bool is_known = alone->info != NULL && alone->info->has_keys;
    bool is_backward = is_known && alone->info->kind == FXTAP_GRAPH_BACKWARD;
    return is_known && (golden == NULL || (is_backward && !other_has_backward));
}

typedef struct pairing_graphs { /* one rank of each side */
    fx_groups *groups;
    graph_list golden, target;
    int32_t rank; /* rank number of the reported pairs */
    bool are_replicas;
} pairing_graphs;

static bool has_backward(const graph_list *list)
{
    for (size_t i = 0; i < list->n_items; i++) {
        if (list->items[i].info != NULL && list->items[i].info->kind == FXTAP_GRAPH_BACKWARD) {
            return true;
        }
    }
    return false;
}

static bool create_partners(fx_groups *groups, size_t n_golden, size_t n_target, fx_call_partners *out)
{
    out->of_golden = fx_arena_calloc(groups->arena, n_golden + 1, sizeof *out->of_golden);
    out->is_taken = fx_arena_calloc(groups->arena, n_target + 1, sizeof *out->is_taken);
    for (size_t g = 0; out->of_golden != NULL && g < n_golden; g++) {
        out->of_golden[g] = FX_MISSING;
    }
    return out->of_golden != NULL && out->is_taken != NULL;
}

static void join_calls(fx_call_partners *partners, size_t g, size_t t)
{
    if (partners->of_golden[g] == FX_MISSING && !partners->is_taken[t]) {
        partners->of_golden[g] = t;
        partners->is_taken[t] = true;
    }
}

/* Pairs the steps of two graphs: first those with the same weights, the rest by number. */
static fxtap_status find_partners(fx_groups *groups, const graph_entry *golden, const graph_entry *target,
                                  fx_call_partners *out)
{
    const fxtap_step_info *const *left = &groups->golden->steps[golden->first_step];
    const fxtap_step_info *const *right = &groups->target->steps[target->first_step];
    if (golden->info == NULL || target->info == NULL ||
        (is_step_asked_for(groups->golden) && is_step_asked_for(groups->target))) {
        for (size_t i = 0; i < golden->n_steps && i < target->n_steps; i++) {
            join_calls(out, i, i);
        }
        return FXTAP_OK;
    }
    fxtap_status status = fx_pair_calls(groups->arena, groups->golden, left, golden->n_steps, groups->target, right,
                                        target->n_steps, out);
    for (size_t g = 0, t = 0; g < golden->n_steps && t < target->n_steps && status == FXTAP_OK;) {
        int64_t a = left[g]->step, b = right[t]->step;
        if (a == b) {
            join_calls(out, g, t);
        }
        g += a <= b;
        t += b <= a;
    }
    return status;
}

/* Adds groups for the steps of two graphs; either graph may be missing. Steps are in order on both sides. */
static fxtap_status pair_steps(pairing_graphs *p, const graph_entry *golden, const graph_entry *target)
{
    fx_groups *groups = p->groups;
    size_t n_golden = golden == NULL ? 0 : golden->n_steps, n_target = target == NULL ? 0 : target->n_steps;
    fx_group_work work = {.rank = p->rank,
                          .pairing = golden == NULL ? FXTAP_PAIR_NONE : golden->pairing,
                          .same_structure = golden != NULL && target != NULL && golden->same_structure};
    work.is_extra = (golden == NULL || target == NULL) &&
                    is_extra(golden, target, has_backward(golden == NULL ? &p->golden : &p->target));
    fx_call_partners partners;
    fxtap_status status = create_partners(groups, n_golden, n_target, &partners) ? FXTAP_OK : FXTAP_E_NOMEM;
    if (status == FXTAP_OK && n_golden > 0 && n_target > 0) {
        status = find_partners(groups, golden, target, &partners);
    }
    const fxtap_step_info *const *golden_steps = groups->golden->steps + (golden == NULL ? 0 : golden->first_step);
    const fxtap_step_info *const *target_steps = groups->target->steps + (target == NULL ? 0 : target->first_step);
    for (size_t g = 0, t = 0; (g < n_golden || t < n_target) && status == FXTAP_OK;) {
        const fxtap_step_info *const *left = g < n_golden ? golden_steps + g : NULL;
        const fxtap_step_info *const *right = t < n_target ? target_steps + t : NULL;
        if (right != NULL && partners.is_taken[t]) {
            t++; /* added together with its partner */
            continue;
        }
        bool is_first =
            right == NULL || (left != NULL && (*left == NULL || *right == NULL || (*left)->step <= (*right)->step));
        if (is_first) {
            size_t partner = partners.of_golden[g++];
            right = partner == FX_MISSING ? NULL : target_steps + partner;
        } else {
            left = NULL;
            t++;
        }
        work.n_golden = left != NULL;
        work.n_target = right != NULL;
        work.golden = left;
        work.target = right;
        status = add_group(groups, &work);
    }
    return status;
}

static fxtap_status pair_all_steps(pairing_graphs *p)
{
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0; g < p->golden.n_items && status == FXTAP_OK; g++) {
        size_t partner = p->golden.items[g].partner;
        assert(partner == FX_MISSING || p->target.items != NULL);
        status = pair_steps(p, &p->golden.items[g], partner == FX_MISSING ? NULL : p->target.items + partner);
    }
    for (size_t t = 0; t < p->target.n_items && status == FXTAP_OK; t++) {
        if (p->target.items[t].partner == FX_MISSING) {
            status = pair_steps(p, NULL, &p->target.items[t]);
        }
    }
    return status;
}

/* ---- whole executions ---- */

static bool any_alone(const graph_list *list)
{
    for (size_t i = 0; i < list->n_items; i++) {
        if (list->items[i].partner == FX_MISSING) {
            return true;
        }
    }
    return false;
}

/* Whether every call has a number and a graph with a record. */
static bool is_recorded(const fx_side *side, const graph_list *list)
{
    bool is_one = list->n_items > 0;
    for (size_t i = 0; i < list->n_items && is_one; i++) {
        const graph_entry *entry = &list->items[i];
        is_one = entry->info != NULL && entry->info->has_keys;
        for (size_t k = 0; k < entry->n_steps && is_one; k++) {
            is_one = side->steps[entry->first_step + k]->call >= 0;
        }
    }
    return is_one;
}

static fxtap_status list_calls(fx_groups *groups, const fx_side *side, const graph_list *list, fx_calls *out)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        n += list->items[i].n_steps;
    }
    const fxtap_step_info **steps = fx_arena_calloc(groups->arena, n + 1, sizeof *steps);
    if (steps == NULL) {
        return FXTAP_E_NOMEM;
    }
    n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        for (size_t k = 0; k < list->items[i].n_steps; k++) {
            steps[n++] = side->steps[list->items[i].first_step + k];
        }
    }
    return fx_calls_create(groups->arena, side->reader, steps, n, groups->options->step_of, out);
}

static bool is_one_structure(const fx_group_work *work)
{
    if (work->n_golden != 1 || work->n_target != 1) {
        return false;
    }
    return fx_same_structure(work->golden[0]->graph, work->target[0]->graph);
}

/* "3 iterations, of 1 call in golden and 2 calls in target". */
static fxtap_status describe_iterations(fx_groups *groups, const fx_calls *golden, const fx_calls *target)
{
    if (groups->steps != NULL || golden->n_steps == 0 || target->n_steps == 0) {
        return FXTAP_OK;
    }
    size_t n_golden = golden->first[1] - golden->first[0], n_target = target->first[1] - target->first[0];
    const char *other = golden->n_steps == target->n_steps
                            ? ""
                            : fx_arena_printf(groups->arena, " in golden, %zu in target", target->n_steps);
    groups->steps = other == NULL ? NULL
                                  : fx_arena_printf(groups->arena, "%zu iteration%s%s, of %zu call%s and %zu call%s",
                                                    golden->n_steps, golden->n_steps == 1 ? "" : "s", other, n_golden,
                                                    n_golden == 1 ? "" : "s", n_target, n_target == 1 ? "" : "s");
    return groups->steps == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static const fxtap_step_info *const *first_calls(fx_groups *groups, const fx_calls *calls)
{
    const fxtap_step_info **steps = fx_arena_calloc(groups->arena, calls->n_steps + 1, sizeof *steps);
    for (size_t s = 0; steps != NULL && s < calls->n_steps; s++) {
        steps[s] = calls->items[calls->first[s]];
    }
    return steps;
}

/* Pairs iterations whose first calls have the same weights, the rest in order. */
static fxtap_status find_iterations(fx_groups *groups, const fx_calls *golden, const fx_calls *target,
                                    fx_call_partners *out)
{
    const fxtap_step_info *const *left = first_calls(groups, golden), *const *right = first_calls(groups, target);
    if (left == NULL || right == NULL || !create_partners(groups, golden->n_steps, target->n_steps, out)) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = fx_pair_calls(groups->arena, groups->golden, left, golden->n_steps, groups->target, right,
                                        target->n_steps, out);
    for (size_t s = 0; s < golden->n_steps && s < target->n_steps; s++) {
        join_calls(out, s, s);
    }
    return status;
}

/* FX_MISSING: no iteration on that side. */
static fxtap_status add_iteration(pairing_graphs *p, const fx_calls *golden, size_t g, const fx_calls *target, size_t t)
{
    fx_group_work work = {.rank = p->rank, .pairing = FXTAP_PAIR_WIRING};
    if (g != FX_MISSING) {
        work.golden = golden->items + golden->first[g];
        work.n_golden = golden->first[g + 1] - golden->first[g];
    }
    if (t != FX_MISSING) {
        work.target = target->items + target->first[t];
        work.n_target = target->first[t + 1] - target->first[t];
    }
    work.same_structure = is_one_structure(&work);
    work.pairing = work.same_structure                        ? FXTAP_PAIR_EXACT
                   : work.n_golden == 0 || work.n_target == 0 ? FXTAP_PAIR_NONE
                                                              : work.pairing;
    return add_group(p->groups, &work);
}

static fxtap_status align_executions(pairing_graphs *p)
{
    fx_groups *groups = p->groups;
    fx_calls golden, target;
    fxtap_status status = list_calls(groups, groups->golden, &p->golden, &golden);
    if (status == FXTAP_OK) {
        status = list_calls(groups, groups->target, &p->target, &target);
    }
    if (status == FXTAP_OK) {
        fx_calls_balance(&golden, &target);
        status = describe_iterations(groups, &golden, &target);
    }
    fx_call_partners partners = {NULL, NULL};
    if (status == FXTAP_OK) {
        status = find_iterations(groups, &golden, &target, &partners);
    }
    for (size_t g = 0; status == FXTAP_OK && g < golden.n_steps; g++) {
        status = add_iteration(p, &golden, g, &target, partners.of_golden[g]);
    }
    for (size_t t = 0; status == FXTAP_OK && t < target.n_steps; t++) {
        status = partners.is_taken[t] ? FXTAP_OK : add_iteration(p, &golden, FX_MISSING, &target, t);
    }
    return status;
}

static fxtap_status hash_texts(fxtap_reader *reader, graph_list *list)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < list->n_items && status == FXTAP_OK; i++) {
        graph_entry *entry = &list->items[i];
        const fxtap_node_info *const *nodes = NULL;
        size_t n = 0;
        if (entry->partner == FX_MISSING && entry->info != NULL && entry->info->has_keys) {
            status = fxtap_reader_nodes(reader, entry->info, &nodes, &n);
        }
        uint64_t hash = 0;
        for (size_t k = 0; k < n && status == FXTAP_OK; k++) {
            hash = XXH3_64bits_withSeed(nodes[k]->module_path, strlen(nodes[k]->module_path), hash + 1);
            hash = XXH3_64bits_withSeed(nodes[k]->source_code, strlen(nodes[k]->source_code), hash);
        }
        entry->text = n == 0 ? 0 : hash | 1u;
    }
    return status;
}

static bool is_compiled_again(const graph_list *list, size_t i)
{
    const graph_entry *entry = &list->items[i];
    for (size_t k = 0; k < list->n_items && entry->info != NULL && entry->info->has_keys; k++) {
        const fxtap_graph_info *other = list->items[k].info;
        if (k != i && other != NULL && other->has_keys && fx_same_hash(other->strict_key, entry->info->strict_key)) {
            return true;
        }
    }
    return false;
}

static fxtap_status sign_graphs(const fx_side *side, graph_list *list)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < list->n_items && status == FXTAP_OK; i++) {
        if (is_compiled_again(list, i)) {
            status = fx_sign_calls(side, &side->steps[list->items[i].first_step], 1, &list->items[i].given);
        }
    }
    return status;
}

static fxtap_status pair_rank(pairing_graphs *p)
{
    fx_groups *groups = p->groups;
    if (groups->options->golden_graph >= 0 && groups->options->target_graph >= 0) {
        pair_graphs_pass(&p->golden, &p->target, by_order, FXTAP_PAIR_MAPPED);
    }
    fxtap_status status = sign_graphs(groups->golden, &p->golden);
    status = status == FXTAP_OK ? sign_graphs(groups->target, &p->target) : status;
    if (status != FXTAP_OK) {
        return status;
    }
    pair_graphs_pass(&p->golden, &p->target, by_what_was_given, FXTAP_PAIR_EXACT);
    pair_graphs_pass(&p->golden, &p->target, by_strict_key, FXTAP_PAIR_EXACT);
    bool is_open = any_alone(&p->golden) && any_alone(&p->target);
    if (is_open) {
        status = hash_texts(groups->golden->reader, &p->golden);
        status = status == FXTAP_OK ? hash_texts(groups->target->reader, &p->target) : status;
        if (status != FXTAP_OK) {
            return status;
        }
        pair_graphs_pass(&p->golden, &p->target, by_structure_and_text, FXTAP_PAIR_EXACT);
        pair_graphs_pass(&p->golden, &p->target, by_structural_key, FXTAP_PAIR_EXACT);
        is_open = any_alone(&p->golden) && any_alone(&p->target);
    }
    if (is_open && is_recorded(groups->golden, &p->golden) && is_recorded(groups->target, &p->target)) {
        return align_executions(p);
    }
    pair_graphs_pass(&p->golden, &p->target, by_number, FXTAP_PAIR_ORDER);
    if (!p->are_replicas) {
        pair_graphs_pass(&p->golden, &p->target, by_order, FXTAP_PAIR_ORDER);
    }
    return pair_all_steps(p);
}

/* ---- ranks ---- */

/* The graphs of the rank that begins at `first`; all of them if `lone`. */
static graph_list rank_at(const graph_list *list, size_t first, bool lone)
{
    size_t end = first;
    while (end < list->n_items && (lone || list->items[end].rank == list->items[first].rank)) {
        end++;
    }
    return (graph_list){list->items + first, end - first};
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

/* Both sides' graphs are sorted by rank. */
fxtap_status fx_pair_groups(fx_groups *groups)
{
    graph_list golden, target;
    if (list_graphs(groups->arena, groups->golden, &golden) != FXTAP_OK ||
        list_graphs(groups->arena, groups->target, &target) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    bool lone = has_one_rank(&golden) && has_one_rank(&target);
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0, t = 0; (g < golden.n_items || t < target.n_items) && status == FXTAP_OK;) {
        int32_t left = g < golden.n_items ? golden.items[g].rank : INT32_MAX;
        int32_t right = t < target.n_items ? target.items[t].rank : INT32_MAX;
        pairing_graphs p = {.groups = groups, .rank = left <= right || lone ? left : right};
        p.rank = lone && golden.n_items == 0 ? right : p.rank;
        p.golden = lone || left <= right ? rank_at(&golden, g, lone) : (graph_list){golden.items, 0};
        p.target = lone || right <= left ? rank_at(&target, t, lone) : (graph_list){target.items, 0};
        g += p.golden.n_items;
        t += p.target.n_items;
        status = pair_rank(&p);
    }
    return status;
}

/* Replicas: compares the graphs of every other rank with the first rank's. Both sides list the same tensors. */
fxtap_status fx_pair_ranks(fx_groups *groups)
{
    graph_list list, other;
    if (groups->golden->n_steps != groups->target->n_steps) {
        return fx_error_at(FXTAP_E_IO, fxtap_reader_path(groups->golden->reader), "it changed while it was read");
    }
    if (list_graphs(groups->arena, groups->golden, &list) != FXTAP_OK ||
        list_graphs(groups->arena, groups->target, &other) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    pairing_graphs p = {.groups = groups, .golden = rank_at(&list, 0, false), .are_replicas = true};
    if (p.golden.n_items == list.n_items) {
        return fx_error_at(FXTAP_E_NOT_FOUND, fxtap_reader_path(groups->golden->reader),
                           "the dump has only rank %d: nothing to compare it with", (int)list.items[0].rank);
    }
    fxtap_status status = FXTAP_OK;
    for (size_t first = p.golden.n_items; first < other.n_items && status == FXTAP_OK; first += p.target.n_items) {
        p.target = rank_at(&other, first, false);
        p.rank = other.items[first].rank;
        for (size_t g = 0; g < p.golden.n_items; g++) {
            p.golden.items[g].partner = FX_MISSING;
        }
        status = pair_rank(&p);
    }
    return status;
}
