/*
 * Pending views: permute, transpose, t and reshape emit nothing at their node. Their combined effect is stored as an
 * order of the dimensions in memory, and made when the tensor is used: one Reshape if the memory order is unchanged,
 * else a Transpose, with a Reshape before or after it if sizes change. Dimensions of size 1 do not count.
 */
#include <string.h>

#include "ge/lower.h"
#include "ge/recipe.h"
#include "util/memory.h"

#define MAX_RANK 64

typedef struct view_dim {
    int64_t size;           /* -1: symbolic */
    const char *expression; /* of a symbolic one */
    fxtap_value given;      /* its entry in the size list: a node, or -1; 0: none */
} view_dim;

struct fx_pending {
    fx_ref base;
    view_dim *base_dims; /* of the base tensor */
    size_t n_base;
    view_dim *memory; /* in memory order, none of size 1 */
    size_t n_memory;
    view_dim *dims; /* in the order of the view */
    int *place;     /* of each of dims, its index in memory; -1 if its size is 1 */
    size_t n_dims;
    bool has_reshape;   /* not only permutations */
    fx_symbol *symbols; /* known from the size lists */
    size_t n_symbols;
};

static bool is_same(const view_dim *a, const view_dim *b)
{
    if (a->size >= 0 || b->size >= 0) {
        return a->size == b->size;
    }
    return strcmp(a->expression, b->expression) == 0;
}

static bool are_same(const view_dim *a, size_t n_a, const view_dim *b, size_t n_b)
{
    bool same = n_a == n_b;
    for (size_t i = 0; same && i < n_a; i++) {
        same = is_same(&a[i], &b[i]);
    }
    return same;
}

static view_dim *without_ones(fx_lower *lower, const view_dim *dims, size_t n, size_t *n_out)
{
    view_dim *kept = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *kept);
    *n_out = 0;
    for (size_t i = 0; kept != NULL && i < n; i++) {
        if (dims[i].size != 1) {
            kept[(*n_out)++] = dims[i];
        }
    }
    return kept;
}

static view_dim *meta_dims(fx_lower *lower, fxtap_value meta, size_t *n_out)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    if (meta == 0 || fxtap_value_kind_of(lower->graph, meta) != FXTAP_V_TENSOR ||
        fxtap_value_tensor(lower->graph, meta, &tensor) != FXTAP_OK || tensor.n_dims > MAX_RANK) {
        return NULL;
    }
    view_dim *dims = fx_arena_calloc(&lower->ge->arena, tensor.n_dims + 1, sizeof *dims);
    for (size_t i = 0; dims != NULL && i < tensor.n_dims; i++) {
        bool is_number = fxtap_value_kind_of(lower->graph, tensor.shape[i]) == FXTAP_V_INT;
        dims[i].size = is_number ? fxtap_value_int(lower->graph, tensor.shape[i]) : -1;
        dims[i].given = 0;
        dims[i].expression = is_number ? "" : fxtap_value_text(lower->graph, tensor.shape[i], NULL);
    }
    *n_out = tensor.n_dims;
    return dims;
}

static void natural_places(fx_pending *view)
{
    int next = 0;
    for (size_t i = 0; i < view->n_dims; i++) {
        view->place[i] = view->dims[i].size == 1 ? -1 : next++;
    }
}

static bool is_in_memory_order(const fx_pending *view)
{
    int next = 0;
    for (size_t i = 0; i < view->n_dims; i++) {
        if (view->place[i] >= 0 && view->place[i] != next++) {
            return false;
        }
    }
    return true;
}

/* The state of a tensor without a pending view. */
static fx_pending *plain_view(fx_lower *lower, fx_ref base, fxtap_value meta)
{
    fx_pending *view = fx_arena_calloc(&lower->ge->arena, 1, sizeof *view);
    if (view == NULL || base.op == NULL) {
        return NULL;
    }
    view->base = base;
    view->dims = meta_dims(lower, meta, &view->n_dims);
    if (view->dims == NULL) {
        return NULL;
    }
    view->base_dims = view->dims;
    view->n_base = view->n_dims;
    view->memory = without_ones(lower, view->dims, view->n_dims, &view->n_memory);
    view->place = fx_arena_calloc(&lower->ge->arena, view->n_dims + 1, sizeof *view->place);
    if (view->memory == NULL || view->place == NULL) {
        return NULL;
    }
    natural_places(view);
    return view;
}

/* ---- composing ---- */

