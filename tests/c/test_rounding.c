/* test_rounding.c - rounding to every dtype, and results measured against their float64 reference. */
#include "support_cmocka.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/cpu.h"
#include "tensor/rounding.h"
#include "tensor/values.h"

static uint64_t seed = 1;

static uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double random_unit(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53;
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* All finite values of an 8 or 16-bit dtype, by its conversion to float32, in order; -0 is left out. */
static size_t all_values(fxtap_dtype dtype, size_t n_bits, double *out)
{
    size_t n = 0;
    for (uint32_t bits = 0; bits < 1u << n_bits; bits++) {
        float value;
        uint8_t low = (uint8_t)bits;
        uint16_t both = (uint16_t)bits;
        if (dtype == FXTAP_FLOAT16) {
            fx_convert_half(&both, 1, &value);
        } else if (n_bits == 16) {
            fx_convert_to_saved(dtype, &both, 1, &value);
        } else {
            value = fx_float8_table(dtype)[low];
        }
        if (isfinite(value) && !(value == 0 && signbit(value))) {
            out[n++] = (double)value;
        }
    }
    qsort(out, n, sizeof *out, compare_doubles);
    size_t n_different = 0;
    for (size_t i = 0; i < n; i++) { /* the unused bits of float6 repeat values */
        if (i == 0 || out[i] != out[n_different - 1]) {
            out[n_different++] = out[i];
        }
    }
    return n_different;
}

/*
 * The midpoint of each pair of neighbours rounds to the even one of them, and what is just beside it to the nearer one.
 * Of two neighbours, the even one has the more trailing zero bits; float64 holds all midpoints.
 */
static int trailing_zeros(double value)
{
    uint64_t bits;
    int exponent;
    if (value == 0) {
        return 2000;
    }
    double mantissa = ldexp(frexp(value, &exponent), 53);
    bits = (uint64_t)fabs(mantissa);
    return exponent + __builtin_ctzll(bits);
}

static void check_all_midpoints(fxtap_dtype dtype, size_t n_bits)
{
    static double values[1 << 16];
    const fx_rounding_format *format = fx_rounding_format_of(dtype);
    size_t n = all_values(dtype, n_bits, values);
    assert_true(n > 30);
    assert_true(values[n - 1] == format->largest);
    for (size_t i = 0; i + 1 < n; i++) {
        double low = values[i], high = values[i + 1], middle = low + (high - low) / 2;
        double even = trailing_zeros(low) > trailing_zeros(high) ? low : high;
        bool negative = middle < 0 || (middle == 0 && low < 0);
        assert_true(fx_rounding_nearest(format, low) == low);
        assert_true(fx_rounding_nearest(format, middle) == even);
        assert_true(fx_rounding_nearest(format, nextafter(middle, -INFINITY)) == low);
        assert_true(fx_rounding_nearest(format, nextafter(middle, INFINITY)) == high);
        if (even == 0 && format->has_zero_sign) {
            assert_true(signbit(fx_rounding_nearest(format, middle)) == negative);
        }
    }
}

static void test_midpoints_of_small_dtypes(void **state)
{
    (void)state;
    check_all_midpoints(FXTAP_FLOAT16, 16);
    check_all_midpoints(FXTAP_BFLOAT16, 16);
    static const fxtap_dtype dtypes[] = {FXTAP_FLOAT8_E4M3FN,      FXTAP_FLOAT8_E5M2,   FXTAP_FLOAT8_E4M3FNUZ,
                                         FXTAP_FLOAT8_E5M2FNUZ,    FXTAP_FLOAT8_E4M3,   FXTAP_FLOAT8_E3M4,
                                         FXTAP_FLOAT8_E4M3B11FNUZ, FXTAP_FLOAT6_E2M3FN, FXTAP_FLOAT6_E3M2FN};
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        check_all_midpoints(dtypes[i], 8);
    }
}

/* e8m0 has positive powers of two alone; a tie (1.5 times a power) goes to the upper one, as in torch. */
static void test_powers_of_two(void **state)
{
    (void)state;
    const fx_rounding_format *format = fx_rounding_format_of(FXTAP_FLOAT8_E8M0FNU);
    for (int e = -126; e < 127; e++) {
        assert_true(fx_rounding_nearest(format, ldexp(1.0, e)) == ldexp(1.0, e));
        assert_true(fx_rounding_nearest(format, ldexp(-1.25, e)) == ldexp(1.0, e));
        assert_true(fx_rounding_nearest(format, ldexp(nextafter(1.5, 0), e)) == ldexp(1.0, e));
        assert_true(fx_rounding_nearest(format, ldexp(1.5, e)) == ldexp(2.0, e));
    }
    assert_true(fx_rounding_nearest(format, 0) == 0x1p-127);
    assert_true(isnan(fx_rounding_nearest(format, 0x1p128)));
}

