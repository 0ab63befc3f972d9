/*
 * judge.c - the verdict of one pair, and its metrics. Definitions of the metrics: tensor/difference.h.
 *
 * In order: what was not saved is passed over; equal hashes of equal arrays settle the pair unread; shapes and classes
 * of dtype must agree; then both files are mapped and measured.
 */
#include <math.h>
#include <string.h>

#include "compare/batch.h"
#include "compare/rules.h"
#include "compare/undefined.h"
#include "fxtap/npy.h"
#include "tensor/difference.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/memory.h"

#define RANGE_ELEMENTS ((uint64_t)4 << 20) /* measured between two looks at comparison->stop */

typedef struct bout { /* one pair being judged */
    const fx_batch *batch;
    const fx_comparison *comparison;
    fxtap_pair *pair;
    const fxtap_tensor_info *golden;
    const fxtap_tensor_info *target;
    fx_arena *arena;
    fxtap_npy *golden_file;
    fxtap_npy *target_file;
} bout;

static fxtap_status detail(bout *b, fxtap_verdict verdict, const char *text)
{
    b->pair->verdict = verdict;
    b->pair->detail = fx_arena_strdup(b->arena, text);
    return b->pair->detail == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status judge_skipped(bout *b)
{
    const char *golden = b->golden->skipped, *target = b->target->skipped;
    const char *text;
    if (golden != NULL && target != NULL) {
        bool is_same = strcmp(golden, target) == 0;
        text = is_same ? golden : fx_arena_printf(b->arena, "golden has %s, target %s", golden, target);
    } else {
        bool is_unasked = strcmp(golden != NULL ? golden : target, "None") == 0 && !(b->pair->evidence & FX_EV_STRUCTURE);
        b->pair->is_missing = (!b->pair->is_literal && !is_unasked) || b->comparison->options->strict;
        text = fx_arena_printf(b->arena, "not saved in %s: %s", golden != NULL ? "golden" : "target",
                               golden != NULL ? golden : target);
    }
    return text == NULL ? FXTAP_E_NOMEM : detail(b, FXTAP_SKIPPED, text);
}

static bool same_shape(const fxtap_pair *pair)
{
    return pair->ndim == pair->target_ndim &&
           (pair->ndim == 0 ||
            memcmp(pair->shape, pair->target_shape, (size_t)pair->ndim * sizeof *pair->shape) == 0);
}

static fxtap_status judge_shapes(bout *b)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_buffer_text(&text, "golden has shape [");
    for (int32_t i = 0; i < b->pair->ndim; i++) {
        fxtap_buffer_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)b->pair->shape[i]);
    }
    fxtap_buffer_text(&text, "], target [");
    for (int32_t i = 0; i < b->pair->target_ndim; i++) {
        fxtap_buffer_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)b->pair->target_shape[i]);
    }
    fxtap_buffer_text(&text, "]");
    fxtap_status status = fxtap_buffer_status(&text);
    if (status == FXTAP_OK) {
        status = detail(b, FXTAP_SHAPE_MISMATCH, text.bytes);
    }
    fxtap_buffer_clear(&text);
    return status;
}

static int class_group(fxtap_dtype dtype)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(dtype);
    return class == FXTAP_CLASS_UINT ? FXTAP_CLASS_INT : (int)class;
}

static fxtap_status judge_classes(bout *b)
{
    const char *text = fx_arena_printf(b->arena, "golden is %s, target %s", fxtap_dtype_name(b->pair->golden_dtype),
                                       fxtap_dtype_name(b->pair->target_dtype));
    return text == NULL ? FXTAP_E_NOMEM : detail(b, FXTAP_DTYPE_MISMATCH, text);
}

static bool settled_by_hash(const bout *b)
{
    const fxtap_tensor_info *g = b->golden, *t = b->target;
    return g->has_meta && t->has_meta && g->has_hash && t->has_hash &&
           fx_same_hash(g->hash, t->hash) && g->dtype == t->dtype && g->saved_dtype == t->saved_dtype &&
           g->fortran_order == t->fortran_order && same_shape(b->pair);
}

