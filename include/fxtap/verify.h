/*
 * fxtap/verify.h - is an operator right? A result is right if it is what the operator, computed in float64 on its own
 * inputs, gives after rounding to its dtype. The caller runs operators; this library measures, judges and reports.
 *
 * A result is measured against its float64 reference in one pass and judged in stages: fxtap_verification_judge()
 * either settles the verdict or asks for what it needs (the same operator in its own dtype on this machine, the spread
 * of the reference under perturbed inputs). fxtap_verification_add() then records the result under its node.
 *
 * Thread rule: a verification belongs to one thread at a time. What accessors return is borrowed, and valid until the
 * next fxtap_verification_add(), or until the verification is freed.
 */
#ifndef FXTAP_VERIFY_H
#define FXTAP_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/buffer.h"
#include "fxtap/compare.h"
#include "fxtap/dtype.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FXTAP_ROUNDING_WORST_MAX 8

/* One element: both values as float64; of a complex element the part that is worse. */
typedef struct fxtap_rounding_point {
    uint64_t index; /* flat, in the order of the values given */
    double saved;
    double reference;
} fxtap_rounding_point;

/*
 * A result against its reference. All counts are of real numbers: a complex element is two. Results of integers and
 * bools have only count, misrounded (elements that differ from the reference) and the worst elements.
 *
 * An ulp of an element is the spacing of the dtype's numbers at the reference (complex: at its modulus).
 */
typedef struct fxtap_rounding_error {
    uint64_t count;       /* pairs of which both values are finite, the reference after rounding */
    uint64_t misrounded;  /* saved is not the dtype's number that is nearest to the reference, ties to even */
    uint64_t up, down;    /* misrounded: saved is above, below that number */
    uint64_t unexplained; /* misrounded, and arithmetic in the precision in which kernels compute does not explain it */
    uint64_t unfaithful;  /* unexplained, and a spacing or more off: not next to the reference */
    uint64_t outliers;    /* |saved - reference| exceeds the allowance many times */
    uint64_t special;     /* NaN or infinite on one side, or infinities of different signs */
    uint64_t zero_signs;  /* both are zero after rounding, with different signs */
    uint64_t distinct;    /* distinct reference values, estimated; at most 65,536 */
    double max_ulp;       /* largest |saved - reference| in ulps */
    uint64_t max_ulp_index;
    double max_ratio; /* largest |saved - reference| / allowance; NaN: not known, nor are outliers and unexplained */
    uint64_t max_ratio_index;
    double rms_error;
    double rms_allowance;
    double ratio;      /* rms_error / rms_allowance; NaN if no element was measured */
    double bias;       /* mean of (saved - rounded reference), in ulps */
    double bias_error; /* its standard error */
    size_t n_worst;
    fxtap_rounding_point worst[FXTAP_ROUNDING_WORST_MAX]; /* largest ratio first; infinite and NaN before those */
} fxtap_rounding_error;

/* In order of severity: the verdict of an operator is the worst of its results'. JSON and CSV contain the names. */
typedef enum fxtap_verify_verdict {
    FXTAP_VERIFY_NOT_REPLAYED = 0,
    FXTAP_VERIFY_EXACT = 1,    /* the correctly rounded reference, every element */
    FXTAP_VERIFY_ROUNDING = 2, /* differs from it as rounding does */
    FXTAP_VERIFY_BIASED = 3,   /* right in size, but not as rounding falls */
    FXTAP_VERIFY_WRONG = 4,
    FXTAP_VERIFY_COUNT = 5
} fxtap_verify_verdict;

typedef enum fxtap_verify_need {
    FXTAP_NEED_NOTHING = 0,
    FXTAP_NEED_THIRD = 1,       /* the operator's result in its own dtype on this machine */
    FXTAP_NEED_SPREAD = 2,      /* the spread over 3 perturbed runs */
    FXTAP_NEED_MORE_SPREAD = 3, /* the spread over 15 perturbed runs: those 3 and 12 more */
    FXTAP_NEED_COUNT = 4
} fxtap_verify_need;

