/*
 * origin.c - finds where errors begin and which nodes only propagate them.
 *
 * Nodes are visited in execution order. A node is *bad* when an output of it disagrees. Its inputs are judged by their
 * own pairs; an input that was not dumped or has no pair is judged by its producer, found through the graph's wiring
 * and through nodes that were not dumped. A bad node with no bad input is an origin; any other bad node propagates an
 * earlier origin. An origin whose inputs agree only within the tolerance, and whose output error is hardly larger than
 * theirs, is where a small error exceeded the tolerance (DRIFT). A literal (a number in the code, which no node
 * produces) is not an input: if it differs, the operator itself differs, and an error begins there.
 *
 * An input that disagrees although nothing that feeds it was found to disagree is an origin too: the reason is INPUT or
 * WEIGHT if it is a graph input on both sides, or if there is no record (no index); otherwise BEFORE.
 */
#include <math.h>
#include <string.h>

#include "compare/batch.h"
#include "util/memory.h"

#define NO_ORIGIN SIZE_MAX
#define DRIFT_GROWTH 10.0 /* by how much a correct operator may amplify an error in its inputs */

/* CLEAN: not compared, but everything that feeds it agrees; an error in its consumers began in it. */
typedef enum health { UNKNOWN, CLEAN, GOOD, BAD } health;

typedef struct node_state {
    health output;
    size_t origin; /* index of the origin whose error it has (even within the tolerance), or NO_ORIGIN */
    size_t after;  /* index of the origin between it and a node that reads it, or NO_ORIGIN */
} node_state;

typedef struct search {
    fx_batch *batch;
    fxtap_report *report;
    fx_group_nodes *nodes;
    const fx_wiring *wiring;        /* golden's; NULL: none */
    const fx_wiring *target_wiring; /* NULL: not loaded yet, or none */
    node_state *states;             /* one per node of the record */
    fx_node_health *health;
    size_t n_states;
    size_t *origin_nodes; /* golden's node of each origin of this group */
    size_t n_origin_nodes, origin_nodes_capacity;
    size_t last_origin;  /* without wiring: the origin that bad nodes are counted for */
    bool any_bad_output; /* without wiring */
} search;

typedef struct evidence { /* what is known of a node's inputs */
    bool any_bad;
    bool any_unknown;
    bool any_clean;                /* an input that was not compared, from operators whose inputs all agree */
    size_t origin;                 /* the earliest origin among its bad inputs */
    size_t faint_origin;           /* the same among inputs that agree, but not exactly */
    const fxtap_pair *worst_input; /* the bad input pair with the largest error */
    bool any_measured;
    double input_error;
    bool is_fed; /* worst_input comes from `feeder`, in golden's graph */
    size_t feeder;
} evidence;

static fxtap_status load_target_wiring(search *s)
{
    return fx_group_wiring(s->nodes, false, &s->target_wiring);
}

static double error_of(const fxtap_pair *pair)
{
    if (!pair->measured) {
        return fx_verdict_is_bad(pair->verdict) ? INFINITY : 0.0;
    }
    return isnan(pair->rel_l2) ? INFINITY : pair->rel_l2;
}

static const fxtap_pair *pair_at(const search *s, size_t i)
{
    return &s->batch->pairs[i];
}

/* State of the result of node `i`, inferred through nodes that were not dumped. */
static health resolve(const search *s, size_t i, size_t *origin_out)
{
    *origin_out = i < s->n_states ? s->states[i].origin : NO_ORIGIN;
    return i < s->n_states ? s->states[i].output : UNKNOWN;
}

static void note_earliest(size_t *earliest, size_t origin)
{
    if (origin != NO_ORIGIN && (*earliest == NO_ORIGIN || origin < *earliest)) {
        *earliest = origin;
    }
}

static void note_origin(evidence *e, size_t origin)
{
    note_earliest(&e->origin, origin);
}

/* An input that agrees may still have a remainder of an earlier error. */
static void note_close_input(const search *s, const fxtap_pair *pair, size_t node, evidence *e)
{
    size_t producer, origin;
    if (s->wiring == NULL) {
        note_earliest(&e->faint_origin, s->last_origin);
    } else if (fx_wiring_producer(s->wiring, node, pair->position, &producer)) {
        resolve(s, producer, &origin);
        note_earliest(&e->faint_origin, origin);
    }
}

