/*
 * group.c - which calls are compared with which.
 *
 * Ranks pair by number (a lone rank pairs with a lone rank). Where every graph of a rank has one of equal key on the other
 * side, step pairs with step, by number (a lone step asked for with a lone step asked for), and nodes by their place. Where
 * not, the execution of one iteration is aligned with that of the other, all its calls together. Without an index graphs pair
 * by number, then by order, never an unlike kind. What is left stands alone.
 */
#include <string.h>

#include "compare/batch.h"
#include "compare/steps.h"
#include "util/error.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct graph_entry {
    const fxtap_graph_info *info; /* NULL: plain files */
    int32_t rank;
    size_t first_set;
    size_t n_sets;
    size_t partner; /* index on the other side, or FX_MISSING */
    uint64_t text;  /* hash of all modules and lines; 0: not known yet */
    fxtap_pairing pairing;
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

static bool by_structural_key(const graph_entry *golden, const graph_entry *target)
{
    return both_have_keys(golden, target) && kinds_agree(golden, target) &&
           fx_same_hash(golden->info->structural_key, target->info->structural_key);
}

/* Graphs of equal structure may be of several models: those of the same modules and lines go first. */
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
    const fxtap_step_info *first = side->n_sets == 0 ? NULL : side->sets[0].step;
    return side->query.step >= 0 || (first != NULL && strcmp(first->folder, fxtap_reader_path(side->reader)) == 0);
}

/* Which of two steps comes first; 0: they are a pair. */
static int compare_steps(const fx_comparison *comparison, const fx_set *golden, const fx_set *target)
{
    const fxtap_step_info *a = golden->step, *b = target->step;
    bool both_asked_for = is_step_asked_for(&comparison->golden) && is_step_asked_for(&comparison->target);
    return a == NULL || b == NULL || both_asked_for ? 0 : (a->step > b->step) - (a->step < b->step);
}

/* An array of one set, which lives as long as the comparison. NULL: no memory. */
static const fx_set *const *one_set(fx_comparison *comparison, const fx_set *set)
{
    return fx_arena_memdup(&comparison->arena, &set, sizeof(const fx_set *));
}

/* A graph that one side alone ran: what it computed is missing, unless it is target's own or an unneeded backward. */
static bool is_extra(const graph_entry *golden, const graph_entry *target, bool other_has_backward)
{
    const graph_entry *alone = golden != NULL ? golden : target;
    bool is_known = alone->info != NULL && alone->info->has_keys;
    bool is_backward = is_known && alone->info->kind == FXTAP_GRAPH_BACKWARD;
    return is_known && (golden == NULL || (is_backward && !other_has_backward));
}

typedef struct pairing_graphs { /* one rank of either side */
    fx_comparison *comparison;
    graph_list golden, target;
    int32_t rank; /* under which the pairs are reported */
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

/* Pairs the steps of one pair of graphs; either side may be missing. Steps stand in order on both sides. */
static fxtap_status pair_steps(pairing_graphs *p, const graph_entry *golden, const graph_entry *target)
{
    fx_comparison *c = p->comparison;
    size_t n_golden = golden == NULL ? 0 : golden->n_sets, n_target = target == NULL ? 0 : target->n_sets;
    fx_group_work work = {.rank = p->rank, .pairing = golden == NULL ? FXTAP_PAIR_NONE : golden->pairing,
                          .same_structure = golden != NULL && target != NULL && golden->same_structure};
    work.is_extra = (golden == NULL || target == NULL) &&
                    is_extra(golden, target, has_backward(golden == NULL ? &p->golden : &p->target));
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0, t = 0; (g < n_golden || t < n_target) && status == FXTAP_OK;) {
        const fx_set *left = g < n_golden ? &c->golden.sets[golden->first_set + g] : NULL;
        const fx_set *right = t < n_target ? &c->target.sets[target->first_set + t] : NULL;
        int order = left == NULL ? 1 : right == NULL ? -1 : compare_steps(c, left, right);
        work.n_golden = order <= 0;
        work.n_target = order >= 0;
        work.golden = one_set(c, left);
        work.target = one_set(c, right);
        status = work.golden == NULL || work.target == NULL ? FXTAP_E_NOMEM : add_group(c, &work);
        g += order <= 0;
        t += order >= 0;
    }
    return status;
}

