/* test_compare_files.c - comparing dumps without an index: TorchAir's names, plain folders, two files. */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/npy.h"
#include "support_compare.h"
#include "support_tree.h"

#define STAMP "20251017071211190258"
#define STEP_FOLDER "worldsize1_global_rank0/graph_1"

static void save(const char *root, const char *name, fxtap_dtype dtype, int64_t n, const void *data)
{
    const fxtap_view view = {.data = data, .dtype = dtype, .ndim = 1, .shape = &n};
    const char *path = tree_path(root, "%s", name);
    if (fxtap_npy_save(path, &view) != FXTAP_OK) {
        fail_msg("%s", fxtap_error_message());
    }
}

/* Compares two 1-d arrays in separate files; copies the report's only pair. */
static fxtap_pair compare_arrays(sides *both, fxtap_dtype dtype, int64_t n, const void *golden, const void *target)
{
    remove(tree_path(both->golden, "a.npy"));
    remove(tree_path(both->target, "a.npy"));
    save(both->golden, "a.npy", dtype, n, golden);
    save(both->target, "a.npy", dtype, n, target);
    fxtap_report *report = sc_compare(tree_path(both->golden, "a.npy"), tree_path(both->target, "a.npy"), NULL);
    assert_int_equal(fxtap_report_pair_count(report), 1);
    fxtap_pair pair = *fxtap_report_pair(report, 0);
    fxtap_report_free(report);
    return pair;
}

static void integers_do_not_wrap(void **state)
{
    fxtap_pair pair = compare_arrays(*state, FXTAP_UINT8, 1, (uint8_t[]){0}, (uint8_t[]){1});
    assert_true(pair.max_abs_err == 1.0);
    assert_int_equal(pair.verdict, FXTAP_DIFFERENT);
    pair = compare_arrays(*state, FXTAP_INT8, 1, (int8_t[]){-128}, (int8_t[]){127});
    assert_true(pair.max_abs_err == 255.0);
    pair = compare_arrays(*state, FXTAP_BOOL, 2, (bool[]){true, false}, (bool[]){false, false});
    assert_int_equal(pair.mismatched, 1);
    assert_int_equal(pair.count, 2);
}

static void arrays_without_elements_have_metrics(void **state)
{
    sides *both = *state;
    fxtap_pair pair = compare_arrays(both, FXTAP_FLOAT32, 0, "", "");
    assert_int_equal(pair.verdict, FXTAP_SAME);
    assert_true(pair.identical_bits && pair.max_ulp == 0.0 && pair.cosine == 1.0 && pair.within_1e3 == 1.0);
    save(both->golden, "b.npy", FXTAP_FLOAT32, 0, "");
    save(both->target, "b.npy", FXTAP_FLOAT64, 0, "");
    fxtap_report *report = sc_compare(tree_path(both->golden, "b.npy"), tree_path(both->target, "b.npy"), NULL);
    assert_false(fxtap_report_pair(report, 0)->identical_bits);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    fxtap_report_free(report);
}

static void zero_golden_has_no_relative_error(void **state)
{
    const uint16_t golden[] = {0, 0x4000}, target[] = {0, 0x3c00}; /* float16: 0, 2 and 0, 1 */
    fxtap_pair pair = compare_arrays(*state, FXTAP_FLOAT16, 2, golden, target);
    assert_true(pair.max_rel_err == 0.5);
    assert_int_equal(pair.verdict, FXTAP_DIFFERENT);
}

static void non_finite_values_compare_by_kind(void **state)
{
    const float a[] = {NAN, INFINITY, 1}, b[] = {NAN, -INFINITY, 1}, c[] = {0, INFINITY, 1};
    assert_int_equal(compare_arrays(*state, FXTAP_FLOAT32, 3, a, a).verdict, FXTAP_SAME);
    assert_int_equal(compare_arrays(*state, FXTAP_FLOAT32, 3, a, b).verdict, FXTAP_DIFFERENT);
    fxtap_pair pair = compare_arrays(*state, FXTAP_FLOAT32, 3, a, c);
    assert_int_equal(pair.verdict, FXTAP_DIFFERENT);
    assert_int_equal(pair.nan_mismatched, 1);
}

