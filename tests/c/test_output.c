#include "support_cmocka.h"
#include "support_locale.h"

#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/output.h"
#include "util/memory.h"
#include "util/number.h"

static void expect_double(double value, const char *text)
{
    char out[FX_NUMBER_BYTES];
    size_t n = fx_double_text(value, out);
    assert_string_equal(out, text);
    assert_int_equal(n, strlen(text));
}

/* The expected texts are what Python 3.11's repr(float) prints. */
static void test_double_is_pythons_repr(void **state)
{
    (void)state;
    expect_double(0.1, "0.1");
    expect_double(1e-5, "1e-05");
    expect_double(0.0001, "0.0001");
    expect_double(1e16, "1e+16");
    expect_double(9999999999999998.0, "9999999999999998.0");
    expect_double(123456789012345680.0, "1.2345678901234568e+17");
    expect_double(-0.0, "-0.0");
    expect_double(0.0, "0.0");
    expect_double(100.0, "100.0");
    expect_double(1e6, "1000000.0");
    expect_double(1.0 / 3, "0.3333333333333333");
    expect_double(2.0 / 3, "0.6666666666666666");
    expect_double(5e-324, "5e-324");
    expect_double(2.225073858507201e-308, "2.225073858507201e-308");
    expect_double(1.7976931348623157e308, "1.7976931348623157e+308");
    expect_double(0x1p-44, "5.684341886080802e-14");
    expect_double(9007199254740993.0, "9007199254740992.0");
    expect_double(-1.5, "-1.5");
    expect_double(INFINITY, "inf");
    expect_double(-INFINITY, "-inf");
    expect_double((double)NAN, "nan");
    expect_double(-(double)NAN, "nan");
}

static void expect_float(float value, const char *text)
{
    char out[FX_NUMBER_BYTES];
    fx_float_text(value, out);
    assert_string_equal(out, text);
}

static void test_float_is_shortest(void **state)
{
    (void)state;
    expect_float(0.1f, "0.1");
    expect_float(0.9f, "0.9");
    expect_float(16777216.0f, "16777216.0");
    expect_float(3.4028235e38f, "3.4028235e+38");
    expect_float(1e-45f, "1e-45");
    expect_float(1.1754944e-38f, "1.1754944e-38");
    expect_float(1.0f / 3, "0.33333334");
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static void test_any_double_reads_back(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        char out[FX_NUMBER_BYTES];
        fx_double_text(value, out);
        double back = strtod(out, NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
}

static void test_powers_of_two_read_back(void **state)
{
    (void)state;
    for (int e = -1074; e < 1024; e++) {
        char out[FX_NUMBER_BYTES];
        fx_double_text(ldexp(1, e), out);
        assert_true(strtod(out, NULL) == ldexp(1, e));
    }
    for (int e = -149; e < 128; e++) {
        char out[FX_NUMBER_BYTES];
        fx_float_text(ldexpf(1, e), out);
        assert_true(strtof(out, NULL) == ldexpf(1, e));
    }
}

static void test_digits(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    const double values[] = {0.12345678, 1e-7, 123456.0, 1234567.0, -0.0, 0.99999999, -2.5, INFINITY, 100.0};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        fxtap_buffer_digits(&buffer, values[i], 4);
        fxtap_buffer_text(&buffer, " ");
    }
    assert_string_equal(buffer.bytes, "0.1235 1e-07 1.235e+05 1.235e+06 -0 1 -2.5 inf 100 ");
    fxtap_buffer_clear(&buffer);
}

/* Any number, and those next to the midpoint between two decimals, as printf's %g rounds them. */
static void test_digits_are_rounded_as_printf_does(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 40000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int digits = 1 + (int)(random >> 60);
        double value = ldexp((double)(random & 0xFFFFFFFFFFFFF), (int)(random >> 52 & 127) - 110);
        if (i % 2 == 0) { /* m.5 times a power of ten, at most one ulp up or down */
            value = ((double)(random % 100000) + 0.5) * pow(10, (double)(random >> 20 & 31) - 16);
            value = i % 4 == 0 ? value : nextafter(value, i % 8 < 4 ? 0 : INFINITY);
        }
        char expected[64], text[FX_NUMBER_BYTES];
        snprintf(expected, sizeof expected, "%.*g", digits, value);
        fx_double_digits(value, digits, text);
        assert_string_equal(text, expected);
    }
}

static void expect_read(const char *text, size_t expected_bytes, double expected)
{
    double value = -7;
    assert_int_equal(fx_read_double(text, &value), expected_bytes);
    assert_true(memcmp(&value, &expected, sizeof value) == 0);
}

