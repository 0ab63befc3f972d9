/*
 * test_difference.c - the difference of two tensors against a plain long double reference, every vector level against
 * the scalar code bit for bit.
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

#include "support_difference.h"
#include "tensor/cpu.h"
#include "tensor/difference.h"
#include "tensor/values.h"
#include "util/memory.h"

/* Every metric of values that are doubles, by the definitions in difference.h. */
typedef struct reference {
    uint64_t finite, mismatched, nan, inf, within_1e3, within_5e3;
    long double error, square, golden, target, product, magnitude;
    double max_abs, max_rel;
} reference;

static void add_reference(reference *out, double b, double a, const fx_difference_options *options)
{
    if (!isfinite(a) || !isfinite(b)) {
        bool equal = (isnan(a) && isnan(b)) || a == b;
        out->nan += !equal && isnan(a) != isnan(b);
        out->inf += !equal && isnan(a) == isnan(b);
        out->mismatched += !equal;
        out->within_1e3 += equal;
        out->within_5e3 += equal;
        return;
    }
    double error = fabs(a - b), size = fabs(b);
    out->finite++;
    out->mismatched += error > options->atol + options->rtol * size;
    out->within_1e3 += error <= 1e-3 * size;
    out->within_5e3 += error <= 5e-3 * size;
    out->max_abs = fmax(out->max_abs, error);
    out->max_rel = size != 0 ? fmax(out->max_rel, error / size) : out->max_rel;
    long double wide = fabsl((long double)a - b);
    out->error += wide;
    out->square += wide * wide;
    out->golden += (long double)b * b;
    out->target += (long double)a * a;
    out->product += (long double)a * b;
}

static void assert_reference(const fx_difference_result *actual, const double *golden, const double *target, size_t n,
                             const fx_difference_options *options)
{
    reference r = {0};
    for (size_t i = 0; i < n; i++) {
        add_reference(&r, golden[i], target[i], options);
    }
    assert_int_equal(actual->count, n);
    assert_int_equal(actual->n_finite, r.finite);
    assert_int_equal(actual->mismatched, r.mismatched);
    assert_int_equal(actual->nan_mismatched, r.nan);
    assert_int_equal(actual->inf_mismatched, r.inf);
    assert_near(actual->within_1e3, n ? (long double)r.within_1e3 / n : 1, 1e-15L);
    assert_near(actual->within_5e3, n ? (long double)r.within_5e3 / n : 1, 1e-15L);
    if (r.finite == 0) {
        return;
    }
    long double count = (long double)r.finite, norms = sqrtl(r.golden) * sqrtl(r.target);
    assert_true(actual->max_abs_err == r.max_abs);
    assert_near(actual->max_rel_err, r.max_rel, 1e-15L * r.max_rel);
    assert_near(actual->mean_abs_err, r.error / count, 1e-13L * r.error / count);
    assert_near(actual->rmse, sqrtl(r.square / count), 1e-13L * sqrtl(r.square / count));
    assert_near(actual->euclidean, sqrtl(r.square), 1e-13L * sqrtl(r.square));
    assert_near(actual->golden_l2, sqrtl(r.golden), 1e-13L * sqrtl(r.golden));
    assert_near(actual->target_l2, sqrtl(r.target), 1e-13L * sqrtl(r.target));
    long double cosine = norms > 0 ? r.product / norms : r.golden == r.target ? 1 : 0;
    assert_near(actual->cosine, cosine, 1e-12L);
    long double relative = r.square > 0 ? sqrtl(r.square / r.golden) : 0;
    assert_near(actual->rel_l2, relative, 1e-13L * relative);
    if (r.max_abs > 0) {
        assert_true(fabs(golden[actual->max_abs_index] - target[actual->max_abs_index]) == r.max_abs);
    }
    if (r.max_rel > 0) {
        size_t at = actual->max_rel_index;
        assert_near(fabs(target[at] - golden[at]) / fabs(golden[at]), r.max_rel, 1e-15L * r.max_rel);
    }
}

