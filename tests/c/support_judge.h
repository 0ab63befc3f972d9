/* support_judge.h - results to be judged, and a judge that is given what it asks for. */
#ifndef SUPPORT_JUDGE_H
#define SUPPORT_JUDGE_H

#include "support_cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/verify.h"
#include "tensor/rounding.h"

#define N 4096

/* Deterministic values and what they round to; `third` is what this machine has. */
typedef struct arrays {
    double reference[N], spread[N];
    float saved[N], third[N];
} arrays;

static uint64_t seed = 88172645463325252u;

static double random_unit(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-53;
}

static void fill(arrays *a, fxtap_dtype dtype)
{
    const fx_rounding_format *format = fx_rounding_format_of(dtype);
    for (size_t i = 0; i < N; i++) {
        a->reference[i] = (random_unit() - 0.5) * 8;
        a->spread[i] = fabs(a->reference[i]) * fx_rounding_unit(format);
        a->saved[i] = a->third[i] = (float)fx_rounding_nearest(format, a->reference[i]);
    }
}

static int setup(void **state)
{
    *state = malloc(sizeof(arrays));
    return *state == NULL;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static const char *const needs[] = {"", "third", "spread", "more spread"};

/* The answer to one question. */
static const char *ask(fxtap_verification *verification, const fxtap_verify_input *input)
{
    fxtap_verify_need need;
    fxtap_verify_verdict verdict;
    assert_int_equal(fxtap_verification_judge(verification, input, &need, &verdict), FXTAP_OK);
    return need == FXTAP_NEED_NOTHING ? fxtap_verify_verdict_name(verdict) : needs[need];
}

static fxtap_verify_input input_of(const arrays *a, fxtap_dtype dtype)
{
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    input.dtype = dtype;
    input.n_elems = N;
    input.saved = a->saved;
    input.reference = a->reference;
    return input;
}

/* Gives what is asked for until there is a verdict; `asked` gets the questions' number. */
static const char *settle(fxtap_verification *verification, const arrays *a, fxtap_verify_input *input, size_t *asked)
{
    const char *answer = ask(verification, input);
    for (*asked = 0; *asked < 4; ++*asked) {
        if (strcmp(answer, "third") == 0) {
            input->third = a->third;
        } else if (strcmp(answer, "spread") == 0) {
            input->spread = a->spread;
            input->spread_runs = 3;
        } else if (strcmp(answer, "more spread") == 0) {
            input->spread_runs = 15;
        } else {
            break;
        }
        answer = ask(verification, input);
    }
    return answer;
}

static fxtap_verification *create(void)
{
    fxtap_verification *verification = NULL;
    assert_int_equal(fxtap_verification_create(NULL, "dump", &verification), FXTAP_OK);
    return verification;
}

static void judged(const arrays *a, fxtap_dtype dtype, const char *expected, size_t n_questions)
{
    fxtap_verification *verification = create();
    fxtap_verify_input input = input_of(a, dtype);
    size_t asked;
    assert_string_equal(settle(verification, a, &input, &asked), expected);
    assert_int_equal(asked, n_questions);
    fxtap_verification_free(verification);
}

#endif
