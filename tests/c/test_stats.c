/*
 * test_stats.c - statistics against a plain long double reference, every vector level against the scalar code bit for
 * bit, and the hash against XXH3-128 of the saved bytes.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tensor/convert.h"
#include "tensor/cpu.h"
#include "tensor/hash.h"
#include "tensor/stats.h"
#include "util/memory.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double random_unit(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53 * 2 - 1;
}

static fxtap_stats stats_of(fxtap_dtype dtype, const void *data, size_t n)
{
    fxtap_stats stats;
    int64_t shape[1] = {(int64_t)n};
    fxtap_view view = {.data = data, .dtype = dtype, .ndim = 1, .shape = shape};
    assert_int_equal(fxtap_stats_compute(&view, &stats, NULL), FXTAP_OK);
    return stats;
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void assert_same(const fxtap_stats *a, const fxtap_stats *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->finite_count, b->finite_count);
    assert_int_equal(a->nan_count, b->nan_count);
    assert_int_equal(a->pos_inf_count, b->pos_inf_count);
    assert_int_equal(a->neg_inf_count, b->neg_inf_count);
    assert_int_equal(a->zero_count, b->zero_count);
    assert_int_equal(a->subnormal_count, b->subnormal_count);
    assert_int_equal(a->has_range, b->has_range);
    assert_int_equal(a->min_int, b->min_int);
    assert_int_equal(a->max_int, b->max_int);
    assert_true(same_double(a->min, b->min));
    assert_true(same_double(a->max, b->max));
    assert_true(same_double(a->abs_max, b->abs_max));
    assert_true(same_double(a->mean, b->mean));
    assert_true(same_double(a->mean_imag, b->mean_imag));
    assert_true(same_double(a->std, b->std));
    assert_true(same_double(a->rms, b->rms));
    assert_true(same_double(a->l2_norm, b->l2_norm));
}

/* The scalar result, after checking that every other level gives the same. */
static fxtap_stats stats_all_levels(fxtap_dtype dtype, const void *data, size_t n)
{
    fx_cpu_use(FX_CPU_SCALAR);
    fxtap_stats scalar = stats_of(dtype, data, n);
    for (int level = FX_CPU_AVX2; level <= (int)fx_cpu_best(); level++) {
        fx_cpu_use((fx_cpu_level)level);
        fxtap_stats vector = stats_of(dtype, data, n);
        assert_same(&scalar, &vector);
    }
    fx_cpu_use(fx_cpu_best());
    return scalar;
}

static void assert_near(double actual, long double expected, long double scale)
{
    if (isnan(expected)) {
        assert_true(isnan(actual));
        return;
    }
    if (fabsl((long double)actual - expected) > 1e-12L * scale) {
        fail_msg("%.17g instead of %.20Lg", actual, expected);
    }
}

/* The reference: plain two-pass sums in long double over values that are already doubles. */
static void assert_moments(const fxtap_stats *stats, const double *values, size_t n)
{
    long double sum = 0, magnitude = 0, squares = 0, m2 = 0;
    size_t n_finite = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            sum += values[i];
            magnitude += fabsl(values[i]);
            squares += (long double)values[i] * values[i];
            n_finite++;
        }
    }
    long double count = (long double)n_finite, mean = sum / count;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            m2 += (values[i] - mean) * (values[i] - mean);
        }
    }
    assert_int_equal(stats->finite_count, n_finite);
    assert_near(stats->mean, n_finite ? mean : (long double)NAN, magnitude / count);
    assert_near(stats->std, n_finite ? sqrtl(m2 / count) : (long double)NAN, sqrtl(m2 / count));
    assert_near(stats->rms, n_finite ? sqrtl(squares / count) : (long double)NAN, sqrtl(squares / count));
    assert_near(stats->l2_norm, n_finite ? sqrtl(squares) : (long double)NAN, sqrtl(squares));
}

