/*
 * gather.c - copies a strided view's elements in order, in the saved dtype.
 *
 * The raw elements are copied first (packed memory at once; otherwise plane by plane of the two innermost dimensions,
 * after adjacent dimensions were merged), then byte order, dtype and sign are converted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/view.h"
#include "util/error.h"

/* Elements before conversion: fits the stack and the first-level cache. */
#define BLOCK_BYTES 8192

/* The view without dimensions of extent 1, with adjacent ones merged: at least two dimensions, strides in elements. */
typedef struct layout {
    const char *data;
    size_t size; /* bytes of an element */
    int32_t ndim;
    int64_t shape[FXTAP_MAX_DIMS + 2];
    int64_t strides[FXTAP_MAX_DIMS + 2];
} layout;

static void push_dim(layout *out, int64_t extent, int64_t stride)
{
    out->shape[out->ndim] = extent;
    out->strides[out->ndim++] = stride;
}

static void reduce(const fxtap_view *view, layout *out)
{
    out->data = view->data;
    out->size = fxtap_dtype_size(view->dtype);
    out->ndim = 0;
    push_dim(out, 1, 0);
    push_dim(out, 1, 0);
    for (int32_t i = 0; i < view->ndim; i++) {
        int64_t extent = view->shape[i];
        int64_t stride = view->strides[i];
        int64_t *last_extent = &out->shape[out->ndim - 1];
        int64_t *last_stride = &out->strides[out->ndim - 1];
        if (extent == 1) {
            continue;
        }
        if (*last_extent > 1 && *last_stride == stride * extent) {
            *last_extent *= extent;
            *last_stride = stride;
        } else {
            push_dim(out, extent, stride);
        }
    }
}

/*
 * Copies a rectangle of `rows` x `columns` into packed rows. If elements of a column are closer than those of a row (a
 * transpose), it is copied in tiles, so that a whole cache line of a column is read before it is evicted. Elements may
 * be unaligned: memcpy of a constant size is one load and one store.
 */
#define TILE_ROWS 16
#define TILE_COLUMNS 8

#define DEFINE_COPY(NAME, SIZE)                                                                                        \
    static void copy_row_##NAME(char *dst, const char *src, int64_t n, ptrdiff_t step)                                 \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            memcpy(dst + i * SIZE, src + i * step, SIZE);                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void copy_tile_##NAME(char *dst, ptrdiff_t pitch, const char *src, int64_t rows, ptrdiff_t row_step,        \
                                 int64_t columns, ptrdiff_t step)                                                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            for (int64_t j = 0; j < columns; j++) {                                                                    \
                memcpy(dst + i * pitch + j * SIZE, src + i * row_step + j * step, SIZE);                               \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void copy_full_tile_##NAME(char *dst, ptrdiff_t pitch, const char *src, ptrdiff_t row_step, ptrdiff_t step) \
    {                                                                                                                  \
        copy_tile_##NAME(dst, pitch, src, TILE_ROWS, row_step, TILE_COLUMNS, step);                                    \
    }

DEFINE_COPY(1, 1)
DEFINE_COPY(2, 2)
DEFINE_COPY(4, 4)
DEFINE_COPY(8, 8)
DEFINE_COPY(16, 16)

typedef struct copy_kernels {
    void (*row)(char *dst, const char *src, int64_t n, ptrdiff_t step);
    void (*tile)(char *dst, ptrdiff_t pitch, const char *src, int64_t rows, ptrdiff_t row_step, int64_t columns,
                 ptrdiff_t step);
    void (*full_tile)(char *dst, ptrdiff_t pitch, const char *src, ptrdiff_t row_step, ptrdiff_t step);
} copy_kernels;

static copy_kernels kernels_of(size_t size)
{
    switch (size) {
    case 1:
        return (copy_kernels){copy_row_1, copy_tile_1, copy_full_tile_1};
    case 2:
        return (copy_kernels){copy_row_2, copy_tile_2, copy_full_tile_2};
    case 4:
        return (copy_kernels){copy_row_4, copy_tile_4, copy_full_tile_4};
    case 8:
        return (copy_kernels){copy_row_8, copy_tile_8, copy_full_tile_8};
    default:
        return (copy_kernels){copy_row_16, copy_tile_16, copy_full_tile_16};
    }
}

static void copy_transposed(const copy_kernels *copy, size_t size, char *dst, const char *src, int64_t rows,
                            ptrdiff_t row_step, int64_t columns, ptrdiff_t step)
{
    ptrdiff_t pitch = (ptrdiff_t)columns * (ptrdiff_t)size;
    for (int64_t i = 0; i < rows; i += TILE_ROWS) {
        int64_t n_rows = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
        for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
            int64_t n_columns = columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS;
            char *to = dst + i * pitch + j * (ptrdiff_t)size;
            const char *from = src + i * row_step + j * step;
            if (n_rows == TILE_ROWS && n_columns == TILE_COLUMNS) {
                copy->full_tile(to, pitch, from, row_step, step);
            } else {
                copy->tile(to, pitch, from, n_rows, row_step, n_columns, step);
            }
        }
    }
}

