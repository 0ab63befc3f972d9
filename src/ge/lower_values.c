/* Converts values of the record to values of recipes: constants, node results, lists of symbols. */
#include <string.h>

#include "ge/lower.h"
#include "ge/recipe.h"
#include "util/memory.h"

bool fx_meta_dims(fx_lower *lower, fxtap_value meta, const int64_t **dims_out, size_t *n_out)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (meta == 0 || fxtap_value_kind_of(lower->graph, meta) != FXTAP_V_TENSOR ||
        fxtap_value_tensor(lower->graph, meta, &tensor) != FXTAP_OK) {
        return false;
    }
    int64_t *dims = fx_arena_calloc(&lower->ge->arena, tensor.n_dims + 1, sizeof *dims);
    if (dims == NULL) {
        return false;
    }
    for (size_t i = 0; i < tensor.n_dims; i++) {
        bool is_number = fxtap_value_kind_of(lower->graph, tensor.shape[i]) == FXTAP_V_INT;
        dims[i] = is_number ? fxtap_value_int(lower->graph, tensor.shape[i]) : -1;
    }
    *dims_out = dims;
    *n_out = tensor.n_dims;
    return true;
}

bool fx_same_shape(const fx_lower *lower, fxtap_value a, fxtap_value b)
{
    const fxtap_graph *graph = lower->graph;
    fxtap_tensor_meta x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    if (a == 0 || b == 0 || fxtap_value_kind_of(graph, a) != FXTAP_V_TENSOR ||
        fxtap_value_kind_of(graph, b) != FXTAP_V_TENSOR || fxtap_value_tensor(graph, a, &x) != FXTAP_OK ||
        fxtap_value_tensor(graph, b, &y) != FXTAP_OK || x.n_dims != y.n_dims) {
        return false;
    }
    for (size_t i = 0; i < x.n_dims; i++) {
        fxtap_value_kind kind = fxtap_value_kind_of(graph, x.shape[i]);
        if (kind != fxtap_value_kind_of(graph, y.shape[i])) {
            return false;
        }
        if (kind == FXTAP_V_INT
                ? fxtap_value_int(graph, x.shape[i]) != fxtap_value_int(graph, y.shape[i])
                : strcmp(fxtap_value_text(graph, x.shape[i], NULL), fxtap_value_text(graph, y.shape[i], NULL)) != 0) {
            return false;
        }
    }
    return true;
}

int fx_meta_dtype(const fx_lower *lower, fxtap_value meta)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (meta == 0) {
        return FX_GE_UNDEFINED;
    }
    switch (fxtap_value_kind_of(lower->graph, meta)) {
    case FXTAP_V_TENSOR:
        if (fxtap_value_tensor(lower->graph, meta, &tensor) != FXTAP_OK) {
            return FX_GE_UNDEFINED;
        }
        return fx_ge_dtype_of(tensor.dtype);
    case FXTAP_V_SYMINT:
    case FXTAP_V_INT:
        return FX_GE_INT64;
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_FLOAT:
        return FX_GE_FLOAT;
    case FXTAP_V_SYMBOOL:
    case FXTAP_V_BOOL:
        return FX_GE_BOOL;
    default:
        return FX_GE_UNDEFINED;
    }
}

fx_ref fx_symbol_ref(const fx_lower *lower, const char *expression)
{
    fx_ref none = {NULL, 0};
    for (size_t i = lower->n_symbols; i-- > 0;) {
        if (strcmp(lower->symbols[i].expression, expression) == 0) {
            return lower->symbols[i].ref;
        }
    }
    return none;
}

void fx_add_symbol(fx_lower *lower, const char *expression, fx_ref ref)
{
    if (lower->n_symbols == lower->symbols_capacity) {
        size_t wanted = lower->symbols_capacity == 0 ? 16 : lower->symbols_capacity * 2;
        fx_symbol *more = fx_arena_calloc(&lower->ge->arena, wanted, sizeof *more);
        if (more == NULL) {
            return;
        }
        if (lower->n_symbols > 0) {
            memcpy(more, lower->symbols, lower->n_symbols * sizeof *more);
        }
        lower->symbols = more;
        lower->symbols_capacity = wanted;
    }
    lower->symbols[lower->n_symbols].expression = expression;
    lower->symbols[lower->n_symbols++].ref = ref;
}

fx_val fx_lower_node_value(fx_lower *lower, fxtap_node node)
{
    if (lower->pending[node] != NULL && lower->results[node].kind == FX_VAL_NONE) {
        lower->results[node] = fx_pending_make(lower, node);
        lower->made[lower->n_made++] = node;
    }
    return lower->results[node];
}

/* ---- lists ---- */

static bool is_symbol_list(const fx_val *items, size_t n)
{
    bool has_symbol = false;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == FX_VAL_REF && items[i].is_symbol) {
            has_symbol = true;
        } else if (items[i].kind != FX_VAL_INT) {
            return false;
        }
    }
    return has_symbol;
}

bool fx_is_size_list(const fx_lower *lower, fxtap_value value)
{
    fxtap_value_kind kind = value == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, value);
    bool has_symbol = false;
    size_t n;
    if (kind != FXTAP_V_LIST && kind != FXTAP_V_TUPLE) {
        return false;
    }
    const fxtap_value *items = fxtap_value_items(lower->graph, value, &n);
    for (size_t i = 0; i < n; i++) {
        fxtap_value_kind item = fxtap_value_kind_of(lower->graph, items[i]);
        bool is_symbol = item == FXTAP_V_NODE && lower->results[fxtap_value_node(lower->graph, items[i])].is_symbol;
        if (!is_symbol && item != FXTAP_V_INT) {
            return false;
        }
        has_symbol |= is_symbol;
    }
    return has_symbol;
}

