/* test_verify_judge.c - the stages of judging one result, and what each asks for. */
#include "support_judge.h"

static void test_correct_rounding_is_exact(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    judged(a, FXTAP_BFLOAT16, "exact", 0);
    fill(a, FXTAP_FLOAT32);
    judged(a, FXTAP_FLOAT32, "exact", 0);
}

/* One unit in the last place of float32 on either side, as a kernel has that computes in float32. */
static void test_float32_arithmetic_is_rounding(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i += 2) {
        a->saved[i] = nextafterf(a->saved[i], random_unit() < 0.5 ? -INFINITY : INFINITY);
    }
    judged(a, FXTAP_FLOAT32, "rounding", 2); /* the ratio exceeds 1 without the spread */
}

static void test_bits_of_this_machine_are_rounding(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] = a->third[i] = a->saved[i] * (i % 3 == 0 ? 1.0078125f : 1);
    }
    judged(a, FXTAP_BFLOAT16, "rounding", 2); /* how large its error is, is told */
    fill(a, FXTAP_FLOAT32);
    a->saved[9] = a->third[9] = (float)a->reference[9] * (1 + 0x1p-20f); /* as cancellation leaves it */
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_FLOAT32);
    size_t asked;
    assert_string_equal(settle(verification, a, &input, &asked), "rounding");
    assert_int_equal(asked, 1);
    fxtap_verify_place place;
    fxtap_verify_place_init(&place);
    assert_int_equal(fxtap_verification_add(verification, &place, FXTAP_VERIFY_ROUNDING, NULL), FXTAP_OK);
    const fxtap_verify_result *result = fxtap_verification_result(verification, 0);
    assert_true(isnan(result->error.max_ratio) && result->error.outliers == 0 && result->error.ratio < 1);
    assert_string_equal(result->reason, "");
    fxtap_verification_free(verification);
}

static void test_one_wrong_element(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    a->saved[1234] *= 1.001f;
    judged(a, FXTAP_FLOAT32, "wrong", 3);
    fill(a, FXTAP_BFLOAT16);
    a->saved[1234] *= 1.5f;
    judged(a, FXTAP_BFLOAT16, "wrong", 3);
}

/* Cancellation makes outliers in every kernel: about as many and as large are no fault, one much larger is. */
static void test_outliers_of_this_machine(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < 40; i++) {
        a->reference[i] = 1e-4;
        a->spread[i] = 0;
        a->saved[i] = a->third[i] = 1e-4f;
        a->third[i] += i % 2 == 0 ? 1e-9f : 0;
        a->saved[i] += i % 3 == 0 ? 2e-9f : i % 4 == 1 ? 1e-9f : 0;
    }
    judged(a, FXTAP_FLOAT32, "rounding", 2);
    a->saved[100] = (float)(a->reference[100] * 1.01);
    judged(a, FXTAP_FLOAT32, "wrong", 3);
    a->saved[100] = a->third[100];
    for (size_t i = 40; i < 80; i++) {
        a->reference[i] = 1e-4;
        a->spread[i] = 0;
        a->third[i] = 1e-4f;
        a->saved[i] = 1e-4f + 1e-9f;
    }
    judged(a, FXTAP_FLOAT32, "wrong", 3);
}

static void test_all_elements_too_large(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] *= 1 + 0x1p-20f; /* 16 half units: under the reach of one element's allowance, but in all */
    }
    judged(a, FXTAP_FLOAT32, "wrong", 3);
}

static void test_nan_lost_and_found(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    a->reference[7] = NAN;
    a->third[7] = NAN;
    judged(a, FXTAP_BFLOAT16, "wrong", 3);
    a->saved[7] = NAN;
    judged(a, FXTAP_BFLOAT16, "exact", 0);
    a->reference[7] = 1; /* this machine gives NaN too: torch's own behaviour */
    judged(a, FXTAP_BFLOAT16, "rounding", 1);
}

/* Truncation instead of rounding to nearest: half of all results, each by less than a unit in the last place. */
static void truncate(arrays *a)
{
    for (size_t i = 0; i < N; i++) {
        float wide = (float)a->reference[i];
        uint32_t bits;
        memcpy(&bits, &wide, sizeof bits);
        bits &= 0xFFFF0000u;
        memcpy(&a->saved[i], &bits, sizeof bits);
    }
}

