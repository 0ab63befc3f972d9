/* text.c - the report for a terminal: the verdict first, then the details. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compare/rules.h"
#include "report/page_text.h"

#define SHOWN_EXAMPLES 3
#define SHOWN_STEPS 8
#define SHOWN_WARNINGS 5

static uint64_t bad_count(const fxtap_report *report)
{
    return report->counts[FXTAP_DIFFERENT] + report->counts[FXTAP_SHAPE_MISMATCH] +
           report->counts[FXTAP_DTYPE_MISMATCH];
}

static uint64_t judged_count(const fxtap_report *report)
{
    return report->counts[FXTAP_SAME] + report->counts[FXTAP_CLOSE] + bad_count(report);
}

/* The headline if no tensor differs in value, but the sides are not the same. */
static void incomplete_headline(const fx_page *p)
{
    const uint64_t *counts = p->report->counts;
    bool is_judged = judged_count(p->report) > 0;
    uint64_t n_alone = is_judged ? p->report->n_missing : counts[FXTAP_ONLY_GOLDEN] + counts[FXTAP_ONLY_TARGET];
    const char *joint = ", but ";
    if (!is_judged) {
        fxtap_buffer_text(p->out, n_alone > 0 && counts[FXTAP_UNREADABLE] == 0 ? "the two sides share nothing"
                                                                               : "nothing could be compared");
        joint = ": ";
    } else {
        fx_page_counted(p, judged_count(p->report), "tensor agrees", "tensors agree");
    }
    if (n_alone > 0) {
        fxtap_buffer_text(p->out, joint);
        fx_page_counted(p, n_alone, is_judged ? "is missing" : "has no counterpart",
                        is_judged ? "are missing" : "have no counterpart");
        joint = ", ";
    }
    if (counts[FXTAP_UNREADABLE] > 0) {
        fxtap_buffer_text(p->out, joint);
        fx_page_counted(p, counts[FXTAP_UNREADABLE], "cannot be read", "cannot be read");
    }
}

/* What a verification adds to the headline. */
static void verified_ending(const fx_page *p, bool is_different)
{
    const fxtap_report *report = p->report;
    if (!report->verified.is_known) {
        return;
    }
    if (report->verified.n_wrong > 0) {
        fxtap_buffer_text(p->out, is_different ? ", and " : ", but ");
        fx_page_counted(p, report->verified.n_wrong, "operator is wrong: ", "operators are wrong: first ");
        fx_page_text(p, report->verified.first_wrong, p->width / 2, false);
    } else if (report->verified.n_replayed == 0) {
        fxtap_buffer_text(p->out, "; no operator could be verified");
    } else if (!is_different) {
        fxtap_buffer_text(p->out, ", and nothing is wrong");
    } else {
        fxtap_buffer_text(p->out, report->verified.is_rounding ? ", but nothing is wrong: all is rounding"
                                                               : ", though no operator is wrong");
    }
}

static void headline(const fx_page *p)
{
    const fxtap_report *report = p->report;
    fxtap_verdict verdict = fxtap_report_verdict(report);
    bool is_bad = verdict == FXTAP_DIFFERENT && !report->verified.is_rounding;
    fx_page_colour(p, is_bad || report->verified.n_wrong > 0 ? "1;31" : "1;32");
    fxtap_buffer_text(p->out, verdict == FXTAP_SAME ? "SAME" : verdict == FXTAP_CLOSE ? "CLOSE" : "DIFFERENT");
    fx_page_colour(p, "0");
    fxtap_buffer_text(p->out, "  ");
    if (bad_count(report) > 0) {
        fx_page_count(p, bad_count(report));
        fxtap_buffer_text(p->out, " of ");
        fx_page_counted(p, judged_count(report), "tensor differs", "tensors differ");
        if (report->n_missing > 0) {
            fxtap_buffer_text(p->out, ", ");
            fx_page_counted(p, report->n_missing, "is missing", "are missing");
        }
    } else if (verdict == FXTAP_SAME) {
        fx_page_counted(p, report->counts[FXTAP_SAME], "tensor, all equal", "tensors, all equal");
    } else if (verdict == FXTAP_CLOSE) {
        fx_page_counted(p, judged_count(report), "tensor agrees", "tensors agree");
        fxtap_buffer_text(p->out, ", ");
        fx_page_count(p, report->counts[FXTAP_SAME]);
        fxtap_buffer_text(p->out, " of them exactly");
    } else {
        incomplete_headline(p);
    }
    fxtap_buffer_text(p->out, report->stopped_early ? " (stopped at the first)" : "");
    verified_ending(p, verdict == FXTAP_DIFFERENT);
    fxtap_buffer_text(p->out, "\n");
}