static void test_overflow(void **state)
{
    (void)state;
    const struct {
        fxtap_dtype dtype;
        double last, first; /* the last number that rounds to the largest, and the tie or the first beyond */
        double beyond;
    } cases[] = {
        {FXTAP_FLOAT16, 65519.999, 65520, INFINITY},
        {FXTAP_BFLOAT16, 0x1.fefffp127, 0x1.ffp127, INFINITY},
        {FXTAP_FLOAT32, 0x1.fffffefffffffp127, 0x1.ffffffp127, INFINITY},
        {FXTAP_FLOAT8_E5M2, 61439.9, 61440, INFINITY},
        {FXTAP_FLOAT8_E4M3, 247.9, 248, INFINITY},
        {FXTAP_FLOAT8_E4M3FN, 464, 464.1, NAN}, /* 480 would be odd */
        {FXTAP_FLOAT8_E4M3FNUZ, 247.9, 248, NAN},
        {FXTAP_FLOAT8_E5M2FNUZ, 61439.9, 61440, NAN},
        {FXTAP_FLOAT6_E2M3FN, 7.4, 1e9, 7.5},
        {FXTAP_FLOAT4_E2M1FN_X2, 5.9, INFINITY, 6},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const fx_rounding_format *format = fx_rounding_format_of(cases[i].dtype);
        assert_true(fx_rounding_nearest(format, cases[i].last) == format->largest);
        assert_true(fx_rounding_nearest(format, -cases[i].last) == -format->largest);
        assert_true(same(fx_rounding_nearest(format, cases[i].first), cases[i].beyond));
        assert_true(isnan(fx_rounding_nearest(format, NAN)));
    }
    assert_true(fx_rounding_nearest(fx_rounding_format_of(FXTAP_FLOAT64), 1e308) == 1e308);
    assert_null(fx_rounding_format_of(FXTAP_INT32));
    assert_null(fx_rounding_format_of(FXTAP_BOOL));
}

/* float32 by the processor's conversion: random bits of float64 in its range, and its subnormals. */
static void test_float32_as_the_processor(void **state)
{
    (void)state;
    const fx_rounding_format *format = fx_rounding_format_of(FXTAP_FLOAT32);
    for (size_t i = 0; i < 1000000; i++) {
        double value = ldexp(random_unit() - 0.5, (int)(random_u64() % 290) - 155);
        float rounded = (float)value;
        assert_true(same(fx_rounding_nearest(format, value), (double)rounded));
        double middle = ((double)rounded + (double)nextafterf(rounded, INFINITY)) / 2;
        assert_true(same(fx_rounding_nearest(format, middle), (double)(float)middle));
    }
    assert_true(same(fx_rounding_nearest(format, -1e-60), -0.0));
    assert_true(same(fx_rounding_nearest(format, 0x1p-150), 0.0));
    assert_true(same(fx_rounding_nearest(format, 0x1.8p-150), 0x1p-149));
}

/* ---- measuring ---- */

static fxtap_rounding_error measure(const fx_rounding_options *options, size_t n, const void *saved,
                                    const double *reference, const double *spread)
{
    fx_rounding *rounding = malloc(sizeof *rounding);
    fxtap_rounding_error out;
    fx_rounding_init(rounding, options);
    fx_rounding_add(rounding, 0, n, saved, reference, spread);
    fx_rounding_finish(rounding, &out);
    free(rounding);
    return out;
}