static fxtap_status pair_all_steps(pairing_graphs *p)
{
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0; g < p->golden.n_items && status == FXTAP_OK; g++) {
        size_t partner = p->golden.items[g].partner;
        status = pair_steps(p, &p->golden.items[g], partner == FX_MISSING ? NULL : &p->target.items[partner]);
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

/* Every call is numbered, and of a graph with a record. */
static bool is_recorded(const fx_side *side, const graph_list *list)
{
    bool is_one = list->n_items > 0;
    for (size_t i = 0; i < list->n_items && is_one; i++) {
        const graph_entry *entry = &list->items[i];
        is_one = entry->info != NULL && entry->info->has_keys;
        for (size_t k = 0; k < entry->n_sets && is_one; k++) {
            is_one = side->sets[entry->first_set + k].step->call >= 0;
        }
    }
    return is_one;
}

static fxtap_status list_calls(fx_comparison *c, const fx_side *side, const graph_list *list, fx_calls *out)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        n += list->items[i].n_sets;
    }
    const fx_set **sets = fx_arena_calloc(&c->arena, n + 1, sizeof *sets);
    if (sets == NULL) {
        return FXTAP_E_NOMEM;
    }
    n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        for (size_t k = 0; k < list->items[i].n_sets; k++) {
            sets[n++] = &side->sets[list->items[i].first_set + k];
        }
    }
    return fx_calls_create(&c->arena, side->reader, sets, n, c->options->step_of, out);
}

static bool is_one_structure(const fx_group_work *work)
{
    if (work->n_golden != 1 || work->n_target != 1) {
        return false;
    }
    const graph_entry golden = {.info = work->golden[0]->step->graph}, target = {.info = work->target[0]->step->graph};
    return by_structural_key(&golden, &target);
}