/* The worst coordinates: sorted and distinct; no larger error is omitted. */
static void assert_worst(const fx_difference_result *actual, const double *golden, const double *target, size_t n,
                         size_t wanted)
{
    size_t larger = 0, differing = 0;
    double least = actual->n_worst > 0 ? actual->worst[actual->n_worst - 1].error : 0;
    for (size_t i = 0; i < n; i++) {
        double error = fabs(golden[i] - target[i]);
        larger += error > least;
        differing += error > 0;
    }
    assert_int_equal(actual->n_worst, differing < wanted ? differing : wanted);
    assert_true(larger <= actual->n_worst);
    for (size_t i = 0; i < actual->n_worst; i++) {
        const fx_difference_point *point = &actual->worst[i];
        assert_true(point->error == fabs(golden[point->index] - target[point->index]));
        assert_true(point->golden == golden[point->index] && point->target == target[point->index]);
        assert_true(i == 0 || actual->worst[i - 1].error >= point->error);
        for (size_t k = 0; k < i; k++) {
            assert_true(actual->worst[k].index != point->index);
        }
    }
}

static double perturbed(double value)
{
    uint64_t draw = random_u64() % 8;
    return draw < 3 ? value : draw < 6 ? value * (1 + 2e-3 * random_unit()) : value + 1e-5 * random_unit();
}

static double half_value(uint16_t bits)
{
    double value;
    fx_values_to_f64(FXTAP_FLOAT16, &bits, 1, &value);
    return value;
}

/* Every length, a special pair at every position. */
static void float32_lengths_and_specials(void **state)
{
    (void)state;
    const float specials[][2] = {{NAN, NAN}, {NAN, 1},   {INFINITY, INFINITY}, {INFINITY, -INFINITY}, {1, INFINITY},
                                 {0, 1e-3f}, {0, -0.0f}, {1e-42f, 2e-42f},     {FLT_MAX, -FLT_MAX},   {-INFINITY, NAN}};
    float golden[200], target[200];
    double b[200], a[200];
    for (size_t n = 0; n <= 200; n++) {
        for (size_t at = 0; at < (n ? n : 1); at++) {
            for (size_t i = 0; i < n; i++) {
                golden[i] = random_u64() % 9 == 0 ? 0 : (float)random_unit();
                target[i] = (float)perturbed((double)golden[i]);
            }
            if (n > 0) {
                golden[at] = specials[(at + n) % 10][0];
                target[at] = specials[(at + n) % 10][1];
            }
            fx_values_to_f64(FXTAP_FLOAT32, golden, n, b);
            fx_values_to_f64(FXTAP_FLOAT32, target, n, a);
            fx_difference_result result = compare(FXTAP_FLOAT32, golden, FXTAP_FLOAT32, target, n, &usual);
            assert_reference(&result, b, a, n, &usual);
        }
    }
}

static void float16_lengths_and_specials(void **state)
{
    (void)state;
    const uint16_t specials[][2] = {{0x7e00, 0x7e00}, {0x7e00, 0x3c00}, {0x7c00, 0x7c00}, {0x7c00, 0xfc00},
                                    {0, 1},           {0x8000, 0},      {0x7bff, 0xfbff}, {0xfc00, 0x7e01}};
    fx_difference_options options = usual;
    options.judged = FXTAP_FLOAT16;
    uint16_t golden[200], target[200];
    double b[200], a[200];
    for (size_t n = 0; n <= 200; n++) {
        for (size_t at = 0; at < (n ? n : 1); at++) {
            for (size_t i = 0; i < n; i++) {
                golden[i] = fx_f16_of_f32((float)random_unit());
                target[i] = fx_f16_of_f32((float)perturbed(half_value(golden[i])));
            }
            if (n > 0) {
                golden[at] = specials[(at + n) % 8][0];
                target[at] = specials[(at + n) % 8][1];
            }
            fx_values_to_f64(FXTAP_FLOAT16, golden, n, b);
            fx_values_to_f64(FXTAP_FLOAT16, target, n, a);
            fx_difference_result result = compare(FXTAP_FLOAT16, golden, FXTAP_FLOAT16, target, n, &options);
            assert_reference(&result, b, a, n, &options);
        }
    }
}

