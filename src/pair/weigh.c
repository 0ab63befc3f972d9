/*
 * weigh.c - scores the evidence that two nodes are a pair.
 *
 * The weights are integers, tuned on executions with known pairs (bench/pairing.py). An equal value outweighs
 * everything except contradicting wiring. If the values differ, as they do after a fault, operator, module and line
 * together with one paired input suffice; none of them does alone.
 */
#include <stdio.h>
#include <string.h>

#include "pair/align.h"

#define SHOWN_USERS 16 /* readers examined: a mask may have thousands */
#define SHOWN_TERMS 32 /* terms of a sum */
#define MAX_BETWEEN 6  /* operators that one side may have in between */

enum weight {
    W_VALUE = 16,
    W_NEAR = 9,
    W_ROUGHLY_NEAR = 4,
    W_TRIVIAL_VALUE = 3,
    W_STRANGER = -4,
    W_OPERATOR = 4,
    W_FAMILY = 3,
    W_OTHER_OPERATOR = -4,
    W_MODULE = 3,
    W_OTHER_MODULE = -3,
    W_LINE = 3,
    W_OTHER_LINE = -1,
    W_SHAPE = 2,
    W_OTHER_COUNT = -12,
    W_RESHAPED = -4, /* W_RESHAPED: if the operators differ too */
    W_LITERALS = 1,
    W_PART = 6,
    W_OTHER_PART = -3, /* the literals of a select or slice determine the part */
    W_INPUT = 4,
    W_THROUGH = 2,
    W_INPUT_AGAINST = -6,
    W_USER = 6,
    W_MORE_USERS = 8,
    W_GIVEN_BACK = 10,
    W_USER_AGAINST = -4,
    W_NAME = 8,
};

typedef struct weighing {
    const fx_traits *golden, *target;
    size_t g, t;
    bool is_resized; /* the two values have different numbers of elements */
    fx_weighing out;
} weighing;

static void add(weighing *w, int32_t weight, uint32_t evidence)
{
    w->out.score += weight;
    w->out.evidence |= evidence;
}

static const fx_exec_node *node_of(const fx_traits *traits, size_t i)
{
    return &traits->execution->nodes[i];
}

static uint64_t count_of(const fxtap_tensor_info *tensor)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        count *= (uint64_t)tensor->shape[i];
    }
    return count;
}

/* Near statistics of two results mean the same value, or the same elements in another order. */
static fx_closeness compare_values(const weighing *w)
{
    fx_trait *g = &w->golden->items[w->g], *t = &w->target->items[w->t];
    fx_closeness found = fx_compare_values(g->value, t->value);
    bool may_be_turned =
        g->value->ndim > 1 && (g->base != t->base || g->is_permuting) && fx_same_shape(g->value, t->value);
    if (!may_be_turned || (found != FX_VALUES_CLOSE && found != FX_VALUES_ROUGHLY)) {
        return found;
    }
    fx_sampling sampled = fx_compare_samples(w->golden->arena, g, t);
    return sampled == FX_SAMPLES_DIFFER ? FX_VALUES_STRANGE : sampled == FX_SAMPLES_UNKNOWN ? FX_VALUES_ROUGHLY : found;
}

static void weigh_value(weighing *w)
{
    const fx_trait *g = &w->golden->items[w->g], *t = &w->target->items[w->t];
    const fxtap_tensor_info *a = g->value, *b = t->value;
    if (a == NULL || b == NULL) {
        return;
    }
    if (fx_same_shape(a, b)) {
        add(w, W_SHAPE, FX_EV_SHAPE);
    } else if (count_of(a) != count_of(b)) {
        add(w, W_OTHER_COUNT, 0);
        w->is_resized = true;
        return;
    } else if (g->base != t->base) {
        add(w, fx_may_be_reshaped(a, b) ? W_RESHAPED : W_OTHER_COUNT, 0);
    }
    bool is_trivial = g->is_trivial || t->is_trivial;
    switch (compare_values(w)) {
    case FX_VALUES_EQUAL:
        add(w, is_trivial ? W_TRIVIAL_VALUE : W_VALUE, is_trivial ? 0 : FX_EV_VALUE);
        break;
    case FX_VALUES_CLOSE:
        add(w, is_trivial ? W_TRIVIAL_VALUE : W_NEAR, is_trivial ? 0 : FX_EV_NEAR);
        break;
    case FX_VALUES_ROUGHLY:
        add(w, is_trivial ? W_TRIVIAL_VALUE : W_ROUGHLY_NEAR, is_trivial ? 0 : FX_EV_ROUGH);
        break;
    case FX_VALUES_STRANGE:
        add(w, W_STRANGER, FX_EV_STRANGER);
        break;
    default:
        break;
    }
}

