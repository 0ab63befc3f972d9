/* explain.c - a comparison and a verification of the same two dumps in one: which differences are only rounding. */
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"
#include "verify/print.h"

typedef struct lookup {
    const fxtap_verification *verification;
    size_t *order;      /* operators, sorted by place */
    bool has_only_rank; /* then pairs may have another number: golden's */
} lookup;

/* Where an operator of target was called; `node` need not end with NUL. */
typedef struct call {
    int32_t rank;
    uint32_t graph;
    int64_t step;
    const char *node;
    size_t node_length;
} call;

static call call_of(const fxtap_verification *verification, size_t i)
{
    const fxtap_verify_place *place = &verification->results[verification->operators[i].first_result].place;
    return (call){place->rank, place->graph, place->step, place->node, strlen(place->node)};
}

static int compare_calls(const call *a, const call *b)
{
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->step != b->step) {
        return a->step < b->step ? -1 : 1;
    }
    if (a->graph != b->graph) {
        return a->graph < b->graph ? -1 : 1;
    }
    size_t shorter = a->node_length < b->node_length ? a->node_length : b->node_length;
    int result = memcmp(a->node, b->node, shorter);
    return result != 0 ? result : (a->node_length > b->node_length) - (a->node_length < b->node_length);
}

static int in_order(const void *left, const void *right, void *verification)
{
    call a = call_of(verification, *(const size_t *)left), b = call_of(verification, *(const size_t *)right);
    return compare_calls(&a, &b);
}

static fxtap_status make_lookup(const fxtap_verification *verification, lookup *out)
{
    size_t n = verification->n_operators;
    *out = (lookup){verification, fx_calloc(n + 1, sizeof *out->order), true};
    if (out->order == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        out->order[i] = i;
        out->has_only_rank = out->has_only_rank && call_of(verification, i).rank == call_of(verification, 0).rank;
    }
    qsort_r(out->order, n, sizeof *out->order, in_order, (void *)(uintptr_t)verification);
    return FXTAP_OK;
}

