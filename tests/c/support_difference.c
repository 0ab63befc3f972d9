#include "support_difference.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/cpu.h"
#include "tensor/values.h"

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
    const double left[] = {a->max_abs_err, a->max_rel_err, a->mean_abs_err, a->rmse,       a->euclidean,
                           a->cosine,      a->rel_l2,      a->golden_l2,    a->target_l2,  a->within_1e3,
                           a->within_5e3,  a->max_ulp};
    const double right[] = {b->max_abs_err, b->max_rel_err, b->mean_abs_err, b->rmse,       b->euclidean,
                            b->cosine,      b->rel_l2,      b->golden_l2,    b->target_l2,  b->within_1e3,
                            b->within_5e3,  b->max_ulp};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        assert_true(same_double(left[i], right[i]));
    }
}

/* The scalar answer, after every other level has given the same. */
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

fx_difference_result compare(fxtap_dtype golden_dtype, const void *golden, fxtap_dtype target_dtype,
                                    const void *target, size_t n, const fx_difference_options *options)
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

void assert_reference(const fx_difference_result *actual, const double *golden, const double *target, size_t n,
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

double perturbed(double value)
{
    uint64_t draw = random_u64() % 8;
    return draw < 3 ? value : draw < 6 ? value * (1 + 2e-3 * random_unit()) : value + 1e-5 * random_unit();
}

double half_value(uint16_t bits)
{
    double value;
    fx_values_to_f64(FXTAP_FLOAT16, &bits, 1, &value);
    return value;
}