/* If one reader's input agrees, its producer is good for all readers; this is all that is known of a graph input. */
static void note_good_input(const search *s, const fxtap_pair *pair, size_t node)
{
    size_t producer;
    if (s->wiring != NULL && fx_wiring_producer(s->wiring, node, pair->position, &producer) &&
        s->states[producer].output == UNKNOWN) {
        s->states[producer].output = GOOD;
    }
}

/* A pair at "0" also covers position "0.1": a list of numbers is one array. */
static bool covers(const char *pair_position, const char *position)
{
    size_t length = strlen(pair_position);
    return strncmp(pair_position, position, length) == 0 && (position[length] == '\0' || position[length] == '.');
}

static void note_bad_input(const search *s, const fxtap_pair *pair, size_t node, evidence *e)
{
    e->any_bad = true;
    bool is_worst = e->worst_input == NULL || error_of(pair) > error_of(e->worst_input);
    if (is_worst) {
        e->worst_input = pair;
        e->is_fed = false;
    }
    size_t n_inputs = 0;
    const size_t *inputs = s->wiring != NULL ? fx_wiring_inputs(s->wiring, node, &n_inputs) : NULL;
    for (size_t i = 0; i < n_inputs; i++) {
        if (covers(pair->position, fx_wiring_position(s->wiring, node, i))) {
            note_origin(e, s->states[inputs[i]].origin);
            note_origin(e, s->states[inputs[i]].after);
            e->feeder = is_worst && !e->is_fed ? inputs[i] : e->feeder;
            e->is_fed |= is_worst;
        }
    }
}

static bool is_judged(const fxtap_pair *pair)
{
    bool is_one = pair->verdict == FXTAP_SAME || pair->verdict == FXTAP_CLOSE || fx_verdict_is_bad(pair->verdict);
    return is_one && !pair->is_literal; /* a different literal makes a different operator: the error began there */
}

/* Whether one of the node's inputs at this position has a judged pair. */
static bool has_judged_input(const search *s, const fx_node_pair *node, const char *position)
{
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = pair_at(s, i);
        bool is_known = is_judged(pair) || pair->verdict == FXTAP_UNDEFINED; /* undefined values are not errors */
        if (pair->io == FXTAP_INPUT && is_known && covers(pair->position, position)) {
            return true;
        }
    }
    return false;
}

/* Judges inputs without a judged pair by their producers. */
static void weigh_wiring(const search *s, const fx_node_pair *node, size_t order, evidence *e)
{
    size_t n_inputs;
    const size_t *inputs = fx_wiring_inputs(s->wiring, order, &n_inputs);
    for (size_t i = 0; i < n_inputs; i++) {
        if (has_judged_input(s, node, fx_wiring_position(s->wiring, order, i))) {
            continue;
        }
        size_t origin;
        health known = resolve(s, inputs[i], &origin);
        e->any_bad |= known == BAD;
        e->any_unknown |= known == UNKNOWN;
        e->any_clean |= known == CLEAN;
        note_earliest(known == BAD ? &e->origin : &e->faint_origin, origin);
    }
}

static evidence weigh_inputs(search *s, const fx_node_pair *node, size_t order)
{
    evidence e = {.origin = NO_ORIGIN, .faint_origin = NO_ORIGIN};
    bool any_judged = false;
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = pair_at(s, i);
        if (pair->io != FXTAP_INPUT || !is_judged(pair)) {
            continue;
        }
        any_judged = true;
        e.any_measured |= pair->measured;
        e.input_error = fmax(e.input_error, pair->measured ? error_of(pair) : 0.0);
        if (fx_verdict_is_bad(pair->verdict)) {
            note_bad_input(s, pair, order, &e);
            continue;
        }
        note_good_input(s, pair, order);
        if (pair->verdict == FXTAP_CLOSE) {
            note_close_input(s, pair, order, &e);
        }
    }
    if (s->wiring != NULL) {
        weigh_wiring(s, node, order, &e);
    }
    if (s->wiring == NULL && !any_judged) {
        e.any_unknown = true;
        e.any_bad = s->any_bad_output;
    }
    if (s->wiring == NULL && e.any_bad) {
        e.origin = s->last_origin;
    }
    return e;
}

