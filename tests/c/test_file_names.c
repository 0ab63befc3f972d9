/* File names are TorchAir's if a file system accepts them, otherwise changed, and always distinct. */
#include <stdio.h>
#include <string.h>

#include "index/file_names.h"
#include "support_cmocka.h"
#include "util/utf8.h"

static const char *stem(const char *node, const char *target, const char *twin)
{
    static char texts[4][FX_STEM_MAX + 1];
    static int next;
    char *text = texts[next++ % 4];
    assert_int_equal(fx_name_stem(node, target, twin, text), FXTAP_OK);
    assert_true(strlen(text) <= FX_STEM_MAX);
    assert_null(strchr(text, '/'));
    assert_true(text[0] != '.');
    return text;
}

static const char *file(const char *stem_text, fxtap_io io, const char *position, uint64_t stamp)
{
    static char name[FX_NAME_MAX + 1];
    char prefix[FX_PREFIX_MAX + 1];
    size_t length;
    fx_name_prefix(stem_text, io, position, NULL, prefix, &length);
    assert_int_equal(strlen(prefix), length);
    length = fx_name_file(prefix, length, stamp, name);
    assert_int_equal(length, strlen(name));
    assert_true(strlen(name) <= FX_NAME_MAX);
    return name;
}

static void test_usual_names_stay(void **state)
{
    (void)state;
    assert_string_equal(stem("add_1", "aten.add.Tensor", NULL), "add_1-aten.add.Tensor");
    assert_string_equal(file("add_1-aten.add.Tensor", FXTAP_INPUT, "0", UINT64_C(1760670671190258)),
                        "add_1-aten.add.Tensor.INPUT.0.20251017031111190258.npy");
    assert_string_equal(file("cat-aten.cat.default", FXTAP_OUTPUT, "1.2", 0),
                        "cat-aten.cat.default.OUTPUT.1.2.19700101000000000000.npy");
    assert_string_equal(file("x-y", FXTAP_INOUT, "kw.0", 951782399999999), /* a leap day */
                        "x-y.INOUT.kw.0.20000228235959999999.npy");
    assert_string_equal(file("x-y", FXTAP_INOUT, "0", UINT64_MAX), "x-y.INOUT.0.99991231235959999999.npy");
    assert_string_equal(stem("\xc3\xa9t\xc3\xa9", "f<lambda> 'a'", NULL), "\xc3\xa9t\xc3\xa9-f<lambda> 'a'");
}

static void test_leap_years(void **state)
{
    (void)state;
    const struct {
        uint64_t second;
        const char *text;
    } cases[] = {{951782400, "20000229000000"},  {951868800, "20000301000000"},  {4107542400, "21000301000000"},
                 {4107456000, "21000228000000"}, {1709164800, "20240229000000"}, {68169600, "19720229000000"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[FX_STAMP_DIGITS + 1] = {0};
        fx_name_stamp(cases[i].second * 1000000, text);
        text[14] = '\0';
        assert_string_equal(text, cases[i].text);
    }
}

static void test_long_names_stay_apart(void **state)
{
    (void)state;
    char a[301], b[301];
    memset(a, 'a', 300);
    a[300] = '\0';
    memcpy(b, a, sizeof b);
    b[290] = 'b'; /* the only difference is after byte 250 */
    const char *stem_a = stem(a, "aten.relu.default", NULL);
    const char *stem_b = stem(b, "aten.relu.default", NULL);
    assert_string_not_equal(stem_a, stem_b);
    assert_string_equal(stem_a, stem(a, "aten.relu.default", NULL));
    char first[FX_NAME_MAX + 1];
    strcpy(first, file(stem_a, FXTAP_OUTPUT, "a_keyword_argument_of_some_length_that_goes_on_and_on_and_on_x", 5));
    assert_string_not_equal(
        first, file(stem_b, FXTAP_OUTPUT, "a_keyword_argument_of_some_length_that_goes_on_and_on_and_on_x", 5));
    assert_string_not_equal(
        first, file(stem_a, FXTAP_OUTPUT, "a_keyword_argument_of_some_length_that_goes_on_and_on_and_on_y", 5));
}

static void test_sequences_are_not_cut(void **state)
{
    (void)state;
    char text[512];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = 0; i < 150; i++) {
            memcpy(text + shift + 2 * i, "\xc3\xa9", 3);
        }
        const char *made = stem(text, "t", NULL);
        assert_true(fx_utf8_is_valid(made, strlen(made)));
        assert_true(strlen(made) > FX_STEM_MAX - 2);
    }
}

