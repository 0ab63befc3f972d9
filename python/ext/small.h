/*
 * small.h - converts numbers, lists of numbers and strings to the arrays that are saved for them.
 *
 * bool -> bool, int -> int64 (uint64 above 2^63-1), float -> float64, complex -> complex128, all 0-d; a list or tuple
 * of them is one array (n,) of its widest kind, an empty one float64 (0,); a string is a <U array. Integers outside
 * both ranges are not converted.
 */
#ifndef FX_EXT_SMALL_H
#define FX_EXT_SMALL_H

#include "fxtap/tensor.h"
#include "state.h"

typedef struct fx_small {
    fxtap_dtype dtype; /* FXTAP_STRING: `text` */
    int32_t ndim;
    int64_t length; /* in elements; for a string, in bytes */
    void *data;     /* owned, or `inline_data` */
    double inline_data[2];
    PyObject *text; /* owned UTF-8 bytes */
} fx_small;

/* Returns 1 if encoded, 0 if `value` has another type (or is too large an integer), -1 with an exception. */
int fx_small_encode(PyObject *value, fx_small *out);
void fx_small_clear(fx_small *small);

/* A view of `small`, valid as long as `small` exists and is not moved. */
fxtap_view fx_small_view(const fx_small *small);

#endif
