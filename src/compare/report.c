#include "compare/report.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

fxtap_report *fx_report_create(void)
{
    fxtap_report *report = fx_calloc(1, sizeof *report);
    if (report != NULL) {
        fx_arena_init(&report->arena);
        report->first_non_finite = SIZE_MAX;
    }
    return report;
}

void fxtap_report_free(fxtap_report *report)
{
    if (report == NULL) {
        return;
    }
    fx_arena_clear(&report->arena);
    fx_free(report->pairs);
    fx_free(report->groups);
    fx_free(report->origins);
    fx_free(report->origin_pairs);
    fx_free(report->warnings);
    fx_free(report);
}

fxtap_status fx_report_warn(fxtap_report *report, const char *line)
{
    const char *copy = fx_arena_strdup(&report->arena, line);
    if (copy == NULL || !fx_grow((void **)&report->warnings, &report->warnings_capacity, report->n_warnings + 1,
                                 sizeof *report->warnings)) {
        return FXTAP_E_NOMEM;
    }
    report->warnings[report->n_warnings++] = copy;
    return FXTAP_OK;
}

fxtap_status fx_report_warn_of_trailing(fxtap_report *report)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < report->n_pairs && status == FXTAP_OK; i++) {
        const char *detail = report->pairs[i].detail;
        size_t length = strlen(detail), n = sizeof FX_TRAILING - 1;
        if (length > n && memcmp(detail + length - n, FX_TRAILING, n) == 0) {
            status = fx_report_warn(report, detail);
        }
    }
    return status;
}

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void fx_report_sort_warnings(fxtap_report *report)
{
    if (report->n_warnings > 1) {
        qsort(report->warnings, report->n_warnings, sizeof *report->warnings, compare_lines);
    }
}

fxtap_status fx_report_add_origin(fxtap_report *report, const fxtap_origin *origin, size_t pair)
{
    size_t needed = report->n_origins + 1;
    if (!fx_grow((void **)&report->origins, &report->origins_capacity, needed, sizeof *report->origins) ||
        !fx_grow((void **)&report->origin_pairs, &report->origin_pairs_capacity, needed,
                 sizeof *report->origin_pairs)) {
        return FXTAP_E_NOMEM;
    }
    report->origin_pairs[report->n_origins] = pair;
    report->origins[report->n_origins++] = *origin;
    return FXTAP_OK;
}

fxtap_status fx_report_add_group(fxtap_report *report, const fxtap_group *group)
{
    if (!fx_grow((void **)&report->groups, &report->groups_capacity, report->n_groups + 1, sizeof *report->groups)) {
        return FXTAP_E_NOMEM;
    }
    report->groups[report->n_groups++] = *group;
    return FXTAP_OK;
}

bool fx_verdict_is_bad(fxtap_verdict verdict)
{
    return verdict == FXTAP_DIFFERENT || verdict == FXTAP_SHAPE_MISMATCH || verdict == FXTAP_DTYPE_MISMATCH;
}

void fx_pair_forget(fxtap_pair *pair)
{
    bool was_marked = pair->verdict == FXTAP_UNDEFINED && pair->undefined_count == 0; /* before judging */
    if (pair->verdict == FXTAP_ONLY_GOLDEN || pair->verdict == FXTAP_ONLY_TARGET || was_marked) {
        return;
    }
    fxtap_pair kept = *pair;
    kept.verdict = FXTAP_NOT_COMPARED;
    kept.detail = "";
    /* the results of judging begin there */
    memset(&kept.measured, 0, sizeof kept - offsetof(fxtap_pair, measured));
    kept.input_error = kept.growth = NAN;
    if (!kept.golden_recorded) {
        kept.golden_dtype = FXTAP_DTYPE_NONE;
        kept.ndim = 0;
        kept.shape = NULL;
    }
    if (!kept.target_recorded) {
        kept.target_dtype = FXTAP_DTYPE_NONE;
        kept.target_ndim = 0;
        kept.target_shape = NULL;
    }
    *pair = kept;
}

static bool new_non_finite(const fxtap_pair *pair)
{
    const fxtap_stats *g = pair->golden_stats, *t = pair->target_stats;
    return g != NULL && t->finite_count < t->count && g->finite_count == g->count;
}

static void tally_group(fxtap_report *report, fxtap_group *group)
{
    group->n_different = 0;
    for (size_t i = group->first_pair; i < group->first_pair + group->n_pairs; i++) {
        if (fx_verdict_is_bad(report->pairs[i].verdict)) {
            group->n_different++;
        }
    }
}

void fx_report_tally(fxtap_report *report)
{
    memset(report->counts, 0, sizeof report->counts);
    memset(report->pairing_counts, 0, sizeof report->pairing_counts);
    report->n_missing = 0;
    report->first_non_finite = SIZE_MAX;
    for (size_t i = 0; i < report->n_pairs; i++) {
        const fxtap_pair *pair = &report->pairs[i];
        report->counts[pair->verdict]++;
        report->pairing_counts[pair->pairing]++;
        report->n_missing += pair->is_missing;
        if (report->first_non_finite == SIZE_MAX && pair->verdict != FXTAP_UNDEFINED && new_non_finite(pair)) {
            report->first_non_finite = i;
        }
    }
    for (size_t i = 0; i < report->n_groups; i++) {
        tally_group(report, &report->groups[i]);
    }
}