static void zero_vectors_agree_and_have_a_cosine(void **state)
{
    const float zeros[] = {0, 0}, ones[] = {1, 1};
    fxtap_pair pair = compare_arrays(*state, FXTAP_FLOAT32, 2, zeros, zeros);
    assert_int_equal(pair.verdict, FXTAP_SAME);
    assert_true(pair.cosine == 1.0);
    pair = compare_arrays(*state, FXTAP_FLOAT32, 2, zeros, ones);
    assert_int_equal(pair.verdict, FXTAP_DIFFERENT);
    assert_true(pair.cosine == 0.0);
}

static void a_small_error_is_close(void **state)
{
    const float golden[] = {1, 2, 3}, target[] = {1, 2.000001f, 3};
    fxtap_pair pair = compare_arrays(*state, FXTAP_FLOAT32, 3, golden, target);
    assert_int_equal(pair.verdict, FXTAP_CLOSE);
    assert_int_equal(pair.max_abs_index, 1);
}

static void memory_order_and_byte_order_do_not_matter(void **state)
{
    sides *both = *state;
    static const char c_order[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    static const char f_order[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }";
    unsigned char left[128 + 24], right[128 + 24];
    memset(left, ' ', 128);
    memset(right, ' ', 128);
    memcpy(left, c_order, sizeof c_order - 1);
    memcpy(right, f_order, sizeof f_order - 1);
    left[127] = right[127] = '\n';
    for (int row = 0; row < 2; row++) {
        for (int column = 0; column < 3; column++) {
            float value = (float)(10 * row + column + 1);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            uint32_t swapped = __builtin_bswap32(bits);
            memcpy(left + 128 + 4 * (3 * row + column), &bits, 4);
            memcpy(right + 128 + 4 * (2 * column + row), &swapped, 4);
        }
    }
    tree_write(tree_path(both->golden, "x.npy"), left, sizeof left);
    tree_write(tree_path(both->target, "x.npy"), right, sizeof right);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    assert_true(fxtap_report_pair(report, 0)->measured);
    fxtap_report_free(report);
}

static void write_node(const char *root, int step, const char *node, const char *place, float value)
{
    tree_mkdir(tree_path(root, STEP_FOLDER "/%d", step));
    tree_write_floats(tree_path(root, STEP_FOLDER "/%d/%s-aten.add.Tensor.%s.%s.npy", step, node, place, STAMP), &value,
                      1);
}

/* A chain of `n` additions in steps 0 .. n_steps-1 with equal stamps: ordered by the number in the name. */
static void write_chain(const char *root, int n_steps, int n_nodes, int bad_from, int bad_step)
{
    for (int step = 0; step < n_steps; step++) {
        for (int i = 0; i < n_nodes; i++) {
            char node[32];
            snprintf(node, sizeof node, i == 0 ? "add" : "add_%d", i);
            float in = (float)i, out = (float)(i + 1);
            bool is_bad = bad_from >= 0 && step >= bad_step;
            in += is_bad && i > bad_from ? 0.5f : 0.0f;
            out += is_bad && i >= bad_from ? 0.5f : 0.0f;
            tree_mkdir(tree_path(root, STEP_FOLDER "/%d", step));
            for (int io = 0; io < 2; io++) {
                char name[600];
                snprintf(name, sizeof name, STEP_FOLDER "/%d/%s-aten.add.Tensor.%s.20251017071211%06d.npy", step, node,
                         io == 0 ? "INPUT.0" : "OUTPUT.0", i);
                tree_write_floats(tree_path(root, "%s", name), io == 0 ? &in : &out, 1);
            }
        }
    }
}

static void the_first_divergence_is_numeric(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 12, 121, -1, 0);
    write_chain(both->target, 12, 121, 2, 2);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_DIFFERENT);
    assert_int_equal(fxtap_report_origin_count(report), 10);
    const fxtap_origin *origin = fxtap_report_origin(report, 0);
    assert_string_equal(origin->pair->node, "add_2");
    assert_int_equal(origin->pair->step, 2);
    assert_int_equal(origin->reason, FXTAP_ORIGIN_OPERATOR);
    assert_int_equal(origin->n_carried, 118);
    assert_int_equal(fxtap_report_pair_count(report), 12 * 121 * 2);
    assert_int_equal(fxtap_report_pairing_count(report, FXTAP_PAIR_EXACT), 12 * 121 * 2);
    fxtap_report_free(report);
}