static void test_reading_numbers(void **state)
{
    (void)state;
    expect_read("0", 1, 0.0);
    expect_read("-0.0", 4, -0.0);
    expect_read("0x10", 1, 0.0);
    expect_read("1e", 1, 1.0);
    expect_read("1e+", 1, 1.0);
    expect_read("1e400", 5, (double)INFINITY);
    expect_read("12.", 3, 12.0);
    expect_read(".5", 2, 0.5);
    expect_read("0.1000000000000000055511151231257827021181583404541015625", 57, 0.1);
    static const char *const none[] = {"", "-", ".", "e5", " 1", "+1", "inf", "nan", ",5"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        expect_read(none[i], 0, -7);
    }
    int64_t number = 5;
    uint64_t large = 5;
    assert_int_equal(fx_read_i64("-9223372036854775808,", &number), 20);
    assert_true(number == INT64_MIN);
    assert_int_equal(fx_read_i64("9223372036854775807", &number), 19);
    assert_true(number == INT64_MAX);
    assert_int_equal(fx_read_i64("9223372036854775808", &number), 0);
    assert_int_equal(fx_read_i64("-9223372036854775809", &number), 0);
    assert_int_equal(fx_read_i64("-", &number), 0);
    assert_int_equal(fx_read_i64(" 1", &number), 0);
    assert_true(number == INT64_MAX);
    assert_int_equal(fx_read_u64("18446744073709551615", &large), 20);
    assert_true(large == UINT64_MAX);
    assert_int_equal(fx_read_u64("18446744073709551616", &large), 0);
}

static void test_numbers_under_a_decimal_comma(void **state)
{
    (void)state;
    char text[16];
    if (!sl_use_comma()) {
        SKIP("needs glibc");
    }
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    expect_double(0.1, "0.1");
    expect_double(1.0 / 3, "0.3333333333333333");
    expect_double(5e-324, "5e-324");
    expect_float(0.9f, "0.9");
    char digits[FX_NUMBER_BYTES];
    fx_double_digits(1234.5678, 6, digits);
    assert_string_equal(digits, "1234.57");
    char room[32];
    assert_int_equal(fx_double_format(-1234.5678, 'f', 2, room, sizeof room), 8);
    assert_string_equal(room, "-1234.57");
    fx_double_format(0.00012345, 'e', 3, room, sizeof room);
    assert_string_equal(room, "1.234e-04");
    assert_int_equal(fx_double_format(123.25, 'f', 1, room, 4), 3);
    assert_string_equal(room, "123");
    expect_read("0.5x", 3, 0.5);
    expect_read("1.5e-3", 6, 1.5e-3);
    setlocale(LC_NUMERIC, "C");
}

static void write_document(fxtap_json *json)
{
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "s", "a\"\\\n\x01\x7f\xc3\xa9\xff\xed\xa0\x80!");
    fxtap_json_string(json, "none", NULL);
    fxtap_json_string_n(json, "nul", "a\0b", 3);
    fxtap_json_begin_array(json, "numbers");
    fxtap_json_double(json, NULL, (double)NAN);
    fxtap_json_double(json, NULL, INFINITY);
    fxtap_json_double(json, NULL, 0.5);
    fxtap_json_int(json, NULL, INT64_MIN);
    fxtap_json_uint(json, NULL, UINT64_MAX);
    fxtap_json_end_array(json);
    fxtap_json_begin_object(json, "empty");
    fxtap_json_end_object(json);
    fxtap_json_bool(json, "yes", true);
    fxtap_json_end_object(json);
}

static void test_json(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_json json;
    fxtap_buffer_init(&buffer);
    fxtap_json_init(&json, &buffer, false);
    write_document(&json);
    assert_int_equal(fxtap_buffer_status(&buffer), FXTAP_OK);
    assert_string_equal(
        buffer.bytes, "{\"s\":\"a\\\"\\\\\\n\\u0001\\u007f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!\","
                      "\"none\":null,\"nul\":\"a\\u0000b\","
                      "\"numbers\":[null,null,0.5,-9223372036854775808,18446744073709551615],\"empty\":{},"
                      "\"yes\":true}");
    fxtap_buffer_clear(&buffer);
}

/* C1 controls, bidirectional controls and zero-width marks are escaped; printable characters are kept. */
static void test_json_does_not_steer_a_terminal(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_json json;
    fxtap_buffer_init(&buffer);
    fxtap_json_init(&json, &buffer, false);
    fxtap_json_string(&json, NULL,
                      "\xc2\x9b"
                      "31m\xe2\x80\xae\xef\xbb\xbf\xe6\xbc\xa2\xf0\x9f\x98\x80");
    assert_string_equal(buffer.bytes, "\"\\u009b31m\\u202e\\ufeff\xe6\xbc\xa2\xf0\x9f\x98\x80\"");
    fxtap_buffer_clear(&buffer);
}

