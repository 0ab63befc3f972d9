/* text.c - a verification for a terminal: the answer first, then the first wrong operator, then the others in short. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page_text.h"
#include "util/memory.h"
#include "util/number.h"
#include "verify/print.h"

#define SHOWN_ALSO 10
#define SHOWN_WORST 3
#define SHOWN_REASONS 5
#define SHOWN_DTYPES 2
#define WORTH_SHOWING_RATIO 8.0
#define WORTH_SHOWING_SHARE 0.01

/* ---- the headline ---- */

/* "bfloat16's", "float32's and bfloat16's", "their dtypes'"; NULL if no result is floating-point. */
static const char *whose_rounding(const fxtap_verification *v, char *out, size_t capacity)
{
    bool occurs[FXTAP_DTYPE_COUNT] = {false};
    const char *names[SHOWN_DTYPES] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < v->n_results; i++) {
        const fxtap_verify_result *result = &v->results[i];
        fxtap_dtype_class class_of = fxtap_dtype_class_of(result->place.dtype);
        bool rounds = class_of == FXTAP_CLASS_FLOAT || class_of == FXTAP_CLASS_COMPLEX;
        if (rounds && result->verdict != FXTAP_VERIFY_NOT_REPLAYED && !occurs[result->place.dtype]) {
            occurs[result->place.dtype] = true;
            if (n < SHOWN_DTYPES) {
                names[n] = fxtap_dtype_name(result->place.dtype);
            }
            n++;
        }
    }
    if (n == 0) {
        return NULL;
    }
    snprintf(out, capacity, n == 1 ? "%s's" : n == 2 ? "%s's and %s's" : "their dtypes'", names[0], names[1]);
    return out;
}

static uint64_t judged_count(const fxtap_verification *v)
{
    return v->n_operators - v->counts[FXTAP_VERIFY_NOT_REPLAYED];
}

/* The reasons why operators were not replayed, in order of first occurrence. */
typedef struct reason_count {
    const char *reason;
    uint64_t count;
} reason_count;

/* Fills `out` with the first SHOWN_REASONS; returns the number of different ones. */
static size_t count_reasons(const fxtap_verification *v, reason_count out[SHOWN_REASONS])
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_operators; i++) {
        const char *reason = fx_deciding_result(v, i)->reason;
        size_t at = 0;
        if (v->operators[i].verdict != FXTAP_VERIFY_NOT_REPLAYED) {
            continue;
        }
        while (at < n && at < SHOWN_REASONS && strcmp(out[at].reason, reason) != 0) {
            at++;
        }
        if (at < SHOWN_REASONS && at == n) {
            out[at] = (reason_count){reason, 0};
        }
        n += at == n;
        if (at < SHOWN_REASONS) {
            out[at].count++;
        }
    }
    return n;
}

static void not_replayed(const fx_page *p, const fxtap_verification *v)
{
    uint64_t n = v->counts[FXTAP_VERIFY_NOT_REPLAYED];
    if (n > 0) {
        reason_count reasons[SHOWN_REASONS];
        size_t n_reasons = count_reasons(v, reasons);
        fxtap_buffer_text(p->out, "; ");
        fx_page_count(p, n);
        fxtap_buffer_text(p->out, " not replayed");
        if (n_reasons == 1 && reasons[0].reason[0] != '\0') {
            fxtap_buffer_text(p->out, " (");
            fx_page_text(p, reasons[0].reason, p->width, false);
            fxtap_buffer_text(p->out, ")");
        }
    }
}

/* Prints what `write` does, wrapped after `indent` columns. */
static void wrapped(const fx_page *p, const fxtap_verification *v, int32_t indent,
                    void (*write)(const fx_page *p, const fxtap_verification *v))
{
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    fx_page scratch = *p;
    scratch.out = &line;
    write(&scratch, v);
    fx_page_wrapped(p, fx_page_scratch_text(p, &line), indent);
    fxtap_buffer_clear(&line);
    fxtap_buffer_text(p->out, "\n");
}

static void right_sentence(const fx_page *p, const fxtap_verification *v)
{
    char whose[80];
    uint64_t n = judged_count(v);
    if (v->golden != NULL) {
        fx_page_counted(p, n, "operator does what golden's does", "operators do what golden's do");
    } else {
        fx_page_counted(p, n, "operator is right", "operators are right");
    }
    if (n > 0 && whose_rounding(v, whose, sizeof whose) != NULL) {
        fxtap_buffer_printf(p->out, " within %s rounding", whose);
    }
    not_replayed(p, v);
}