static const fxtap_pair *worst_output(const search *s, const fx_node_pair *node, bool *any_judged)
{
    const fxtap_pair *worst = NULL;
    *any_judged = false;
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = pair_at(s, i);
        if (pair->io == FXTAP_INPUT || !is_judged(pair)) {
            continue;
        }
        *any_judged = true;
        if (fx_verdict_is_bad(pair->verdict) && (worst == NULL || error_of(pair) > error_of(worst))) {
            worst = pair;
        }
    }
    return worst;
}

static double largest_error(const search *s, const fx_node_pair *node)
{
    double largest = 0.0;
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = pair_at(s, i);
        if (pair->io != FXTAP_INPUT && is_judged(pair)) {
            largest = fmax(largest, error_of(pair));
        }
    }
    return largest;
}

static fxtap_status add_origin(search *s, const fx_node_pair *node, const fxtap_pair *pair, fxtap_origin_reason reason,
                               const evidence *e, size_t *index_out)
{
    bool is_input = pair->io == FXTAP_INPUT;
    fxtap_origin origin = {
        .reason = reason, .input_error = is_input ? 0.0 : e->input_error, .output_error = error_of(pair)};
    origin.growth = origin.input_error > 0.0 ? origin.output_error / origin.input_error : INFINITY;
    fxtap_status status =
        fx_describe_origin(s->batch, s->nodes, node, pair, is_input && e->is_fed ? e->feeder : FX_MISSING, &origin);
    if (status != FXTAP_OK) {
        return status;
    }
    *index_out = s->report->n_origins;
    if (!fx_grow((void **)&s->origin_nodes, &s->origin_nodes_capacity, s->n_origin_nodes + 1,
                 sizeof *s->origin_nodes)) {
        return FXTAP_E_NOMEM;
    }
    s->origin_nodes[s->n_origin_nodes++] = node->golden_node;
    return fx_report_add_origin(s->report, &origin, s->batch->first_pair + (size_t)(pair - s->batch->pairs));
}

/* Target's node that reads the input: in a region, not the node that produces the result. */
static size_t target_node_of(const search *s, const fx_node_pair *node, const fxtap_pair *pair)
{
    const fxtap_tensor_info *tensor = fx_batch_target(s->batch, s->batch->sources[pair - s->batch->pairs].target);
    if (tensor == NULL || tensor->node == NULL || tensor->node == node->target) {
        return node->target_node;
    }
    for (size_t c = 0; c < s->nodes->group->n_target; c++) {
        const fx_exec_call *call = &s->nodes->target_calls[c];
        if (call->step == tensor->step && tensor->node->order < call->n_nodes) {
            return call->first_node + tensor->node->order;
        }
    }
    return node->target_node;
}

/* INPUT or WEIGHT if it is a graph input on both sides; BEFORE if target's is an operator's result. */
static fxtap_status reason_of_input(search *s, const fx_node_pair *node, const evidence *e, fxtap_origin_reason *out)
{
    size_t producer;
    *out = FXTAP_ORIGIN_INPUT;
    if (s->wiring == NULL) {
        return FXTAP_OK;
    }
    fxtap_status status = load_target_wiring(s);
    if (status != FXTAP_OK) {
        return status;
    }
    bool is_fed_in_target = s->target_wiring != NULL && node->target_node != FX_MISSING &&
                            fx_wiring_producer(s->target_wiring, target_node_of(s, node, e->worst_input),
                                               fx_target_position(s->batch, e->worst_input), &producer) &&
                            !fx_wiring_is_placeholder(s->target_wiring, producer);
    if (!e->is_fed || is_fed_in_target || !fx_wiring_is_placeholder(s->wiring, e->feeder)) {
        *out = FXTAP_ORIGIN_BEFORE;
    } else if (fx_wiring_is_weight(s->wiring, e->feeder)) {
        *out = FXTAP_ORIGIN_WEIGHT;
    }
    return FXTAP_OK;
}