static void test_numbers_by_hand(void **state)
{
    (void)state;
    /* bfloat16 between 1 and 2: spacing 2^-7. 1.003 is nearest to 1, so 1 is right and 1 + 2^-7 is misrounded up. */
    const float saved[] = {1, 1 + 0x1p-7f, 2, -0.0f, 1.5f};
    const double reference[] = {1.003, 1.003, 2, 0.0, 1.5 + 0x1p-7};
    fx_rounding_options options = {.dtype = FXTAP_BFLOAT16};
    fxtap_rounding_error error = measure(&options, 5, saved, reference, NULL);
    assert_int_equal(error.count, 5);
    assert_int_equal(error.misrounded, 2);
    assert_int_equal(error.up, 1);
    assert_int_equal(error.down, 1);
    assert_int_equal(error.unexplained, 2); /* without inner error nothing explains them */
    assert_int_equal(error.outliers, 0);
    assert_int_equal(error.zero_signs, 1);
    assert_int_equal(error.special, 0);
    assert_int_equal(error.distinct, 4);
    assert_true(fabs(error.max_ulp - 1) < 1e-12);
    assert_int_equal(error.max_ulp_index, 4);
    assert_true(fabs(error.max_ratio - 2) < 1e-12);
    assert_int_equal(error.max_ratio_index, 4);
    assert_true(fabs(error.bias) < 1e-12); /* +1 and -1 ulp */
    assert_true(fabs(error.bias_error - sqrt(2.0 / (5 * 4))) < 1e-12);
    double up = 1 + 0x1p-7 - 1.003;
    double sum = 0.003 * 0.003 + up * up + 0x1p-14;
    assert_true(fabs(error.rms_error - sqrt(sum / 5)) < 1e-9);
    double allowed = 3 * 0x1p-16 + 0x1p-14; /* half: 2^-8 three times, 2^-7 at 2; nothing at 0 */
    assert_true(fabs(error.rms_allowance - sqrt(allowed / 5)) < 1e-9);
    assert_true(fabs(error.ratio - sqrt(sum / allowed)) < 1e-6);
    assert_int_equal(error.n_worst, 2);
    assert_int_equal(error.worst[0].index, 4);
    assert_true(error.worst[0].saved == 1.5 && error.worst[0].reference == 1.5 + 0x1p-7);
    assert_int_equal(error.worst[1].index, 1);
}

/* The allowance is the root of the sum of the squares of its three parts. */
static void test_allowance(void **state)
{
    (void)state;
    const float saved[] = {1.25f};
    const double reference[] = {1.0}, spread[] = {0.01};
    fx_rounding_options options = {.dtype = FXTAP_FLOAT16, .spread_scale = 2, .relative = 0.03};
    const uint16_t half[] = {0x3d00}; /* 1.25 */
    fxtap_rounding_error error = measure(&options, 1, half, reference, spread);
    double allowed = sqrt(0x1p-22 + 0.02 * 0.02 + 0.03 * 0.03);
    assert_true(fabs(error.rms_allowance - allowed) < 1e-15);
    assert_true(fabs(error.max_ratio - 0.25 / allowed) < 1e-12);
    assert_int_equal(error.outliers, 0);
    options.spread_scale = 0.5;
    options.relative = 0;
    error = measure(&options, 1, half, reference, spread);
    assert_int_equal(error.outliers, 1); /* 0.25 is more than 8 * 0.005 */
    options.dtype = FXTAP_FLOAT32;
    error = measure(&options, 1, saved, reference, NULL);
    assert_true(fabs(error.rms_allowance - 0x1p-24) < 1e-20);
    options.dtype = FXTAP_FLOAT64;
    const double same_value[] = {1.0};
    error = measure(&options, 1, same_value, reference, NULL);
    assert_true(fabs(error.rms_allowance - 0x1p-53 * sqrt(2)) < 1e-28);
}

/* 8 * inner reaches from the reference over the boundary between the two numbers, or it does not. */
static void test_what_inner_arithmetic_explains(void **state)
{
    (void)state;
    const float saved[] = {1 + 0x1p-7f, 1 + 0x1p-7f};
    const double reference[] = {1 + 0x1p-8 - 1e-6, 1.001}; /* the boundary is 1 + 2^-8 = 1.0039 */
    fx_rounding_options options = {.dtype = FXTAP_BFLOAT16, .inner_relative = 0x1p-21};
    fxtap_rounding_error error = measure(&options, 2, saved, reference, NULL);
    assert_int_equal(error.misrounded, 2);
    assert_int_equal(error.unexplained, 1);
    options.inner_relative = 1e-8;
    error = measure(&options, 2, saved, reference, NULL);
    assert_int_equal(error.unexplained, 2);
    const double spread[] = {0, 0.001};
    options.inner_scale = 1;
    options.inner_relative = 0x1p-21;
    error = measure(&options, 2, saved, reference, spread);
    assert_int_equal(error.unexplained, 0);
}

