/*
 * judge.c - the verdict on one result, in stages: each asks for what it needs, so that most results cost one pass.
 *
 * The model of rounding errors (docs/verify.md). u is the unit roundoff of the result's dtype, rho the ratio of the
 * unit roundoff of the precision in which kernels compute to u, K the length of the reduction behind one element, s its
 * spread:
 *
 *     allow^2 = half(r)^2 + s^2 (1 + rho^2 K / 2) + (rho u r)^2 K / 3
 *     inner^2 = (rho s)^2 (1 + K / 2) + (rho u r)^2 (1 + K / 3)
 *
 * The terms: rounding of the result; of the intermediates, and of the partial sums of terms of mixed sign; of the
 * partial sums of terms of one sign. Partial sum k of K terms of mean m and variance v has E S_k^2 = k^2 m^2 + k v;
 * each is rounded independently (Higham & Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/rounding.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"
#include "verify/verification.h"

/*
 * Largest RMS error in units of the RMS allowance. The allowance is a standard deviation, so sound kernels have about
 * 1; polynomial approximations of exp, erf or tanh are up to 4 units of half an ulp off systematically.
 */
#define RATIO_MAX 4.0

/* Runs behind the first spread, and behind the one that may accuse: one of few runs can be small by chance. */
#define SPREAD_RUNS 3
#define SPREAD_RUNS_MAX 15

/* Shares of elements are compared with twice this machine's share: libraries differ in the order of their sums. */
#define SHARE_FACTOR 2.0
/*
 * ... plus this. Another approximation of a function or another order of a float32 sum moves fewer than 1 in 1,000
 * bfloat16 or float16 results over a rounding boundary (bench/verify.py --clean); the tanh gelu moves 3 in 100.
 */
#define SHARE_MARGIN 0.002
/*
 * Where this machine's kernel rounds intermediates to the result's dtype, and misrounds often, shares say little. There
 * the RMS error counts, and the share of elements that are not even next to the exact value. Kernels that round in
 * other places have errors of the same size: in bench/verify.py --clean within a tenth.
 */
#define RMS_FACTOR 1.5
/* Standard deviations of a share that is not chance: 1e-9 a test, so that thousands of operators raise no alarm. */
#define SHARE_SIGMAS 6.0

/* Outliers in units of this machine's: those of another kernel fall elsewhere, and are about as many. */
#define OUTLIER_FACTOR 2.0

/*
 * One element alone is off if its error exceeds this many RMS errors of all the others (of 10^9 Gaussian errors the
 * largest has 6.4, and the allowances are no better than to a factor of 2), ...
 */
#define LONELY_RATIO 12.0
/*
 * ... and this many times both its allowance and this machine's largest ratio. Other float32 kernels reach 3 times
 * (bench/verify.py --clean: with and without oneDNN, 1 and 2 threads). Only of sums: approximations of functions are
 * far off in single points.
 */
#define LONELY_REACH 5.0

/* This machine's kernel shares an error of size if its own is at least this part of it. */
#define SHARED_PART 0.5

static bool is_float(fxtap_dtype dtype)
{
    return fx_rounding_format_of(dtype) != NULL;
}

static bool is_wide(fxtap_dtype dtype)
{
    return dtype == FXTAP_FLOAT64 || dtype == FXTAP_COMPLEX128;
}

/* Unit roundoff of the precision in which kernels compute results of this dtype. */
static double inner_unit(fxtap_dtype dtype)
{
    return is_wide(dtype) ? 0x1p-53 : 0x1p-24;
}

static fx_rounding_options allowances(const fxtap_verify_input *input)
{
    double u = fx_rounding_unit(fx_rounding_format_of(input->dtype)), rho = inner_unit(input->dtype) / u;
    double k = input->reduction > 1 ? (double)input->reduction : 1;
    return (fx_rounding_options){
        .dtype = input->dtype,
        .spread_scale = sqrt(1 + rho * rho * k / 2),
        .relative = rho * u * sqrt(k / 3),
        .inner_scale = rho * sqrt(1 + k / 2),
        .inner_relative = rho * u * sqrt(1 + k / 3),
    };
}

static void measure(fx_rounding *rounding, const fxtap_verify_input *input, const void *saved,
                    fxtap_rounding_error *out)
{
    fx_rounding_options options = allowances(input);
    fx_rounding_init(rounding, &options);
    fx_rounding_add(rounding, 0, (size_t)input->n_elems, saved, input->reference, input->spread);
    fx_rounding_finish(rounding, out);
}