static void nothing_sentence(const fx_page *p, const fxtap_verification *v)
{
    fxtap_buffer_text(p->out, v->n_operators > 0 ? "no operator could be replayed" : "there is no operator to verify");
    not_replayed(p, v);
}

static void wrong_sentence(const fx_page *p, const fxtap_verification *v)
{
    uint64_t n_wrong = v->counts[FXTAP_VERIFY_WRONG], n_biased = v->counts[FXTAP_VERIFY_BIASED];
    fx_page_count(p, n_wrong + n_biased);
    fxtap_buffer_text(p->out, " of ");
    fx_page_counted(p, judged_count(v), "operator", "operators");
    bool is_one = n_wrong + n_biased == 1;
    if (v->golden != NULL) {
        fxtap_buffer_text(p->out, is_one ? " does not do what golden's does" : " do not do what golden's do");
    } else {
        fxtap_buffer_text(p->out, is_one ? " is wrong" : " are wrong");
    }
    not_replayed(p, v);
}

static void headline(const fx_page *p, const char *colour, const char *verdict)
{
    fx_page_colour(p, colour);
    fxtap_buffer_text(p->out, verdict);
    fx_page_colour(p, "0");
    fxtap_buffer_text(p->out, "  ");
}

/* ---- the first wrong operator ---- */

/* "gelu" of "aten.gelu.default". */
static void short_name(const char *operator_name, char *out, size_t capacity)
{
    const char *dot = strchr(operator_name, '.');
    const char *name = dot == NULL ? operator_name : dot + 1;
    snprintf(out, capacity, "%.*s", (int)(strcspn(name, ".") > 60 ? 60 : strcspn(name, ".")), name);
}

/* "21 %", "0.5 %", "0.0012 %", "no" */
static void percent(fxtap_buffer *out, double share)
{
    if (share == 0) {
        fxtap_buffer_text(out, "none");
        return;
    }
    fxtap_buffer_digits(out, 100 * share, share < 0.995 ? 2 : 3); /* not "1e+02" */
    fxtap_buffer_text(out, " %");
}

/* Numbers from 10 on as whole numbers with commas. */
static void times(const fx_page *p, double value)
{
    if (value >= 10 && value < 1e15) {
        double scale = pow(10, fmax(0, floor(log10(value)) - 2)); /* three digits */
        fx_page_count(p, (uint64_t)(rint(value / scale) * scale));
    } else {
        fxtap_buffer_digits(p->out, value, 2);
    }
}

static bool is_wide(fxtap_dtype dtype)
{
    return dtype == FXTAP_FLOAT32 || dtype == FXTAP_FLOAT64 || dtype == FXTAP_COMPLEX64 || dtype == FXTAP_COMPLEX128;
}

static bool is_real(const fxtap_verify_place *place)
{
    fxtap_dtype_class class_of = fxtap_dtype_class_of(place->dtype);
    return class_of == FXTAP_CLASS_FLOAT || class_of == FXTAP_CLASS_COMPLEX;
}

static void size_line(const fx_page *p, const fxtap_rounding_error *error)
{
    fx_page_label(p, "size");
    if (error->ratio >= 1) {
        fxtap_buffer_text(p->out, "error ");
        times(p, error->ratio);
        fxtap_buffer_text(p->out, " times what rounding allows");
    } else {
        fxtap_buffer_text(p->out, "error within what rounding allows");
    }
    if (error->max_ratio > fmax(WORTH_SHOWING_RATIO, error->ratio)) {
        fxtap_buffer_text(p->out, ", at the worst element ");
        times(p, error->max_ratio);
        fxtap_buffer_text(p->out, " times");
    }
    fxtap_buffer_text(p->out, "\n");
}

/* The share of misrounded results means something where kernels compute more precisely than the dtype. */
static void shape_sentence(fxtap_buffer *out, const fxtap_verify_result *result)
{
    char name[64];
    short_name(result->place.operator_name, name, sizeof name);
    percent(out, fx_misrounded_share(&result->error));
    fxtap_buffer_text(out, " of its results are not the correctly rounded ones");
    if (result->has_third) {
        fxtap_buffer_text(out, "; ");
        percent(out, fx_misrounded_share(&result->third));
        fxtap_buffer_printf(out, " is usual for %s in %s", name, fxtap_dtype_name(result->place.dtype));
    }
}