/* Adds an input that differs as an origin, once for all nodes that read the same value. */
static fxtap_status add_input_origin(search *s, const fx_node_pair *node, evidence *e)
{
    fxtap_origin_reason reason;
    size_t index = NO_ORIGIN;
    fxtap_status status = reason_of_input(s, node, e, &reason);
    if (status == FXTAP_OK) {
        status = add_origin(s, node, e->worst_input, reason, e, &index);
    }
    if (status == FXTAP_OK && e->is_fed) {
        node_state *feeder = &s->states[e->feeder];
        feeder->after = index;
        if (reason != FXTAP_ORIGIN_BEFORE) {
            feeder->output = BAD;
            feeder->origin = index;
        }
    }
    e->origin = index;
    return status;
}

/* Attention draws random numbers only for dropout; its arguments may turn that off. */
static bool has_no_dropout(const search *s, const fx_node_pair *node)
{
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = pair_at(s, i);
        if (pair->io == FXTAP_INPUT && strcmp(fx_argument_name(s->batch, i), "dropout_p") == 0 &&
            pair->golden_stats != NULL) {
            return pair->golden_stats->abs_max == 0.0;
        }
    }
    return true;
}

static bool is_random(const search *s, const fx_node_pair *node)
{
    bool may_draw = node->golden != NULL && (node->golden->flags & FXTAP_NODE_RANDOM) != 0 && !node->is_region;
    return may_draw && !(strstr(node->golden->target, "scaled_dot_product") != NULL && has_no_dropout(s, node));
}

static fxtap_status weigh_bad_output(search *s, const fx_node_pair *node, const fxtap_pair *output, evidence *e)
{
    bool is_drift = e->input_error > 0.0 && error_of(output) <= DRIFT_GROWTH * e->input_error;
    if (is_drift && !e->any_bad && e->faint_origin != NO_ORIGIN) {
        e->origin = e->faint_origin;
    }
    if (e->any_bad || (is_drift && e->faint_origin != NO_ORIGIN)) {
        s->report->n_carried++;
        if (e->origin != NO_ORIGIN) {
            s->report->origins[e->origin].n_carried++;
        }
        return FXTAP_OK;
    }
    fxtap_origin_reason reason = is_random(s, node)               ? FXTAP_ORIGIN_RANDOM
                                 : is_drift                       ? FXTAP_ORIGIN_DRIFT
                                 : e->any_unknown || e->any_clean ? FXTAP_ORIGIN_REGION
                                                                  : FXTAP_ORIGIN_OPERATOR;
    return add_origin(s, node, output, reason, e, &e->origin);
}

/* A node that was not dumped or has no counterpart gets its state from its inputs: BAD if one is, CLEAN if all are
 * good. */
static void infer_undumped(search *s, size_t i)
{
    size_t n_inputs;
    const size_t *inputs = fx_wiring_inputs(s->wiring, i, &n_inputs);
    bool is_link = n_inputs == 1 && fx_wiring_position(s->wiring, i, 0)[0] == '\0';
    if (is_link) {
        s->states[i] = s->states[inputs[0]]; /* the same value as an earlier call's result */
        return;
    }
    health state = fx_wiring_is_placeholder(s->wiring, i) ? s->states[i].output : CLEAN;
    size_t origin = NO_ORIGIN, faint_origin = NO_ORIGIN;
    for (size_t k = 0; k < n_inputs; k++) {
        size_t from;
        health known = resolve(s, inputs[k], &from);
        note_earliest(known == BAD ? &origin : &faint_origin, from);
        state = known == BAD || state == BAD ? BAD : known == UNKNOWN ? UNKNOWN : state;
    }
    s->states[i].output = state;
    s->states[i].origin = state == BAD ? origin : faint_origin;
}

/* Sets how much larger the error of each result is than that of the node's inputs. */
static void note_growth(search *s, const fx_node_pair *node, const evidence *e)
{
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        fxtap_pair *pair = &s->batch->pairs[i];
        bool is_known = pair->io != FXTAP_INPUT && pair->measured && e->any_measured;
        pair->input_error = is_known ? e->input_error : NAN;
        pair->growth = is_known ? pair->rel_l2 / e->input_error : NAN;
    }
}