static void because(fx_judgement *out, fxtap_verify_verdict verdict, const char *reason)
{
    out->verdict = verdict;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static void counted(fx_judgement *out, fxtap_verify_verdict verdict, uint64_t n, const char *one, const char *many)
{
    out->verdict = verdict;
    snprintf(out->reason, sizeof out->reason, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

/* ---- size ---- */

static bool size_holds(const fxtap_rounding_error *error, double ratio_max)
{
    return !(error->ratio > ratio_max) && error->outliers == 0 && error->special == 0;
}

/*
 * How many times larger than modelled errors are here: by this machine's kernel, if it is less accurate than the model
 * (it accumulates in the result's own dtype, say). Another order of accumulation gives errors of the same size, but
 * its largest ones are elsewhere.
 */
static double usual_size(const fx_judgement *j)
{
    return j->has_third && j->third.ratio > 1 && isfinite(j->third.ratio) ? j->third.ratio : 1;
}

/* Where this machine's kernel has outliers too (cancellation), other counts and sizes of them are to be expected. */
static bool has_own_outliers(const fx_judgement *j)
{
    uint64_t n_shared = j->has_third ? j->third.outliers : 0;
    bool are_more = (double)j->error.outliers > OUTLIER_FACTOR * (double)n_shared &&
                    j->error.max_ratio > FX_ROUNDING_REACH * usual_size(j);
    return are_more || (n_shared > 0 && j->error.max_ratio > FX_ROUNDING_REACH * j->third.max_ratio);
}

/* One element of a sum is far off, where all others and this machine's are not. */
static bool is_lonely(const fx_judgement *j, const fxtap_verify_input *input)
{
    const fxtap_rounding_error *error = &j->error;
    if (!j->has_third || input->reduction <= 1 || error->n_worst == 0 ||
        error->max_ratio <= LONELY_REACH * fmax(1, j->third.max_ratio)) {
        return false;
    }
    double n = (double)error->count, largest = error->worst[0].saved - error->worst[0].reference;
    double others = n * error->rms_error * error->rms_error - largest * largest;
    double rest = sqrt(fmax(0, others) / n) / error->rms_allowance;
    return error->max_ratio > LONELY_RATIO * rest;
}

/* More values far off, or not finite on one side, than this machine's kernel has, or an error that is too large. */
static bool is_excess(const fx_judgement *j)
{
    uint64_t n_special = j->has_third ? j->third.special : 0;
    return j->error.ratio > RATIO_MAX * usual_size(j) || has_own_outliers(j) || j->error.special > n_special;
}

/* Every allowance is proportional to the unit roundoff: that of a coarser dtype needs no further pass. */
static bool is_shared(const fx_judgement *j, const fxtap_verify_input *input)
{
    const fx_rounding_format *coarse = fx_rounding_format_of(input->coarse);
    double factor = 1;
    if (coarse != NULL) {
        factor = fmax(1, fx_rounding_unit(coarse) / fx_rounding_unit(fx_rounding_format_of(input->dtype)));
    }
    return j->has_third && j->third.rms_error >= SHARED_PART * j->error.rms_error &&
           j->error.special <= j->third.special && j->error.ratio <= RATIO_MAX * factor &&
           j->error.max_ratio <= FX_ROUNDING_REACH * factor;
}

/* True if the result needs no further look at its size; else `out` says what it needs or that it is wrong. */
static bool judge_size(const fxtap_verify_input *input, fx_judgement *out)
{
    bool may_spread = !input->no_spread;
    bool lonely = is_lonely(out, input);
    if (!lonely && size_holds(&out->error, input->spread == NULL && may_spread ? 1 : RATIO_MAX)) {
        return true;
    }
    if (input->spread == NULL && may_spread) {
        out->need = FXTAP_NEED_SPREAD;
        return false;
    }
    if (!lonely && !is_excess(out)) {
        if (!size_holds(&out->error, RATIO_MAX)) {
            because(out, FXTAP_VERIFY_ROUNDING, "as this machine's kernel");
        }
        return true;
    }
    if (may_spread && input->spread_runs < SPREAD_RUNS_MAX) {
        out->need = FXTAP_NEED_MORE_SPREAD;
        return false;
    }
    if (!lonely && is_shared(out, input)) {
        because(out, FXTAP_VERIFY_ROUNDING, "as this machine's kernel");
        return true;
    }
    if (out->error.special > (out->has_third ? out->third.special : 0)) {
        counted(out, FXTAP_VERIFY_WRONG, out->error.special, "value is NaN or infinite on one side only",
                "values are NaN or infinite on one side only");
    } else if (out->error.ratio > RATIO_MAX) {
        because(out, FXTAP_VERIFY_WRONG, "");
    } else {
        uint64_t n_far = out->error.outliers > 0 ? out->error.outliers : 1;
        counted(out, FXTAP_VERIFY_WRONG, n_far, "value is far from the exact one",
                "values are far from the exact ones");
    }
    return false;
}

/* ---- shape ---- */

/*
 * Whether k of n independent elements are more than twice this machine's share allows: Chernoff's bound on the binomial
 * tail, n KL(k/n || p) against the exponent of SHARE_SIGMAS. Where elements repeat, only distinct ones count. Of 40
 * elements 7 are enough. That this machine has none among so few is taken for its share: of the elements that accuse,
 * the unexplained ones, a float32 kernel has none, however many elements there are.
 */
static bool is_more(double share, double usual, double n)
{
    double p = SHARE_FACTOR * usual + SHARE_MARGIN;
    if (n < 1 || share <= p || p >= 1) {
        return false;
    }
    double rest = share < 1 ? (1 - share) * log((1 - share) / (1 - p)) : 0;
    return n * (share * log(share / p) + rest) > SHARE_SIGMAS * SHARE_SIGMAS / 2 + log(SHARE_SIGMAS * 2.5);
}

/* Elements that rounding treats independently of each other. */
static double independent(const fxtap_rounding_error *error)
{
    return (double)(error->count < error->distinct ? error->count : error->distinct);
}

static double part(uint64_t count, const fxtap_rounding_error *error)
{
    return error->count > 0 ? (double)count / (double)error->count : 0;
}

static uint64_t lean(const fxtap_rounding_error *error)
{
    return error->up > error->down ? error->up - error->down : error->down - error->up;
}

/* A share of elements that is suspicious, or misrounded elements that are mostly on one side. */
static bool is_odd(const fx_judgement *j)
{
    double n = independent(&j->error);
    return is_more(part(j->error.misrounded, &j->error), part(j->third.misrounded, &j->third), n) ||
           is_more(part(lean(&j->error), &j->error), part(lean(&j->third), &j->third), n);
}

/* Larger errors than this machine's kernel has, which misrounds often itself. */
static bool is_coarser(const fx_judgement *j)
{
    return j->error.rms_error > RMS_FACTOR * j->third.rms_error &&
           is_more(part(j->error.unfaithful, &j->error), part(j->third.unfaithful, &j->third), independent(&j->error));
}

/*
 * Elements of a sum that are not even next to the exact value. A kernel that computes in float32 and rounds once has
 * none, unless this machine's misrounds inexplicably, too: one is enough. Only of sums: see LONELY_REACH.
 */
static bool has_unfaithful(const fx_judgement *j, const fxtap_verify_input *input)
{
    return input->reduction > 1 && j->error.unfaithful > 0 && j->third.unexplained == 0;
}

static void judge_shape(const fxtap_verify_input *input, fx_judgement *out)
{
    double u = fx_rounding_unit(fx_rounding_format_of(input->dtype));
    if (!out->has_third || inner_unit(input->dtype) >= u ||
        !(is_odd(out) || is_coarser(out) || has_unfaithful(out, input))) {
        return;
    }
    if (input->spread == NULL && !input->no_spread) {
        out->need = FXTAP_NEED_SPREAD;
        return;
    }
    double n = independent(&out->error);
    bool is_share = is_more(part(out->error.unexplained, &out->error), part(out->third.unexplained, &out->third), n) ||
                    is_coarser(out);
    if (!is_share && !has_unfaithful(out, input)) {
        return;
    }
    if (!input->no_spread && input->spread_runs < SPREAD_RUNS_MAX) {
        out->need = FXTAP_NEED_MORE_SPREAD;
        return;
    }
    if (is_share) {
        because(out, FXTAP_VERIFY_BIASED, "");
    } else {
        counted(out, FXTAP_VERIFY_BIASED, out->error.unfaithful, "value is not next to the exact one",
                "values are not next to the exact ones");
    }
}

/* ---- stages ---- */

static bool is_exact(const fxtap_rounding_error *error)
{
    return error->misrounded == 0 && error->special == 0 && error->zero_signs == 0;
}

/* Integers and bools: right if equal to the reference or to this machine's, or if indices select equal values. */
static void judge_discrete(const fxtap_verify_input *input, fx_judgement *out)
{
    size_t n = (size_t)input->n_elems;
    fx_rounding_exact(input->dtype, n, input->saved, input->reference, NULL, &out->error);
    if (out->error.misrounded == 0) {
        out->verdict = FXTAP_VERIFY_EXACT;
        return;
    }
    if (input->third == NULL && !input->no_third) {
        out->need = FXTAP_NEED_THIRD;
        return;
    }
    if (input->third != NULL) {
        fx_rounding_exact(input->dtype, n, input->third, input->reference, NULL, &out->third);
        out->has_third = true;
        fx_rounding_exact(input->dtype, n, input->saved, input->reference, input->third, &out->error);
    }
    uint64_t n_wrong = input->wrong_indices >= 0 ? (uint64_t)input->wrong_indices : out->error.misrounded;
    if (n_wrong == 0) {
        out->verdict = FXTAP_VERIFY_ROUNDING;
    } else {
        counted(out, FXTAP_VERIFY_WRONG, n_wrong, "value differs from the exact one",
                "values differ from the exact ones");
    }
}

/*
 * Whether the size cannot be judged by the rounding of the result alone. The bits of this machine's kernel are right
 * whatever their size: outliers among them, which cancellation makes, need no explanation.
 */
static bool needs_spread(const fxtap_verify_input *input, const fx_judgement *j, bool is_same)
{
    bool holds = is_same ? !(j->error.ratio > 1) : size_holds(&j->error, 1);
    return input->spread == NULL && !input->no_spread && !holds;
}

/* The verdict on the bits of this machine's kernel; what only a spread would tell is left out. */
static void judge_same(const fxtap_verify_input *input, fx_judgement *out)
{
    if (input->spread == NULL && !input->no_spread && out->error.outliers > 0) {
        out->error.outliers = out->error.unexplained = out->error.unfaithful = 0;
        out->error.max_ratio = NAN;
    }
    if (!size_holds(&out->error, RATIO_MAX)) {
        because(out, FXTAP_VERIFY_ROUNDING, "as this machine's kernel");
    }
    out->third = out->error;
}

/* Measures the saved values, unless the last call has. */
static void measure_saved(fx_rounding *rounding, const fxtap_verify_input *input, fx_judgement *out)
{
    uint32_t runs = input->spread == NULL ? 0 : input->spread_runs;
    if (!input->is_continued || out->measured != input->saved || out->spread_runs != runs) {
        measure(rounding, input, input->saved, &out->error);
        out->measured = input->saved;
        out->spread_runs = runs;
    }
}

static void judge_float(fx_rounding *rounding, const fxtap_verify_input *input, fx_judgement *out)
{
    measure_saved(rounding, input, out);
    if (is_exact(&out->error)) {
        out->verdict = FXTAP_VERIFY_EXACT;
        return;
    }
    if (input->third == NULL && !input->no_third) {
        out->need = FXTAP_NEED_THIRD;
        return;
    }
    size_t n = (size_t)input->n_elems;
    bool is_same =
        input->third != NULL && fx_rounding_same_bits(fxtap_dtype_saved(input->dtype), n, input->saved, input->third);
    if (needs_spread(input, out, is_same)) {
        out->need = FXTAP_NEED_SPREAD;
        return;
    }
    out->has_third = input->third != NULL;
    out->verdict = FXTAP_VERIFY_ROUNDING;
    if (is_same) {
        judge_same(input, out);
        return;
    }
    if (out->has_third) {
        measure(rounding, input, input->third, &out->third);
    }
    if (!judge_size(input, out)) {
        return;
    }
    judge_shape(input, out);
    if (out->need == FXTAP_NEED_NOTHING && out->verdict == FXTAP_VERIFY_ROUNDING && input->is_pointwise &&
        out->has_third && out->error.zero_signs > out->third.zero_signs) {
        because(out, FXTAP_VERIFY_BIASED, "sign of zero");
    }
}

static fxtap_status check(const fxtap_verify_input *input)
{
    FX_REQUIRE(input);
    if (input->struct_size < sizeof *input) {
        return fx_error(FXTAP_E_INVALID, "verify input of %zu bytes, expected %zu", input->struct_size, sizeof *input);
    }
    fxtap_dtype saved = fxtap_dtype_saved(input->dtype);
    if (saved == FXTAP_DTYPE_NONE || saved == FXTAP_STRING) {
        return fx_error(FXTAP_E_UNSUPPORTED, "dtype %d cannot be verified", (int)input->dtype);
    }
    if (input->n_elems > SIZE_MAX / 16) {
        return fx_error(FXTAP_E_INVALID, "more elements than memory has");
    }
    if (input->n_elems > 0 && (input->saved == NULL || input->reference == NULL)) {
        return fx_error(FXTAP_E_INVALID, "saved values and reference are both needed");
    }
    return FXTAP_OK;
}

fxtap_status fx_judge_rounding(const fxtap_verify_input *input, fx_judgement *out)
{
    fxtap_status status = check(input);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!input->is_continued) {
        memset(out, 0, sizeof *out);
    }
    out->need = FXTAP_NEED_NOTHING;
    out->verdict = FXTAP_VERIFY_NOT_REPLAYED;
    out->has_third = false;
    out->reason[0] = '\0';
    if (!is_float(input->dtype)) {
        judge_discrete(input, out);
        return FXTAP_OK;
    }
    fx_rounding *rounding = fx_alloc(sizeof *rounding);
    if (rounding == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_float_mode callers = fx_float_mode_begin();
    judge_float(rounding, input, out);
    fx_float_mode_end(callers);
    fx_free(rounding);
    out->third.n_worst = 0;
    return FXTAP_OK;
}
