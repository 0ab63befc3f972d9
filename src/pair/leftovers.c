/*
 * leftovers.c - pairs nodes that the alignment left over: equal values, an operator in the place of another, and what two
 * graphs return at the same position.
 */
#include <string.h>

#include "pair/align.h"
#include "pair/keys.h"

#define SHOWN_READERS 64
#define DEPTH 6 /* unpaired operators through which a value is followed */

typedef struct leftovers {
    const fx_traits *traits; /* of two sides */
    fx_execution *golden, *target;
} leftovers;

/* Whether a node has no counterpart, and a value of its own that may have one. */
static bool is_open(const fx_traits *traits, size_t i)
{
    const fx_trait *trait = &traits->items[i];
    return traits->execution->nodes[i].partner == FX_MISSING && trait->base != 0 && !trait->is_input &&
           !trait->is_output && !trait->is_tuple && trait->value != NULL;
}

/* ---- equal values: views and copies of what is paired already ---- */

static uint64_t key_of_elements(const fx_traits *traits, size_t node)
{
    return is_open(traits, node) ? fx_key_by_elements(traits, node) : 0;
}

static bool join_equal(leftovers *l, fx_arena *arena)
{
    size_t n_left, n_right;
    fx_keyed *left = fx_list_keys(arena, &l->traits[0], key_of_elements, &n_left);
    fx_keyed *right = fx_list_keys(arena, &l->traits[1], key_of_elements, &n_right);
    if (left == NULL || right == NULL) {
        return false;
    }
    for (size_t g = 0, t = 0; g < n_left && t < n_right;) {
        uint64_t one = left[g].key, other = right[t].key;
        if (one == other) {
            fx_weighing found = fx_weigh(&l->traits[0], left[g].node, &l->traits[1], right[t].node);
            fx_join(l->golden, left[g].node, l->target, right[t].node, found.evidence | FX_EV_VALUE, found.score);
        }
        g += one <= other;
        t += other <= one;
    }
    return true;
}

/* ---- an operator in the place of another ---- */

static size_t source_of_input(const fx_traits *traits, size_t node, size_t i)
{
    size_t n;
    return traits->items[fx_wiring_inputs(traits->execution->wiring, node, &n)[i]].source;
}

static bool reads(const fx_traits *traits, size_t node, size_t wanted)
{
    size_t n;
    fx_wiring_inputs(traits->execution->wiring, node, &n);
    for (size_t i = 0; i < n; i++) {
        if (source_of_input(traits, node, i) == wanted) {
            return true;
        }
    }
    return false;
}

/* Whether some reader has a counterpart, and each of these, a form of its operator, reads the other side's value. */
static bool are_readers_paired(const fx_traits *traits, size_t node, const fx_traits *others, size_t other)
{
    const fx_trait *trait = &traits->items[node];
    size_t n = 0;
    for (size_t i = 0; i < trait->n_users && i < SHOWN_READERS; i++) {
        size_t reader = traits->users[trait->first_user + i].node;
        if (traits->items[reader].source == node) {
            continue; /* it passes the value on to readers that are listed too */
        }
        size_t partner = traits->execution->nodes[reader].partner;
        if (partner == FX_MISSING) {
            continue;
        }
        if (others->items[partner].family != traits->items[reader].family || !reads(others, partner, other)) {
            return false;
        }
        n++;
    }
    return n > 0;
}

/* How many inputs at the same place are a pair; SIZE_MAX: all. */
static size_t count_paired_inputs(const leftovers *l, size_t g, size_t t)
{
    size_t n_left, n_right, n = 0;
    fx_wiring_inputs(l->golden->wiring, g, &n_left);
    fx_wiring_inputs(l->target->wiring, t, &n_right);
    for (size_t i = 0; i < n_left && i < n_right; i++) {
        n += l->golden->nodes[source_of_input(&l->traits[0], g, i)].partner == source_of_input(&l->traits[1], t, i);
    }
    return n == n_left && n == n_right ? SIZE_MAX : n;
}

/*
 * Whether what is computed from a value agrees: then the value is an intermediate one of programs that are written
 * differently, (x * 2) * 3 and (x * 3) * 2, and has no counterpart.
 */
static bool leads_to_agreement(const fx_traits *traits, size_t node, unsigned depth)
{
    const fx_trait *trait = &traits->items[node];
    for (size_t i = 0; i < trait->n_users && i < SHOWN_READERS; i++) {
        size_t reader = traits->users[trait->first_user + i].node;
        const fx_exec_node *at = &traits->execution->nodes[reader];
        bool agrees = at->partner != FX_MISSING ? (at->evidence & (FX_EV_VALUE | FX_EV_NEAR)) != 0
                                                : depth > 0 && leads_to_agreement(traits, reader, depth - 1);
        if (agrees) {
            return true;
        }
    }
    return false;
}

/*
 * Of two operators with the same inputs and the same readers, one may be a mistake for the other. One operator with the
 * same inputs alone may have a wrong number; with the same readers and one of the inputs, it may read a wrong value.
 */
