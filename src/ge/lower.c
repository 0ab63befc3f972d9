/* The walk over the lowered record: inputs, operators, outputs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ge/recipe.h"
#include "graph/support.h"

void fx_lower_raise(fx_lower *lower, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (lower->raised != NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    lower->raised = fx_text_copy(&lower->ge->arena, text, strlen(text));
    if (lower->raised == NULL) {
        lower->raised = "out of memory";
    }
}

/* ---- results ---- */

/* str() of the target: Python's own functions by their repr, as in TorchAir's output names. */
static const char *output_name(fx_lower *lower, size_t index)
{
    const char *target = lower->desc.target;
    const char *dot = strchr(target, '.');
    if (strncmp(target, "operator.", 9) == 0 || strncmp(target, "math.", 5) == 0) {
        return fx_arena_printf(&lower->ge->arena, "%s-<built-in function %s>.OUTPUT.%zu", lower->desc.name, dot + 1,
                               index);
    }
    return fx_arena_printf(&lower->ge->arena, "%s-%s.OUTPUT.%zu", lower->desc.name, target, index);
}

void fx_describe(fx_lower *lower, fx_ref ref, fxtap_value meta, const char *fx_name)
{
    fx_ge_desc *desc = &ref.op->outputs[ref.output];
    size_t length;
    const char *text = fx_meta_text(lower, meta, &length);
    int dtype = fx_meta_dtype(lower, meta);
    if (dtype != FX_GE_UNDEFINED) {
        desc->dtype = dtype;
    }
    if (text != NULL) {
        desc->meta = text;
        desc->meta_length = length;
    }
    if (fx_name != NULL) {
        desc->fx_name = fx_name;
    }
}

/* Sets the meta of the results from the record. */
static void describe_result(fx_lower *lower, fx_val *result)
{
    size_t n = 0;
    const fxtap_value *metas = NULL;
    fxtap_value meta = lower->desc.meta;
    result->meta = meta;
    if (result->kind == FX_VAL_REF) {
        fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, meta);
        result->is_symbol = kind == FXTAP_V_SYMINT || kind == FXTAP_V_SYMFLOAT || kind == FXTAP_V_SYMBOOL;
        fx_describe(lower, result->u.ref, meta, output_name(lower, 0));
        if (result->is_symbol) {
            fx_add_symbol(lower, fxtap_value_text(lower->graph, meta, NULL), result->u.ref);
        }
    }
    if (result->kind != FX_VAL_LIST || meta == 0) {
        return;
    }
    metas = fxtap_value_items(lower->graph, meta, &n);
    bool is_whole = true;
    for (size_t i = 0; i < result->u.list.n; i++) {
        is_whole &= result->u.list.items[i].kind == FX_VAL_REF;
    }
    for (size_t i = 0; i < result->u.list.n; i++) {
        fx_val *item = &result->u.list.items[i];
        item->meta = i < n ? metas[i] : 0;
        if (item->kind == FX_VAL_REF) {
            fx_describe(lower, item->u.ref, item->meta, is_whole ? output_name(lower, i) : NULL);
        }
    }
}

/* ---- inputs ---- */

static void data_line(fx_lower *lower, const fx_ge_op *op)
{
    fxtap_buffer *py = &lower->ge->py;
    const fx_ge_desc *desc = &op->outputs[0];
    fx_ref ref = {(fx_ge_op *)(uintptr_t)op, 0};
    fx_val name = fx_val_text(op->name);
    if (!lower->ge->with_py) {
        return;
    }
    fx_ge_ref_text(py, ref);
    fxtap_buffer_printf(py, " = ge.Data(index=%lld, dtype=%d, shape=[", (long long)op->attrs[0].value.u.i, desc->dtype);
    for (size_t i = 0; i < desc->n_dims; i++) {
        fxtap_buffer_printf(py, "%s%lld", i > 0 ? ", " : "", (long long)desc->dims[i]);
    }
    fxtap_buffer_printf(py, "], placement=\"%s\", node_name=", desc->place);
    fx_val_repr(py, &name);
    fxtap_buffer_text(py, ")\n");
}