/* "Label   item, item, item", wrapped at the page's width. */
typedef struct flow {
    const fx_page *page;
    int32_t column;
    bool is_first;
} flow;

static flow begin_flow(const fx_page *p, const char *label)
{
    fxtap_buffer_printf(p->out, "%-8s", label);
    return (flow){p, 8, true};
}

static void flow_item(flow *f, uint64_t value, const char *name)
{
    if (value == 0) {
        return;
    }
    fxtap_buffer item;
    fxtap_buffer_init(&item);
    fx_page scratch = *f->page;
    scratch.out = &item;
    fxtap_buffer_printf(&item, "%s ", name);
    fx_page_count(&scratch, value);
    fxtap_buffer_text(f->page->out, f->is_first ? "" : ",");
    if (!f->is_first && f->column + (int32_t)item.length + 3 > f->page->width) {
        fxtap_buffer_text(f->page->out, "\n        ");
        f->column = 8;
    } else if (!f->is_first) {
        fxtap_buffer_text(f->page->out, " ");
    }
    fxtap_buffer_text(f->page->out, fx_page_scratch_text(f->page, &item));
    f->column += (int32_t)item.length + 2;
    f->is_first = false;
    fxtap_buffer_clear(&item);
}

static void end_flow(flow *f)
{
    fxtap_buffer_text(f->page->out, f->is_first ? "nothing\n" : "\n");
}

/* Undefined elements in pairs that were judged by their other elements. */
static void undefined_elements(const fx_page *p)
{
    uint64_t n_elems = 0, n_tensors = 0;
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        if (pair->undefined_count > 0 && pair->verdict != FXTAP_UNDEFINED) {
            n_elems += pair->undefined_count;
            n_tensors++;
        }
    }
    if (n_tensors > 0) {
        fxtap_buffer_text(p->out, "Left out ");
        fx_page_counted(p, n_elems, "element", "elements");
        fxtap_buffer_text(p->out, " of ");
        fx_page_counted(p, n_tensors, "tensor: memory that was never written",
                        "tensors: memory that was never written");
        fxtap_buffer_text(p->out, "\n");
    }
}

static void accounts(const fx_page *p)
{
    const fxtap_report *report = p->report;
    fxtap_buffer_text(p->out, "\n");
    if (report->steps != NULL) {
        fxtap_buffer_text(p->out, "Aligned ");
        fx_page_wrapped(p, report->steps, 8);
        fxtap_buffer_text(p->out, "\n");
    }
    flow paired = begin_flow(p, "Paired");
    for (int pairing = FXTAP_PAIR_EXACT; pairing < FXTAP_PAIR_COUNT; pairing++) {
        flow_item(&paired, report->pairing_counts[pairing], fxtap_pairing_name((fxtap_pairing)pairing));
    }
    end_flow(&paired);
    flow result = begin_flow(p, "Result");
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        flow_item(&result, report->counts[verdict], fxtap_verdict_name((fxtap_verdict)verdict));
    }
    end_flow(&result);
    undefined_elements(p);
}

static void example(const fx_page *p, const fxtap_pair *pair)
{
    fx_page_label(p, "");
    fx_page_text(p, pair->name, p->width - 10, false);
    fxtap_buffer_text(p->out, "\n");
    bool is_shown = false; /* by its origin */
    for (size_t i = 0; i < p->report->n_origins && !is_shown; i++) {
        is_shown = p->report->origins[i].pair == pair;
    }
    if (pair->detail[0] != '\0' && !is_shown) {
        fx_page_label(p, "");
        fxtap_buffer_text(p->out, "  ");
        fx_page_wrapped(p, pair->detail, 12);
        fxtap_buffer_text(p->out, "\n");
    }
}