/* What the last call measured is used again; verdict and numbers are those of a call that brings all at once. */
static void test_continued(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    truncate(a);
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
    for (int is_continued = 0; is_continued < 2; is_continued++) {
        input.third = NULL;
        input.spread = NULL;
        input.is_continued = false;
        assert_string_equal(ask(verification, &input), "third");
        input.is_continued = is_continued;
        input.third = a->third;
        assert_string_equal(ask(verification, &input), "spread");
        input.spread = a->spread;
        input.spread_runs = 15;
        assert_string_equal(ask(verification, &input), "biased");
        fxtap_verify_place place;
        fxtap_verify_place_init(&place);
        place.dtype = FXTAP_BFLOAT16;
        assert_int_equal(fxtap_verification_add(verification, &place, FXTAP_VERIFY_BIASED, NULL), FXTAP_OK);
    }
    const fxtap_verify_result *all = fxtap_verification_result(verification, 0);
    const fxtap_verify_result *continued = fxtap_verification_result(verification, 1);
    assert_memory_equal(&all->error, &continued->error, sizeof all->error);
    assert_memory_equal(&all->third, &continued->third, sizeof all->third);
    fxtap_verification_free(verification);
}

static void test_truncation_is_biased(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    truncate(a);
    judged(a, FXTAP_BFLOAT16, "biased", 3);
}

/* Where this machine's kernel rounds as rarely correctly, it is no bias. */
static void test_a_bias_that_this_machine_shares(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    truncate(a);
    memcpy(a->third, a->saved, sizeof a->third);
    a->third[0] = nextafterf(a->third[0], 0) > 0 ? a->third[0] * 1.0078125f : a->third[0] * 0.9921875f;
    judged(a, FXTAP_BFLOAT16, "rounding", 2);
}

/* Errors of float32 arithmetic flip a bfloat16 result where the reference is near a boundary, and only there. */
static void test_what_inner_arithmetic_explains_is_no_bias(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    for (size_t i = 0; i < N; i++) {
        float low = a->saved[i], high = low * (1 + 0x1p-7f);
        uint32_t bits;
        memcpy(&bits, &low, sizeof bits);
        bits += 0x10000; /* the next number of bfloat16 */
        memcpy(&high, &bits, sizeof bits);
        double boundary = ((double)low + (double)high) / 2;
        a->reference[i] = boundary - (high > low ? 1 : -1) * fabs(boundary) * 0x1p-25;
        a->saved[i] = i % 2 == 0 ? low : high;
        a->third[i] = low;
    }
    judged(a, FXTAP_BFLOAT16, "rounding", 2);
}

static void test_sign_of_zero(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    a->reference[5] = -0.0;
    a->third[5] = -0.0f;
    a->saved[5] = 0;
    judged(a, FXTAP_BFLOAT16, "rounding", 1); /* of a reduction it says nothing */
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
    input.is_pointwise = true;
    size_t asked;
    assert_string_equal(settle(verification, a, &input, &asked), "biased");
    a->third[5] = 0;
    assert_string_equal(ask(verification, &input), "rounding");
    fxtap_verification_free(verification);
}

/* Errors larger than the model's are no fault if this machine's kernel has them, in that size. */
static void test_error_that_this_machine_shares(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] *= (float)(1 + (random_unit() - 0.5) * 0x1p-8);
        a->third[i] *= (float)(1 + (random_unit() - 0.5) * 0x1p-8);
    }
    judged(a, FXTAP_FLOAT32, "rounding", 2);
    a->saved[77] *= 2;
    judged(a, FXTAP_FLOAT32, "wrong", 3);
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] *= (float)(1 + (random_unit() - 0.5) * 0x1p-8);
    }
    judged(a, FXTAP_FLOAT32, "wrong", 3); /* not this machine's error */
}

/* What an input of bfloat16 allows is no fault if this machine's errors are about as large. */
static void test_error_of_a_coarser_input(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] = a->third[i] *= 1 + 0x1p-21f;
    }
    a->saved[77] *= 1 + 0x1p-14f; /* one of 4,096, so that the RMS error stays about as large */
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_FLOAT32);
    size_t asked;
    assert_string_equal(settle(verification, a, &input, &asked), "wrong");
    input.coarse = FXTAP_BFLOAT16;
    assert_string_equal(ask(verification, &input), "rounding");
    for (size_t i = 0; i < N; i++) {
        a->third[i] = (float)a->reference[i];
    }
    assert_string_equal(ask(verification, &input), "wrong"); /* this machine's are not */
    fxtap_verification_free(verification);
}

/* A long sum may be off by more: the allowance grows with the root of the reduction's length. */
static void test_reduction(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] = (float)(a->reference[i] * (1 + (random_unit() - 0.5) * 0x1p-17));
    }
    judged(a, FXTAP_FLOAT32, "wrong", 3);
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_FLOAT32);
    input.reduction = 10000;
    size_t asked;
    assert_string_equal(settle(verification, a, &input, &asked), "rounding");
    fxtap_verification_free(verification);
}

static void test_without_third_and_spread(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    truncate(a);
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
    input.no_third = true;
    input.no_spread = true;
    assert_string_equal(ask(verification, &input), "rounding"); /* nothing to compare shares with */
    a->saved[9] *= 2;
    assert_string_equal(ask(verification, &input), "wrong");
    fxtap_verification_free(verification);
}

