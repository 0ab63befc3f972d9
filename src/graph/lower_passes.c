/*
 * The lowered record: what is left of the AOT graph before operators are lowered. Three things change: what only gives its
 * argument back is gone, view has become reshape, and symbolic sizes are read off the tensors that have them
 * (aten.sym_size) instead of coming in as inputs.
 */
#include <string.h>

#include "graph/lower.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct passes {
    const fxtap_graph *from;
    fxtap_graph *to;
    size_t n;
    fxtap_node *stands_for; /* a node that is gone: the one that stands for it; else itself */
    fxtap_node *root;       /* the node whose memory a node has */
    fxtap_node *node_map;   /* of each node, its number in `to` */
    fxtap_node *size_map;   /* of a symbolic input, the aten.sym_size in `to`; NO_NODE: it stays an input */
    bool *is_root_of_output;
    bool *is_used;
    fx_slab slab;
} passes;

#define NO_NODE UINT32_MAX

static fxtap_status get(const passes *p, fxtap_node node, fxtap_node_desc *out) {
    out->struct_size = sizeof *out;
    return fxtap_graph_node(p->from, node, out);
}

static bool node_argument(const passes *p, const fxtap_node_desc *desc, size_t index, fxtap_node *out) {
    if (index >= desc->n_args || fxtap_value_kind_of(p->from, desc->args[index]) != FXTAP_V_NODE)
        return false;
    *out = fxtap_value_node(p->from, desc->args[index]);
    return true;
}

/* ---- no-ops ---- */

static bool same_values(const fxtap_graph *graph, const fxtap_value *a, const fxtap_value *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fxtap_value_kind kind = fxtap_value_kind_of(graph, a[i]);
        if (kind != fxtap_value_kind_of(graph, b[i]))
            return false;
        if (kind == FXTAP_V_INT ? fxtap_value_int(graph, a[i]) != fxtap_value_int(graph, b[i])
                                : strcmp(fxtap_value_text(graph, a[i], NULL), fxtap_value_text(graph, b[i], NULL)) != 0)
            return false;
    }
    return true;
}

/* Equal size, dtype, device, layout and strides; strides that the record does not have are taken as equal. */
static bool same_meta(const fxtap_graph *graph, fxtap_value a, fxtap_value b) {
    fxtap_tensor_meta x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    if (a == 0 || b == 0 || fxtap_value_kind_of(graph, a) != FXTAP_V_TENSOR ||
        fxtap_value_kind_of(graph, b) != FXTAP_V_TENSOR || fxtap_value_tensor(graph, a, &x) != FXTAP_OK ||
        fxtap_value_tensor(graph, b, &y) != FXTAP_OK)
        return false;
    if (x.dtype != y.dtype || x.n_dims != y.n_dims || !same_values(graph, x.shape, y.shape, x.n_dims))
        return false;
    if ((x.device == NULL) != (y.device == NULL) || (x.device != NULL && strcmp(x.device, y.device) != 0))
        return false;
    const char *x_layout = x.layout == NULL ? "torch.strided" : x.layout;
    if (strcmp(x_layout, y.layout == NULL ? "torch.strided" : y.layout) != 0)
        return false;
    return x.strides == NULL || y.strides == NULL || same_values(graph, x.strides, y.strides, x.n_dims);
}

static bool is_int(const fxtap_graph *graph, const fxtap_node_desc *desc, size_t index, int64_t wanted, bool otherwise) {
    if (index >= desc->n_args)
        return otherwise;
    return fxtap_value_kind_of(graph, desc->args[index]) == FXTAP_V_INT &&
           fxtap_value_int(graph, desc->args[index]) == wanted;
}

