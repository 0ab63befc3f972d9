/* text_origin.c - the origins, for a terminal: a block for each of the first few, the number of the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/link.h"
#include "compare/rules.h"
#include "report/page_text.h"

#define SHOWN_ORIGINS 4
#define SHOWN_WORST 3
#define SHOWN_GROWN 5
#define WORTH_SHOWING_GROWTH 3.0

static void call_place(const fx_page *p, const fxtap_pair *pair)
{
    if (pair->rank > 0) {
        fxtap_buffer_printf(p->out, "rank %" PRId32 ", ", pair->rank);
    }
    fxtap_buffer_printf(p->out, "graph %" PRIu32 ", step %" PRId64, pair->graph, pair->step);
}

/* ", in target graph 3, step 1", if golden's numbers are others. */
static void target_call_place(const fx_page *p, const fxtap_pair *pair)
{
    bool is_pair = pair->verdict != FXTAP_ONLY_GOLDEN && pair->verdict != FXTAP_ONLY_TARGET;
    if (is_pair && (pair->target_graph != pair->graph || pair->target_step != pair->step)) {
        fxtap_buffer_printf(p->out, "; in target graph %" PRIu32 ", step %" PRId64, pair->target_graph,
                            pair->target_step);
    }
}

static void place_lines(const fx_page *p, const fxtap_pair *pair)
{
    if (pair->source_file[0] != '\0') {
        fx_page_label(p, "source");
        fx_page_text(p, pair->source_file, p->width - 20, true);
        fxtap_buffer_printf(p->out, ":%" PRId32 "\n", pair->source_line);
        if (pair->source_code[0] != '\0') {
            fx_page_label(p, "");
            fx_page_text(p, pair->source_code, p->width - 10, false);
            fxtap_buffer_text(p->out, "\n");
        }
    }
    if (pair->module_path[0] != '\0') {
        fx_page_label(p, "module");
        fx_page_text(p, pair->module_path, p->width - 10, true);
        fxtap_buffer_text(p->out, "\n");
    }
    if (pair->step < 0) {
        return; /* a plain file is located by its name */
    }
    fx_page_label(p, "where");
    call_place(p, pair);
    fxtap_buffer_printf(p->out, ", %s ", fx_io_name(pair->io));
    fx_page_text(p, pair->position, p->width - 48, false);
    target_call_place(p, pair);
    fxtap_buffer_text(p->out, "\n");
}

/* A cosine very close to 1 is printed as its distance from 1. */
static void cosine(const fx_page *p, double value)
{
    fxtap_buffer_text(p->out, ", cosine ");
    if (value < 1.0 && value > 0.999) {
        fxtap_buffer_text(p->out, "1 - ");
        fxtap_buffer_digits(p->out, 1.0 - value, 2);
    } else {
        fxtap_buffer_digits(p->out, value, 4);
    }
}

static void limit_line(const fx_page *p, const char *name, double value, double limit, bool is_broken)
{
    if (is_broken) {
        fx_page_label(p, "");
        fx_page_two_numbers(p, name, value, ", the limit is ", limit);
        fxtap_buffer_text(p->out, "\n");
    }
}

/* The metrics that exceed a rule's limits: they may be the only reason why the pair differs. */
static void limit_lines(const fx_page *p, const fxtap_pair *pair)
{
    fx_tolerance given;
    fx_tolerance_for(p->report->rules, p->report->n_rules, pair, &given);
    limit_line(p, "cosine ", pair->cosine, given.min_cosine, given.min_cosine >= 0 && pair->cosine < given.min_cosine);
    limit_line(p, "max abs ", pair->max_abs_err, given.max_abs,
               given.max_abs >= 0 && pair->max_abs_err > given.max_abs);
    limit_line(p, "relative L2 ", pair->rel_l2, given.max_rel_l2,
               given.max_rel_l2 >= 0 && pair->rel_l2 > given.max_rel_l2);
    limit_line(p, "max ulp ", pair->max_ulp, given.max_ulp, given.max_ulp >= 0 && pair->max_ulp > given.max_ulp);
}

