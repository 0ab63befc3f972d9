/* support_graph.h - builds graph records in tests; all functions assert. */
#ifndef SUPPORT_GRAPH_H
#define SUPPORT_GRAPH_H

#include "fxtap/graph.h"

fxtap_graph *sg_graph(fxtap_graph_kind kind);
fxtap_value sg_none(fxtap_graph *graph);
fxtap_value sg_bool(fxtap_graph *graph, bool value);
fxtap_value sg_int(fxtap_graph *graph, int64_t value);
fxtap_value sg_float(fxtap_graph *graph, double value);
fxtap_value sg_text(fxtap_graph *graph, fxtap_value_kind kind, const char *text);
fxtap_value sg_sym(fxtap_graph *graph, const char *expression);
fxtap_value sg_ref(fxtap_graph *graph, fxtap_node node);
fxtap_value sg_list(fxtap_graph *graph, fxtap_value_kind kind, size_t n_items, const fxtap_value *items);
/* `dims` as "s77,4": integers or expressions without commas; "" for 0-d. */
fxtap_value sg_tensor(fxtap_graph *graph, fxtap_dtype dtype, const char *device, const char *dims);
fxtap_node sg_node(fxtap_graph *graph, fxtap_node_op op, const char *name, const char *target, size_t n_args,
                   const fxtap_value *args, fxtap_value meta);
fxtap_node sg_add(fxtap_graph *graph, const fxtap_node_desc *desc);

#endif
