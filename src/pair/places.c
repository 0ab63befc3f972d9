/* places.c - pairs the tensors of aligned nodes, position by position. */
#include "pair/places.h"
#include "pair/map.h"

#include <string.h>

#include "pair/traits.h"
#include "util/memory.h"

typedef struct placing {
    const fx_map *map;
    const fx_execution *golden, *target;
    fx_places *out;
    size_t
        *readers; /* for each target node, the first input of a reader that may pair with a region's input, plus one */
    size_t *next; /* for each target tensor, the next one in that list, plus one */
} placing;

static size_t *partner_of_golden(const placing *p, size_t tensor)
{
    return &p->out->golden[tensor - p->out->first_golden];
}

static size_t *partner_of_target(const placing *p, size_t tensor)
{
    return &p->out->target[tensor - p->out->first_target];
}

static void join(const placing *p, size_t golden, size_t target)
{
    *partner_of_golden(p, golden) = target;
    *partner_of_target(p, target) = golden;
}

bool fx_is_one_call(const fx_execution *golden, size_t g, const fx_execution *target)
{
    const fx_exec_node *left = &golden->nodes[g];
    const fx_exec_node *right = left->partner == FX_MISSING ? NULL : &target->nodes[left->partner];
    return right != NULL && left->n_tensors > 0 && right->n_tensors > 0 &&
           (fx_same_operator(left->operator_name, right->operator_name) || (left->evidence & FX_EV_MAP) != 0);
}

static bool is_same_call(const placing *p, size_t g)
{
    return fx_is_one_call(p->golden, g, p->target);
}

static size_t source_at(const fx_execution *execution, size_t node, const char *position)
{
    size_t producer;
    bool is_fed = execution->wiring != NULL && fx_wiring_producer(execution->wiring, node, position, &producer);
    return is_fed ? execution->nodes[producer].source : FX_MISSING;
}

static bool are_one(const placing *p, size_t golden_source, size_t target_source)
{
    return golden_source != FX_MISSING && target_source != FX_MISSING &&
           p->golden->nodes[golden_source].partner == target_source;
}

/* a + b and b + a: golden's first argument is target's second. */
static bool is_swapped(const placing *p, size_t g, size_t t)
{
    if (!fx_is_commutative(p->golden->nodes[g].operator_name)) {
        return false;
    }
    size_t g0 = source_at(p->golden, g, "0"), g1 = source_at(p->golden, g, "1");
    size_t t0 = source_at(p->target, t, "0"), t1 = source_at(p->target, t, "1");
    return !are_one(p, g0, t0) && !are_one(p, g1, t1) && (are_one(p, g0, t1) || are_one(p, g1, t0));
}

static const char *turned(const char *position, bool is_swapped)
{
    return !is_swapped ? position : strcmp(position, "0") == 0 ? "1" : strcmp(position, "1") == 0 ? "0" : position;
}

static bool has_name(const fxtap_tensor_info *tensor)
{
    return tensor->arg_name != NULL && tensor->arg_name[0] != '\0';
}