/* The size of the dimension that a slice is over; -1 where it is symbolic or unknown. */
static int64_t sliced_size(const fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_value of) {
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    size_t dim_index = strcmp(desc->target, "aten.slice_scatter.default") == 0 ? 2 : 1;
    int64_t dim = desc->n_args > dim_index ? fxtap_value_int(graph, desc->args[dim_index]) : 0;
    if (of == 0 || fxtap_value_kind_of(graph, of) != FXTAP_V_TENSOR ||
        fxtap_value_tensor(graph, of, &tensor) != FXTAP_OK)
        return -1;
    dim = dim < 0 ? dim + (int64_t)tensor.n_dims : dim;
    if (dim < 0 || (size_t)dim >= tensor.n_dims || fxtap_value_kind_of(graph, tensor.shape[dim]) != FXTAP_V_INT)
        return -1;
    return fxtap_value_int(graph, tensor.shape[dim]);
}

static bool slice_is_whole(const fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_value of, size_t first) {
    bool may_be_absent = first == 3; /* slice_scatter; slice must say both ends */
    if (!is_int(graph, desc, first, 0, may_be_absent) || !is_int(graph, desc, first + 2, 1, true))
        return false;
    if (first + 1 >= desc->n_args)
        return may_be_absent;
    if (fxtap_value_kind_of(graph, desc->args[first + 1]) != FXTAP_V_INT)
        return false;
    int64_t end = fxtap_value_int(graph, desc->args[first + 1]), size = sliced_size(graph, desc, of);
    return end == INT64_MAX || (size >= 0 && end >= size);
}

static bool all_are(const fxtap_graph *graph, fxtap_value list, int64_t wanted) {
    size_t n;
    const fxtap_value *items = fxtap_value_items(graph, list, &n);
    for (size_t i = 0; i < n; i++)
        if (fxtap_value_kind_of(graph, items[i]) != FXTAP_V_INT || fxtap_value_int(graph, items[i]) != wanted)
            return false;
    return true;
}

/* The size list of a view says the source's shape, in so many numbers: -1 does not. */
static bool says_shape(const passes *p, const fxtap_node_desc *desc) {
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    size_t n;
    if (desc->n_args < 2 || desc->meta == 0 || fxtap_value_tensor(p->from, desc->meta, &tensor) != FXTAP_OK)
        return false;
    const fxtap_value *items = fxtap_value_items(p->from, desc->args[1], &n);
    bool is_same = n == tensor.n_dims;
    for (size_t i = 0; is_same && i < n; i++) {
        fxtap_value item = items[i];
        fxtap_node_desc symbol;
        if (fxtap_value_kind_of(p->from, item) == FXTAP_V_NODE &&
            get(p, fxtap_value_node(p->from, item), &symbol) == FXTAP_OK && symbol.meta != 0)
            item = symbol.meta;
        is_same = same_values(p->from, &item, &tensor.shape[i], 1);
    }
    return is_same;
}

static bool is_integer_result(const fxtap_graph *graph, fxtap_value meta) {
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (meta == 0 || fxtap_value_tensor(graph, meta, &tensor) != FXTAP_OK)
        return false;
    fxtap_dtype_class class_of = fxtap_dtype_class_of(tensor.dtype);
    return class_of == FXTAP_CLASS_INT || class_of == FXTAP_CLASS_UINT;
}

typedef enum noop_kind { NOOP_ALWAYS, NOOP_SLICE, NOOP_SCATTER, NOOP_ONES, NOOP_ZEROS, NOOP_INTEGER, NOOP_CAT,
                         NOOP_POWER, NOOP_VIEW } noop_kind;