fx_ge_op *fx_lower_add_data(fx_lower *lower, const char *name, int dtype, const int64_t *dims, size_t n_dims,
                            const char *place)
{
    fx_ge_op *op = fx_ge_add_op(lower->ge, "Data", name, 1, 1);
    if (op == NULL || !fx_ge_add_attr(lower->ge, op, "index", FX_ATTR_INT, fx_val_int((int64_t)lower->n_data))) {
        return NULL;
    }
    lower->n_data++;
    fx_ge_desc *desc = &op->outputs[0];
    desc->dtype = dtype;
    desc->has_shape = true;
    desc->dims = dims;
    desc->n_dims = n_dims;
    desc->layout = "ND";
    desc->place = place;
    desc->name = "x";
    op->input_descs[0] = *desc;
    op->n_inputs = 0; /* it has the description of an input, but no input */
    desc->name = "y";
    data_line(lower, op);
    return op;
}

static bool is_on_npu(const fx_lower *lower, fxtap_value meta)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    return meta != 0 && fxtap_value_kind_of(lower->graph, meta) == FXTAP_V_TENSOR &&
           fxtap_value_tensor(lower->graph, meta, &tensor) == FXTAP_OK && tensor.device != NULL &&
           strncmp(tensor.device, "npu", 3) == 0;
}

static fx_val lower_placeholder(fx_lower *lower)
{
    fxtap_value meta = lower->desc.meta;
    fx_val none = {.kind = FX_VAL_NONE};
    const int64_t *dims = NULL;
    size_t n_dims = 0, meta_length;
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, meta);
    if (kind == FXTAP_V_TENSOR) {
        fx_meta_dims(lower, meta, &dims, &n_dims);
    }
    const char *text = fx_meta_text(lower, meta, &meta_length);
    if (text == NULL && meta != 0) {
        return fx_lower_value(lower, meta);
    }
    fx_ge_op *op = fx_lower_add_data(lower, lower->desc.name, fx_meta_dtype(lower, meta), dims, n_dims,
                                     is_on_npu(lower, meta) ? "NPU" : "CPU");
    if (op == NULL) {
        return none;
    }
    op->outputs[0].meta = text;
    op->outputs[0].meta_length = meta_length;
    fx_ref ref = {op, 0};
    fx_val value = fx_val_ref(ref);
    value.meta = meta;
    value.is_symbol = text != NULL && kind != FXTAP_V_TENSOR;
    if (value.is_symbol) {
        fx_add_symbol(lower, fxtap_value_text(lower->graph, meta, NULL), ref);
    }
    return value;
}

/* ---- operators ---- */

static bool is_mutation(const char *target)
{
    return strcmp(target, "aten.copy_.default") == 0;
}

static fx_val lower_getitem(fx_lower *lower)
{
    fx_val none = {.kind = FX_VAL_NONE};
    const fxtap_node_desc *desc = &lower->desc;
    if (desc->n_args < 2 || fxtap_value_kind_of(lower->graph, desc->args[0]) != FXTAP_V_NODE ||
        fxtap_value_kind_of(lower->graph, desc->args[1]) != FXTAP_V_INT) {
        return none;
    }
    fx_val list = fx_lower_value(lower, desc->args[0]);
    int64_t index = fxtap_value_int(lower->graph, desc->args[1]);
    if (list.kind != FX_VAL_LIST || index < 0 || (size_t)index >= list.u.list.n) {
        return none;
    }
    fx_val item = list.u.list.items[index];
    item.meta = desc->meta;
    return item;
}

/* A result that is a plain number needs no operator. */
static bool is_number(const fx_lower *lower, fxtap_value meta)
{
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, meta);
    return kind == FXTAP_V_INT || kind == FXTAP_V_FLOAT || kind == FXTAP_V_BOOL;
}

