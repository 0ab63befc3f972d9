/* The functions of the recipe language. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ge/recipe.h"
#include "util/memory.h"
#include "util/number.h"

typedef fx_val (*function)(fx_reader *reader, const fx_val *args, size_t n_args);

static const fx_val NONE = {.kind = FX_VAL_NONE};

static fxtap_value result_meta(const fx_lower *lower, int64_t index)
{
    fxtap_value meta = lower->desc.meta;
    fxtap_value_kind kind = meta == 0 ? FXTAP_V_NONE : fxtap_value_kind_of(lower->graph, meta);
    if (kind != FXTAP_V_LIST && kind != FXTAP_V_TUPLE) {
        return index == 0 ? meta : 0;
    }
    size_t n;
    const fxtap_value *items = fxtap_value_items(lower->graph, meta, &n);
    return index >= 0 && (size_t)index < n ? items[index] : 0;
}

static fx_val out_dtype(fx_reader *r, const fx_val *args, size_t n_args)
{
    fxtap_value meta = result_meta(r->lower, n_args == 0 ? 0 : args[0].u.i);
    return fx_val_dtype(fx_meta_dtype(r->lower, meta));
}

static fx_val n_outs(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)args, (void)n_args;
    fxtap_value meta = r->lower->desc.meta;
    size_t n = 1;
    if (meta != 0 && (fxtap_value_kind_of(r->lower->graph, meta) == FXTAP_V_LIST ||
                      fxtap_value_kind_of(r->lower->graph, meta) == FXTAP_V_TUPLE)) {
        fxtap_value_items(r->lower->graph, meta, &n);
    }
    return fx_val_int((int64_t)n);
}

static fx_val dims_list(fx_reader *r, fxtap_value meta)
{
    const int64_t *dims;
    size_t n;
    if (!fx_meta_dims(r->lower, meta, &dims, &n)) {
        return fx_val_list(r->lower, NULL, 0);
    }
    fx_val list = fx_val_list(r->lower, NULL, 0);
    fx_val *items = fx_arena_calloc(&r->lower->ge->arena, n + 1, sizeof *items);
    if (items == NULL || list.kind != FX_VAL_LIST) {
        return NONE;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = fx_val_int(dims[i]);
    }
    list.u.list.items = items;
    list.u.list.n = n;
    return list;
}

static fx_val out_shape(fx_reader *r, const fx_val *args, size_t n_args)
{
    return dims_list(r, result_meta(r->lower, n_args == 0 ? 0 : args[0].u.i));
}

static fx_val shape(fx_reader *r, const fx_val *args, size_t n_args)
{
    return n_args == 0 ? NONE : dims_list(r, args[0].meta);
}

static fx_val rank(fx_reader *r, const fx_val *args, size_t n_args)
{
    fx_val list = shape(r, args, n_args);
    return fx_val_int(list.kind == FX_VAL_LIST ? (int64_t)list.u.list.n : 0);
}

static fx_val numel(fx_reader *r, const fx_val *args, size_t n_args)
{
    fx_val list = shape(r, args, n_args);
    int64_t count = 1;
    bool is_empty = false, is_huge = false;
    for (size_t i = 0; list.kind == FX_VAL_LIST && i < list.u.list.n; i++) {
        int64_t size = list.u.list.items[i].u.i;
        if (size < 0) {
            return fx_val_int(-1);
        }
        is_empty |= size == 0;
        is_huge |= !is_empty && !fx_mul_i64(count, size, &count);
    }
    if (is_huge && !is_empty) {
        fx_lower_raise(r->lower, "number of elements is out of range");
    }
    return fx_val_int(is_empty ? 0 : count);
}

static fx_val dynamic(fx_reader *r, const fx_val *args, size_t n_args)
{
    fx_val list = shape(r, args, n_args);
    for (size_t i = 0; list.kind == FX_VAL_LIST && i < list.u.list.n; i++) {
        if (list.u.list.items[i].u.i < 0) {
            return fx_val_bool(true);
        }
    }
    return fx_val_bool(false);
}

static fx_val dtype(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    if (n_args > 0 && args[0].kind == FX_VAL_REF) {
        return fx_val_dtype(args[0].u.ref.op->outputs[args[0].u.ref.output].dtype);
    }
    fx_val_kind kind = n_args > 0 ? args[0].kind : FX_VAL_NONE;
    return fx_val_dtype(kind == FX_VAL_FLOAT  ? FX_GE_FLOAT
                        : kind == FX_VAL_BOOL ? FX_GE_BOOL
                        : kind == FX_VAL_INT  ? FX_GE_INT64
                                              : FX_GE_UNDEFINED);
}

/* A GE dtype among the arguments; FX_GE_UNDEFINED for any other value. */
static int dtype_number(const fx_val *value)
{
    bool is_one =
        (value->kind == FX_VAL_DTYPE || value->kind == FX_VAL_INT) && fx_ge_dtype_text((int)value->u.i) != NULL;
    return is_one && value->u.i == (int)value->u.i ? (int)value->u.i : FX_GE_UNDEFINED;
}

