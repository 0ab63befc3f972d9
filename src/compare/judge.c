/*
 * judge.c - the verdict of one pair, and its metrics. Definitions of the metrics: tensor/difference.h.
 *
 * In order: tensors that were not saved are skipped; equal hashes of arrays with equal shape and dtype settle the pair
 * without reading; shapes and classes of dtypes must agree; then both files are mapped and measured.
 */
#include <math.h>
#include <string.h>

#include "compare/judge.h"
#include "compare/undefined.h"
#include "tensor/difference.h"

fxtap_status fx_job_detail(fx_pair_job *job, fxtap_verdict verdict, const char *text)
{
    job->pair->verdict = verdict;
    job->pair->detail = fx_arena_strdup(job->arena, text);
    return job->pair->detail == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status judge_skipped(fx_pair_job *job)
{
    const char *golden = job->golden->skipped, *target = job->target->skipped;
    const char *text;
    if (golden != NULL && target != NULL) {
        bool is_same = strcmp(golden, target) == 0;
        text = is_same ? golden : fx_arena_printf(job->arena, "golden has %s, target %s", golden, target);
    } else {
        bool is_unasked =
            strcmp(golden != NULL ? golden : target, "None") == 0 && !(job->pair->evidence & FX_EV_STRUCTURE);
        job->pair->is_missing = (!job->pair->is_literal && !is_unasked) || job->comparison->options->strict;
        text = fx_arena_printf(job->arena, "not saved in %s: %s", golden != NULL ? "golden" : "target",
                               golden != NULL ? golden : target);
    }
    return text == NULL ? FXTAP_E_NOMEM : fx_job_detail(job, FXTAP_SKIPPED, text);
}

bool fx_job_same_shape(const fxtap_pair *pair)
{
    return pair->ndim == pair->target_ndim &&
           (pair->ndim == 0 || memcmp(pair->shape, pair->target_shape, (size_t)pair->ndim * sizeof *pair->shape) == 0);
}

fxtap_status fx_judge_shapes(fx_pair_job *job)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_buffer_text(&text, "golden has shape [");
    for (int32_t i = 0; i < job->pair->ndim; i++) {
        fxtap_buffer_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)job->pair->shape[i]);
    }
    fxtap_buffer_text(&text, "], target [");
    for (int32_t i = 0; i < job->pair->target_ndim; i++) {
        fxtap_buffer_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)job->pair->target_shape[i]);
    }
    fxtap_buffer_text(&text, "]");
    fxtap_status status = fxtap_buffer_status(&text);
    if (status == FXTAP_OK) {
        status = fx_job_detail(job, FXTAP_SHAPE_MISMATCH, text.bytes);
    }
    fxtap_buffer_clear(&text);
    return status;
}

int fx_dtype_class(fxtap_dtype dtype)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(dtype);
    return class == FXTAP_CLASS_UINT ? FXTAP_CLASS_INT : (int)class;
}

fxtap_status fx_judge_classes(fx_pair_job *job)
{
    const char *text = fx_arena_printf(job->arena, "golden is %s, target %s", fxtap_dtype_name(job->pair->golden_dtype),
                                       fxtap_dtype_name(job->pair->target_dtype));
    return text == NULL ? FXTAP_E_NOMEM : fx_job_detail(job, FXTAP_DTYPE_MISMATCH, text);
}

/* Equal bits say nothing about elements that were never written. */
static bool settled_by_hash(const fx_pair_job *job)
{
    const fxtap_tensor_info *g = job->golden, *t = job->target;
    return !fx_has_undefined(g, t) && g->has_meta && t->has_meta && g->has_hash && t->has_hash &&
           fx_same_hash(g->hash, t->hash) && g->dtype == t->dtype && g->saved_dtype == t->saved_dtype &&
           g->fortran_order == t->fortran_order && fx_job_same_shape(job->pair);
}

fx_tolerance fx_job_apply_tolerance(fx_pair_job *job)
{
    fx_tolerance tolerance;
    fx_tolerance_for(job->comparison->report->rules, job->comparison->report->n_rules, job->pair, &tolerance);
    job->pair->rtol = tolerance.rtol;
    job->pair->atol = tolerance.atol;
    return tolerance;
}

void fx_job_take_equal(fx_pair_job *job)
{
    fxtap_pair *pair = job->pair;
    uint64_t count = 1;
    fx_job_apply_tolerance(job);
    for (int32_t i = 0; i < pair->ndim; i++) {
        count *= (uint64_t)pair->shape[i];
    }
    pair->verdict = FXTAP_SAME;
    pair->measured = pair->identical_bits = true;
    pair->count = count;
    pair->cosine = pair->within_1e3 = pair->within_5e3 = 1.0;
    pair->max_ulp = fx_difference_has_ulp(pair->golden_dtype) ? 0.0 : NAN;
}

