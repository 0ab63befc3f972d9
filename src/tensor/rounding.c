#include "tensor/rounding.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/rounding_kernel.h"
#include "tensor/values.h"

#define CHUNK FX_ROUNDING_BLOCK

/* Set bits that stand for FX_ROUNDING_DISTINCT_MAX distinct values, half as many as there are bits: 1 - e^(-1/2). */
#define HASHES_ENOUGH ((uint64_t)(0.3935 * (1 << FX_ROUNDING_HASH_BITS)))

/* `shift`: 1.5 * 2^52 spacings, for a number between 1 and 2. */
#define FORMAT(precision, ...)                                                                                         \
    {                                                                                                                  \
        precision, (double)(UINT64_C(3) << (53 - (precision))) / 2, __VA_ARGS__                                        \
    }

const fx_rounding_format *fx_rounding_format_of(fxtap_dtype dtype)
{
    static const fx_rounding_format half = FORMAT(11, 0x1p-14, 65504, INFINITY, true, false);
    static const fx_rounding_format brain = FORMAT(8, 0x1p-126, 0x1.fep127, INFINITY, true, false);
    static const fx_rounding_format single = FORMAT(24, FLT_MIN, FLT_MAX, INFINITY, true, false);
    static const fx_rounding_format wide = FORMAT(53, DBL_MIN, DBL_MAX, INFINITY, true, false);
    /* Sources: tensor/convert.h. */
    static const fx_rounding_format small[FXTAP_DTYPE_COUNT] = {
        [FXTAP_FLOAT8_E4M3FN] = FORMAT(4, 0x1p-6, 448, NAN, true, false),
        [FXTAP_FLOAT8_E5M2] = FORMAT(3, 0x1p-14, 57344, INFINITY, true, false),
        [FXTAP_FLOAT8_E4M3FNUZ] = FORMAT(4, 0x1p-7, 240, NAN, false, false),
        [FXTAP_FLOAT8_E5M2FNUZ] = FORMAT(3, 0x1p-15, 57344, NAN, false, false),
        [FXTAP_FLOAT8_E8M0FNU] = FORMAT(1, 0x1p-127, 0x1p127, NAN, false, true),
        [FXTAP_FLOAT8_E4M3] = FORMAT(4, 0x1p-6, 240, INFINITY, true, false),
        [FXTAP_FLOAT8_E3M4] = FORMAT(5, 0x1p-2, 15.5, INFINITY, true, false),
        [FXTAP_FLOAT8_E4M3B11FNUZ] = FORMAT(4, 0x1p-10, 30, NAN, false, false),
        [FXTAP_FLOAT4_E2M1FN_X2] = FORMAT(2, 1, 6, 6, true, false),
        [FXTAP_FLOAT6_E2M3FN] = FORMAT(4, 1, 7.5, 7.5, true, false),
        [FXTAP_FLOAT6_E3M2FN] = FORMAT(3, 0x1p-2, 28, 28, true, false),
    };
    switch (dtype) {
    case FXTAP_FLOAT16:
    case FXTAP_COMPLEX32:
        return &half;
    case FXTAP_BFLOAT16:
        return &brain;
    case FXTAP_FLOAT32:
    case FXTAP_COMPLEX64:
        return &single;
    case FXTAP_FLOAT64:
    case FXTAP_COMPLEX128:
        return &wide;
    default:
        return (unsigned)dtype < FXTAP_DTYPE_COUNT && small[dtype].precision > 0 ? &small[dtype] : NULL;
    }
}

double fx_rounding_unit(const fx_rounding_format *format)
{
    return ldexp(1, -format->precision);
}

/* The largest power of two not over |value|, within the normal range of the format. */
static inline double power_at(const fx_rounding_format *format, double value)
{
    double size = fabs(value);
    size = size > format->smallest ? size : format->smallest;
    size = size < format->largest ? size : format->largest;
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits &= UINT64_C(0x7FF0000000000000);
    memcpy(&size, &bits, sizeof size);
    return size;
}

/*
 * Adding 1.5 * 2^52 spacings leaves a sum whose unit in the last place is one spacing, so that the addition rounds to
 * nearest, ties to even, and the subtraction is exact. With one bit of precision "even" is the upper of two powers.
 */