static void test_csv_is_utf8_and_does_not_steer_a_terminal(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fxtap_csv_field(&buffer, "\x1b[31m\xc2\x9b,\xff\xed\xa0\x80\"\x7f\t\xe6\xbc\xa2", true);
    fxtap_csv_field(&buffer, "\x1b\xff", false);
    assert_string_equal(buffer.bytes, "\"\\u001b[31m\\u009b,\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\""
                                      "\\u007f\t\xe6\xbc\xa2\","
                                      "\\u001b\xef\xbf\xbd");
    fxtap_buffer_clear(&buffer);
}

/* Every byte at every position within a vector. */
static void test_json_escapes_a_byte_anywhere(void **state)
{
    (void)state;
    for (int c = 1; c < 0x80; c++) {
        for (size_t at = 0; at < 20; at++) {
            char text[21] = "abcdefghijklmnopqrst", expected[40] = "\"";
            text[at] = (char)c;
            for (size_t i = 0; i < 20; i++) {
                char one[8] = {text[i]};
                if (i == at && (c < 0x20 || c == 0x7F)) {
                    const char *letter = strchr("\bb\tt\nn\ff\rr", c);
                    snprintf(one, sizeof one, letter != NULL ? "\\%c" : "\\u%04x", letter != NULL ? letter[1] : c);
                } else if (i == at && (c == '"' || c == '\\')) {
                    snprintf(one, sizeof one, "\\%c", c);
                }
                strcat(expected, one);
            }
            fxtap_buffer buffer;
            fxtap_json json;
            fxtap_buffer_init(&buffer);
            fxtap_json_init(&json, &buffer, false);
            fxtap_json_string_n(&json, NULL, text, 20);
            assert_string_equal(buffer.bytes, strcat(expected, "\""));
            fxtap_buffer_clear(&buffer);
        }
    }
}