static fxtap_status visit(search *s, const fx_node_pair *node, size_t order)
{
    evidence e = weigh_inputs(s, node, order);
    bool any_output;
    const fxtap_pair *output = worst_output(s, node, &any_output);
    note_growth(s, node, &e);
    fxtap_status status = FXTAP_OK;
    bool began_before = s->wiring == NULL && s->any_bad_output;
    if (e.worst_input != NULL && e.origin == NO_ORIGIN && !began_before) {
        status = add_input_origin(s, node, &e);
    }
    if (status == FXTAP_OK && output != NULL) {
        status = weigh_bad_output(s, node, output, &e);
    }
    if (e.any_bad || output != NULL) {
        s->any_bad_output = true;
        s->last_origin = e.origin != NO_ORIGIN ? e.origin : s->last_origin;
    }
    if (order < s->n_states && any_output) {
        bool is_clean = output == NULL && largest_error(s, node) == 0.0;
        note_earliest(&e.faint_origin, e.origin);
        size_t origin = output != NULL ? e.origin : is_clean ? NO_ORIGIN : e.faint_origin;
        s->states[order] = (node_state){output != NULL ? BAD : GOOD, origin, NO_ORIGIN};
        s->health[order] = (fx_node_health){true, output != NULL, largest_error(s, node)};
    } else if (order < s->n_states && s->wiring != NULL) {
        infer_undumped(s, order);
    }
    return status;
}

static fxtap_status open_search(search *s)
{
    s->last_origin = NO_ORIGIN;
    fxtap_status status = fx_group_wiring(s->nodes, true, &s->wiring);
    if (status != FXTAP_OK || s->wiring == NULL) {
        return status;
    }
    s->n_states = fx_wiring_node_count(s->wiring);
    s->states = fx_calloc(s->n_states, sizeof *s->states);
    s->health = fx_calloc(s->n_states, sizeof *s->health);
    if (s->states == NULL || s->health == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < s->n_states; i++) {
        s->states[i].origin = s->states[i].after = NO_ORIGIN;
    }
    return FXTAP_OK;
}

/* Visits nodes [from, to) of the record that were not dumped. */
static void infer_between(search *s, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < s->n_states; i++) {
        if (s->states[i].output == UNKNOWN) {
            infer_undumped(s, i);
        }
    }
}

static fxtap_status add_neighbourhoods(search *s, size_t first_origin)
{
    fxtap_report *report = s->report;
    size_t end = s->nodes->group->number < FX_AROUND_GROUPS ? first_origin + FX_DETAILED : first_origin;
    for (size_t i = first_origin; i < report->n_origins && i < end; i++) {
        size_t node = s->origin_nodes[i - first_origin];
        if (node < s->n_states) {
            report->origins[i].around = fx_neighbourhood(&report->arena, s->nodes, s->wiring, s->health, node);
            if (report->origins[i].around == NULL) {
                return FXTAP_E_NOMEM;
            }
        }
    }
    return FXTAP_OK;
}

fxtap_status fx_find_origins(fx_batch *batch, fx_group_nodes *group)
{
    search s = {.batch = batch, .report = batch->comparison->report, .nodes = group};
    size_t first_origin = s.report->n_origins;
    fxtap_status status = open_search(&s);
    size_t next = 0;
    for (size_t i = 0; i < group->n_nodes && status == FXTAP_OK; i++) {
        const fx_node_pair *node = &group->nodes[i];
        size_t order = node->golden_node; /* SIZE_MAX: none */
        if (order != SIZE_MAX && s.wiring != NULL) {
            infer_between(&s, next, order);
            next = order + 1;
        }
        status = visit(&s, node, order);
    }
    if (status == FXTAP_OK && s.wiring != NULL) {
        status = add_neighbourhoods(&s, first_origin);
    }
    fx_free(s.origin_nodes);
    fx_free(s.states);
    fx_free(s.health);
    return status;
}
