/* record_refs.c - walks the references between nodes. */
#include "graph/record.h"

/* Depth: at most FX_VALUE_DEPTH_MAX. */
bool fx_graph_value_refs(const fxtap_graph *graph, fxtap_value value, fx_ref_visit visit, void *context)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    if (row->kind == FXTAP_V_NODE) {
        return visit(context, row->index);
    }
    if (row->kind >= FXTAP_V_LIST && row->kind <= FXTAP_V_SLICE) {
        for (uint32_t i = 0; i < row->index; i++) {
            if (!fx_graph_value_refs(graph, row->as.items[i], visit, context)) {
                return false;
            }
        }
    }
    return true;
}

bool fx_graph_node_refs(const fxtap_graph *graph, fxtap_node node, fx_ref_visit visit, void *context)
{
    const fxtap_node_desc *desc = &graph->nodes[node].desc;
    for (size_t i = 0; i < desc->n_args; i++) {
        if (!fx_graph_value_refs(graph, desc->args[i], visit, context)) {
            return false;
        }
    }
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        if (!fx_graph_value_refs(graph, desc->kwarg_values[i], visit, context)) {
            return false;
        }
    }
    return true;
}