static bool has_step(const fxtap_report *report, bool is_golden, int64_t step, size_t n_groups)
{
    for (size_t i = 0; i < n_groups; i++) {
        if ((is_golden ? report->groups[i].step : report->groups[i].target_step) == step) {
            return true;
        }
    }
    return false;
}

/* "all of steps 3, 4, which golden did not run": no graph of the other side has such a step. */
static void surplus_steps(const fx_page *p, bool is_golden)
{
    const fxtap_report *report = p->report;
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    size_t n = 0;
    for (size_t i = 0; i < report->n_groups; i++) {
        int64_t step = is_golden ? report->groups[i].step : report->groups[i].target_step;
        int64_t other = is_golden ? report->groups[i].target_step : report->groups[i].step;
        bool is_new = step >= 0 && other < 0 && !has_step(report, !is_golden, step, report->n_groups) &&
                      !has_step(report, is_golden, step, i);
        if (is_new && ++n <= SHOWN_STEPS) {
            fxtap_buffer_printf(&line, "%s%" PRId64, n > 1 ? ", " : "", step);
        }
    }
    if (n > 0) {
        fx_page_label(p, "");
        fxtap_buffer_printf(p->out, "all of step%s %s%s, which %s did not run\n", n > 1 ? "s" : "",
                            fx_page_scratch_text(p, &line), n > SHOWN_STEPS ? ", ..." : "",
                            is_golden ? "target" : "golden");
    }
    fxtap_buffer_clear(&line);
}

/* The first few pairs with a verdict; with `only_missing`, only those that should have a counterpart. */
static void examples(const fx_page *p, fxtap_verdict verdict, bool only_missing)
{
    uint64_t n = 0, shown = 0;
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        bool is_one = pair->verdict == verdict && (!only_missing || pair->is_missing);
        if (is_one && shown < SHOWN_EXAMPLES) {
            example(p, pair);
            shown++;
        }
        n += is_one;
    }
    if (n > shown) {
        fx_page_label(p, "");
        fxtap_buffer_text(p->out, "and ");
        fx_page_count(p, n - shown);
        fxtap_buffer_text(p->out, " more\n");
    }
}

static void warnings(const fx_page *p)
{
    size_t n = p->report->n_warnings;
    for (size_t i = 0; i < n && i < SHOWN_WARNINGS; i++) {
        fxtap_buffer_text(p->out, i == 0 ? "\nWarning " : "        ");
        fx_page_wrapped(p, p->report->warnings[i], 8);
        fxtap_buffer_text(p->out, "\n");
    }
    if (n > SHOWN_WARNINGS) {
        fxtap_buffer_text(p->out, "        and ");
        fx_page_count(p, n - SHOWN_WARNINGS);
        fxtap_buffer_text(p->out, " more\n");
    }
}

static bool has_missing(const fxtap_report *report, fxtap_verdict verdict)
{
    for (size_t i = 0; i < report->n_pairs; i++) {
        if (report->pairs[i].is_missing && report->pairs[i].verdict == verdict) {
            return true;
        }
    }
    return false;
}

static void problems(const fx_page *p)
{
    static const struct {
        fxtap_verdict verdict;
        const char *title;
        bool only_missing; /* tensors that only one of two differently written programs has are listed elsewhere */
        bool in_origins;   /* shown as origins, if there are any */
    } kinds[] = {
        {FXTAP_DIFFERENT, "Different", false, true},
        {FXTAP_UNREADABLE, "Unreadable", false, false},
        {FXTAP_SHAPE_MISMATCH, "Shape mismatch", false, false},
        {FXTAP_DTYPE_MISMATCH, "Dtype mismatch", false, false},
        {FXTAP_ONLY_GOLDEN, "Only in golden", true, false},
        {FXTAP_ONLY_TARGET, "Only in target", true, false},
        {FXTAP_SKIPPED, "Saved on one side alone", true, false},
    };
    bool shares_nothing = judged_count(p->report) == 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool only_missing = kinds[i].only_missing && (!shares_nothing || kinds[i].verdict == FXTAP_SKIPPED);
        bool is_shown =
            only_missing ? has_missing(p->report, kinds[i].verdict) : p->report->counts[kinds[i].verdict] > 0;
        if (is_shown && !(kinds[i].in_origins && p->report->n_origins > 0)) {
            fxtap_buffer_printf(p->out, "\n%s\n", kinds[i].title);
            if (kinds[i].verdict == FXTAP_ONLY_GOLDEN || kinds[i].verdict == FXTAP_ONLY_TARGET) {
                surplus_steps(p, kinds[i].verdict == FXTAP_ONLY_GOLDEN);
            }
            examples(p, kinds[i].verdict, only_missing);
        }
    }
    if (!shares_nothing) {
        fx_page_rewritten(p);
    } else if (p->report->counts[FXTAP_ONLY_GOLDEN] > 0 && p->report->counts[FXTAP_ONLY_TARGET] > 0) {
        fxtap_buffer_text(p->out,
                          "\nIf the sides use different names for the same tensors, pair them with --map FILE.\n");
    }
    warnings(p);
}

