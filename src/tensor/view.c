#include "tensor/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

#define KNOWN_FLAGS (FXTAP_VIEW_CONJ | FXTAP_VIEW_NEG | FXTAP_VIEW_BIG_ENDIAN)

static fxtap_status check_dims(const fxtap_view *view)
{
    if (view->ndim < 0 || view->ndim > FXTAP_MAX_DIMS) {
        return fx_error(FXTAP_E_INVALID, "a view has %" PRId32 " dimensions: 0 to %d are allowed", view->ndim,
                        FXTAP_MAX_DIMS);
    }
    if (view->ndim > 0 && view->shape == NULL) {
        return fx_error(FXTAP_E_INVALID, "a view of %" PRId32 " dimensions without a shape", view->ndim);
    }
    for (int32_t i = 0; i < view->ndim; i++) {
        if (view->shape[i] < 0) {
            return fx_error(FXTAP_E_INVALID, "dimension %" PRId32 " of a view is %" PRId64, i, view->shape[i]);
        }
    }
    return FXTAP_OK;
}

static bool has_zero_extent(const fxtap_view *view)
{
    for (int32_t i = 0; i < view->ndim; i++) {
        if (view->shape[i] == 0) {
            return true;
        }
    }
    return false;
}

/* A zero extent makes the product zero, even if the others overflow. */
fxtap_status fxtap_view_count(const fxtap_view *view, uint64_t *out)
{
    FX_REQUIRE(view);
    FX_REQUIRE(out);
    fxtap_status status = check_dims(view);
    if (status != FXTAP_OK) {
        return status;
    }
    uint64_t count = has_zero_extent(view) ? 0 : 1;
    for (int32_t i = 0; i < view->ndim && count > 0; i++) {
        if (!fx_mul_u64(count, (uint64_t)view->shape[i], &count) || count > INT64_MAX) {
            return fx_error(FXTAP_E_INVALID, "the extents of a view multiply to more than 2^63-1 elements");
        }
    }
    *out = count;
    return FXTAP_OK;
}

/*
 * Offsets in elements of the lowest and highest element, relative to the one with all indices zero; the view is not
 * empty. False on overflow.
 */