static void test_not_finite(void **state)
{
    (void)state;
    fx_rounding_options options = {.dtype = FXTAP_FLOAT16};
    const uint16_t inf = 0x7c00, nan = 0x7e00, largest = 0x7bff, one = 0x3c00, minus_inf = 0xfc00;
    const uint16_t saved[] = {inf, nan, inf, largest, nan, one, inf, largest, inf, minus_inf};
    const double reference[] = {1e9, NAN, 65519, 65525, 1, NAN, -INFINITY, 1e6, 60000, -70000};
    fxtap_rounding_error error = measure(&options, 10, saved, reference, NULL);
    assert_int_equal(error.count, 0);
    assert_int_equal(error.special, 5);    /* from the fifth on; but -70000 is -inf, as saved */
    assert_int_equal(error.misrounded, 2); /* one side of the edge of the range, within rounding */
    assert_true(isnan(error.ratio));
    assert_int_equal(error.n_worst, 5);
    assert_int_equal(error.worst[0].index, 4);
    options.dtype = FXTAP_FLOAT8_E4M3FN; /* overflows to NaN or to 448 */
    const float small[] = {448, NAN, -448, 448};
    const double large[] = {1e9, 1e9, -INFINITY, -1e9};
    error = measure(&options, 4, small, large, NULL);
    assert_int_equal(error.special, 1);
    assert_int_equal(error.worst[0].index, 3);
}

/* Hardware may flush subnormals: allowed in size, though misrounded. A non-finite spread takes no part in size. */
static void test_flush_and_unknown_spread(void **state)
{
    (void)state;
    const float saved[] = {0, 5};
    const double reference[] = {1e-39, 1}, spread[] = {0, INFINITY};
    fx_rounding_options options = {.dtype = FXTAP_FLOAT32, .spread_scale = 1, .inner_scale = 1};
    fxtap_rounding_error error = measure(&options, 2, saved, reference, spread);
    assert_int_equal(error.misrounded, 2);
    assert_int_equal(error.outliers, 0);
    assert_true(error.ratio < 0.1);
    assert_true(error.max_ulp > 1e6);
}

static void test_huge_and_tiny_float64(void **state)
{
    (void)state;
    const double saved[] = {0x1.0000000000001p1000, 0x1.0000000000001p-900}, reference[] = {0x1p1000, 0x1p-900};
    fx_rounding_options options = {.dtype = FXTAP_FLOAT64};
    for (size_t i = 0; i < 2; i++) {
        fxtap_rounding_error error = measure(&options, 1, &saved[i], &reference[i], NULL);
        assert_true(fabs(error.ratio - sqrt(2)) < 1e-12); /* one ulp against half an ulp times the root of 2 */
        assert_true(fabs(error.max_ulp - 1) < 1e-12);
        assert_int_equal(error.outliers, 0);
    }
}

/* A part's own rounding decides whether it is misrounded; its allowance is that of the modulus. */
static void test_complex(void **state)
{
    (void)state;
    const float saved[] = {1, 0x1p-20f, 3, 4};
    const double reference[] = {1, 0x1.1p-20, 3, 4};
    fx_rounding_options options = {.dtype = FXTAP_COMPLEX64};
    fxtap_rounding_error error = measure(&options, 2, saved, reference, NULL);
    assert_int_equal(error.count, 4);
    assert_int_equal(error.misrounded, 1);
    assert_true(fabs(error.max_ulp - 0.5) < 1e-12); /* 2^-24 off; an ulp at the modulus is 2^-23 */
    assert_int_equal(error.max_ulp_index, 0);
    assert_true(fabs(error.max_ratio - 1) < 1e-6);
}