typedef struct fx_mark { /* the state of the graph before a node */
    size_t n_ops, py_length;
    fx_ref seed, offsets;
    int32_t n_random;
    size_t n_data;
} fx_mark;

/* Undoes the work on a node that cannot be lowered, including the views made for it. */
static void take_back(fx_lower *lower, const fx_mark *mark)
{
    fx_ge_truncate(lower->ge, mark->n_ops);
    lower->ge->py.length = mark->py_length;
    fx_take_back_bodies(lower->ge);
    lower->seed = mark->seed;
    lower->offsets = mark->offsets;
    lower->n_random = mark->n_random;
    lower->n_data = mark->n_data;
    while (lower->n_made > 0) {
        lower->results[lower->made[--lower->n_made]].kind = FX_VAL_NONE;
    }
}

static fx_val lower_call(fx_lower *lower)
{
    fx_val result = {.kind = FX_VAL_NONE};
    fx_mark before = {lower->ge->n_ops, lower->ge->py.length, lower->seed,
                      lower->offsets,   lower->n_random,      lower->n_data};
    if (strcmp(lower->desc.target, "operator.getitem") == 0) {
        return lower_getitem(lower);
    }
    const fx_recipe *recipe = fx_find_recipe(&lower->recipes, lower->desc.target);
    if (recipe != NULL && fx_lower_view(lower, &result)) {
        return result;
    }
    if (is_number(lower, lower->desc.meta)) {
        return fx_lower_value(lower, lower->desc.meta);
    }
    if (!is_mutation(lower->desc.target) && fx_lower_empty(lower, &result)) {
        return result;
    }
    if (recipe != NULL) {
        result = fx_run_recipe(lower, recipe);
    } else {
        fx_lower_raise(lower, "%s",
                       fx_support_of(lower->desc.target) >= FX_SUPPORT_PARTIAL
                           ? "TorchAir has a lowering for it that has not been measured"
                           : "TorchAir has no lowering for it");
    }
    if (lower->raised != NULL && lower->status == FXTAP_OK && !lower->ge->arena.failed) {
        const char *why = lower->raised;
        lower->raised = NULL;
        take_back(lower, &before);
        result = fx_lower_opaque(lower, why);
    }
    describe_result(lower, &result);
    return result;
}

/* ---- outputs ---- */

/* "aten.add_.Tensor", "aten.__iand__.Scalar"; not "aten.__and__.Scalar". */
static bool is_in_place(const char *target)
{
    const char *overload = strrchr(target, '.');
    if (strncmp(target, "aten.", 5) != 0 || overload == NULL || overload < target + 7 || overload[-1] != '_') {
        return false;
    }
    return overload[-2] != '_' || strncmp(target + 5, "__i", 3) == 0;
}

/* The node whose memory this one has: itself, or that of its argument for views and in-place operators. */
static fxtap_node root_of(const fx_lower *lower)
{
    const fxtap_node_desc *desc = &lower->desc;
    const char *overload = strrchr(desc->target, '.');
    bool is_out = overload != NULL && (strcmp(overload, ".out") == 0 || strcmp(overload, ".output") == 0 ||
                                       strcmp(overload, ".grad_input") == 0);
    const fx_recipe *recipe = fx_find_recipe(&lower->recipes, desc->target);
    bool is_view = (recipe != NULL && recipe->is_view) || (desc->flags & FXTAP_NODE_VIEW) != 0 ||
                   is_in_place(desc->target) || strcmp(desc->target, "operator.getitem") == 0;
    if (is_out && desc->n_kwargs > 0 && fxtap_value_kind_of(lower->graph, desc->kwarg_values[0]) == FXTAP_V_NODE) {
        return lower->root[fxtap_value_node(lower->graph, desc->kwarg_values[0])];
    }
    if (is_view && desc->n_args > 0 && fxtap_value_kind_of(lower->graph, desc->args[0]) == FXTAP_V_NODE) {
        return lower->root[fxtap_value_node(lower->graph, desc->args[0])];
    }
    return lower->node;
}

