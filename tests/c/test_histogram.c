/*
 * test_histogram.c - bins against the definition, all element classes, and the failures.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fxtap/stats.h"
#include "util/memory.h"

static fxtap_view view_of(fxtap_dtype dtype, const void *data, const int64_t *shape)
{
    return (fxtap_view){.data = data, .dtype = dtype, .ndim = 1, .shape = shape};
}

static void edges_belong_to_the_right(void **state)
{
    (void)state;
    float values[] = {0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 4, -1, 5, NAN, INFINITY, -INFINITY, -0.0f};
    int64_t shape[1] = {14};
    uint64_t bins[4];
    fxtap_view view = view_of(FXTAP_FLOAT32, values, shape);
    memset(bins, 0xff, sizeof bins);
    assert_int_equal(fxtap_stats_histogram(&view, 0, 4, 4, bins), FXTAP_OK);
    assert_int_equal(bins[0], 3); /* 0, 0.5, -0.0 */
    assert_int_equal(bins[1], 2);
    assert_int_equal(bins[2], 2);
    assert_int_equal(bins[3], 2); /* 3, and 4: the last is closed */
}

static void every_element_lands(void **state)
{
    (void)state;
    enum { n = 20011, n_bins = 37 };
    static float values[2 * n];
    static float dense[n];
    uint64_t bins[n_bins], strided_bins[n_bins], expected[n_bins] = {0};
    uint32_t random = 1;
    for (size_t i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        dense[i] = values[2 * i] = (float)(random >> 8) / (float)(1 << 24) * 7 - 3;
        size_t bin = (size_t)(((long double)dense[i] + 3) * n_bins / 7);
        expected[bin < n_bins ? bin : n_bins - 1]++;
    }
    int64_t shape[1] = {n}, strides[1] = {2};
    fxtap_view plain = view_of(FXTAP_FLOAT32, dense, shape), strided = view_of(FXTAP_FLOAT32, values, shape);
    strided.strides = strides;
    assert_int_equal(fxtap_stats_histogram(&plain, -3, 4, n_bins, bins), FXTAP_OK);
    assert_int_equal(fxtap_stats_histogram(&strided, -3, 4, n_bins, strided_bins), FXTAP_OK);
    assert_memory_equal(bins, expected, sizeof bins);
    assert_memory_equal(strided_bins, expected, sizeof bins);
}

/* Values at, just below and just above every border, over ranges of all sizes, against long double. */
static void borders_are_exact(void **state)
{
    (void)state;
    const double ranges[][2] = {{0, 1},       {-3, 4},      {1e-310, 3e-310},   {-DBL_MAX, DBL_MAX}, {0, DBL_MIN},
                                {1e16, 2e16}, {-1e-3, 1e9}, {0.1, 0.1 + 1e-12}, {0, DBL_MAX},        {-0.0, 5e-324}};
    const size_t counts[] = {1, 2, 7, 64, 1000};
    static double values[3 * 1001];
    static uint64_t bins[1000], expected[1000];
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            long double low = ranges[r][0], high = ranges[r][1];
            size_t n_bins = counts[c], n = 0;
            memset(expected, 0, sizeof expected);
            for (size_t i = 0; i <= n_bins; i++) {
                double border = (double)(low + (high - low) * i / n_bins);
                values[n++] = nextafter(border, (double)-INFINITY);
                values[n++] = border;
                values[n++] = nextafter(border, (double)INFINITY);
            }
            for (size_t i = 0; i < n; i++) {
                if (values[i] >= low && values[i] <= high) {
                    size_t bin = (size_t)((values[i] - low) * (n_bins / (high - low)));
                    expected[bin < n_bins ? bin : n_bins - 1]++;
                }
            }
            int64_t shape[1] = {(int64_t)n};
            fxtap_view view = view_of(FXTAP_FLOAT64, values, shape);
            assert_int_equal(fxtap_stats_histogram(&view, ranges[r][0], ranges[r][1], n_bins, bins), FXTAP_OK);
            assert_memory_equal(bins, expected, n_bins * sizeof *bins);
        }
    }
}