static void weigh_place(weighing *w)
{
    const fx_trait *g = &w->golden->items[w->g], *t = &w->target->items[w->t];
    if (g->base == t->base) {
        add(w, W_OPERATOR, FX_EV_OPERATOR);
    } else {
        add(w, g->family == t->family ? W_FAMILY : W_OTHER_OPERATOR, g->family == t->family ? FX_EV_FAMILY : 0);
    }
    if (g->module != 0 && t->module != 0) {
        add(w, g->module == t->module ? W_MODULE : W_OTHER_MODULE, g->module == t->module ? FX_EV_MODULE : 0);
    }
    if (g->line != 0 && t->line != 0) {
        add(w, g->line == t->line ? W_LINE : W_OTHER_LINE, g->line == t->line ? FX_EV_LINE : 0);
    }
    if (g->base == t->base && g->literals == t->literals) {
        add(w, g->is_part ? W_PART : W_LITERALS, FX_EV_LITERALS);
    } else if (g->base == t->base && g->is_part) {
        add(w, W_OTHER_PART, 0);
    }
    const char *a = node_of(w->golden, w->g)->name, *b = node_of(w->target, w->t)->name;
    bool is_unwired = w->golden->execution->wiring == NULL || w->target->execution->wiring == NULL;
    if (is_unwired && strcmp(a, b) == 0) {
        add(w, W_NAME, FX_EV_NAME);
    }
}

/* OTHER_SIZE: against, since one is a part of the other, or of another batch. */
typedef enum agreement { UNKNOWN, OTHER_SIZE, AGAINST, THROUGH, AGREED } agreement;

/*
 * THROUGH if `wanted` feeds `node` through a few unpaired operators. Sums that are grouped differently, (a + b) + c and
 * a + (b + c), have the same form but do not correspond: an operator of `family` on the path means AGAINST.
 */
static agreement reaches(const fx_traits *traits, size_t node, size_t wanted, uint64_t family, unsigned depth)
{
    size_t n_inputs;
    const size_t *inputs = fx_wiring_inputs(traits->execution->wiring, node, &n_inputs);
    if (depth == 0 || n_inputs > 4 || node_of(traits, node)->partner != FX_MISSING) {
        return UNKNOWN;
    }
    for (size_t k = 0; k < n_inputs; k++) {
        size_t source = traits->items[inputs[k]].source;
        agreement found = source == wanted ? THROUGH : reaches(traits, source, wanted, family, depth - 1);
        if (found != UNKNOWN) {
            return traits->items[node].family == family ? AGAINST : found;
        }
    }
    return UNKNOWN;
}

/* The terms of a sum, including those of unpaired sums in it. Returns their number; SHOWN_TERMS: there may be more. */
static size_t list_terms(const fx_traits *traits, size_t sum, uint64_t family, size_t out[SHOWN_TERMS])
{
    size_t n = 1;
    out[0] = sum;
    for (size_t i = 0; i < n;) {
        size_t n_inputs, node = out[i];
        const size_t *inputs = fx_wiring_inputs(traits->execution->wiring, node, &n_inputs);
        if (traits->items[node].family != family || node_of(traits, node)->partner != FX_MISSING || n_inputs == 0) {
            i++;
            continue;
        }
        if (n - 1 + n_inputs >= SHOWN_TERMS) {
            return SHOWN_TERMS;
        }
        out[i] = out[--n];
        for (size_t k = 0; k < n_inputs; k++) {
            out[n++] = traits->items[inputs[k]].source;
        }
    }
    return n;
}

