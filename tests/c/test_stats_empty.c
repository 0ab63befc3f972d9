/* Empty tensors, and tensors of NaN alone: they have neither a largest magnitude nor a range. */
#include "support_cmocka.h"

#include <math.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/stats.h"

static fxtap_stats stats_at(fx_cpu_level level, fxtap_dtype dtype, const void *data, size_t n)
{
    fxtap_stats stats;
    fx_cpu_use(level);
    fx_stats_saved(dtype, data, n, &stats, NULL);
    fx_cpu_use(fx_cpu_best());
    return stats;
}

static void check_level(fx_cpu_level level)
{
    static const fxtap_dtype dtypes[] = {FXTAP_BOOL,         FXTAP_UINT8,     FXTAP_INT8,      FXTAP_INT64,
                                         FXTAP_UINT64,       FXTAP_FLOAT16,   FXTAP_BFLOAT16,  FXTAP_FLOAT32,
                                         FXTAP_FLOAT64,      FXTAP_COMPLEX32, FXTAP_COMPLEX64, FXTAP_COMPLEX128,
                                         FXTAP_FLOAT8_E4M3FN};
    unsigned char ones[67 * 16]; /* all bits set: NaN in every float type */
    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        fxtap_stats stats = stats_at(level, dtypes[i], ones, 0);
        assert_true(isnan(stats.abs_max) && !stats.has_range);
        fxtap_dtype_class kind = fxtap_dtype_class_of(dtypes[i]);
        for (size_t n = 1; n <= 67 && (kind == FXTAP_CLASS_FLOAT || kind == FXTAP_CLASS_COMPLEX); n += 11) {
            stats = stats_at(level, dtypes[i], ones, n);
            assert_int_equal(stats.nan_count, n);
            assert_true(isnan(stats.abs_max) && !stats.has_range);
        }
    }
    const float zero[] = {NAN, -0.0f, NAN}, complex_zero[] = {NAN, 0, 0, 0}, infinite[] = {NAN, -INFINITY, NAN, NAN};
    assert_true(stats_at(level, FXTAP_FLOAT32, zero, 3).abs_max == 0);
    assert_true(stats_at(level, FXTAP_COMPLEX64, complex_zero, 2).abs_max == 0);
    assert_true(stats_at(level, FXTAP_FLOAT32, infinite, 4).abs_max == INFINITY);
}

static void test_nothing_is_largest(void **state)
{
    (void)state;
    for (int level = FX_CPU_SCALAR; level <= (int)fx_cpu_best(); level++) {
        check_level((fx_cpu_level)level);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_largest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
