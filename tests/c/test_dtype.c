#include "support_cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/dtype.h"
#include "tensor/convert.h"

/*
 * The value of a bit pattern by the definition of its format, in double arithmetic: (-1)^s * 2^(E - bias) * 1.m,
 * subnormal if E is 0. `top` is the meaning of the patterns with all exponent bits set: 'i' IEEE, 'f' NaN only with all
 * mantissa bits, 'z' NaN for the pattern of -0, 'n' ordinary numbers, 'e' e8m0.
 */
static double by_definition(unsigned bits, int n_exponent, int n_mantissa, int bias, char top)
{
    int e = (int)(bits >> n_mantissa) & ((1 << n_exponent) - 1);
    int m = (int)bits & ((1 << n_mantissa) - 1);
    int max_e = (1 << n_exponent) - 1;
    int max_m = (1 << n_mantissa) - 1;
    double sign = top != 'e' && (bits >> (n_mantissa + n_exponent) & 1) != 0 ? -1.0 : 1.0;
    if (top == 'e') {
        return e == 255 ? (double)NAN : pow(2.0, e - 127);
    }
    if (top == 'i' && e == max_e) {
        return m == 0 ? sign * (double)INFINITY : (double)NAN;
    }
    if (top == 'f' && e == max_e && m == max_m) {
        return (double)NAN;
    }
    if (top == 'z' && sign < 0 && e == 0 && m == 0) {
        return (double)NAN;
    }
    double fraction = (double)m / (max_m + 1);
    return e == 0 ? sign * fraction * pow(2.0, 1 - bias) : sign * (1 + fraction) * pow(2.0, e - bias);
}

static void expect_pattern(fxtap_dtype dtype, unsigned bits, float got, double wanted)
{
    bool same = isnan(wanted) ? isnan(got) : ((double)got == wanted && !signbit(got) == !signbit(wanted));
    if (!same) {
        fail_msg("%s 0x%x: %a, not %a", fxtap_dtype_name(dtype), bits, (double)got, wanted);
    }
}

static const struct {
    fxtap_dtype dtype;
    int n_exponent, n_mantissa, bias;
    char top;
} small_formats[] = {
    {FXTAP_FLOAT8_E4M3FN, 4, 3, 7, 'f'},    {FXTAP_FLOAT8_E5M2, 5, 2, 15, 'i'},
    {FXTAP_FLOAT8_E4M3FNUZ, 4, 3, 8, 'z'},  {FXTAP_FLOAT8_E5M2FNUZ, 5, 2, 16, 'z'},
    {FXTAP_FLOAT8_E8M0FNU, 8, 0, 127, 'e'}, {FXTAP_FLOAT8_E4M3, 4, 3, 7, 'i'},
    {FXTAP_FLOAT8_E3M4, 3, 4, 3, 'i'},      {FXTAP_FLOAT8_E4M3B11FNUZ, 4, 3, 11, 'z'},
    {FXTAP_FLOAT6_E2M3FN, 2, 3, 1, 'n'},    {FXTAP_FLOAT6_E3M2FN, 3, 2, 3, 'n'},
};

static void test_all_patterns_of_8_bits(void **state)
{
    (void)state;
    unsigned char bytes[256];
    for (unsigned i = 0; i < 256; i++) {
        bytes[i] = (unsigned char)i;
    }
    for (size_t f = 0; f < COUNT_OF(small_formats); f++) {
        float out[256];
        fx_convert_to_saved(small_formats[f].dtype, bytes, 256, out);
        for (unsigned i = 0; i < 256; i++) {
            expect_pattern(small_formats[f].dtype, i, out[i],
                           by_definition(i, small_formats[f].n_exponent, small_formats[f].n_mantissa,
                                         small_formats[f].bias, small_formats[f].top));
        }
    }
}