/* Whether a term of one sum has a counterpart that is not a term of the other. */
static bool has_other_terms(const fx_traits *traits, size_t sum, const fx_traits *others, size_t other, uint64_t family)
{
    size_t terms[SHOWN_TERMS], other_terms[SHOWN_TERMS];
    size_t n = list_terms(traits, sum, family, terms), n_other = list_terms(others, other, family, other_terms);
    bool found = false;
    for (size_t i = 0; i < n && n < SHOWN_TERMS && n_other < SHOWN_TERMS && !found; i++) {
        size_t partner = node_of(traits, terms[i])->partner;
        found = partner != FX_MISSING;
        for (size_t k = 0; k < n_other && found; k++) {
            found = other_terms[k] != partner;
        }
    }
    return found;
}

static size_t source_at(const fx_traits *traits, size_t node, size_t edge)
{
    size_t n_inputs;
    return traits->items[fx_wiring_inputs(traits->execution->wiring, node, &n_inputs)[edge]].source;
}

/* Whether two values, or an input of two operators with several results, have different numbers of elements. */
static bool have_other_sizes(const weighing *w, size_t a, size_t b)
{
    const fx_trait *left = &w->golden->items[a], *right = &w->target->items[b];
    if (!left->is_tuple || !right->is_tuple) {
        return left->value != NULL && right->value != NULL && count_of(left->value) != count_of(right->value);
    }
    size_t n_left, n_right;
    fx_wiring_inputs(w->golden->execution->wiring, a, &n_left);
    fx_wiring_inputs(w->target->execution->wiring, b, &n_right);
    for (size_t k = 0; k < n_left && k < n_right; k++) {
        size_t from = source_at(w->golden, a, k), to = source_at(w->target, b, k);
        bool is_pair = node_of(w->golden, from)->partner == to;
        const fxtap_tensor_info *one = w->golden->items[from].value, *other = w->target->items[to].value;
        if (!is_pair && one != NULL && other != NULL && count_of(one) != count_of(other)) {
            return true;
        }
    }
    return false;
}

/*
 * Whether the partners of two values show that they are the same quantity. If two sums do not correspond, an operand
 * that the other side uses elsewhere is a term of another sum. Results with different sizes or values are only supported by
 * operands that are a pair; otherwise they may be of another batch, or another part of one.
 */
static agreement compare_sources(const weighing *w, size_t a, size_t b)
{
    size_t partner = node_of(w->golden, a)->partner, other = node_of(w->target, b)->partner;
    if (partner == b) {
        return AGREED;
    }
    bool is_apart = w->is_resized || (w->out.evidence & FX_EV_STRANGER) != 0;
    if (is_apart && have_other_sizes(w, a, b)) {
        return OTHER_SIZE;
    }
    const fx_trait *g = &w->golden->items[w->g];
    bool is_sum = g->is_commutative && (w->out.evidence & FX_EV_STRANGER) != 0;
    if (partner == FX_MISSING && other == FX_MISSING) {
        bool is_other = is_sum && (has_other_terms(w->golden, a, w->target, b, g->family) ||
                                   has_other_terms(w->target, b, w->golden, a, g->family));
        return is_other ? AGAINST : UNKNOWN;
    }
    uint64_t family = is_sum ? g->family : 0;
    agreement found = partner == FX_MISSING ? UNKNOWN : reaches(w->target, b, partner, family, MAX_BETWEEN);
    found = found != UNKNOWN || other == FX_MISSING ? found : reaches(w->golden, a, other, family, MAX_BETWEEN);
    bool is_open = !is_sum && (partner == FX_MISSING || other == FX_MISSING);
    return found != UNKNOWN || is_open ? found : AGAINST;
}

typedef struct edges { /* range [first, end) of a node's inputs */
    size_t first, end;
} edges;

/* Which inputs of a node may correspond to `position`: usually the one at the same index; any if the order is
 * irrelevant. */
static edges find_edges(const fx_wiring *wiring, size_t node, size_t edge, const char *position, bool is_free)
{
    size_t n_inputs;
    fx_wiring_inputs(wiring, node, &n_inputs);
    bool is_here = !is_free && edge < n_inputs && strcmp(fx_wiring_position(wiring, node, edge), position) == 0;
    return is_here ? (edges){edge, edge + 1} : (edges){0, n_inputs};
}