static void what_is_missing_or_unreadable_is_counted(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 5, -1, 0);
    write_chain(both->target, 1, 5, -1, 0);
    write_node(both->golden, 0, "extra", "OUTPUT.0", 1);
    write_node(both->golden, 1, "add", "OUTPUT.0", 1);
    tree_write(tree_path(both->target, STEP_FOLDER "/0/add_3-aten.add.Tensor.OUTPUT.0.20251017071211000003.npy"), "cut",
               3);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_count(report, FXTAP_SAME), 9);
    assert_int_equal(fxtap_report_count(report, FXTAP_UNREADABLE), 1);
    assert_int_equal(fxtap_report_count(report, FXTAP_ONLY_GOLDEN), 2);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_DIFFERENT);
    assert_non_null(strstr(sc_find(report, "add_3-aten.add.Tensor.OUTPUT.0")->detail, "target"));
    fxtap_report_free(report);
}

static void an_empty_tree_is_reported(void **state)
{
    sides *both = *state;
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    fxtap_report *report = NULL;
    assert_int_not_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_null(report);
    assert_true(strlen(fxtap_error_message()) > 0);
}

static void one_step_against_another(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 3, 4, 1, 2);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.golden_step = 0;
    options.target_step = 2;
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->golden, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_group_count(report), 1);
    assert_int_equal(fxtap_report_origin_count(report), 1);
    assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "add_1");
    assert_int_equal(fxtap_report_pair(report, 0)->target_step, 2);
    fxtap_report_free(report);
}

static void a_map_pairs_other_names(void **state)
{
    sides *both = *state;
    write_node(both->golden, 0, "add_1", "OUTPUT.0", 1);
    write_node(both->target, 0, "plus_1_x", "OUTPUT.0", 1);
    tree_write(tree_path(both->golden, "map"), "# comment\n\nadd_* plus_*_x\n", 26);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.map_path = tree_path(both->golden, "map");
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_pairing_count(report, FXTAP_PAIR_MAPPED), 1);
    assert_string_equal(fxtap_report_pair(report, 0)->target_name, "plus_1_x-aten.add.Tensor.OUTPUT.0");
    fxtap_report_free(report);
    tree_write(tree_path(both->golden, "map"), "one\n", 4);
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_E_INVALID);
}

static void fail_fast_says_what_it_did_not_compare(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 50, -1, 0);
    write_chain(both->target, 1, 50, 0, 0);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.fail_fast = true;
    options.n_threads = 1;
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_count(report, FXTAP_DIFFERENT), 1);
    assert_int_equal(fxtap_report_count(report, FXTAP_NOT_COMPARED), 98);
    assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "add");
    fxtap_report_free(report);
}

static void rules_override_the_defaults(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 3, -1, 0);
    write_chain(both->target, 1, 3, 1, 0);
    fxtap_rule rules[2];
    fxtap_rule_init(&rules[0]);
    fxtap_rule_init(&rules[1]);
    rules[0].atol = 1.0;
    rules[1].node = "add_2";
    rules[1].rtol = rules[1].atol = 0;
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.rules = rules;
    options.n_rules = 1;
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_CLOSE);
    fxtap_report_free(report);
    options.n_rules = 2;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_count(report, FXTAP_DIFFERENT), 2);
    fxtap_report_free(report);
}