/* A note, printed first, if most of golden has no counterpart and the result is weak. */
static void weak_pairing(const fx_page *p)
{
    uint64_t n_results = 0, n_paired = 0;
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        bool is_result =
            pair->io == FXTAP_OUTPUT && pair->verdict != FXTAP_ONLY_TARGET && pair->verdict != FXTAP_SKIPPED;
        n_results += is_result;
        n_paired += is_result && pair->verdict != FXTAP_ONLY_GOLDEN;
    }
    if (p->report->steps == NULL || 2 * n_paired >= n_results) {
        return;
    }
    fxtap_buffer_text(p->out, "\nThe two programs have little in common: only ");
    fx_page_count(p, n_paired);
    fxtap_buffer_text(p->out, " of golden's ");
    fx_page_counted(p, n_results, "result has", "results have");
    fxtap_buffer_text(p->out, "\na counterpart. Nothing else was compared; --map FILE can pair different names.\n");
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

static void tolerances(const fx_page *p)
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
        fx_page_number(p, rtol);
        fxtap_buffer_text(p->out, " atol ");
        fx_page_number(p, atol);
        fxtap_buffer_text(p->out, "\n");
    }
    if (p->report->n_rules > 0) {
        fxtap_buffer_text(p->out, n_shown == 0 ? "Judged  by " : "        and by ");
        fx_page_counted(p, p->report->n_rules, "rule given", "rules given");
        fxtap_buffer_text(p->out, "\n");
    }
}

static bool is_across_dtypes(const fxtap_pair *pair)
{
    double rtol, atol;
    fx_default_tolerance(fx_judged_dtype(pair->golden_dtype, pair->target_dtype), &rtol, &atol);
    bool is_operator = pair->operator_name != NULL && pair->operator_name[0] != '\0';
    return pair->measured && is_operator && !pair->is_literal && pair->golden_dtype != pair->target_dtype && rtol > 0.0;
}

/* Where tolerances cannot tell rounding from a fault, another command can. */
static void suggest_verify(const fx_page *p)
{
    const fxtap_report *report = p->report;
    if (report->verified.is_known) {
        return;
    }
    bool is_asked = report->n_origins > 0 && report->origins[0].reason == FXTAP_ORIGIN_DRIFT;
    for (size_t i = 0; !is_asked && i < report->n_pairs; i++) {
        is_asked = is_across_dtypes(&report->pairs[i]);
    }
    if (is_asked) {
        fxtap_buffer_text(p->out, "\nIs it rounding?  fxtap verify TARGET --against GOLDEN\n");
    }
}

static fx_page make_page(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    fx_page p = {.report = report, .options = options, .out = out, .width = options->width > 0 ? options->width : 80};
    p.width = p.width < 60 ? 60 : p.width > 160 ? 160 : p.width;
    return p;
}

void fx_report_print_headline(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    fx_page p = make_page(report, options, out);
    headline(&p);
}

void fx_report_print_details(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    fx_page p = make_page(report, options, out);
    if (options->quiet) {
        return;
    }
    weak_pairing(&p);
    fx_page_origins(&p);
    if (report->explanation != NULL) {
        fxtap_buffer_printf(out, "\nWhy these are a pair\n");
        fx_page_lines(&p, report->explanation);
    }
    problems(&p);
    accounts(&p);
    tolerances(&p);
    suggest_verify(&p);
}

void fx_report_print_text(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    fx_report_print_headline(report, options, out);
    fx_report_print_details(report, options, out);
}
