/* execution.c - the calls of one side as one execution: consecutive node numbers, values traced from call to call. */
#include "pair/execution.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/table.h"

#define MAX_VALUES ((size_t)1 << 24) /* remembered while calls are linked */

/* ---- nodes ---- */

/* Whether a tensor belongs to another node than the tensor before it; each plain file is a node. */
static bool begins_node(const fxtap_tensor_info *tensor, const fxtap_tensor_info *before)
{
    return before == NULL || tensor->node == NULL || tensor->node != before->node;
}

/* Number of nodes of a call: those of its graph, then any whose recorded position in the graph is invalid. */
static size_t count_nodes(const fx_execution *execution, const fx_exec_call *call)
{
    size_t n_graph = call->graph == NULL ? 0 : call->graph->n_nodes, n_others = 0, next = 0;
    const fxtap_tensor_info *before = NULL;
    for (size_t i = call->first_tensor; i < call->end_tensor; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        if (begins_node(tensor, before)) {
            bool is_placed = tensor->node != NULL && tensor->node->order >= next && tensor->node->order < n_graph;
            next = is_placed ? tensor->node->order + 1 : next;
            n_others += !is_placed;
        }
        before = tensor;
    }
    return n_graph + n_others;
}

static void describe_node(fx_exec_node *node, const fxtap_node_info *info, const fxtap_tensor_info *tensor)
{
    node->info = info;
    node->name = info == NULL ? tensor->name : info->name;
    node->operator_name = info == NULL ? "" : info->target;
}

static void place_tensors(fx_execution *execution, const fx_exec_call *call)
{
    size_t n_graph = call->graph == NULL ? 0 : call->graph->n_nodes, next = 0, n_others = 0;
    const fxtap_tensor_info *before = NULL;
    fx_exec_node *node = NULL;
    for (size_t i = call->first_tensor; i < call->end_tensor; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        if (begins_node(tensor, before)) {
            bool is_placed = tensor->node != NULL && tensor->node->order >= next && tensor->node->order < n_graph;
            size_t at = is_placed ? tensor->node->order : n_graph + n_others++;
            next = is_placed ? at + 1 : next;
            node = &execution->nodes[call->first_node + at];
            describe_node(node, tensor->node, tensor);
            node->first_tensor = i;
        }
        node->n_tensors++;
        before = tensor;
    }
}

/* Describes the nodes without tensors, which are part of the wiring: operator, line and module. */
static fxtap_status describe_others(fx_execution *execution, fxtap_reader *reader, const fx_exec_call *call)
{
    if (call->graph == NULL) {
        return FXTAP_OK;
    }
    const fxtap_node_info *const *infos;
    size_t n_infos;
    fxtap_status status = fxtap_reader_nodes(reader, call->graph, &infos, &n_infos);
    for (size_t i = 0; status == FXTAP_OK && i < n_infos; i++) {
        size_t at = infos[i]->order;
        if (at < call->n_nodes && execution->nodes[call->first_node + at].info == NULL) {
            describe_node(&execution->nodes[call->first_node + at], infos[i], NULL);
        }
    }
    return status;
}

/* ---- values ---- */

static bool parse_index(const char *position, size_t *out)
{
    size_t value = 0;
    const char *at = position;
    for (; *at >= '0' && *at <= '9' && value < 100000; at++) {
        value = value * 10 + (size_t)(*at - '0');
    }
    *out = value;
    return at > position && *at == '\0';
}

static const fxtap_tensor_info *result_at(const fx_execution *execution, const fx_exec_node *node, size_t index,
                                          bool is_any)
{
    for (size_t i = node->first_tensor; i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        size_t at;
        if (tensor->io == FXTAP_OUTPUT && tensor->has_meta &&
            (is_any || (parse_index(tensor->position, &at) && at == index))) {
            return tensor;
        }
    }
    return NULL;
}

/* The item that a getitem takes; false if the node is not a getitem, or its index is not a number. */
bool fx_execution_item(const fx_execution *execution, size_t node, size_t *producer_out, size_t *index_out)
{
    const fx_exec_node *at = &execution->nodes[node];
    const fx_exec_call *call = &execution->calls[at->call];
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    if (execution->wiring == NULL || at->operator_name == NULL || strcmp(at->operator_name, "operator.getitem") != 0 ||
        fxtap_graph_node(call->record, (fxtap_node)(node - call->first_node), &desc) != FXTAP_OK || desc.n_args != 2 ||
        fxtap_value_kind_of(call->record, desc.args[1]) != FXTAP_V_INT ||
        !fx_wiring_producer(execution->wiring, node, "0", producer_out)) {
        return false;
    }
    int64_t index = fxtap_value_int(call->record, desc.args[1]);
    *index_out = index >= 0 ? (size_t)index : SIZE_MAX;
    return true;
}