static void assert_reference(const fxtap_stats *stats, const double *values, size_t n, double min_normal)
{
    uint64_t nan = 0, pos_inf = 0, neg_inf = 0, zero = 0, subnormal = 0;
    double min = INFINITY, max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        nan += isnan(values[i]) != 0;
        pos_inf += isinf(values[i]) && values[i] > 0;
        neg_inf += isinf(values[i]) && values[i] < 0;
        zero += values[i] == 0;
        subnormal += values[i] != 0 && fabs(values[i]) < min_normal;
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    assert_int_equal(stats->count, n);
    assert_int_equal(stats->nan_count, nan);
    assert_int_equal(stats->pos_inf_count, pos_inf);
    assert_int_equal(stats->neg_inf_count, neg_inf);
    assert_int_equal(stats->zero_count, zero);
    assert_int_equal(stats->subnormal_count, subnormal);
    assert_int_equal(stats->has_range, nan < n);
    if (nan < n) {
        assert_true(stats->min == min);
        assert_true(stats->max == max);
        assert_true(stats->abs_max == fmax(fabs(min), fabs(max)));
    }
    assert_moments(stats, values, n);
}

/* Every length, a special value at every position. */
static void float32_lengths_and_specials(void **state)
{
    (void)state;
    const float specials[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0f, 1e-42f, FLT_MAX};
    float values[200];
    double wide[200];
    for (size_t n = 0; n <= 200; n++) {
        for (size_t at = 0; at < (n ? n : 1); at++) {
            for (size_t i = 0; i < n; i++) {
                values[i] = (float)random_unit();
            }
            if (n > 0) {
                values[at] = specials[(at + n) % 7];
            }
            for (size_t i = 0; i < n; i++) {
                wide[i] = (double)values[i];
            }
            fxtap_stats stats = stats_all_levels(FXTAP_FLOAT32, values, n);
            assert_reference(&stats, wide, n, FLT_MIN);
        }
    }
}

static void float64_lengths_and_specials(void **state)
{
    (void)state;
    const double specials[] = {(double)NAN, INFINITY, -INFINITY, -0.0, 1e-310, 1e300, -1e-200};
    double values[200];
    for (size_t n = 0; n <= 200; n++) {
        for (size_t at = 0; at < (n ? n : 1); at++) {
            for (size_t i = 0; i < n; i++) {
                values[i] = random_unit();
            }
            if (n > 0) {
                values[at] = specials[(at + n) % 7];
            }
            fxtap_stats stats = stats_all_levels(FXTAP_FLOAT64, values, n);
            assert_reference(&stats, values, n, DBL_MIN);
        }
    }
}

static double half_value(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                  : ldexp(fraction + (exponent ? 1024 : 0), (exponent ? exponent : 1) - 25);
    return bits & 0x8000 ? -value : value;
}

/* All 65536 values at once, then pieces of every length. */
static void float16_every_value(void **state)
{
    (void)state;
    static uint16_t halves[65536];
    static double wide[65536];
    for (size_t i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)(i * 40503u);
        wide[i] = half_value(halves[i]);
    }
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT16, halves, 65536);
    assert_reference(&stats, wide, 65536, 0x1p-14);
    for (size_t n = 0; n <= 200; n++) {
        size_t at = random_u64() % 65000;
        stats = stats_all_levels(FXTAP_FLOAT16, halves + at, n);
        assert_reference(&stats, wide + at, n, 0x1p-14);
    }
}

/* bfloat16 is hashed as the float32 that is saved, but judged as bfloat16. */
static void bfloat16_statistics_and_hash(void **state)
{
    (void)state;
    static uint16_t narrow[65536];
    static float saved[65536];
    static double wide[65536];
    for (size_t i = 0; i < 65536; i++) {
        narrow[i] = (uint16_t)(i * 40503u);
        uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(&saved[i], &bits, sizeof bits);
        wide[i] = (double)saved[i];
    }
    for (size_t n = 0; n <= 65536; n = n * 3 + 1) {
        int64_t shape[1] = {(int64_t)n};
        fxtap_view view = {.data = narrow, .dtype = FXTAP_BFLOAT16, .ndim = 1, .shape = shape};
        fxtap_stats stats;
        fxtap_hash128 hash;
        assert_int_equal(fxtap_stats_compute(&view, &stats, &hash), FXTAP_OK);
        assert_reference(&stats, wide, n, (double)FLT_MIN);
        XXH128_hash_t expected = XXH3_128bits(saved, 4 * n);
        assert_int_equal(hash.high, expected.high64);
        assert_int_equal(hash.low, expected.low64);
    }
}