static bool is_input(const fx_lower *lower, fxtap_node node)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    return fxtap_graph_node(lower->graph, lower->root[node], &desc) == FXTAP_OK && desc.op == FXTAP_OP_PLACEHOLDER;
}

/* An output of a body: other values than tensors keep their position as a constant or as no value. */
static fx_val body_output(fx_lower *lower, fxtap_value value)
{
    fx_val result = fx_lower_value(lower, value);
    if (result.kind == FX_VAL_REF || result.kind == FX_VAL_NONE) {
        return result;
    }
    bool is_constant = result.kind == FX_VAL_TENSOR || result.kind == FX_VAL_BOOL || result.kind == FX_VAL_INT ||
                       result.kind == FX_VAL_FLOAT || result.kind == FX_VAL_COMPLEX;
    fx_ref none = {NULL, 0};
    return fx_val_ref(is_constant ? fx_ge_const(lower->ge, &result, FX_GE_UNDEFINED) : none);
}

static void add_output(fx_lower *lower, fxtap_value value, fx_val *outputs, size_t capacity, size_t *n)
{
    if (lower->ge->path != NULL && *n < capacity) {
        outputs[(*n)++] = body_output(lower, value);
        return;
    }
    if (value == 0 || fxtap_value_kind_of(lower->graph, value) != FXTAP_V_NODE || *n == capacity) {
        return;
    }
    fxtap_node node = fxtap_value_node(lower->graph, value);
    fx_val result = fx_lower_node_value(lower, node);
    if (result.kind == FX_VAL_TENSOR) {
        result = fx_val_ref(fx_ge_const(lower->ge, &result, FX_GE_UNDEFINED));
    }
    if (result.kind != FX_VAL_REF || result.is_symbol || is_input(lower, node) ||
        (result.is_alias && strcmp(result.u.ref.op->type, "Data") == 0)) {
        return;
    }
    for (size_t i = 0; i < *n; i++) {
        if (outputs[i].u.ref.op == result.u.ref.op && outputs[i].u.ref.output == result.u.ref.output) {
            return;
        }
    }
    outputs[(*n)++] = result;
}

/* Adds an input to the NetOutput: its description has the shape in the record. */
static void connect_output(fx_lower *lower, fx_ge_op *op, size_t index, const fx_val *value)
{
    fx_ge_set_input(op, index, fx_arena_printf(&lower->ge->arena, "input%zu", index), value->u.ref);
    fx_ge_desc *desc = &op->input_descs[index];
    desc->has_shape = fx_meta_dims(lower, value->meta, &desc->dims, &desc->n_dims) || desc->has_shape;
}

static void output_line(fxtap_buffer *py, const fx_val *outputs, size_t n)
{
    fxtap_buffer_text(py, "\n_ = ge.NetOutput([");
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_text(py, i > 0 ? ", " : "");
        fx_ge_ref_text(py, outputs[i].u.ref);
    }
    fxtap_buffer_text(py, "], dependencies=[])\n");
}

static void lower_output(fx_lower *lower)
{
    size_t n_items = 0, n = 0;
    fxtap_value list = lower->desc.n_args > 0 ? lower->desc.args[0] : 0;
    fxtap_value_kind kind = list == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, list);
    const fxtap_value *items = &list;
    if (kind == FXTAP_V_LIST || kind == FXTAP_V_TUPLE) {
        items = fxtap_value_items(lower->graph, list, &n_items);
    } else {
        n_items = list == 0 ? 0 : 1;
    }
    fx_val *outputs = fx_arena_calloc(&lower->ge->arena, n_items + 1, sizeof *outputs);
    if (outputs == NULL) {
        return;
    }
    for (size_t i = 0; i < n_items; i++) {
        add_output(lower, items[i], outputs, n_items, &n);
    }
    fx_ge_op *op = fx_ge_add_op(lower->ge, "NetOutput", NULL, n, 0);
    if (op == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        connect_output(lower, op, i, &outputs[i]);
    }
    if (lower->ge->with_py) {
        output_line(&lower->ge->py, outputs, n);
    }
}