fxtap_verdict fxtap_report_verdict(const fxtap_report *report)
{
    static const fxtap_verdict bad[] = {FXTAP_DIFFERENT, FXTAP_SHAPE_MISMATCH, FXTAP_DTYPE_MISMATCH, FXTAP_UNREADABLE};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (report->counts[bad[i]] > 0) {
            return FXTAP_DIFFERENT;
        }
    }
    bool any_alone = report->counts[FXTAP_ONLY_GOLDEN] + report->counts[FXTAP_ONLY_TARGET] > 0;
    bool any_close = report->counts[FXTAP_CLOSE] > 0;
    if (report->n_missing > 0 || (any_alone && !any_close && report->counts[FXTAP_SAME] == 0)) {
        return FXTAP_DIFFERENT;
    }
    return any_close ? FXTAP_CLOSE : FXTAP_SAME;
}

uint64_t fxtap_report_missing_count(const fxtap_report *report)
{
    return report->n_missing;
}

const char *fxtap_report_explanation(const fxtap_report *report)
{
    return report->explanation;
}

const char *fxtap_report_steps(const fxtap_report *report)
{
    return report->steps;
}

uint64_t fxtap_report_count(const fxtap_report *report, fxtap_verdict verdict)
{
    return (unsigned)verdict < FXTAP_VERDICT_COUNT ? report->counts[verdict] : 0;
}

uint64_t fxtap_report_pairing_count(const fxtap_report *report, fxtap_pairing pairing)
{
    return (unsigned)pairing < FXTAP_PAIR_COUNT ? report->pairing_counts[pairing] : 0;
}

size_t fxtap_report_pair_count(const fxtap_report *report)
{
    return report->n_pairs;
}

const fxtap_pair *fxtap_report_pair(const fxtap_report *report, size_t i)
{
    return i < report->n_pairs ? &report->pairs[i] : NULL;
}

size_t fxtap_report_origin_count(const fxtap_report *report)
{
    return report->n_origins;
}

const fxtap_origin *fxtap_report_origin(const fxtap_report *report, size_t i)
{
    return i < report->n_origins ? &report->origins[i] : NULL;
}

size_t fxtap_report_group_count(const fxtap_report *report)
{
    return report->n_groups;
}

const fxtap_group *fxtap_report_group(const fxtap_report *report, size_t i)
{
    return i < report->n_groups ? &report->groups[i] : NULL;
}

const fxtap_pair *fxtap_report_first_non_finite(const fxtap_report *report)
{
    return report->first_non_finite < report->n_pairs ? &report->pairs[report->first_non_finite] : NULL;
}

size_t fxtap_report_warning_count(const fxtap_report *report)
{
    return report->n_warnings;
}

const char *fxtap_report_warning(const fxtap_report *report, size_t i)
{
    return i < report->n_warnings ? report->warnings[i] : NULL;
}

const char *fxtap_verdict_name(fxtap_verdict verdict)
{
    static const char *const names[FXTAP_VERDICT_COUNT] = {
        [FXTAP_SAME] = "same",
        [FXTAP_CLOSE] = "close",
        [FXTAP_DIFFERENT] = "different",
        [FXTAP_SHAPE_MISMATCH] = "shape mismatch",
        [FXTAP_DTYPE_MISMATCH] = "dtype mismatch",
        [FXTAP_UNREADABLE] = "unreadable",
        [FXTAP_ONLY_GOLDEN] = "only in golden",
        [FXTAP_ONLY_TARGET] = "only in target",
        [FXTAP_SKIPPED] = "skipped",
        [FXTAP_UNDEFINED] = "undefined",
        [FXTAP_NOT_COMPARED] = "not compared",
        [FXTAP_REWRITTEN] = "written differently",
    };
    return (unsigned)verdict < FXTAP_VERDICT_COUNT ? names[verdict] : "unknown";
}

const char *fxtap_pairing_name(fxtap_pairing pairing)
{
    static const char *const names[] = {
        [FXTAP_PAIR_NONE] = "unpaired",    [FXTAP_PAIR_EXACT] = "exact",    [FXTAP_PAIR_MAPPED] = "mapped",
        [FXTAP_PAIR_SOURCE] = "by source", [FXTAP_PAIR_ORDER] = "by order", [FXTAP_PAIR_WIRING] = "by wiring",
        [FXTAP_PAIR_REGION] = "region",
    };
    return (unsigned)pairing < FXTAP_PAIR_COUNT ? names[pairing] : "unknown";
}

double fx_only_value(const fxtap_stats *stats)
{
    return stats->finite_count == 0 && stats->nan_count == 0 ? stats->max : stats->mean;
}
