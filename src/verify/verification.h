/* verification.h - a verification as data: results in order of execution, and their operators. */
#ifndef FX_VERIFY_VERIFICATION_H
#define FX_VERIFY_VERIFICATION_H

#include "fxtap/verify.h"
#include "util/texts.h"

/* What judging found about one result. */
typedef struct fx_judgement {
    fxtap_verify_need need;
    fxtap_verify_verdict verdict;
    char reason[200]; /* "" if the numbers say it all */
    bool has_third;
    const void *measured; /* the values that `error` is of; NULL: none yet */
    uint32_t spread_runs; /* behind it */
    fxtap_rounding_error error;
    fxtap_rounding_error third;
} fx_judgement;

struct fxtap_verification {
    fx_arena arena;
    fx_texts texts;     /* of the results, in the arena */
    const char *golden; /* NULL: each operator is judged by its own graph */
    const char *target;
    fxtap_verify_result *results;
    size_t n_results, results_capacity;
    fxtap_verify_operator *operators;
    size_t n_operators, operators_capacity;
    uint64_t counts[FXTAP_VERIFY_COUNT]; /* operators */
    fx_judgement judgement;              /* of the last result that was judged */
    bool is_judged;                      /* `judgement` has not been recorded yet */
};

/* ---- judge.c ---- */

/* Measures and judges one result as far as `input` allows. FXTAP_E_INVALID, FXTAP_E_UNSUPPORTED, FXTAP_E_NOMEM. */
fxtap_status fx_judge_rounding(const fxtap_verify_input *input, fx_judgement *out);

/* ---- verification.c ---- */

/* Appends a result whose texts and shape live in the arena, and updates operators and counts. */
fxtap_status fx_verification_append(fxtap_verification *verification, const fxtap_verify_result *result);

#endif