/* Marks a tensor whose value is a shape: its own shape must not be inferred. */
static void force_unknown_shape(fx_lower *lower, fx_ge_op *op)
{
    fx_ge_add_attr(lower->ge, op, "_force_unknown_shape", FX_ATTR_BOOL, fx_val_bool(true));
}

/* str() of a list of sizes, with nodes as their symbols. */
static const char *sizes_text(fx_lower *lower, fxtap_value list, size_t *length_out)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(lower->graph, list, &n);
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_buffer_text(&text, "<class 'list'>([");
    for (size_t i = 0; i < n; i++) {
        fxtap_value item = items[i];
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        if (fxtap_value_kind_of(lower->graph, item) == FXTAP_V_NODE &&
            fxtap_graph_node(lower->graph, fxtap_value_node(lower->graph, item), &desc) == FXTAP_OK) {
            item = desc.meta;
        }
        fxtap_buffer_text(&text, i > 0 ? ", " : "");
        fx_value_text(&text, lower->graph, item);
    }
    fxtap_buffer_text(&text, "])");
    *length_out = text.length;
    const char *copy = fx_text_copy(&lower->ge->arena, text.bytes == NULL ? "" : text.bytes, text.length);
    fxtap_buffer_clear(&text);
    return copy;
}

static fx_val pack_sizes(fx_lower *lower, fxtap_value value, const fx_val *list)
{
    fx_named_val attrs[2] = {{"N", 1, fx_val_int((int64_t)list->u.list.n)}, {"axis", 4, fx_val_int(0)}};
    fx_val none = {.kind = FX_VAL_NONE};
    fx_ge_op *op = fx_ge_call(lower->ge, "Pack", list, 1, attrs, 2, 0);
    if (op == NULL) {
        return none;
    }
    force_unknown_shape(lower, op);
    op->outputs[0].dtype = FX_GE_INT64;
    op->outputs[0].meta = sizes_text(lower, value, &op->outputs[0].meta_length);
    fx_ref ref = {op, 0};
    fx_val packed = fx_val_ref(ref);
    packed.is_symbol = true;
    return packed;
}

static fx_val list_value(fx_lower *lower, fxtap_value value)
{
    size_t n;
    const fxtap_value *items = fxtap_value_items(lower->graph, value, &n);
    fx_val list = fx_val_list(lower, NULL, 0);
    fx_val *values = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *values);
    if (values == NULL || list.kind != FX_VAL_LIST) {
        return list;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = fx_lower_value(lower, items[i]);
    }
    list.u.list.items = values;
    list.u.list.n = n;
    return is_symbol_list(values, n) ? pack_sizes(lower, value, &list) : list;
}

/* ---- single values ---- */

static fx_val text_value(const fxtap_graph *graph, fxtap_value value)
{
    fx_val text = {.kind = FX_VAL_TEXT};
    text.u.text.bytes = fxtap_value_text(graph, value, &text.u.text.length);
    return text;
}

static fx_val symbol_value(const fx_lower *lower, fxtap_value value)
{
    double hint;
    fx_val known = fx_val_ref(fx_symbol_ref(lower, fxtap_value_text(lower->graph, value, NULL)));
    known.is_symbol = known.kind == FX_VAL_REF;
    if (known.kind == FX_VAL_NONE && fxtap_value_hint(lower->graph, value, &hint) && hint > -9e18 && hint < 9e18) {
        return fx_val_int((int64_t)hint);
    }
    return known;
}

static fx_val tensor_value(fx_lower *lower, fxtap_value value)
{
    fx_val constant = {.kind = FX_VAL_NONE};
    fxtap_tensor_meta meta = {.struct_size = sizeof meta};
    fx_ge_tensor *tensor = fx_arena_calloc(&lower->ge->arena, 1, sizeof *tensor);
    if (tensor == NULL || fxtap_value_tensor(lower->graph, value, &meta) != FXTAP_OK ||
        !fx_meta_dims(lower, value, &tensor->dims, &tensor->n_dims)) {
        return constant;
    }
    tensor->dtype = meta.dtype;
    tensor->bytes = meta.bytes;
    tensor->n_bytes = meta.bytes == NULL ? 0 : meta.n_bytes;
    constant.kind = FX_VAL_TENSOR;
    constant.u.tensor = tensor;
    constant.meta = value;
    return constant;
}

fx_val fx_lower_value(fx_lower *lower, fxtap_value value)
{
    const fxtap_graph *graph = lower->graph;
    fx_val out = {.kind = FX_VAL_NONE};
    switch (value == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(graph, value)) {
    case FXTAP_V_BOOL:
        return fx_val_bool(fxtap_value_bool(graph, value));
    case FXTAP_V_INT:
        return fx_val_int(fxtap_value_int(graph, value));
    case FXTAP_V_FLOAT:
        out.kind = FX_VAL_FLOAT;
        out.u.f = fxtap_value_float(graph, value, NULL);
        return out;
    case FXTAP_V_COMPLEX:
        out.kind = FX_VAL_COMPLEX;
        out.u.c.real = fxtap_value_float(graph, value, &out.u.c.imag);
        return out;
    case FXTAP_V_DTYPE:
        return fx_val_dtype(fx_ge_dtype_of(fxtap_dtype_from_name(fxtap_value_text(graph, value, NULL))));
    case FXTAP_V_NODE:
        return fx_lower_node_value(lower, fxtap_value_node(graph, value));
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        return symbol_value(lower, value);
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
        return list_value(lower, value);
    case FXTAP_V_TENSOR:
        return tensor_value(lower, value);
    case FXTAP_V_NONE:
        return out;
    case FXTAP_V_GRAPH:
        return fx_lower_body(lower, value);
    default:
        return text_value(graph, value);
    }
}
