/*
 * small.h - numbers, lists of numbers and strings as the arrays that a dump has of them.
 *
 * bool -> bool, int -> int64 (uint64 beyond 2^63-1), float -> float64, complex -> complex128, all 0-d; a list or
 * tuple of them is one array (n,) of the widest kind in it, an empty one float64 (0,); a string is a <U array.
 * Integers that fit neither have no array.
 */
#ifndef FX_EXT_SMALL_H
#define FX_EXT_SMALL_H

#include "fxtap/tensor.h"
#include "state.h"

typedef struct fx_small {
    fxtap_dtype dtype; /* FXTAP_STRING: `text` */
    int32_t ndim;
    int64_t length;    /* elements; of a string, bytes */
    void *data;        /* owned, or `inline_data` */
    double inline_data[2];
    PyObject *text;    /* owned UTF-8 bytes */
} fx_small;

/* 1 encoded, 0 not of these kinds (or too large an integer), -1 with an exception. */
int fx_small_encode(PyObject *value, fx_small *out);
void fx_small_clear(fx_small *small);

/* A view of it, which lives as long as it and does not move. */
fxtap_view fx_small_view(const fx_small *small);

#endif