static inline double nearest(const fx_rounding_format *format, double value)
{
    if (format->precision == 53) {
        return value;
    }
    if (format->is_power) {
        value = fabs(value);
        value = value < format->smallest ? format->smallest : value;
    }
    double shift = power_at(format, value) * format->shift;
    double rounded = value + shift - shift;
    if (fabs(rounded) > format->largest) {
        return copysign(format->beyond, value);
    }
    return format->has_zero_sign || rounded != 0 ? copysign(rounded, value) : 0;
}

double fx_rounding_nearest(const fx_rounding_format *format, double value)
{
    return nearest(format, value);
}

static bool may_flush(const fx_rounding_format *format)
{
    return format->smallest <= FLT_MIN && !format->is_power;
}

void fx_rounding_init(fx_rounding *rounding, const fx_rounding_options *options)
{
    memset(rounding, 0, sizeof *rounding);
    rounding->options = *options;
    rounding->format = fx_rounding_format_of(options->dtype);
    rounding->unit = fx_rounding_unit(rounding->format);
    rounding->flush = may_flush(rounding->format) ? rounding->format->smallest : 0;
    rounding->variance = rounding->format->precision == 53 ? 2 : 1;
    rounding->max_square = -1;
}

/* A pair of numbers, in units of the power of two at the reference: no square leaves the range of float64. */
typedef struct scaled {
    double power;
    double error;        /* |saved - reference| */
    double allow_square; /* infinite if the spread is not finite */
    double inner_square;
} scaled;

static inline double square(double x)
{
    return x * x;
}

static inline scaled scale(const fx_rounding *rounding, double saved, double reference, double size, double spread)
{
    const fx_rounding_options *options = &rounding->options;
    scaled out = {.power = power_at(rounding->format, size)};
    double inverse = 1 / out.power;
    double flush = square(rounding->flush * inverse);
    size *= inverse;
    spread *= inverse;
    out.error = fabs(saved - reference) * inverse;
    out.allow_square =
        (square(rounding->unit) + square(options->spread_scale * spread) + square(options->relative * size) + flush) *
        rounding->variance;
    out.inner_square = square(options->inner_scale * spread) + square(options->inner_relative * size) + flush;
    return out;
}

/* Keeps a point if its rank is among the highest; of equal ranks the first comes first. */
static void offer(fx_rounding *rounding, double rank, uint64_t index, double saved, double reference)
{
    fxtap_rounding_error *out = &rounding->out;
    size_t at = out->n_worst;
    while (at > 0 && rank > rounding->worst_rank[at - 1]) {
        at--;
    }
    if (at == FXTAP_ROUNDING_WORST_MAX) {
        return;
    }
    out->n_worst += out->n_worst < FXTAP_ROUNDING_WORST_MAX;
    for (size_t i = out->n_worst - 1; i > at; i--) {
        out->worst[i] = out->worst[i - 1];
        rounding->worst_rank[i] = rounding->worst_rank[i - 1];
    }
    out->worst[at] = (fxtap_rounding_point){index, saved, reference};
    rounding->worst_rank[at] = rank;
}

/* Whether an overflow on one side alone is what rounding allows. */
static bool is_near_overflow(const fx_rounding *rounding, double saved, double reference, double size, double spread)
{
    const fx_rounding_format *format = rounding->format;
    if (!isfinite(reference) || (isnan(saved) && !isnan(format->beyond))) {
        return false;
    }
    if (!isfinite(saved)) {
        double beyond = format->largest + 2 * rounding->unit * power_at(format, format->largest);
        saved = copysign(beyond, isnan(saved) ? reference : saved);
    }
    scaled s = scale(rounding, saved, reference, size, spread);
    return square(s.error) <= square(FX_ROUNDING_REACH) * s.allow_square;
}

/* Where a format has no infinity, hardware and libraries overflow to NaN or to the largest number. */
static bool is_saturated(const fx_rounding_format *format, double saved, double reference)
{
    return isnan(format->beyond) && !isnan(reference) && saved == copysign(format->largest, reference);
}