/* The value of a placeholder is known from the input of its first reader. */
static const fxtap_tensor_info *input_at(const fx_execution *execution, const fx_exec_node *node, const char *position)
{
    for (size_t i = node->first_tensor; i < node->first_tensor + node->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        if (tensor->io == FXTAP_INPUT && tensor->has_meta && strcmp(tensor->position, position) == 0) {
            return tensor;
        }
    }
    return NULL;
}

const fxtap_tensor_info *fx_execution_value(const fx_execution *execution, size_t node)
{
    size_t producer, index;
    const fx_exec_node *at = &execution->nodes[node];
    if (at->n_tensors > 0) {
        return result_at(execution, at, 0, true);
    }
    if (fx_execution_item(execution, node, &producer, &index)) {
        return result_at(execution, &execution->nodes[producer], index, false);
    }
    return NULL;
}

bool fx_tensor_is_trivial(const fxtap_tensor_info *tensor)
{
    const fxtap_stats *stats = &tensor->stats;
    bool is_uniform = tensor->has_stats && stats->has_range && stats->min == stats->max;
    return (tensor->has_stats && stats->count < 3) || (tensor->ndim == 0) || is_uniform;
}

/* ---- from call to call ---- */

typedef struct known_value { /* fx_table requires the key as first field */
    fxtap_hash128 hash;
    size_t node;
    const fxtap_tensor_info *tensor;
} known_value;

/* Equal bytes are equal values only if shape, order of elements and dtype are equal too. */
static bool is_same_form(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->dtype == b->dtype && a->fortran_order == b->fortran_order && fx_same_shape(a, b);
}

static fxtap_status note_value(fx_table *values, const fxtap_tensor_info *tensor, size_t node, bool replace)
{
    if (tensor == NULL || !tensor->has_hash || fx_tensor_is_trivial(tensor)) {
        return FXTAP_OK;
    }
    known_value *known = fx_table_find(values, tensor->hash);
    if (known != NULL && !replace) {
        return FXTAP_OK;
    }
    known = known != NULL ? known : fx_table_insert(values, tensor->hash);
    if (known == NULL) {
        return FXTAP_E_NOMEM;
    }
    known->node = node;
    known->tensor = tensor;
    return FXTAP_OK;
}

/* Finds the value of each placeholder of a call: values[i] for the i-th node of the call. */
static void find_given(const fx_execution *execution, const fx_exec_call *call, const fxtap_tensor_info **given)
{
    for (size_t i = 0; i < call->n_nodes; i++) {
        size_t node = call->first_node + i, n_inputs;
        const size_t *inputs = fx_wiring_inputs(execution->wiring, node, &n_inputs);
        for (size_t k = 0; k < n_inputs; k++) {
            size_t from = inputs[k] - call->first_node;
            if (from < call->n_nodes && given[from] == NULL && fx_wiring_is_placeholder(execution->wiring, inputs[k])) {
                given[from] =
                    input_at(execution, &execution->nodes[node], fx_wiring_position(execution->wiring, node, k));
            }
        }
    }
}

static fxtap_status link_call(fx_execution *execution, const fx_exec_call *call, fx_table *values,
                              const fxtap_tensor_info **given)
{
    find_given(execution, call, given);
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < call->n_nodes && status == FXTAP_OK; i++) {
        size_t node = call->first_node + i;
        if (given[i] != NULL && given[i]->has_hash) {
            const known_value *known = fx_table_find(values, given[i]->hash);
            if (known != NULL && known->node < call->first_node && is_same_form(known->tensor, given[i])) {
                fx_wiring_link(execution->wiring, node, known->node);
            } else {
                status = note_value(values, given[i], node, false);
            }
        }
        if (status == FXTAP_OK) {
            status = note_value(values, fx_execution_value(execution, node), node, true);
        }
    }
    return status;
}

/* The latest forward call that a backward call takes a value from. */
static void find_forward(fx_execution *execution, fx_exec_call *call)
{
    size_t end = call->first_node + call->n_nodes;
    for (size_t i = call->first_node; i < end && call->graph != NULL && call->graph->kind == FXTAP_GRAPH_BACKWARD;
         i++) {
        size_t n_inputs;
        const size_t *inputs = fx_wiring_inputs(execution->wiring, i, &n_inputs);
        bool is_link = n_inputs == 1 && fx_wiring_position(execution->wiring, i, 0)[0] == '\0';
        size_t c = is_link ? execution->nodes[inputs[0]].call : FX_MISSING;
        bool is_forward =
            is_link && execution->calls[c].graph != NULL && execution->calls[c].graph->kind == FXTAP_GRAPH_FORWARD;
        if (is_forward && (call->forward == FX_MISSING || c > call->forward)) {
            call->forward = c;
        }
    }
}

