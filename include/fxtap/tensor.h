/*
 * fxtap/tensor.h - strided views of tensors in host memory.
 *
 * A view owns nothing: its memory is borrowed and must stay valid and unchanged while a function (for the dump writer:
 * a queued job) reads it. Strides count elements, not bytes, and may be zero or negative. `data` points at the element
 * whose indices are all zero.
 */
#ifndef FXTAP_TENSOR_H
#define FXTAP_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dtype.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FXTAP_MAX_DIMS 64

#define FXTAP_VIEW_CONJ 1u       /* imaginary parts are negated when read (torch's conj bit) */
#define FXTAP_VIEW_NEG 2u        /* values are negated when read (torch's neg bit) */
#define FXTAP_VIEW_BIG_ENDIAN 4u /* elements are stored most significant byte first */

typedef struct fxtap_view {
    const void *data; /* borrowed; may be NULL only when there are no elements */
    fxtap_dtype dtype;
    int32_t ndim;           /* 0 .. FXTAP_MAX_DIMS */
    uint32_t flags;         /* FXTAP_VIEW_ bits */
    const int64_t *shape;   /* ndim entries, borrowed; may be NULL when ndim is 0 */
    const int64_t *strides; /* ndim entries in elements, borrowed; NULL means row-major contiguous */
} fxtap_view;

/* The memory order of a view: the order of its .npy file. */
typedef enum fxtap_order {
    FXTAP_ORDER_C = 0,       /* row-major contiguous, also everything with at most one element */
    FXTAP_ORDER_FORTRAN = 1, /* column-major contiguous and not row-major: saved in this order */
    FXTAP_ORDER_STRIDED = 2  /* anything else: gathered into row-major when saved */
} fxtap_order;

/* Why elements of a tensor are undefined. */
typedef enum fxtap_undefined { /* fixed values, stored in the index; the larger of two prevails */
                               FXTAP_UNDEFINED_MAYBE = 1,    /* unknown whether they were written */
                               FXTAP_UNDEFINED_DERIVED = 2,  /* computed from elements that were never written */
                               FXTAP_UNDEFINED_UNWRITTEN = 3 /* uninitialised memory */
} fxtap_undefined;

/* A range of undefined elements: positions in the saved form, in file order. */
typedef struct fxtap_undefined_range {
    uint64_t first;
    uint64_t count;
    fxtap_undefined kind;
} fxtap_undefined_range;

/* Number of elements. FXTAP_E_INVALID for a negative extent or a product over 2^63-1. */
FXTAP_API fxtap_status fxtap_view_count(const fxtap_view *view, uint64_t *out);

/* Checks dtype, dimensions, and that the view fits the address space. FXTAP_E_INVALID says what is wrong. */
FXTAP_API fxtap_status fxtap_view_check(const fxtap_view *view);

FXTAP_API fxtap_order fxtap_view_order(const fxtap_view *view);

/* The first byte of the view and the byte after the last, for overlap tests; both NULL if it has no elements. */
FXTAP_API void fxtap_view_extent(const fxtap_view *view, const void **first_out, const void **end_out);

/* Bytes of the saved form: elements * size of the saved dtype (FLOAT4_E2M1FN_X2: two elements a byte). */
FXTAP_API fxtap_status fxtap_view_saved_bytes(const fxtap_view *view, uint64_t *out);

/*
 * Writes `count` elements from position `first` (in row-major order of the view, or in memory order if
 * fxtap_view_order() is FORTRAN) to `dst`, contiguous, in the saved dtype, conj and neg resolved, little-endian.
 * Positions count saved elements. The caller provides count * size of the saved dtype bytes. FXTAP_E_UNSUPPORTED for a
 * dtype without a saved form; FXTAP_E_INVALID if the range is outside the view.
 */
FXTAP_API fxtap_status fxtap_view_gather(const fxtap_view *view, uint64_t first, uint64_t count, void *dst);

#ifdef __cplusplus
}
#endif
#endif