static void test_json_pretty(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_json json;
    fxtap_buffer_init(&buffer);
    fxtap_json_init(&json, &buffer, true);
    fxtap_json_begin_object(&json, NULL);
    fxtap_json_begin_array(&json, "a");
    fxtap_json_int(&json, NULL, 1);
    fxtap_json_int(&json, NULL, 2);
    fxtap_json_end_array(&json);
    fxtap_json_begin_array(&json, "b");
    fxtap_json_end_array(&json);
    fxtap_json_end_object(&json);
    assert_string_equal(buffer.bytes, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
    fxtap_buffer_clear(&buffer);
}

static void test_json_too_deep(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_json json;
    fxtap_buffer_init(&buffer);
    fxtap_json_init(&json, &buffer, false);
    for (int i = 0; i < 63; i++) {
        fxtap_json_begin_array(&json, NULL);
    }
    assert_int_equal(fxtap_buffer_status(&buffer), FXTAP_OK);
    fxtap_json_begin_array(&json, NULL);
    assert_int_equal(fxtap_buffer_status(&buffer), FXTAP_E_INVALID);
    fxtap_buffer_clear(&buffer);
}

static void test_csv(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fxtap_csv_field(&buffer, "plain", true);
    fxtap_csv_field(&buffer, "a,b", false);
    fxtap_csv_field(&buffer, "say \"hi\"", false);
    fxtap_csv_field(&buffer, "two\nlines", false);
    fxtap_csv_field(&buffer, NULL, false);
    fxtap_csv_end_row(&buffer);
    assert_string_equal(buffer.bytes, "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n");
    fxtap_buffer_clear(&buffer);
}

static void test_glob(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "a/b.c", true},
        {"add*", "add_1", true},
        {"add*", "sadd", false},
        {"*.add.*", "aten.add.Tensor", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a?c",
         "a\xc3\xa9"
         "c",
         true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "bx", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"[", "[", true},
        {"[ab", "[ab", true},
        {"[ab", "a", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"[\\]]", "]", true},
        {"*a*b*c", "xaybzc", true},
        {"*a*b*c", "xaybz", false},
        {"?", "\xff", true},
        {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
        {"a", "A", false},
        {"**", "abc", true},
        {"a*", "a", true},
        {"?", "", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (fxtap_glob_match(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("'%s' against '%s'", cases[i].pattern, cases[i].text);
        }
    }
}

static void test_glob_takes_no_exponential_time(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(fxtap_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_printf_of_any_length(void **state)
{
    (void)state;
    for (int n = 0; n < 300; n++) {
        fxtap_buffer buffer;
        fxtap_buffer_init(&buffer);
        fxtap_buffer_text(&buffer, "ab");
        fxtap_buffer_printf(&buffer, "%*d", n, 7);
        size_t wanted = 2 + (size_t)(n > 1 ? n : 1);
        assert_int_equal(buffer.length, wanted);
        assert_int_equal(strlen(buffer.bytes), wanted);
        assert_int_equal(buffer.bytes[wanted - 1], '7');
        fxtap_buffer_clear(&buffer);
    }
}

static void test_printf_writes_what_printf_writes(void **state)
{
    (void)state;
    char expected[256];
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        snprintf(expected, sizeof expected, __VA_ARGS__);                                                              \
        buffer.length = 0;                                                                                             \
        fxtap_buffer_printf(&buffer, __VA_ARGS__);                                                                     \
        assert_string_equal(buffer.bytes, expected);                                                                   \
        assert_int_equal(buffer.length, strlen(expected));                                                             \
    } while (0)
    SAME("%s|%.*s|%.*s|%c|%%", "text", 2, "abc", 9, "abc", 'x');
    SAME("%d %u %lld %llu %zu", INT32_MIN, UINT32_MAX, (long long)INT64_MIN, (unsigned long long)UINT64_MAX, SIZE_MAX);
    SAME("%s %5d %s %04x %-8s|%s", "before", 7, "between", 0xABu, "left", "after"); /* one that printf formats */
    SAME("%ld %lu %zu", LONG_MIN, ULONG_MAX, (size_t)0);
    SAME("%zd %li %hhd %+d %i", (ssize_t)-1, -2L, (signed char)-3, 4, -5);
    SAME("%.*s|%s", 0, "none", "");
#undef SAME
    fxtap_buffer_clear(&buffer);
}

static void test_failed_printf_leaves_what_was_there(void **state)
{
    (void)state;
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fxtap_buffer_text(&buffer, "kept");
    fx_memory_fail_after(1); /* the first has the initial capacity */
    fxtap_buffer_printf(&buffer, "%*d", 5000, 7);
    fx_memory_fail_after(-1);
    assert_int_equal(fxtap_buffer_status(&buffer), FXTAP_E_NOMEM);
    fxtap_buffer_text(&buffer, "more");
    assert_string_equal(buffer.bytes, "kept");
    fxtap_buffer_clear(&buffer);
    char long_text[500];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    fxtap_buffer_text(&buffer, "kept");
    fx_memory_fail_after(0);
    fxtap_buffer_printf(&buffer, "%s%s", "a", long_text); /* the first text fits */
    fx_memory_fail_after(-1);
    assert_int_equal(fxtap_buffer_status(&buffer), FXTAP_E_NOMEM);
    assert_string_equal(buffer.bytes, "kept");
    fxtap_buffer_clear(&buffer);
}

static void test_buffer_remembers_failure(void **state)
{
    (void)state;
    for (long long n = 0;; n++) {
        fxtap_buffer buffer;
        fxtap_json json;
        fxtap_buffer_init(&buffer);
        fxtap_json_init(&json, &buffer, true);
        fx_memory_fail_after(n);
        write_document(&json);
        fx_memory_fail_after(-1);
        fxtap_status status = fxtap_buffer_status(&buffer);
        fxtap_buffer_clear(&buffer);
        if (status == FXTAP_OK) {
            assert_true(n >= 3);
            break;
        }
        assert_int_equal(status, FXTAP_E_NOMEM);
        assert_string_equal(fxtap_error_message(), "out of memory");
    }
}

static void integers_as_printf_writes_them(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, -1, 9, 10, -10, 99, 100, 1234567890123456789, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char expected[64], text[FX_NUMBER_BYTES];
        int n = snprintf(expected, sizeof expected, "%" PRId64, values[i]);
        assert_int_equal(fx_i64_text(values[i], text), n);
        assert_string_equal(text, expected);
        n = snprintf(expected, sizeof expected, "%" PRIu64, (uint64_t)values[i]);
        assert_int_equal(fx_u64_text((uint64_t)values[i], text), n);
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_as_printf_writes_them),
        cmocka_unit_test(test_double_is_pythons_repr),
        cmocka_unit_test(test_float_is_shortest),
        cmocka_unit_test(test_any_double_reads_back),
        cmocka_unit_test(test_powers_of_two_read_back),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_digits_are_rounded_as_printf_does),
        cmocka_unit_test(test_printf_writes_what_printf_writes),
        cmocka_unit_test(test_json_escapes_a_byte_anywhere),
        cmocka_unit_test(test_reading_numbers),
        cmocka_unit_test(test_numbers_under_a_decimal_comma),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_pretty),
        cmocka_unit_test(test_json_too_deep),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json_does_not_steer_a_terminal),
        cmocka_unit_test(test_csv_is_utf8_and_does_not_steer_a_terminal),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_glob_takes_no_exponential_time),
        cmocka_unit_test(test_printf_of_any_length),
        cmocka_unit_test(test_failed_printf_leaves_what_was_there),
        cmocka_unit_test(test_buffer_remembers_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
