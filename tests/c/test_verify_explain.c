/* test_verify_explain.c - a comparison with the verdicts of a verification: which differences are only rounding. */
#include "support_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "fxtap/verify.h"
#include "support_compare.h"
#include "support_tree.h"
#include "util/memory.h"

#define STEP_FOLDER "worldsize1_global_rank0/graph_1/0"
#define OUTPUT_OF(node) node "-aten.mul.Tensor.OUTPUT.0"

/* Two operators; a file whose value is 0 is not written. */
static void write_step(const char *root, float in, float out, float in_1, float out_1)
{
    const char *const names[] = {"mul", "mul", "mul_1", "mul_1"}, *const slots[] = {"INPUT", "OUTPUT"};
    const float values[] = {in, out, in_1, out_1};
    for (size_t i = 0; i < 4; i++) {
        if (values[i] != 0) {
            tree_write_floats(tree_path(root, STEP_FOLDER "/%s-aten.mul.Tensor.%s.0.2025101707121100000%zu.npy",
                                        names[i], slots[i % 2], i / 2),
                              &values[i], 1);
        }
    }
}

static void add(fxtap_verification *verification, int32_t rank, const char *node, fxtap_verify_verdict verdict,
                bool is_alone)
{
    fxtap_verify_place place;
    fxtap_verify_place_init(&place);
    place.rank = rank;
    place.graph = 1;
    place.node = node;
    place.operator_name = "aten.mul.Tensor";
    place.slot = "OUTPUT.0";
    place.dtype = FXTAP_FLOAT32;
    place.is_alone = is_alone;
    assert_int_equal(fxtap_verification_add(verification, &place, verdict, NULL), FXTAP_OK);
}

static fxtap_verification *verification_of(fxtap_verify_verdict first, fxtap_verify_verdict second, bool is_alone)
{
    fxtap_verification *verification = NULL;
    assert_int_equal(fxtap_verification_create("golden", "target", &verification), FXTAP_OK);
    add(verification, 0, "mul", first, is_alone);
    add(verification, 0, "mul_1", second, is_alone);
    return verification;
}

/* Compares and verifies; the first line of the text must be `expected`, and the first origin's reason `reason`. */
static void says(const sides *both, fxtap_verification *verification, const char *expected, fxtap_origin_reason reason)
{
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_verify(report, verification), FXTAP_OK);
    fxtap_report_options options = {.struct_size = sizeof options, .format = FXTAP_REPORT_TEXT, .quiet = true};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    assert_int_equal(fxtap_report_print_verified(report, verification, &options, &text), FXTAP_OK);
    assert_string_equal(text.bytes, expected);
    assert_int_equal(fxtap_report_is_rounding(report), strstr(expected, "all is rounding") != NULL);
    if (fxtap_report_origin_count(report) > 0) {
        assert_int_equal(fxtap_report_origin(report, 0)->reason, reason);
    }
    fxtap_buffer_clear(&text);
    fxtap_report_free(report);
    fxtap_verification_free(verification);
}

static void what_is_rounding(void **state)
{
    const sides *both = *state;
    write_step(both->golden, 1, 2, 2, 4);
    write_step(both->target, 1, 2.1F, 2.1F, 4.3F);
    says(both, verification_of(FXTAP_VERIFY_ROUNDING, FXTAP_VERIFY_EXACT, false),
         "DIFFERENT  3 of 4 tensors differ, but nothing is wrong: all is rounding\n", FXTAP_ORIGIN_ROUNDING);
    says(both, verification_of(FXTAP_VERIFY_WRONG, FXTAP_VERIFY_EXACT, false),
         "DIFFERENT  3 of 4 tensors differ, and 1 operator is wrong: mul\n", FXTAP_ORIGIN_OPERATOR);
    says(both, verification_of(FXTAP_VERIFY_BIASED, FXTAP_VERIFY_WRONG, false),
         "DIFFERENT  3 of 4 tensors differ, and 2 operators are wrong: first mul\n", FXTAP_ORIGIN_OPERATOR);
    says(both, verification_of(FXTAP_VERIFY_NOT_REPLAYED, FXTAP_VERIFY_EXACT, false),
         "DIFFERENT  3 of 4 tensors differ, though no operator is wrong\n", FXTAP_ORIGIN_OPERATOR);
    says(both, verification_of(FXTAP_VERIFY_ROUNDING, FXTAP_VERIFY_NOT_REPLAYED, false),
         "DIFFERENT  3 of 4 tensors differ, though no operator is wrong\n", FXTAP_ORIGIN_ROUNDING);
    says(both, verification_of(FXTAP_VERIFY_ROUNDING, FXTAP_VERIFY_EXACT, true), /* right by itself says nothing */
         "DIFFERENT  3 of 4 tensors differ, though no operator is wrong\n", FXTAP_ORIGIN_OPERATOR);
    says(both, verification_of(FXTAP_VERIFY_NOT_REPLAYED, FXTAP_VERIFY_NOT_REPLAYED, false),
         "DIFFERENT  3 of 4 tensors differ; no operator could be verified\n", FXTAP_ORIGIN_OPERATOR);
}

