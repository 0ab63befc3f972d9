/* Nodes that only return their argument: detection and replacement. */
#include <string.h>

#include "ge/passes.h"

static bool node_argument(const fx_passes *p, const fxtap_node_desc *desc, size_t index, fxtap_node *out)
{
    if (index >= desc->n_args || fxtap_value_kind_of(p->from, desc->args[index]) != FXTAP_V_NODE) {
        return false;
    }
    *out = fxtap_value_node(p->from, desc->args[index]);
    return true;
}

static bool same_values(const fxtap_graph *graph, const fxtap_value *a, const fxtap_value *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fxtap_value_kind kind = fxtap_value_kind_of(graph, a[i]);
        if (kind != fxtap_value_kind_of(graph, b[i])) {
            return false;
        }
        if (kind == FXTAP_V_INT
                ? fxtap_value_int(graph, a[i]) != fxtap_value_int(graph, b[i])
                : strcmp(fxtap_value_text(graph, a[i], NULL), fxtap_value_text(graph, b[i], NULL)) != 0) {
            return false;
        }
    }
    return true;
}

/* Equal size, dtype, device, layout and strides; unknown strides count as equal. */
static bool same_meta(const fxtap_graph *graph, fxtap_value a, fxtap_value b)
{
    fxtap_tensor_meta x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    if (a == 0 || b == 0 || fxtap_value_kind_of(graph, a) != FXTAP_V_TENSOR ||
        fxtap_value_kind_of(graph, b) != FXTAP_V_TENSOR || fxtap_value_tensor(graph, a, &x) != FXTAP_OK ||
        fxtap_value_tensor(graph, b, &y) != FXTAP_OK) {
        return false;
    }
    if (x.dtype != y.dtype || x.n_dims != y.n_dims || !same_values(graph, x.shape, y.shape, x.n_dims)) {
        return false;
    }
    if ((x.device == NULL) != (y.device == NULL) || (x.device != NULL && strcmp(x.device, y.device) != 0)) {
        return false;
    }
    const char *x_layout = x.layout == NULL ? "torch.strided" : x.layout;
    if (strcmp(x_layout, y.layout == NULL ? "torch.strided" : y.layout) != 0) {
        return false;
    }
    return x.strides == NULL || y.strides == NULL || same_values(graph, x.strides, y.strides, x.n_dims);
}

static bool is_int(const fxtap_graph *graph, const fxtap_node_desc *desc, size_t index, int64_t wanted, bool otherwise)
{
    if (index >= desc->n_args) {
        return otherwise;
    }
    return fxtap_value_kind_of(graph, desc->args[index]) == FXTAP_V_INT &&
           fxtap_value_int(graph, desc->args[index]) == wanted;
}

/* The size of the sliced dimension; -1 if it is symbolic or unknown. */
static int64_t sliced_size(const fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_value of)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    size_t dim_index = strcmp(desc->target, "aten.slice_scatter.default") == 0 ? 2 : 1;
    int64_t dim = desc->n_args > dim_index ? fxtap_value_int(graph, desc->args[dim_index]) : 0;
    if (of == 0 || fxtap_value_kind_of(graph, of) != FXTAP_V_TENSOR ||
        fxtap_value_tensor(graph, of, &tensor) != FXTAP_OK) {
        return -1;
    }
    dim = dim < 0 ? dim + (int64_t)tensor.n_dims : dim;
    if (dim < 0 || (size_t)dim >= tensor.n_dims || fxtap_value_kind_of(graph, tensor.shape[dim]) != FXTAP_V_INT) {
        return -1;
    }
    return fxtap_value_int(graph, tensor.shape[dim]);
}

static bool slice_is_whole(const fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_value of, size_t first)
{
    bool may_be_absent = first == 3; /* slice_scatter; slice must have both ends */
    if (!is_int(graph, desc, first, 0, may_be_absent) || !is_int(graph, desc, first + 2, 1, true)) {
        return false;
    }
    if (first + 1 >= desc->n_args) {
        return may_be_absent;
    }
    if (fxtap_value_kind_of(graph, desc->args[first + 1]) != FXTAP_V_INT) {
        return false;
    }
    int64_t end = fxtap_value_int(graph, desc->args[first + 1]), size = sliced_size(graph, desc, of);
    return end == INT64_MAX || (size >= 0 && end >= size);
}

