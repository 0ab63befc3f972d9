#include "support_cmocka.h"

#include <string.h>

#include "index/file_names.h"
#include "index/parse_file_name.h"

typedef struct name_case {
    const char *name;
    const char *node, *target;
    fxtap_io io;
    const char *position;
} name_case;

static void assert_part(const char *name, size_t offset, size_t length, const char *expected)
{
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(name + offset, expected, length);
}

static void test_reads_names(void **state)
{
    (void)state;
    static const name_case cases[] = {
        {"add_1-aten.add.Tensor.INPUT.0.20251017071211190258.npy", "add_1", "aten.add.Tensor", FXTAP_INPUT, "0"},
        {"cat-aten.cat.default.INPUT.0.12.20251017071211190258.npy", "cat", "aten.cat.default", FXTAP_INPUT, "0.12"},
        {"x-aten.sum.dim_IntList.OUTPUT.3.20251017071211190258.npy", "x", "aten.sum.dim_IntList", FXTAP_OUTPUT, "3"},
        {"c-aten.copy_.default.INOUT.0.20251017071211190258.npy", "c", "aten.copy_.default", FXTAP_INOUT, "0"},
        {"a-aten.add.out.INPUT.alpha.20251017071211190258.npy", "a", "aten.add.out", FXTAP_INPUT, "alpha"},
        {"a-aten.add.out.INPUT.kw.2.20251017071211190258.npy", "a", "aten.add.out", FXTAP_INPUT, "kw.2"},
        {"m-<built-in function mul>.INPUT.1.20251017071211190258.npy", "m", "<built-in function mul>", FXTAP_INPUT,
         "1"},
        {"n-my-lib.op-2.default.INPUT.1.20251017071211190258.npy", "n", "my-lib.op-2.default", FXTAP_INPUT, "1"},
        {"n-lib.INPUT.0.OUTPUT.1.20251017071211190258.npy", "n", "lib.INPUT.0", FXTAP_OUTPUT, "1"},
        {"n-lib.INPUT.kw.INPUT.1.20251017071211190258.npy", "n", "lib.INPUT.kw", FXTAP_INPUT, "1"},
        {"n-t.INPUT.INPUT.20251017071211190258.npy", "n", "t", FXTAP_INPUT, "INPUT"},
        {"stem.INPUT.0.20251017071211190258.npy", "stem", "", FXTAP_INPUT, "0"},
        {"n-.INPUT.0.20251017071211190258.npy", "n", "", FXTAP_INPUT, "0"},
        {"f-l.0.INPUT.1.2.3.20251017071211190258.npy", "f", "l.0", FXTAP_INPUT, "1.2.3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = cases[i].name;
        fx_name parsed;
        assert_true(fx_name_parse(name, strlen(name), &parsed));
        assert_part(name, 0, parsed.node_length, cases[i].node);
        assert_part(name, parsed.target_offset, parsed.target_length, cases[i].target);
        assert_part(name, parsed.position_offset, parsed.position_length, cases[i].position);
        assert_int_equal(parsed.io, cases[i].io);
        assert_int_equal(parsed.stamp_us, UINT64_C(1760685131190258));
        assert_int_equal(parsed.name_length, strlen(name) - 25);
        assert_memory_equal(name + parsed.stem_length, ".I", 2 * (cases[i].io != FXTAP_OUTPUT));
    }
}

static void test_refuses_other_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        ".npy",
        "weights.npy",
        "add.INPUT.0.npy",
        "20251017071211190258.npy",
        ".INPUT.0.20251017071211190258.npy",
        "-t.INPUT.0.20251017071211190258.npy",
        "a-t.INPUT.20251017071211190258.npy",
        "a-t.INPUT..20251017071211190258.npy",
        "a-t.INPUT.0..20251017071211190258.npy",
        "a-t.input.0.20251017071211190258.npy",
        "a-t.INPUT.a.b.20251017071211190258.npy",
        "a-t.INPUT.0.2025101707121119025.npy",
        "a-t.INPUT.0.220251017071211190258.npy",
        "a-t.INPUT.0.20251317071211190258.npy",
        "a-t.INPUT.0.20250230071211190258.npy",
        "a-t.INPUT.0.20251017241211190258.npy",
        "a-t.INPUT.0.20251017071211190258.npz",
        "a-t.INPUT.0.2025101707121119025x.npy",
        "a/t.INPUT.0.20251017071211190258.npy",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fx_name parsed = {.stamp_us = 42};
        assert_false(fx_name_parse(names[i], strlen(names[i]), &parsed));
        assert_int_equal(parsed.stamp_us, 42);
    }
    static const char with_nul[] = "a-t\0.INPUT.0.20251017071211190258.npy";
    fx_name parsed;
    assert_false(fx_name_parse(with_nul, sizeof with_nul - 1, &parsed));
}