static void add_not_finite(fx_rounding *rounding, uint64_t index, double saved, double reference, double size,
                           double spread)
{
    double rounded = nearest(rounding->format, reference);
    bool is_same = isnan(saved) ? isnan(rounded) : saved == rounded || is_saturated(rounding->format, saved, reference);
    if (is_same) {
        return;
    }
    if (is_near_overflow(rounding, saved, reference, size, spread)) {
        rounding->out.misrounded++;
        return;
    }
    rounding->out.special++;
    offer(rounding, INFINITY, index, saved, reference);
}

static void add_misrounded(fx_rounding *rounding, const scaled *s, double saved, double rounded)
{
    fxtap_rounding_error *out = &rounding->out;
    out->misrounded++;
    out->up += saved > rounded;
    out->down += saved < rounded;
    double ulps = (saved - rounded) / s->power / (2 * rounding->unit);
    rounding->bias_sum += ulps;
    rounding->bias_square_sum += ulps * ulps;
    /* Up to half a spacing from `saved` rounds to it; the spacing is that of the larger of the two numbers. */
    double half = rounding->unit * fmax(1, power_at(rounding->format, saved) / s->power);
    double distance = s->error - half;
    bool is_unexplained = distance > 0 && square(distance) > square(FX_ROUNDING_REACH) * s->inner_square;
    out->unexplained += is_unexplained;
    out->unfaithful += is_unexplained && distance >= half;
}

/* Linear counting (Whang, Vander-Zanden, Taylor 1990): of m bits, e^(-k/m) stay zero after k distinct hashes. */
static uint64_t distinct_count(const fx_rounding *rounding)
{
    double m = 1 << FX_ROUNDING_HASH_BITS, n_zero = m - (double)rounding->n_hashes;
    double estimate = m * log(m / n_zero);
    return estimate < FX_ROUNDING_DISTINCT_MAX ? (uint64_t)(estimate + 0.5) : FX_ROUNDING_DISTINCT_MAX;
}

static void count_distinct(fx_rounding *rounding, const double *references, size_t n)
{
    for (size_t i = 0; i < n && rounding->n_hashes < HASHES_ENOUGH; i++) {
        uint64_t bits;
        memcpy(&bits, &references[i], sizeof bits);
        bits = (bits ^ bits >> 29) * UINT64_C(0x9E3779B97F4A7C15);
        bits = (bits ^ bits >> 32) * UINT64_C(0xD6E8FEB86659FD93);
        bits >>= 64 - FX_ROUNDING_HASH_BITS;
        uint64_t *word = &rounding->hashes[bits / 64], bit = UINT64_C(1) << bits % 64;
        if ((*word & bit) == 0) {
            *word |= bit;
            rounding->n_hashes++;
        }
    }
}

/* Updates the largest errors and the worst points by an element that has been counted. */
static void note(fx_rounding *rounding, const scaled *s, uint64_t index, double saved, double reference,
                 bool is_misrounded)
{
    fxtap_rounding_error *out = &rounding->out;
    double ulps = s->error / (2 * rounding->unit), ratio = square(s->error) / s->allow_square;
    if (ulps > out->max_ulp) {
        out->max_ulp = ulps;
        out->max_ulp_index = index;
    }
    if (!isfinite(s->allow_square)) {
        return;
    }
    if (ratio > rounding->max_square) {
        rounding->max_square = ratio;
        out->max_ratio_index = index;
    }
    bool is_full = out->n_worst == FXTAP_ROUNDING_WORST_MAX;
    if (is_misrounded && (!is_full || ratio > rounding->worst_rank[FXTAP_ROUNDING_WORST_MAX - 1])) {
        offer(rounding, ratio, index, saved, reference);
    }
}