static void test_bad_bytes_are_escaped(void **state)
{
    (void)state;
    const char *made = stem("../x/y", "t", NULL);
    assert_memory_equal(made, "_._x_y-t~", 9);
    assert_string_not_equal(stem("a/b", "t", NULL), stem("a_b", "t", NULL));
    assert_string_not_equal(stem("a/b", "t", NULL), stem("a\nb", "t", NULL));
    assert_string_not_equal(stem("a\xff", "t", NULL), stem("a\xfe", "t", NULL));
    assert_string_not_equal(stem(".x", "t", NULL), stem("_x", "t", NULL));
    assert_non_null(strstr(file("s-t", FXTAP_INPUT, "../../etc", 0), "s-t.INPUT._._.._etc~"));
    assert_string_not_equal(stem("Add", "t", NULL), stem("Add", "t", "1"));
    assert_string_not_equal(stem("Add", "t", "1"), stem("Add", "t", "2"));
}

static void test_folding(void **state)
{
    (void)state;
    const char *const equal[][2] = {
        {"aBc-1.x", "AbC-1.X"},
        {"\xc3\xa9t", "\xc3\x89T"},              /* é, É */
        {"\xc3\xa9t", "e\xcc\x81T"},             /* é, e and an acute accent */
        {"a\xe1\xba\xad", "aa\xcc\xa3\xcc\x82"}, /* ậ, a and two marks */
        {"Stra\xc3\x9f"
         "e",
         "STRASSE"},                           /* ß */
        {"\xe2\x84\xaa-x", "k-x"},             /* the Kelvin sign */
        {"\xc5\xbf-x", "S-X"},                 /* the long s */
        {"\xef\xac\x81n", "FIN"},              /* the ligature fi */
        {"\xef\xac\x81\xcc\x81", "f\xc3\xad"}, /* the same with an accent */
        {"\xc4\xb0", "i\xcc\x87"},             /* I with a dot */
        {"\xce\xa3", "\xcf\x82"},              /* sigma, at the end of a word */
        {"\xe2\x89\xa0", "=\xcc\xb8"},         /* not equal */
        {"a\xcd\x85", "a\xce\xb9"},            /* iota below */
        {"\xef\xbc\xa1", "\xef\xbd\x81"},      /* full-width A */
    };
    const char *const different[][2] = {
        {"abc", "abcd"}, {"abd", "abc"}, {"a-b", "a_b"}, {"a\xcc\x81", "a"}, {"\xc3\xa9t", "t1"}, {"", "a"},
    };
    for (size_t i = 0; i < COUNT_OF(equal); i++) {
        char a[32], b[32];
        fx_name_fold(equal[i][0], a);
        fx_name_fold(equal[i][1], b);
        assert_string_equal(a, b);
    }
    for (size_t i = 0; i < COUNT_OF(different); i++) {
        char a[32], b[32];
        fx_name_fold(different[i][0], a);
        fx_name_fold(different[i][1], b);
        assert_string_not_equal(a, b);
    }
    char short_one[1];
    fx_name_fold("", short_one);
    assert_string_equal(short_one, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_names_stay),      cmocka_unit_test(test_leap_years),
        cmocka_unit_test(test_long_names_stay_apart), cmocka_unit_test(test_sequences_are_not_cut),
        cmocka_unit_test(test_bad_bytes_are_escaped), cmocka_unit_test(test_folding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
