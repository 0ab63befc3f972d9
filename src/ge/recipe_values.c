/* Values of the recipe language. */
#include <string.h>

#include "ge/recipe.h"

bool fx_val_truth(const fx_val *value)
{
    switch (value->kind) {
    case FX_VAL_NONE:
        return false;
    case FX_VAL_BOOL:
        return value->u.b;
    case FX_VAL_INT:
        return value->u.i != 0;
    case FX_VAL_FLOAT:
        return value->u.f != 0;
    case FX_VAL_TEXT:
        return value->u.text.length > 0;
    case FX_VAL_LIST:
    case FX_VAL_TUPLE:
        return value->u.list.n > 0;
    default:
        return true;
    }
}

static bool is_number(const fx_val *value)
{
    return value->kind == FX_VAL_BOOL || value->kind == FX_VAL_INT || value->kind == FX_VAL_FLOAT ||
           value->kind == FX_VAL_DTYPE;
}

double fx_val_number(const fx_val *value)
{
    switch (value->kind) {
    case FX_VAL_BOOL:
        return value->u.b;
    case FX_VAL_FLOAT:
        return value->u.f;
    case FX_VAL_INT:
    case FX_VAL_DTYPE:
        return (double)value->u.i;
    default:
        return 0;
    }
}

bool fx_val_equal(const fx_val *a, const fx_val *b)
{
    if (is_number(a) && is_number(b)) {
        return fx_val_number(a) == fx_val_number(b);
    }
    bool both_lists =
        (a->kind == FX_VAL_LIST || a->kind == FX_VAL_TUPLE) && (b->kind == FX_VAL_LIST || b->kind == FX_VAL_TUPLE);
    if (both_lists) {
        bool is_equal = a->u.list.n == b->u.list.n;
        for (size_t i = 0; is_equal && i < a->u.list.n; i++) {
            is_equal = fx_val_equal(&a->u.list.items[i], &b->u.list.items[i]);
        }
        return is_equal;
    }
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == FX_VAL_TEXT) {
        return a->u.text.length == b->u.text.length && memcmp(a->u.text.bytes, b->u.text.bytes, a->u.text.length) == 0;
    }
    if (a->kind == FX_VAL_REF) {
        return a->u.ref.op == b->u.ref.op && a->u.ref.output == b->u.ref.output;
    }
    return a->kind == FX_VAL_NONE;
}

fx_val fx_val_int(int64_t i)
{
    fx_val value = {.kind = FX_VAL_INT, .u.i = i};
    return value;
}

fx_val fx_val_bool(bool b)
{
    fx_val value = {.kind = FX_VAL_BOOL, .u.b = b};
    return value;
}

fx_val fx_val_dtype(int dtype)
{
    fx_val value = {.kind = FX_VAL_DTYPE, .u.i = dtype};
    return value;
}

fx_val fx_val_ref(fx_ref ref)
{
    fx_val value = {.kind = ref.op == NULL ? FX_VAL_NONE : FX_VAL_REF};
    value.u.ref = ref;
    return value;
}

fx_val fx_val_text(const char *text)
{
    fx_val value = {.kind = FX_VAL_TEXT};
    value.u.text.bytes = text;
    value.u.text.length = strlen(text);
    return value;
}

fx_val fx_val_list(fx_lower *lower, const fx_val *items, size_t n)
{
    fx_val value = {.kind = FX_VAL_LIST};
    value.u.list.items = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *items);
    if (value.u.list.items == NULL) {
        value.kind = FX_VAL_NONE;
        return value;
    }
    if (n > 0) {
        memcpy(value.u.list.items, items, n * sizeof *items);
    }
    value.u.list.n = n;
    return value;
}