/* Whether `node` has an input with that name: then no other input can correspond. */
static bool has_argument(const fx_execution *execution, const fx_exec_node *node, const char *name)
{
    for (size_t i = node->first_tensor; i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        if (tensor->io == FXTAP_INPUT && has_name(tensor) && strcmp(tensor->arg_name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Operators of two programs may take arguments in a different order: arguments with equal names correspond. */
static bool same_argument(const placing *p, const fx_exec_node *node, const fxtap_tensor_info *golden,
                          const fxtap_tensor_info *target, bool *out)
{
    if (golden->io != FXTAP_INPUT || target->io != FXTAP_INPUT || !has_name(golden) || !has_name(target) ||
        !has_argument(p->target, node, golden->arg_name)) {
        return false;
    }
    *out = strcmp(golden->arg_name, target->arg_name) == 0;
    return true;
}

static bool same_place(const fxtap_tensor_info *golden, const fxtap_tensor_info *target, bool is_turned)
{
    if (golden->node == NULL || target->node == NULL) {
        return true; /* plain files */
    }
    const char *position = golden->io == FXTAP_INPUT ? turned(golden->position, is_turned) : golden->position;
    return golden->io == target->io && strcmp(position, target->position) == 0;
}

/*
 * If two results are the same quantity, their inputs at the same position need not be: a view may start from another
 * shape, a sum may be grouped differently. The producer shows this for an input, which is then not a difference.
 */
static bool is_rewritten(const placing *p, size_t g, size_t t, const fxtap_tensor_info *golden,
                         const fxtap_tensor_info *target)
{
    if (golden->io != FXTAP_INPUT || (p->golden->nodes[g].evidence & (FX_EV_VALUE | FX_EV_NEAR | FX_EV_ROUGH)) == 0) {
        return false;
    }
    size_t from = source_at(p->golden, g, golden->position), to = source_at(p->target, t, target->position);
    return from != FX_MISSING && to != FX_MISSING && !are_one(p, from, to) &&
           fx_compare_values(golden, target) <= FX_VALUES_STRANGE;
}

/* Pairs a tensor as the map says. */
static void join_mapped(const placing *p, size_t g)
{
    const fx_exec_node *golden = &p->golden->nodes[g], *target = &p->target->nodes[golden->partner];
    char wanted[4096];
    for (size_t i = golden->first_tensor; p->map != NULL && i < golden->first_tensor + golden->n_tensors; i++) {
        size_t entry = fx_map_apply(p->map, fx_exec_tensor(p->golden, i)->name, wanted, sizeof wanted);
        for (size_t t = target->first_tensor; entry > 0 && t < target->first_tensor + target->n_tensors; t++) {
            if (*partner_of_target(p, t) == FX_MISSING && strcmp(fx_exec_tensor(p->target, t)->name, wanted) == 0) {
                join(p, i, t);
                fx_map_note_use(p->map, entry);
                break;
            }
        }
    }
}

static bool stand_together(const placing *p, size_t g, const fxtap_tensor_info *golden, const fxtap_tensor_info *target,
                           bool is_turned)
{
    const fx_exec_node *node = &p->golden->nodes[g];
    bool is_named;
    if ((node->evidence & FX_EV_MAP) != 0 &&
        same_argument(p, &p->target->nodes[node->partner], golden, target, &is_named)) {
        return is_named;
    }
    return same_place(golden, target, is_turned);
}

static void join_calls(const placing *p, size_t g)
{
    const fx_exec_node *golden = &p->golden->nodes[g], *target = &p->target->nodes[golden->partner];
    bool is_turned = is_swapped(p, g, golden->partner);
    size_t at = target->first_tensor, end = at + target->n_tensors;
    join_mapped(p, g);
    for (size_t i = golden->first_tensor; i < golden->first_tensor + golden->n_tensors; i++) {
        if (*partner_of_golden(p, i) != FX_MISSING) {
            continue;
        }
        for (size_t k = 0; k < target->n_tensors; k++) { /* usually the one after the last match */
            size_t t = at + k < end ? at + k : at + k - target->n_tensors;
            if (*partner_of_target(p, t) == FX_MISSING &&
                stand_together(p, g, fx_exec_tensor(p->golden, i), fx_exec_tensor(p->target, t), is_turned)) {
                if (!is_rewritten(p, g, golden->partner, fx_exec_tensor(p->golden, i), fx_exec_tensor(p->target, t))) {
                    join(p, i, t);
                }
                at = t + 1 < end ? t + 1 : target->first_tensor;
                break;
            }
        }
    }
}

static bool index_of(const fx_execution *execution, const fxtap_tensor_info *tensor, size_t node, size_t *out)
{
    /* a getitem has no tensors of its own: its value is one of its producer's */
    const fx_exec_node *at = &execution->nodes[node];
    size_t producer, index;
    if (at->n_tensors == 0 && fx_execution_item(execution, node, &producer, &index)) {
        at = &execution->nodes[producer];
    }
    for (size_t i = at->first_tensor; i < at->first_tensor + at->n_tensors; i++) {
        if (fx_exec_tensor(execution, i) == tensor) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool fits(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->has_meta && b->has_meta && fx_same_shape(a, b);
}

/* Pairs the results of two nodes with different operators. */
static void join_results(const placing *p, size_t g)
{
    size_t t = p->golden->nodes[g].partner, golden, target;
    const fxtap_tensor_info *left = fx_execution_value(p->golden, g), *right = fx_execution_value(p->target, t);
    if (left != NULL && right != NULL && index_of(p->golden, left, g, &golden) &&
        index_of(p->target, right, t, &target) && *partner_of_golden(p, golden) == FX_MISSING &&
        *partner_of_target(p, target) == FX_MISSING) {
        join(p, golden, target);
    }
}

static void note_counterpart(const placing *p, size_t g)
{
    size_t t = p->golden->nodes[g].partner, producer, index;
    bool is_item = p->golden->nodes[g].n_tensors == 0 && fx_execution_item(p->golden, g, &producer, &index);
    size_t node = is_item ? producer : g;
    if (p->out->counterparts[node] == FX_MISSING) {
        p->out->counterparts[node] = t;
    }
}

/* ---- other results of regions ---- */

#define REACH 32 /* target's nodes examined around the counterpart */

/* Pairs a tensor with an unpaired result of `node` that is near it; false if there is none. */
static bool join_near(const placing *p, size_t golden, const fx_exec_node *node)
{
    const fxtap_tensor_info *tensor = fx_exec_tensor(p->golden, golden);
    for (size_t i = node->first_tensor; i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *other = fx_exec_tensor(p->target, i);
        if (other->io == FXTAP_OUTPUT && *partner_of_target(p, i) == FX_MISSING && other->has_meta &&
            fx_may_be_reshaped(tensor, other) && fx_compare_values(tensor, other) >= FX_VALUES_CLOSE) {
            join(p, golden, i);
            return true;
        }
    }
    return false;
}

/* A result without readers, such as the mean of a layer norm, may be an intermediate result of a region. */
static void join_unread(const placing *p, size_t g)
{
    const fx_exec_node *node = &p->golden->nodes[g];
    size_t counterpart = p->out->counterparts[g];
    size_t first = counterpart > REACH ? counterpart - REACH : 0;
    for (size_t i = node->first_tensor; counterpart != FX_MISSING && i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(p->golden, i);
        bool is_open = tensor->io == FXTAP_OUTPUT && *partner_of_golden(p, i) == FX_MISSING && tensor->has_meta;
        for (size_t t = first; is_open && t < p->target->n_nodes && t < counterpart + REACH; t++) {
            is_open = !join_near(p, i, &p->target->nodes[t]);
        }
    }
}

/* ---- inputs of regions ---- */

static void list_readers(const placing *p)
{
    for (size_t t = p->target->n_nodes; t-- > 0;) {
        const fx_exec_node *node = &p->target->nodes[t];
        bool has_own = node->partner != FX_MISSING && is_same_call(p, node->partner);
        for (size_t i = node->first_tensor + node->n_tensors; !has_own && i-- > node->first_tensor;) {
            const fxtap_tensor_info *tensor = fx_exec_tensor(p->target, i);
            size_t source = tensor->io == FXTAP_INPUT ? source_at(p->target, t, tensor->position) : FX_MISSING;
            if (source != FX_MISSING) {
                p->next[i - p->out->first_target] = p->readers[source];
                p->readers[source] = i + 1;
            }
        }
    }
}

/* Pairs the inputs of golden's region with the inputs that target's region takes from the same value. */
static void join_inputs(const placing *p, size_t g)
{
    const fx_exec_node *node = &p->golden->nodes[g];
    for (size_t i = node->first_tensor; i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(p->golden, i);
        size_t source = tensor->io == FXTAP_INPUT ? source_at(p->golden, g, tensor->position) : FX_MISSING;
        size_t partner = source == FX_MISSING ? FX_MISSING : p->golden->nodes[source].partner;
        for (size_t at = partner == FX_MISSING ? 0 : p->readers[partner]; at > 0;
             at = p->next[at - 1 - p->out->first_target]) {
            if (*partner_of_target(p, at - 1) == FX_MISSING && fits(tensor, fx_exec_tensor(p->target, at - 1))) {
                join(p, i, at - 1);
                break;
            }
        }
    }
}

/* ---- all ---- */

static void range_of(const fx_execution *execution, size_t *first_out, size_t *n_out)
{
    size_t first = execution->n_calls > 0 ? execution->calls[0].first_tensor : 0;
    size_t end = execution->n_calls > 0 ? execution->calls[execution->n_calls - 1].end_tensor : 0;
    *first_out = first;
    *n_out = end - first;
}

static size_t *missing(fx_arena *arena, size_t n)
{
    size_t *items = fx_arena_calloc(arena, n + 1, sizeof *items);
    for (size_t i = 0; items != NULL && i < n; i++) {
        items[i] = FX_MISSING;
    }
    return items;
}

fxtap_status fx_places_create(fx_arena *arena, const fx_map *map, const fx_execution *golden,
                              const fx_execution *target, fx_places *out)
{
    size_t n_golden, n_target;
    range_of(golden, &out->first_golden, &n_golden);
    range_of(target, &out->first_target, &n_target);
    out->golden = missing(arena, n_golden);
    out->target = missing(arena, n_target);
    out->counterparts = missing(arena, golden->n_nodes);
    placing p = {map,
                 golden,
                 target,
                 out,
                 fx_arena_calloc(arena, target->n_nodes + 1, sizeof *p.readers),
                 fx_arena_calloc(arena, n_target + 1, sizeof *p.next)};
    if (out->golden == NULL || out->target == NULL || out->counterparts == NULL || p.readers == NULL ||
        p.next == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t g = 0; g < golden->n_nodes; g++) {
        if (is_same_call(&p, g)) {
            join_calls(&p, g);
        }
    }
    for (size_t g = 0; g < golden->n_nodes; g++) {
        if (golden->nodes[g].partner != FX_MISSING) {
            note_counterpart(&p, g);
            if (!is_same_call(&p, g)) {
                join_results(&p, g);
            }
        }
    }
    if (golden->wiring == NULL || target->wiring == NULL) {
        return FXTAP_OK;
    }
    list_readers(&p);
    for (size_t g = 0; g < golden->n_nodes; g++) {
        if (golden->nodes[g].n_tensors > 0 && !is_same_call(&p, g)) {
            join_inputs(&p, g);
            join_unread(&p, g);
        }
    }
    return FXTAP_OK;
}