static fx_val make_const(fx_reader *r, const fx_val *args, size_t n_args)
{
    if (n_args == 0) {
        return NONE;
    }
    if (args[0].kind == FX_VAL_REF) {
        return args[0];
    }
    int as = n_args > 1 ? dtype_number(&args[1]) : FX_GE_UNDEFINED;
    return fx_val_ref(fx_ge_const(r->lower->ge, &args[0], as));
}

static fx_val to(fx_reader *r, const fx_val *args, size_t n_args)
{
    if (n_args < 2 || args[0].kind == FX_VAL_NONE) {
        return NONE;
    }
    if (args[0].kind != FX_VAL_REF) {
        return make_const(r, args, n_args);
    }
    if (dtype(r, args, 1).u.i == args[1].u.i) {
        return args[0];
    }
    fx_named_val attr = {"dst_type", 8, fx_val_int(dtype_number(&args[1]))};
    fx_ge_op *op = fx_ge_call(r->lower->ge, "Cast", args, 1, &attr, 1, 0);
    fx_ref ref = {op, 0};
    fx_val value = fx_val_ref(ref);
    value.meta = args[0].meta;
    return value;
}

static fx_val is_kind(const fx_val *args, size_t n_args, fx_val_kind kind)
{
    return fx_val_bool(n_args > 0 && args[0].kind == kind);
}

static fx_val is_int(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return is_kind(args, n_args, FX_VAL_INT);
}

static fx_val is_float(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return is_kind(args, n_args, FX_VAL_FLOAT);
}

static fx_val is_bool(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return is_kind(args, n_args, FX_VAL_BOOL);
}

static fx_val is_num(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return fx_val_bool(n_args > 0 && (args[0].kind == FX_VAL_INT || args[0].kind == FX_VAL_FLOAT ||
                                      args[0].kind == FX_VAL_BOOL || args[0].kind == FX_VAL_COMPLEX));
}

static fx_val is_tensor(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return fx_val_bool(n_args > 0 && args[0].kind == FX_VAL_REF && !args[0].is_symbol);
}

static fx_val is_sym(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return fx_val_bool(n_args > 0 && args[0].kind == FX_VAL_REF && args[0].is_symbol);
}

static fx_val is_list(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return is_kind(args, n_args, FX_VAL_LIST);
}

static fx_val is_fp(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    int64_t d = n_args > 0 ? args[0].u.i : FX_GE_UNDEFINED;
    return fx_val_bool(d == FX_GE_FLOAT || d == FX_GE_FLOAT16 || d == FX_GE_BF16 || d == FX_GE_DOUBLE);
}

static fx_val len(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    bool has_items = n_args > 0 && (args[0].kind == FX_VAL_LIST || args[0].kind == FX_VAL_TUPLE);
    return fx_val_int(has_items ? (int64_t)args[0].u.list.n : 0);
}

static fx_val range(fx_reader *r, const fx_val *args, size_t n_args)
{
    enum { MAX_RANGE = 4096 };
    int64_t first = n_args > 1 ? args[0].u.i : 0, last = n_args > 0 ? args[n_args - 1].u.i : 0, difference = MAX_RANGE;
    if (last > first && (!fx_sub_i64(last, first, &difference) || difference >= MAX_RANGE)) {
        fx_lower_raise(r->lower, "range of %d or more numbers", MAX_RANGE);
        return NONE;
    }
    size_t n = last > first ? (size_t)difference : 0;
    fx_val list = fx_val_list(r->lower, NULL, 0);
    fx_val *items = fx_arena_calloc(&r->lower->ge->arena, n + 1, sizeof *items);
    if (items == NULL || list.kind != FX_VAL_LIST) {
        return NONE;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = fx_val_int(first + (int64_t)i);
    }
    list.u.list.items = items;
    list.u.list.n = n;
    return list;
}