static void copy_rows(size_t size, char *dst, const char *src, int64_t rows, ptrdiff_t row_step, int64_t columns,
                      ptrdiff_t step)
{
    copy_kernels copy = kernels_of(size);
    if (step != (ptrdiff_t)size && rows > 1 && llabs(row_step) < llabs(step)) {
        copy_transposed(&copy, size, dst, src, rows, row_step, columns, step);
        return;
    }
    size_t row_bytes = (size_t)columns * size;
    for (int64_t i = 0; i < rows; i++) {
        if (step == (ptrdiff_t)size) {
            memcpy(dst + (size_t)i * row_bytes, src + i * row_step, row_bytes);
        } else {
            copy.row(dst + (size_t)i * row_bytes, src + i * row_step, columns, step);
        }
    }
}

/* Elements [first, first + count) of the plane of the two innermost dimensions that begins at `src`. */
static void copy_plane(const layout *from, const char *src, int64_t first, int64_t count, char *dst)
{
    ptrdiff_t size = (ptrdiff_t)from->size;
    int64_t columns = from->shape[from->ndim - 1];
    ptrdiff_t step = (ptrdiff_t)from->strides[from->ndim - 1] * size;
    ptrdiff_t row_step = (ptrdiff_t)from->strides[from->ndim - 2] * size;
    int64_t row = first / columns;
    int64_t column = first % columns;
    while (count > 0) {
        const char *at = src + row * row_step + column * step;
        int64_t n_rows = column == 0 && count >= columns ? count / columns : 1;
        int64_t rest = columns - column < count ? columns - column : count;
        copy_rows(from->size, dst, at, n_rows, row_step, rest, step);
        dst += n_rows * rest * size;
        count -= n_rows * rest;
        row += n_rows;
        column = 0;
    }
}

/* Elements [first, first + count) in row-major order. */
static void copy_strided(const layout *from, uint64_t first, uint64_t count, char *dst)
{
    int64_t index[FXTAP_MAX_DIMS + 2];
    uint64_t plane = (uint64_t)from->shape[from->ndim - 1] * (uint64_t)from->shape[from->ndim - 2];
    uint64_t outer = first / plane;
    uint64_t start = first % plane;
    ptrdiff_t offset = 0;
    for (int32_t i = from->ndim - 3; i >= 0; i--) {
        index[i] = (int64_t)(outer % (uint64_t)from->shape[i]);
        outer /= (uint64_t)from->shape[i];
        offset += (ptrdiff_t)(index[i] * from->strides[i]);
    }
    while (count > 0) {
        uint64_t n = plane - start < count ? plane - start : count;
        copy_plane(from, from->data + offset * (ptrdiff_t)from->size, (int64_t)start, (int64_t)n, dst);
        dst += n * from->size;
        count -= n;
        start = 0;
        for (int32_t i = from->ndim - 3; i >= 0; i--) {
            offset += (ptrdiff_t)from->strides[i];
            if (++index[i] < from->shape[i]) {
                break;
            }
            offset -= (ptrdiff_t)(from->strides[i] * from->shape[i]);
            index[i] = 0;
        }
    }
}

static void swap_bytes(char *bytes, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        char *item = bytes + i * size;
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            char kept = item[a];
            item[a] = item[b];
            item[b] = kept;
        }
    }
}

/* Number of parts of an element with their own byte order and sign. */
static size_t parts_of(fxtap_dtype dtype)
{
    return fxtap_dtype_class_of(dtype) == FXTAP_CLASS_COMPLEX ? 2 : 1;
}

/* The sign bit is the top bit of the last byte in little-endian. */
static void flip_signs(char *bytes, size_t n, size_t size, size_t step)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i * step + size - 1] = (char)(bytes[i * step + size - 1] ^ (char)0x80);
    }
}

static void negate_integers(char *bytes, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        memcpy(&value, bytes + i * size, size);
        value = 0 - value;
        memcpy(bytes + i * size, &value, size);
    }
}

/* conj and neg, on `n` elements of a saved dtype. */
static void resolve_signs(fxtap_dtype saved, uint32_t flags, char *bytes, size_t n)
{
    size_t parts = parts_of(saved);
    size_t size = fxtap_dtype_size(saved) / parts;
    fxtap_dtype_class class_of = fxtap_dtype_class_of(saved);
    if ((flags & FXTAP_VIEW_NEG) != 0 && (class_of == FXTAP_CLASS_INT || class_of == FXTAP_CLASS_UINT)) {
        negate_integers(bytes, n, size);
    } else if ((flags & FXTAP_VIEW_NEG) != 0) {
        flip_signs(bytes, n * parts, size, size);
    }
    if ((flags & FXTAP_VIEW_CONJ) != 0 && class_of == FXTAP_CLASS_COMPLEX) {
        flip_signs(bytes + size, n, size, size * 2);
    }
}

