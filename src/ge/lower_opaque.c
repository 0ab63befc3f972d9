/* Operators without a lowering, and results without elements. */
#include <stdio.h>
#include <string.h>

#include "ge/recipe.h"
#include "graph/python.h"

/* ---- operators without a lowering ---- */

/* Counts the tensors anywhere in a value and collects them if `refs` is not NULL. */
static void collect_refs(const fx_val *value, fx_ref *refs, size_t *n)
{
    if (value->kind == FX_VAL_REF) {
        if (refs != NULL) {
            refs[*n] = value->u.ref;
        }
        (*n)++;
    }
    for (size_t i = 0; (value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE) && i < value->u.list.n; i++) {
        collect_refs(&value->u.list.items[i], refs, n);
    }
}

static fx_ref *all_refs(fx_lower *lower, const fx_val *values, size_t n_values, size_t *n_out)
{
    size_t n = 0;
    for (size_t i = 0; i < n_values; i++) {
        collect_refs(&values[i], NULL, &n);
    }
    fx_ref *refs = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *refs);
    *n_out = 0;
    for (size_t i = 0; refs != NULL && i < n_values; i++) {
        collect_refs(&values[i], refs, n_out);
    }
    return refs;
}

/* Adds the bodies anywhere in a value as attributes with their names. */
static void add_bodies(fx_lower *lower, fx_ge_op *op, const fx_val *value)
{
    if (value->kind == FX_VAL_GRAPH && fx_ge_find_attr(op, value->u.body->name) == NULL) {
        fx_ge_add_attr(lower->ge, op, value->u.body->name, FX_ATTR_GRAPH, *value);
    }
    for (size_t i = 0; (value->kind == FX_VAL_LIST || value->kind == FX_VAL_TUPLE) && i < value->u.list.n; i++) {
        add_bodies(lower, op, &value->u.list.items[i]);
    }
}

/* The full call, as an attribute and as a comment, and the reason why it is not a GE operator. */
static void describe_opaque(fx_lower *lower, fx_ge_op *op, const char *why)
{
    fxtap_buffer code;
    fx_val text = {.kind = FX_VAL_TEXT};
    fxtap_buffer_init(&code);
    fx_lower_code(lower, &code, true);
    text.u.text.bytes = fx_text_copy(&lower->ge->arena, code.bytes == NULL ? "" : code.bytes, code.length);
    text.u.text.length = code.length;
    if (fxtap_buffer_status(&code) != FXTAP_OK) {
        lower->status = FXTAP_E_NOMEM;
    }
    fxtap_buffer_clear(&code);
    fx_ge_add_attr(lower->ge, op, "_fx_code", FX_ATTR_TEXT, text);
    fx_ge_add_attr(lower->ge, op, "_no_lowering", FX_ATTR_TEXT, fx_val_text(why));
    if (!lower->ge->with_py) {
        return;
    }
    if (!fx_lower_has_trace(lower)) {
        fx_lower_code_line(lower);
    }
    fxtap_buffer_text(&lower->ge->py, "# no lowering: ");
    fx_plain_text(&lower->ge->py, why, SIZE_MAX);
    fxtap_buffer_text(&lower->ge->py, "\n");
}

/*
 * A node that TorchAir has no lowering for stays in the graph under its target: its tensors in order, its call as the
 * attribute `_fx_code`, the reason as `_no_lowering`, and a comment in py.
 */