static const struct {
    const char *target;
    noop_kind kind;
    size_t source; /* index of the argument that is given back */
} NOOPS[] = {
    {"aten.alias.default", NOOP_ALWAYS, 0},       {"aten.clone.default", NOOP_ALWAYS, 0},
    {"aten.copy.default", NOOP_ALWAYS, 1},        {"aten.slice.Tensor", NOOP_SLICE, 0},
    {"aten.slice_scatter.default", NOOP_SCATTER, 1}, {"aten.repeat.default", NOOP_ONES, 0},
    {"aten.constant_pad_nd.default", NOOP_ZEROS, 0}, {"aten.ceil.default", NOOP_INTEGER, 0},
    {"aten.floor.default", NOOP_INTEGER, 0},      {"aten.round.default", NOOP_INTEGER, 0},
    {"aten.trunc.default", NOOP_INTEGER, 0},      {"aten.pow.Tensor_Scalar", NOOP_POWER, 0},
    {"aten.cat.default", NOOP_CAT, 0},            {"aten.view.default", NOOP_VIEW, 0},
    {"prims.convert_element_type.default", NOOP_ALWAYS, 0},
};

static bool holds(const passes *p, noop_kind kind, const fxtap_node_desc *desc) {
    fxtap_node_desc first;
    fxtap_node node;
    switch (kind) {
    case NOOP_SLICE:
        return node_argument(p, desc, 0, &node) && get(p, node, &first) == FXTAP_OK &&
               slice_is_whole(p->from, desc, first.meta, 2);
    case NOOP_SCATTER:
        return node_argument(p, desc, 0, &node) && get(p, node, &first) == FXTAP_OK &&
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

/* The node that a no-op gives back; NO_NODE where it is none. */
static fxtap_node noop_source(const passes *p, const fxtap_node_desc *desc) {
    for (size_t i = 0; i < sizeof NOOPS / sizeof NOOPS[0]; i++) {
        fxtap_node source;
        size_t n;
        if (strcmp(NOOPS[i].target, desc->target) != 0 || NOOPS[i].source >= desc->n_args)
            continue;
        fxtap_value value = desc->args[NOOPS[i].source];
        if (NOOPS[i].kind == NOOP_CAT) {
            const fxtap_value *items = fxtap_value_items(p->from, value, &n);
            value = n == 1 ? items[0] : 0;
        }
        if (value == 0 || fxtap_value_kind_of(p->from, value) != FXTAP_V_NODE)
            return NO_NODE;
        source = fxtap_value_node(p->from, value);
        return holds(p, NOOPS[i].kind, desc) ? source : NO_NODE;
    }
    return NO_NODE;
}

static bool is_gone(const passes *p, fxtap_node node, const fxtap_node_desc *desc, fxtap_node *source_out) {
    fxtap_node_desc source_desc;
    fxtap_node source = noop_source(p, desc);
    if (source == NO_NODE || get(p, source, &source_desc) != FXTAP_OK ||
        !same_meta(p->from, desc->meta, source_desc.meta))
        return false;
    fxtap_node own = p->root[node], root = p->root[source];
    fxtap_node_desc root_desc;
    if (get(p, root, &root_desc) != FXTAP_OK)
        return false;
    /* A copy that is returned must not become one memory with an input, or with another output. */
    bool is_input = root_desc.op == FXTAP_OP_PLACEHOLDER;
    if (own != root && p->is_root_of_output[own] && (is_input || p->is_root_of_output[root]))
        return false;
    *source_out = source;
    return true;
}

static void find_roots(passes *p) {
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node source;
        p->root[i] = i;
        if (get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_CALL_FUNCTION)
            continue;
        bool is_view = fx_lower_is_view(desc.target) || (desc.flags & FXTAP_NODE_VIEW) != 0 ||
                       strcmp(desc.target, "operator.getitem") == 0 || strcmp(desc.target, "aten.copy_.default") == 0;
        if (is_view && node_argument(p, &desc, 0, &source))
            p->root[i] = p->root[source];
    }
}

static void find_output_roots(passes *p) {
    fxtap_node_desc desc;
    size_t n = 0;
    if (p->n == 0 || get(p, (fxtap_node)(p->n - 1), &desc) != FXTAP_OK || desc.op != FXTAP_OP_OUTPUT || desc.n_args == 0)
        return;
    fxtap_value_kind kind = fxtap_value_kind_of(p->from, desc.args[0]);
    const fxtap_value *items = desc.args;
    if (kind == FXTAP_V_LIST || kind == FXTAP_V_TUPLE)
        items = fxtap_value_items(p->from, desc.args[0], &n);
    else
        n = 1;
    for (size_t i = 0; i < n; i++)
        if (items[i] != 0 && fxtap_value_kind_of(p->from, items[i]) == FXTAP_V_NODE)
            p->is_root_of_output[p->root[fxtap_value_node(p->from, items[i])]] = true;
}

static void find_noops(passes *p) {
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node source;
        p->stands_for[i] = i;
        if (get(p, i, &desc) == FXTAP_OK && desc.op == FXTAP_OP_CALL_FUNCTION && is_gone(p, i, &desc, &source))
            p->stands_for[i] = p->stands_for[source];
    }
}