static void float64_lengths_and_specials(void **state)
{
    (void)state;
    const double specials[][2] = {{(double)NAN, (double)NAN}, {(double)NAN, 1}, {INFINITY, INFINITY},
                                  {INFINITY, -INFINITY},      {0, 1e-3},        {0, -0.0},
                                  {1e-310, 2e-310},           {1e200, 3e200}};
    fx_difference_options options = usual;
    options.judged = FXTAP_FLOAT64;
    double golden[200], target[200];
    for (size_t n = 0; n <= 200; n++) {
        for (size_t at = 0; at < (n ? n : 1); at++) {
            for (size_t i = 0; i < n; i++) {
                golden[i] = random_u64() % 9 == 0 ? 0 : random_unit();
                target[i] = perturbed(golden[i]);
            }
            if (n > 0) {
                golden[at] = specials[(at + n) % 8][0];
                target[at] = specials[(at + n) % 8][1];
            }
            fx_difference_result result = compare(FXTAP_FLOAT64, golden, FXTAP_FLOAT64, target, n, &options);
            assert_reference(&result, golden, target, n, &options);
        }
    }
}

/* Several parts, some of them identical, errors in a few; coordinates far apart. */
static void many_parts_and_worst(void **state)
{
    (void)state;
    enum { n = 50021 };
    static float golden[n], target[n];
    static double b[n], a[n];
    for (size_t wanted = 1; wanted <= 7; wanted += 3) {
        for (size_t i = 0; i < n; i++) {
            golden[i] = (float)random_unit();
            bool touched = i / 4096 % 3 == 1 && random_u64() % 50 == 0;
            target[i] = touched ? golden[i] + (float)random_unit() : golden[i];
            b[i] = (double)golden[i];
            a[i] = (double)target[i];
        }
        fx_difference_options options = usual;
        options.n_worst = wanted;
        fx_difference_result result = compare(FXTAP_FLOAT32, golden, FXTAP_FLOAT32, target, n, &options);
        assert_reference(&result, b, a, n, &options);
        assert_worst(&result, b, a, n, wanted);
        assert_false(result.identical_bits);
    }
}

static void assert_close_results(const fx_difference_result *a, const fx_difference_result *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->mismatched, b->mismatched);
    assert_int_equal(a->first_non_finite, b->first_non_finite);
    assert_int_equal(a->max_abs_index, b->max_abs_index);
    assert_true(a->max_abs_err == b->max_abs_err);
    assert_near(a->max_rel_err, b->max_rel_err, 1e-15L * b->max_rel_err);
    assert_near(a->rmse, b->rmse, 1e-14L * b->rmse);
    assert_near(a->cosine, b->cosine, 1e-14L);
    assert_true(same_double(a->max_ulp, b->max_ulp));
    assert_int_equal(a->n_worst, b->n_worst);
    assert_memory_equal(a->worst, b->worst, a->n_worst * sizeof *a->worst);
}

static void identical_bits(void **state)
{
    (void)state;
    float values[] = {NAN, INFINITY, 1, -0.0f, 3, -INFINITY};
    fx_difference_result result = compare(FXTAP_FLOAT32, values, FXTAP_FLOAT32, values, 6, &usual);
    assert_true(result.identical_bits && result.mismatched == 0 && result.max_abs_err == 0 && result.cosine == 1);
    assert_true(result.within_1e3 == 1 && result.max_ulp == 0 && result.rel_l2 == 0 && result.n_worst == 0);
    assert_near(result.golden_l2, sqrtl(10), 1e-15L * 4);
    assert_int_equal(result.n_finite, 3);
    result = compare(FXTAP_FLOAT32, values, FXTAP_FLOAT32, values, 0, &usual);
    assert_true(result.identical_bits && result.count == 0 && result.within_1e3 == 1 && result.rmse == 0);
    float other_sign[] = {0.0f}, sign[] = {-0.0f};
    result = compare(FXTAP_FLOAT32, sign, FXTAP_FLOAT32, other_sign, 1, &usual);
    assert_true(!result.identical_bits && result.mismatched == 0 && result.max_ulp == 0);
}

static void non_finite_cases(void **state)
{
    (void)state;
    float golden[] = {NAN, INFINITY, 1}, opposite[] = {NAN, -INFINITY, 1}, number[] = {0, INFINITY, 1};
    fx_difference_result result = compare(FXTAP_FLOAT32, golden, FXTAP_FLOAT32, opposite, 3, &usual);
    assert_true(result.mismatched == 1 && result.inf_mismatched == 1 && result.nan_mismatched == 0);
    assert_int_equal(result.first_non_finite, 1);
    assert_true(result.max_abs_err == 0 && fabs(result.within_1e3 - 2.0 / 3) < 1e-15);
    result = compare(FXTAP_FLOAT32, golden, FXTAP_FLOAT32, number, 3, &usual);
    assert_true(result.mismatched == 1 && result.nan_mismatched == 1 && result.inf_mismatched == 0);
    float all_nan[] = {NAN, NAN}, numbers[] = {1, 2};
    result = compare(FXTAP_FLOAT32, all_nan, FXTAP_FLOAT32, numbers, 2, &usual);
    assert_true(isnan(result.max_abs_err) && isnan(result.cosine) && result.mismatched == 2);
    float negative_nan[] = {-NAN, -NAN};
    result = compare(FXTAP_FLOAT32, all_nan, FXTAP_FLOAT32, negative_nan, 2, &usual);
    assert_true(result.mismatched == 0 && result.max_abs_err == 0 && result.cosine == 1 && !result.identical_bits);
}