static fx_val dim(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    if (n_args < 2 || args[0].kind != FX_VAL_INT) {
        return NONE;
    }
    return fx_val_int(args[0].u.i < 0 ? args[0].u.i + (args[1].u.i > 0 ? args[1].u.i : 1) : args[0].u.i);
}

/* The limits of a dtype, as torch has them; infinities for floats. */
static fx_val limit(int64_t d, bool is_max)
{
    fx_val value = {.kind = FX_VAL_FLOAT, .u.f = is_max ? (double)INFINITY : -(double)INFINITY};
    switch (d) {
    case FX_GE_INT64:
        return fx_val_int(is_max ? INT64_MAX : INT64_MIN);
    case FX_GE_INT32:
        return fx_val_int(is_max ? INT32_MAX : INT32_MIN);
    case 6:
        return fx_val_int(is_max ? INT16_MAX : INT16_MIN);
    case FX_GE_INT8:
        return fx_val_int(is_max ? INT8_MAX : INT8_MIN);
    case FX_GE_UINT8:
        return fx_val_int(is_max ? UINT8_MAX : 0);
    case FX_GE_BOOL:
        return fx_val_int(is_max);
    default:
        return value;
    }
}

static fx_val limit_max(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return limit(n_args > 0 ? args[0].u.i : 0, true);
}

static fx_val limit_min(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return limit(n_args > 0 ? args[0].u.i : 0, false);
}

static fx_val seed(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)args, (void)n_args;
    return fx_val_ref(fx_random_seed(r->lower));
}

static fx_val offset(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)args, (void)n_args;
    return fx_val_ref(fx_random_offset(r->lower));
}

/* ---- torch's type promotion ---- */

static int category(int64_t d)
{
    if (d == FX_GE_BOOL) {
        return 0;
    }
    if (d == FX_GE_COMPLEX64 || d == 17 || d == 33) {
        return 3;
    }
    if (d == FX_GE_FLOAT || d == FX_GE_FLOAT16 || d == FX_GE_BF16 || d == FX_GE_DOUBLE) {
        return 2;
    }
    return 1;
}

static int64_t promoted(int64_t a, int64_t b)
{
    static const int INTEGERS[] = {FX_GE_UINT8, FX_GE_INT8, 6, FX_GE_INT32, FX_GE_INT64}; /* in order of width */
    if (a == b || category(b) < category(a)) {
        return a;
    }
    if (category(a) < category(b)) {
        return b;
    }
    if (category(a) == 2) {
        return a == FX_GE_DOUBLE || b == FX_GE_DOUBLE ? FX_GE_DOUBLE : FX_GE_FLOAT;
    }
    if (category(a) == 3) {
        return a == 17 || b == 17 ? 17 : FX_GE_COMPLEX64;
    }
    if (a == FX_GE_UINT8 || b == FX_GE_UINT8) {
        return a == FX_GE_INT8 || b == FX_GE_INT8 ? 6 : (a == FX_GE_UINT8 ? b : a);
    }
    for (size_t i = sizeof INTEGERS / sizeof INTEGERS[0]; i-- > 0;) {
        if (a == INTEGERS[i] || b == INTEGERS[i]) {
            return INTEGERS[i];
        }
    }
    return a;
}

static fx_val promote(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    return fx_val_dtype(n_args < 2 ? FX_GE_UNDEFINED : (int)promoted(args[0].u.i, args[1].u.i));
}

/* The common dtype of two operands: numbers and 0-d tensors only count if they are of a higher kind. */
static fx_val common(fx_reader *r, const fx_val *args, size_t n_args)
{
    if (n_args < 2) {
        return fx_val_dtype(FX_GE_UNDEFINED);
    }
    int64_t a = dtype(r, args, 1).u.i, b = dtype(r, args + 1, 1).u.i;
    bool b_is_weak = args[1].kind != FX_VAL_REF || rank(r, args + 1, 1).u.i == 0;
    bool a_is_weak = args[0].kind != FX_VAL_REF || rank(r, args, 1).u.i == 0;
    if (args[1].kind == FX_VAL_COMPLEX) {
        b = FX_GE_COMPLEX64;
    }
    if (a_is_weak && args[1].kind != FX_VAL_REF) {
        a_is_weak = false;
    }
    if (b_is_weak && !a_is_weak && category(b) <= category(a)) {
        return fx_val_dtype((int)a);
    }
    if (a_is_weak && !b_is_weak && category(a) <= category(b)) {
        return fx_val_dtype((int)b);
    }
    return fx_val_dtype((int)promoted(a, b));
}

