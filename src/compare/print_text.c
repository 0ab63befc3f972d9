/* print_text.c - the report for a terminal: the answer first, then what it rests on. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compare/print.h"

#define SHOWN_ORIGINS 5
#define SHOWN_WORST 3

typedef struct page {
    const fxtap_report *report;
    const fxtap_report_options *options;
    fxtap_buffer *out;
    int32_t width;
} page;

static void colour(const page *p, const char *code)
{
    if (p->options->colour) {
        fxtap_buffer_printf(p->out, "\033[%sm", code);
    }
}

/* Text from a dump: control characters never reach the terminal. */
static void safe_text(const page *p, const char *text, int32_t limit)
{
    int32_t length = (int32_t)strlen(text);
    int32_t shown = limit > 0 && length > limit ? limit - 3 : length;
    for (int32_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        fxtap_buffer_append(p->out, c < 0x20 || c == 0x7f ? "?" : text + i, 1);
    }
    if (shown < length) {
        fxtap_buffer_text(p->out, "...");
    }
}

static void number(const page *p, double value)
{
    bool is_plain = value == 0.0 || (fabs(value) >= 1e-3 && fabs(value) < 1e6) || !isfinite(value);
    fxtap_buffer_digits(p->out, value, is_plain ? 4 : 3);
}

static void count(const page *p, uint64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_append(p->out, digits + i, 1);
        if ((n - 1 - i) % 3 == 0 && i + 1 < n) {
            fxtap_buffer_text(p->out, ",");
        }
    }
}

static void counted(const page *p, uint64_t value, const char *singular, const char *plural)
{
    count(p, value);
    fxtap_buffer_printf(p->out, " %s", value == 1 ? singular : plural);
}

static uint64_t bad_count(const fxtap_report *report)
{
    return report->counts[FXTAP_DIFFERENT] + report->counts[FXTAP_SHAPE_MISMATCH] + report->counts[FXTAP_DTYPE_MISMATCH];
}

static uint64_t judged_count(const fxtap_report *report)
{
    return report->counts[FXTAP_SAME] + report->counts[FXTAP_CLOSE] + bad_count(report);
}

static void headline(const page *p)
{
    const fxtap_report *report = p->report;
    fxtap_verdict verdict = fxtap_report_verdict(report);
    const char *word = verdict == FXTAP_SAME ? "SAME" : verdict == FXTAP_CLOSE ? "CLOSE" : "DIFFERENT";
    colour(p, verdict == FXTAP_DIFFERENT ? "1;31" : "1;32");
    fxtap_buffer_text(p->out, word);
    colour(p, "0");
    fxtap_buffer_text(p->out, "  ");
    if (bad_count(report) > 0) {
        count(p, bad_count(report));
        fxtap_buffer_text(p->out, " of ");
        counted(p, judged_count(report), "tensor differs", "tensors differ");
    } else if (verdict == FXTAP_SAME) {
        counted(p, report->counts[FXTAP_SAME], "tensor, all equal", "tensors, all equal");
    } else if (verdict == FXTAP_CLOSE) {
        counted(p, judged_count(report), "tensor agrees", "tensors agree");
        fxtap_buffer_text(p->out, ", ");
        count(p, report->counts[FXTAP_SAME]);
        fxtap_buffer_text(p->out, " of them exactly");
    } else {
        counted(p, judged_count(report), "tensor agrees", "tensors agree");
        fxtap_buffer_text(p->out, ", but not everything could be compared");
    }
    if (report->stopped_early) {
        fxtap_buffer_text(p->out, " (stopped at the first)");
    }
    fxtap_buffer_text(p->out, "\n");
}

static void labelled(const page *p, const char *label)
{
    colour(p, "2");
    fxtap_buffer_printf(p->out, "  %-8s", label);
    colour(p, "0");
}

static void place_lines(const page *p, const fxtap_pair *pair)
{
    if (pair->source_file[0] != '\0') {
        labelled(p, "source");
        safe_text(p, pair->source_file, p->width - 20);
        fxtap_buffer_printf(p->out, ":%" PRId32 "\n", pair->source_line);
        labelled(p, "");
        safe_text(p, pair->source_code, p->width - 10);
        fxtap_buffer_text(p->out, "\n");
    }
    if (pair->module_path[0] != '\0') {
        labelled(p, "module");
        safe_text(p, pair->module_path, p->width - 10);
        fxtap_buffer_text(p->out, "\n");
    }
    labelled(p, "where");
    if (pair->rank > 0) {
        fxtap_buffer_printf(p->out, "rank %" PRId32 ", ", pair->rank);
    }
    fxtap_buffer_printf(p->out, "graph %" PRIu32 ", step %" PRId64 ", ", pair->graph, pair->step);
    fxtap_buffer_printf(p->out, "%s %s\n", fx_io_name(pair->io), pair->position);
}