static bool all_are(const fxtap_graph *graph, fxtap_value list, int64_t wanted)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(graph, list, &n);
    for (size_t i = 0; i < n; i++) {
        if (fxtap_value_kind_of(graph, items[i]) != FXTAP_V_INT || fxtap_value_int(graph, items[i]) != wanted) {
            return false;
        }
    }
    return true;
}

/* The size list of a view equals the source's shape, number by number, without -1. */
static bool says_shape(const fx_passes *p, const fxtap_node_desc *desc)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    size_t n;
    if (desc->n_args < 2 || desc->meta == 0 || fxtap_value_tensor(p->from, desc->meta, &tensor) != FXTAP_OK) {
        return false;
    }
    const fxtap_value *items = fxtap_value_items(p->from, desc->args[1], &n);
    bool is_same = n == tensor.n_dims;
    for (size_t i = 0; is_same && i < n; i++) {
        fxtap_value item = items[i];
        fxtap_node_desc symbol;
        if (fxtap_value_kind_of(p->from, item) == FXTAP_V_NODE &&
            fx_passes_get(p, fxtap_value_node(p->from, item), &symbol) == FXTAP_OK && symbol.meta != 0) {
            item = symbol.meta;
        }
        is_same = same_values(p->from, &item, &tensor.shape[i], 1);
    }
    return is_same;
}

static bool is_integer_result(const fxtap_graph *graph, fxtap_value meta)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (meta == 0 || fxtap_value_tensor(graph, meta, &tensor) != FXTAP_OK) {
        return false;
    }
    fxtap_dtype_class class_of = fxtap_dtype_class_of(tensor.dtype);
    return class_of == FXTAP_CLASS_INT || class_of == FXTAP_CLASS_UINT;
}

typedef enum noop_kind {
    NOOP_ALWAYS,
    NOOP_SLICE,
    NOOP_SCATTER,
    NOOP_ONES,
    NOOP_ZEROS,
    NOOP_INTEGER,
    NOOP_CAT,
    NOOP_POWER,
    NOOP_VIEW
} noop_kind;

static const struct {
    const char *target;
    noop_kind kind;
    size_t source; /* index of the returned argument */
} NOOPS[] = {
    {"aten.alias.default", NOOP_ALWAYS, 0},
    {"aten.clone.default", NOOP_ALWAYS, 0},
    {"aten.copy.default", NOOP_ALWAYS, 1},
    {"aten.slice.Tensor", NOOP_SLICE, 0},
    {"aten.slice_scatter.default", NOOP_SCATTER, 1},
    {"aten.repeat.default", NOOP_ONES, 0},
    {"aten.constant_pad_nd.default", NOOP_ZEROS, 0},
    {"aten.ceil.default", NOOP_INTEGER, 0},
    {"aten.floor.default", NOOP_INTEGER, 0},
    {"aten.round.default", NOOP_INTEGER, 0},
    {"aten.trunc.default", NOOP_INTEGER, 0},
    {"aten.pow.Tensor_Scalar", NOOP_POWER, 0},
    {"aten.cat.default", NOOP_CAT, 0},
    {"aten.view.default", NOOP_VIEW, 0},
    {"prims.convert_element_type.default", NOOP_ALWAYS, 0},
};

static bool holds(const fx_passes *p, noop_kind kind, const fxtap_node_desc *desc)
{
    fxtap_node_desc first;
    fxtap_node node;
    switch (kind) {
    case NOOP_SLICE:
        return node_argument(p, desc, 0, &node) && fx_passes_get(p, node, &first) == FXTAP_OK &&
               slice_is_whole(p->from, desc, first.meta, 2);
    case NOOP_SCATTER:
        return node_argument(p, desc, 0, &node) && fx_passes_get(p, node, &first) == FXTAP_OK &&
               slice_is_whole(p->from, desc, first.meta, 3);
    case NOOP_ONES:
        return desc->n_args > 1 && all_are(p->from, desc->args[1], 1);
    case NOOP_ZEROS:
        return desc->n_args > 1 && all_are(p->from, desc->args[1], 0);
    case NOOP_INTEGER:
        return is_integer_result(p->from, desc->meta);
    case NOOP_VIEW:
        return says_shape(p, desc);
    case NOOP_POWER:
        return is_int(p->from, desc, 1, 1, false);
    default:
        return true;
    }
}

