/*
 * view.h - functions on views for the rest of the library, in addition to fxtap/tensor.h.
 */
#ifndef FX_TENSOR_VIEW_H
#define FX_TENSOR_VIEW_H

#include "fxtap/tensor.h"

/* The shape of the saved form, view->ndim entries: that of the view; for float4 pairs the last axis is doubled. */
void fx_view_saved_shape(const fxtap_view *view, int64_t out[FXTAP_MAX_DIMS]);

/* Number of elements of the saved form. The view has passed fxtap_view_check(). */
uint64_t fx_view_saved_count(const fxtap_view *view);

/*
 * fxtap_view_gather() always in row-major order, also for column-major views: the order in which the elements of two
 * views of the same shape correspond.
 */
fxtap_status fx_view_gather_rows(const fxtap_view *view, uint64_t first, uint64_t count, void *dst);

/* Row-major (with `fortran`: column-major) strides in elements of a shape that fxtap_view_count() accepts. */
void fx_contiguous_strides(int32_t ndim, const int64_t *shape, bool fortran, int64_t *out);

/*
 * True if the memory from view->data on is already the saved form byte for byte (in the order that fxtap_view_order()
 * returns), so that it can be written without a gather.
 */
bool fx_view_is_saved_form(const fxtap_view *view);

#endif