static void rules_have_their_size(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 3, -1, 0);
    write_chain(both->target, 1, 3, 1, 0);
    struct later_rule { /* a later version's rule has more fields */
        fxtap_rule known;
        double unknown;
    } rules[2];
    for (int i = 0; i < 2; i++) {
        fxtap_rule_init(&rules[i].known);
        rules[i].known.struct_size = sizeof rules[i];
        rules[i].unknown = 1e-30;
    }
    rules[0].known.atol = 1.0;
    rules[1].known.node = "add_2";
    rules[1].known.rtol = rules[1].known.atol = 0;
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.rules = &rules[0].known;
    options.n_rules = 2;
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_OK);
    assert_int_equal(fxtap_report_count(report, FXTAP_DIFFERENT), 2);
    fxtap_report_free(report);
    rules[0].known.struct_size = 0; /* not initialised */
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_E_INVALID);
    assert_non_null(strstr(fxtap_error_message(), "rule 0 of 0 bytes"));
    rules[0].known.struct_size = sizeof rules[0];
    rules[1].known.struct_size = sizeof rules[1].known; /* another size than the first one's */
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_E_INVALID);
}

static char *print(const fxtap_report *report, fxtap_report_format format)
{
    static fxtap_buffer buffer;
    fxtap_buffer_clear(&buffer);
    fxtap_report_options options = {.struct_size = sizeof options, .format = format};
    assert_int_equal(fxtap_report_print(report, &options, &buffer), FXTAP_OK);
    return buffer.bytes;
}

static void shards_put_together_are_the_whole(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 7, 9, -1, 0);
    write_chain(both->target, 7, 9, 4, 3);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    fxtap_report *whole = sc_compare(both->golden, both->target, NULL);
    void *bytes[3];
    size_t n_bytes[3];
    for (uint32_t shard = 0; shard < 3; shard++) {
        options.shard = shard;
        options.n_shards = 3;
        fxtap_report *part = NULL;
        assert_int_equal(sc_try(both->golden, both->target, &options, &part), FXTAP_OK);
        assert_int_equal(fxtap_report_serialise(part, &bytes[shard], &n_bytes[shard]), FXTAP_OK);
        fxtap_report_free(part);
    }
    fxtap_report *merged = NULL;
    assert_int_equal(fxtap_report_merge((const void *const *)bytes, n_bytes, 3, &merged), FXTAP_OK);
    char *expected = strdup(print(whole, FXTAP_REPORT_JSON));
    assert_string_equal(print(merged, FXTAP_REPORT_JSON), expected);
    free(expected);
    for (size_t length = 0; length < n_bytes[0]; length += length < 400 ? 1 : 97) {
        const void *cut[] = {bytes[0]};
        fxtap_report *none = NULL;
        assert_int_equal(fxtap_report_merge(cut, &length, 1, &none), FXTAP_E_FORMAT);
    }
    for (int i = 0; i < 3; i++) {
        fxtap_free(bytes[i]);
    }
    fxtap_report_free(whole);
    fxtap_report_free(merged);
}

static uint64_t number_at(const unsigned char *at)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

