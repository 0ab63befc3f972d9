/* The cost of writing the results that a graph names, also for hostile records. */
#include <string.h>

#include "ge/lower.h"
#include "graph/record.h"
#include "util/error.h"

void fx_lower_charge(fx_lower *lower, uint64_t weight)
{
    lower->walked += weight < FX_GRAPH_WEIGHT_MAX ? weight : FX_GRAPH_WEIGHT_MAX + 1;
    if (lower->walked > fx_graph_weight_max(lower->graph) && lower->status == FXTAP_OK) {
        lower->status =
            fx_error(FXTAP_E_UNSUPPORTED, "%s: results named up to this node are too large to lower", lower->desc.name);
    }
}

static bool charge_node(void *context, fxtap_node input)
{
    fx_lower *lower = context;
    fx_lower_charge(lower, lower->weight[input]);
    return lower->status == FXTAP_OK;
}

void fx_lower_charge_arguments(fx_lower *lower)
{
    if (strcmp(lower->desc.target, "operator.getitem") != 0) { /* takes one item, without a walk */
        fx_graph_node_refs(lower->graph, lower->node, charge_node, lower);
    }
}

/* Computing a weight is a walk too. */
static void weigh(fx_lower *lower, const fx_val *value, unsigned depth)
{
    uint64_t weight = 1;
    if (value->kind == FX_VAL_TENSOR) {
        weight += value->u.tensor->n_dims + value->u.tensor->n_bytes / 64;
    } else if (value->kind == FX_VAL_TEXT) {
        weight += value->u.text.length / 64;
    }
    fx_lower_charge(lower, depth > FX_VALUE_DEPTH_MAX ? FX_GRAPH_WEIGHT_MAX + 1 : weight);
    for (size_t i = 0; (value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE) && i < value->u.list.n; i++) {
        if (lower->status == FXTAP_OK) {
            weigh(lower, &value->u.list.items[i], depth + 1);
        }
    }
}

void fx_lower_weigh(fx_lower *lower)
{
    const fx_val *result = &lower->results[lower->node];
    const fx_value_row *meta = fx_graph_value(lower->graph, lower->desc.meta);
    uint64_t before = lower->walked;
    weigh(lower, result, 0);
    lower->weight[lower->node] = lower->walked - before;
    if (result->kind == FX_VAL_GRAPH) {
        lower->weight[lower->node] += result->u.body->graph->walked;
    }
    if (meta->kind < FXTAP_V_LIST || meta->kind == FXTAP_V_TENSOR) { /* follows the node's name in comments */
        lower->weight[lower->node] += meta->weight;
    }
}