/* ---- symbolic sizes ---- */

static void mark_used(passes *p, fxtap_value value) {
    size_t n;
    fxtap_value_kind kind = value == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(p->from, value);
    if (kind == FXTAP_V_NODE)
        p->is_used[fxtap_value_node(p->from, value)] = true;
    if (kind != FXTAP_V_LIST && kind != FXTAP_V_TUPLE && kind != FXTAP_V_DICT && kind != FXTAP_V_SLICE)
        return;
    const fxtap_value *items = fxtap_value_items(p->from, value, &n);
    for (size_t i = 0; i < n; i++)
        mark_used(p, items[i]);
}

static void find_used(passes *p) {
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        if (p->stands_for[i] != i || get(p, i, &desc) != FXTAP_OK)
            continue;
        for (size_t j = 0; j < desc.n_args; j++)
            mark_used(p, desc.args[j]);
        for (size_t j = 0; j < desc.n_kwargs; j++)
            mark_used(p, desc.kwarg_values[j]);
    }
}

/* The first tensor input that has a symbol as one of its sizes. */
static bool find_dim(const passes *p, const char *symbol, fxtap_node *tensor_out, int64_t *dim_out) {
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
        if (get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_PLACEHOLDER || desc.meta == 0 ||
            fxtap_value_kind_of(p->from, desc.meta) != FXTAP_V_TENSOR ||
            fxtap_value_tensor(p->from, desc.meta, &tensor) != FXTAP_OK)
            continue;
        for (size_t d = 0; d < tensor.n_dims; d++)
            if (fxtap_value_kind_of(p->from, tensor.shape[d]) == FXTAP_V_SYMINT &&
                strcmp(fxtap_value_text(p->from, tensor.shape[d], NULL), symbol) == 0) {
                *tensor_out = i;
                *dim_out = (int64_t)d;
                return true;
            }
    }
    return false;
}

typedef struct size_node {
    fxtap_node symbol, tensor;
    int64_t dim;
    const char *name;
} size_node;

/* The symbolic inputs that are read off a tensor, in their order. */
static size_node *find_sizes(passes *p, size_t *n_out) {
    size_node *sizes = fx_slab_alloc(&p->slab, p->n + 1, sizeof *sizes);
    size_t n = 0, number = 0;
    for (fxtap_node i = 0; sizes != NULL && i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node taken;
        if (get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_PLACEHOLDER || desc.meta == 0 || !p->is_used[i] ||
            fxtap_value_kind_of(p->from, desc.meta) != FXTAP_V_SYMINT ||
            !find_dim(p, fxtap_value_text(p->from, desc.meta, NULL), &sizes[n].tensor, &sizes[n].dim))
            continue;
        do {
            sizes[n].name = number == 0 ? "sym_size" : fx_slab_printf(&p->slab, "sym_size_%zu", number);
            number++;
        } while (sizes[n].name != NULL && fxtap_graph_find_node(p->from, sizes[n].name, &taken) == FXTAP_OK);
        sizes[n++].symbol = i;
    }
    *n_out = n;
    return sizes;
}