static void error_lines(const page *p, const fxtap_origin *origin)
{
    const fxtap_pair *pair = origin->pair;
    labelled(p, "error");
    if (!pair->measured) {
        safe_text(p, pair->detail, p->width - 10);
        fxtap_buffer_text(p->out, "\n");
        return;
    }
    fxtap_buffer_text(p->out, "relative L2 ");
    number(p, pair->rel_l2);
    fxtap_buffer_text(p->out, ", max abs ");
    number(p, pair->max_abs_err);
    fxtap_buffer_text(p->out, ", cosine ");
    fxtap_buffer_digits(p->out, pair->cosine, 7);
    fxtap_buffer_text(p->out, "\n");
    labelled(p, "");
    count(p, pair->mismatched);
    fxtap_buffer_text(p->out, " of ");
    counted(p, pair->count, "element outside", "elements outside");
    fxtap_buffer_text(p->out, " rtol ");
    number(p, pair->rtol);
    fxtap_buffer_text(p->out, ", atol ");
    number(p, pair->atol);
    fxtap_buffer_text(p->out, "\n");
    labelled(p, "inputs");
    if (origin->input_error > 0.0) {
        fxtap_buffer_text(p->out, "relative L2 ");
        number(p, origin->input_error);
        fxtap_buffer_text(p->out, ": the error grew ");
        number(p, origin->growth);
        fxtap_buffer_text(p->out, " times\n");
    } else {
        fxtap_buffer_text(p->out, origin->reason == FXTAP_ORIGIN_OPERATOR ? "identical\n" : "-\n");
    }
}

static void worst_lines(const page *p, const fxtap_pair *pair)
{
    for (size_t i = 0; i < pair->n_worst && i < SHOWN_WORST; i++) {
        labelled(p, i == 0 ? "worst" : "");
        fxtap_buffer_text(p->out, "at [");
        fx_print_coordinates(p->out, pair->worst[i].index, pair->ndim, pair->shape);
        fxtap_buffer_text(p->out, "]: golden ");
        number(p, pair->worst[i].golden);
        fxtap_buffer_text(p->out, ", target ");
        number(p, pair->worst[i].target);
        fxtap_buffer_text(p->out, "\n");
    }
}

static void statistics_line(const page *p, const char *label, const fxtap_stats *stats)
{
    labelled(p, label);
    fxtap_buffer_text(p->out, "mean ");
    number(p, stats->mean);
    fxtap_buffer_text(p->out, "  std ");
    number(p, stats->std);
    if (stats->has_range) {
        fxtap_buffer_text(p->out, "  min ");
        number(p, stats->min);
        fxtap_buffer_text(p->out, "  max ");
        number(p, stats->max);
    }
    uint64_t n_bad = stats->count - stats->finite_count;
    if (n_bad > 0) {
        fxtap_buffer_text(p->out, "  not finite ");
        count(p, n_bad);
    }
    fxtap_buffer_text(p->out, "\n");
}

static void origin_block(const page *p, const fxtap_origin *origin, bool is_first)
{
    const fxtap_pair *pair = origin->pair;
    fxtap_buffer_text(p->out, "\n");
    colour(p, "1");
    fxtap_buffer_text(p->out, is_first ? "Origin  " : "Also    ");
    safe_text(p, pair->node, 36);
    colour(p, "0");
    fxtap_buffer_text(p->out, "  ");
    safe_text(p, pair->target, p->width - 48);
    if (origin->other_target != NULL) {
        fxtap_buffer_text(p->out, " against ");
        safe_text(p, origin->other_target, 30);
    }
    fxtap_buffer_printf(p->out, "\n        %s\n", fx_origin_reason_text(origin->reason));
    place_lines(p, pair);
    error_lines(p, origin);
    worst_lines(p, pair);
    if (pair->has_stats) {
        statistics_line(p, "golden", &pair->golden_stats);
        statistics_line(p, "target", &pair->target_stats);
    }
    if (origin->n_carried > 0) {
        labelled(p, "carried");
        fxtap_buffer_text(p->out, "on by ");
        counted(p, origin->n_carried, "operator", "operators");
        fxtap_buffer_text(p->out, "\n");
    }
}

static void origins(const page *p)
{
    const fxtap_report *report = p->report;
    for (size_t i = 0; i < report->n_origins && i < SHOWN_ORIGINS; i++) {
        origin_block(p, &report->origins[i], i == 0);
    }
    if (report->n_origins > SHOWN_ORIGINS) {
        fxtap_buffer_text(p->out, "\n        and ");
        counted(p, report->n_origins - SHOWN_ORIGINS, "more origin", "more origins");
        fxtap_buffer_text(p->out, "; --json lists all\n");
    }
    const fxtap_pair *non_finite = fxtap_report_first_non_finite(report);
    if (non_finite != NULL) {
        fxtap_buffer_text(p->out, "\nFirst NaN or Inf that golden has not: ");
        safe_text(p, non_finite->name, p->width - 38);
        fxtap_buffer_text(p->out, "\n");
    }
}