/* ---- the walk ---- */

static void lower_node(fx_lower *lower)
{
    lower->raised = NULL;
    lower->n_made = 0;
    lower->root[lower->node] = root_of(lower);
    fx_lower_charge_arguments(lower);
    if (lower->status != FXTAP_OK) {
        return;
    }
    if (lower->desc.op != FXTAP_OP_OUTPUT && lower->ge->with_py) {
        fx_lower_comment(lower);
    }
    switch (lower->desc.op) {
    case FXTAP_OP_PLACEHOLDER:
        lower->results[lower->node] = lower_placeholder(lower);
        break;
    case FXTAP_OP_GET_ATTR:
        lower->results[lower->node] = fx_lower_attribute(lower);
        break;
    case FXTAP_OP_OUTPUT:
        lower_output(lower);
        break;
    default:
        lower->results[lower->node] = lower_call(lower);
        break;
    }
    fx_lower_weigh(lower);
}

static fxtap_status walk(fx_lower *lower)
{
    size_t n = fxtap_graph_node_count(lower->graph);
    fx_arena *arena = &lower->ge->arena;
    lower->results = fx_arena_calloc(arena, n + 1, sizeof *lower->results);
    lower->pending = fx_arena_calloc(arena, n + 1, sizeof *lower->pending);
    lower->root = fx_arena_calloc(arena, n + 1, sizeof *lower->root);
    lower->made = fx_arena_calloc(arena, n + 1, sizeof *lower->made);
    lower->weight = fx_arena_calloc(arena, n + 1, sizeof *lower->weight);
    if (lower->results == NULL || lower->pending == NULL || lower->root == NULL || lower->made == NULL ||
        lower->weight == NULL || !fx_collect_recipes(arena, &lower->recipes) || !fx_lower_find_bodies(lower)) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n && lower->status == FXTAP_OK && !arena->failed; i++) {
        lower->node = (fxtap_node)i;
        lower->desc.struct_size = sizeof lower->desc;
        lower->status = fxtap_graph_node(lower->graph, lower->node, &lower->desc);
        if (lower->status == FXTAP_OK) {
            lower_node(lower);
        }
    }
    if (lower->status != FXTAP_OK) {
        return lower->status;
    }
    return fx_ge_graph_status(lower->ge);
}

fxtap_status fx_lower_record(const fxtap_graph *lowered, bool with_py, const char *path, fx_ge_graph **out)
{
    fx_lower lower = {.graph = lowered};
    lower.ge = fx_ge_graph_new();
    if (lower.ge == NULL) {
        return FXTAP_E_NOMEM;
    }
    lower.ge->with_py = with_py;
    lower.ge->path = path;
    lower.seen.arena = &lower.ge->arena;
    fxtap_status status = walk(&lower);
    fx_texts_clear(&lower.seen);
    if (status != FXTAP_OK) {
        fx_ge_graph_free(lower.ge);
        return status;
    }
    lower.ge->walked = lower.walked;
    *out = lower.ge;
    return FXTAP_OK;
}

fxtap_status fx_lower_graph(const fxtap_graph *aot, bool with_py, fx_ge_graph **out)
{
    fxtap_graph *lowered = NULL;
    fxtap_status status = fx_lower_passes(aot, &lowered);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_ge_graph *ge = NULL;
    status = fx_lower_record(lowered, with_py, NULL, &ge);
    if (status != FXTAP_OK) {
        fxtap_graph_free(lowered);
        return status;
    }
    ge->record = lowered;
    *out = ge;
    return FXTAP_OK;
}