static void test_few_elements_prove_no_bias(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    truncate(a);
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
    input.third = a->third;
    input.spread = a->spread;
    input.spread_runs = 15;
    input.n_elems = 6;
    assert_string_equal(ask(verification, &input), "rounding");
    input.n_elems = 40; /* about 20, and float32 arithmetic explains not one of them */
    assert_string_equal(ask(verification, &input), "biased");
    for (size_t i = 6; i < N; i++) { /* 40 elements, but 6 different ones */
        a->reference[i] = a->reference[i % 6];
        a->saved[i] = a->saved[i % 6];
        a->third[i] = a->third[i % 6];
    }
    assert_string_equal(ask(verification, &input), "rounding");
    fxtap_verification_free(verification);
}

/* Errors of a sum fall on all elements alike: one that is off alone is found before it is 8 allowances off. */
static void test_one_element_of_a_sum(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_FLOAT32);
    for (size_t i = 0; i < N; i++) {
        a->third[i] = i % 2 == 0 ? nextafterf(a->third[i], INFINITY) : a->third[i];
    }
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_FLOAT32);
    input.spread = a->spread;
    input.spread_runs = 15;
    input.third = a->third;
    input.reduction = 8;
    double allowed = sqrt(1 + 1 + 4 + 8. / 3) * 0x1p-24; /* of a number just over a power of two */
    a->reference[100] = a->spread[100] = 1.0001;
    a->spread[100] *= 0x1p-24;
    a->third[100] = 1.0001f;
    a->saved[100] = (float)(1.0001 + 6.5 * allowed);
    assert_string_equal(ask(verification, &input), "wrong");
    a->saved[100] = (float)(1.0001 + 4.5 * allowed);
    assert_string_equal(ask(verification, &input), "rounding");
    a->saved[100] = (float)(1.0001 + 6.5 * allowed);
    a->third[2000] = (float)(a->reference[2000] * (1 + 3 * allowed)); /* this machine has such ones, too */
    assert_string_equal(ask(verification, &input), "rounding");
    a->third[2000] = (float)a->reference[2000];
    input.reduction = 1; /* functions are approximated, and far off in single points */
    a->saved[100] = (float)(1.0001 + 6.5 * sqrt(2 + 0.5 + 1. / 3) * 0x1p-24);
    assert_string_equal(ask(verification, &input), "rounding");
    input.reduction = 8;
    for (size_t i = 0; i < N; i += 2) { /* all others are about as far off */
        a->saved[i] = (float)(a->reference[i] * (1 + allowed));
    }
    a->saved[100] = (float)(1.0001 + 6.5 * allowed);
    assert_string_equal(ask(verification, &input), "rounding");
    fxtap_verification_free(verification);
}

/* This machine rounds intermediates, too, and misrounds often: errors twice as large are a bias all the same. */
static void test_errors_larger_than_usual(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    const fx_rounding_format *format = fx_rounding_format_of(FXTAP_BFLOAT16);
    for (size_t i = 0; i < N; i++) {
        a->third[i] = (float)fx_rounding_nearest(format, a->reference[i] * (1 + (random_unit() - 0.5) * 0x1p-7));
        a->saved[i] = (float)fx_rounding_nearest(format, a->reference[i] * (1 + (random_unit() - 0.5) * 0x1p-7));
    }
    judged(a, FXTAP_BFLOAT16, "rounding", 2);
    for (size_t i = 0; i < N; i++) {
        a->saved[i] = (float)fx_rounding_nearest(format, a->reference[i] * (1 + (random_unit() - 0.5) * 0x1p-5));
    }
    judged(a, FXTAP_BFLOAT16, "biased", 3);
}

/* One spacing off is little for bfloat16, but no kernel that computes in float32 gets there. */
static void test_one_unfaithful_element(void **state)
{
    arrays *a = *state;
    fill(a, FXTAP_BFLOAT16);
    a->reference[77] = 1.001;
    a->saved[77] = 1.015625f;
    a->third[77] = 1;
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
    input.spread = a->spread;
    input.spread_runs = 15;
    input.third = a->third;
    input.reduction = 64;
    assert_string_equal(ask(verification, &input), "biased");
    a->saved[77] = 1.0078125f; /* the neighbour above */
    assert_string_equal(ask(verification, &input), "rounding");
    a->saved[77] = 1.015625f;
    a->spread[77] = 64; /* cancellation: float32 arithmetic explains it */
    assert_string_equal(ask(verification, &input), "rounding");
    a->spread[77] = 0x1p-8;
    a->third[900] = a->third[900] * 1.03125f;
    assert_string_equal(ask(verification, &input), "rounding"); /* this machine's kernel has such elements */
    a->third[900] = a->saved[900];
    input.reduction = 1;
    assert_string_equal(ask(verification, &input), "rounding");
    fxtap_verification_free(verification);
}