static void take_equal(bout *b)
{
    fxtap_pair *pair = b->pair;
    uint64_t count = 1;
    for (int32_t i = 0; i < pair->ndim; i++) {
        count *= (uint64_t)pair->shape[i];
    }
    fxtap_dtype_class class = fxtap_dtype_class_of(pair->golden_dtype);
    pair->verdict = FXTAP_SAME;
    pair->measured = pair->identical_bits = true;
    pair->count = count;
    pair->cosine = pair->within_1e3 = pair->within_5e3 = 1.0;
    pair->max_ulp = class == FXTAP_CLASS_FLOAT ? 0.0 : NAN;
}

/* Says how many elements were left out; where that is all of them, nothing is judged. */
static fxtap_status note_left_out(bout *b, uint64_t n_left_out, uint64_t n_elems)
{
    fxtap_pair *pair = b->pair;
    pair->undefined_count = n_left_out;
    if (n_left_out == n_elems) {
        pair->measured = false;
        return detail(b, FXTAP_UNDEFINED, "no element was written: not judged");
    }
    const char *text = fx_arena_printf(b->arena, "%s%s%llu of %llu elements are undefined: not judged", pair->detail,
                                       pair->detail[0] != '\0' ? "; " : "", (unsigned long long)n_left_out,
                                       (unsigned long long)n_elems);
    return text == NULL ? FXTAP_E_NOMEM : detail(b, pair->verdict, text);
}

static fxtap_status take_defined(bout *b)
{
    take_equal(b);
    uint64_t n_elems = b->pair->count;
    b->pair->count -= b->golden->undefined_count;
    return note_left_out(b, b->golden->undefined_count, n_elems);
}

/* Without files the recorded statistics are all there is. */
static double apart(double golden, double target)
{
    return golden == target || (isnan(golden) && isnan(target)) ? 0.0 : fabs(target - golden);
}

/* Two statistics that are absent on both sides (NaN) are equal, though no tolerance can be made of them. */
static bool are_near(double golden, double target, double scale, const fx_tolerance *tolerance)
{
    double distance = apart(golden, target);
    return distance == 0.0 || distance <= tolerance->atol + tolerance->rtol * fabs(scale);
}

/*
 * Integers and text of other bytes are other values, whatever their statistics; floats need not be (0.0 and -0.0, NaN).
 * Hashes that are equal have settled the pair before.
 */
static bool hashes_tell_apart(const bout *b, const fx_tolerance *tolerance)
{
    const fxtap_tensor_info *g = b->golden, *t = b->target;
    int group = class_group(g->saved_dtype);
    bool is_exact = tolerance->elementwise && tolerance->rtol == 0.0 && tolerance->atol == 0.0;
    return g->has_meta && t->has_meta && g->has_hash && t->has_hash && g->saved_dtype == t->saved_dtype &&
           g->fortran_order == t->fortran_order &&
           (group == FXTAP_CLASS_TEXT || (is_exact && (group == FXTAP_CLASS_INT || group == FXTAP_CLASS_BOOL)));
}

static fxtap_status judge_statistics(bout *b)
{
    const fxtap_stats *g = &b->golden->stats, *t = &b->target->stats;
    fx_tolerance tolerance;
    fx_tolerance_for(b->comparison->report->rules, b->comparison->report->n_rules, b->pair, &tolerance);
    b->pair->rtol = tolerance.rtol;
    b->pair->atol = tolerance.atol;
    if (fx_has_undefined(b->golden, b->target) && !fx_same_undefined(b->golden, b->target)) {
        b->pair->undefined_count = b->golden->undefined_count > b->target->undefined_count ? b->golden->undefined_count
                                                                                           : b->target->undefined_count;
        return detail(b, FXTAP_UNDEFINED, "not the same elements are undefined, and there is no file: not judged");
    }
    if (hashes_tell_apart(b, &tolerance)) {
        return detail(b, FXTAP_DIFFERENT, "judged by recorded hashes: there is no file");
    }
    if (!b->golden->has_stats || !b->target->has_stats) {
        return detail(b, FXTAP_UNREADABLE, "no file and no statistics to compare");
    }
    bool is_close = g->nan_count == t->nan_count && g->pos_inf_count == t->pos_inf_count &&
                    g->neg_inf_count == t->neg_inf_count &&
                    are_near(g->abs_max, t->abs_max, g->abs_max, &tolerance) &&
                    are_near(g->rms, t->rms, g->rms, &tolerance) && are_near(g->mean, t->mean, g->rms, &tolerance);
    return detail(b, is_close ? FXTAP_CLOSE : FXTAP_DIFFERENT, "judged by statistics alone: there is no file");
}

