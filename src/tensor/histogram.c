/*
 * histogram.c - equal bins over a range, block by block.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/stats.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"
#include "util/number.h"

#define BLOCK_ELEMS 4096
#define CHUNK 256

typedef struct bin_range {
    long double low;
    long double high;
    long double bins_per_unit;
    double rough_low;
    double rough_bins_per_unit; /* NaN if float64 has too few bits for it */
    double margin;              /* of a bin: more than the rounding error of float64 */
    size_t n_bins;
    uint64_t *bins;
} bin_range;

static void set_range(bin_range *range, double low, double high, size_t n_bins)
{
    *range = (bin_range){.low = low, .high = high, .n_bins = n_bins, .rough_low = low};
    range->bins_per_unit = low < high ? (long double)n_bins / (range->high - range->low) : 0;
    range->rough_bins_per_unit = (double)range->bins_per_unit;
    if (!(range->rough_bins_per_unit >= DBL_MIN)) {
        range->rough_bins_per_unit = (double)NAN;
    }
    range->margin = 4 * DBL_EPSILON * (double)n_bins;
}

/* long double: high - low may exceed float64, and the product needs more bits than the value has. */
static void count_exactly(const bin_range *range, double value, uint64_t n)
{
    if (!(value >= range->low && value <= range->high)) {
        return;
    }
    size_t bin = (size_t)((value - range->low) * range->bins_per_unit);
    range->bins[bin < range->n_bins ? bin : range->n_bins - 1] += n;
}

/* In float64, which is ten times as fast, unless the value is near a bin border or in no bin. */
static inline void count_value(const bin_range *range, double value)
{
    double place = (value - range->rough_low) * range->rough_bins_per_unit;
    if (place > 0 && place < (double)range->n_bins) {
        size_t bin = (size_t)place;
        double part = place - (double)bin;
        if (part > range->margin && part < 1 - range->margin) {
            range->bins[bin]++;
            return;
        }
    }
    count_exactly(range, value, 1);
}

static void count_chunk(const bin_range *range, fxtap_dtype saved, const void *elements, size_t n)
{
    double values[2 * CHUNK];
    if (fxtap_dtype_class_of(saved) == FXTAP_CLASS_COMPLEX) {
        fx_values_to_c128(saved, elements, n, values);
        for (size_t i = 0; i < n; i++) {
            values[i] = isfinite(values[2 * i]) && isfinite(values[2 * i + 1]) ? hypot(values[2 * i], values[2 * i + 1])
                                                                               : (double)NAN;
        }
    } else {
        fx_values_to_f64(saved, elements, n, values);
    }
    for (size_t i = 0; i < n; i++) {
        count_value(range, values[i]);
    }
}

/* Elements of one byte: each value is counted first, then the counts are added to bins. */
static void count_bytes(const bin_range *range, fxtap_dtype saved, const unsigned char *bytes, size_t n)
{
    uint64_t counts[256] = {0};
    unsigned char codes[256];
    double values[256];
    for (size_t i = 0; i < n; i++) {
        counts[bytes[i]]++;
    }
    for (size_t i = 0; i < sizeof codes; i++) {
        codes[i] = (unsigned char)i;
    }
    fx_values_to_f64(saved, codes, sizeof codes, values);
    for (size_t i = 0; i < sizeof codes; i++) {
        count_exactly(range, values[i], counts[i]);
    }
}

static void count_block(const bin_range *range, fxtap_dtype saved, const void *elements, size_t n)
{
    if (fxtap_dtype_size(saved) == 1) {
        count_bytes(range, saved, elements, n);
        return;
    }
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
    if (!fx_stats_defined(view->dtype)) {
        return fx_error(FXTAP_E_UNSUPPORTED, "no histogram for elements of type %s", fxtap_dtype_name(view->dtype));
    }
    if (!isfinite(low) || !isfinite(high) || low > high) {
        char from[FX_NUMBER_BYTES], to[FX_NUMBER_BYTES];
        fx_double_digits(low, 6, from);
        fx_double_digits(high, 6, to);
        return fx_error(FXTAP_E_INVALID, "invalid histogram range: %s to %s", from, to);
    }
    if (n_bins == 0) {
        return fx_error(FXTAP_E_INVALID, "a histogram needs at least one bin");
    }
    return FXTAP_OK;
}

static fxtap_status count_bins(const fxtap_view *view, double low, double high, size_t n_bins, uint64_t *bins)
{
    bin_range range;
    set_range(&range, low, high, n_bins);
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
    FX_REQUIRE(view);
    FX_REQUIRE(bins);
    fxtap_status status = check_request(view, low, high, n_bins);
    if (status == FXTAP_OK) {
        fx_float_mode callers = fx_float_mode_begin();
        status = count_bins(view, low, high, n_bins, bins);
        fx_float_mode_end(callers);
    }
    return status;
}