static void put_number(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

/* The position in a shard of the first group's two numbers, the first and number of its pairs. */
static unsigned char *group_extent(void *bytes, size_t n_bytes, uint64_t n_pairs)
{
    unsigned char *found = NULL;
    for (unsigned char *at = bytes; at + 16 <= (unsigned char *)bytes + n_bytes; at++) {
        if (number_at(at) == 0 && number_at(at + 8) == n_pairs) {
            found = at; /* the last match: groups follow the pairs */
        }
    }
    assert_non_null(found);
    return found;
}

/* Pairs that a shard names repeatedly are merged once. */
static void groups_of_a_shard_tile_its_pairs(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 300, -1, 0);
    write_chain(both->target, 1, 300, -1, 0);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL), *merged = NULL;
    uint64_t n_pairs = fxtap_report_pair_count(report);
    assert_int_equal(fxtap_report_group_count(report), 1);
    void *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(fxtap_report_serialise(report, &bytes, &n_bytes), FXTAP_OK);
    fxtap_report_free(report);
    unsigned char *extent = group_extent(bytes, n_bytes, n_pairs);
    const struct {
        uint64_t first, n;
    } wrong[] = {{1, n_pairs - 1}, {0, n_pairs - 1}, {0, n_pairs + 1}, {n_pairs, 0}, {UINT64_MAX, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put_number(extent, wrong[i].first);
        put_number(extent + 8, wrong[i].n);
        assert_int_equal(fxtap_report_merge((const void *const[]){bytes}, &n_bytes, 1, &merged), FXTAP_E_FORMAT);
    }
    put_number(extent, 0);
    put_number(extent + 8, n_pairs);
    assert_int_equal(fxtap_report_merge((const void *const[]){bytes}, &n_bytes, 1, &merged), FXTAP_OK);
    assert_int_equal(fxtap_report_pair_count(merged), n_pairs);
    fxtap_report_free(merged);
    /* the same group repeatedly, each time with all pairs */
    enum { GROUPS = 20000, BYTES = 64 };
    unsigned char *group = extent - (BYTES - 16);
    size_t n_before = (size_t)(group - (unsigned char *)bytes), n_after = n_bytes - n_before - BYTES;
    unsigned char *many = malloc(n_before + GROUPS * BYTES + n_after);
    assert_non_null(many);
    memcpy(many, bytes, n_before);
    assert_int_equal(number_at(group - 8), 1);
    put_number(many + n_before - 8, GROUPS);
    for (size_t i = 0; i < GROUPS; i++) {
        memcpy(many + n_before + i * BYTES, group, BYTES);
    }
    memcpy(many + n_before + GROUPS * BYTES, group + BYTES, n_after);
    size_t n_many = n_before + GROUPS * BYTES + n_after;
    assert_int_equal(fxtap_report_merge((const void *const[]){many}, &n_many, 1, &merged), FXTAP_E_FORMAT);
    assert_non_null(strstr(fxtap_error_message(), "groups that overlap"));
    free(many);
    fxtap_free(bytes);
}

static void every_form_prints(void **state)
{
    sides *both = *state;
    write_chain(both->golden, 1, 9, -1, 0);
    write_chain(both->target, 1, 9, 4, 0);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_non_null(strstr(print(report, FXTAP_REPORT_TEXT), "Origin  add_4"));
    assert_non_null(strstr(print(report, FXTAP_REPORT_JSON), "\"verdict\": \"different\""));
    assert_non_null(strstr(print(report, FXTAP_REPORT_CSV), "One Thousandth Err Ratio"));
    assert_non_null(strstr(print(report, FXTAP_REPORT_HTML), "<script id=\"data\" type=\"application/json\">{"));
    fxtap_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDED(integers_do_not_wrap),
        SIDED(arrays_without_elements_have_metrics),
        SIDED(zero_golden_has_no_relative_error),
        SIDED(non_finite_values_compare_by_kind),
        SIDED(zero_vectors_agree_and_have_a_cosine),
        SIDED(a_small_error_is_close),
        SIDED(memory_order_and_byte_order_do_not_matter),
        SIDED(the_first_divergence_is_numeric),
        SIDED(what_is_missing_or_unreadable_is_counted),
        SIDED(an_empty_tree_is_reported),
        SIDED(one_step_against_another),
        SIDED(a_map_pairs_other_names),
        SIDED(fail_fast_says_what_it_did_not_compare),
        SIDED(rules_override_the_defaults),
        SIDED(rules_have_their_size),
        SIDED(shards_put_together_are_the_whole),
        SIDED(groups_of_a_shard_tile_its_pairs),
        SIDED(every_form_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