static fx_val same_shape(fx_reader *r, const fx_val *args, size_t n_args)
{
    if (n_args < 2) {
        return fx_val_bool(false);
    }
    return fx_val_bool(fx_same_shape(r->lower, args[0].meta, args[1].meta));
}

/* The result has the argument's own shape. */
static fx_val unchanged(fx_reader *r, const fx_val *args, size_t n_args)
{
    return fx_val_bool(n_args > 0 && fx_same_shape(r->lower, args[0].meta, r->lower->desc.meta));
}

/* Marks a tensor that holds a size: its own shape must not be inferred. */
static fx_val unknown(fx_reader *r, const fx_val *args, size_t n_args)
{
    if (n_args > 0 && args[0].kind == FX_VAL_REF) {
        fx_ge_add_attr(r->lower->ge, args[0].u.ref.op, "_force_unknown_shape", FX_ATTR_BOOL, fx_val_bool(true));
    }
    return n_args > 0 ? args[0] : NONE;
}

/* A tensor whose dtype is written although it is not a result. */
static fx_val typed(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    if (n_args > 1 && args[0].kind == FX_VAL_REF) {
        args[0].u.ref.op->outputs[args[0].u.ref.output].dtype = dtype_number(&args[1]);
    }
    return n_args > 0 ? args[0] : NONE;
}

/* A returned argument, without an output of its own. */
static fx_val alias(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    fx_val value = n_args > 0 ? args[0] : NONE;
    value.is_alias = true;
    return value;
}

/* Copies the record's meta from one value to another: `x` gets the shape of `like`. */
static fx_val like(fx_reader *r, const fx_val *args, size_t n_args)
{
    (void)r;
    fx_val value = n_args > 0 ? args[0] : NONE;
    if (n_args > 1) {
        value.meta = args[1].meta;
    }
    return value;
}

static fx_val raise(fx_reader *r, const fx_val *args, size_t n_args)
{
    char text[256];
    size_t length = 0;
    for (size_t i = 0; i < n_args && length < sizeof text; i++) {
        char number[FX_NUMBER_BYTES];
        fx_double_digits(fx_val_number(&args[i]), 6, number);
        int n = args[i].kind == FX_VAL_TEXT ? snprintf(text + length, sizeof text - length, "%.*s",
                                                       (int)args[i].u.text.length, args[i].u.text.bytes)
                                            : snprintf(text + length, sizeof text - length, "%s", number);
        length += n > 0 ? (size_t)n : 0;
    }
    fx_lower_raise(r->lower, "%s", length > 0 ? text : "not supported");
    return NONE;
}

bool fx_call_function(fx_reader *r, const char *name, size_t length, const fx_val *args, size_t n_args, fx_val *out)
{
    static const struct {
        const char *name;
        function call;
    } FUNCTIONS[] = {
        {"out", out_dtype},
        {"outs", out_dtype},
        {"n_outs", n_outs},
        {"outshape", out_shape},
        {"shape", shape},
        {"rank", rank},
        {"numel", numel},
        {"dynamic", dynamic},
        {"dtype", dtype},
        {"const", make_const},
        {"to", to},
        {"isint", is_int},
        {"isfloat", is_float},
        {"isbool", is_bool},
        {"isnum", is_num},
        {"istensor", is_tensor},
        {"issym", is_sym},
        {"islist", is_list},
        {"isfp", is_fp},
        {"len", len},
        {"range", range},
        {"dim", dim},
        {"max", limit_max},
        {"min", limit_min},
        {"seed", seed},
        {"offset", offset},
        {"like", like},
        {"raise", raise},
        {"promote", promote},
        {"common", common},
        {"sameshape", same_shape},
        {"unknown", unknown},
        {"alias", alias},
        {"typed", typed},
        {"unchanged", unchanged},
    };
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
        if (strlen(FUNCTIONS[i].name) == length && memcmp(FUNCTIONS[i].name, name, length) == 0) {
            *out = FUNCTIONS[i].call(r, args, n_args);
            return true;
        }
    }
    return false;
}
