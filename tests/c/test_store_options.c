/* Options of a dump that are refused. */
#include "support_cmocka.h"
#include "support_store.h"

static void test_options(void **state)
{
    (void)state;
    fxtap_dump *dump;
    fxtap_dump_options good = ss_options("x");
    fxtap_dump_options bad = good;
    bad.struct_size = 3;
    assert_int_equal(fxtap_dump_open(&bad, &dump), FXTAP_E_INVALID);
    bad = good;
    bad.path = "";
    assert_int_equal(fxtap_dump_open(&bad, &dump), FXTAP_E_INVALID);
    bad = good;
    bad.rank = 1;
    assert_int_equal(fxtap_dump_open(&bad, &dump), FXTAP_E_INVALID);
    bad = good;
    bad.type = 0;
    assert_int_equal(fxtap_dump_open(&bad, &dump), FXTAP_E_INVALID);
    bad = good;
    bad.n_threads = -1;
    assert_int_equal(fxtap_dump_open(&bad, &dump), FXTAP_E_INVALID);
    fxtap_dump_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
