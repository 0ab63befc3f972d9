/* judge_files.c - opening the two files of a pair and measuring their difference. Metrics: tensor/difference.h. */
#include <math.h>
#include <string.h>

#include "compare/judge.h"
#include "compare/rules.h"
#include "compare/undefined.h"
#include "tensor/difference.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/error.h"

#define RANGE_ELEMENTS ((uint64_t)4 << 20) /* measured between two checks of comparison->stop */

static fxtap_status note_view(fx_pair_job *job, const fxtap_view *view, fxtap_dtype recorded, fxtap_dtype *dtype,
                              int32_t *ndim, const int64_t **shape)
{
    *dtype = recorded != FXTAP_DTYPE_NONE && fxtap_dtype_saved(recorded) == view->dtype ? recorded : view->dtype;
    bool is_known = *shape != NULL && *ndim == view->ndim &&
                    (view->ndim == 0 || memcmp(*shape, view->shape, (size_t)view->ndim * sizeof **shape) == 0);
    *ndim = view->ndim;
    if (!is_known) {
        *shape = fx_arena_memdup(job->arena, view->shape, (size_t)view->ndim * sizeof *view->shape);
    }
    return *shape == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

/* Turns a read failure into a verdict; returns failures that the file did not cause. */
static fxtap_status unreadable(fx_pair_job *job, const char *side, fxtap_status failure)
{
    if (failure == FXTAP_E_NOMEM) {
        return failure;
    }
    const char *text = fx_arena_printf(job->arena, "%s: %s", side, fxtap_error_message());
    return text == NULL ? FXTAP_E_NOMEM : fx_job_detail(job, FXTAP_UNREADABLE, text);
}

/* Bytes after the data are not compared; the report warns of them. A later, more serious detail replaces this one. */
static fxtap_status note_trailing(fx_pair_job *job)
{
    const fxtap_npy *files[] = {job->golden_file, job->target_file};
    const char *text = job->pair->detail;
    for (int side = 0; side < 2 && text != NULL; side++) {
        uint64_t n_bytes = fxtap_npy_trailing_bytes(files[side]);
        if (n_bytes > 0) {
            text = fx_arena_printf(job->arena, "%s%s%s: %s: %llu" FX_TRAILING, text, text[0] != '\0' ? "; " : "",
                                   side == 0 ? "golden" : "target", (side == 0 ? job->golden : job->target)->path,
                                   (unsigned long long)n_bytes);
        }
    }
    if (text != NULL) {
        job->pair->detail = text;
    }
    return text == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

/* Opens both files; a file that cannot be read ends the job with a verdict (*done_out). */
fxtap_status fx_job_open_files(fx_pair_job *job, fx_judge_memory *memory, bool *done_out)
{
    fxtap_pair *pair = job->pair;
    const fx_comparison *c = job->batch->comparison;
    *done_out = true;
    fxtap_status status = fx_folder_open_tensor(&memory->golden_folder, job->golden,
                                                fxtap_reader_flags(c->golden.reader), &job->golden_file);
    if (status != FXTAP_OK) {
        return unreadable(job, "golden", status);
    }
    status = fx_folder_open_tensor(&memory->target_folder, job->target, fxtap_reader_flags(c->target.reader),
                                   &job->target_file);
    if (status != FXTAP_OK) {
        return unreadable(job, "target", status);
    }
    *done_out = false;
    status = note_view(job, fxtap_npy_view(job->golden_file), pair->golden_dtype, &pair->golden_dtype, &pair->ndim,
                       &pair->shape);
    if (status == FXTAP_OK) {
        status = note_view(job, fxtap_npy_view(job->target_file), pair->target_dtype, &pair->target_dtype,
                           &pair->target_ndim, &pair->target_shape);
    }
    return status == FXTAP_OK ? note_trailing(job) : status;
}

static fxtap_status judge_texts(fx_pair_job *job)
{
    const char *golden, *target;
    fxtap_status status = fxtap_npy_text(job->golden_file, &golden);
    if (status != FXTAP_OK) {
        return unreadable(job, "golden", status);
    }
    status = fxtap_npy_text(job->target_file, &target);
    if (status != FXTAP_OK) {
        return unreadable(job, "target", status);
    }
    if (strcmp(golden, target) == 0) {
        fx_job_take_equal(job);
        return FXTAP_OK;
    }
    const char *text = fx_arena_printf(job->arena, "golden is \"%.200s\", target \"%.200s\"", golden, target);
    return text == NULL ? FXTAP_E_NOMEM : fx_job_detail(job, FXTAP_DIFFERENT, text);
}

static fxtap_status keep_worst(fx_pair_job *job, const fx_difference_result *result)
{
    fxtap_coordinate *worst = fx_arena_calloc(job->arena, result->n_worst, sizeof *worst);
    if (worst == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < result->n_worst; i++) {
        worst[i] = (fxtap_coordinate){result->worst[i].index, result->worst[i].golden, result->worst[i].target};
    }
    job->pair->worst = worst;
    job->pair->n_worst = result->n_worst;
    return FXTAP_OK;
}

static void take_result(fxtap_pair *pair, const fx_difference_result *result)
{
    pair->measured = true;
    pair->identical_bits = result->identical_bits;
    pair->count = result->count;
    pair->max_abs_err = result->max_abs_err;
    pair->max_rel_err = result->max_rel_err;
    pair->mean_abs_err = result->mean_abs_err;
    pair->rmse = result->rmse;
    pair->cosine = result->cosine;
    pair->rel_l2 = result->rel_l2;
    pair->euclidean = result->euclidean;
    pair->within_1e3 = result->within_1e3;
    pair->within_5e3 = result->within_5e3;
    pair->max_ulp = result->max_ulp;
    pair->max_abs_index = result->max_abs_index;
    pair->max_rel_index = result->max_rel_index;
    pair->mismatched = result->mismatched;
    pair->nan_mismatched = result->nan_mismatched;
    pair->inf_mismatched = result->inf_mismatched;
}

/*
 * Also if only a limit in ulp is given and this dtype has no ulp: a rule that does not apply must not accept the pair.
 */
static bool judges_elements(const fxtap_pair *pair, const fx_tolerance *tolerance)
{
    bool has_metric = tolerance->min_cosine >= 0.0 || tolerance->max_abs >= 0.0 || tolerance->max_rel_l2 >= 0.0 ||
                      (tolerance->max_ulp >= 0.0 && !isnan(pair->max_ulp));
    return tolerance->elementwise || !has_metric;
}

static fxtap_verdict verdict_of(const fxtap_pair *pair, const fx_tolerance *tolerance)
{
    bool is_equal =
        pair->identical_bits || (pair->nan_mismatched == 0 && pair->inf_mismatched == 0 && pair->max_abs_err == 0.0);
    if (is_equal) {
        return FXTAP_SAME;
    }
    bool is_bad = pair->nan_mismatched > 0 || pair->inf_mismatched > 0;
    is_bad |= judges_elements(pair, tolerance) && pair->mismatched > 0;
    is_bad |= tolerance->min_cosine >= 0.0 && !(pair->cosine >= tolerance->min_cosine);
    is_bad |= tolerance->max_abs >= 0.0 && !(pair->max_abs_err <= tolerance->max_abs);
    is_bad |= tolerance->max_rel_l2 >= 0.0 && !(pair->rel_l2 <= tolerance->max_rel_l2);
    is_bad |= tolerance->max_ulp >= 0.0 && !isnan(pair->max_ulp) && pair->max_ulp > tolerance->max_ulp;
    return is_bad ? FXTAP_DIFFERENT : FXTAP_CLOSE;
}

/* Runs at least once, even without elements: dtypes may still differ. */
static fxtap_status run_range(fx_pair_job *job, fx_difference *difference, const fxtap_view *golden,
                              const fxtap_view *target, uint64_t begin, uint64_t end)
{
    fxtap_status status = FXTAP_OK;
    for (uint64_t first = begin; status == FXTAP_OK && (first < end || first == begin); first += RANGE_ELEMENTS) {
        if (atomic_load_explicit(&job->comparison->stop, memory_order_relaxed)) {
            return fx_error(FXTAP_E_CANCELLED, "the comparison was stopped");
        }
        uint64_t length = end - first < RANGE_ELEMENTS ? end - first : RANGE_ELEMENTS;
        status = fx_difference_run(difference, golden, target, first, length);
    }
    return status;
}

/* Measures all elements, or only the defined ones; *mask_out (cleared) then has the number of undefined ones. */
static fxtap_status run_judged(fx_pair_job *job, fx_difference *difference, const fxtap_view *golden,
                               const fxtap_view *target, fx_undefined_mask *mask_out)
{
    uint64_t n_elems = 0;
    fxtap_status status = fxtap_view_count(golden, &n_elems);
    if (status != FXTAP_OK || !fx_has_undefined(job->golden, job->target)) {
        return status == FXTAP_OK ? run_range(job, difference, golden, target, 0, n_elems) : status;
    }
    fx_undefined_mask mask;
    status = fx_undefined_mask_create(job->golden, job->target, golden, target, &mask);
    for (uint64_t first = 0, count = 0; status == FXTAP_OK && fx_undefined_mask_next(&mask, &first, &count);) {
        status = run_range(job, difference, golden, target, first, first + count);
    }
    mask_out->n_elems = mask.n_elems;
    mask_out->n_left_out = mask.n_left_out;
    fx_undefined_mask_clear(&mask);
    return status;
}

static fxtap_status measure(fx_pair_job *job, const fxtap_view *golden, const fxtap_view *target)
{
    const fx_comparison *c = job->comparison;
    fx_tolerance tolerance = fx_job_apply_tolerance(job);
    fx_difference_options options = {
        .rtol = tolerance.rtol,
        .atol = tolerance.atol,
        .judged = fx_judged_dtype(job->pair->golden_dtype, job->pair->target_dtype),
        .n_worst = c->options->n_worst > 0 ? c->options->n_worst : 5,
    };
    fx_difference difference;
    fx_undefined_mask mask = {0};
    fx_difference_init(&difference, &options);
    fxtap_status status = run_judged(job, &difference, golden, target, &mask);
    if (status == FXTAP_E_CANCELLED) {
        return status;
    }
    if (status != FXTAP_OK) {
        return unreadable(job, "both", status);
    }
    fx_difference_result result;
    fx_difference_finish(&difference, &result);
    take_result(job->pair, &result);
    job->pair->verdict = verdict_of(job->pair, &tolerance);
    status = keep_worst(job, &result);
    return status == FXTAP_OK && mask.n_left_out > 0 ? fx_job_note_left_out(job, mask.n_left_out, mask.n_elems)
                                                     : status;
}

/* A one-dimensional view of the elements in row-major order; false if they are not stored in this order. */
static bool flatten(const fxtap_view *view, int64_t *count, fxtap_view *out)
{
    uint64_t n;
    if (fxtap_view_order(view) != FXTAP_ORDER_C || fxtap_view_count(view, &n) != FXTAP_OK || n > INT64_MAX) {
        return false;
    }
    *count = (int64_t)n;
    *out = *view;
    out->ndim = 1;
    out->shape = count;
    out->strides = NULL;
    return true;
}

/* In programs that are written differently, inputs or results may be the same quantity in two shapes. */
static bool are_reshaped(const fx_pair_job *job)
{
    bool is_aligned =
        (job->pair->evidence & (FX_EV_VALUE | FX_EV_NEAR | FX_EV_ROUGH | FX_EV_INPUTS | FX_EV_USERS)) != 0;
    return is_aligned && !fx_job_same_shape(job->pair);
}

#define MOST_NUMBERS 256 /* in a list literal */

/* [2, 3] and [2.0, 3.0] are equal lists. */
static bool are_equal_numbers(const fxtap_view *golden, const fxtap_view *target)
{
    unsigned char element[16];
    uint64_t n, n_target;
    if (fxtap_view_count(golden, &n) != FXTAP_OK || fxtap_view_count(target, &n_target) != FXTAP_OK || n != n_target ||
        n > MOST_NUMBERS || fx_dtype_class(golden->dtype) == FXTAP_CLASS_TEXT ||
        fx_dtype_class(target->dtype) == FXTAP_CLASS_TEXT ||
        fxtap_dtype_class_of(golden->dtype) == FXTAP_CLASS_COMPLEX ||
        fxtap_dtype_class_of(target->dtype) == FXTAP_CLASS_COMPLEX) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        double values[2];
        const fxtap_view *views[] = {golden, target};
        for (int side = 0; side < 2; side++) {
            if (fx_view_gather_rows(views[side], i, 1, element) != FXTAP_OK) {
                return false;
            }
            fx_values_to_f64(fxtap_dtype_saved(views[side]->dtype), element, 1, &values[side]);
        }
        if (values[0] != values[1]) {
            return false;
        }
    }
    return true;
}

fxtap_status fx_judge_values(fx_pair_job *job)
{
    const fxtap_view *golden = fxtap_npy_view(job->golden_file), *target = fxtap_npy_view(job->target_file);
    if (golden->dtype == FXTAP_STRING && target->dtype == FXTAP_STRING) {
        return judge_texts(job);
    }
    if (fx_dtype_class(golden->dtype) != fx_dtype_class(target->dtype)) {
        if (job->pair->is_literal && !job->comparison->options->strict && are_equal_numbers(golden, target)) {
            fx_job_take_equal(job);
            return FXTAP_OK;
        }
        return fx_judge_classes(job);
    }
    fxtap_view left, right;
    int64_t counts[2];
    if (are_reshaped(job) && flatten(golden, &counts[0], &left) && flatten(target, &counts[1], &right) &&
        counts[0] == counts[1]) {
        return measure(job, &left, &right);
    }
    if (!fx_job_same_shape(job->pair)) {
        return fx_judge_shapes(job);
    }
    return measure(job, golden, target);
}