/* One result to judge. All arrays are contiguous, in the same order, aligned to their elements; borrowed. */
typedef struct fxtap_verify_input {
    size_t struct_size;
    fxtap_dtype dtype;     /* the original one */
    uint64_t n_elems;      /* of the saved form */
    const void *saved;     /* in the saved dtype */
    const void *reference; /* float64, complex128; for integers and bools the saved dtype */
    bool is_continued;     /* the last call asked for what this one adds, and all else is as it was */
    const void *third;     /* in the saved dtype: the operator run in its own dtype on this machine; NULL: not run */
    bool no_third;         /* it cannot be run: judged without it */
    const double *spread;  /* as `reference`, NULL: none: for each element (each part of a complex one) the RMS of the
                              change of the reference when each input is multiplied by 1 +- u, u of `dtype` */
    uint32_t spread_runs;  /* runs that `spread` comes from */
    bool no_spread;        /* it cannot be computed: judged without it */
    uint64_t reduction;    /* length of the reduction behind one element; 0, 1: none */
    fxtap_dtype coarse;    /* the coarsest dtype among inputs and output; NONE: `dtype` */
    bool is_pointwise;     /* pointwise, or a move of data: the sign of zero matters */
    int64_t wrong_indices; /* indices (of topk, argmax, ...) that select other values than the reference's do;
                              -1: the result has no such meaning */
} fxtap_verify_input;

FXTAP_API void fxtap_verify_input_init(fxtap_verify_input *input);

/*
 * Relative L2 distances of a result from the exact value: that of golden's graph run in float64 from its inputs. NaN if
 * it was not computed.
 */
typedef struct fxtap_verify_distances {
    double golden, target; /* of the two dumps */
    double rounding; /* of a float64 run whose every result is rounded to target's dtype: what rounding explains */
} fxtap_verify_distances;

/* A value that operators pass on: one that an operator reads is the result with the same hash. */
typedef struct fxtap_verify_value {
    uint64_t hash; /* 64 bits of that of its contents; 0: unknown */
    bool differs;  /* a comparison found it to differ from golden's */
} fxtap_verify_value;

/* Where a result stands. Texts are borrowed for the call; NULL is "". */
typedef struct fxtap_verify_place {
    size_t struct_size;
    int32_t rank;
    uint32_t graph;
    int64_t step;
    int64_t call;  /* number of the call in its process; -1: unknown, and results are in order of step, then graph */
    int64_t order; /* of the node in its graph; -1: unknown */
    const char *node;
    const char *operator_name; /* "aten.gelu.default" */
    const char *slot;          /* "OUTPUT 0" */
    const char *source_file;
    int32_t source_line;
    const char *source_function;
    const char *source_code;
    const char *module_path;
    fxtap_dtype dtype;
    int32_t ndim;
    const int64_t *shape;
    fxtap_verify_distances distances;
    bool is_alone;            /* there is a golden, but not for this result: judged by its own operator */
    fxtap_verify_value value; /* the result */
    size_t n_inputs;          /* of the operator, the same for all results */
    const fxtap_verify_value *inputs;
} fxtap_verify_place;

FXTAP_API void fxtap_verify_place_init(fxtap_verify_place *place);

/* A recorded result. */
typedef struct fxtap_verify_result {
    fxtap_verify_place place;
    fxtap_verify_verdict verdict;
    const char *reason; /* one line: why it was not replayed, or what is wrong; or "" */
    bool is_measured;   /* `error` is valid */
    bool has_third;     /* `third` is valid */
    fxtap_rounding_error error;
    fxtap_rounding_error third; /* of the same operator on this machine; without its worst elements */
} fxtap_verify_result;