static fx_pending *permuted(fx_lower *lower, const fx_pending *from, const int64_t *order, size_t n)
{
    fx_pending *view = fx_arena_calloc(&lower->ge->arena, 1, sizeof *view);
    if (view == NULL || n != from->n_dims) {
        return NULL;
    }
    *view = *from;
    view->dims = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *view->dims);
    view->place = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *view->place);
    if (view->dims == NULL || view->place == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t axis = order[i] < 0 ? order[i] + (int64_t)n : order[i];
        if (axis < 0 || axis >= (int64_t)n) {
            return NULL;
        }
        view->dims[i] = from->dims[axis];
        view->place[i] = from->place[axis];
    }
    return view;
}

/*
 * Splits and merges dims of a view whose memory order is not natural: walks old and new sizes from the left and gives
 * each group of new dims the memory of the old ones, which must be adjacent. Sizes are numbers. False: not a view.
 */
static bool regroup(fx_lower *lower, const fx_pending *from, fx_pending *view)
{
    view_dim memory[MAX_RANK * 2];
    int owner[MAX_RANK * 2], start[MAX_RANK];
    size_t n = 0, at = 0;
    view_dim old[MAX_RANK];
    int place[MAX_RANK];
    size_t n_old = 0;
    for (size_t i = 0; i < from->n_dims; i++) {
        if (from->dims[i].size != 1) {
            old[n_old] = from->dims[i];
            place[n_old++] = from->place[i];
        }
    }
    for (size_t i = 0; i < view->n_dims;) {
        if (view->dims[i].size == 1) {
            view->place[i++] = -1;
            continue;
        }
        if (at == n_old || old[at].size < 0 || view->dims[i].size < 0) {
            return false;
        }
        int64_t have = old[at].size, want = view->dims[i].size;
        size_t last_old = at, last_new = i;
        while (have != want) {
            if (have < want) {
                if (++last_old == n_old || old[last_old].size < 0 || place[last_old] != place[last_old - 1] + 1 ||
                    !fx_mul_i64(have, old[last_old].size, &have)) {
                    return false;
                }
            } else {
                if (++last_new == view->n_dims || view->dims[last_new].size < 0 ||
                    !fx_mul_i64(want, view->dims[last_new].size, &want)) {
                    return false;
                }
            }
        }
        for (size_t j = i; j <= last_new; j++) {
            view->place[j] = -1;
            if (view->dims[j].size == 1 || n == MAX_RANK * 2) {
                continue;
            }
            start[n] = place[at];
            owner[n] = (int)j;
            memory[n++] = view->dims[j];
        }
        at = last_old + 1;
        i = last_new + 1;
        if (n >= MAX_RANK) {
            return false;
        }
    }
    view->memory = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *view->memory);
    if (view->memory == NULL || at != n_old) {
        return false;
    }
    view->n_memory = n;
    for (size_t i = 0; i < n; i++) { /* stable: by the start of the group in the old memory */
        size_t rank = 0;
        for (size_t j = 0; j < n; j++) {
            rank += start[j] < start[i] || (start[j] == start[i] && j < i);
        }
        view->memory[rank] = memory[i];
        view->place[owner[i]] = (int)rank;
    }
    return true;
}

static fx_pending *reshaped(fx_lower *lower, const fx_pending *from, view_dim *dims, size_t n)
{
    fx_pending *view = fx_arena_calloc(&lower->ge->arena, 1, sizeof *view);
    if (view == NULL) {
        return NULL;
    }
    *view = *from;
    view->dims = dims;
    view->n_dims = n;
    view->has_reshape = true;
    view->place = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *view->place);
    if (view->place == NULL) {
        return NULL;
    }
    if (is_in_memory_order(from)) {
        view->memory = without_ones(lower, dims, n, &view->n_memory);
        natural_places(view);
        return view->memory == NULL ? NULL : view;
    }
    size_t n_old, n_new, at = 0;
    view_dim *old = without_ones(lower, from->dims, from->n_dims, &n_old);
    view_dim *now = without_ones(lower, dims, n, &n_new);
    if (old == NULL || now == NULL) {
        return NULL;
    }
    if (!are_same(old, n_old, now, n_new)) {
        return regroup(lower, from, view) ? view : NULL;
    }
    for (size_t i = 0; i < n; i++) {
        view->place[i] = -1;
        if (dims[i].size == 1) {
            continue;
        }
        while (from->place[at] < 0) {
            at++;
        }
        view->place[i] = from->place[at++];
    }
    return view;
}

/* ---- the nodes ---- */