static void add_one(fx_rounding *rounding, uint64_t index, double saved, double reference, double size, double spread)
{
    fxtap_rounding_error *out = &rounding->out;
    double rounded = nearest(rounding->format, reference);
    if (!isfinite(saved) || !isfinite(rounded)) {
        add_not_finite(rounding, index, saved, reference, size, spread);
        return;
    }
    out->count++;
    scaled s = scale(rounding, saved, reference, size, spread);
    if (saved != rounded) {
        add_misrounded(rounding, &s, saved, rounded);
    } else if (saved == 0 && signbit(saved) != signbit(rounded)) {
        out->zero_signs++;
    }
    note(rounding, &s, index, saved, reference, saved != rounded);
    if (isfinite(s.allow_square)) {
        rounding->n_sized++;
        rounding->error_sum += (long double)s.error * s.error * s.power * s.power;
        rounding->allow_sum += (long double)s.allow_square * s.power * s.power;
        out->outliers += square(s.error) / s.allow_square > square(FX_ROUNDING_REACH);
    }
}

static void add_complex(fx_rounding *rounding, uint64_t first, size_t n, const double *saved, const double *reference,
                        const double *spread)
{
    for (size_t i = 0; i < n; i++) {
        double size = hypot(reference[2 * i], reference[2 * i + 1]);
        for (size_t part = 2 * i; part < 2 * i + 2; part++) {
            add_one(rounding, first + i, saved[part], reference[part], size, spread == NULL ? 0 : spread[part]);
        }
    }
}

static void add_real(fx_rounding *rounding, uint64_t first, size_t n, const double *saved, const double *reference,
                     const double *spread)
{
    for (size_t i = 0; i < n; i++) {
        add_one(rounding, first + i, saved[i], reference[i], reference[i], spread == NULL ? 0 : spread[i]);
    }
}

/* The formats of the kernel; the others are rare. */
static bool has_kernel(const fx_rounding_format *format)
{
    return format->precision < 53 && format->has_zero_sign && !format->is_power;
}

static fx_rounding_kernel *kernel(void)
{
#if defined(__x86_64__)
    static fx_rounding_kernel *const levels[] = {fx_rounding_scalar, fx_rounding_avx2, fx_rounding_avx512};
    return levels[fx_cpu()];
#else
    return fx_rounding_scalar;
#endif
}

static void add_sums(fx_rounding *rounding, const fx_rounding_block *block)
{
    fxtap_rounding_error *out = &rounding->out;
    for (size_t lane = 0; lane < FX_ROUNDING_LANES; lane++) {
        rounding->error_sum += block->error_sum[lane];
        rounding->allow_sum += block->allow_sum[lane];
        rounding->bias_sum += block->bias_sum[lane];
        rounding->bias_square_sum += block->bias_square_sum[lane];
        out->misrounded += (uint64_t)block->misrounded[lane];
        out->up += (uint64_t)block->up[lane];
        out->down += (uint64_t)(block->misrounded[lane] - block->up[lane]);
        out->unexplained += (uint64_t)block->unexplained[lane];
        out->unfaithful += (uint64_t)block->unfaithful[lane];
        out->outliers += (uint64_t)block->outliers[lane];
    }
}

static void add_block(fx_rounding *rounding, uint64_t first, const double *saved, const double *reference,
                      const double *spread)
{
    static const double none[FX_ROUNDING_BLOCK];
    fx_rounding_block block;
    spread = spread == NULL ? none : spread;
    kernel()(rounding, saved, reference, spread, &block);
    add_sums(rounding, &block);
    int64_t marked = 0;
    for (size_t lane = 0; lane < FX_ROUNDING_LANES; lane++) {
        marked |= block.marked[lane];
    }
    size_t n_plain = FX_ROUNDING_BLOCK;
    for (size_t i = 0; marked != 0 && i < FX_ROUNDING_BLOCK; i++) {
        if ((block.marks[i] & FX_ROUNDING_SPECIAL) != 0) {
            n_plain--;
            add_one(rounding, first + i, saved[i], reference[i], reference[i], spread[i]);
        } else if (block.marks[i] != 0) {
            scaled s = scale(rounding, saved[i], reference[i], reference[i], spread[i]);
            note(rounding, &s, first + i, saved[i], reference[i], saved[i] != nearest(rounding->format, reference[i]));
        }
    }
    rounding->n_sized += n_plain;
    rounding->out.count += n_plain;
}

