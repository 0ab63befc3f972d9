/*
 * The lowered record: the AOT graph before operators are lowered, with three changes: nodes that only return their
 * argument are removed, view becomes reshape, and symbolic sizes are read from tensors (aten.sym_size) instead of being
 * inputs.
 */
#include <string.h>

#include "ge/passes.h"
#include "graph/record.h"

fxtap_status fx_passes_get(const fx_passes *p, fxtap_node node, fxtap_node_desc *out)
{
    out->struct_size = sizeof *out;
    return fxtap_graph_node(p->from, node, out);
}

/* ---- symbolic sizes ---- */

static void mark_used(fx_passes *p, fxtap_value value)
{
    size_t n;
    fxtap_value_kind kind = value == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(p->from, value);
    if (kind == FXTAP_V_NODE) {
        p->is_used[fxtap_value_node(p->from, value)] = true;
    }
    if (kind != FXTAP_V_LIST && kind != FXTAP_V_TUPLE && kind != FXTAP_V_DICT && kind != FXTAP_V_SLICE) {
        return;
    }
    const fxtap_value *items = fxtap_value_items(p->from, value, &n);
    for (size_t i = 0; i < n; i++) {
        mark_used(p, items[i]);
    }
}

static void find_used(fx_passes *p)
{
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        if (p->stands_for[i] != i || fx_passes_get(p, i, &desc) != FXTAP_OK) {
            continue;
        }
        for (size_t j = 0; j < desc.n_args; j++) {
            mark_used(p, desc.args[j]);
        }
        for (size_t j = 0; j < desc.n_kwargs; j++) {
            mark_used(p, desc.kwarg_values[j]);
        }
    }
}

/* The first tensor input with a symbol as a size. */
static bool find_dim(const fx_passes *p, const char *symbol, fxtap_node *tensor_out, int64_t *dim_out)
{
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
        if (fx_passes_get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_PLACEHOLDER || desc.meta == 0 ||
            fxtap_value_kind_of(p->from, desc.meta) != FXTAP_V_TENSOR ||
            fxtap_value_tensor(p->from, desc.meta, &tensor) != FXTAP_OK) {
            continue;
        }
        for (size_t d = 0; d < tensor.n_dims; d++) {
            if (fxtap_value_kind_of(p->from, tensor.shape[d]) == FXTAP_V_SYMINT &&
                strcmp(fxtap_value_text(p->from, tensor.shape[d], NULL), symbol) == 0) {
                *tensor_out = i;
                *dim_out = (int64_t)d;
                return true;
            }
        }
    }
    return false;
}

typedef struct size_node {
    fxtap_node symbol, tensor;
    int64_t dim;
    const char *name;
} size_node;