static void zero_vectors(void **state)
{
    (void)state;
    float zero[] = {0, 0}, negative[] = {-0.0f, 0}, one[] = {1, 0};
    fx_difference_result result = compare(FXTAP_FLOAT32, zero, FXTAP_FLOAT32, negative, 2, &usual);
    assert_true(result.mismatched == 0 && result.cosine == 1 && result.rel_l2 == 0 && result.within_1e3 == 1);
    result = compare(FXTAP_FLOAT32, zero, FXTAP_FLOAT32, one, 2, &usual);
    assert_true(result.mismatched == 1 && result.cosine == 0 && isinf(result.rel_l2) && result.max_rel_err == 0);
    assert_true(result.max_abs_err == 1 && result.within_1e3 == 0.5);
    uint16_t half_golden[] = {0, 0x4000}, half_target[] = {0, 0x3c00}; /* 0, 2 and 0, 1 */
    fx_difference_options options = usual;
    options.judged = FXTAP_FLOAT16;
    result = compare(FXTAP_FLOAT16, half_golden, FXTAP_FLOAT16, half_target, 2, &options);
    assert_true(result.max_rel_err == 0.5 && result.max_abs_err == 1 && result.max_ulp == 0x400);
}

static void integers_exactly(void **state)
{
    (void)state;
    const fx_difference_options exact = {.judged = FXTAP_INT64, .n_worst = 1};
    uint8_t u8_a[] = {0}, u8_b[] = {1};
    fx_difference_result result = compare(FXTAP_UINT8, u8_b, FXTAP_UINT8, u8_a, 1, &exact);
    assert_true(result.max_abs_err == 1 && result.max_abs_exact == 1 && result.mismatched == 1);
    assert_true(isnan(result.max_ulp));
    int8_t low[] = {-128}, high[] = {127};
    result = compare(FXTAP_INT8, low, FXTAP_INT8, high, 1, &exact);
    assert_true(result.max_abs_err == 255 && result.max_abs_exact == 255);
    uint8_t flags_a[] = {1, 0}, flags_b[] = {0, 0};
    result = compare(FXTAP_BOOL, flags_a, FXTAP_BOOL, flags_b, 2, &exact);
    assert_true(result.mismatched == 1 && result.count == 2);
    uint64_t zero[] = {0}, most[] = {UINT64_MAX};
    result = compare(FXTAP_UINT64, zero, FXTAP_UINT64, most, 1, &exact);
    assert_true(result.max_abs_exact == UINT64_MAX && result.max_abs_err == 0x1p64);
    int64_t least[] = {INT64_MIN}, greatest[] = {INT64_MAX}, near[] = {INT64_MAX - 1};
    result = compare(FXTAP_INT64, least, FXTAP_INT64, greatest, 1, &exact);
    assert_true(result.max_abs_exact == UINT64_MAX);
    result = compare(FXTAP_INT64, greatest, FXTAP_INT64, near, 1, &exact);
    assert_true(result.max_abs_exact == 1 && result.max_abs_err == 1 && result.mismatched == 1);
    result = compare(FXTAP_INT64, least, FXTAP_UINT64, most, 1, &exact);
    assert_true(result.max_abs_exact == UINT64_MAX && result.max_abs_err == 0x1.8p64);
    int64_t large_a[] = {INT64_C(1) << 53, 5}, large_b[] = {-(INT64_C(1) << 53) - 1, 4};
    result = compare(FXTAP_INT64, large_a, FXTAP_INT64, large_b, 2, &exact);
    assert_true(result.max_abs_exact == (UINT64_C(1) << 54) + 1 && result.max_abs_index == 0);
    result = compare(FXTAP_INT64, large_a + 1, FXTAP_INT64, large_b + 1, 1, &exact);
    assert_true(result.max_abs_exact == 1 && result.max_rel_err == 0.2);
    int32_t narrow[] = {-5, 7};
    int64_t wide[] = {-5, 7};
    result = compare(FXTAP_INT32, narrow, FXTAP_INT64, wide, 2, &exact);
    assert_true(result.mismatched == 0 && !result.identical_bits && result.max_abs_err == 0);
}