/* Blocks in any order give the counts of one pass; sums differ by rounding alone. */
static void test_blocks(void **state)
{
    (void)state;
    enum { N = 10007 };
    static float saved[N];
    static double reference[N];
    for (size_t i = 0; i < N; i++) {
        reference[i] = random_unit() - 0.5;
        saved[i] = (float)(reference[i] * (1 + (random_unit() - 0.5) * 1e-6));
    }
    fx_rounding_options options = {.dtype = FXTAP_FLOAT32};
    fxtap_rounding_error whole = measure(&options, N, saved, reference, NULL);
    fx_rounding *rounding = malloc(sizeof *rounding);
    fx_rounding_init(rounding, &options);
    fx_rounding_add(rounding, 5000, N - 5000, saved + 5000, reference + 5000, NULL);
    fx_rounding_add(rounding, 0, 5000, saved, reference, NULL);
    fxtap_rounding_error parts;
    fx_rounding_finish(rounding, &parts);
    free(rounding);
    assert_int_equal(whole.misrounded, parts.misrounded);
    assert_int_equal(whole.outliers, parts.outliers);
    assert_int_equal(whole.distinct, parts.distinct);
    assert_true(fabs(whole.ratio - parts.ratio) < 1e-12);
    assert_int_equal(whole.max_ratio_index, parts.max_ratio_index);
    assert_int_equal(whole.n_worst, FXTAP_ROUNDING_WORST_MAX);
    for (size_t i = 0; i < whole.n_worst; i++) {
        assert_int_equal(whole.worst[i].index, parts.worst[i].index);
    }
    assert_true(whole.distinct > N * 0.98 && whole.distinct < N * 1.02);
}

static void assert_near(double actual, double expected)
{
    assert_true(actual == expected || fabs(actual - expected) <= 1e-12 * fabs(expected));
}

static void assert_same_error(const fxtap_rounding_error *a, const fxtap_rounding_error *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->misrounded, b->misrounded);
    assert_int_equal(a->up, b->up);
    assert_int_equal(a->down, b->down);
    assert_int_equal(a->unexplained, b->unexplained);
    assert_int_equal(a->unfaithful, b->unfaithful);
    assert_int_equal(a->outliers, b->outliers);
    assert_int_equal(a->special, b->special);
    assert_int_equal(a->zero_signs, b->zero_signs);
    assert_int_equal(a->distinct, b->distinct);
    assert_int_equal(a->max_ulp_index, b->max_ulp_index);
    assert_int_equal(a->max_ratio_index, b->max_ratio_index);
    assert_true(a->max_ulp == b->max_ulp);
    assert_true(a->max_ratio == b->max_ratio);
    assert_int_equal(a->n_worst, b->n_worst);
    assert_memory_equal(a->worst, b->worst, a->n_worst * sizeof *a->worst);
    assert_near(a->rms_error, b->rms_error);
    assert_near(a->rms_allowance, b->rms_allowance);
    assert_near(a->ratio, b->ratio);
    assert_near(a->bias, b->bias);
    assert_near(a->bias_error, b->bias_error);
}

/* Results as kernels give them, and what is rare: zeros of both signs, subnormals, overflow, NaN, wild errors. */
static void draw(const fx_rounding_format *format, float *saved, double *reference, double *spread)
{
    static const double rare[] = {0, -0.0, 1e-42, -1e-39, 1e39, -INFINITY, INFINITY, NAN, 1e300, 7e-320};
    double value = ldexp(random_unit() - 0.5, (int)(random_u64() % 12) - 6);
    uint64_t dice = random_u64();
    value = dice % 16 == 0 ? rare[dice / 16 % COUNT_OF(rare)] : value;
    *reference = value;
    double nearby = value * (1 + (random_unit() - 0.5) * fx_rounding_unit(format) * (dice / 512 % 4 == 0 ? 300 : 1));
    *saved = (float)fx_rounding_nearest(format, dice / 4096 % 32 == 0 ? rare[dice % COUNT_OF(rare)] : nearby);
    *saved = value == 0 && dice / 65536 % 4 == 0 ? -*saved : *saved;
    *spread = dice / 65536 % 64 == 0 ? 1e200 * random_unit() : fabs(value) * fx_rounding_unit(format) * random_unit();
    *spread = dice / 65536 % 256 == 1 ? INFINITY : *spread;
}