typedef struct small_format {
    fxtap_dtype dtype;
    unsigned n_codes;
    unsigned first_normal; /* the code with exponent field 1 and fraction 0; 0: the format has no subnormals */
} small_format;

/* Every code of every float8 and float6 format: subnormal by its own format, not as float32. */
static void small_floats_every_code(void **state)
{
    (void)state;
    const small_format formats[] = {
        {FXTAP_FLOAT8_E4M3FN, 256, 0x08},   {FXTAP_FLOAT8_E5M2, 256, 0x04},        {FXTAP_FLOAT8_E4M3FNUZ, 256, 0x08},
        {FXTAP_FLOAT8_E5M2FNUZ, 256, 0x04}, {FXTAP_FLOAT8_E8M0FNU, 256, 0},        {FXTAP_FLOAT8_E4M3, 256, 0x08},
        {FXTAP_FLOAT8_E3M4, 256, 0x10},     {FXTAP_FLOAT8_E4M3B11FNUZ, 256, 0x08}, {FXTAP_FLOAT6_E2M3FN, 64, 0x08},
        {FXTAP_FLOAT6_E3M2FN, 64, 0x04},
    };
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const float *table = fx_float8_table(formats[k].dtype);
        unsigned char codes[256];
        double wide[256];
        for (unsigned i = 0; i < formats[k].n_codes; i++) {
            codes[i] = (unsigned char)i;
            wide[i] = (double)table[i];
        }
        double min_normal = formats[k].first_normal ? (double)table[formats[k].first_normal] : 0;
        fxtap_stats stats = stats_all_levels(formats[k].dtype, codes, formats[k].n_codes);
        assert_reference(&stats, wide, formats[k].n_codes, min_normal);
        assert_int_equal(stats.dtype, formats[k].dtype);
    }
}

static void float4_pairs_and_complex32(void **state)
{
    (void)state;
    unsigned char pairs[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe}; /* all sixteen codes */
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT4_E2M1FN_X2, pairs, 8);
    assert_true(stats.count == 16 && stats.zero_count == 2 && stats.subnormal_count == 2 && stats.mean == 0);
    assert_true(stats.min == -6 && stats.max == 6);
    assert_near(stats.l2_norm, sqrtl(2 * (0.25L + 1 + 2.25L + 4 + 9 + 16 + 36)), 1);
    uint16_t halves[] = {0x4200, 0x4400, 0x0001, 0}; /* 3+4i, and the smallest subnormal */
    stats = stats_all_levels(FXTAP_COMPLEX32, halves, 2);
    assert_true(stats.count == 2 && stats.subnormal_count == 1 && stats.zero_count == 0);
    assert_near(stats.l2_norm, 5, 5);
}

/* Several parts and blocks, far from zero with a small spread: a naive sum of squares would lose all precision. */
static void no_cancellation(void **state)
{
    (void)state;
    enum { n = 100003 };
    static float values[n];
    static double wide[n];
    for (size_t i = 0; i < n; i++) {
        values[i] = 1e6f + (float)random_unit();
        wide[i] = (double)values[i];
    }
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT32, values, n);
    assert_reference(&stats, wide, n, FLT_MIN);
    for (size_t i = 0; i < n; i++) {
        wide[i] = 1e9 + random_unit();
    }
    stats = stats_all_levels(FXTAP_FLOAT64, wide, n);
    assert_reference(&stats, wide, n, DBL_MIN);
    values[0] = 1e30f; /* an outlier first, a different mean in each part */
    for (size_t i = 0; i < n; i++) {
        values[i] += (float)(i / 4096);
        wide[i] = (double)values[i];
    }
    stats = stats_all_levels(FXTAP_FLOAT32, values, n);
    assert_reference(&stats, wide, n, FLT_MIN);
}