static void lean_sentence(fxtap_buffer *out, const fxtap_rounding_error *error)
{
    uint64_t most = error->up > error->down ? error->up : error->down;
    if (error->misrounded >= 10 && (double)most > 0.75 * (double)error->misrounded) {
        fxtap_buffer_text(out, "; ");
        percent(out, (double)most / (double)error->misrounded);
        fxtap_buffer_printf(out, " of those are too %s", error->up > error->down ? "large" : "small");
    }
}

static void shape_line(const fx_page *p, const fxtap_verify_result *result)
{
    bool is_worth = result->verdict == FXTAP_VERIFY_BIASED || fx_misrounded_share(&result->error) > WORTH_SHOWING_SHARE;
    if (is_wide(result->place.dtype) || result->error.misrounded == 0 || !is_worth) {
        return;
    }
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    shape_sentence(&line, result);
    lean_sentence(&line, &result->error);
    fx_page_label(p, "shape");
    fx_page_wrapped(p, fx_page_scratch_text(p, &line), 10);
    fxtap_buffer_clear(&line);
    fxtap_buffer_text(p->out, "\n");
}

static void discrete_line(const fx_page *p, const fxtap_rounding_error *error)
{
    fx_page_label(p, "values");
    fx_page_count(p, error->misrounded);
    fxtap_buffer_text(p->out, " of ");
    fx_page_counted(p, error->count, "value differs", "values differ");
    fxtap_buffer_text(p->out, " from the exact one\n");
}

static void worst_lines(const fx_page *p, const fxtap_verify_result *result)
{
    const fxtap_verify_place *place = &result->place;
    for (size_t i = 0; i < result->error.n_worst && i < SHOWN_WORST; i++) {
        const fxtap_rounding_point *point = &result->error.worst[i];
        fx_page_label(p, i == 0 ? "worst" : "");
        fxtap_buffer_text(p->out, "at [");
        fx_print_coordinates(p->out, point->index, place->ndim, place->shape);
        fx_page_two_numbers(p, "]: saved ", point->saved, ", exact ", point->reference);
        fxtap_buffer_text(p->out, "\n");
    }
}

static void where(const fx_page *p, const fxtap_verify_place *place)
{
    if (place->rank > 0) {
        fxtap_buffer_printf(p->out, "rank %" PRId32 ", ", place->rank);
    }
    fxtap_buffer_printf(p->out, "graph %" PRIu32 ", step %" PRId64, place->graph, place->step);
}

static void place_lines(const fx_page *p, const fxtap_verify_place *place)
{
    if (place->source_file[0] != '\0') {
        fx_page_label(p, "source");
        fx_page_text(p, place->source_file, p->width - 20, true);
        fxtap_buffer_printf(p->out, ":%" PRId32 "\n", place->source_line);
    }
    if (place->source_code[0] != '\0') {
        fx_page_label(p, "");
        fx_page_text(p, place->source_code, p->width - 10, false);
        fxtap_buffer_text(p->out, "\n");
    }
    if (place->module_path[0] != '\0') {
        fx_page_label(p, "module");
        fx_page_text(p, place->module_path, p->width - 10, true);
        fxtap_buffer_text(p->out, "\n");
    }
    fx_page_label(p, "where");
    where(p, place);
    fxtap_buffer_text(p->out, ", ");
    fx_page_text(p, place->slot, p->width - 48, false);
    fxtap_buffer_text(p->out, "\n");
    fx_page_label(p, "result");
    fxtap_buffer_printf(p->out, "%s [", fxtap_dtype_name(place->dtype));
    fx_print_shape(p->out, place->ndim, place->shape, ", ");
    fxtap_buffer_text(p->out, "]\n");
}

