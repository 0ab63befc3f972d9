/* The caller's floating-point mode (flush-to-zero, rounding, traps) does not affect results and is preserved. */
#include "support_cmocka.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "fxtap/stats.h"
#include "util/float_mode.h"
#include "util/number.h"

#if defined(__SSE2__)

static const struct {
    const char *name;
    unsigned mxcsr;
} modes[] = {
    {"flush to zero", 0x1F80 | 0x8000},
    {"denormals are zero", 0x1F80 | 0x0040},
    {"both", 0x1F80 | 0x8040},
    {"rounded down", 0x1F80 | 0x2000},
    {"rounded to zero, flushed", 0x1F80 | 0xE040},
    {"traps of invalid, division by zero, overflow", 0x1900},
    {"default, with flags", 0x1F80 | 0x003F},
};

typedef struct answers {
    fxtap_stats stats[5];
    fxtap_hash128 hashes[5];
    uint64_t bins[3][4];
    char texts[6][FX_NUMBER_BYTES];
} answers;

static fxtap_view view_of(fxtap_dtype dtype, const void *data, const int64_t *shape, const int64_t *strides)
{
    return (fxtap_view){.data = data, .dtype = dtype, .ndim = 1, .shape = shape, .strides = strides};
}

/* Subnormal numbers, rounded sums, a division of zero by zero, an overflow: each depends on a mode. */
static void answer(answers *out)
{
    static const float floats[] = {1e-42f, 2e-42f, -3e-44f, 0, 1e-42f, 2e-42f, 7e-45f, 0};
    static const double doubles[] = {1e-310, -2e-310, 5e-324, 0.1, 1e308, 0.2, 0.3, 1e300};
    static const uint8_t eights[] = {0, 1, 2, 3, 128, 1, 254, 2}; /* float8_e8m0fnu: 2^-127 and up */
    static const int64_t shape[] = {8}, half[] = {4}, second[] = {2};
    memset(out, 0, sizeof *out);
    fxtap_view views[] = {
        view_of(FXTAP_FLOAT32, floats, shape, NULL),   view_of(FXTAP_FLOAT64, doubles, shape, NULL),
        view_of(FXTAP_COMPLEX64, floats, half, NULL),  view_of(FXTAP_FLOAT8_E8M0FNU, eights, shape, NULL),
        view_of(FXTAP_FLOAT64, doubles, half, second), /* gathered */
    };
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        fxtap_stats_compute(&views[i], &out->stats[i], &out->hashes[i]);
    }
    fxtap_stats_histogram(&views[0], -1e-42, 3e-42, 4, out->bins[0]);
    fxtap_stats_histogram(&views[1], 0, 1e-309, 4, out->bins[1]);
    fxtap_stats_histogram(&views[2], 0, 4e-42, 4, out->bins[2]);
    fx_double_text(1e-310, out->texts[0]);
    fx_double_text(0.1, out->texts[1]);
    fx_double_text(-5e-324, out->texts[2]);
    fx_float_text(1e-45f, out->texts[3]);
    fx_double_digits(2e-310, 6, out->texts[4]);
    fx_double_digits(0.123456789, 6, out->texts[5]);
}

static void test_no_mode_changes_an_answer(void **state)
{
    (void)state;
    unsigned ours = __builtin_ia32_stmxcsr();
    answers expected, found;
    answer(&expected);
    assert_int_equal(expected.stats[0].subnormal_count, 6);
    assert_true(expected.stats[2].abs_max > 0 && expected.stats[2].l2_norm > 0);
    assert_int_equal(expected.bins[1][0], 2);
    assert_string_equal(expected.texts[0], "1e-310");
    assert_string_equal(expected.texts[3], "1e-45");
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        __builtin_ia32_ldmxcsr(modes[i].mxcsr);
        answer(&found);
        unsigned after = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(ours);
        assert_int_equal(after & ~0x3Fu, modes[i].mxcsr & ~0x3Fu);
        if (memcmp(&found, &expected, sizeof found) != 0) {
            fail_msg("another answer in the mode \"%s\"", modes[i].name);
        }
    }
}

static void test_pairs_nest(void **state)
{
    (void)state;
    unsigned ours = __builtin_ia32_stmxcsr();
    volatile double smallest = DBL_MIN, halves[3];
    __builtin_ia32_ldmxcsr(0x1F80 | 0x8040);
    halves[0] = smallest / 2;
    fx_float_mode outer = fx_float_mode_begin();
    fx_float_mode inner = fx_float_mode_begin();
    fx_float_mode_end(inner);
    halves[1] = smallest / 2;
    fx_float_mode_end(outer);
    halves[2] = smallest / 2;
    __builtin_ia32_ldmxcsr(ours);
    assert_true(halves[0] == 0 && halves[1] > 0 && halves[2] == 0);
}

#else

static void test_no_mode_changes_an_answer(void **state)
{
    (void)state;
    SKIP("only x86 has such modes");
}

static void test_pairs_nest(void **state)
{
    (void)state;
    SKIP("only x86 has such modes");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_mode_changes_an_answer),
        cmocka_unit_test(test_pairs_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