static void float64_keeps_its_range(void **state)
{
    (void)state;
    double large[] = {1e300, 1e300, -1e308};
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT64, large, 2);
    assert_near(stats.l2_norm, 1e300L * sqrtl(2), 1e300L);
    assert_near(stats.rms, 1e300L, 1e300L);
    assert_true(stats.std == 0);
    stats = stats_all_levels(FXTAP_FLOAT64, large, 3);
    assert_near(stats.l2_norm, 1e308L, 1e308L);
    double tiny[] = {3e-200, 4e-200};
    stats = stats_all_levels(FXTAP_FLOAT64, tiny, 2);
    assert_near(stats.l2_norm, 5e-200L, 5e-200L);
    double z[] = {3e200, 4e200};
    stats = stats_all_levels(FXTAP_COMPLEX128, z, 1);
    assert_near(stats.l2_norm, 5e200L, 5e200L);
    assert_near(stats.abs_max, 5e200L, 5e200L);
}

static void float16_cases(void **state)
{
    (void)state;
    uint16_t two[] = {0x5cb0, 0x5e40}; /* 300, 400 */
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT16, two, 2);
    assert_true(stats.l2_norm == 500);
    static uint16_t many[70000];
    uint16_t table[200];
    for (unsigned v = 0; v < 200; v++) {
        for (unsigned bits = 0; bits < 0x7c00; bits++) {
            if (half_value((uint16_t)bits) == v) {
                table[v] = (uint16_t)bits;
            }
        }
    }
    for (size_t i = 0; i < 70000; i++) {
        many[i] = table[i % 200];
    }
    stats = stats_all_levels(FXTAP_FLOAT16, many, 70000);
    assert_near(stats.std * stats.std, 3333.25L, 3333.25L);
}

static void zeros_have_an_order(void **state)
{
    (void)state;
    float values[] = {0.0f, -0.0f, 0.0f};
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT32, values, 3);
    assert_true(signbit(stats.min) && !signbit(stats.max));
    assert_int_equal(stats.zero_count, 3);
    float all_nan[] = {NAN, NAN};
    stats = stats_all_levels(FXTAP_FLOAT32, all_nan, 2);
    assert_false(stats.has_range);
    assert_int_equal(stats.nan_count, 2);
    assert_true(isnan(stats.mean) && isnan(stats.l2_norm));
    float infinities[] = {INFINITY, 1, -INFINITY};
    stats = stats_all_levels(FXTAP_FLOAT32, infinities, 3);
    assert_true(stats.max == INFINITY && stats.min == -INFINITY && stats.abs_max == INFINITY && stats.mean == 1);
}

static void complex_cases(void **state)
{
    (void)state;
    float z[] = {3, 4};
    fxtap_stats stats = stats_all_levels(FXTAP_COMPLEX64, z, 1);
    assert_true(stats.l2_norm == 5 && stats.abs_max == 5 && stats.rms == 5 && stats.std == 0);
    assert_true(stats.mean == 3 && stats.mean_imag == 4);
    assert_false(stats.has_range);
    float many[] = {1, 1, NAN, 0, INFINITY, NAN, INFINITY, -1, 0, -0.0f, 1e-42f, 0, 0, -INFINITY, -1, -1};
    stats = stats_all_levels(FXTAP_COMPLEX64, many, 8);
    assert_int_equal(stats.nan_count, 2);
    assert_int_equal(stats.pos_inf_count, 2);
    assert_int_equal(stats.zero_count, 1);
    assert_int_equal(stats.subnormal_count, 1);
    assert_int_equal(stats.finite_count, 4);
    assert_true(stats.abs_max == INFINITY && stats.mean_imag == 0);
    assert_near(stats.mean, (long double)1e-42f / 4, 1);
    assert_near(stats.l2_norm, 2, 2);
}