static bool is_in_place_of(const leftovers *l, size_t g, size_t t)
{
    const fx_trait *left = &l->traits[0].items[g], *right = &l->traits[1].items[t];
    bool is_one = left->base == right->base && (!left->is_part || left->literals == right->literals);
    if (!is_open(&l->traits[1], t) || !fx_same_shape(left->value, right->value)) {
        return false;
    }
    size_t n_paired = count_paired_inputs(l, g, t);
    bool may_be = n_paired == SIZE_MAX || (n_paired > 0 && is_one && !left->is_commutative);
    return may_be &&
           ((n_paired == SIZE_MAX && is_one) || (are_readers_paired(&l->traits[0], g, &l->traits[1], t) &&
                                                 are_readers_paired(&l->traits[1], t, &l->traits[0], g))) &&
           !leads_to_agreement(&l->traits[0], g, DEPTH) && !leads_to_agreement(&l->traits[1], t, DEPTH);
}

/* The only target node that stands in the place of golden's; FX_MISSING: none. */
static size_t find_in_place_of(const leftovers *l, size_t g)
{
    size_t n, found = FX_MISSING;
    fx_wiring_inputs(l->golden->wiring, g, &n);
    for (size_t k = 0; k < n; k++) {
        size_t other = l->golden->nodes[source_of_input(&l->traits[0], g, k)].partner;
        const fx_trait *input = other == FX_MISSING ? NULL : &l->traits[1].items[other];
        for (size_t i = 0; input != NULL && i < input->n_users && i < SHOWN_READERS; i++) {
            size_t t = l->traits[1].users[input->first_user + i].node;
            if (t != found && is_in_place_of(l, g, t)) {
                if (found != FX_MISSING) {
                    return FX_MISSING;
                }
                found = t;
            }
        }
    }
    return found;
}

static void join_replaced(leftovers *l)
{
    for (size_t g = 0; g < l->golden->n_nodes; g++) {
        size_t t = is_open(&l->traits[0], g) ? find_in_place_of(l, g) : FX_MISSING;
        if (t != FX_MISSING) {
            fx_weighing found = fx_weigh(&l->traits[0], g, &l->traits[1], t);
            fx_join(l->golden, g, l->target, t, found.evidence | FX_EV_INPUTS | FX_EV_USERS, found.score);
        }
    }
}

/* ---- results ---- */

/* Which input of target's output node corresponds to golden's k-th; SIZE_MAX: none. */
static size_t find_result(const leftovers *l, size_t g, size_t t, size_t k)
{
    char room[FX_POSITION_BYTES];
    const char *position =
        fx_result_position(&l->traits[0], g, &l->traits[1], t, fx_wiring_position(l->golden->wiring, g, k), room);
    size_t n;
    fx_wiring_inputs(l->target->wiring, t, &n);
    if (position == NULL) {
        return SIZE_MAX;
    }
    if (k < n && strcmp(fx_wiring_position(l->target->wiring, t, k), position) == 0) {
        return k;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fx_wiring_position(l->target->wiring, t, i), position) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/*
 * Unpaired results that two graphs return at the same position are the same quantity, however different their values.
 */
static void join_results_of(leftovers *l, size_t g, size_t t)
{
    size_t n_left, n_right, n = fx_count_results(&l->traits[0], g, &l->traits[1], t);
    const size_t *left = fx_wiring_inputs(l->golden->wiring, g, &n_left);
    const size_t *right = fx_wiring_inputs(l->target->wiring, t, &n_right);
    for (size_t k = 0; k < n && k < n_left; k++) {
        size_t other_k = find_result(l, g, t, k);
        if (other_k >= n_right) {
            continue;
        }
        size_t from = l->traits[0].items[left[k]].source, to = l->traits[1].items[right[other_k]].source;
        const fx_trait *one = &l->traits[0].items[from], *other = &l->traits[1].items[to];
        bool are_free = l->golden->nodes[from].partner == FX_MISSING && l->target->nodes[to].partner == FX_MISSING;
        if (are_free && !one->is_input && !other->is_input && one->base != 0 && other->base != 0) {
            fx_weighing found = fx_weigh(&l->traits[0], from, &l->traits[1], to);
            fx_join(l->golden, from, l->target, to, found.evidence | FX_EV_RESULT, found.score);
        }
    }
}

static void join_results(leftovers *l)
{
    for (size_t g = 0; g < l->golden->n_nodes; g++) {
        if (l->traits[0].items[g].is_output && l->golden->nodes[g].partner != FX_MISSING) {
            join_results_of(l, g, l->golden->nodes[g].partner);
        }
    }
}

bool fx_join_leftovers(fx_arena *arena, const fx_traits traits[2], fx_execution *golden, fx_execution *target)
{
    leftovers l = {traits, golden, target};
    if (!join_equal(&l, arena)) {
        return false;
    }
    if (golden->wiring != NULL && target->wiring != NULL) {
        join_replaced(&l);
    }
    join_results(&l);
    return true;
}
