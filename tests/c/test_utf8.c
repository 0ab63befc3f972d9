#include "support_cmocka.h"

#include <string.h>

#include "util/utf8.h"

static void test_every_code_point_goes_there_and_back(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        char bytes[4];
        size_t used;
        size_t n = fx_utf8_encode(c, bytes);
        bool is_scalar = c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
        assert_int_equal(fx_utf8_decode(bytes, n, &used), is_scalar ? c : 0xFFFD);
        assert_int_equal(used, n);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : is_scalar ? 4 : 3);
        for (size_t cut = 0; cut < n; cut++) {
            fx_utf8_decode(bytes, cut, &used);
            assert_int_equal(used, 0);
        }
    }
}

static void test_what_is_no_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xff",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xc3\x28",
                                      "\xe2\x82\x28",
                                      "\xf0\x9f\x98\x28"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        size_t used = 9;
        assert_int_equal(fx_utf8_decode(bad[i], strlen(bad[i]), &used), 0);
        assert_int_equal(used, 0);
        assert_false(fx_utf8_is_valid(bad[i], strlen(bad[i])));
    }
    assert_true(fx_utf8_is_valid("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0x", 12));
    assert_true(fx_utf8_is_valid("", 0));
}

static void test_ucs4(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\xff\xe2\x82";
    uint32_t out[6];
    const uint32_t wanted[] = {'a', 0xE9, 0xFFFD, 0xFFFD, 0xFFFD};
    assert_int_equal(fx_utf8_to_ucs4(text, 6, out), 5);
    assert_memory_equal(out, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_goes_there_and_back),
        cmocka_unit_test(test_what_is_no_utf8),
        cmocka_unit_test(test_ucs4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
