#include "support_difference.h"

#include <math.h>
#include <string.h>

#include "support_cmocka.h"
#include "tensor/cpu.h"

static uint64_t random_state = 88172645463325252u;

uint64_t random_u64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

double random_unit(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53 * 2 - 1;
}

const fx_difference_options usual = {.rtol = 1e-3, .atol = 1e-5, .judged = FXTAP_FLOAT32, .n_worst = 5};

fx_difference_result compare_at_level(const fxtap_view *golden, const fxtap_view *target,
                                      const fx_difference_options *options)
{
    fx_difference_result result;
    assert_int_equal(fx_difference_compute(golden, target, options, &result), FXTAP_OK);
    return result;
}

bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

void assert_same_result(const fx_difference_result *a, const fx_difference_result *b)
{
    assert_int_equal(a->identical_bits, b->identical_bits);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->n_finite, b->n_finite);
    assert_int_equal(a->mismatched, b->mismatched);
    assert_int_equal(a->nan_mismatched, b->nan_mismatched);
    assert_int_equal(a->inf_mismatched, b->inf_mismatched);
    assert_int_equal(a->first_non_finite, b->first_non_finite);
    assert_int_equal(a->max_abs_exact, b->max_abs_exact);
    assert_int_equal(a->max_abs_index, b->max_abs_index);
    assert_int_equal(a->max_rel_index, b->max_rel_index);
    assert_int_equal(a->n_worst, b->n_worst);
    assert_memory_equal(a->worst, b->worst, a->n_worst * sizeof *a->worst);
    const double left[] = {a->max_abs_err, a->max_rel_err, a->mean_abs_err, a->rmse,       a->euclidean,  a->cosine,
                           a->rel_l2,      a->golden_l2,   a->target_l2,    a->within_1e3, a->within_5e3, a->max_ulp};
    const double right[] = {b->max_abs_err, b->max_rel_err, b->mean_abs_err, b->rmse,       b->euclidean,  b->cosine,
                            b->rel_l2,      b->golden_l2,   b->target_l2,    b->within_1e3, b->within_5e3, b->max_ulp};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        assert_true(same_double(left[i], right[i]));
    }
}

fx_difference_result compare_views(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options)
{
    fx_cpu_use(FX_CPU_SCALAR);
    fx_difference_result scalar = compare_at_level(golden, target, options);
    for (int level = FX_CPU_AVX2; level <= (int)fx_cpu_best(); level++) {
        fx_cpu_use((fx_cpu_level)level);
        fx_difference_result vector = compare_at_level(golden, target, options);
        assert_same_result(&scalar, &vector);
    }
    fx_cpu_use(fx_cpu_best());
    return scalar;
}

fx_difference_result compare(fxtap_dtype golden_dtype, const void *golden, fxtap_dtype target_dtype, const void *target,
                             size_t n, const fx_difference_options *options)
{
    int64_t shape[1] = {(int64_t)n};
    fxtap_view b = {.data = golden, .dtype = golden_dtype, .ndim = 1, .shape = shape};
    fxtap_view a = {.data = target, .dtype = target_dtype, .ndim = 1, .shape = shape};
    return compare_views(&b, &a, options);
}

void assert_near(double actual, long double expected, long double tolerance)
{
    if (isnan(expected) || isinf(expected)) {
        assert_true(same_double(actual, (double)expected));
    } else if (!(fabsl((long double)actual - expected) <= tolerance)) {
        fail_msg("%.17g instead of %.20Lg", actual, expected);
    }
}