static void test_time_stamps_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *digits;
        uint64_t stamp_us;
    } cases[] = {
        {"19700101000000000000", 0},
        {"20000229235959999999", UINT64_C(951868799999999)},
        {"20240229120000000001", UINT64_C(1709208000000001)},
        {"20261129141540881164", UINT64_C(1795961740881164)},
        {"99991231235959999999", UINT64_C(253402300799999999)},
    };
    char digits[21] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t stamp_us = 1;
        assert_true(fx_stamp_parse(cases[i].digits, &stamp_us));
        assert_int_equal(stamp_us, cases[i].stamp_us);
        fx_name_stamp(cases[i].stamp_us, digits);
        assert_string_equal(digits, cases[i].digits);
    }
    fx_name_stamp(UINT64_MAX, digits);
    assert_string_equal(digits, "99991231235959999999");
    uint64_t stamp_us;
    assert_false(fx_stamp_parse("21000229000000000000", &stamp_us)); /* not a leap year */
    assert_false(fx_stamp_parse("19691231235959999999", &stamp_us));
    for (uint64_t day = 0; day < 60000; day += 7) { /* into the 2130s */
        uint64_t moment = day * UINT64_C(86400000000) + day * 11;
        fx_name_stamp(moment, digits);
        assert_true(fx_stamp_parse(digits, &stamp_us));
        assert_int_equal(stamp_us, moment);
    }
}

static void test_reads_folders(void **state)
{
    (void)state;
    int32_t world_size, rank;
    uint32_t graph;
    fxtap_step_state step_state;
    int64_t number;
    assert_true(fx_rank_folder_parse("worldsize16_global_rank3", &world_size, &rank));
    assert_int_equal(world_size, 16);
    assert_int_equal(rank, 3);
    assert_false(fx_rank_folder_parse("worldsize16_global_rank3x", &world_size, &rank));
    assert_false(fx_rank_folder_parse("worldsize016_global_rank3", &world_size, &rank));
    assert_false(fx_rank_folder_parse("worldsize1_global_rank2147483648", &world_size, &rank));
    assert_false(fx_rank_folder_parse("worldsize_global_rank", &world_size, &rank));
    assert_true(fx_graph_folder_parse("graph_4294967295", &graph));
    assert_int_equal(graph, UINT32_MAX);
    assert_false(fx_graph_folder_parse("graph_4294967296", &graph));
    assert_false(fx_graph_folder_parse("graph_", &graph));
    assert_true(fx_step_folder_parse("0", &step_state, &number));
    assert_int_equal(step_state, FXTAP_STEP_WHOLE);
    assert_true(fx_step_folder_parse("12.failed-3", &step_state, &number));
    assert_int_equal(step_state, FXTAP_STEP_FAILED);
    assert_int_equal(number, 12);
    assert_true(fx_step_folder_parse(".7.partial", &step_state, &number));
    assert_int_equal(step_state, FXTAP_STEP_PARTIAL);
    assert_int_equal(number, 7);
    assert_true(fx_step_folder_parse(".12-1.partial", &step_state, &number));
    assert_int_equal(number, 12);
    assert_true(fx_step_folder_parse(".12-1-2.partial", &step_state, &number));
    assert_int_equal(step_state, FXTAP_STEP_PARTIAL);
    static const char *const none[] = {"",   ".",  ".1-.partial", "..",          "01",        "1x",
                                       "-1", ".7", "7.partial",   ".7.failed-1", "1.failed-", "99999999999999999999",
                                       "1/2"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(fx_step_folder_parse(none[i], &step_state, &number));
    }
}

static void test_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {"", "0", "01", "1", "2", "2.1", "2.10", "10", "99999999999999999999999"};
    size_t n = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            int order = fx_natural_compare(sorted[i], sorted[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
            assert_true((order < 0) == (fx_natural_compare(sorted[j], sorted[i]) > 0));
        }
    }
    assert_true(fx_natural_compare("add_2", "add_10") < 0);
    assert_true(fx_natural_compare("01", "1") != 0);
    assert_true(fx_position_compare("10", "alpha") < 0);
    assert_true(fx_position_compare("beta", "10") > 0);
    assert_true(fx_position_compare("2", "10") < 0);
    assert_true(fx_position_compare("1.2", "1.10") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_names),
        cmocka_unit_test(test_refuses_other_names),
        cmocka_unit_test(test_time_stamps_read_back),
        cmocka_unit_test(test_reads_folders),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