static void integers_are_exact(void **state)
{
    (void)state;
    int8_t low8[] = {-128};
    fxtap_stats stats = stats_all_levels(FXTAP_INT8, low8, 1);
    assert_true(stats.abs_max == 128 && stats.min_int == -128 && stats.min == -128 && stats.l2_norm == 128);
    int64_t low64[] = {INT64_MIN, INT64_MIN};
    stats = stats_all_levels(FXTAP_INT64, low64, 2);
    assert_true(stats.abs_max == 0x1p63 && stats.min_int == INT64_MIN && stats.mean == -0x1p63 && stats.std == 0);
    assert_near(stats.l2_norm, 0x1p63L * sqrtl(2), 0x1p63L);
    uint64_t high64[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX - 2, 0};
    stats = stats_all_levels(FXTAP_UINT64, high64, 3);
    assert_true((uint64_t)stats.max_int == UINT64_MAX && (uint64_t)stats.min_int == UINT64_MAX - 2);
    assert_near(stats.std, sqrtl(8.0L / 9), 1); /* a spread of 2 about 1.8e19 */
    stats = stats_all_levels(FXTAP_UINT64, high64, 4);
    assert_true(stats.max == 0x1p64 && stats.min == 0 && stats.zero_count == 1);
    uint8_t flags[] = {1, 0, 0, 1, 1};
    stats = stats_all_levels(FXTAP_BOOL, flags, 5);
    assert_true(stats.zero_count == 2 && stats.max_int == 1 && stats.min_int == 0 && stats.mean == 0.6);
    stats = stats_all_levels(FXTAP_INT32, NULL, 0);
    assert_false(stats.has_range);
    assert_true(isnan(stats.mean));
}

typedef struct int_kind {
    fxtap_dtype dtype;
    int64_t low;
    int64_t high;
} int_kind;

static void store_int(fxtap_dtype dtype, unsigned char *to, int64_t value)
{
    memcpy(to, &value, fxtap_dtype_size(dtype)); /* little-endian machine */
}

static void integers_of_every_length(void **state)
{
    (void)state;
    const int_kind kinds[] = {
        {FXTAP_BOOL, 0, 1},
        {FXTAP_UINT8, 0, UINT8_MAX},
        {FXTAP_INT8, INT8_MIN, INT8_MAX},
        {FXTAP_UINT16, 0, UINT16_MAX},
        {FXTAP_INT16, INT16_MIN, INT16_MAX},
        {FXTAP_UINT32, 0, UINT32_MAX},
        {FXTAP_INT32, INT32_MIN, INT32_MAX},
        {FXTAP_INT64, -(INT64_C(1) << 52), INT64_C(1) << 52},
        {FXTAP_INT64, INT32_MIN, INT32_MAX},
        {FXTAP_INT64, -3, INT64_C(1) << 31},
    };
    unsigned char data[200 * 8];
    double wide[200];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t bytes = fxtap_dtype_size(kinds[k].dtype);
        uint64_t span = (uint64_t)kinds[k].high - (uint64_t)kinds[k].low;
        for (size_t n = 0; n <= 200; n++) {
            for (size_t i = 0; i < n; i++) {
                uint64_t draw = random_u64() % 8;
                int64_t value = draw == 0   ? kinds[k].low
                                : draw == 1 ? kinds[k].high
                                : draw == 2 ? 0
                                            : kinds[k].low + (int64_t)(random_u64() % (span + 1));
                store_int(kinds[k].dtype, data + bytes * i, value);
                wide[i] = (double)value;
            }
            fxtap_stats stats = stats_all_levels(kinds[k].dtype, data, n);
            assert_reference(&stats, wide, n, 0);
        }
    }
}