static void test_integers(void **state)
{
    (void)state;
    const int64_t saved[] = {4, 5, 6}, reference[] = {4, 5, 7}, third[] = {4, 0, 6};
    fxtap_verification *verification = create();
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    input.dtype = FXTAP_INT64;
    input.n_elems = 3;
    input.saved = reference;
    input.reference = reference;
    assert_string_equal(ask(verification, &input), "exact");
    input.saved = saved;
    assert_string_equal(ask(verification, &input), "third");
    input.third = third;
    assert_string_equal(ask(verification, &input), "rounding"); /* 6 is this machine's */
    input.third = reference;
    assert_string_equal(ask(verification, &input), "wrong");
    input.wrong_indices = 0; /* equal values at both indices */
    assert_string_equal(ask(verification, &input), "rounding");
    input.wrong_indices = 2;
    assert_string_equal(ask(verification, &input), "wrong");
    input.third = NULL;
    input.wrong_indices = -1;
    input.no_third = true;
    assert_string_equal(ask(verification, &input), "wrong");
    fxtap_verification_free(verification);
}

static void test_no_elements(void **state)
{
    (void)state;
    fxtap_verification *verification = create();
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    input.dtype = FXTAP_FLOAT32;
    assert_string_equal(ask(verification, &input), "exact");
    input.dtype = FXTAP_BOOL;
    assert_string_equal(ask(verification, &input), "exact");
    fxtap_verification_free(verification);
}

static void test_invalid_input(void **state)
{
    (void)state;
    fxtap_verification *verification = create();
    fxtap_verify_need need;
    fxtap_verify_verdict verdict;
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    assert_int_equal(fxtap_verification_judge(verification, &input, &need, &verdict), FXTAP_E_UNSUPPORTED);
    input.dtype = FXTAP_QINT8;
    assert_int_equal(fxtap_verification_judge(verification, &input, &need, &verdict), FXTAP_E_UNSUPPORTED);
    input.dtype = FXTAP_FLOAT32;
    input.n_elems = 1;
    assert_int_equal(fxtap_verification_judge(verification, &input, &need, &verdict), FXTAP_E_INVALID);
    input.struct_size = 1;
    assert_int_equal(fxtap_verification_judge(verification, &input, &need, &verdict), FXTAP_E_INVALID);
    assert_int_equal(fxtap_verification_judge(verification, NULL, &need, &verdict), FXTAP_E_INVALID);
    fxtap_verification_free(verification);
}

/*
 * The rate of false alarms over results that are sound by construction: this machine's kernel and the saved one err
 * independently of each other, in float32, before they round to bfloat16.
 */
static void test_no_false_alarm(void **state)
{
    arrays *a = *state;
    const fx_rounding_format *format = fx_rounding_format_of(FXTAP_BFLOAT16);
    for (size_t round = 0; round < 300; round++) {
        fill(a, FXTAP_BFLOAT16);
        double size = ldexp(1, -(int)(round % 12) - 12);
        for (size_t i = 0; i < N; i++) {
            a->saved[i] = (float)fx_rounding_nearest(format, a->reference[i] * (1 + (random_unit() - 0.5) * size));
            a->third[i] = (float)fx_rounding_nearest(format, a->reference[i] * (1 + (random_unit() - 0.5) * size));
        }
        fxtap_verification *verification = create();
        fxtap_verify_input input = input_of(a, FXTAP_BFLOAT16);
        size_t asked;
        const char *verdict = settle(verification, a, &input, &asked);
        assert_true(strcmp(verdict, "rounding") == 0 || strcmp(verdict, "exact") == 0);
        fxtap_verification_free(verification);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_correct_rounding_is_exact),
        TEST(test_float32_arithmetic_is_rounding),
        TEST(test_bits_of_this_machine_are_rounding),
        TEST(test_one_wrong_element),
        TEST(test_outliers_of_this_machine),
        TEST(test_all_elements_too_large),
        TEST(test_nan_lost_and_found),
        TEST(test_continued),
        TEST(test_truncation_is_biased),
        TEST(test_a_bias_that_this_machine_shares),
        TEST(test_what_inner_arithmetic_explains_is_no_bias),
        TEST(test_sign_of_zero),
        TEST(test_error_that_this_machine_shares),
        TEST(test_error_of_a_coarser_input),
        TEST(test_reduction),
        TEST(test_without_third_and_spread),
        TEST(test_few_elements_prove_no_bias),
        TEST(test_one_element_of_a_sum),
        TEST(test_errors_larger_than_usual),
        TEST(test_one_unfaithful_element),
        TEST(test_integers),
        TEST(test_no_elements),
        TEST(test_invalid_input),
        TEST(test_no_false_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