static bool offset_range(const fxtap_view *view, int64_t *low_out, int64_t *high_out)
{
    int64_t low = 0;
    int64_t high = 0;
    for (int32_t i = 0; i < view->ndim; i++) {
        int64_t reach;
        if (!fx_mul_i64(view->shape[i] - 1, view->strides[i], &reach) ||
            !fx_add_i64(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    *low_out = low;
    *high_out = high;
    return true;
}

static fxtap_status check_range(const fxtap_view *view, uint64_t count)
{
    int64_t size = (int64_t)fxtap_dtype_size(view->dtype);
    int64_t low = 0;
    int64_t high = (int64_t)count - 1;
    bool fits = view->strides == NULL || offset_range(view, &low, &high);
    int64_t span;
    fits = fits && fx_sub_i64(high, low, &span) && fx_add_i64(span, 1, &span) && fx_mul_i64(span, size, &span) &&
           fx_mul_i64(low, size, &low);
    /* The saved form may be larger: no type grows more than eightfold (a float4 pair). */
    if (!fits || span > PTRDIFF_MAX || count > (uint64_t)PTRDIFF_MAX / 16) {
        return fx_error(FXTAP_E_INVALID, "a view extends beyond the address space");
    }
    return FXTAP_OK;
}

static fxtap_status check_type(const fxtap_view *view)
{
    const char *name = fxtap_dtype_name(view->dtype);
    if (name[0] == '\0') {
        return fx_error(FXTAP_E_INVALID, "a view has unknown dtype %d", (int)view->dtype);
    }
    if (fxtap_dtype_size(view->dtype) == 0) {
        return fx_error(FXTAP_E_INVALID, "a view cannot have dtype %s, whose elements have no size", name);
    }
    if ((view->flags & ~KNOWN_FLAGS) != 0) {
        return fx_error(FXTAP_E_INVALID, "a view has unknown flags 0x%" PRIx32, view->flags);
    }
    if (view->dtype == FXTAP_BOOL && (view->flags & FXTAP_VIEW_NEG) != 0) {
        return fx_error(FXTAP_E_INVALID, "a view of bool cannot be negated");
    }
    if (view->dtype == FXTAP_FLOAT4_E2M1FN_X2 && view->ndim == 0) {
        return fx_error(FXTAP_E_INVALID, "a view of %s needs an axis to unpack along", name);
    }
    if (view->dtype == FXTAP_FLOAT4_E2M1FN_X2 && view->shape[view->ndim - 1] > INT64_MAX / 2) {
        return fx_error(FXTAP_E_INVALID, "a view of %s is too large to unpack", name);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_view_check(const fxtap_view *view)
{
    FX_REQUIRE(view);
    uint64_t count;
    fxtap_status status = fxtap_view_count(view, &count);
    if (status == FXTAP_OK) {
        status = check_type(view);
    }
    if (status != FXTAP_OK || count == 0) {
        return status;
    }
    if (view->data == NULL) {
        return fx_error(FXTAP_E_INVALID, "a view of %" PRIu64 " elements without data", count);
    }
    return check_range(view, count);
}

static bool is_packed(const fxtap_view *view, bool fortran)
{
    int64_t expected = 1;
    for (int32_t k = 0; k < view->ndim; k++) {
        int32_t i = fortran ? k : view->ndim - 1 - k;
        if (view->shape[i] != 1 && view->strides[i] != expected) {
            return false;
        }
        if (!fx_mul_i64(expected, view->shape[i], &expected)) {
            return false;
        }
    }
    return true;
}

/* float4 is unpacked along its last axis, so only row-major pairs are in saved order. */
fxtap_order fxtap_view_order(const fxtap_view *view)
{
    if (view->strides == NULL || has_zero_extent(view) || is_packed(view, false)) {
        return FXTAP_ORDER_C;
    }
    if (view->dtype != FXTAP_FLOAT4_E2M1FN_X2 && is_packed(view, true)) {
        return FXTAP_ORDER_FORTRAN;
    }
    return FXTAP_ORDER_STRIDED;
}

void fxtap_view_extent(const fxtap_view *view, const void **first_out, const void **end_out)
{
    uint64_t count;
    int64_t low = 0;
    int64_t high;
    *first_out = *end_out = NULL;
    if (fxtap_view_count(view, &count) != FXTAP_OK || count == 0 || view->data == NULL) {
        return;
    }
    high = (int64_t)count - 1;
    if (view->strides != NULL && !offset_range(view, &low, &high)) {
        return;
    }
    ptrdiff_t size = (ptrdiff_t)fxtap_dtype_size(view->dtype);
    *first_out = (const char *)view->data + low * size;
    *end_out = (const char *)view->data + (high + 1) * size;
}

static uint64_t saved_per_element(fxtap_dtype dtype)
{
    return dtype == FXTAP_FLOAT4_E2M1FN_X2 ? 2 : 1;
}

uint64_t fx_view_saved_count(const fxtap_view *view)
{
    uint64_t count = 0;
    fxtap_view_count(view, &count);
    return count * saved_per_element(view->dtype);
}

fxtap_status fxtap_view_saved_bytes(const fxtap_view *view, uint64_t *out)
{
    FX_REQUIRE(view);
    FX_REQUIRE(out);
    uint64_t bytes;
    fxtap_status status = fxtap_view_count(view, &bytes);
    if (status != FXTAP_OK) {
        return status;
    }
    uint64_t item = fxtap_dtype_size(fxtap_dtype_saved(view->dtype)) * saved_per_element(view->dtype);
    if (!fx_mul_u64(bytes, item, &bytes) || bytes > INT64_MAX) {
        return fx_error(FXTAP_E_INVALID, "a view is saved as more than 2^63-1 bytes");
    }
    *out = bytes;
    return FXTAP_OK;
}

void fx_view_saved_shape(const fxtap_view *view, int64_t out[FXTAP_MAX_DIMS])
{
    for (int32_t i = 0; i < view->ndim; i++) {
        out[i] = view->shape[i];
    }
    if (view->ndim > 0) {
        out[view->ndim - 1] *= (int64_t)saved_per_element(view->dtype);
    }
}

void fx_contiguous_strides(int32_t ndim, const int64_t *shape, bool fortran, int64_t *out)
{
    int64_t stride = 1;
    for (int32_t k = 0; k < ndim; k++) {
        int32_t i = fortran ? k : ndim - 1 - k;
        out[i] = stride;
        int64_t next;
        if (shape[i] > 0 && fx_mul_i64(stride, shape[i], &next)) {
            stride = next; /* only the product of an empty array overflows, and its strides are not used */
        }
    }
}

bool fx_view_is_saved_form(const fxtap_view *view)
{
    fxtap_dtype saved = fxtap_dtype_saved(view->dtype);
    uint32_t flags = view->flags;
    if (fxtap_dtype_class_of(view->dtype) != FXTAP_CLASS_COMPLEX) {
        flags &= ~FXTAP_VIEW_CONJ;
    }
    if (fxtap_dtype_size(view->dtype) == 1) {
        flags &= ~FXTAP_VIEW_BIG_ENDIAN;
    }
    bool same_bytes = saved == view->dtype || view->dtype == FXTAP_BITS8 || view->dtype == FXTAP_BITS16;
    return same_bytes && flags == 0 && fxtap_view_order(view) != FXTAP_ORDER_STRIDED;
}