/* "3 elements are NaN on one side alone", and the beginning of the next line. */
static void non_finite_line(const fx_page *p, uint64_t n, const char *one, const char *more)
{
    if (n > 0) {
        fx_page_counted(p, n, "element ", "elements ");
        fxtap_buffer_text(p->out, n == 1 ? one : more);
        fx_page_label(p, "");
    }
}

static void error_lines(const fx_page *p, const fxtap_pair *pair)
{
    fx_page_label(p, "error");
    if (!pair->measured) {
        fx_page_wrapped(p, pair->detail, 10);
        fxtap_buffer_text(p->out, "\n");
        return;
    }
    uint64_t n_not_finite = pair->nan_mismatched + pair->inf_mismatched;
    if (n_not_finite > 0) {
        non_finite_line(p, pair->nan_mismatched, "is NaN on one side alone\n", "are NaN on one side alone\n");
        non_finite_line(p, pair->inf_mismatched, "is infinite on one side, or of the other sign\n",
                        "are infinite on one side, or of the other sign\n");
    }
    if (n_not_finite == 0 || pair->max_abs_err > 0) { /* NaN: nothing is finite on both sides */
        fxtap_buffer_text(p->out, n_not_finite > 0 ? "elsewhere relative L2 " : "relative L2 ");
        fx_page_number(p, pair->rel_l2);
        fxtap_buffer_text(p->out, ", max abs ");
        fx_page_number(p, pair->max_abs_err);
        cosine(p, pair->cosine);
        fxtap_buffer_text(p->out, "\n");
        fx_page_label(p, "");
    }
    fx_page_count(p, pair->mismatched);
    fxtap_buffer_text(p->out, " of ");
    fx_page_counted(p, pair->count, "element outside", "elements outside");
    fxtap_buffer_text(p->out, " rtol ");
    fx_page_number(p, pair->rtol);
    fxtap_buffer_text(p->out, ", atol ");
    fx_page_number(p, pair->atol);
    fxtap_buffer_text(p->out, "\n");
    limit_lines(p, pair);
}

static void text_line(const fx_page *p, const char *label, const char *before, const char *text, bool keep_end)
{
    if (text != NULL) {
        fx_page_label(p, label);
        fxtap_buffer_text(p->out, before);
        fx_page_text(p, text, p->width - 10 - (int32_t)strlen(before), keep_end);
        fxtap_buffer_text(p->out, "\n");
    }
}

/* The operators in between, and the location of the first: the pair's own location is where their result is read. */
static void between_lines(const fx_page *p, const fxtap_origin *origin)
{
    if (origin->between != NULL) {
        fx_page_label(p, "between");
        fx_page_wrapped(p, origin->between, 10);
        fxtap_buffer_text(p->out, "\n");
    }
    text_line(p, "", "", origin->between_source, true);
    text_line(p, "", "", origin->between_code, false);
    text_line(p, "", "in ", origin->between_module, true);
}

static void input_line(const fx_page *p, const fxtap_origin *origin)
{
    if (origin->pair->io == FXTAP_INPUT || !origin->pair->measured) {
        return;
    }
    if (origin->input_error > 0.0) {
        fx_page_label(p, "inputs");
        fxtap_buffer_text(p->out, "relative L2 ");
        fx_page_number(p, origin->input_error);
        fxtap_buffer_text(p->out, ": the error grew ");
        fxtap_buffer_digits(p->out, origin->growth, 2);
        fxtap_buffer_text(p->out, " times\n");
    } else if (origin->reason != FXTAP_ORIGIN_REGION) {
        fx_page_label(p, "inputs");
        fxtap_buffer_text(p->out, "equal\n");
    }
}

static void worst_lines(const fx_page *p, const fxtap_pair *pair)
{
    for (size_t i = 0; i < pair->n_worst && i < SHOWN_WORST; i++) {
        fx_page_label(p, i == 0 ? "worst" : "");
        fxtap_buffer_text(p->out, "at [");
        fx_print_coordinates(p->out, pair->worst[i].index, pair->ndim, pair->shape);
        fx_page_two_numbers(p, "]: golden ", pair->worst[i].golden, ", target ", pair->worst[i].target);
        fxtap_buffer_text(p->out, "\n");
    }
}