void fx_rounding_add(fx_rounding *rounding, uint64_t first, size_t n, const void *saved, const double *reference,
                     const double *spread)
{
    fxtap_dtype dtype = fxtap_dtype_saved(rounding->options.dtype);
    bool is_complex = fxtap_dtype_class_of(dtype) == FXTAP_CLASS_COMPLEX;
    size_t n_parts = is_complex ? 2 : 1;
    double values[2 * CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        const void *from = (const unsigned char *)saved + done * fxtap_dtype_size(dtype);
        const double *exact = reference + n_parts * done, *spreads = spread == NULL ? NULL : spread + n_parts * done;
        count_distinct(rounding, exact, n_parts * count);
        if (is_complex) {
            fx_values_to_c128(dtype, from, count, values);
            add_complex(rounding, first + done, count, values, exact, spreads);
            continue;
        }
        fx_values_to_f64(dtype, from, count, values);
        if (count == FX_ROUNDING_BLOCK && has_kernel(rounding->format)) {
            add_block(rounding, first + done, values, exact, spreads);
        } else {
            add_real(rounding, first + done, count, values, exact, spreads);
        }
    }
}

void fx_rounding_finish(fx_rounding *rounding, fxtap_rounding_error *out)
{
    fxtap_rounding_error *error = &rounding->out;
    double n = (double)error->count, mean = error->count > 0 ? rounding->bias_sum / n : 0;
    double scatter = rounding->bias_square_sum - n * mean * mean;
    error->bias = mean;
    error->bias_error = n > 1 && scatter > 0 ? sqrt(scatter / (n * (n - 1))) : 0;
    error->distinct = distinct_count(rounding);
    error->max_ratio = rounding->max_square > 0 ? sqrt(rounding->max_square) : 0;
    bool is_sized = rounding->n_sized > 0;
    error->rms_error = is_sized ? (double)sqrtl(rounding->error_sum / (long double)rounding->n_sized) : 0;
    error->rms_allowance = is_sized ? (double)sqrtl(rounding->allow_sum / (long double)rounding->n_sized) : 0;
    error->ratio = is_sized ? (double)sqrtl(rounding->error_sum / rounding->allow_sum) : (double)NAN;
    *out = *error;
}

void fx_rounding_exact(fxtap_dtype dtype, size_t n, const void *saved, const void *reference, const void *third,
                       fxtap_rounding_error *out)
{
    fxtap_dtype as_saved = fxtap_dtype_saved(dtype);
    size_t size = fxtap_dtype_size(as_saved);
    *out = (fxtap_rounding_error){.count = n, .ratio = NAN};
    if (n == 0 || memcmp(saved, reference, n * size) == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char *at = (const unsigned char *)saved + i * size;
        const unsigned char *exact = (const unsigned char *)reference + i * size;
        if (memcmp(at, exact, size) == 0 ||
            (third != NULL && memcmp(at, (const unsigned char *)third + i * size, size) == 0)) {
            continue;
        }
        out->misrounded++;
        if (out->n_worst < FXTAP_ROUNDING_WORST_MAX) {
            fxtap_rounding_point *point = &out->worst[out->n_worst++];
            point->index = i;
            fx_values_to_f64(as_saved, at, 1, &point->saved);
            fx_values_to_f64(as_saved, exact, 1, &point->reference);
        }
    }
}

static bool same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

bool fx_rounding_same_bits(fxtap_dtype saved, size_t n, const void *a, const void *b)
{
    size_t size = fxtap_dtype_size(saved);
    if (memcmp(a, b, n * size) == 0) {
        return true;
    }
    fxtap_dtype_class class_of = fxtap_dtype_class_of(saved);
    if (class_of != FXTAP_CLASS_FLOAT && class_of != FXTAP_CLASS_COMPLEX) {
        return false;
    }
    double left[2 * CHUNK], right[2 * CHUNK];
    for (size_t done = 0; done < n; done += CHUNK) {
        size_t count = n - done < CHUNK ? n - done : CHUNK;
        fx_values_to_c128(saved, (const unsigned char *)a + done * size, count, left);
        fx_values_to_c128(saved, (const unsigned char *)b + done * size, count, right);
        for (size_t i = 0; i < 2 * count; i++) {
            if (!same_number(left[i], right[i])) {
                return false;
            }
        }
    }
    return true;
}
