#include "support_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

fxtap_graph *sg_graph(fxtap_graph_kind kind)
{
    fxtap_graph *graph = NULL;
    assert_int_equal(fxtap_graph_create(kind, &graph), FXTAP_OK);
    return graph;
}

fxtap_value sg_none(fxtap_graph *graph)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_none(graph, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_bool(fxtap_graph *graph, bool flag)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_bool(graph, flag, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_int(fxtap_graph *graph, int64_t number)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_int(graph, number, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_float(fxtap_graph *graph, double number)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_float(graph, number, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_text(fxtap_graph *graph, fxtap_value_kind kind, const char *text)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_text(graph, kind, text, strlen(text), &value), FXTAP_OK);
    return value;
}

fxtap_value sg_sym(fxtap_graph *graph, const char *expression)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_symbol(graph, FXTAP_V_SYMINT, expression, NULL, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_ref(fxtap_graph *graph, fxtap_node node)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_node_ref(graph, node, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_list(fxtap_graph *graph, fxtap_value_kind kind, size_t n_items, const fxtap_value *items)
{
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_items(graph, kind, items, n_items, &value), FXTAP_OK);
    return value;
}

fxtap_value sg_tensor(fxtap_graph *graph, fxtap_dtype dtype, const char *device, const char *dims)
{
    fxtap_value shape[16];
    size_t n_dims = 0;
    char text[256];
    assert_true(strlen(dims) < sizeof text);
    memcpy(text, dims, strlen(dims) + 1);
    for (char *state = NULL, *dim = strtok_r(text, ",", &state); dim != NULL; dim = strtok_r(NULL, ",", &state)) {
        char *end;
        int64_t number = strtoll(dim, &end, 10);
        shape[n_dims++] = *end == '\0' ? sg_int(graph, number) : sg_sym(graph, dim);
    }
    fxtap_tensor_meta meta = {.struct_size = sizeof meta, .dtype = dtype, .device = device, .shape = shape};
    meta.n_dims = n_dims;
    fxtap_value value = 0;
    assert_int_equal(fxtap_graph_add_tensor(graph, &meta, &value), FXTAP_OK);
    return value;
}

fxtap_node sg_add(fxtap_graph *graph, const fxtap_node_desc *desc)
{
    fxtap_node node = UINT32_MAX;
    assert_int_equal(fxtap_graph_add_node(graph, desc, &node), FXTAP_OK);
    return node;
}

fxtap_node sg_node(fxtap_graph *graph, fxtap_node_op op, const char *name, const char *target, size_t n_args,
                   const fxtap_value *args, fxtap_value meta)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc, .op = op, .name = name, .target = target, .args = args};
    desc.n_args = n_args;
    desc.meta = meta;
    return sg_add(graph, &desc);
}