/* How what target's node reads at this position agrees; the best of all inputs if the order is irrelevant. */
static agreement compare_input(const weighing *w, size_t edge, bool is_free)
{
    const fx_wiring *golden = w->golden->execution->wiring, *target = w->target->execution->wiring;
    const char *position = fx_wiring_position(golden, w->g, edge);
    agreement best = UNKNOWN;
    bool is_first = true;
    edges some = find_edges(target, w->t, edge, position, is_free);
    for (size_t k = some.first; k < some.end; k++) {
        if (is_free || strcmp(fx_wiring_position(target, w->t, k), position) == 0) {
            agreement found = compare_sources(w, source_at(w->golden, w->g, edge), source_at(w->target, w->t, k));
            best = is_first || found > best ? found : best;
            is_first = false;
        }
    }
    return best;
}

typedef struct tally { /* how the inputs of two nodes agree */
    size_t n_agreed, n_against;
    bool any_through, any_other_size;
} tally;

static void count(tally *out, agreement found)
{
    out->n_agreed += found == AGREED;
    out->n_against += found == AGAINST || found == OTHER_SIZE;
    out->any_other_size |= found == OTHER_SIZE;
    out->any_through |= found == THROUGH;
}

static int32_t weight_of(const tally *found)
{
    return (found->n_agreed > 1   ? 2
            : found->n_agreed > 0 ? 1
                                  : 0) *
               W_INPUT +
           (found->any_through ? W_THROUGH : 0) +
           (found->n_against > 1   ? 2
            : found->n_against > 0 ? 1
                                   : 0) *
               W_INPUT_AGAINST;
}

/*
 * Two operands whose order is irrelevant are matched with the other side's in the same order or crossed. If an operand
 * agrees with one of them, the other operand is matched with the remaining one.
 */
static tally compare_operands(const weighing *w)
{
    tally found[2] = {{0}, {0}};
    for (size_t edge = 0; edge < 4; edge++) {
        count(&found[edge / 2], compare_sources(w, source_at(w->golden, w->g, edge % 2),
                                                source_at(w->target, w->t, (edge + edge / 2) % 2)));
    }
    return weight_of(&found[1]) > weight_of(&found[0]) ? found[1] : found[0];
}

/* Returns whether readers may show that the two are the same quantity. */
static bool weigh_inputs(weighing *w)
{
    size_t n_inputs, n_other;
    fx_wiring_inputs(w->golden->execution->wiring, w->g, &n_inputs);
    fx_wiring_inputs(w->target->execution->wiring, w->t, &n_other);
    bool is_free = w->golden->items[w->g].is_commutative;
    tally found = {0};
    if (is_free && n_inputs == 2 && n_other == 2) {
        found = compare_operands(w);
    } else {
        for (size_t k = 0; k < n_inputs && k < SHOWN_USERS; k++) {
            count(&found, compare_input(w, k, is_free));
        }
    }
    add(w, weight_of(&found),
        (found.n_agreed > 0 || found.any_through ? FX_EV_INPUTS : 0u) |
            (found.n_against > 0 ? FX_EV_INPUT_AGAINST : 0u));
    w->out.n_inputs = (uint32_t)found.n_agreed;
    w->out.n_against += (uint32_t)found.n_against;
    return !found.any_other_size;
}

/* The forward call of an output node's backward call; NULL: unknown. */
static const fx_exec_call *forward_of(const fx_traits *traits, size_t output)
{
    const fx_exec_call *calls = traits->execution->calls;
    size_t forward = calls[node_of(traits, output)->call].forward;
    return forward == FX_MISSING ? NULL : &calls[forward];
}