static bool int_argument(const fx_lower *lower, size_t index, int64_t *out)
{
    if (index >= lower->desc.n_args || fxtap_value_kind_of(lower->graph, lower->desc.args[index]) != FXTAP_V_INT) {
        return false;
    }
    *out = fxtap_value_int(lower->graph, lower->desc.args[index]);
    return true;
}

/* The permutation of `n` dims by a node; false if it is not a permutation. */
static bool permutation(const fx_lower *lower, size_t n, int64_t *order)
{
    const char *target = lower->desc.target;
    int64_t a = 0, b = 1;
    for (size_t i = 0; i < n; i++) {
        order[i] = (int64_t)i;
    }
    if (strcmp(target, "aten.permute.default") == 0) {
        size_t n_items = 0;
        const fxtap_value *items =
            lower->desc.n_args > 1 ? fxtap_value_items(lower->graph, lower->desc.args[1], &n_items) : NULL;
        for (size_t i = 0; i < n_items && i < n; i++) {
            if (fxtap_value_kind_of(lower->graph, items[i]) != FXTAP_V_INT) {
                return false;
            }
            order[i] = fxtap_value_int(lower->graph, items[i]);
        }
        return n_items == n;
    }
    if (strcmp(target, "aten.transpose.int") == 0) {
        if (!int_argument(lower, 1, &a) || !int_argument(lower, 2, &b)) {
            return false;
        }
    } else if (strcmp(target, "aten.t.default") != 0) {
        return false;
    }
    if (n < 2) {
        return true;
    }
    a = a < 0 ? a + (int64_t)n : a;
    b = b < 0 ? b + (int64_t)n : b;
    if (a < 0 || b < 0 || a >= (int64_t)n || b >= (int64_t)n) {
        return false;
    }
    order[a] = b;
    order[b] = a;
    return true;
}

/* The entries of the size list, for sizes that are not known otherwise: "s27*s53" is -1 in [s77, -1]. */
static void keep_given(const fx_lower *lower, view_dim *dims, size_t n)
{
    size_t n_items = 0;
    const fxtap_value *items =
        lower->desc.n_args > 1 ? fxtap_value_items(lower->graph, lower->desc.args[1], &n_items) : NULL;
    for (size_t i = 0; n_items == n && i < n; i++) {
        dims[i].given = items[i];
    }
}

/* Records which tensors hold the symbols of a size list; the sizes of the view are their expressions. */
static void learn_symbols(fx_lower *lower, fx_pending *view)
{
    size_t n = 0;
    if (lower->desc.n_args < 2) {
        return;
    }
    const fxtap_value *items = fxtap_value_items(lower->graph, lower->desc.args[1], &n);
    fx_symbol *symbols = fx_arena_calloc(&lower->ge->arena, view->n_symbols + n + 1, sizeof *symbols);
    if (symbols == NULL || n == 0) {
        return;
    }
    if (view->n_symbols > 0) {
        memcpy(symbols, view->symbols, view->n_symbols * sizeof *symbols);
    }
    for (size_t i = 0; i < n; i++) {
        if (fxtap_value_kind_of(lower->graph, items[i]) != FXTAP_V_NODE) {
            continue;
        }
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        fx_val value = fx_lower_value(lower, items[i]);
        if (value.kind != FX_VAL_REF ||
            fxtap_graph_node(lower->graph, fxtap_value_node(lower->graph, items[i]), &desc) != FXTAP_OK ||
            desc.meta == 0) {
            continue;
        }
        symbols[view->n_symbols].expression = fxtap_value_text(lower->graph, desc.meta, NULL);
        symbols[view->n_symbols++].ref = value.u.ref;
    }
    view->symbols = symbols;
}

static fx_pending *source_view(fx_lower *lower, fxtap_node source)
{
    if (lower->pending[source] != NULL) {
        return lower->pending[source];
    }
    fx_val value = fx_lower_node_value(lower, source);
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    if (value.kind == FX_VAL_TENSOR) {
        value = fx_val_ref(fx_ge_const(lower->ge, &value, FX_GE_UNDEFINED));
    }
    if (value.kind != FX_VAL_REF || fxtap_graph_node(lower->graph, source, &desc) != FXTAP_OK) {
        return NULL;
    }
    return plain_view(lower, value.u.ref, desc.meta);
}