/* "3 iterations, of 1 call in golden and 2 calls in target". */
static fxtap_status tell_steps(fx_comparison *c, const fx_calls *golden, const fx_calls *target)
{
    if (c->report->steps != NULL || golden->n_steps == 0 || target->n_steps == 0) {
        return FXTAP_OK;
    }
    size_t n_golden = golden->first[1] - golden->first[0], n_target = target->first[1] - target->first[0];
    const char *other = golden->n_steps == target->n_steps
                            ? ""
                            : fx_arena_printf(&c->arena, " in golden, %zu in target", target->n_steps);
    c->report->steps = other == NULL ? NULL
                                     : fx_arena_printf(&c->report->arena, "%zu iteration%s%s, of %zu call%s and %zu call%s",
                                                       golden->n_steps, golden->n_steps == 1 ? "" : "s", other, n_golden,
                                                       n_golden == 1 ? "" : "s", n_target, n_target == 1 ? "" : "s");
    return c->report->steps == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status align_executions(pairing_graphs *p)
{
    fx_comparison *c = p->comparison;
    fx_calls golden, target;
    fxtap_status status = list_calls(c, &c->golden, &p->golden, &golden);
    if (status == FXTAP_OK) {
        status = list_calls(c, &c->target, &p->target, &target);
    }
    if (status == FXTAP_OK) {
        fx_calls_balance(&golden, &target);
        status = tell_steps(c, &golden, &target);
    }
    for (size_t s = 0; status == FXTAP_OK && (s < golden.n_steps || s < target.n_steps); s++) {
        fx_group_work work = {.rank = p->rank, .pairing = FXTAP_PAIR_WIRING};
        if (s < golden.n_steps) {
            work.golden = golden.sets + golden.first[s];
            work.n_golden = golden.first[s + 1] - golden.first[s];
        }
        if (s < target.n_steps) {
            work.target = target.sets + target.first[s];
            work.n_target = target.first[s + 1] - target.first[s];
        }
        work.same_structure = is_one_structure(&work);
        work.pairing = work.same_structure ? FXTAP_PAIR_EXACT : work.n_golden == 0 || work.n_target == 0 ? FXTAP_PAIR_NONE : work.pairing;
        status = add_group(c, &work);
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

static fxtap_status pair_rank(pairing_graphs *p)
{
    fx_comparison *c = p->comparison;
    if (c->options->golden_graph >= 0 && c->options->target_graph >= 0) {
        pair_graphs_pass(&p->golden, &p->target, by_order, FXTAP_PAIR_MAPPED);
    }
    pair_graphs_pass(&p->golden, &p->target, by_strict_key, FXTAP_PAIR_EXACT);
    bool is_open = any_alone(&p->golden) && any_alone(&p->target);
    if (is_open) {
        fxtap_status status = hash_texts(c->golden.reader, &p->golden);
        status = status == FXTAP_OK ? hash_texts(c->target.reader, &p->target) : status;
        if (status != FXTAP_OK) {
            return status;
        }
        pair_graphs_pass(&p->golden, &p->target, by_structure_and_text, FXTAP_PAIR_EXACT);
        pair_graphs_pass(&p->golden, &p->target, by_structural_key, FXTAP_PAIR_EXACT);
        is_open = any_alone(&p->golden) && any_alone(&p->target);
    }
    if (is_open && is_recorded(&c->golden, &p->golden) && is_recorded(&c->target, &p->target)) {
        return align_executions(p);
    }
    pair_graphs_pass(&p->golden, &p->target, by_number, FXTAP_PAIR_ORDER);
    if (!p->are_replicas) {
        pair_graphs_pass(&p->golden, &p->target, by_order, FXTAP_PAIR_ORDER);
    }
    return pair_all_steps(p);
}

/* ---- ranks ---- */

/* The graphs of the rank that begins at `first`; all of them where `lone`. */
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

/* Both sides' graphs stand in order of their ranks. */
fxtap_status fx_pair_groups(fx_comparison *comparison)
{
    graph_list golden, target;
    if (list_graphs(&comparison->arena, &comparison->golden, &golden) != FXTAP_OK ||
        list_graphs(&comparison->arena, &comparison->target, &target) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    bool lone = has_one_rank(&golden) && has_one_rank(&target);
    fxtap_status status = FXTAP_OK;
    for (size_t g = 0, t = 0; (g < golden.n_items || t < target.n_items) && status == FXTAP_OK;) {
        int32_t left = g < golden.n_items ? golden.items[g].rank : INT32_MAX;
        int32_t right = t < target.n_items ? target.items[t].rank : INT32_MAX;
        pairing_graphs p = {.comparison = comparison, .rank = left <= right || lone ? left : right};
        p.rank = lone && golden.n_items == 0 ? right : p.rank;
        p.golden = lone || left <= right ? rank_at(&golden, g, lone) : (graph_list){golden.items, 0};
        p.target = lone || right <= left ? rank_at(&target, t, lone) : (graph_list){target.items, 0};
        g += p.golden.n_items;
        t += p.target.n_items;
        status = pair_rank(&p);
    }
    return status;
}

/* Replicas: the graphs of every other rank are held against the first rank's. Both sides list the same tensors. */
fxtap_status fx_pair_ranks(fx_comparison *comparison)
{
    graph_list list, other;
    if (comparison->golden.n_sets != comparison->target.n_sets) {
        return fx_error_at(FXTAP_E_IO, comparison->report->golden_path, "it changed while it was read");
    }
    if (list_graphs(&comparison->arena, &comparison->golden, &list) != FXTAP_OK ||
        list_graphs(&comparison->arena, &comparison->target, &other) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    pairing_graphs p = {.comparison = comparison, .golden = rank_at(&list, 0, false), .are_replicas = true};
    if (p.golden.n_items == list.n_items) {
        return fx_error_at(FXTAP_E_NOT_FOUND, comparison->report->golden_path,
                           "only rank %d is here: nothing to compare it with", (int)list.items[0].rank);
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