/* What differs only because of it, and where that begins. */
static void downstream_line(const fx_page *p, const fxtap_verification *v, size_t i)
{
    fx_downstream *found = NULL;
    if (v->golden == NULL) {
        return;
    }
    if (fx_find_downstream(v, &found) != FXTAP_OK) {
        p->out->status = FXTAP_E_NOMEM;
    } else if (found[i].count > 0) {
        const fxtap_verify_place *first = &v->results[found[i].first].place;
        fx_page_label(p, "carried");
        fx_page_counted(p, found[i].count, "later tensor differs", "later tensors differ");
        fxtap_buffer_text(p->out, " only because of it, first ");
        fx_page_text(p, first->node, p->width / 3, false);
        if (first->source_file[0] != '\0') {
            fxtap_buffer_text(p->out, "\n");
            fx_page_label(p, "");
            fx_page_text(p, first->source_file, p->width - 20, true);
            fxtap_buffer_printf(p->out, ":%" PRId32, first->source_line);
        }
        fxtap_buffer_text(p->out, "\n");
    }
    fx_free(found);
}

static void first_wrong(const fx_page *p, const fxtap_verification *v, size_t i)
{
    const fxtap_verify_result *result = fx_deciding_result(v, i);
    place_lines(p, &result->place);
    if (result->is_measured && is_real(&result->place)) {
        size_line(p, &result->error);
        shape_line(p, result);
    } else if (result->is_measured) {
        discrete_line(p, &result->error);
    }
    if (result->reason[0] != '\0') {
        fx_page_label(p, "reason");
        fx_page_wrapped(p, result->reason, 10);
        fxtap_buffer_text(p->out, "\n");
    }
    worst_lines(p, result);
    downstream_line(p, v, i);
}

/* ---- the others ---- */

/* What accuses it, in a few words. */
static void in_short(const fx_page *p, const fxtap_verify_result *result)
{
    const fxtap_rounding_error *error = &result->error;
    if (result->is_measured && is_real(&result->place) && result->verdict == FXTAP_VERIFY_BIASED &&
        error->misrounded > 0) {
        percent(p->out, fx_misrounded_share(error));
        fxtap_buffer_text(p->out, " not correctly rounded");
        if (result->has_third) {
            fxtap_buffer_text(p->out, ", usual ");
            percent(p->out, fx_misrounded_share(&result->third));
        }
    } else if (result->reason[0] != '\0') {
        fxtap_buffer_text(p->out, result->reason);
    } else if (result->is_measured) {
        fxtap_buffer_text(p->out, "error ");
        times(p, error->ratio);
        fxtap_buffer_text(p->out, " times what rounding allows");
    }
}

static void also_line(const fx_page *p, const fxtap_verify_result *result)
{
    fx_page_label(p, "");
    int32_t used = 12 + fx_page_text(p, result->place.node, p->width / 2, false);
    fxtap_buffer_text(p->out, "  ");
    fx_page_text(p, result->place.operator_name, p->width - used, false);
    fxtap_buffer_text(p->out, "\n");
    fx_page_label(p, "");
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    fx_page scratch = *p;
    scratch.out = &line;
    where(&scratch, &result->place);
    fxtap_buffer_text(&line, ": ");
    in_short(&scratch, result);
    fxtap_buffer_text(p->out, "  ");
    fx_page_text(p, fx_page_scratch_text(p, &line), p->width - 12, false);
    fxtap_buffer_text(p->out, "\n");
    fxtap_buffer_clear(&line);
}

static void also(const fx_page *p, const fxtap_verification *v, size_t first)
{
    size_t n = 0;
    for (size_t i = first + 1; i < v->n_operators; i++) {
        if (fx_verdict_accuses(v->operators[i].verdict)) {
            if (n == 0) {
                fxtap_buffer_text(p->out, "\nAlso wrong\n");
            }
            if (n++ < SHOWN_ALSO) {
                also_line(p, fx_deciding_result(v, i));
            }
        }
    }
    if (n > SHOWN_ALSO) {
        fx_page_label(p, "");
        fxtap_buffer_text(p->out, "and ");
        fx_page_count(p, n - SHOWN_ALSO);
        fxtap_buffer_text(p->out, " more\n");
    }
}

static void verdict_counts(const fx_page *p, const fxtap_verification *v)
{
    const char *before = "";
    for (int verdict = FXTAP_VERIFY_EXACT; verdict <= FXTAP_VERIFY_COUNT; verdict++) {
        fxtap_verify_verdict which = (fxtap_verify_verdict)(verdict % FXTAP_VERIFY_COUNT);
        if (v->counts[which] > 0) {
            fxtap_buffer_printf(p->out, "%s%s ", before, fxtap_verify_verdict_name(which));
            fx_page_count(p, v->counts[which]);
            before = ", ";
        }
    }
}