static void item(const page *p, uint64_t value, const char *name, bool *is_first)
{
    if (value > 0) {
        fxtap_buffer_text(p->out, *is_first ? "" : ", ");
        fxtap_buffer_printf(p->out, "%s ", name);
        count(p, value);
        *is_first = false;
    }
}

static void accounts(const page *p)
{
    const fxtap_report *report = p->report;
    bool is_first = true;
    fxtap_buffer_text(p->out, "\nPaired  ");
    for (int pairing = FXTAP_PAIR_EXACT; pairing <= FXTAP_PAIR_ORDER; pairing++) {
        item(p, report->pairing_counts[pairing], fxtap_pairing_name((fxtap_pairing)pairing), &is_first);
    }
    fxtap_buffer_text(p->out, is_first ? "nothing" : "");
    is_first = true;
    fxtap_buffer_text(p->out, "\nResult  ");
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        item(p, report->counts[verdict], fxtap_verdict_name((fxtap_verdict)verdict), &is_first);
    }
    fxtap_buffer_text(p->out, is_first ? "nothing\n" : "\n");
}

/* The first few pairs of a verdict that asks for a look. */
static void examples(const page *p, fxtap_verdict verdict)
{
    size_t shown = 0;
    for (size_t i = 0; i < p->report->n_pairs && shown < 3; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        if (pair->verdict != verdict) {
            continue;
        }
        labelled(p, "");
        safe_text(p, pair->name, p->width - 10);
        fxtap_buffer_text(p->out, "\n");
        if (pair->detail[0] != '\0') {
            labelled(p, "");
            fxtap_buffer_text(p->out, "  ");
            safe_text(p, pair->detail, p->width - 12);
            fxtap_buffer_text(p->out, "\n");
        }
        shown++;
    }
    if (p->report->counts[verdict] > shown) {
        labelled(p, "");
        fxtap_buffer_text(p->out, "and ");
        counted(p, p->report->counts[verdict] - shown, "more\n", "more\n");
    }
}

static void troubles(const page *p)
{
    static const fxtap_verdict kinds[] = {FXTAP_UNREADABLE, FXTAP_SHAPE_MISMATCH, FXTAP_DTYPE_MISMATCH,
                                          FXTAP_ONLY_GOLDEN, FXTAP_ONLY_TARGET};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (p->report->counts[kinds[i]] > 0) {
            fxtap_buffer_printf(p->out, "\n%s\n", fxtap_verdict_name(kinds[i]));
            examples(p, kinds[i]);
        }
    }
    for (size_t i = 0; i < p->report->n_warnings; i++) {
        fxtap_buffer_text(p->out, i == 0 ? "\nwarning " : "        ");
        safe_text(p, p->report->warnings[i], p->width - 8);
        fxtap_buffer_text(p->out, "\n");
    }
}

static bool dtype_occurs(const fxtap_report *report, fxtap_dtype dtype)
{
    for (size_t i = 0; i < report->n_pairs; i++) {
        const fxtap_pair *pair = &report->pairs[i];
        if (pair->measured && fx_judged_dtype(pair->golden_dtype, pair->target_dtype) == dtype) {
            return true;
        }
    }
    return false;
}

static void tolerances(const page *p)
{
    int n_shown = 0;
    for (int dtype = 1; dtype < FXTAP_DTYPE_COUNT; dtype++) {
        double rtol, atol;
        fx_default_tolerance((fxtap_dtype)dtype, &rtol, &atol);
        if (rtol == 0.0 || !dtype_occurs(p->report, (fxtap_dtype)dtype)) {
            continue;
        }
        fxtap_buffer_printf(p->out, "%s%s rtol ", n_shown++ == 0 ? "Judged  " : "        ",
                            fxtap_dtype_name((fxtap_dtype)dtype));
        number(p, rtol);
        fxtap_buffer_text(p->out, " atol ");
        number(p, atol);
        fxtap_buffer_text(p->out, "\n");
    }
    if (p->report->n_rules > 0) {
        fxtap_buffer_text(p->out, n_shown == 0 ? "Judged  by " : "        and by ");
        counted(p, p->report->n_rules, "rule given", "rules given");
        fxtap_buffer_text(p->out, "\n");
    }
}

void fx_report_print_text(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    page p = {.report = report, .options = options, .out = out, .width = options->width > 0 ? options->width : 80};
    p.width = p.width < 60 ? 60 : p.width;
    headline(&p);
    if (options->quiet) {
        return;
    }
    origins(&p);
    troubles(&p);
    accounts(&p);
    tolerances(&p);
}