static void statistics_line(const fx_page *p, const char *label, const fxtap_stats *stats)
{
    fx_page_label(p, label);
    fxtap_buffer_text(p->out, "mean ");
    fx_page_number(p, stats->mean);
    fxtap_buffer_text(p->out, "  std ");
    fx_page_number(p, stats->std);
    if (stats->has_range) {
        fxtap_buffer_text(p->out, "  min ");
        fx_page_number(p, stats->min);
        fxtap_buffer_text(p->out, "  max ");
        fx_page_number(p, stats->max);
    }
    uint64_t n_bad = stats->count - stats->finite_count;
    if (n_bad > 0) {
        fxtap_buffer_text(p->out, "  not finite ");
        fx_page_count(p, n_bad);
    }
    fxtap_buffer_text(p->out, "\n");
}

static void heading(const fx_page *p, const fxtap_origin *origin, bool is_first)
{
    const fxtap_pair *pair = origin->pair;
    const char *kind = origin->reason == FXTAP_ORIGIN_WEIGHT ? "weight " : "input ";
    fxtap_buffer_text(p->out, "\n");
    fx_page_colour(p, "1");
    fxtap_buffer_text(p->out, is_first ? "Origin  " : "Also    ");
    int32_t used = 8;
    if (origin->input != NULL) {
        fxtap_buffer_text(p->out, kind);
        used += (int32_t)strlen(kind) + fx_page_text(p, origin->input, p->width / 2 - 16, false);
        fx_page_colour(p, "0");
        fxtap_buffer_text(p->out, ", read by ");
        used += 10 + fx_page_text(p, pair->node, p->width / 2 - 16, false);
    } else {
        const char *before = origin->reason == FXTAP_ORIGIN_BEFORE ? "before " : "";
        fxtap_buffer_text(p->out, before);
        used += (int32_t)strlen(before) + fx_page_text(p, pair->node, p->width / 2, false);
        fx_page_colour(p, "0");
    }
    if (pair->operator_name[0] != '\0') {
        fxtap_buffer_text(p->out, "  ");
        fx_page_text(p, pair->operator_name, p->width - used - 2, false);
    }
    if (origin->other_operator != NULL) {
        fxtap_buffer_text(p->out, "\n        against ");
        fx_page_text(p, origin->other_operator, p->width - 40, false);
        fxtap_buffer_text(p->out, " in target");
    }
    fxtap_buffer_text(p->out, "\n");
    if (origin->pair->operator_name[0] != '\0') { /* a plain file has no known inputs */
        fxtap_buffer_printf(p->out, "        %s\n", fx_origin_reason_text(origin->reason));
    }
    int64_t step;
    if (fx_update_before(p->report, origin, &step)) {
        char line[160];
        snprintf(line, sizeof line,
                 "the weights differ after step %" PRId64 "'s update, which was not dumped: compile "
                 "opt.step as well",
                 step);
        fxtap_buffer_text(p->out, "        ");
        fx_page_wrapped(p, line, 8);
        fxtap_buffer_text(p->out, "\n");
    }
}

/* The evidence for the pair. */
static void pairing_line(const fx_page *p, const fxtap_pair *pair)
{
    fx_page_label(p, "pairing");
    fxtap_buffer_printf(p->out, "%s", fxtap_pairing_name(pair->pairing));
    for (size_t i = 0, n = 0; fxtap_evidence_name(i) != NULL && n < 5; i++) {
        if ((pair->evidence >> i & 1u) != 0) {
            fxtap_buffer_printf(p->out, "%s%s", n++ == 0 ? ": " : ", ", fxtap_evidence_name(i));
        }
    }
    fxtap_buffer_text(p->out, "\n");
}

/* An origin that is shown, and the number of origins that it represents. */
typedef struct shown_origin {
    const fxtap_origin *origin;
    size_t n_again;   /* the same operator in other calls */
    size_t n_weights; /* other weights of the same call */
} shown_origin;