/* The results of one call of one operator, which are contiguous. */
typedef struct fxtap_verify_operator {
    fxtap_verify_verdict verdict;
    size_t first_result, n_results;
    size_t worst; /* index of the result that decides the verdict: among equals the one with the largest ratio */
} fxtap_verify_operator;

typedef struct fxtap_verification fxtap_verification;

/* An empty verification. `golden` is NULL if operators are judged by their own graph. FXTAP_E_NOMEM. */
FXTAP_API fxtap_status fxtap_verification_create(const char *golden, const char *target, fxtap_verification **out);
FXTAP_API void fxtap_verification_free(fxtap_verification *verification);

/*
 * Measures and judges one result. If *need_out is not FXTAP_NEED_NOTHING, the caller calls again with what it asks for
 * added; else *verdict_out is the verdict, and the measurement belongs to the next fxtap_verification_add().
 * FXTAP_E_INVALID (options), FXTAP_E_UNSUPPORTED (a dtype without a saved form), FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_verification_judge(fxtap_verification *verification, const fxtap_verify_input *input,
                                                fxtap_verify_need *need_out, fxtap_verify_verdict *verdict_out);

/*
 * Records a result; those of one operator call follow each other. `reason` may be NULL: what judging found. The last
 * judgement's measurement, if it has not been recorded yet, becomes the result's. FXTAP_E_INVALID, FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_verification_add(fxtap_verification *verification, const fxtap_verify_place *place,
                                              fxtap_verify_verdict verdict, const char *reason);

FXTAP_API size_t fxtap_verification_result_count(const fxtap_verification *verification);
FXTAP_API const fxtap_verify_result *fxtap_verification_result(const fxtap_verification *verification, size_t i);
FXTAP_API size_t fxtap_verification_operator_count(const fxtap_verification *verification);
FXTAP_API const fxtap_verify_operator *fxtap_verification_operator(const fxtap_verification *verification, size_t i);
/* Number of operator calls with this verdict. */
FXTAP_API uint64_t fxtap_verification_count(const fxtap_verification *verification, fxtap_verify_verdict verdict);
/* Whether an operator is wrong or biased. */
FXTAP_API bool fxtap_verification_is_wrong(const fxtap_verification *verification);
/* "exact", "rounding", "biased", "wrong", "not replayed" */
FXTAP_API const char *fxtap_verify_verdict_name(fxtap_verify_verdict verdict);
FXTAP_API fxtap_status fxtap_verify_verdict_from_name(const char *name, fxtap_verify_verdict *out);

/*
 * The shards of one verification, in any order, become the verification that one process would have made: results are
 * ordered by rank, call, step, graph and node. *out of serialise is freed with fxtap_free(). FXTAP_E_FORMAT.
 */
FXTAP_API fxtap_status fxtap_verification_serialise(const fxtap_verification *verification, void **out,
                                                    size_t *n_bytes_out);
FXTAP_API fxtap_status fxtap_verification_merge(const void *const *shards, const size_t *n_bytes, size_t n_shards,
                                                fxtap_verification **out);

/*
 * Adds the verdicts to the comparison of the same two dumps: to each pair of results, and to origins, of which those
 * whose operator is right become FXTAP_ORIGIN_ROUNDING. FXTAP_E_NOMEM. The report must not be read meanwhile.
 */
FXTAP_API fxtap_status fxtap_report_verify(fxtap_report *report, const fxtap_verification *verification);
/* Whether, after fxtap_report_verify(), rounding explains everything that differs. */
FXTAP_API bool fxtap_report_is_rounding(const fxtap_report *report);
/* Prints both in one, after fxtap_report_verify(). */
FXTAP_API fxtap_status fxtap_report_print_verified(const fxtap_report *report, const fxtap_verification *verification,
                                                   const fxtap_report_options *options, fxtap_buffer *out);

/* The options and formats are those of a comparison's report. */
FXTAP_API fxtap_status fxtap_verification_print(const fxtap_verification *verification,
                                                const fxtap_report_options *options, fxtap_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