static void a_missing_tensor_is_not_rounding(void **state)
{
    const sides *both = *state;
    write_step(both->golden, 1, 2, 2, 4);
    write_step(both->target, 1, 2.1F, 2.1F, 0);
    fxtap_verification *verification = NULL;
    assert_int_equal(fxtap_verification_create("golden", "target", &verification), FXTAP_OK);
    add(verification, 0, "mul", FXTAP_VERIFY_ROUNDING, false);
    says(both, verification, "DIFFERENT  2 of 3 tensors differ, 1 is missing, though no operator is wrong\n",
         FXTAP_ORIGIN_ROUNDING);
}

static void equal_sides(void **state)
{
    const sides *both = *state;
    write_step(both->golden, 1, 2, 2, 4);
    write_step(both->target, 1, 2, 2, 4);
    says(both, verification_of(FXTAP_VERIFY_EXACT, FXTAP_VERIFY_EXACT, false),
         "SAME  4 tensors, all equal, and nothing is wrong\n", FXTAP_ORIGIN_OPERATOR);
    says(both, verification_of(FXTAP_VERIFY_EXACT, FXTAP_VERIFY_WRONG, false),
         "SAME  4 tensors, all equal, but 1 operator is wrong: mul_1\n", FXTAP_ORIGIN_OPERATOR);
}

/* The verified side may have one rank of another number; with several, the number decides. */
static void ranks(void **state)
{
    const sides *both = *state;
    write_step(both->golden, 1, 2, 2, 4);
    write_step(both->target, 1, 2.1F, 2.1F, 4.3F);
    for (int32_t n_ranks = 1; n_ranks <= 2; n_ranks++) {
        fxtap_verification *verification = NULL;
        assert_int_equal(fxtap_verification_create("golden", "target", &verification), FXTAP_OK);
        for (int32_t rank = 7; rank < 7 + n_ranks; rank++) {
            add(verification, rank, "mul", FXTAP_VERIFY_ROUNDING, false);
            add(verification, rank, "mul_1", FXTAP_VERIFY_ROUNDING, false);
        }
        says(both, verification,
             n_ranks == 1 ? "DIFFERENT  3 of 4 tensors differ, but nothing is wrong: all is rounding\n"
                          : "DIFFERENT  3 of 4 tensors differ, though no operator is wrong\n",
             n_ranks == 1 ? FXTAP_ORIGIN_ROUNDING : FXTAP_ORIGIN_OPERATOR);
    }
}

/* Results have their verdict, in all formats; memory may run out at any point. */
static void all_formats(void **state)
{
    const sides *both = *state;
    write_step(both->golden, 1, 2, 2, 4);
    write_step(both->target, 1, 2.1F, 2.1F, 4.3F);
    fxtap_verification *verification = verification_of(FXTAP_VERIFY_ROUNDING, FXTAP_VERIFY_WRONG, false);
    for (int format = FXTAP_REPORT_TEXT; format <= FXTAP_REPORT_HTML; format++) {
        bool is_pending = false;
        for (long long n = 0; !is_pending; n++) {
            fxtap_report *report = sc_compare(both->golden, both->target, NULL);
            fxtap_report_options options = {.struct_size = sizeof options, .format = (fxtap_report_format)format};
            fxtap_buffer out;
            fxtap_buffer_init(&out);
            fx_memory_fail_after(n);
            fxtap_status status = fxtap_report_verify(report, verification);
            if (status == FXTAP_OK) {
                status = fxtap_report_print_verified(report, verification, &options, &out);
            }
            is_pending = fx_memory_fail_pending();
            fx_memory_fail_after(-1);
            assert_int_equal(status, is_pending ? FXTAP_OK : FXTAP_E_NOMEM);
            if (is_pending) {
                assert_string_equal(sc_find(report, OUTPUT_OF("mul"))->verified, "rounding");
                assert_string_equal(sc_find(report, OUTPUT_OF("mul_1"))->verified, "wrong");
                assert_null(sc_find(report, "mul-aten.mul.Tensor.INPUT.0")->verified);
                assert_non_null(strstr(out.bytes, "wrong"));
            }
            fxtap_buffer_clear(&out);
            fxtap_report_free(report);
        }
    }
    fxtap_verification_free(verification);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDED(what_is_rounding), SIDED(a_missing_tensor_is_not_rounding), SIDED(equal_sides), SIDED(ranks),
        SIDED(all_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