static void origin_block(const fx_page *p, const shown_origin *shown, bool is_first)
{
    const fxtap_origin *origin = shown->origin;
    const fxtap_pair *pair = origin->pair;
    heading(p, origin, is_first);
    if (origin->reason == FXTAP_ORIGIN_BEFORE) {
        between_lines(p, origin); /* that is where it began */
    }
    place_lines(p, pair);
    text_line(p, "target", "", origin->other_source, true);
    text_line(p, "", "", origin->other_code, false);
    error_lines(p, pair);
    text_line(p, "literal", "", origin->literal, false);
    if (origin->reason != FXTAP_ORIGIN_BEFORE) {
        between_lines(p, origin);
    }
    input_line(p, origin);
    worst_lines(p, pair);
    if (pair->golden_stats != NULL) {
        statistics_line(p, "golden", pair->golden_stats);
        statistics_line(p, "target", pair->target_stats);
    }
    if (pair->pairing > FXTAP_PAIR_MAPPED) {
        pairing_line(p, pair);
    }
    if (origin->n_carried > 0) {
        fx_page_label(p, "carried");
        fxtap_buffer_text(p->out, "on by ");
        fx_page_counted(p, origin->n_carried, "operator", "operators");
        fxtap_buffer_text(p->out, "\n");
    }
    if (shown->n_weights > 0) {
        fxtap_buffer_text(p->out, "        and ");
        fx_page_counted(p, shown->n_weights, "more weight\n", "more weights\n");
    }
    if (shown->n_again > 0) {
        fx_page_label(p, "again");
        fxtap_buffer_text(p->out, "in ");
        fx_page_counted(p, shown->n_again, "other call of the graph\n", "other calls of the graph\n");
    }
}

static bool is_same_place(const fxtap_origin *a, const fxtap_origin *b)
{
    return a->reason == b->reason && a->pair->graph == b->pair->graph && strcmp(a->pair->node, b->pair->node) == 0 &&
           strcmp(a->pair->operator_name, b->pair->operator_name) == 0;
}

static bool are_weights_of_a_call(const fxtap_report *report, const fxtap_origin *a, const fxtap_origin *b)
{
    return a->reason == FXTAP_ORIGIN_WEIGHT && b->reason == FXTAP_ORIGIN_WEIGHT &&
           fx_group_of(report, a->pair) == fx_group_of(report, b->pair);
}

typedef struct selection {
    shown_origin shown[SHOWN_ORIGINS];
    size_t n_shown;
    size_t n_more;
    size_t n_following;
} selection;

/* Counts an origin with the shown origin that represents it: the same place of another call, or (if it does not follow
 * from an earlier call) another weight of the same call. False if there is none. */
static bool is_represented(const fxtap_report *report, selection *chosen, const fxtap_origin *origin)
{
    for (size_t i = 0; i < chosen->n_shown; i++) {
        shown_origin *shown = &chosen->shown[i];
        if (!origin->follows && are_weights_of_a_call(report, shown->origin, origin)) {
            shown->n_weights++;
            return true;
        }
        if (is_same_place(shown->origin, origin)) {
            shown->n_again++;
            return true;
        }
    }
    return false;
}

static void choose(const fxtap_report *report, selection *out)
{
    for (size_t i = 0; i < report->n_origins; i++) {
        const fxtap_origin *origin = &report->origins[i];
        if (is_represented(report, out, origin)) {
            continue;
        } else if (origin->follows) {
            out->n_following++;
        } else if (out->n_shown < SHOWN_ORIGINS) {
            out->shown[out->n_shown++] = (shown_origin){.origin = origin};
        } else {
            out->n_more++;
        }
    }
}

/* ---- the operators that amplify an error most ---- */

static bool is_same_operator(const fxtap_pair *a, const fxtap_pair *b)
{
    return a->graph == b->graph && strcmp(a->node, b->node) == 0 && strcmp(a->operator_name, b->operator_name) == 0;
}