static void accounts(const fx_page *p, const fxtap_verification *v)
{
    if (v->n_operators == 0) {
        return;
    }
    fxtap_buffer_text(p->out, "\nResult  ");
    wrapped(p, v, 8, verdict_counts);
    reason_count reasons[SHOWN_REASONS];
    size_t n = count_reasons(v, reasons);
    if (n == 0) {
        return;
    }
    fxtap_buffer_text(p->out, "Not replayed\n");
    for (size_t i = 0; i < n && i < SHOWN_REASONS; i++) {
        fx_page_label(p, "");
        fx_page_count(p, reasons[i].count);
        fxtap_buffer_text(p->out, "  ");
        fx_page_wrapped(p, reasons[i].reason[0] == '\0' ? "unknown reason" : reasons[i].reason, 14);
        fxtap_buffer_text(p->out, "\n");
    }
    if (n > SHOWN_REASONS) {
        fx_page_label(p, "");
        fxtap_buffer_text(p->out, "and others for other reasons\n");
    }
}

/* Of several results the last one that has distances: what the model gives. */
static const fxtap_verify_result *last_with_distances(const fxtap_verification *v)
{
    for (size_t i = v->n_results; i > 0; i--) {
        if (!isnan(v->results[i - 1].place.distances.target)) {
            return &v->results[i - 1];
        }
    }
    return NULL;
}

static void distance_sentence(const fx_page *p, const fxtap_verification *v)
{
    const fxtap_verify_result *last = last_with_distances(v);
    assert(last != NULL);
    const fxtap_verify_distances *from_exact = &last->place.distances;
    fxtap_buffer_text(p->out, "relative distance from the exact value: golden ");
    fx_page_number(p, from_exact->golden);
    fxtap_buffer_text(p->out, ", target ");
    fx_page_number(p, from_exact->target);
    fxtap_buffer_text(p->out, "; rounding every result to its dtype alone gives ");
    fx_page_number(p, from_exact->rounding);
}

static void whole_chain(const fx_page *p, const fxtap_verification *v)
{
    const fxtap_verify_result *last = last_with_distances(v);
    if (last == NULL) {
        return;
    }
    fxtap_buffer_text(p->out, "\nExact   ");
    fx_page_text(p, last->place.node, p->width - 8, false);
    fxtap_buffer_text(p->out, ", the last result\n");
    fx_page_label(p, "");
    wrapped(p, v, 10, distance_sentence);
}

static void wrong_report(const fx_page *p, const fxtap_verification *v)
{
    size_t first = 0;
    while (!fx_verdict_accuses(v->operators[first].verdict)) {
        first++;
    }
    const fxtap_verify_result *result = fx_deciding_result(v, first);
    headline(p, "1;31", "WRONG");
    int32_t used = 9 + fx_page_text(p, result->place.node, p->width / 2, false);
    fxtap_buffer_text(p->out, "  ");
    fx_page_text(p, result->place.operator_name, p->width - used, false);
    fxtap_buffer_text(p->out, "\n       ");
    wrapped(p, v, 7, wrong_sentence);
    if (!p->options->quiet) {
        fxtap_buffer_text(p->out, "\n");
        first_wrong(p, v, first);
        also(p, v, first);
        whole_chain(p, v);
        accounts(p, v);
    }
}

void fx_verification_print_text(const fxtap_verification *verification, const fxtap_report_options *options,
                                fxtap_buffer *out)
{
    fx_page p = {.options = options, .out = out, .width = options->width > 0 ? options->width : 80};
    p.width = p.width < 60 ? 60 : p.width > 160 ? 160 : p.width;
    if (fxtap_verification_is_wrong(verification)) {
        wrong_report(&p, verification);
        return;
    }
    bool is_empty = judged_count(verification) == 0;
    headline(&p, is_empty ? "1;31" : "1;32", is_empty ? "NOTHING VERIFIED" : "NOTHING WRONG");
    wrapped(&p, verification, is_empty ? 18 : 15, is_empty ? nothing_sentence : right_sentence);
    if (!options->quiet) {
        whole_chain(&p, verification);
        accounts(&p, verification);
    }
}
