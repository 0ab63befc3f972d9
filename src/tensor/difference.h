/*
 * difference.h - how far two tensors of equal shape are apart: one streaming pass, every metric at once.
 *
 * Golden b is taken as right, target a is judged; e = |a - b|. Values are compared by value: dtypes, memory orders and
 * byte orders may differ between the sides. Both sides count as dtypes of their saved form (bfloat16 as float32).
 *
 *  - A pair is finite when both values are. All sums, maxima and means are over finite pairs.
 *  - Two NaN are equal, and so are two infinities of one sign; every other pair that is not finite is mismatched:
 *    counted in nan_mismatched (exactly one side is NaN) or inf_mismatched (the rest), and in `mismatched`.
 *  - mismatched: pairs outside the tolerance, e > atol + rtol * |b|, and those just named.
 *  - max_abs_err: the largest e. max_rel_err: the largest e / |b| over b != 0: where golden is zero there is only an
 *    absolute error. within_1e3, within_5e3: the share of all elements with e <= 1e-3 |b| (5e-3 |b|);
 *    equal values (also zeros, NaN, infinities) are within, a non-zero target of a zero golden is not.
 *  - mean_abs_err = sum e / n, rmse = sqrt(sum e^2 / n), euclidean = sqrt(sum e^2), over the n finite pairs.
 *  - cosine = sum ab / sqrt(sum a^2 sum b^2): 1 where both norms are zero, 0 where one is.
 *  - rel_l2 = sqrt(sum e^2 / sum b^2): 0 where the numerator is zero, infinite where only golden's norm is.
 *  - max_ulp: both values rounded to the judged dtype (float64 by way of float32 for the 16-bit ones), then the
 *    distance of their places in the order of all its numbers; -0.0 and 0.0 are one place, and a finite value that
 *    rounds to infinity is one past the largest. NaN for dtypes other than float16, bfloat16, float32 and float64.
 *  - Complex: e, |a|, |b| are moduli; a pair is NaN where a part is, infinite where a part is; the product in the
 *    cosine is Re(a conj(b)). Bool counts as 0 and 1.
 *  - With no finite pair, errors are NaN where a pair is mismatched, else 0 (and cosine 1).
 *
 * Accuracy. float16, bfloat16, float32: e is exact or rounded once to float64; max_abs_err and max_rel_err within 1e-15
 * relative, sums within 1e-13 relative of their terms' magnitudes, cosine within 1e-12 absolute. float64: the same,
 * with e rounded once. Parts whose squares leave the range of float64 (magnitudes near 1e308 or 1e-200) are summed in
 * long double; an e or a ratio over 1.8e308 is infinite, and so is the ratio of such an e. Integers and bool: e exactly
 * (in 128 bits, whatever the two types), max_abs_err rounded once to float64 and in max_abs_exact as it is; sums in
 * long double. A float against an integer: the integer is rounded to float64 first. Comparisons with the tolerance and
 * the shares are made in float64: rtol * |b| is rounded, then atol + that.
 *
 * Every vector level gives the same bits as the scalar code. Cutting a tensor into other ranges changes only the
 * rounding of sums (within the accuracy above).
 */
#ifndef FX_TENSOR_DIFFERENCE_H
#define FX_TENSOR_DIFFERENCE_H

#include "fxtap/tensor.h"

#define FX_DIFFERENCE_WORST_MAX 32

typedef struct fx_difference_options {
    double rtol; /* >= 0 */
    double atol; /* >= 0 */
    fxtap_dtype judged; /* whose ulp is meant: the original dtype that was recorded, else the files' */
    size_t n_worst;     /* coordinates kept, 1 .. FX_DIFFERENCE_WORST_MAX; other values are brought into it */
} fx_difference_options;

typedef struct fx_difference_point {
    uint64_t index; /* flat, row-major */
    double error;   /* e, or e / |b| for the largest relative error */
    double golden;  /* complex: the modulus */
    double target;
} fx_difference_point;

/* Sums and records of the ranges seen so far. Caller storage, nothing to free; fields belong to difference*.c. */
typedef struct fx_difference {
    fx_difference_options options;
    uint64_t count;
    uint64_t n_finite;
    uint64_t mismatched;
    uint64_t nan_mismatched;
    uint64_t inf_mismatched;
    uint64_t within_1e3;
    uint64_t within_5e3;
    uint64_t max_ulp;
    uint64_t max_abs_exact;
    size_t n_non_finite;       /* of the points below: the first mismatched pairs that are not finite */
    fx_difference_point non_finite[FX_DIFFERENCE_WORST_MAX];
    bool differs;              /* bits, or saved dtypes */
    bool has_ulp;
    long double error_sum;
    long double square_sum;
    long double golden_square_sum;
    long double target_square_sum;
    long double product_sum;
    double floor;               /* only an e above it enters `worst` */
    fx_difference_point max_rel; /* error: the largest ratio */
    size_t n_worst;
    fx_difference_point worst[FX_DIFFERENCE_WORST_MAX]; /* largest error first */
} fx_difference;

typedef struct fx_difference_result {
    bool identical_bits; /* of the saved forms, in logical order; the saved dtypes are the same */
    uint64_t count;
    uint64_t n_finite;
    uint64_t mismatched;
    uint64_t nan_mismatched;
    uint64_t inf_mismatched;
    uint64_t first_non_finite; /* of the mismatched ones; UINT64_MAX: none */
    double max_abs_err;
    double max_rel_err;
    uint64_t max_abs_exact; /* integers and bool: e itself, UINT64_MAX where it is larger */
    uint64_t max_abs_index; /* flat, row-major; 0 where the error is 0 */
    uint64_t max_rel_index;
    double mean_abs_err;
    double rmse;
    double euclidean;
    double cosine;
    double rel_l2;
    double golden_l2;
    double target_l2;
    double within_1e3; /* shares of all elements; 1 where there are none */
    double within_5e3;
    double max_ulp;
    size_t n_worst; /* fewer than asked for where fewer elements differ */
    fx_difference_point worst[FX_DIFFERENCE_WORST_MAX]; /* pairs that are not finite stand first, by index; error: infinite */
} fx_difference_result;

/* Whether `max_ulp` is measured in this dtype. */
bool fx_difference_has_ulp(fxtap_dtype judged);

void fx_difference_init(fx_difference *difference, const fx_difference_options *options);

/*
 * Adds elements [first, first + count) of both views: positions in row-major order, or in memory order where both are
 * column-major (coordinates are row-major all the same). The views have equal saved shapes. Ranges may be run in any
 * order, in several states on several threads, and combined; whole tensors are quickest in ranges of some MiB.
 * FXTAP_E_INVALID (shapes differ, range outside), FXTAP_E_UNSUPPORTED (no saved form, text), FXTAP_E_NOMEM.
 */
fxtap_status fx_difference_run(fx_difference *difference, const fxtap_view *golden, const fxtap_view *target,
                               uint64_t first, uint64_t count);

void fx_difference_finish(const fx_difference *difference, fx_difference_result *out);

/* All of it, on this thread. */
fxtap_status fx_difference_compute(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options, fx_difference_result *out);

#endif
