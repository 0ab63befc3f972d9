/*
 * describe_origin.c - the texts of an origin: a literal that differs, operators in between, the target side's location.
 */
#include <string.h>

#include "compare/batch.h"
#include "util/memory.h"

fxtap_status fx_group_wiring(fx_group_nodes *group, bool is_golden, const fx_wiring **out)
{
    fx_wiring **kept = is_golden ? &group->golden_wiring : &group->target_wiring;
    bool *is_loaded = is_golden ? &group->has_golden_wiring : &group->has_target_wiring;
    fxtap_status status = FXTAP_OK;
    if (!*is_loaded) {
        status = is_golden ? fx_calls_wire(group->golden_calls, group->group->n_golden, kept)
                           : fx_calls_wire(group->target_calls, group->group->n_target, kept);
        *is_loaded = true;
    }
    *out = *kept;
    return status;
}

static const fx_exec_call *call_of(const fx_exec_call *calls, size_t n_calls, size_t node)
{
    size_t c = 0;
    while (c + 1 < n_calls && calls[c + 1].first_node <= node) {
        c++;
    }
    return &calls[c];
}

const char *fx_argument_name(const fx_batch *batch, size_t i)
{
    const fx_sources *sources = &batch->sources[i];
    const fxtap_tensor_info *golden = fx_batch_golden(batch, sources->golden);
    const fxtap_tensor_info *tensor = golden != NULL ? golden : fx_batch_target(batch, sources->target);
    return tensor->arg_name != NULL && tensor->arg_name[0] != '\0' ? tensor->arg_name : tensor->position;
}

/* Describes the first literal argument that differs or that only one side has; NULL: none. */
static const char *differing_literal(const fx_batch *batch, const fx_node_pair *node)
{
    fx_arena *arena = &batch->comparison->report->arena;
    for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs; i++) {
        const fxtap_pair *pair = &batch->pairs[i];
        if (pair->io != FXTAP_INPUT || !pair->is_literal) {
            continue;
        }
        const char *name = fx_argument_name(batch, i);
        if (pair->verdict == FXTAP_ONLY_GOLDEN || pair->verdict == FXTAP_ONLY_TARGET) {
            return fx_arena_printf(arena, "%s: %s", name, fxtap_verdict_name(pair->verdict));
        }
        bool differs = fx_verdict_is_bad(pair->verdict) || pair->verdict == FXTAP_REWRITTEN;
        if (differs) {
            size_t length = strlen(name);
            bool is_named = strncmp(pair->detail, name, length) == 0 && pair->detail[length] == ':';
            return is_named
                       ? pair->detail
                       : fx_arena_printf(arena, "%s: %s", name, pair->detail[0] != '\0' ? pair->detail : "differs");
        }
    }
    return NULL;
}

/* The position on the target side if it differs, as it may for different operators. */
const char *fx_target_position(const fx_batch *batch, const fxtap_pair *pair)
{
    const fxtap_tensor_info *tensor = fx_batch_target(batch, batch->sources[pair - batch->pairs].target);
    return tensor != NULL ? tensor->position : pair->position;
}

/* The name of a node of golden's or target's calls; NULL: unknown. */
static const char *name_of(fx_arena *arena, const fx_group_nodes *group, bool is_golden, size_t node)
{
    const fx_exec_call *call = is_golden ? call_of(group->golden_calls, group->group->n_golden, node)
                                         : call_of(group->target_calls, group->group->n_target, node);
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    bool is_known = call->record != NULL &&
                    fxtap_graph_node(call->record, (fxtap_node)(node - call->first_node), &desc) == FXTAP_OK;
    return is_known ? fx_arena_strdup(arena, desc.name) : NULL;
}

static bool is_dumped(const fx_group_nodes *group, size_t golden_node)
{
    for (size_t i = 0; i < group->n_nodes; i++) {
        if (group->nodes[i].golden_node == golden_node) {
            return true;
        }
    }
    return false;
}