/* Inserts a pair by its growth, keeping only the worst of each operator. Returns the new length. */
static size_t keep_grown(const fxtap_pair *list[SHOWN_GROWN], size_t n, const fxtap_pair *pair)
{
    size_t at = 0, last = 0;
    while (last < n && !is_same_operator(list[last], pair)) {
        last++;
    }
    while (at < n && list[at]->growth >= pair->growth) {
        at++;
    }
    if (at == SHOWN_GROWN || at > last) {
        return n;
    }
    bool is_new = last == n;
    last = last < SHOWN_GROWN ? last : SHOWN_GROWN - 1;
    memmove(&list[at + 1], &list[at], (last - at) * sizeof *list);
    list[at] = pair;
    return n + (is_new && n < SHOWN_GROWN);
}

static size_t list_grown(const fxtap_report *report, const fxtap_pair *out[SHOWN_GROWN])
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_pairs; i++) {
        const fxtap_pair *pair = &report->pairs[i];
        bool is_result = pair->io != FXTAP_INPUT && pair->verdict == FXTAP_DIFFERENT;
        if (is_result && pair->growth >= WORTH_SHOWING_GROWTH && isfinite(pair->growth)) {
            n = keep_grown(out, n, pair);
        }
    }
    return n;
}

/* "rank 1, graph 1, step 0", if there is more than one. */
static void grown_place(const fx_page *p, const fxtap_pair *pair)
{
    if (p->report->n_groups > 1 && pair->step >= 0) {
        fx_page_label(p, "");
        fxtap_buffer_printf(p->out, "%*sin ", 12, "");
        call_place(p, pair);
        fxtap_buffer_text(p->out, "\n");
    }
}

static void grown(const fx_page *p)
{
    const fxtap_pair *list[SHOWN_GROWN];
    size_t n = list_grown(p->report, list);
    if (n == 0) {
        fxtap_buffer_text(p->out, "\n        No operator made the error more than 3 times larger.\n");
    }
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_text(p->out, i == 0 ? "\nThe error grew most in\n  " : "  ");
        size_t from = p->out->length;
        fxtap_buffer_digits(p->out, list[i]->growth, 2);
        fxtap_buffer_printf(p->out, " times%*s", (int)(from + 14 > p->out->length ? from + 14 - p->out->length : 1),
                            "");
        int32_t used = fx_page_text(p, list[i]->node, 30, false);
        fxtap_buffer_printf(p->out, "%*s", used < 30 ? 30 - used + 2 : 2, "");
        fx_page_two_numbers(p, "relative L2 ", list[i]->input_error, " to ", list[i]->rel_l2);
        fxtap_buffer_text(p->out, "\n");
        grown_place(p, list[i]);
    }
}

void fx_page_origins(const fx_page *p)
{
    const fxtap_report *report = p->report;
    selection chosen = {.n_shown = 0};
    choose(report, &chosen);
    for (size_t i = 0; i < chosen.n_shown; i++) {
        origin_block(p, &chosen.shown[i], i == 0);
    }
    if (chosen.n_more > 0) {
        fxtap_buffer_text(p->out, "\n        and ");
        fx_page_counted(p, chosen.n_more, "more origin", "more origins");
        fxtap_buffer_text(p->out, "; --json and --html list all\n");
    }
    if (chosen.n_following > 0) {
        fxtap_buffer_text(p->out, "\n        ");
        fx_page_counted(p, chosen.n_following, "place in a later call differs", "places in later calls differ");
        fxtap_buffer_text(p->out, " too, which may follow from this\n");
    }
    if (chosen.n_shown > 0 && chosen.shown[0].origin->reason == FXTAP_ORIGIN_DRIFT) {
        grown(p);
    }
    const fxtap_pair *non_finite = fxtap_report_first_non_finite(report);
    if (non_finite != NULL) {
        fxtap_buffer_text(p->out, "\nFirst NaN or Inf that golden has not\n        ");
        fx_page_text(p, non_finite->name, p->width - 8, false);
        fxtap_buffer_text(p->out, "\n");
    }
}
