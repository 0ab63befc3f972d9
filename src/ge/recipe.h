/*
 * recipe.h - the language of recipes/, which defines how ATen operators are lowered.
 *
 * A recipe is a small program over the operator's arguments. It is interpreted each time; nothing is compiled.
 *
 *   program     statements separated by ";"; the value of the last expression, or of `return`, is the result
 *   statement   name = expression
 *               a, b = expression            the parts of a list
 *               if expression { program } else { program }
 *               for name in expression { program }
 *               return expression
 *   expression  c ? a : b,  or, and, not,  == != < > <= >= in,  + - *, / and % of integers,  unary -,  x[i],  x[i:j]
 *               literals as in Python: 1, 2.5, 'text', True, False, None, inf, nan, [a, b], (a,)
 *   Relu(x, attr=v)   an upper-case name calls the GE operator: literals become Consts, a list comes back where it
 *               has several outputs. Names of GE dtypes (f32 f16 bf16 i8 u8 i16 i32 i64 f64 bool c64 ...) are values.
 *
 * Functions (x a tensor unless said otherwise):
 *   out, outs(i)          dtype of the node's result, of its i-th result
 *   const(v, d)           a Const made here and now, shown as ge.Const(v, dtype=d)
 *   to(x, d)              x cast to d where its dtype is not known to be d; of a number: const(x, d)
 *   dtype(x)              GE dtype, 28 where unknown     rank(x), shape(x), numel(x)   by the record; -1 symbolic
 *   outshape(i)           shape of the i-th result       n_outs()                      how many results
 *   dynamic(x)            has a symbolic dimension
 *   isnum(v) isint(v) isfloat(v) isbool(v) istensor(v) issym(v) isfp(d)
 *   len(l) range(n) range(a, b) dim(i, rank)             dim: a negative axis made positive
 *   max(d), min(d)        of a dtype: infinities for floats, limits for integers
 *   common(x, v)          the dtype in which torch would have two operands meet; promote(d, e) the same of dtypes
 *   sameshape(x, y)       the record says so
 *   unchanged(x)          the result has x's own shape
 *   like(x, y)            x, of which holds what the record says of y
 *   alias(x)              an argument given back as it is
 *   typed(x, d)           x, whose dtype is written down as d
 *   unknown(x)            x, marked as a size: its own shape is not to be inferred
 *   seed(), offset()      of the random operators
 *   raise('text', ...)    the operator cannot be lowered
 */
#ifndef FX_GE_RECIPE_H
#define FX_GE_RECIPE_H

#include "ge/lower.h"

#define FX_MAX_NAMES 64

typedef struct fx_scope {
    struct {
        const char *name;
        size_t length;
        fx_val value;
    } names[FX_MAX_NAMES];
    size_t n;
} fx_scope;

typedef struct fx_reader {
    fx_lower *lower;
    fx_scope *scope;
    const char *at;
    bool skip; /* parse without effect: a branch not taken */
    bool returned;
    fx_val result;
} fx_reader;

fx_val fx_read_expression(fx_reader *reader);
void fx_read_program(fx_reader *reader); /* up to the end of the text or an unmatched "}" */
bool fx_scope_set(fx_reader *reader, const char *name, size_t length, const fx_val *value);
const fx_val *fx_scope_get(const fx_scope *scope, const char *name, size_t length);

/* recipe_functions.c: a call of a lower-case function; false for an unknown name. */
bool fx_call_function(fx_reader *reader, const char *name, size_t length, const fx_val *args, size_t n_args,
                      fx_val *out);
/* recipe_values.c */
bool fx_val_truth(const fx_val *value);
bool fx_val_equal(const fx_val *a, const fx_val *b);
double fx_val_number(const fx_val *value);
fx_val fx_val_int(int64_t i);
fx_val fx_val_bool(bool b);
fx_val fx_val_dtype(int dtype);
fx_val fx_val_ref(fx_ref ref);
fx_val fx_val_text(const char *text);
fx_val fx_val_list(fx_lower *lower, const fx_val *items, size_t n);

#endif