/* Names the last operator before an input that neither side dumped: it may have caused the difference. */
static fxtap_status name_undumped(fx_batch *batch, const fx_group_nodes *group, const fx_node_pair *node,
                                  const char *position, const fx_wiring *golden, fxtap_origin *origin)
{
    fx_arena *arena = &batch->comparison->report->arena;
    size_t n_inputs = 0, length = strlen(position);
    const size_t *inputs = fx_wiring_inputs(golden, node->golden_node, &n_inputs);
    for (size_t i = n_inputs; i-- > 0;) {
        const fx_exec_call *call = call_of(group->golden_calls, group->group->n_golden, inputs[i]);
        const char *place = fx_wiring_position(golden, node->golden_node, i);
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        fxtap_node number = (fxtap_node)(inputs[i] - call->first_node);
        bool is_here = strncmp(place, position, length) == 0 && (place[length] == '\0' || place[length] == '.');
        if (!is_here || is_dumped(group, inputs[i]) || call->record == NULL ||
            fxtap_graph_node(call->record, number, &desc) != FXTAP_OK || desc.op != FXTAP_OP_CALL_FUNCTION ||
            strchr(desc.target, '.') == NULL || (desc.flags & FXTAP_NODE_TARGET_ATEN) != 0) {
            continue;
        }
        const char *file, *function, *code;
        int32_t line;
        fxtap_graph_source(call->record, number, &file, &line, &function, &code);
        origin->between = fx_arena_printf(arena, "%s (%s), not dumped", desc.name, desc.target);
        origin->between_source = fx_arena_printf(arena, "%s:%d", file, (int)line);
        origin->between_code = fx_arena_strdup(arena, code);
        bool is_kept = origin->between != NULL && origin->between_source != NULL && origin->between_code != NULL;
        return is_kept ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    return FXTAP_OK;
}

/* No operator is in between: the two nodes read different values, or the value was changed in place. */
static fxtap_status name_feeders(fx_batch *batch, const fx_group_nodes *group, const fx_node_pair *node,
                                 const fxtap_pair *pair, const fx_wiring *golden, const fx_wiring *target,
                                 fxtap_origin *origin)
{
    fx_arena *arena = &batch->comparison->report->arena;
    size_t from, to;
    if (node->golden_node == FX_MISSING || node->target_node == FX_MISSING ||
        !fx_wiring_producer(golden, node->golden_node, pair->position, &from) ||
        !fx_wiring_producer(target, node->target_node, fx_target_position(batch, pair), &to)) {
        return FXTAP_OK;
    }
    const char *left = name_of(arena, group, true, from), *right = name_of(arena, group, false, to);
    for (size_t i = 0; i < group->n_nodes; i++) {
        if (group->nodes[i].golden_node == from && group->nodes[i].target_node == to) {
            return FXTAP_OK; /* the same value, changed in between */
        }
    }
    if (left != NULL && right != NULL && strcmp(left, right) != 0) {
        origin->between = fx_arena_printf(arena, "it reads %s in golden, %s in target", left, right);
    }
    bool is_done = left == NULL || right == NULL || strcmp(left, right) == 0 || origin->between != NULL;
    return is_done ? FXTAP_OK : FXTAP_E_NOMEM;
}

/*
 * Names the operators without a counterpart that feed an input that differs, or the node itself (`pair` is a result),
 * and the location of the first.
 */
static fxtap_status name_between(fx_batch *batch, fx_group_nodes *group, const fx_node_pair *node,
                                 const fxtap_pair *pair, fxtap_origin *origin)
{
    fx_between found = {.first = NULL};
    bool is_input = pair->io == FXTAP_INPUT;
    fxtap_buffer_init(&found.words);
    const fx_wiring *target = NULL, *golden = NULL;
    fxtap_status status = fx_group_wiring(group, false, &target);
    status = status == FXTAP_OK ? fx_group_wiring(group, true, &golden) : status;
    if (status == FXTAP_OK && target != NULL && node->target_node != FX_MISSING) {
        const char *position = is_input ? fx_target_position(batch, pair) : NULL;
        status = fx_name_between(group, target, false, node->target_node, position, &found);
    }
    if (status == FXTAP_OK && golden != NULL && node->golden_node != FX_MISSING) {
        const char *position = is_input ? pair->position : NULL;
        status = fx_name_between(group, golden, true, node->golden_node, position, &found);
    }
    if (status == FXTAP_OK && is_input && found.first == NULL && golden != NULL && target != NULL) {
        status = node->golden_node == FX_MISSING ? FXTAP_OK
                                                 : name_undumped(batch, group, node, pair->position, golden, origin);
        if (status == FXTAP_OK && origin->between == NULL) {
            status = name_feeders(batch, group, node, pair, golden, target, origin);
        }
    } else if (status == FXTAP_OK) {
        status = fx_keep_between(&batch->comparison->report->arena, &found, origin);
    }
    fxtap_buffer_clear(&found.words);
    return status;
}

/* Notes the location of target's operator if the text of its line differs. */
static bool note_other_place(fx_arena *arena, const fx_node_pair *node, fxtap_origin *origin)
{
    const fxtap_node_info *golden = node->golden, *target = node->target;
    bool is_other = golden != NULL && target != NULL && target->source_file[0] != '\0' &&
                    strcmp(golden->source_code, target->source_code) != 0;
    if (is_other) {
        origin->other_source = fx_arena_printf(arena, "%s:%d", target->source_file, (int)target->source_line);
        origin->other_code = fx_arena_strdup(arena, target->source_code);
    }
    return !is_other || (origin->other_source != NULL && origin->other_code != NULL);
}

fxtap_status fx_describe_origin(fx_batch *batch, fx_group_nodes *group, const fx_node_pair *node,
                                const fxtap_pair *pair, size_t feeder, fxtap_origin *origin)
{
    fx_arena *arena = &batch->comparison->report->arena;
    bool is_input = pair->io == FXTAP_INPUT;
    bool is_other =
        node->golden != NULL && node->target != NULL && strcmp(node->golden->target, node->target->target) != 0;
    origin->other_operator = is_other ? fx_arena_strdup(arena, node->target->target) : NULL;
    if (!note_other_place(arena, node, origin)) {
        return FXTAP_E_NOMEM;
    }
    origin->literal = is_input || node->golden == NULL ? NULL : differing_literal(batch, node);
    bool is_region = !is_input && (origin->reason == FXTAP_ORIGIN_REGION || node->is_region);
    if (origin->reason == FXTAP_ORIGIN_BEFORE || is_region) {
        return name_between(batch, group, node, pair, origin);
    }
    if (feeder != FX_MISSING) {
        origin->input = name_of(arena, group, true, feeder);
    }
    return FXTAP_OK;
}
