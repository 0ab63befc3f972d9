/*
 * rounding.h - results against their float64 reference, in units of what rounding allows: one streaming pass.
 *
 * half(x): half the spacing of the dtype's numbers at |x|, in the subnormal range that of the smallest subnormal.
 * For a saved value s, its reference r, and the spread d of r (see fxtap/verify.h):
 *
 *     allow^2 = half(r)^2 + (spread_scale d)^2 + (relative r)^2
 *     inner^2 =             (inner_scale d)^2  + (inner_relative r)^2
 *
 * and both get the smallest normal number of the dtypes with float32's exponents or more, since hardware may flush to
 * zero. For float64 results allow^2 is doubled: their reference has the same precision.
 *
 *  - misrounded: s is not r rounded to nearest, ties to even.
 *  - unexplained: misrounded, and s could not be the rounding of any number within FX_ROUNDING_REACH inner of r.
 *  - unfaithful: unexplained, and s is not one of the two numbers next to r.
 *  - outlier: |s - r| > FX_ROUNDING_REACH allow.
 *  - An element whose spread is not finite can be misrounded, but is not measured in size.
 *  - Where r is finite and s or r rounded is not, the first number beyond the dtype's range stands for the overflow;
 *    if s is then within FX_ROUNDING_REACH allow of r, the pair is misrounded, but not special (and not in `count`).
 *  - A format without infinity overflows to NaN or to its largest number: both are right.
 *  - Complex: each part is a number; |r| in the allowances is the modulus.
 *
 * Sums are in long double: no square leaves its range. Needs IEEE mode (util/float_mode.h).
 */
#ifndef FX_TENSOR_ROUNDING_H
#define FX_TENSOR_ROUNDING_H

#include "fxtap/verify.h"

/* Standard deviations: of Gaussian errors, one in 10^15 exceeds it. */
#define FX_ROUNDING_REACH 8.0

/* The numbers of a floating-point dtype. */
typedef struct fx_rounding_format {
    int precision;      /* bits of the significand, the leading one included */
    double shift;       /* for rounding: see rounding.c */
    double smallest;    /* normal number */
    double largest;     /* number */
    double beyond;      /* what a number over the range becomes: INFINITY, NAN, or the largest */
    bool has_zero_sign; /* -0 exists */
    bool is_power;      /* float8_e8m0: positive powers of two, no zero, no sign */
} fx_rounding_format;

/* The format of a float dtype or of a complex dtype's parts; NULL for others. Static. */
const fx_rounding_format *fx_rounding_format_of(fxtap_dtype dtype);

/* Half the spacing at 1: 2^-precision. */
double fx_rounding_unit(const fx_rounding_format *format);

/* `value` rounded to nearest, ties to even; subnormals and overflow as the format has them. */
double fx_rounding_nearest(const fx_rounding_format *format, double value);

typedef struct fx_rounding_options {
    fxtap_dtype dtype;
    double spread_scale;
    double relative;
    double inner_scale;
    double inner_relative;
} fx_rounding_options;

#define FX_ROUNDING_DISTINCT_MAX 65536
#define FX_ROUNDING_HASH_BITS 17

/* The blocks so far. Caller storage of 16 KiB, nothing to free; the fields are private to rounding.c. */
typedef struct fx_rounding {
    fx_rounding_options options;
    const fx_rounding_format *format;
    double unit;
    double flush;          /* smallest normal number where flushing is allowed, else 0 */
    double variance;       /* factor of allow^2 */
    long double error_sum; /* squares */
    long double allow_sum; /* squares */
    uint64_t n_sized;      /* elements in the two sums */
    double bias_sum;       /* of (saved - rounded reference) in ulps */
    double bias_square_sum;
    double max_square;                           /* max_ratio squared */
    uint64_t n_hashes;                           /* bits set in `hashes` */
    double worst_rank[FXTAP_ROUNDING_WORST_MAX]; /* squared ratios of the worst points */
    fxtap_rounding_error out;
    uint64_t hashes[(1 << FX_ROUNDING_HASH_BITS) / 64]; /* linear counting of distinct references */
} fx_rounding;

/* options->dtype has a format. */
void fx_rounding_init(fx_rounding *rounding, const fx_rounding_options *options);

/*
 * Adds `n` elements, the first of which has the flat index `first`. `saved` is in the saved dtype; `reference` and
 * `spread` (may be NULL) are float64, two numbers an element for complex dtypes.
 */
void fx_rounding_add(fx_rounding *rounding, uint64_t first, size_t n, const void *saved, const double *reference,
                     const double *spread);

void fx_rounding_finish(fx_rounding *rounding, fxtap_rounding_error *out);

/* Integers and bools: counts and lists the elements that differ from `reference` and, unless NULL, from `third`. */
void fx_rounding_exact(fxtap_dtype dtype, size_t n, const void *saved, const void *reference, const void *third,
                       fxtap_rounding_error *out);

/* Whether two arrays of a saved dtype hold the same bits; any two NaN are the same. */
bool fx_rounding_same_bits(fxtap_dtype saved, size_t n, const void *a, const void *b);

#endif