/* The kernels give the sums of one another in all bits, and what single elements give, which pass none. */
static void check_kernels(fxtap_dtype dtype, bool has_spread)
{
    enum { N = 21 * 256 + 100 };
    static float saved[N];
    static double reference[N], spread[N];
    double rho = 0x1p-24 / fx_rounding_unit(fx_rounding_format_of(dtype));
    fx_rounding_options options = {
        .dtype = dtype, .spread_scale = 1.5, .relative = 1e-3, .inner_scale = 2 * rho, .inner_relative = 0.1 * rho};
    for (size_t i = 0; i < N; i++) {
        draw(fx_rounding_format_of(dtype), &saved[i], &reference[i], &spread[i]);
    }
    const double *given = has_spread ? spread : NULL;
    fx_rounding *rounding = malloc(sizeof *rounding);
    fxtap_rounding_error single, first = {0};
    fx_rounding_init(rounding, &options);
    for (size_t i = 0; i < N; i++) {
        fx_rounding_add(rounding, i, 1, &saved[i], &reference[i], has_spread ? &spread[i] : NULL);
    }
    fx_rounding_finish(rounding, &single);
    free(rounding);
    assert_true(single.special > 0 && single.zero_signs > 0 && single.outliers > 0 && single.unexplained > 0 &&
                single.unfaithful > 0);
    for (int level = FX_CPU_SCALAR; level <= (int)fx_cpu_best(); level++) {
        fx_cpu_use((fx_cpu_level)level);
        fxtap_rounding_error error = measure(&options, N, saved, reference, given);
        assert_same_error(&error, &single);
        first = level == FX_CPU_SCALAR ? error : first;
        assert_true(error.ratio == first.ratio && error.rms_error == first.rms_error && error.bias == first.bias);
    }
    fx_cpu_use(fx_cpu_best());
}

static void test_kernels(void **state)
{
    (void)state;
    static const fxtap_dtype dtypes[] = {FXTAP_FLOAT32,     FXTAP_BFLOAT16,      FXTAP_FLOAT8_E5M2,
                                         FXTAP_FLOAT8_E3M4, FXTAP_FLOAT8_E4M3FN, FXTAP_FLOAT6_E2M3FN};
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        check_kernels(dtypes[i], false);
        check_kernels(dtypes[i], true);
    }
}

static void test_distinct_values(void **state)
{
    (void)state;
    enum { N = 300000 };
    double *reference = malloc(N * sizeof *reference);
    float *saved = calloc(N, sizeof *saved);
    for (size_t i = 0; i < N; i++) {
        reference[i] = (double)(i % 1000);
    }
    fx_rounding_options options = {.dtype = FXTAP_FLOAT32};
    fxtap_rounding_error error = measure(&options, N, saved, reference, NULL);
    assert_true(error.distinct > 980 && error.distinct < 1020);
    for (size_t i = 0; i < N; i++) {
        reference[i] = (double)i;
    }
    error = measure(&options, N, saved, reference, NULL);
    assert_int_equal(error.distinct, FX_ROUNDING_DISTINCT_MAX);
    free(reference);
    free(saved);
}

static void test_integers(void **state)
{
    (void)state;
    const int64_t saved[] = {1, 2, INT64_MAX, -4}, reference[] = {1, 3, INT64_MAX - 1, -4}, third[] = {1, 2, 0, -4};
    fxtap_rounding_error error;
    fx_rounding_exact(FXTAP_INT64, 4, saved, reference, NULL, &error);
    assert_int_equal(error.count, 4);
    assert_int_equal(error.misrounded, 2);
    assert_int_equal(error.n_worst, 2);
    assert_int_equal(error.worst[0].index, 1);
    assert_true(error.worst[0].saved == 2 && error.worst[0].reference == 3);
    fx_rounding_exact(FXTAP_INT64, 4, saved, reference, third, &error);
    assert_int_equal(error.misrounded, 1);
    assert_int_equal(error.worst[0].index, 2);
}

static void test_same_bits(void **state)
{
    (void)state;
    uint32_t nan = 0x7fc00001;
    float a[] = {1, NAN, -0.0f}, b[] = {1, 0, -0.0f}, c[] = {1, NAN, 0.0f};
    memcpy(&b[1], &nan, sizeof nan);
    assert_true(fx_rounding_same_bits(FXTAP_FLOAT32, 3, a, a));
    assert_true(fx_rounding_same_bits(FXTAP_FLOAT32, 3, a, b));
    assert_false(fx_rounding_same_bits(FXTAP_FLOAT32, 3, a, c));
    assert_false(fx_rounding_same_bits(FXTAP_INT32, 3, a, b));
    assert_true(fx_rounding_same_bits(FXTAP_COMPLEX64, 1, a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_midpoints_of_small_dtypes),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_float32_as_the_processor),
        cmocka_unit_test(test_numbers_by_hand),
        cmocka_unit_test(test_allowance),
        cmocka_unit_test(test_what_inner_arithmetic_explains),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_flush_and_unknown_spread),
        cmocka_unit_test(test_huge_and_tiny_float64),
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_distinct_values),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