/* A reshape with plain numbers for symbolic sizes is not deferred, since they do not determine the symbols. */
static bool hides_symbols(const fx_lower *lower, const view_dim *dims, size_t n)
{
    bool is_symbolic = false;
    for (size_t i = 0; i < n; i++) {
        is_symbolic |= dims[i].size < 0;
    }
    size_t n_items = 0;
    const fxtap_value *items =
        lower->desc.n_args > 1 ? fxtap_value_items(lower->graph, lower->desc.args[1], &n_items) : NULL;
    for (size_t i = 0; i < n_items; i++) {
        if (fxtap_value_kind_of(lower->graph, items[i]) != FXTAP_V_INT) {
            return false;
        }
    }
    return is_symbolic;
}

bool fx_lower_view(fx_lower *lower, fx_val *out)
{
    const fxtap_node_desc *node = &lower->desc;
    bool is_reshape = strcmp(node->target, "aten.reshape.default") == 0;
    bool is_permute = strcmp(node->target, "aten.permute.default") == 0 ||
                      strcmp(node->target, "aten.transpose.int") == 0 || strcmp(node->target, "aten.t.default") == 0;
    if ((!is_reshape && !is_permute) || node->n_args == 0 ||
        fxtap_value_kind_of(lower->graph, node->args[0]) != FXTAP_V_NODE) {
        return false;
    }
    fx_pending *from = source_view(lower, fxtap_value_node(lower->graph, node->args[0])), *view = NULL;
    int64_t order[MAX_RANK];
    if (from == NULL) {
        return false;
    }
    if (is_permute && permutation(lower, from->n_dims, order)) {
        view = permuted(lower, from, order, from->n_dims);
    }
    if (is_reshape) {
        size_t n;
        view_dim *dims = meta_dims(lower, node->meta, &n);
        if (dims != NULL && hides_symbols(lower, dims, n)) {
            return false;
        }
        if (dims != NULL) {
            keep_given(lower, dims, n);
        }
        if (node->n_args > 1) {
            fx_lower_value(lower, node->args[1]); /* a list with symbols is packed here, and stays unused */
        }
        view = dims == NULL ? NULL : reshaped(lower, from, dims, n);
        if (view == NULL && dims != NULL) { /* cannot be a single view: make the pending one first */
            fx_val made = fx_lower_node_value(lower, fxtap_value_node(lower->graph, node->args[0]));
            fxtap_node_desc source = {.struct_size = sizeof source};
            fxtap_graph_node(lower->graph, fxtap_value_node(lower->graph, node->args[0]), &source);
            from = made.kind == FX_VAL_REF ? plain_view(lower, made.u.ref, source.meta) : NULL;
            view = from == NULL ? NULL : reshaped(lower, from, dims, n);
        }
        if (view != NULL) {
            learn_symbols(lower, view);
        }
    }
    if (view == NULL) {
        return false;
    }
    /* Sets the description of the source to that of the view. */
    fx_ge_desc *desc = &view->base.op->outputs[view->base.output];
    desc->meta = fx_meta_text(lower, node->meta, &desc->meta_length);
    lower->pending[lower->node] = view;
    memset(out, 0, sizeof *out);
    return true;
}

/* ---- making ---- */

static fx_val call(fx_lower *lower, const char *type, const fx_val *args, size_t n)
{
    fx_named_val attrs[2] = {{"N", 1, fx_val_int(n > 0 && args[0].kind == FX_VAL_LIST ? (int64_t)args[0].u.list.n : 0)},
                             {"axis", 4, fx_val_int(0)}};
    size_t n_attrs = strcmp(type, "Pack") == 0 ? 2 : 0;
    fx_ge_op *op = fx_ge_call(lower->ge, type, args, n, attrs, n_attrs, 0);
    if (op != NULL && n_attrs > 0) {
        fx_ge_add_attr(lower->ge, op, "_force_unknown_shape", FX_ATTR_BOOL, fx_val_bool(true));
    }
    fx_ref ref = {op, 0};
    return fx_val_ref(ref);
}