typedef struct gather_job {
    const fxtap_view *view;
    layout from;
    bool packed;
} gather_job;

static void copy_raw(const gather_job *job, uint64_t first, uint64_t count, char *dst)
{
    size_t size = fxtap_dtype_size(job->view->dtype);
    if (job->packed) {
        memcpy(dst, (const char *)job->view->data + first * size, count * size);
    } else {
        copy_strided(&job->from, first, count, dst);
    }
    size_t parts = parts_of(job->view->dtype);
    if ((job->view->flags & FXTAP_VIEW_BIG_ENDIAN) != 0 && size / parts > 1) {
        swap_bytes(dst, count * parts, size / parts);
    }
}

/* Copies and converts `count` elements (pairs, for float4). */
static void copy_converted(const gather_job *job, uint64_t first, uint64_t count, char *dst)
{
    fxtap_dtype dtype = job->view->dtype;
    size_t size = fxtap_dtype_size(dtype);
    size_t saved_size = fxtap_dtype_size(fxtap_dtype_saved(dtype)) * (dtype == FXTAP_FLOAT4_E2M1FN_X2 ? 2 : 1);
    if (job->packed && (job->view->flags & FXTAP_VIEW_BIG_ENDIAN) == 0) {
        fx_convert_to_saved(dtype, (const char *)job->view->data + first * size, count, dst);
        return;
    }
    char block[BLOCK_BYTES];
    while (count > 0) {
        uint64_t n = count < BLOCK_BYTES / size ? count : BLOCK_BYTES / size;
        copy_raw(job, first, n, block);
        fx_convert_to_saved(dtype, block, n, dst);
        dst += n * saved_size;
        first += n;
        count -= n;
    }
}

/* Saved elements of float4 pairs: the range may begin and end inside a pair. */
static void gather_pairs(const gather_job *job, uint64_t first, uint64_t count, char *dst)
{
    char pair[8];
    if (count > 0 && first % 2 == 1) {
        copy_converted(job, first / 2, 1, pair);
        memcpy(dst, pair + 4, 4);
        dst += 4;
        first++;
        count--;
    }
    copy_converted(job, first / 2, count / 2, dst);
    if (count % 2 == 1) {
        copy_converted(job, (first + count) / 2, 1, pair);
        memcpy(dst + (count - 1) * 4, pair, 4);
    }
}

static fxtap_status check_request(const fxtap_view *view, uint64_t first, uint64_t count)
{
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (fxtap_dtype_saved(view->dtype) == FXTAP_DTYPE_NONE) {
        return fx_error(FXTAP_E_UNSUPPORTED, "dtype %s has no saved form", fxtap_dtype_name(view->dtype));
    }
    uint64_t n = fx_view_saved_count(view);
    if (first > n || count > n - first) {
        return fx_error(FXTAP_E_INVALID, "%" PRIu64 " elements from %" PRIu64 " on are outside a view of %" PRIu64,
                        count, first, n);
    }
    return FXTAP_OK;
}

static fxtap_status gather(const fxtap_view *view, bool packed, uint64_t first, uint64_t count, void *dst)
{
    gather_job job = {.view = view, .packed = packed};
    if (!job.packed) {
        reduce(view, &job.from);
    }
    fxtap_dtype saved = fxtap_dtype_saved(view->dtype);
    if (view->dtype == FXTAP_FLOAT4_E2M1FN_X2) {
        gather_pairs(&job, first, count, dst);
    } else if (fxtap_dtype_size(saved) == fxtap_dtype_size(view->dtype)) {
        copy_raw(&job, first, count, dst);
    } else {
        copy_converted(&job, first, count, dst);
    }
    if ((view->flags & (FXTAP_VIEW_CONJ | FXTAP_VIEW_NEG)) != 0) {
        resolve_signs(saved, view->flags, dst, count);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_view_gather(const fxtap_view *view, uint64_t first, uint64_t count, void *dst)
{
    FX_REQUIRE(view);
    fxtap_status status = check_request(view, first, count);
    if (status != FXTAP_OK || count == 0) {
        return status;
    }
    FX_REQUIRE(dst);
    return gather(view, fxtap_view_order(view) != FXTAP_ORDER_STRIDED, first, count, dst);
}

fxtap_status fx_view_gather_rows(const fxtap_view *view, uint64_t first, uint64_t count, void *dst)
{
    fxtap_status status = check_request(view, first, count);
    if (status != FXTAP_OK || count == 0) {
        return status;
    }
    return gather(view, fxtap_view_order(view) == FXTAP_ORDER_C, first, count, dst);
}
