/*
 * difference.h - the difference of two tensors of equal shape: all metrics in one streaming pass.
 *
 * b is the golden value, a the target value; e = |a - b|. Values are compared by value: dtypes, memory orders and
 * byte orders may differ between the sides. Both sides have the dtypes of their saved form (bfloat16 is float32).
 *
 *  - A pair is finite when both values are. All sums, maxima and means are over finite pairs.
 *  - Two NaN are equal, and two infinities of the same sign are equal; every other pair that is not finite is
 *    mismatched: counted in nan_mismatched (exactly one side is NaN) or inf_mismatched (the rest), and in `mismatched`.
 *  - mismatched: pairs outside the tolerance, e > atol + rtol * |b|, and those above.
 *  - max_abs_err: the largest e. max_rel_err: the largest e / |b| over b != 0: a zero golden value has only an absolute
 *    error. within_1e3, within_5e3: the share of all elements with e <= 1e-3 |b| (5e-3 |b|); equal values (also zeros,
 *    NaN, infinities) are within, a non-zero target of a zero golden is not.
 *  - mean_abs_err = sum e / n, rmse = sqrt(sum e^2 / n), euclidean = sqrt(sum e^2), over the n finite pairs.
 *  - cosine = sum ab / sqrt(sum a^2 sum b^2): 1 if both norms are zero, 0 if one is.
 *  - rel_l2 = sqrt(sum e^2 / sum b^2): 0 if the numerator is zero, infinite if only golden's norm is zero.
 *  - max_ulp: both values rounded to the judged dtype (float64 by way of float32 for the 16-bit ones), then the
 *    distance of their ranks among all its numbers; -0.0 and 0.0 have one rank, and a finite value that rounds to
 *    infinity ranks one above the largest number. NaN for dtypes other than float16, bfloat16, float32 and float64.
 *  - Complex: e, |a|, |b| are moduli; a pair is NaN if a part is, infinite if a part is; the product in the
 *    cosine is Re(a conj(b)). Bool counts as 0 and 1.
 *  - With no finite pair, errors are NaN if a pair is mismatched, else 0 (and cosine 1).
 *
 * Accuracy. float16, bfloat16, float32: e is exact or rounded once to float64; max_abs_err and max_rel_err within 1e-15
 * relative, sums within 1e-13 relative of their terms' magnitudes, cosine within 1e-12 absolute. float64: the same,
 * with e rounded once. Parts whose squares exceed the range of float64 (magnitudes near 1e308 or 1e-200) are summed in
 * long double; an e or a ratio over 1.8e308 is infinite, and so is the ratio of such an e. Integers and bool: e exactly
 * (in 128 bits, whatever the two types), max_abs_err is rounded once to float64, max_abs_exact is exact; sums in
 * long double. A float against an integer: the integer is rounded to float64 first. Comparisons with the tolerance and
 * the shares are made in float64: rtol * |b| is rounded, then atol + that.
 *
 * Every vector level gives the same bits as the scalar code. Other ranges change only the rounding of sums (within the
 * accuracy above).
 */
#ifndef FX_TENSOR_DIFFERENCE_H
#define FX_TENSOR_DIFFERENCE_H

#include "fxtap/tensor.h"

#define FX_DIFFERENCE_WORST_MAX 32

typedef struct fx_difference_options {
    double rtol;        /* >= 0 */
    double atol;        /* >= 0 */
    fxtap_dtype judged; /* for max_ulp: the recorded original dtype, else that of the files */
    size_t n_worst;     /* coordinates kept, 1 .. FX_DIFFERENCE_WORST_MAX; other values are clamped */
} fx_difference_options;

typedef struct fx_difference_point {
    uint64_t index; /* flat, row-major */
    double error;   /* e; for the largest relative error e / |b| */
    double golden;  /* complex: the modulus */
    double target;
} fx_difference_point;

/* Sums and maxima of the ranges so far. Caller storage, nothing to free; fields are private to difference*.c. */
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
    size_t n_non_finite; /* of the points below: the first non-finite mismatched pairs */
    fx_difference_point non_finite[FX_DIFFERENCE_WORST_MAX];
    bool differs; /* bits, or saved dtypes */
    bool has_ulp;
    long double error_sum;
    long double square_sum;
    long double golden_square_sum;
    long double target_square_sum;
    long double product_sum;
    double floor;                /* only an e above this enters `worst` */
    fx_difference_point max_rel; /* error: the largest ratio */
    size_t n_worst;
    fx_difference_point worst[FX_DIFFERENCE_WORST_MAX]; /* largest error first */
} fx_difference;

typedef struct fx_difference_result {
    bool identical_bits; /* of the saved forms, in logical order, if the saved dtypes are equal */
    uint64_t count;
    uint64_t n_finite;
    uint64_t mismatched;
    uint64_t nan_mismatched;
    uint64_t inf_mismatched;
    uint64_t first_non_finite; /* of the mismatched ones; UINT64_MAX: none */
    double max_abs_err;
    double max_rel_err;
    uint64_t max_abs_exact; /* integers and bool: the exact e, at most UINT64_MAX */
    uint64_t max_abs_index; /* flat, row-major; 0 if the error is 0 */
    uint64_t max_rel_index;
    double mean_abs_err;
    double rmse;
    double euclidean;
    double cosine;
    double rel_l2;
    double golden_l2;
    double target_l2;
    double within_1e3; /* shares of all elements; 1 if there are none */
    double within_5e3;
    double max_ulp;
    size_t n_worst;                                     /* fewer than requested if fewer elements differ */
    fx_difference_point worst[FX_DIFFERENCE_WORST_MAX]; /* non-finite pairs come first, by index; error: infinite */
} fx_difference_result;

/* Whether `max_ulp` is measured in this dtype. */
bool fx_difference_has_ulp(fxtap_dtype judged);

void fx_difference_init(fx_difference *difference, const fx_difference_options *options);

/*
 * Adds elements [first, first + count) of both views: positions in row-major order, or in memory order if both are
 * column-major (coordinates are row-major in either case). The views have equal saved shapes. Ranges may be processed
 * in any order, with several states on several threads, and combined; ranges of a few MiB are fastest. FXTAP_E_INVALID
 * (shapes differ, range outside), FXTAP_E_UNSUPPORTED (no saved form, text), FXTAP_E_NOMEM.
 */
fxtap_status fx_difference_run(fx_difference *difference, const fxtap_view *golden, const fxtap_view *target,
                               uint64_t first, uint64_t count);

void fx_difference_finish(const fx_difference *difference, fx_difference_result *out);

/* All elements, on this thread. */
fxtap_status fx_difference_compute(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options, fx_difference_result *out);

#endif
