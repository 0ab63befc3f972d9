/*
 * fxtap/stats.h - one-pass statistics and the content hash of a tensor.
 *
 * Definitions:
 *  - count: all elements. nan/pos_inf/neg_inf/zero/subnormal counts are disjoint; -0.0 is a zero. Complex: an element
 *    is NaN if a part is NaN; else pos_inf if a part is infinite; zero if both parts are; else subnormal if a part is
 *    subnormal. Subnormal is judged in the original dtype.
 *  - min, max: over the elements that are not NaN, infinities included; absent for complex and if there are no such
 *    elements. -0.0 counts as less than 0.0. Integers and bool: exact in min_int / max_int (unsigned 64-bit: read as
 *    uint64_t).
 *  - abs_max: largest magnitude (complex: modulus) of the elements that are not NaN, infinities included; NaN if there
 *    are none. The int64 minimum gives exactly 2^63.
 *  - mean, std (population), rms, l2_norm: over the finite elements, accumulated in float64 or wider; integers
 *    exactly, rounded once at the end. rms = sqrt(sum |x|^2 / n), l2_norm = sqrt(sum |x|^2). NaN if n is 0.
 *    Complex mean is (mean, mean_imag); std is sqrt(mean(|x - mean|^2)).
 *  - Scalar and vector code give the same bits, as do a strided view and its contiguous copy.
 *  - Accuracy: std, rms and l2_norm within 1e-12 relative, mean within 1e-12 of the mean magnitude, also far from
 *    zero and near the ends of float64's range (where only l2_norm may overflow to infinity).
 */
#ifndef FXTAP_STATS_H
#define FXTAP_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/status.h"
#include "fxtap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_stats {
    fxtap_dtype dtype; /* the original dtype */
    bool has_range;    /* min, max (for integers and bool also min_int, max_int) are valid */
    uint64_t count;
    uint64_t finite_count;
    uint64_t nan_count;
    uint64_t pos_inf_count;
    uint64_t neg_inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
    double min;
    double max;
    int64_t min_int; /* class UINT and BOOL: the bits of a uint64_t */
    int64_t max_int;
    double abs_max;
    double mean;
    double mean_imag;
    double std;
    double rms;
    double l2_norm;
} fxtap_stats;

typedef struct fxtap_hash128 {
    uint64_t high;
    uint64_t low;
} fxtap_hash128;

/*
 * Statistics of the view's values (of the original dtype) and, if `hash_out` is not NULL, XXH3-128 of the saved data
 * bytes (those after the header of an .npy file), in one pass over blocks that fit the cache. FXTAP_E_INVALID,
 * FXTAP_E_UNSUPPORTED (no saved form), FXTAP_E_NOMEM (the block of a strided view).
 */
FXTAP_API fxtap_status fxtap_stats_compute(const fxtap_view *view, fxtap_stats *out, fxtap_hash128 *hash_out);

/*
 * Bins for a histogram of the finite elements over [low, high] in `n_bins` equal parts (the last one closed): element
 * x is in bin floor((x - low) * n_bins / (high - low)), computed in long double; if low equals high, in bin 0.
 * Complex elements count by their modulus; 64-bit integers are rounded to float64 first. `bins` has n_bins entries
 * and is overwritten; elements outside the range are not counted.
 * FXTAP_E_INVALID (n_bins 0, low over high or not finite), FXTAP_E_UNSUPPORTED, FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_stats_histogram(const fxtap_view *view, double low, double high, size_t n_bins,
                                             uint64_t *bins);

#ifdef __cplusplus
}
#endif
#endif