/* The symbolic inputs that are read from a tensor, in order. */
static size_node *find_sizes(fx_passes *p, size_t *n_out)
{
    size_node *sizes = fx_arena_calloc(&p->arena, p->n + 1, sizeof *sizes);
    size_t n = 0, number = 0;
    for (fxtap_node i = 0; sizes != NULL && i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_node taken;
        if (fx_passes_get(p, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_PLACEHOLDER || desc.meta == 0 ||
            !p->is_used[i] || fxtap_value_kind_of(p->from, desc.meta) != FXTAP_V_SYMINT ||
            !find_dim(p, fxtap_value_text(p->from, desc.meta, NULL), &sizes[n].tensor, &sizes[n].dim)) {
            continue;
        }
        do {
            sizes[n].name = number == 0 ? "sym_size" : fx_arena_printf(&p->arena, "sym_size_%zu", number);
            number++;
        } while (sizes[n].name != NULL && fxtap_graph_find_node(p->from, sizes[n].name, &taken) == FXTAP_OK);
        sizes[n++].symbol = i;
    }
    *n_out = n;
    return sizes;
}

/* ---- copying ---- */

static fxtap_status copy_value(fx_passes *p, fxtap_value value, fxtap_value *out);

static fxtap_status copy_values(fx_passes *p, const fxtap_value *values, size_t n, fxtap_value **out)
{
    fxtap_value *copies = fx_arena_calloc(&p->arena, n + 1, sizeof *copies);
    if (copies == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        fxtap_status status = copy_value(p, values[i], &copies[i]);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    *out = copies;
    return FXTAP_OK;
}

static fxtap_status copy_tensor(fx_passes *p, fxtap_value value, fxtap_value *out)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    fxtap_value *shape = NULL, *strides = NULL;
    fxtap_status status = fxtap_value_tensor(p->from, value, &tensor);
    if (status == FXTAP_OK) {
        status = copy_values(p, tensor.shape, tensor.n_dims, &shape);
    }
    if (status == FXTAP_OK && tensor.strides != NULL) {
        status = copy_values(p, tensor.strides, tensor.n_dims, &strides);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    tensor.shape = shape;
    tensor.strides = strides;
    return fxtap_graph_add_tensor(p->to, &tensor, out);
}

static fxtap_status copy_items(fx_passes *p, fxtap_value value, fxtap_value *out)
{
    size_t n;
    fxtap_value *copies;
    const fxtap_value *items = fxtap_value_items(p->from, value, &n);
    fxtap_status status = copy_values(p, items, n, &copies);
    if (status != FXTAP_OK) {
        return status;
    }
    return fxtap_graph_add_items(p->to, fxtap_value_kind_of(p->from, value), copies, n, out);
}

static fxtap_status copy_node(fx_passes *p, fxtap_value value, fxtap_value *out)
{
    fxtap_node node = p->stands_for[fxtap_value_node(p->from, value)];
    fxtap_node mapped = p->size_map[node] != FX_NO_NODE ? p->size_map[node] : p->node_map[node];
    return fxtap_graph_add_node_ref(p->to, mapped, out);
}

static fxtap_status copy_other(fx_passes *p, fxtap_value value, fxtap_value *out)
{
    size_t length;
    fxtap_value_kind kind = fxtap_value_kind_of(p->from, value);
    const char *text = fxtap_value_text(p->from, value, &length);
    return fxtap_graph_add_text(p->to, kind, text, length, out);
}

static fxtap_status copy_value(fx_passes *p, fxtap_value value, fxtap_value *out)
{
    double real, imag, hint;
    *out = 0;
    if (value == 0) {
        return FXTAP_OK;
    }
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
        return fxtap_graph_add_symbol(p->to, kind, fxtap_value_text(p->from, value, NULL), has_hint ? &hint : NULL,
                                      out);
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
    case FXTAP_V_GRAPH:
        return fx_graph_add_subgraph_ref(p->to, fxtap_value_subgraph(p->from, value), out);
    default:
        return copy_other(p, value, out);
    }
}

static fxtap_status add_size_nodes(fx_passes *p, fxtap_node tensor, const size_node *sizes, size_t n)
{
    for (size_t i = n; i-- > 0;) { /* each is inserted right after the tensor, so the last one comes first */
        if (sizes[i].tensor != tensor) {
            continue;
        }
        fxtap_node_desc symbol;
        fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_CALL_FUNCTION, .name = sizes[i].name};
        fxtap_value args[2];
        fxtap_status status = fx_passes_get(p, sizes[i].symbol, &symbol);
        if (status == FXTAP_OK) {
            status = fxtap_graph_add_node_ref(p->to, p->node_map[tensor], &args[0]);
        }
        if (status == FXTAP_OK) {
            status = fxtap_graph_add_int(p->to, sizes[i].dim, &args[1]);
        }
        if (status == FXTAP_OK) {
            status = copy_value(p, symbol.meta, &desc.meta);
        }
        desc.target = "aten.sym_size";
        desc.args = args;
        desc.n_args = 2;
        if (status == FXTAP_OK) {
            status = fxtap_graph_add_node(p->to, &desc, &p->size_map[sizes[i].symbol]);
        }
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return FXTAP_OK;
}

static fxtap_status copy_nodes(fx_passes *p, const size_node *sizes, size_t n_sizes)
{
    for (fxtap_node i = 0; i < p->n; i++) {
        fxtap_node_desc desc;
        fxtap_value *args = NULL, *kwargs = NULL;
        fxtap_status status = fx_passes_get(p, i, &desc);
        if (p->stands_for[i] != i) {
            continue;
        }
        if (status == FXTAP_OK) {
            status = copy_values(p, desc.args, desc.n_args, &args);
        }
        if (status == FXTAP_OK) {
            status = copy_values(p, desc.kwarg_values, desc.n_kwargs, &kwargs);
        }
        if (status == FXTAP_OK) {
            status = copy_value(p, desc.meta, &desc.meta);
        }
        desc.args = args;
        desc.kwarg_values = kwargs;
        if (strcmp(desc.target, "aten.view.default") == 0) {
            desc.target = "aten.reshape.default";
            desc.target_python = NULL;
        }
        if (status == FXTAP_OK) {
            status = fxtap_graph_add_node(p->to, &desc, &p->node_map[i]);
        }
        if (status == FXTAP_OK) {
            status = add_size_nodes(p, i, sizes, n_sizes);
        }
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return FXTAP_OK;
}

/* Copies subgraphs in order, so that values that name one need no change. Depth: at most FX_GRAPH_DEPTH_MAX. */
static fxtap_status copy_subgraphs(fx_passes *p)
{
    for (size_t i = 0; i < fxtap_graph_subgraph_count(p->from); i++) {
        fxtap_graph *lowered = NULL;
        fxtap_status status = fx_lower_passes(fxtap_graph_subgraph(p->from, i), &lowered);
        if (status == FXTAP_OK) {
            status = fx_graph_own_subgraph(p->to, lowered);
        }
        if (status != FXTAP_OK) {
            fxtap_graph_free(lowered);
            return status;
        }
    }
    return FXTAP_OK;
}

static fxtap_status run(fx_passes *p)
{
    size_t n_sizes = 0;
    p->n = fxtap_graph_node_count(p->from);
    p->stands_for = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->stands_for);
    p->root = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->root);
    p->node_map = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->node_map);
    p->size_map = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->size_map);
    p->is_root_of_output = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->is_root_of_output);
    p->is_used = fx_arena_calloc(&p->arena, p->n + 1, sizeof *p->is_used);
    if (p->arena.failed || !fx_collect_recipes(&p->arena, &p->recipes)) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < p->n; i++) {
        p->size_map[i] = FX_NO_NODE;
    }
    fx_find_noops(p);
    find_used(p);
    size_node *sizes = find_sizes(p, &n_sizes);
    if (sizes == NULL) {
        return FXTAP_E_NOMEM;
    }
    return copy_nodes(p, sizes, n_sizes);
}

fxtap_status fx_lower_passes(const fxtap_graph *aot, fxtap_graph **out)
{
    fx_passes p = {.from = aot};
    p.arena.stays_failed = true;
    fxtap_status status = fxtap_graph_create(fxtap_graph_kind_of(aot), &p.to);
    if (status == FXTAP_OK) {
        status = copy_subgraphs(&p);
    }
    if (status == FXTAP_OK) {
        status = run(&p);
    }
    fx_arena_clear(&p.arena);
    if (status != FXTAP_OK) {
        fxtap_graph_free(p.to);
        return status;
    }
    *out = p.to;
    return FXTAP_OK;
}