/* The result does not depend on memory order or block size; the hash is of the saved bytes. */
static void strided_equals_contiguous(void **state)
{
    (void)state;
    enum { rows = 300, columns = 517 };
    static float base[rows * columns * 2];
    static float dense[rows * columns];
    for (size_t i = 0; i < rows * columns * 2; i++) {
        base[i] = (float)random_unit();
    }
    for (size_t i = 0; i < rows * columns; i++) {
        dense[i] = base[2 * i];
    }
    int64_t shape[2] = {rows, columns}, every_other[2] = {2 * columns, 2}, transposed[2] = {1, rows};
    fxtap_view strided = {.data = base, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = every_other};
    fxtap_view plain = {.data = dense, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
    fxtap_view fortran = {.data = dense, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = transposed};
    fxtap_stats a, b, c;
    fxtap_hash128 hash_a, hash_b, hash_c;
    assert_int_equal(fxtap_stats_compute(&strided, &a, &hash_a), FXTAP_OK);
    assert_int_equal(fxtap_stats_compute(&plain, &b, &hash_b), FXTAP_OK);
    assert_int_equal(fxtap_stats_compute(&fortran, &c, &hash_c), FXTAP_OK);
    assert_same(&a, &b);
    assert_same(&a, &c);
    XXH128_hash_t expected = XXH3_128bits(dense, sizeof dense);
    assert_true(hash_a.high == expected.high64 && hash_a.low == expected.low64);
    assert_true(hash_b.high == expected.high64 && hash_b.low == expected.low64);
    assert_true(hash_c.high == expected.high64 && hash_c.low == expected.low64);
}

static void failures_are_clean(void **state)
{
    (void)state;
    float base[64] = {0};
    int64_t shape[1] = {16}, strides[1] = {2}, negative[1] = {-1};
    fxtap_view strided = {.data = base, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape, .strides = strides};
    fxtap_stats out;
    memset(&out, 0x5a, sizeof out);
    fxtap_stats before = out;
    fx_memory_fail_after(0);
    assert_int_equal(fxtap_stats_compute(&strided, &out, NULL), FXTAP_E_NOMEM);
    fx_memory_fail_after(-1);
    assert_memory_equal(&out, &before, sizeof out);
    strided.dtype = FXTAP_QINT8;
    assert_int_not_equal(fxtap_stats_compute(&strided, &out, NULL), FXTAP_OK);
    strided.dtype = FXTAP_FLOAT32;
    strided.shape = negative;
    assert_int_equal(fxtap_stats_compute(&strided, &out, NULL), FXTAP_E_INVALID);
    assert_memory_equal(&out, &before, sizeof out);
}

/* Subnormals are counted even if the caller flushes them to zero. */
static void no_flush_to_zero(void **state)
{
    (void)state;
    volatile double smallest = DBL_MIN;
    float subnormals[40];
    for (size_t i = 0; i < 40; i++) {
        subnormals[i] = 1e-42f;
    }
    fxtap_stats stats = stats_all_levels(FXTAP_FLOAT32, subnormals, 40);
    assert_true(smallest / 2 != 0);
#if defined(__SSE2__)
    unsigned saved_mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved_mode | 0x8040);
    fxtap_stats flushed = stats_of(FXTAP_FLOAT32, subnormals, 40);
    unsigned mode_after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved_mode);
    assert_int_equal(mode_after & 0x8040, 0x8040);
    assert_int_equal(flushed.subnormal_count, 40);
    assert_memory_equal(&flushed.min, &stats.min, sizeof flushed.min);
#endif
    assert_int_equal(stats.subnormal_count, 40);
}

static void hash_in_pieces(void **state)
{
    (void)state;
    static unsigned char bytes[100000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)random_u64();
    }
    for (size_t n = 0; n <= sizeof bytes; n = n * 2 + 1) {
        XXH128_hash_t expected = XXH3_128bits(bytes, n);
        for (int level = FX_CPU_SCALAR; level <= (int)fx_cpu_best(); level++) {
            fx_cpu_use((fx_cpu_level)level);
            fxtap_hash128 whole = fx_hash_bytes(bytes, n);
            assert_true(whole.high == expected.high64 && whole.low == expected.low64);
            fx_hasher hasher;
            fx_hasher_init(&hasher);
            for (size_t done = 0; done < n;) {
                size_t piece = 1 + random_u64() % 5000;
                piece = piece < n - done ? piece : n - done;
                fx_hasher_update(&hasher, bytes + done, piece);
                done += piece;
            }
            fxtap_hash128 pieces = fx_hasher_finish(&hasher);
            assert_true(pieces.high == expected.high64 && pieces.low == expected.low64);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float32_lengths_and_specials),
        cmocka_unit_test(float64_lengths_and_specials),
        cmocka_unit_test(float16_every_value),
        cmocka_unit_test(bfloat16_statistics_and_hash),
        cmocka_unit_test(small_floats_every_code),
        cmocka_unit_test(float4_pairs_and_complex32),
        cmocka_unit_test(no_cancellation),
        cmocka_unit_test(float64_keeps_its_range),
        cmocka_unit_test(float16_cases),
        cmocka_unit_test(zeros_have_an_order),
        cmocka_unit_test(complex_cases),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(integers_of_every_length),
        cmocka_unit_test(strided_equals_contiguous),
        cmocka_unit_test(failures_are_clean),
        cmocka_unit_test(no_flush_to_zero),
        cmocka_unit_test(hash_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