/* The node that a no-op returns; FX_NO_NODE if the node is not a no-op. */
static fxtap_node noop_source(const fx_passes *p, const fxtap_node_desc *desc)
{
    for (size_t i = 0; i < sizeof NOOPS / sizeof NOOPS[0]; i++) {
        fxtap_node source;
        size_t n;
        if (strcmp(NOOPS[i].target, desc->target) != 0 || NOOPS[i].source >= desc->n_args) {
            continue;
        }
        fxtap_value value = desc->args[NOOPS[i].source];
        if (NOOPS[i].kind == NOOP_CAT) {
            const fxtap_value *items = fxtap_value_items(p->from, value, &n);
            value = n == 1 ? items[0] : 0;
        }
        if (value == 0 || fxtap_value_kind_of(p->from, value) != FXTAP_V_NODE) {
            return FX_NO_NODE;
        }
        source = fxtap_value_node(p->from, value);
        return holds(p, NOOPS[i].kind, desc) ? source : FX_NO_NODE;
    }
    return FX_NO_NODE;
}

static bool is_gone(const fx_passes *p, fxtap_node node, const fxtap_node_desc *desc, fxtap_node *source_out)
{
    fxtap_node_desc source_desc;
    fxtap_node source = noop_source(p, desc);
    if (source == FX_NO_NODE || fx_passes_get(p, source, &source_desc) != FXTAP_OK ||
        !same_meta(p->from, desc->meta, source_desc.meta)) {
        return false;
    }
    fxtap_node own = p->root[node], root = p->root[source];
    fxtap_node_desc root_desc;
    if (fx_passes_get(p, root, &root_desc) != FXTAP_OK) {
        return false;
    }
    /* A returned copy must not share memory with an input or another output. */
    bool is_input = root_desc.op == FXTAP_OP_PLACEHOLDER;
    if (own != root && p->is_root_of_output[own] && (is_input || p->is_root_of_output[root])) {
        return false;
    }
    *source_out = source;
    return true;
}

static void find_roots(fx_passes *p)
{
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node source;
        p->root[i] = i;
        if (fx_passes_get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_CALL_FUNCTION) {
            continue;
        }
        bool is_view = (desc.flags & FXTAP_NODE_VIEW) != 0 || strcmp(desc.target, "operator.getitem") == 0 ||
                       strcmp(desc.target, "aten.copy_.default") == 0 || fx_lower_is_view(&p->recipes, desc.target);
        if (is_view && node_argument(p, &desc, 0, &source)) {
            p->root[i] = p->root[source];
        }
    }
}

static void find_output_roots(fx_passes *p)
{
    fxtap_node_desc desc;
    size_t n = 0;
    if (p->n == 0 || fx_passes_get(p, (fxtap_node)(p->n - 1), &desc) != FXTAP_OK || desc.op != FXTAP_OP_OUTPUT ||
        desc.n_args == 0) {
        return;
    }
    fxtap_value_kind kind = fxtap_value_kind_of(p->from, desc.args[0]);
    const fxtap_value *items = desc.args;
    if (kind == FXTAP_V_LIST || kind == FXTAP_V_TUPLE) {
        items = fxtap_value_items(p->from, desc.args[0], &n);
    } else {
        n = 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (items[i] != 0 && fxtap_value_kind_of(p->from, items[i]) == FXTAP_V_NODE) {
            p->is_root_of_output[p->root[fxtap_value_node(p->from, items[i])]] = true;
        }
    }
}

static void mark_noops(fx_passes *p)
{
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node source;
        p->stands_for[i] = i;
        if (fx_passes_get(p, i, &desc) == FXTAP_OK && desc.op == FXTAP_OP_CALL_FUNCTION &&
            is_gone(p, i, &desc, &source)) {
            p->stands_for[i] = p->stands_for[source];
        }
    }
}

void fx_find_noops(fx_passes *p)
{
    find_roots(p);
    find_output_roots(p);
    mark_noops(p);
}
