/*
 * histogram.c - equal bins over a range, block by block.
 */
#include <math.h>
#include <string.h>

#include "tensor/stats.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"

#define BLOCK_ELEMS 4096
#define CHUNK 256

typedef struct bin_range {
    long double low;
    long double high;
    long double bins_per_unit;
    size_t n_bins;
    uint64_t *bins;
} bin_range;

/* long double: high - low may be over the range of float64, and the product needs more bits than the value has. */
static void count_value(const bin_range *range, double value)
{
    if (!(value >= range->low && value <= range->high)) {
        return;
    }
    size_t bin = (size_t)((value - range->low) * range->bins_per_unit);
    range->bins[bin < range->n_bins ? bin : range->n_bins - 1]++;
}

static void count_chunk(const bin_range *range, fxtap_dtype saved, const void *elements, size_t n)
{
    double values[2 * CHUNK];
    if (fxtap_dtype_class_of(saved) == FXTAP_CLASS_COMPLEX) {
        fx_values_to_c128(saved, elements, n, values);
        for (size_t i = 0; i < n; i++) {
            values[i] = isfinite(values[2 * i]) && isfinite(values[2 * i + 1])
                            ? hypot(values[2 * i], values[2 * i + 1])
                            : (double)NAN;
        }
    } else {
        fx_values_to_f64(saved, elements, n, values);
    }
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            count_value(range, values[i]);
        }
    }
}

static void count_block(const bin_range *range, fxtap_dtype saved, const void *elements, size_t n)
{
    for (size_t done = 0; done < n; done += CHUNK) {
        const unsigned char *at = (const unsigned char *)elements + done * fxtap_dtype_size(saved);
        count_chunk(range, saved, at, n - done < CHUNK ? n - done : CHUNK);
    }
}

static fxtap_status count_gathered(const bin_range *range, const fxtap_view *view, uint64_t n_saved)
{
    fxtap_dtype saved = fxtap_dtype_saved(view->dtype);
    size_t block_elems = n_saved < BLOCK_ELEMS ? (size_t)n_saved : BLOCK_ELEMS;
    fxtap_status status = FXTAP_OK;
    void *block = fx_alloc(block_elems * fxtap_dtype_size(saved));
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (uint64_t done = 0; done < n_saved && status == FXTAP_OK; done += block_elems) {
        size_t n = n_saved - done < block_elems ? (size_t)(n_saved - done) : block_elems;
        status = fxtap_view_gather(view, done, n, block);
        if (status == FXTAP_OK) {
            count_block(range, saved, block, n);
        }
    }
    fx_free(block);
    return status;
}

static fxtap_status check_request(const fxtap_view *view, double low, double high, size_t n_bins)
{
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!fx_stats_known(view->dtype)) {
        return fx_error(FXTAP_E_UNSUPPORTED, "no histogram of elements of type %s", fxtap_dtype_name(view->dtype));
    }
    if (!isfinite(low) || !isfinite(high) || low > high) {
        return fx_error(FXTAP_E_INVALID, "a histogram from %g to %g has no range", low, high);
    }
    if (n_bins == 0) {
        return fx_error(FXTAP_E_INVALID, "a histogram needs at least one bin");
    }
    return FXTAP_OK;
}

static fxtap_status count_bins(const fxtap_view *view, double low, double high, size_t n_bins, uint64_t *bins)
{
    bin_range range = {.low = low, .high = high, .n_bins = n_bins};
    range.bins_per_unit = range.low < range.high ? (long double)n_bins / (range.high - range.low) : 0;
    uint64_t n_saved = fx_view_saved_count(view);
    bool in_place = fx_view_is_saved_form(view);
    range.bins = in_place ? bins : fx_calloc(n_bins, sizeof *bins); /* `bins` is untouched on failure */
    if (range.bins == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (in_place) {
        memset(bins, 0, n_bins * sizeof *bins);
        count_block(&range, fxtap_dtype_saved(view->dtype), view->data, (size_t)n_saved);
        return FXTAP_OK;
    }
    fxtap_status status = count_gathered(&range, view, n_saved);
    if (status == FXTAP_OK) {
        memcpy(bins, range.bins, n_bins * sizeof *bins);
    }
    fx_free(range.bins);
    return status;
}

fxtap_status fxtap_stats_histogram(const fxtap_view *view, double low, double high, size_t n_bins, uint64_t *bins)
{
    fxtap_status status = check_request(view, low, high, n_bins);
    if (status == FXTAP_OK) {
        fx_float_mode callers = fx_float_mode_begin();
        status = count_bins(view, low, high, n_bins, bins);
        fx_float_mode_end(callers);
    }
    return status;
}