size_t fx_count_results(const fx_traits *golden, size_t g, const fx_traits *target, size_t t)
{
    const fx_traits *sides[] = {golden, target};
    const size_t nodes[] = {g, t};
    const fx_execution *first = golden->execution;
    const fxtap_graph_info *info = first->calls[first->nodes[g].call].graph;
    if (info != NULL && info->kind == FXTAP_GRAPH_BACKWARD && first->n_backwards != target->execution->n_backwards) {
        return 0; /* if the graphs are split elsewhere, they return parts of gradients */
    }
    size_t counts[2];
    bool is_inference[2];
    for (int side = 0; side < 2; side++) {
        const fx_execution *execution = sides[side]->execution;
        const fxtap_graph_info *graph = execution->calls[execution->nodes[nodes[side]].call].graph;
        fx_wiring_inputs(execution->wiring, nodes[side], &counts[side]);
        is_inference[side] = graph != NULL && graph->kind != FXTAP_GRAPH_FORWARD;
    }
    if (forward_of(golden, g) != NULL && forward_of(target, t) != NULL) {
        return counts[0];
    }
    if (is_inference[0] && is_inference[1]) {
        return counts[0] == counts[1] ? counts[0] : 1;
    }
    return is_inference[0] ? counts[0] : is_inference[1] ? counts[1] : 1;
}

const char *fx_result_position(const fx_traits *golden, size_t g, const fx_traits *target, size_t t,
                               const char *position, char room[FX_POSITION_BYTES])
{
    const fx_exec_call *left = forward_of(golden, g), *right = forward_of(target, t);
    const char *dot = strrchr(position, '.'), *digits = dot == NULL ? position : dot + 1;
    size_t index = 0, length = (size_t)(digits - position);
    for (const char *at = digits; *at >= '0' && *at <= '9' && index < UINT32_MAX; at++) {
        index = index * 10 + (size_t)(*at - '0');
    }
    bool is_known =
        left != NULL && right != NULL && index < left->n_nodes && golden->items[left->first_node + index].is_input;
    size_t partner = is_known ? node_of(golden, left->first_node + index)->partner : FX_MISSING;
    if (partner == FX_MISSING || partner < right->first_node || partner >= right->first_node + right->n_nodes ||
        length + 24 > FX_POSITION_BYTES) {
        size_t n_left, n_right;
        fx_wiring_inputs(golden->execution->wiring, g, &n_left);
        fx_wiring_inputs(target->execution->wiring, t, &n_right);
        return left == NULL || right == NULL || n_left == n_right ? position : NULL;
    }
    snprintf(room, FX_POSITION_BYTES, "%.*s%zu", (int)length, position, partner - right->first_node);
    return room;
}

/* Golden's reader is paired: compares what its partner reads at that position. */
static agreement compare_user(const weighing *w, fx_user user)
{
    size_t partner = node_of(w->golden, user.node)->partner;
    if (partner == FX_MISSING || w->golden->items[user.node].base != w->target->items[partner].base) {
        return UNKNOWN;
    }
    const fx_wiring *golden = w->golden->execution->wiring, *target = w->target->execution->wiring;
    const char *position = fx_wiring_position(golden, user.node, user.edge);
    bool is_free = w->golden->items[user.node].is_commutative;
    agreement best = UNKNOWN;
    char room[FX_POSITION_BYTES];
    if (w->golden->items[user.node].is_output) {
        if (user.edge >= fx_count_results(w->golden, user.node, w->target, partner)) {
            return UNKNOWN;
        }
        position = fx_result_position(w->golden, user.node, w->target, partner, position, room);
        if (position == NULL) {
            return UNKNOWN;
        }
    }
    edges some = find_edges(target, partner, user.edge, position, is_free);
    for (size_t k = some.first; k < some.end; k++) {
        if (is_free || strcmp(fx_wiring_position(target, partner, k), position) == 0) {
            size_t source = source_at(w->target, partner, k);
            if (source == w->t) {
                return AGREED;
            }
            bool is_elsewhere = node_of(w->target, source)->partner != FX_MISSING && !is_free;
            best = is_elsewhere ? AGAINST : best;
        }
    }
    return best;
}

/* If sums have equal or near values, operands with other statistics are not misread: terms are grouped differently. */
static bool is_settled_sum(const weighing *w, size_t reader)
{
    bool is_stranger = (w->out.evidence & FX_EV_STRANGER) != 0 && w->golden->items[w->g].is_commutative;
    return is_stranger && w->golden->items[reader].family == w->golden->items[w->g].family &&
           (node_of(w->golden, reader)->evidence & (FX_EV_VALUE | FX_EV_NEAR)) != 0;
}