/* Numbers in the code count by their value: 2 is 2.0. What differs is another program, not another value. */
static bool settled_as_literal(bout *b)
{
    const fxtap_tensor_info *golden = b->golden, *target = b->target;
    if (!b->pair->is_literal || b->comparison->options->strict || !golden->has_stats || !target->has_stats) {
        return false;
    }
    const fxtap_stats *g = &golden->stats, *t = &target->stats;
    bool is_number = golden->has_meta && target->has_meta && golden->ndim == 0 && target->ndim == 0;
    if (!is_number) {
        return false;
    }
    bool is_same = g->finite_count == t->finite_count && g->nan_count == t->nan_count &&
                   g->pos_inf_count == t->pos_inf_count && g->neg_inf_count == t->neg_inf_count &&
                   (g->finite_count == 0 || (g->mean == t->mean && g->mean_imag == t->mean_imag));
    if (is_same) {
        take_equal(b);
    } else {
        b->pair->verdict = FXTAP_REWRITTEN;
    }
    return true;
}

static fxtap_status judge_recorded(bout *b)
{
    if (b->golden->has_meta && b->target->has_meta) {
        if (class_group(b->golden->saved_dtype) != class_group(b->target->saved_dtype)) {
            return judge_classes(b);
        }
        if (!same_shape(b->pair)) {
            return judge_shapes(b);
        }
    }
    return judge_statistics(b);
}