static void rounding_to_float16(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t half = (uint16_t)bits, next = (uint16_t)(bits + 1);
        float value, above;
        fx_values_to_f32(FXTAP_FLOAT16, &half, 1, &value);
        if (isnan(value)) {
            assert_true((fx_f16_of_f32(value) & 0x7c00) == 0x7c00 && (fx_f16_of_f32(value) & 0x3ff) != 0);
            continue;
        }
        assert_int_equal(fx_f16_of_f32(value), half);
        fx_values_to_f32(FXTAP_FLOAT16, &next, 1, &above);
        if (isfinite(value) && isfinite(above)) {
            float middle = (value + above) / 2;
            assert_int_equal(fx_f16_of_f32(middle), half % 2 == 0 ? half : next);
            assert_int_equal(fx_f16_of_f32(nextafterf(middle, value)), half);
            assert_int_equal(fx_f16_of_f32(nextafterf(middle, above)), next);
        }
    }
    assert_int_equal(fx_f16_of_f32(65519.0f), 0x7bff);
    assert_int_equal(fx_f16_of_f32(65520.0f), 0x7c00);
}

/* Each pair of real dtypes against the reference, with values that both can represent. */
static void dtypes_mix(void **state)
{
    (void)state;
    enum { n = 300 };
    const fxtap_dtype dtypes[] = {FXTAP_FLOAT16, FXTAP_FLOAT32, FXTAP_FLOAT64, FXTAP_INT32,
                                  FXTAP_INT64,   FXTAP_UINT8,   FXTAP_INT16,   FXTAP_UINT64};
    double values[2][n];
    unsigned char stored[2][8][n * 8];
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++) {
            int64_t integer = (int64_t)(random_u64() % 100);
            float single = (float)integer;
            uint16_t half = fx_f16_of_f32(single);
            values[side][i] = (double)integer;
            for (size_t d = 0; d < 8; d++) {
                size_t size = fxtap_dtype_size(dtypes[d]);
                const void *from = dtypes[d] == FXTAP_FLOAT16   ? (const void *)&half
                                   : dtypes[d] == FXTAP_FLOAT32 ? (const void *)&single
                                   : dtypes[d] == FXTAP_FLOAT64 ? (const void *)&values[side][i]
                                                                : (const void *)&integer;
                memcpy(stored[side][d] + size * i, from, size);
            }
        }
    }
    for (size_t b = 0; b < 8; b++) {
        for (size_t a = 0; a < 8; a++) {
            fx_difference_result result = compare(dtypes[b], stored[0][b], dtypes[a], stored[1][a], n, &usual);
            assert_reference(&result, values[0], values[1], n, &usual);
        }
    }
}

static void complex_by_modulus(void **state)
{
    (void)state;
    float golden[] = {3, 4, 0, 0, NAN, 1, INFINITY, 0}, target[] = {0, 0, 3, 4, 2, NAN, INFINITY, 0};
    fx_difference_result result = compare(FXTAP_COMPLEX64, golden, FXTAP_COMPLEX64, target, 4, &usual);
    assert_true(result.max_abs_err == 5 && result.max_rel_err == 1 && result.mismatched == 2);
    assert_true(result.golden_l2 == 5 && result.target_l2 == 5 && result.n_finite == 2);
    assert_true(result.cosine == 0 && result.within_1e3 == 0.5);
    double wide[] = {3e200, 4e200}, zero[] = {0, 0};
    result = compare(FXTAP_COMPLEX128, wide, FXTAP_COMPLEX128, zero, 1, &usual);
    assert_near(result.rmse, 5e200L, 1e187L);
    assert_true(result.rel_l2 == 1);
    double real[] = {3};
    float both[] = {3, 0};
    result = compare(FXTAP_FLOAT64, real, FXTAP_COMPLEX64, both, 1, &usual);
    assert_true(result.max_abs_err == 0 && result.mismatched == 0 && result.cosine == 1);
}