/* Records how many elements were left out; if all were, the pair is not judged. */
fxtap_status fx_job_note_left_out(fx_pair_job *job, uint64_t n_left_out, uint64_t n_elems)
{
    fxtap_pair *pair = job->pair;
    pair->undefined_count = n_left_out;
    if (n_left_out == n_elems) {
        pair->measured = false;
        return fx_job_detail(job, FXTAP_UNDEFINED, "no element was written: not judged");
    }
    const char *text = fx_arena_printf(job->arena, "%s%s%llu of %llu elements are undefined: not judged", pair->detail,
                                       pair->detail[0] != '\0' ? "; " : "", (unsigned long long)n_left_out,
                                       (unsigned long long)n_elems);
    return text == NULL ? FXTAP_E_NOMEM : fx_job_detail(job, pair->verdict, text);
}

static fxtap_status take_defined(fx_pair_job *job)
{
    fx_job_take_equal(job);
    uint64_t n_elems = job->pair->count;
    job->pair->count -= job->golden->undefined_count;
    return fx_job_note_left_out(job, job->golden->undefined_count, n_elems);
}

/* Absolute difference of two recorded statistics. */
static double apart(double golden, double target)
{
    return golden == target || (isnan(golden) && isnan(target)) ? 0.0 : fabs(target - golden);
}

/* Two statistics that are absent on both sides (NaN) are equal, although no tolerance applies to them. */
static bool are_near(double golden, double target, double scale, const fx_tolerance *tolerance)
{
    double distance = apart(golden, target);
    return distance == 0.0 || distance <= tolerance->atol + tolerance->rtol * fabs(scale);
}

/*
 * Integers and text with different bytes have different values, whatever their statistics; floats may still be equal
 * (0.0 and -0.0, NaN). Equal hashes have already settled the pair.
 */
static bool hashes_tell_apart(const fx_pair_job *job, const fx_tolerance *tolerance)
{
    const fxtap_tensor_info *g = job->golden, *t = job->target;
    int group = fx_dtype_class(g->saved_dtype);
    bool is_exact = tolerance->elementwise && tolerance->rtol == 0.0 && tolerance->atol == 0.0;
    return g->has_meta && t->has_meta && g->has_hash && t->has_hash && g->saved_dtype == t->saved_dtype &&
           g->fortran_order == t->fortran_order &&
           (group == FXTAP_CLASS_TEXT || (is_exact && (group == FXTAP_CLASS_INT || group == FXTAP_CLASS_BOOL)));
}

static fxtap_status judge_statistics(fx_pair_job *job)
{
    const fxtap_stats *g = &job->golden->stats, *t = &job->target->stats;
    fx_tolerance tolerance = fx_job_apply_tolerance(job);
    if (fx_has_undefined(job->golden, job->target) && !fx_same_undefined(job->golden, job->target)) {
        job->pair->undefined_count = job->golden->undefined_count > job->target->undefined_count
                                         ? job->golden->undefined_count
                                         : job->target->undefined_count;
        return fx_job_detail(job, FXTAP_UNDEFINED,
                             "different elements are undefined, and there is no file: not judged");
    }
    if (hashes_tell_apart(job, &tolerance)) {
        return fx_job_detail(job, FXTAP_DIFFERENT, "judged by recorded hashes: there is no file");
    }
    if (!job->golden->has_stats || !job->target->has_stats) {
        return fx_job_detail(job, FXTAP_UNREADABLE, "no file and no statistics to compare");
    }
    bool is_close = g->nan_count == t->nan_count && g->pos_inf_count == t->pos_inf_count &&
                    g->neg_inf_count == t->neg_inf_count && are_near(g->abs_max, t->abs_max, g->abs_max, &tolerance) &&
                    are_near(g->rms, t->rms, g->rms, &tolerance) && are_near(g->mean, t->mean, g->rms, &tolerance);
    return fx_job_detail(job, is_close ? FXTAP_CLOSE : FXTAP_DIFFERENT, "judged by statistics alone: there is no file");
}

/*
 * Literals are compared by value: 2 equals 2.0. A literal that differs is a different program, not a different value.
 */
static bool settled_as_literal(fx_pair_job *job)
{
    const fxtap_tensor_info *golden = job->golden, *target = job->target;
    if (!job->pair->is_literal || job->comparison->options->strict || !golden->has_stats || !target->has_stats) {
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
        fx_job_take_equal(job);
    } else {
        job->pair->verdict = FXTAP_REWRITTEN;
    }
    return true;
}