static fxtap_status note_view(bout *b, const fxtap_view *view, fxtap_dtype recorded, fxtap_dtype *dtype,
                              int32_t *ndim, const int64_t **shape)
{
    *dtype = recorded != FXTAP_DTYPE_NONE && fxtap_dtype_saved(recorded) == view->dtype ? recorded : view->dtype;
    bool is_known = *shape != NULL && *ndim == view->ndim &&
                    (view->ndim == 0 || memcmp(*shape, view->shape, (size_t)view->ndim * sizeof **shape) == 0);
    *ndim = view->ndim;
    if (!is_known) {
        *shape = fx_arena_memdup(b->arena, view->shape, (size_t)view->ndim * sizeof *view->shape);
    }
    return *shape == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

/* A failure to read becomes a verdict; one that is not the file's fault is passed on. */
static fxtap_status unreadable(bout *b, const char *side, fxtap_status failure)
{
    if (failure == FXTAP_E_NOMEM) {
        return failure;
    }
    const char *text = fx_arena_printf(b->arena, "%s: %s", side, fxtap_error_message());
    return text == NULL ? FXTAP_E_NOMEM : detail(b, FXTAP_UNREADABLE, text);
}

/* What follows the data is not compared; the report warns of it (a later detail, of what is worse, takes its place). */
static fxtap_status note_trailing(bout *b)
{
    const fxtap_npy *files[] = {b->golden_file, b->target_file};
    const char *text = b->pair->detail;
    for (int side = 0; side < 2 && text != NULL; side++) {
        uint64_t n_bytes = fxtap_npy_trailing_bytes(files[side]);
        if (n_bytes > 0) {
            text = fx_arena_printf(b->arena, "%s%s%s: %s: %llu" FX_TRAILING, text, text[0] != '\0' ? "; " : "",
                                   side == 0 ? "golden" : "target", (side == 0 ? b->golden : b->target)->path,
                                   (unsigned long long)n_bytes);
        }
    }
    if (text != NULL) {
        b->pair->detail = text;
    }
    return text == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

/* Opens both files; a file that cannot be read ends the bout with a verdict (*done_out). */
static fxtap_status open_files(bout *b, fx_desk *desk, bool *done_out)
{
    fxtap_pair *pair = b->pair;
    const fx_comparison *c = b->batch->comparison;
    *done_out = true;
    fxtap_status status = fx_folder_open_tensor(&desk->golden_folder, b->golden, fxtap_reader_flags(c->golden.reader), &b->golden_file);
    if (status != FXTAP_OK) {
        return unreadable(b, "golden", status);
    }
    status = fx_folder_open_tensor(&desk->target_folder, b->target, fxtap_reader_flags(c->target.reader), &b->target_file);
    if (status != FXTAP_OK) {
        return unreadable(b, "target", status);
    }
    *done_out = false;
    status = note_view(b, fxtap_npy_view(b->golden_file), pair->golden_dtype, &pair->golden_dtype, &pair->ndim,
                       &pair->shape);
    if (status == FXTAP_OK) {
        status = note_view(b, fxtap_npy_view(b->target_file), pair->target_dtype, &pair->target_dtype,
                           &pair->target_ndim, &pair->target_shape);
    }
    return status == FXTAP_OK ? note_trailing(b) : status;
}

static fxtap_status judge_texts(bout *b)
{
    const char *golden, *target;
    fxtap_status status = fxtap_npy_text(b->golden_file, &golden);
    if (status != FXTAP_OK) {
        return unreadable(b, "golden", status);
    }
    status = fxtap_npy_text(b->target_file, &target);
    if (status != FXTAP_OK) {
        return unreadable(b, "target", status);
    }
    if (strcmp(golden, target) == 0) {
        b->pair->verdict = FXTAP_SAME;
        return FXTAP_OK;
    }
    const char *text = fx_arena_printf(b->arena, "golden is \"%.200s\", target \"%.200s\"", golden, target);
    return text == NULL ? FXTAP_E_NOMEM : detail(b, FXTAP_DIFFERENT, text);
}

static fxtap_status keep_worst(bout *b, const fx_difference_result *result)
{
    fxtap_coordinate *worst = fx_arena_calloc(b->arena, result->n_worst, sizeof *worst);
    if (worst == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < result->n_worst; i++) {
        worst[i] = (fxtap_coordinate){result->worst[i].index, result->worst[i].golden, result->worst[i].target};
    }
    b->pair->worst = worst;
    b->pair->n_worst = result->n_worst;
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

/* Also where only a distance in ulp is asked for, and this dtype has none: a rule that says nothing lets nothing pass. */
static bool judges_elements(const fxtap_pair *pair, const fx_tolerance *tolerance)
{
    bool has_metric = tolerance->min_cosine >= 0.0 || tolerance->max_abs >= 0.0 || tolerance->max_rel_l2 >= 0.0 ||
                      (tolerance->max_ulp >= 0.0 && !isnan(pair->max_ulp));
    return tolerance->elementwise || !has_metric;
}

static fxtap_verdict verdict_of(const fxtap_pair *pair, const fx_tolerance *tolerance)
{
    bool is_equal = pair->identical_bits ||
                    (pair->nan_mismatched == 0 && pair->inf_mismatched == 0 && pair->max_abs_err == 0.0);
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

/* At least once also where there are no elements: dtypes may differ all the same. */
static fxtap_status run_range(bout *b, fx_difference *difference, const fxtap_view *golden, const fxtap_view *target,
                              uint64_t begin, uint64_t end)
{
    fxtap_status status = FXTAP_OK;
    for (uint64_t first = begin; status == FXTAP_OK && (first < end || first == begin); first += RANGE_ELEMENTS) {
        if (atomic_load_explicit(&b->comparison->stop, memory_order_relaxed)) {
            return fx_error(FXTAP_E_CANCELLED, "the comparison was stopped");
        }
        uint64_t length = end - first < RANGE_ELEMENTS ? end - first : RANGE_ELEMENTS;
        status = fx_difference_run(difference, golden, target, first, length);
    }
    return status;
}

/* All elements, or those that hold something; *mask_out (cleared) then says how many do not. */
static fxtap_status run_judged(bout *b, fx_difference *difference, const fxtap_view *golden, const fxtap_view *target,
                               fx_undefined_mask *mask_out)
{
    uint64_t n_elems = 0;
    fxtap_status status = fxtap_view_count(golden, &n_elems);
    if (status != FXTAP_OK || !fx_has_undefined(b->golden, b->target)) {
        return status == FXTAP_OK ? run_range(b, difference, golden, target, 0, n_elems) : status;
    }
    fx_undefined_mask mask;
    status = fx_undefined_mask_create(b->golden, b->target, golden, target, &mask);
    for (uint64_t first = 0, count = 0; status == FXTAP_OK && fx_undefined_mask_next(&mask, &first, &count);) {
        status = run_range(b, difference, golden, target, first, first + count);
    }
    mask_out->n_elems = mask.n_elems;
    mask_out->n_left_out = mask.n_left_out;
    fx_undefined_mask_clear(&mask);
    return status;
}

static fxtap_status measure(bout *b, const fxtap_view *golden, const fxtap_view *target)
{
    const fx_comparison *c = b->comparison;
    fx_tolerance tolerance;
    fx_tolerance_for(c->report->rules, c->report->n_rules, b->pair, &tolerance);
    b->pair->rtol = tolerance.rtol;
    b->pair->atol = tolerance.atol;
    fx_difference_options options = {
        .rtol = tolerance.rtol,
        .atol = tolerance.atol,
        .judged = fx_judged_dtype(b->pair->golden_dtype, b->pair->target_dtype),
        .n_worst = c->options->n_worst > 0 ? c->options->n_worst : 5,
    };
    fx_difference difference;
    fx_undefined_mask mask = {0};
    fx_difference_init(&difference, &options);
    fxtap_status status = run_judged(b, &difference, golden, target, &mask);
    if (status == FXTAP_E_CANCELLED) {
        return status;
    }
    if (status != FXTAP_OK) {
        return unreadable(b, "both", status);
    }
    fx_difference_result result;
    fx_difference_finish(&difference, &result);
    take_result(b->pair, &result);
    b->pair->verdict = verdict_of(b->pair, &tolerance);
    status = keep_worst(b, &result);
    return status == FXTAP_OK && mask.n_left_out > 0 ? note_left_out(b, mask.n_left_out, mask.n_elems) : status;
}

static fxtap_status keep_statistics(bout *b, const fxtap_stats *golden, const fxtap_stats *target)
{
    bool is_same = memcmp(golden, target, sizeof *golden) == 0;
    b->pair->golden_stats = fx_arena_memdup(b->arena, golden, sizeof *golden);
    b->pair->target_stats = is_same ? b->pair->golden_stats : fx_arena_memdup(b->arena, target, sizeof *target);
    return b->pair->golden_stats == NULL || b->pair->target_stats == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status compute_statistics(bout *b)
{
    fxtap_stats golden, target;
    fxtap_status status = fxtap_stats_compute(fxtap_npy_view(b->golden_file), &golden, NULL);
    if (status == FXTAP_OK) {
        status = fxtap_stats_compute(fxtap_npy_view(b->target_file), &target, NULL);
    }
    if (status != FXTAP_OK) {
        return status == FXTAP_E_NOMEM ? status : FXTAP_OK; /* some arrays have none */
    }
    return keep_statistics(b, &golden, &target);
}

/* Recorded statistics stand in the report, others wherever something is wrong; hashes, to find the same value again. */
static fxtap_status add_statistics(bout *b)
{
    fxtap_pair *pair = b->pair;
    const fxtap_tensor_info *golden = b->golden, *target = b->target;
    bool is_bad = fx_verdict_is_bad(pair->verdict) || pair->verdict == FXTAP_REWRITTEN;
    if (is_bad && golden->has_hash && target->has_hash) {
        pair->golden_hash = golden->hash;
        pair->target_hash = target->hash;
        pair->has_hashes = true;
    }
    if (golden->has_stats && target->has_stats) {
        return keep_statistics(b, &golden->stats, &target->stats);
    }
    return is_bad && b->golden_file != NULL && b->target_file != NULL ? compute_statistics(b) : FXTAP_OK;
}

/* The elements in row-major order, without their shape; false where they do not lie so. */
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

/* In programs that are written differently, what two operators take in or yield may be one quantity in two shapes. */
static bool are_reshaped(const bout *b)
{
    bool is_aligned = (b->pair->evidence & (FX_EV_VALUE | FX_EV_NEAR | FX_EV_ROUGH | FX_EV_INPUTS | FX_EV_USERS)) != 0;
    return is_aligned && !same_shape(b->pair);
}

#define MOST_NUMBERS 256 /* of a list in the code */

/* [2, 3] and [2.0, 3.0] are one list. */
static bool are_equal_numbers(const fxtap_view *golden, const fxtap_view *target)
{
    unsigned char element[16];
    uint64_t n, n_target;
    if (fxtap_view_count(golden, &n) != FXTAP_OK || fxtap_view_count(target, &n_target) != FXTAP_OK || n != n_target ||
        n > MOST_NUMBERS || class_group(golden->dtype) == FXTAP_CLASS_TEXT || class_group(target->dtype) == FXTAP_CLASS_TEXT ||
        fxtap_dtype_class_of(golden->dtype) == FXTAP_CLASS_COMPLEX || fxtap_dtype_class_of(target->dtype) == FXTAP_CLASS_COMPLEX) {
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

static fxtap_status judge_values(bout *b)
{
    const fxtap_view *golden = fxtap_npy_view(b->golden_file), *target = fxtap_npy_view(b->target_file);
    if (golden->dtype == FXTAP_STRING && target->dtype == FXTAP_STRING) {
        return judge_texts(b);
    }
    if (class_group(golden->dtype) != class_group(target->dtype)) {
        if (b->pair->is_literal && !b->comparison->options->strict && are_equal_numbers(golden, target)) {
            take_equal(b);
            return FXTAP_OK;
        }
        return judge_classes(b);
    }
    fxtap_view left, right;
    int64_t counts[2];
    if (are_reshaped(b) && flatten(golden, &counts[0], &left) && flatten(target, &counts[1], &right) && counts[0] == counts[1]) {
        return measure(b, &left, &right);
    }
    if (!same_shape(b->pair)) {
        return judge_shapes(b);
    }
    return measure(b, golden, target);
}

static fxtap_status judge(bout *b, fx_desk *desk)
{
    if (b->golden->skipped != NULL || b->target->skipped != NULL) {
        return judge_skipped(b);
    }
    bool has_files = b->golden->path != NULL && b->target->path != NULL;
    bool reads_all = b->comparison->options->read_all && has_files;
    if (settled_by_hash(b) && !reads_all) {
        take_equal(b);
        return FXTAP_OK;
    }
    if (settled_as_literal(b)) {
        return FXTAP_OK;
    }
    if (same_shape(b->pair) && fx_undefined_settles(b->golden, b->target, has_files) && !reads_all) {
        return take_defined(b);
    }
    if (!has_files) {
        return judge_recorded(b);
    }
    bool done;
    fxtap_status status = open_files(b, desk, &done);
    return status != FXTAP_OK || done ? status : judge_values(b);
}

fxtap_status fx_judge(const fx_batch *batch, size_t i, fx_desk *desk)
{
    const fx_sources *sources = &batch->sources[i];
    bout b = {.batch = batch,
              .comparison = batch->comparison,
              .pair = &batch->pairs[i],
              .golden = fx_batch_golden(batch, sources->golden),
              .target = fx_batch_target(batch, sources->target),
              .arena = &desk->arena};
    if (b.golden == NULL || b.target == NULL || b.pair->verdict == FXTAP_UNDEFINED) {
        return FXTAP_OK;
    }
    fxtap_status status = judge(&b, desk);
    bool is_other = b.pair->is_literal && (fx_verdict_is_bad(b.pair->verdict) || b.pair->verdict == FXTAP_REWRITTEN);
    if (status == FXTAP_OK && is_other && !batch->comparison->options->strict) {
        b.pair->verdict = FXTAP_REWRITTEN; /* a list of sizes, a text */
    }
    status = status == FXTAP_OK ? add_statistics(&b) : status;
    fxtap_npy_close(b.golden_file);
    fxtap_npy_close(b.target_file);
    return status == FXTAP_OK && is_other ? fx_tell_literal(b.arena, b.golden, b.target, b.pair) : status;
}