/* The size of a symbolic dim: from a size list, else read from the base, once; else as given. */
static fx_val symbol_size(fx_lower *lower, fx_pending *view, const view_dim *dim)
{
    const char *expression = dim->expression;
    fx_val none = {.kind = FX_VAL_NONE};
    for (size_t i = 0; i < view->n_symbols; i++) {
        if (strcmp(view->symbols[i].expression, expression) == 0) {
            return fx_val_ref(view->symbols[i].ref);
        }
    }
    for (size_t i = 0; i < view->n_base; i++) {
        if (view->base_dims[i].size >= 0 || strcmp(view->base_dims[i].expression, expression) != 0) {
            continue;
        }
        fx_val base = fx_val_ref(view->base);
        fx_named_val dtype = {"dtype", 5, fx_val_int(FX_GE_INT32)};
        fx_ge_op *shape = fx_ge_call(lower->ge, "Shape", &base, 1, &dtype, 1, 0);
        fx_ref shape_ref = {shape, 0};
        fx_val args[2] = {fx_val_ref(shape_ref), fx_val_int((int64_t)i)};
        fx_ge_op *gather = shape == NULL ? NULL : fx_ge_call(lower->ge, "Gather", args, 2, NULL, 0, 0);
        fx_symbol *more = fx_arena_calloc(&lower->ge->arena, view->n_symbols + 1, sizeof *more);
        if (gather == NULL || more == NULL) {
            return none;
        }
        if (view->n_symbols > 0) {
            memcpy(more, view->symbols, view->n_symbols * sizeof *more);
        }
        fx_ref gather_ref = {gather, 0};
        more[view->n_symbols].expression = expression;
        more[view->n_symbols++].ref = gather_ref;
        view->symbols = more;
        return fx_val_ref(gather_ref);
    }
    fx_val known = fx_val_ref(fx_symbol_ref(lower, expression));
    return known.kind == FX_VAL_NONE ? fx_lower_value(lower, dim->given) : known;
}

/* The target of a Reshape: a Const, or a Pack if a size is symbolic. */
static fx_val sizes_value(fx_lower *lower, fx_pending *view, const view_dim *dims, size_t n)
{
    fx_val items[MAX_RANK];
    bool is_symbolic = false;
    for (size_t i = 0; i < n; i++) {
        is_symbolic |= dims[i].size < 0;
        items[i] = dims[i].size < 0 ? symbol_size(lower, view, &dims[i]) : fx_val_int(dims[i].size);
    }
    for (size_t i = 0; is_symbolic && i < n; i++) {
        if (items[i].kind == FX_VAL_INT) {
            items[i] = fx_val_ref(fx_ge_const(lower->ge, &items[i], FX_GE_INT64));
        }
    }
    fx_val list = fx_val_list(lower, items, n);
    if (is_symbolic) {
        return call(lower, "Pack", &list, 1);
    }
    return fx_val_ref(fx_ge_const(lower->ge, &list, FX_GE_INT64));
}

static fx_val reshape(fx_lower *lower, fx_pending *view, fx_val x, const view_dim *dims, size_t n)
{
    fx_val args[2] = {x, sizes_value(lower, view, dims, n)};
    return call(lower, "Reshape", args, 2);
}

static fx_val transpose(fx_lower *lower, const fx_pending *view, fx_val x, view_dim *dims_out)
{
    fx_val order[MAX_RANK];
    size_t n = 0;
    for (size_t i = 0; i < view->n_dims; i++) {
        if (view->place[i] >= 0) {
            dims_out[n] = view->dims[i];
            order[n++] = fx_val_int(view->place[i]);
        }
    }
    fx_val args[2] = {x, fx_val_list(lower, order, n)};
    return call(lower, "Transpose", args, 2);
}

fx_val fx_pending_make(fx_lower *lower, fxtap_node node)
{
    fx_pending *view = lower->pending[node];
    fx_val x = fx_val_ref(view->base);
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    if (fxtap_graph_node(lower->graph, node, &desc) != FXTAP_OK) {
        return x;
    }
    x.meta = desc.meta;
    if (is_in_memory_order(view)) {
        bool is_input = strcmp(view->base.op->type, "Data") == 0; /* GE does not know the shape of any other tensor */
        if ((is_input || !view->has_reshape) && are_same(view->base_dims, view->n_base, view->dims, view->n_dims)) {
            return x;
        }
        x = reshape(lower, view, x, view->dims, view->n_dims);
    } else {
        view_dim order[MAX_RANK];
        if (!are_same(view->base_dims, view->n_base, view->memory, view->n_memory)) {
            x = reshape(lower, view, x, view->memory, view->n_memory);
        }
        x = transpose(lower, view, x, order);
        if (!are_same(order, view->n_memory, view->dims, view->n_dims)) {
            x = reshape(lower, view, x, view->dims, view->n_dims);
        }
    }
    if (x.kind == FX_VAL_REF) {
        fx_ge_desc *made = &x.u.ref.op->outputs[x.u.ref.output];
        made->dtype = fx_meta_dtype(lower, desc.meta);
        made->meta = fx_meta_text(lower, desc.meta, &made->meta_length);
    }
    x.meta = desc.meta;
    return x;
}
