/*
 * stats.h - incremental statistics, used by fxtap_stats_compute and the dump writer.
 *
 * Method. A piece is cut into parts of FX_STATS_PART_BYTES, which fit the first-level cache. A part is read twice: once
 * for counts, range and sum; once for the sums of (x - m) and (x - m)^2 about its own mean m, to avoid cancellation: M2
 * = sum (x - m)^2 - (sum (x - m))^2 / n, the corrected two-pass formula of Chan, Golub and LeVeque, "Algorithms for
 * Computing the Sample Variance: Analysis and Recommendations", The American Statistician 37 (1983). Parts are combined
 * by the same authors' pairwise update, M2 = M2a + M2b + (mb - ma)^2 na nb / (na + nb), in long double. rms and l2_norm
 * come from M2 + n * mean^2, whose terms are both positive. Sums run in 16 lanes of float64, element i of a part in
 * lane i % 16, added in a fixed order: every vector width and every division of the data into pieces of whole parts
 * give the same bits. If the squares of a float64 part exceed the range of float64, that part is summed in long double.
 *
 * Integers: the sum in 128 bits, the sum of squares in 192 bits, exactly; one rounding at the end.
 *
 * NaN and the range: min and max order -0.0 below +0.0, so the answer does not depend on the order of elements.
 * The counts, min and max of floats do not depend on the floating-point environment; for the rest fxtap_stats_compute
 * sets its own (util/float_mode.h), so that a caller's flush-to-zero mode has no effect.
 *
 * Thread rule: one thread at a time may use a state.
 */
#ifndef FX_TENSOR_STATS_H
#define FX_TENSOR_STATS_H

#include "fxtap/stats.h"

#define FX_STATS_PART_BYTES 16384
#define FX_STATS_LANES 16

/* An unsigned integer of 192 bits, arithmetic modulo 2^192. */
typedef struct fx_u192 {
    unsigned __int128 low;
    uint64_t high;
} fx_u192;

/* Caller storage; nothing to free. Fields are private to stats*.c. */
typedef struct fx_stats_state {
    fxtap_dtype dtype;
    fxtap_dtype saved;
    uint64_t min_normal_bits; /* of `dtype`, as bits of the saved float (complex: of a part) */
    uint64_t count;
    uint64_t nan_count;
    uint64_t pos_inf_count;
    uint64_t neg_inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
    int64_t key_min; /* floats: ordered bits (fx_f32_key, fx_f64_key); integers: values (uint64: with the top bit */
    int64_t key_max; /* flipped) */
    double abs_max;  /* complex only */
    uint64_t n_finite;
    long double mean;
    long double mean_imag;
    long double m2; /* sum of |x - mean|^2 over the finite elements */
    __int128 sum;
    fx_u192 square_sum;
} fx_stats_state;

/* True if statistics of `dtype` are defined: everything with a saved form except text. */
bool fx_stats_defined(fxtap_dtype dtype);

/* Initialises a state for elements of the original `dtype`, for which fx_stats_defined() must be true. */
void fx_stats_init(fx_stats_state *state, fxtap_dtype dtype);

/*
 * Adds `n_elems` contiguous elements of the *saved* dtype (little-endian, any alignment). For a result independent of
 * the pieces, all but the last one must have a multiple of FX_STATS_PART_BYTES bytes.
 */
void fx_stats_update(fx_stats_state *state, const void *elements, size_t n_elems);

/* The statistics so far; more elements may be added afterwards. */
void fx_stats_finish(const fx_stats_state *state, fxtap_stats *out);

/*
 * Statistics and, if `hash_out` is not NULL, the hash of `n_elems` contiguous elements of the saved form of `dtype`, in
 * one pass over cache-sized blocks. fx_stats_defined(dtype) must be true. Cannot fail.
 */
void fx_stats_saved(fxtap_dtype dtype, const void *elements, size_t n_elems, fxtap_stats *out, fxtap_hash128 *hash_out);

#endif