/* ---- copying ---- */

static fxtap_status copy_value(passes *p, fxtap_value value, fxtap_value *out);

static fxtap_status copy_values(passes *p, const fxtap_value *values, size_t n, fxtap_value **out) {
    fxtap_value *copies = fx_slab_alloc(&p->slab, n + 1, sizeof *copies);
    if (copies == NULL)
        return FXTAP_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        fxtap_status status = copy_value(p, values[i], &copies[i]);
        if (status != FXTAP_OK)
            return status;
    }
    *out = copies;
    return FXTAP_OK;
}

static fxtap_status copy_tensor(passes *p, fxtap_value value, fxtap_value *out) {
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    fxtap_value *shape = NULL, *strides = NULL;
    fxtap_status status = fxtap_value_tensor(p->from, value, &tensor);
    if (status == FXTAP_OK)
        status = copy_values(p, tensor.shape, tensor.n_dims, &shape);
    if (status == FXTAP_OK && tensor.strides != NULL)
        status = copy_values(p, tensor.strides, tensor.n_dims, &strides);
    if (status != FXTAP_OK)
        return status;
    tensor.shape = shape;
    tensor.strides = strides;
    return fxtap_graph_add_tensor(p->to, &tensor, out);
}

static fxtap_status copy_items(passes *p, fxtap_value value, fxtap_value *out) {
    size_t n;
    fxtap_value *copies;
    const fxtap_value *items = fxtap_value_items(p->from, value, &n);
    fxtap_status status = copy_values(p, items, n, &copies);
    if (status != FXTAP_OK)
        return status;
    return fxtap_graph_add_items(p->to, fxtap_value_kind_of(p->from, value), copies, n, out);
}

static fxtap_status copy_node(passes *p, fxtap_value value, fxtap_value *out) {
    fxtap_node node = p->stands_for[fxtap_value_node(p->from, value)];
    fxtap_node mapped = p->size_map[node] != NO_NODE ? p->size_map[node] : p->node_map[node];
    return fxtap_graph_add_node_ref(p->to, mapped, out);
}

/* Subgraphs are not lowered: their place is kept by their name. */
static fxtap_status copy_other(passes *p, fxtap_value value, fxtap_value *out) {
    size_t length;
    fxtap_value_kind kind = fxtap_value_kind_of(p->from, value);
    const char *text = fxtap_value_text(p->from, value, &length);
    if (kind == FXTAP_V_GRAPH)
        return fxtap_graph_add_text(p->to, FXTAP_V_OTHER, "<subgraph>", 10, out);
    return fxtap_graph_add_text(p->to, kind, text, length, out);
}

static fxtap_status copy_value(passes *p, fxtap_value value, fxtap_value *out) {
    double real, imag, hint;
    *out = 0;
    if (value == 0)
        return FXTAP_OK;
    fxtap_value_kind kind = fxtap_value_kind_of(p->from, value);
    switch (kind) {
    case FXTAP_V_NONE:
        return fxtap_graph_add_none(p->to, out);
    case FXTAP_V_BOOL:
        return fxtap_graph_add_bool(p->to, fxtap_value_bool(p->from, value), out);
    case FXTAP_V_INT:
        return fxtap_graph_add_int(p->to, fxtap_value_int(p->from, value), out);
    case FXTAP_V_FLOAT:
        return fxtap_graph_add_float(p->to, fxtap_value_float(p->from, value, NULL), out);
    case FXTAP_V_COMPLEX:
        real = fxtap_value_float(p->from, value, &imag);
        return fxtap_graph_add_complex(p->to, real, imag, out);
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL: {
        bool has_hint = fxtap_value_hint(p->from, value, &hint);
        return fxtap_graph_add_symbol(p->to, kind, fxtap_value_text(p->from, value, NULL), has_hint ? &hint : NULL, out);
    }
    case FXTAP_V_NODE:
        return copy_node(p, value, out);
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        return copy_items(p, value, out);
    case FXTAP_V_TENSOR:
        return copy_tensor(p, value, out);
    default:
        return copy_other(p, value, out);
    }
}

