/*
 * test_difference_dtypes.c - integers, ulps, complex, mixed dtypes and the ends of float64's range.
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
#include "tensor/difference.h"
#include "tensor/values.h"

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

/* The distance by stepping with nextafterf, the plainest definition. */
static void ulp_distances(void **state)
{
    (void)state;
    float values[50], moved[50];
    uint64_t most = 0;
    for (size_t i = 0; i < 50; i++) {
        values[i] = i % 5 == 0 ? (float)i * FLT_TRUE_MIN : (float)random_unit();
        uint64_t steps = random_u64() % 20;
        moved[i] = values[i];
        for (uint64_t k = 0; k < steps; k++) {
            moved[i] = nextafterf(moved[i], -INFINITY);
        }
        most = steps > most ? steps : most;
    }
    fx_difference_result result = compare(FXTAP_FLOAT32, values, FXTAP_FLOAT32, moved, 50, &usual);
    assert_true(result.max_ulp == (double)most);
    float far[] = {FLT_MAX}, other[] = {-FLT_MAX};
    result = compare(FXTAP_FLOAT32, far, FXTAP_FLOAT32, other, 1, &usual);
    assert_true(result.max_ulp == 2.0 * 0x7f7fffff);
    fx_difference_options options = usual;
    options.judged = FXTAP_BFLOAT16; /* saved as float32 */
    float brain_golden[] = {1, 2, -1}, brain_target[] = {1.0078125f, 2, -1.015625f};
    result = compare(FXTAP_FLOAT32, brain_golden, FXTAP_FLOAT32, brain_target, 3, &options);
    assert_true(result.max_ulp == 2);
    float exact[] = {1.0039f, 1, FLT_MAX}, rounds_to[] = {1.0041f, 1, 0x1.fep127f};
    result = compare(FXTAP_FLOAT32, exact, FXTAP_FLOAT32, rounds_to, 3, &options);
    assert_true(result.max_ulp == 1);
    options.judged = FXTAP_FLOAT64;
    double wide_golden[] = {1, -1}, wide_target[] = {1 + 3 * DBL_EPSILON, -1};
    result = compare(FXTAP_FLOAT64, wide_golden, FXTAP_FLOAT64, wide_target, 2, &options);
    assert_true(result.max_ulp == 3);
    options.judged = FXTAP_FLOAT16;
    uint16_t half[] = {0x3c00, 0x0001, 0x8001};
    float single[] = {1.0009765625f, 0, 5.9604644775390625e-8f};
    result = compare(FXTAP_FLOAT16, half, FXTAP_FLOAT32, single, 3, &options);
    assert_true(result.max_ulp == 2);
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

/* Each pair of real dtypes against the reference over values that both hold. */
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
            fx_difference_result result =
                compare(dtypes[b], stored[0][b], dtypes[a], stored[1][a], n, &usual);
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

static void range_of_float64(void **state)
{
    (void)state;
    double golden[] = {1e300, -3e300}, target[] = {1.5e300, -3e300};
    fx_difference_result result = compare(FXTAP_FLOAT64, golden, FXTAP_FLOAT64, target, 2, &usual);
    assert_near(result.rmse, 0.5e300L / sqrtl(2), 1e287L);
    assert_near(result.rel_l2, 0.5L / sqrtl(10), 1e-13L);
    double small[] = {1e-200, 2e-200}, other[] = {1e-200, 1e-200};
    result = compare(FXTAP_FLOAT64, small, FXTAP_FLOAT64, other, 2, &usual);
    assert_near(result.rel_l2, 1 / sqrtl(5), 1e-13L);
    assert_near(result.cosine, 3 / sqrtl(10), 1e-12L);
    double far[] = {DBL_MAX}, opposite[] = {-DBL_MAX};
    result = compare(FXTAP_FLOAT64, far, FXTAP_FLOAT64, opposite, 1, &usual);
    assert_true(isinf(result.max_abs_err) && result.cosine == -1 && result.mismatched == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_exactly),
        cmocka_unit_test(ulp_distances),
        cmocka_unit_test(rounding_to_float16),
        cmocka_unit_test(dtypes_mix),
        cmocka_unit_test(complex_by_modulus),
        cmocka_unit_test(range_of_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