/* Target's operator of a pair of results, or NULL. */
static const fxtap_verify_operator *find(const lookup *l, const fxtap_pair *pair)
{
    const char *name = pair->target_name != NULL ? pair->target_name : pair->name;
    call wanted = {pair->rank, pair->target_graph, pair->target_step, name, strcspn(name, "-")};
    size_t low = 0, high = l->verification->n_operators;
    if (pair->io == FXTAP_INPUT || pair->verdict == FXTAP_ONLY_GOLDEN || high == 0) {
        return NULL;
    }
    wanted.rank = l->has_only_rank ? call_of(l->verification, 0).rank : wanted.rank;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        call at = call_of(l->verification, l->order[middle]);
        int order = compare_calls(&at, &wanted);
        if (order == 0) {
            return &l->verification->operators[l->order[middle]];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

/* The result of a pair, by "OUTPUT.0" at the end of the tensor's name. */
static const fxtap_verify_result *result_of(const lookup *l, const fxtap_pair *pair)
{
    const fxtap_verify_operator *called = find(l, pair);
    const char *name = pair->target_name != NULL ? pair->target_name : pair->name;
    for (size_t i = 0; called != NULL && i < called->n_results; i++) {
        const fxtap_verify_result *result = &l->verification->results[called->first_result + i];
        size_t length = strlen(result->place.slot), whole = strlen(name);
        if (whole > length && name[whole - length - 1] == '.' &&
            strcmp(name + whole - length, result->place.slot) == 0) {
            return result;
        }
    }
    return NULL;
}

static bool is_right(const fxtap_verify_result *result)
{
    return (result->verdict == FXTAP_VERIFY_EXACT || result->verdict == FXTAP_VERIFY_ROUNDING) &&
           !result->place.is_alone;
}

/* Whether all results of an operator do what golden's operator makes of the same inputs. */
static bool does_what_golden_does(const lookup *l, const fxtap_verify_operator *called)
{
    for (size_t i = 0; called != NULL && i < called->n_results; i++) {
        if (!is_right(&l->verification->results[called->first_result + i])) {
            return false;
        }
    }
    return called != NULL;
}

/* False if a difference is seen that rounding does not explain. */
static bool mark_pairs(fxtap_report *report, const lookup *l)
{
    bool is_rounding = report->n_missing == 0 && !report->stopped_early;
    for (size_t i = 0; i < report->n_pairs; i++) {
        fxtap_pair *pair = &report->pairs[i];
        const fxtap_verify_result *result = result_of(l, pair);
        pair->verified = result == NULL ? NULL : fxtap_verify_verdict_name(result->verdict);
        bool is_value = pair->verdict == FXTAP_DIFFERENT && (pair->io == FXTAP_INPUT || pair->is_literal);
        bool is_explained = pair->verdict == FXTAP_DIFFERENT && result != NULL && is_right(result);
        is_rounding = is_rounding && (is_value || is_explained || !fx_verdict_is_bad(pair->verdict));
    }
    return is_rounding && report->counts[FXTAP_UNREADABLE] == 0;
}

/* A region's origin may lie above it, in what was not compared: its own operator does not explain it. */
static bool mark_origins(fxtap_report *report, const lookup *l)
{
    bool is_rounding = report->n_origins > 0;
    for (size_t i = 0; i < report->n_origins; i++) {
        fxtap_origin *origin = &report->origins[i];
        bool is_operator = origin->reason == FXTAP_ORIGIN_OPERATOR || origin->reason == FXTAP_ORIGIN_DRIFT;
        if (is_operator && does_what_golden_does(l, find(l, origin->pair))) {
            origin->reason = FXTAP_ORIGIN_ROUNDING;
        }
        is_rounding = is_rounding && origin->reason == FXTAP_ORIGIN_ROUNDING;
    }
    return is_rounding;
}

fxtap_status fxtap_report_verify(fxtap_report *report, const fxtap_verification *verification)
{
    FX_REQUIRE(report);
    FX_REQUIRE(verification);
    lookup l;
    fxtap_status status = make_lookup(verification, &l);
    if (status != FXTAP_OK) {
        return status;
    }
    report->verified.is_known = true;
    report->verified.n_wrong = verification->counts[FXTAP_VERIFY_WRONG] + verification->counts[FXTAP_VERIFY_BIASED];
    report->verified.n_replayed = verification->n_operators - verification->counts[FXTAP_VERIFY_NOT_REPLAYED];
    for (size_t i = verification->n_operators; i > 0; i--) {
        if (fx_verdict_accuses(verification->operators[i - 1].verdict)) {
            report->verified.first_wrong = fx_arena_strdup(&report->arena, call_of(verification, i - 1).node);
        }
    }
    bool are_right = mark_pairs(report, &l), begin_right = mark_origins(report, &l);
    report->verified.is_rounding = are_right && begin_right && report->verified.n_wrong == 0;
    fx_free(l.order);
    return report->arena.failed ? FXTAP_E_NOMEM : FXTAP_OK;
}

bool fxtap_report_is_rounding(const fxtap_report *report)
{
    return report->verified.is_rounding;
}

/* ---- printing ---- */

typedef struct both {
    const fxtap_report *report;
    const fxtap_verification *verification;
} both;

static void write_document(fxtap_json *json, const void *context)
{
    const both *b = context;
    fxtap_json_bool(json, "is_rounding", b->report->verified.is_rounding);
    fx_verification_json_document(json, "verification", b->verification, true);
}

/* The page shows the wrong operators; its rows have the other verdicts. */
static void write_wrong(fxtap_json *json, const void *context)
{
    const both *b = context;
    fxtap_json_bool(json, "is_rounding", b->report->verified.is_rounding);
    fx_verification_json_wrong(json, "verification", b->verification);
}

fxtap_status fxtap_report_print_verified(const fxtap_report *report, const fxtap_verification *verification,
                                         const fxtap_report_options *options, fxtap_buffer *out)
{
    FX_REQUIRE(report);
    FX_REQUIRE(verification);
    FX_REQUIRE(out);
    fxtap_status status = fx_check_report_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    both b = {report, verification};
    fx_float_mode callers = fx_float_mode_begin();
    switch (options->format) {
    case FXTAP_REPORT_TEXT:
        fx_report_print_headline(report, options, out);
        if (!options->quiet) {
            fxtap_buffer_text(out, "\n");
            fx_verification_print_text(verification, options, out);
            fx_report_print_details(report, options, out);
        }
        break;
    case FXTAP_REPORT_JSON:
        fx_report_print_json(report, &(fx_report_more){write_document, &b}, out);
        break;
    case FXTAP_REPORT_CSV:
        fx_report_print_csv(report, out);
        break;
    case FXTAP_REPORT_HTML:
        fx_report_print_html(report, &(fx_report_more){write_wrong, &b}, out);
        break;
    }
    fx_float_mode_end(callers);
    return fxtap_buffer_status(out);
}
