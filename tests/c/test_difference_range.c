/* test_difference_range.c - distances in ulps, and values whose squares, errors or positions exceed a range. */
#include "support_cmocka.h"

#include <float.h>
#include <math.h>

#include "support_difference.h"

/* The distance by stepping with nextafterf, the simplest definition. */
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

/* Finite values beyond the judged dtype's range are one ulp past its largest, for every wider dtype. */
static void ulp_distances_beyond_the_range(void **state)
{
    (void)state;
    const fxtap_dtype judged[] = {FXTAP_FLOAT16, FXTAP_BFLOAT16, FXTAP_FLOAT32};
    const double infinity[] = {0x7c00, 0x7f80, 0x7f800000};
    double huge[] = {DBL_MAX, INFINITY}, zero[] = {0, 0};
    float zero_single[] = {0, 0};
    for (size_t i = 0; i < 3; i++) {
        fx_difference_options options = usual;
        options.judged = judged[i];
        fx_difference_result result = compare(FXTAP_FLOAT32, zero_single, FXTAP_FLOAT64, huge, 2, &options);
        assert_true(result.max_ulp == infinity[i] && result.inf_mismatched == 1);
        result = compare(FXTAP_FLOAT64, zero, FXTAP_FLOAT64, huge, 1, &options);
        assert_true(result.max_ulp == infinity[i]);
    }
}

static void sums_beyond_float64(void **state)
{
    (void)state;
    double large[] = {DBL_MAX, -DBL_MAX, 0.0}, same[] = {DBL_MAX, -DBL_MAX, -0.0};
    fx_difference_result result = compare(FXTAP_FLOAT64, large, FXTAP_FLOAT64, large, 2, &usual);
    assert_true(result.identical_bits && result.cosine == 1 && result.rel_l2 == 0);
    result = compare(FXTAP_FLOAT64, large, FXTAP_FLOAT64, same, 3, &usual);
    assert_true(!result.identical_bits && result.cosine == 1 && result.max_abs_err == 0);
    double golden[] = {1, -DBL_MAX, 2}, target[] = {3, DBL_MAX, 2}; /* 3 * DBL_MAX is infinite as well */
    result = compare(FXTAP_FLOAT64, golden, FXTAP_FLOAT64, target, 3, &usual);
    assert_true(isinf(result.max_abs_err) && isinf(result.max_rel_err) && result.max_rel_index == 1);
    assert_true(result.n_worst == 2 && result.max_abs_index == 1);
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
        cmocka_unit_test(ulp_distances),
        cmocka_unit_test(ulp_distances_beyond_the_range),
        cmocka_unit_test(sums_beyond_float64),
        cmocka_unit_test(range_of_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