static void weigh_users(weighing *w)
{
    const fx_trait *g = &w->golden->items[w->g];
    size_t n_agreed = 0, n_against = 0;
    bool is_given_back = false; /* at the same position of the graphs' results */
    for (size_t k = 0; k < g->n_users && k < SHOWN_USERS; k++) {
        fx_user user = w->golden->users[g->first_user + k];
        agreement found = is_settled_sum(w, user.node) ? UNKNOWN : compare_user(w, user);
        is_given_back |= found == AGREED && w->golden->items[user.node].is_output;
        n_agreed += found == AGREED;
        n_against += found == AGAINST;
    }
    if (n_agreed > 0) {
        add(w, is_given_back ? W_GIVEN_BACK : n_agreed > 1 ? W_MORE_USERS : W_USER, FX_EV_USERS);
    } else if (n_against > 0) {
        add(w, W_USER_AGAINST, FX_EV_USER_AGAINST);
        w->out.n_against++;
    }
}

fx_weighing fx_weigh(const fx_traits *golden, size_t g, const fx_traits *target, size_t t)
{
    weighing w = {.golden = golden, .target = target, .g = g, .t = t};
    const fx_trait *a = &golden->items[g], *b = &target->items[t];
    bool may_pair = a->base != 0 && b->base != 0 && a->is_input == b->is_input && !a->is_output && !b->is_output &&
                    (a->family == b->family || (!a->is_tuple && !b->is_tuple));
    if (!may_pair) {
        return (fx_weighing){.score = FX_NO_SCORE};
    }
    weigh_place(&w);
    weigh_value(&w);
    if (golden->execution->wiring != NULL && target->execution->wiring != NULL) {
        if (a->family != b->family || a->is_input || weigh_inputs(&w)) {
            weigh_users(&w);
        }
    }
    return w.out;
}

double fx_confidence(uint32_t evidence, int32_t score)
{
    if ((evidence & (FX_EV_STRUCTURE | FX_EV_MAP)) != 0) {
        return 1.0;
    }
    double confidence = 0.3 + 0.7 * (double)score / 20.0;
    return confidence > 1.0 ? 1.0 : confidence < 0.1 ? 0.1 : confidence;
}

bool fx_is_supported(uint32_t evidence)
{
    uint32_t same = FX_EV_OPERATOR | FX_EV_FAMILY, any = FX_EV_VALUE | FX_EV_NEAR | FX_EV_USERS;
    return (evidence & any) != 0 ||
           ((evidence & same) != 0 && (evidence & (FX_EV_ROUGH | FX_EV_INPUTS | FX_EV_NAME)) != 0);
}

bool fx_is_misreading(uint32_t evidence)
{
    return (evidence & FX_EV_INPUT_AGAINST) != 0 && (evidence & FX_EV_USER_AGAINST) == 0 &&
           (evidence & FX_EV_USERS) != 0 && (evidence & FX_EV_OPERATOR) != 0 &&
           (evidence & (FX_EV_LINE | FX_EV_MODULE)) != 0;
}

bool fx_is_confirmed(uint32_t evidence)
{
    uint32_t settled = FX_EV_STRUCTURE | FX_EV_MAP | FX_EV_VALUE | FX_EV_NEAR | FX_EV_RESULT;
    bool is_wired = (evidence & (FX_EV_INPUTS | FX_EV_USERS)) != 0 &&
                    (evidence & (FX_EV_OPERATOR | FX_EV_FAMILY | FX_EV_USERS)) != 0;
    bool is_placed = (evidence & FX_EV_OPERATOR) != 0 && (evidence & FX_EV_LINE) != 0 && (evidence & FX_EV_MODULE) != 0;
    bool is_named = (evidence & (FX_EV_NAME | FX_EV_OPERATOR)) == (FX_EV_NAME | FX_EV_OPERATOR);
    bool is_contradicted = (evidence & (FX_EV_INPUT_AGAINST | FX_EV_USER_AGAINST)) != 0 && !fx_is_misreading(evidence);
    bool is_in_order = (evidence & FX_EV_ORDER) != 0 && (evidence & FX_EV_OPERATOR) != 0;
    return (evidence & settled) != 0 || is_in_order || ((is_wired || is_placed || is_named) && !is_contradicted);
}