static void test_float4_pairs(void **state)
{
    (void)state;
    static const float values[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
    for (unsigned i = 0; i < 256; i++) {
        unsigned char byte = (unsigned char)i;
        float out[2];
        fx_convert_to_saved(FXTAP_FLOAT4_E2M1FN_X2, &byte, 1, out);
        assert_memory_equal(&out[0], &values[i & 15], 4);
        assert_memory_equal(&out[1], &values[i >> 4], 4);
    }
}

static void test_all_patterns_of_16_bits(void **state)
{
    (void)state;
    uint16_t *bits = malloc(65536 * sizeof *bits);
    float *out = malloc(65536 * sizeof *out);
    assert_non_null(bits);
    assert_non_null(out);
    for (unsigned i = 0; i < 65536; i++) {
        bits[i] = (uint16_t)i;
    }
    fx_convert_half(bits, 65536, out);
    for (unsigned i = 0; i < 65536; i++) {
        expect_pattern(FXTAP_FLOAT16, i, out[i], by_definition(i, 5, 10, 15, 'i'));
    }
    fx_convert_to_saved(FXTAP_BFLOAT16, bits, 65536, out);
    for (unsigned i = 0; i < 65536; i++) {
        expect_pattern(FXTAP_BFLOAT16, i, out[i], by_definition(i, 8, 7, 127, 'i'));
    }
    fx_convert_to_saved(FXTAP_COMPLEX32, bits, 32768, out);
    for (unsigned i = 0; i < 65536; i++) {
        expect_pattern(FXTAP_COMPLEX32, i, out[i], by_definition(i, 5, 10, 15, 'i'));
    }
    free(bits);
    free(out);
}

static void test_names_go_there_and_back(void **state)
{
    (void)state;
    for (int i = 1; i < FXTAP_DTYPE_COUNT; i++) {
        fxtap_dtype dtype = (fxtap_dtype)i;
        assert_int_equal(fxtap_dtype_from_name(fxtap_dtype_name(dtype)), dtype);
        assert_true(fxtap_dtype_class_of(dtype) != FXTAP_CLASS_NONE);
        assert_true(dtype == FXTAP_STRING || fxtap_dtype_size(dtype) > 0);
    }
    assert_int_equal(fxtap_dtype_from_name("torch.bfloat16"), FXTAP_BFLOAT16);
    assert_int_equal(fxtap_dtype_from_name("torch.bits1x8"), FXTAP_BITS8);
    assert_int_equal(fxtap_dtype_from_name("quint4x2"), FXTAP_QUINT8);
    assert_int_equal(fxtap_dtype_from_name("torch."), FXTAP_DTYPE_NONE);
    assert_int_equal(fxtap_dtype_from_name(""), FXTAP_DTYPE_NONE);
    assert_int_equal(fxtap_dtype_from_name("float33"), FXTAP_DTYPE_NONE);
}

static void test_out_of_range_dtypes(void **state)
{
    (void)state;
    const int strange[] = {FXTAP_DTYPE_NONE, FXTAP_DTYPE_COUNT, 1000, -1};
    for (size_t i = 0; i < COUNT_OF(strange); i++) {
        fxtap_dtype dtype = (fxtap_dtype)strange[i];
        assert_string_equal(fxtap_dtype_name(dtype), "");
        assert_int_equal(fxtap_dtype_size(dtype), 0);
        assert_int_equal(fxtap_dtype_saved(dtype), FXTAP_DTYPE_NONE);
        assert_null(fxtap_dtype_descr(dtype));
    }
}

/* Each saved dtype has a descr and is saved as itself; the exceptions are listed here. */
static void test_saved_dtypes(void **state)
{
    (void)state;
    for (int i = 1; i < FXTAP_DTYPE_COUNT; i++) {
        fxtap_dtype saved = fxtap_dtype_saved((fxtap_dtype)i);
        if (i == FXTAP_QINT8 || i == FXTAP_QUINT8 || i == FXTAP_QINT32) {
            assert_int_equal(saved, FXTAP_DTYPE_NONE);
            continue;
        }
        assert_int_equal(fxtap_dtype_saved(saved), saved);
        if (i != FXTAP_STRING) {
            const char *descr = fxtap_dtype_descr(saved);
            assert_non_null(descr);
            assert_int_equal((size_t)atoi(descr + 2), fxtap_dtype_size(saved));
            assert_int_equal(descr[0], fxtap_dtype_size(saved) == 1 ? '|' : '<');
        }
    }
    assert_int_equal(fxtap_dtype_saved(FXTAP_FLOAT16), FXTAP_FLOAT16);
    assert_int_equal(fxtap_dtype_saved(FXTAP_COMPLEX32), FXTAP_COMPLEX64);
    assert_int_equal(fxtap_dtype_saved(FXTAP_BITS16), FXTAP_UINT16);
}

static void test_dlpack(void **state)
{
    (void)state;
    static const struct {
        uint8_t code, bits;
        uint16_t lanes;
        fxtap_dtype dtype;
    } cases[] = {
        {0, 64, 1, FXTAP_INT64},
        {1, 8, 1, FXTAP_UINT8},
        {2, 16, 1, FXTAP_FLOAT16},
        {2, 64, 1, FXTAP_FLOAT64},
        {4, 16, 1, FXTAP_BFLOAT16},
        {5, 32, 1, FXTAP_COMPLEX32},
        {5, 128, 1, FXTAP_COMPLEX128},
        {6, 8, 1, FXTAP_BOOL},
        {10, 8, 1, FXTAP_FLOAT8_E4M3FN},
        {12, 8, 1, FXTAP_FLOAT8_E5M2},
        {14, 8, 1, FXTAP_FLOAT8_E8M0FNU},
        {17, 4, 2, FXTAP_FLOAT4_E2M1FN_X2},
        {17, 8, 1, FXTAP_FLOAT4_E2M1FN_X2},
        {15, 6, 1, FXTAP_FLOAT6_E2M3FN},
        {16, 8, 1, FXTAP_FLOAT6_E3M2FN},
        {2, 32, 4, FXTAP_DTYPE_NONE},
        {0, 4, 1, FXTAP_DTYPE_NONE},
        {3, 64, 1, FXTAP_DTYPE_NONE},
        {17, 4, 1, FXTAP_DTYPE_NONE},
        {255, 0, 1, FXTAP_DTYPE_NONE},
        {99, 8, 1, FXTAP_DTYPE_NONE},
        {2, 128, 1, FXTAP_DTYPE_NONE},
        {6, 1, 1, FXTAP_DTYPE_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(fxtap_dtype_from_dlpack(cases[i].code, cases[i].bits, cases[i].lanes), cases[i].dtype);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_patterns_of_8_bits),
        cmocka_unit_test(test_float4_pairs),
        cmocka_unit_test(test_all_patterns_of_16_bits),
        cmocka_unit_test(test_names_go_there_and_back),
        cmocka_unit_test(test_out_of_range_dtypes),
        cmocka_unit_test(test_saved_dtypes),
        cmocka_unit_test(test_dlpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