fx_val fx_lower_opaque(fx_lower *lower, const char *why)
{
    size_t n_refs, n_outputs = 1;
    fx_val none = {.kind = FX_VAL_NONE};
    const fxtap_node_desc *desc = &lower->desc;
    size_t n_values = desc->n_args + desc->n_kwargs;
    fx_val *arguments = fx_arena_calloc(&lower->ge->arena, n_values + 1, sizeof *arguments);
    for (size_t i = 0; i < n_values && arguments != NULL; i++) {
        arguments[i] = fx_lower_value(lower, i < desc->n_args ? desc->args[i] : desc->kwarg_values[i - desc->n_args]);
    }
    const fx_ref *refs = arguments == NULL ? NULL : all_refs(lower, arguments, n_values, &n_refs);
    if (refs == NULL) {
        return none;
    }
    fxtap_value_kind kind = desc->meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, desc->meta);
    if (kind == FXTAP_V_LIST || kind == FXTAP_V_TUPLE) {
        fxtap_value_items(lower->graph, desc->meta, &n_outputs);
    }
    const char *type = fx_text_copy(&lower->ge->arena, desc->target, strlen(desc->target));
    fx_ge_op *op = type == NULL ? NULL : fx_ge_add_op(lower->ge, type, desc->name, n_refs, n_outputs);
    if (op == NULL) {
        return none;
    }
    for (size_t i = 0; i < n_refs; i++) {
        fx_ge_set_input(op, i, fx_arena_printf(&lower->ge->arena, "x%zu", i), refs[i]);
    }
    fx_val items = fx_val_list(lower, NULL, 0);
    fx_val *values = fx_arena_calloc(&lower->ge->arena, n_outputs + 1, sizeof *values);
    if (values == NULL) {
        return none;
    }
    for (size_t i = 0; i < n_outputs; i++) {
        fx_ref ref = {op, (int32_t)i};
        values[i] = fx_val_ref(ref);
        op->outputs[i].name = fx_arena_printf(&lower->ge->arena, "y%zu", i);
    }
    describe_opaque(lower, op, why);
    for (size_t i = 0; i < n_values && arguments != NULL; i++) {
        add_bodies(lower, op, &arguments[i]);
    }
    items.u.list.items = values;
    items.u.list.n = n_outputs;
    return kind == FXTAP_V_LIST || kind == FXTAP_V_TUPLE ? items : values[0];
}

/* ---- results without elements ---- */

static bool is_empty_tensor(fx_lower *lower, fxtap_value meta)
{
    const int64_t *dims;
    size_t n;
    bool has_zero = false;
    if (!fx_meta_dims(lower, meta, &dims, &n)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0) {
            return false;
        }
        has_zero |= dims[i] == 0;
    }
    return has_zero;
}

/* The arguments' pending views are made even if the operator is not lowered. */
static void make_arguments(fx_lower *lower)
{
    fx_val *positional = fx_arena_calloc(&lower->ge->arena, lower->desc.n_args + 1, sizeof *positional);
    fx_val *named = fx_arena_calloc(&lower->ge->arena, lower->desc.n_kwargs + 1, sizeof *named);
    if (positional != NULL && named != NULL) {
        fx_lower_arguments(lower, positional, named);
    }
}

static fx_val empty_const(fx_lower *lower, fxtap_value meta)
{
    fx_val value = fx_lower_value(lower, meta);
    if (value.kind != FX_VAL_TENSOR) {
        return value;
    }
    fx_val out = fx_val_ref(fx_ge_const(lower->ge, &value, fx_meta_dtype(lower, meta)));
    if (out.kind == FX_VAL_REF) {
        fx_describe(lower, out.u.ref, meta, NULL);
    }
    out.meta = meta;
    return out;
}

/* If no result has elements, constants replace them and the operator is not lowered. */
bool fx_lower_empty(fx_lower *lower, fx_val *out)
{
    fxtap_value meta = lower->desc.meta;
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, meta);
    size_t n;
    if (kind == FXTAP_V_TENSOR) {
        if (!is_empty_tensor(lower, meta)) {
            return false;
        }
        make_arguments(lower);
        *out = empty_const(lower, meta);
        return true;
    }
    if (kind != FXTAP_V_LIST && kind != FXTAP_V_TUPLE) {
        return false;
    }
    const fxtap_value *items = fxtap_value_items(lower->graph, meta, &n);
    for (size_t i = 0; i < n; i++) {
        if (!is_empty_tensor(lower, items[i])) {
            return false;
        }
    }
    fx_val *values = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *values);
    if (values == NULL || n == 0) {
        return false;
    }
    make_arguments(lower);
    for (size_t i = 0; i < n; i++) {
        values[i] = empty_const(lower, items[i]);
    }
    *out = fx_val_list(lower, values, n);
    return true;
}