static fxtap_status judge_recorded(fx_pair_job *job)
{
    if (job->golden->has_meta && job->target->has_meta) {
        if (fx_dtype_class(job->golden->saved_dtype) != fx_dtype_class(job->target->saved_dtype)) {
            return fx_judge_classes(job);
        }
        if (!fx_job_same_shape(job->pair)) {
            return fx_judge_shapes(job);
        }
    }
    return judge_statistics(job);
}

static fxtap_status keep_statistics(fx_pair_job *job, const fxtap_stats *golden, const fxtap_stats *target)
{
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding that differs costs a copy, no more */
    bool is_same = memcmp(golden, target, sizeof *golden) == 0;
    job->pair->golden_stats = fx_arena_memdup(job->arena, golden, sizeof *golden);
    job->pair->target_stats = is_same ? job->pair->golden_stats : fx_arena_memdup(job->arena, target, sizeof *target);
    return job->pair->golden_stats == NULL || job->pair->target_stats == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status compute_statistics(fx_pair_job *job)
{
    fxtap_stats golden, target;
    fxtap_status status = fxtap_stats_compute(fxtap_npy_view(job->golden_file), &golden, NULL);
    if (status == FXTAP_OK) {
        status = fxtap_stats_compute(fxtap_npy_view(job->target_file), &target, NULL);
    }
    if (status != FXTAP_OK) {
        return status == FXTAP_E_NOMEM ? status : FXTAP_OK; /* some arrays have no statistics */
    }
    return keep_statistics(job, &golden, &target);
}

/* The report has recorded statistics, computes others if the pair is bad, and has hashes to find the value again. */
static fxtap_status add_statistics(fx_pair_job *job)
{
    fxtap_pair *pair = job->pair;
    const fxtap_tensor_info *golden = job->golden, *target = job->target;
    bool is_bad = fx_verdict_is_bad(pair->verdict) || pair->verdict == FXTAP_REWRITTEN;
    if (is_bad && golden->has_hash && target->has_hash) {
        pair->golden_hash = golden->hash;
        pair->target_hash = target->hash;
        pair->has_hashes = true;
    }
    if (golden->has_stats && target->has_stats) {
        return keep_statistics(job, &golden->stats, &target->stats);
    }
    return is_bad && job->golden_file != NULL && job->target_file != NULL ? compute_statistics(job) : FXTAP_OK;
}

static fxtap_status judge(fx_pair_job *job, fx_judge_memory *memory)
{
    if (job->golden->skipped != NULL || job->target->skipped != NULL) {
        return judge_skipped(job);
    }
    bool has_files = job->golden->path != NULL && job->target->path != NULL;
    bool reads_all = job->comparison->options->read_all && has_files;
    if (settled_by_hash(job) && !reads_all) {
        fx_job_take_equal(job);
        return FXTAP_OK;
    }
    if (settled_as_literal(job)) {
        return FXTAP_OK;
    }
    if (fx_job_same_shape(job->pair) && fx_undefined_settles(job->golden, job->target, has_files) && !reads_all) {
        return take_defined(job);
    }
    if (!has_files) {
        return judge_recorded(job);
    }
    bool done;
    fxtap_status status = fx_job_open_files(job, memory, &done);
    return status != FXTAP_OK || done ? status : fx_judge_values(job);
}

fxtap_status fx_judge(const fx_batch *batch, size_t i, fx_judge_memory *memory)
{
    const fx_sources *sources = &batch->sources[i];
    fx_pair_job job = {.batch = batch,
                       .comparison = batch->comparison,
                       .pair = &batch->pairs[i],
                       .golden = fx_batch_golden(batch, sources->golden),
                       .target = fx_batch_target(batch, sources->target),
                       .arena = &memory->arena};
    if (job.golden == NULL || job.target == NULL || job.pair->verdict == FXTAP_UNDEFINED) {
        return FXTAP_OK;
    }
    fxtap_status status = judge(&job, memory);
    bool is_other =
        job.pair->is_literal && (fx_verdict_is_bad(job.pair->verdict) || job.pair->verdict == FXTAP_REWRITTEN);
    if (status == FXTAP_OK && is_other && !batch->comparison->options->strict) {
        job.pair->verdict = FXTAP_REWRITTEN; /* a list of sizes, a text */
    }
    status = status == FXTAP_OK ? add_statistics(&job) : status;
    status = status == FXTAP_OK && is_other ? fx_describe_literal(&job) : status;
    fxtap_npy_close(job.golden_file);
    fxtap_npy_close(job.target_file);
    return status;
}