static void every_byte_lands(void **state)
{
    (void)state;
    enum { n_bins = 9 };
    const fxtap_dtype dtypes[] = {FXTAP_UINT8, FXTAP_INT8};
    static uint8_t bytes[10000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 2654435761u >> 7);
    }
    int64_t shape[1] = {sizeof bytes};
    for (size_t d = 0; d < 2; d++) {
        uint64_t bins[n_bins], expected[n_bins] = {0};
        for (size_t i = 0; i < sizeof bytes; i++) {
            int value = d == 0 ? bytes[i] : (int8_t)bytes[i];
            if (value >= -50 && value <= 100) {
                size_t bin = (size_t)((value + 50) * n_bins / 150);
                expected[bin < n_bins ? bin : n_bins - 1]++;
            }
        }
        fxtap_view view = view_of(dtypes[d], bytes, shape);
        assert_int_equal(fxtap_stats_histogram(&view, -50, 100, n_bins, bins), FXTAP_OK);
        assert_memory_equal(bins, expected, sizeof bins);
    }
}

static void other_classes(void **state)
{
    (void)state;
    uint64_t bins[2];
    int64_t two[1] = {2}, three[1] = {3};
    uint8_t flags[] = {0, 1, 1};
    fxtap_view view = view_of(FXTAP_BOOL, flags, three);
    assert_int_equal(fxtap_stats_histogram(&view, 0, 1, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 2);
    int8_t bytes[] = {-128, 127, 0};
    view = view_of(FXTAP_INT8, bytes, three);
    assert_int_equal(fxtap_stats_histogram(&view, -128, 127, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 2);
    uint16_t brain[] = {0x3f80, 0xbf80}; /* 1, -1 */
    view = view_of(FXTAP_BFLOAT16, brain, two);
    assert_int_equal(fxtap_stats_histogram(&view, -1, 1, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 1);
    float z[] = {3, 4, NAN, 0, 0, 1};
    view = view_of(FXTAP_COMPLEX64, z, three);
    assert_int_equal(fxtap_stats_histogram(&view, 0, 5, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 1);
    double ends[] = {-DBL_MAX, DBL_MAX};
    view = view_of(FXTAP_FLOAT64, ends, two);
    assert_int_equal(fxtap_stats_histogram(&view, -DBL_MAX, DBL_MAX, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 1);
    assert_int_equal(fxtap_stats_histogram(&view, DBL_MAX, DBL_MAX, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 0);
}

static void failures_leave_the_bins(void **state)
{
    (void)state;
    float values[] = {1, 2, 3, 4};
    int64_t shape[1] = {2}, strides[1] = {2};
    uint64_t bins[2] = {7, 8};
    fxtap_view view = view_of(FXTAP_FLOAT32, values, shape);
    view.strides = strides;
    assert_int_equal(fxtap_stats_histogram(&view, 1, 0, 2, bins), FXTAP_E_INVALID);
    assert_int_equal(fxtap_stats_histogram(&view, (double)NAN, 1, 2, bins), FXTAP_E_INVALID);
    assert_int_equal(fxtap_stats_histogram(&view, 0, INFINITY, 2, bins), FXTAP_E_INVALID);
    assert_int_equal(fxtap_stats_histogram(&view, 0, 1, 0, bins), FXTAP_E_INVALID);
    view.dtype = FXTAP_QUINT8;
    assert_int_not_equal(fxtap_stats_histogram(&view, 0, 1, 2, bins), FXTAP_OK);
    view.dtype = FXTAP_FLOAT32;
    for (long long nth = 0; nth < 2; nth++) {
        fx_memory_fail_after(nth);
        assert_int_equal(fxtap_stats_histogram(&view, 0, 4, 2, bins), FXTAP_E_NOMEM);
        fx_memory_fail_after(-1);
    }
    assert_true(bins[0] == 7 && bins[1] == 8);
    assert_int_equal(fxtap_stats_histogram(&view, 0, 4, 2, bins), FXTAP_OK);
    assert_true(bins[0] == 1 && bins[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_belong_to_the_right),
        cmocka_unit_test(every_element_lands),
        cmocka_unit_test(borders_are_exact),
        cmocka_unit_test(every_byte_lands),
        cmocka_unit_test(other_classes),
        cmocka_unit_test(failures_leave_the_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