/* One array in every memory and byte order: the same values, and the same row-major coordinates. */
static void orders_and_endianness(void **state)
{
    (void)state;
    enum { rows = 73, columns = 91, n = rows * columns };
    static float plain[n], by_columns[n], swapped[n], spaced[2 * n], target[n], target_by_columns[n];
    for (size_t i = 0; i < n; i++) {
        size_t row = i / columns, column = i % columns;
        plain[i] = (float)random_unit();
        target[i] = (float)perturbed((double)plain[i]);
        uint32_t bits;
        memcpy(&bits, &plain[i], sizeof bits);
        bits = __builtin_bswap32(bits);
        memcpy(&swapped[i], &bits, sizeof bits);
        spaced[2 * i] = plain[i];
        by_columns[column * rows + row] = plain[i];
        target_by_columns[column * rows + row] = target[i];
    }
    int64_t shape[2] = {rows, columns}, transposed[2] = {1, rows}, every_other[2] = {2 * columns, 2};
    fxtap_view views[] = {
        {.data = plain, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape},
        {.data = by_columns, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = transposed},
        {.data = swapped, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .flags = FXTAP_VIEW_BIG_ENDIAN},
        {.data = spaced, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = every_other},
    };
    fxtap_view b = {.data = target, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
    fxtap_view b_by_columns = {
        .data = target_by_columns, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = transposed};
    fx_difference_result expected = compare_views(&views[0], &b, &usual);
    for (size_t i = 0; i < 4; i++) {
        fx_difference_result result = compare_views(&views[i], &b, &usual);
        assert_same_result(&result, &expected);
        result = compare_views(&views[i], &b_by_columns, &usual);
        assert_close_results(&result, &expected);
        result = compare_views(&views[i], &views[(i + 1) % 4], &usual);
        assert_true(result.identical_bits && result.max_abs_err == 0);
    }
}

static void failures_are_clean(void **state)
{
    (void)state;
    float values[8] = {0}, others[8] = {1};
    int64_t shape[1] = {4}, longer[1] = {5}, strides[1] = {2}, two[2] = {2, 2};
    fxtap_view b = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape, .strides = strides};
    fxtap_view a = b, other_shape = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = longer};
    fxtap_view matrix = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = two};
    fxtap_view quantised = {.data = values, .dtype = FXTAP_QINT8, .ndim = 1, .shape = shape};
    fx_difference_result result;
    fx_difference difference;
    a.data = others;
    assert_int_equal(fx_difference_compute(&b, &other_shape, &usual, &result), FXTAP_E_INVALID);
    assert_int_equal(fx_difference_compute(&b, &matrix, &usual, &result), FXTAP_E_INVALID);
    assert_int_not_equal(fx_difference_compute(&b, &quantised, &usual, &result), FXTAP_OK);
    assert_int_not_equal(fx_difference_compute(&quantised, &b, &usual, &result), FXTAP_OK);
    fx_difference_init(&difference, &usual);
    assert_int_equal(fx_difference_run(&difference, &b, &a, 3, 2), FXTAP_E_INVALID);
    assert_int_equal(fx_difference_run(&difference, &b, &a, 4, 0), FXTAP_OK);
    a.dtype = FXTAP_FLOAT64;
    a.shape = b.shape = longer;
    longer[0] = 2;
    int failures = 0;
    for (long long nth = 0;; nth++, failures++) {
        fx_memory_fail_after(nth);
        fxtap_status status = fx_difference_compute(&b, &a, &usual, &result);
        fx_memory_fail_after(-1);
        if (status == FXTAP_OK) {
            break;
        }
        assert_int_equal(status, FXTAP_E_NOMEM);
    }
    assert_int_equal(failures, 3); /* two gathers, one conversion */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float32_lengths_and_specials),
        cmocka_unit_test(float16_lengths_and_specials),
        cmocka_unit_test(float64_lengths_and_specials),
        cmocka_unit_test(many_parts_and_worst),
        cmocka_unit_test(identical_bits),
        cmocka_unit_test(non_finite_cases),
        cmocka_unit_test(zero_vectors),
        cmocka_unit_test(integers_exactly),
        cmocka_unit_test(rounding_to_float16),
        cmocka_unit_test(dtypes_mix),
        cmocka_unit_test(complex_by_modulus),
        cmocka_unit_test(orders_and_endianness),
        cmocka_unit_test(failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