static fxtap_status link_calls(fx_execution *execution)
{
    fx_table values;
    fx_table_init(&values, sizeof(known_value), MAX_VALUES, NULL, NULL);
    const fxtap_tensor_info **given = fx_calloc(execution->n_nodes + 1, sizeof *given);
    fxtap_status status = given == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (size_t c = 0; c < execution->n_calls && status == FXTAP_OK; c++) {
        fx_exec_call *call = &execution->calls[c];
        status = link_call(execution, call, &values, given + call->first_node);
        find_forward(execution, call);
    }
    fx_free(given);
    fx_table_clear(&values);
    return status;
}

fxtap_status fx_calls_wire(const fx_exec_call *calls, size_t n_calls, fx_wiring **out)
{
    *out = NULL;
    fx_wiring_part *parts = fx_calloc(n_calls, sizeof *parts);
    fxtap_status status = parts == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (size_t c = 0; c < n_calls && status == FXTAP_OK; c++) {
        parts[c] = (fx_wiring_part){calls[c].record, calls[c].n_nodes};
    }
    if (status == FXTAP_OK) {
        status = fx_wiring_create(parts, n_calls, out);
    }
    fx_free(parts);
    if (status == FXTAP_OK && !fx_wiring_is_known(*out)) {
        fx_wiring_free(*out);
        *out = NULL;
    }
    return status;
}

fxtap_status fx_execution_open(fx_execution *execution, fx_arena *arena, fxtap_reader *reader,
                               const fxtap_tensor_list *list, fx_exec_call *calls, size_t n_calls, bool with_wiring)
{
    *execution = (fx_execution){.list = list, .calls = calls, .n_calls = n_calls};
    for (size_t c = 0; c < n_calls; c++) {
        calls[c].first_node = execution->n_nodes;
        calls[c].n_nodes = count_nodes(execution, &calls[c]);
        calls[c].forward = FX_MISSING;
        execution->n_nodes += calls[c].n_nodes;
        execution->n_backwards += calls[c].graph != NULL && calls[c].graph->kind == FXTAP_GRAPH_BACKWARD;
    }
    execution->nodes = fx_arena_calloc(arena, execution->n_nodes + 1, sizeof *execution->nodes);
    if (execution->nodes == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = FXTAP_OK;
    for (size_t c = 0; c < n_calls && status == FXTAP_OK; c++) {
        for (size_t i = 0; i < calls[c].n_nodes; i++) {
            size_t at = calls[c].first_node + i;
            execution->nodes[at] = (fx_exec_node){.call = c, .partner = FX_MISSING, .source = at};
        }
        place_tensors(execution, &calls[c]);
        status = with_wiring ? describe_others(execution, reader, &calls[c]) : FXTAP_OK;
    }
    if (status == FXTAP_OK && with_wiring) {
        status = fx_calls_wire(calls, n_calls, &execution->wiring);
    }
    return status == FXTAP_OK && execution->wiring != NULL ? link_calls(execution) : status;
}

/* ---- literals ---- */

static bool is_plain(const fxtap_graph *graph, fxtap_value value, unsigned depth)
{
    size_t n_items = 0;
    const fxtap_value *items = depth < 16 ? fxtap_value_items(graph, value, &n_items) : NULL;
    for (size_t i = 0; i < n_items; i++) {
        if (!is_plain(graph, items[i], depth + 1)) {
            return false;
        }
    }
    fxtap_value_kind kind = fxtap_value_kind_of(graph, value);
    return kind != 0 && kind != FXTAP_V_NODE && kind != FXTAP_V_TENSOR && kind != FXTAP_V_GRAPH;
}

bool fx_call_is_literal(const fx_exec_call *call, size_t node, const char *position)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    size_t length = strcspn(position, "."), index;
    if (call->record == NULL || fxtap_graph_node(call->record, (fxtap_node)node, &desc) != FXTAP_OK) {
        return false;
    }
    char head[32];
    if (length < sizeof head) {
        memcpy(head, position, length);
        head[length] = '\0';
        if (parse_index(head, &index)) {
            return index < desc.n_args && is_plain(call->record, desc.args[index], 0);
        }
    }
    for (size_t k = 0; k < desc.n_kwargs; k++) {
        if (strlen(desc.kwarg_names[k]) == length && strncmp(desc.kwarg_names[k], position, length) == 0) {
            return is_plain(call->record, desc.kwarg_values[k], 0);
        }
    }
    return false;
}