static fxtap_status add_size_nodes(passes *p, fxtap_node tensor, const size_node *sizes, size_t n) {
    for (size_t i = n; i-- > 0;) { /* each is put right behind the tensor: the last one comes first */
        if (sizes[i].tensor != tensor)
            continue;
        fxtap_node_desc symbol;
        fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_CALL_FUNCTION, .name = sizes[i].name};
        fxtap_value args[2];
        fxtap_status status = get(p, sizes[i].symbol, &symbol);
        if (status == FXTAP_OK)
            status = fxtap_graph_add_node_ref(p->to, p->node_map[tensor], &args[0]);
        if (status == FXTAP_OK)
            status = fxtap_graph_add_int(p->to, sizes[i].dim, &args[1]);
        if (status == FXTAP_OK)
            status = copy_value(p, symbol.meta, &desc.meta);
        desc.target = "aten.sym_size";
        desc.args = args;
        desc.n_args = 2;
        if (status == FXTAP_OK)
            status = fxtap_graph_add_node(p->to, &desc, &p->size_map[sizes[i].symbol]);
        if (status != FXTAP_OK)
            return status;
    }
    return FXTAP_OK;
}

static fxtap_status copy_nodes(passes *p, const size_node *sizes, size_t n_sizes) {
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_value *args = NULL, *kwargs = NULL;
        fxtap_status status = get(p, i, &desc);
        if (p->stands_for[i] != i)
            continue;
        if (status == FXTAP_OK)
            status = copy_values(p, desc.args, desc.n_args, &args);
        if (status == FXTAP_OK)
            status = copy_values(p, desc.kwarg_values, desc.n_kwargs, &kwargs);
        if (status == FXTAP_OK)
            status = copy_value(p, desc.meta, &desc.meta);
        desc.args = args;
        desc.kwarg_values = kwargs;
        if (strcmp(desc.target, "aten.view.default") == 0) {
            desc.target = "aten.reshape.default";
            desc.target_python = NULL;
        }
        if (status == FXTAP_OK)
            status = fxtap_graph_add_node(p->to, &desc, &p->node_map[i]);
        if (status == FXTAP_OK)
            status = add_size_nodes(p, i, sizes, n_sizes);
        if (status != FXTAP_OK)
            return status;
    }
    return FXTAP_OK;
}

static fxtap_status run(passes *p) {
    size_t n_sizes = 0;
    p->n = fxtap_graph_node_count(p->from);
    p->stands_for = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->stands_for);
    p->root = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->root);
    p->node_map = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->node_map);
    p->size_map = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->size_map);
    p->is_root_of_output = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->is_root_of_output);
    p->is_used = fx_slab_alloc(&p->slab, p->n + 1, sizeof *p->is_used);
    if (p->slab.failed)
        return FXTAP_E_NOMEM;
    for (size_t i = 0; i < p->n; i++)
        p->size_map[i] = NO_NODE;
    find_roots(p);
    find_output_roots(p);
    find_noops(p);
    find_used(p);
    size_node *sizes = find_sizes(p, &n_sizes);
    if (sizes == NULL)
        return FXTAP_E_NOMEM;
    return copy_nodes(p, sizes, n_sizes);
}

fxtap_status fx_lower_passes(const fxtap_graph *aot, fxtap_graph **out) {
    passes p = {.from = aot};
    fx_slab_init(&p.slab);
    fxtap_status status = fxtap_graph_create(fxtap_graph_kind_of(aot), &p.to);
    if (status == FXTAP_OK)
        status = run(&p);
    fx_slab_clear(&p.slab);
    if (status != FXTAP_OK) {
        fxtap_graph_free(p.to);
        return status;
    }
    *out = p.to;
    return FXTAP_OK;
}
