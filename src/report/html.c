/*
 * html.c - the report as a self-contained page without network access: page.html with the data inserted.
 *
 * The data is JSON in its own script element; every `<`, `>` and `&` is escaped, so that no name from a dump can end
 * the element, and the page inserts names into the document only as text.
 *
 * The steps of a training run differ only in their numbers, and the operators of a graph repeat source lines and
 * modules. So a row has only numbers, which refer to tables that contain each text, node and tensor once.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/link.h"
#include "report/print.h"
#include "util/memory.h"

extern const char fx_compare_page[];
extern const char fx_report_style[];
extern const char fx_report_script[];

#define SHOWN_WORST 3
#define DIGITS 5 /* digits of a metric: one more than the page shows */

typedef struct page {
    const fxtap_report *report;
    const fx_report_more *more; /* or NULL */
    fxtap_buffer *out;
    fxtap_buffer scratch;
    fx_arena arena;
    fx_texts texts;   /* lines of source, modules, operators, ... */
    fx_texts nodes;   /* as JSON */
    fx_texts tensors; /* as JSON: what a pair has in common in all steps */
    size_t *order;    /* pairs in order of execution */
    size_t *row_of;   /* the row of each pair */
    size_t *group_of; /* of each pair */
} page;

/* The number of a text in a table; equal texts have the same number. */
static size_t intern(page *p, fx_texts *table, const char *text, size_t length)
{
    fx_texts_entry *entry = fx_texts_add(table, text, length);
    if (entry == NULL) {
        p->scratch.status = FXTAP_E_NOMEM;
        return 0;
    }
    return entry->id;
}

static void text(page *p, fxtap_json *json, const char *value)
{
    fxtap_json_uint(json, NULL, intern(p, &p->texts, value == NULL ? "" : value, value == NULL ? 0 : strlen(value)));
}

static void buffered_text(page *p, fxtap_json *json, fxtap_buffer *value)
{
    p->scratch.status = value->status != FXTAP_OK ? value->status : p->scratch.status;
    fxtap_json_uint(json, NULL, intern(p, &p->texts, value->length > 0 ? value->bytes : "", value->length));
    fxtap_buffer_clear(value);
}

static fxtap_json begin_record(page *p)
{
    fxtap_json json;
    p->scratch.length = 0;
    fxtap_json_init(&json, &p->scratch, false);
    json.for_html = true;
    fxtap_json_begin_array(&json, NULL);
    return json;
}

static size_t end_record(page *p, fxtap_json *json, fx_texts *table)
{
    fxtap_json_end_array(json);
    return fxtap_buffer_status(&p->scratch) == FXTAP_OK ? intern(p, table, p->scratch.bytes, p->scratch.length) : 0;
}

/* The order of the fields is N in page.html. */
static size_t node_number(page *p, const fxtap_pair *pair)
{
    fxtap_json json = begin_record(p);
    fxtap_buffer source;
    fxtap_buffer_init(&source);
    if (pair->source_file[0] != '\0') {
        fxtap_buffer_printf(&source, "%s:%" PRId32, pair->source_file, pair->source_line);
    }
    fxtap_json_string(&json, NULL, pair->node);
    text(p, &json, pair->operator_name);
    buffered_text(p, &json, &source);
    text(p, &json, pair->source_code);
    text(p, &json, pair->module_path);
    return end_record(p, &json, &p->nodes);
}

static void dtype(page *p, fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_buffer name;
    fxtap_buffer_init(&name);
    fxtap_dtype first = pair->golden_dtype != FXTAP_DTYPE_NONE ? pair->golden_dtype : pair->target_dtype;
    fxtap_buffer_text(&name, fxtap_dtype_name(first));
    if (pair->target_dtype != first && pair->target_dtype != FXTAP_DTYPE_NONE) {
        fxtap_buffer_printf(&name, "/%s", fxtap_dtype_name(pair->target_dtype));
    }
    buffered_text(p, json, &name);
}

static void shape(page *p, fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_buffer extents;
    fxtap_buffer_init(&extents);
    bool has_golden = pair->golden_dtype != FXTAP_DTYPE_NONE;
    fx_print_shape(&extents, has_golden ? pair->ndim : pair->target_ndim, has_golden ? pair->shape : pair->target_shape,
                   ", ");
    buffered_text(p, json, &extents);
}

static void place(page *p, fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_buffer io;
    fxtap_buffer_init(&io);
    if (pair->position[0] != '\0') {
        fxtap_buffer_printf(&io, "%s %s", fx_io_name(pair->io), pair->position);
    }
    buffered_text(p, json, &io);
}

/* The name, or null if the page can derive it from node, operator and position. */
static void name(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_buffer usual;
    fxtap_buffer_init(&usual);
    fxtap_buffer_printf(&usual, "%s-%s.%s.%s", pair->node, pair->operator_name, fx_io_name(pair->io), pair->position);
    bool is_usual = fxtap_buffer_status(&usual) == FXTAP_OK && strcmp(usual.bytes, pair->name) == 0;
    fxtap_json_string(json, NULL, is_usual ? NULL : pair->name);
    json->out->status = usual.status != FXTAP_OK ? usual.status : json->out->status;
    fxtap_buffer_clear(&usual);
}

/* The order of the fields is T in page.html. */
static size_t tensor_number(page *p, const fxtap_pair *pair)
{
    size_t node = node_number(p, pair);
    fxtap_json json = begin_record(p);
    fxtap_json_uint(&json, NULL, node);
    name(&json, pair);
    fxtap_json_string(&json, NULL, pair->target_name);
    fxtap_json_int(&json, NULL, (int64_t)pair->pairing);
    fxtap_json_uint(&json, NULL, pair->evidence);
    dtype(p, &json, pair);
    shape(p, &json, pair);
    place(p, &json, pair);
    fxtap_json_double(&json, NULL, pair->rtol);
    fxtap_json_double(&json, NULL, pair->atol);
    fxtap_json_uint(&json, NULL, pair->count);
    fxtap_json_uint(&json, NULL, pair->is_missing);
    fxtap_json_uint(&json, NULL, pair->n_golden_operators);
    fxtap_json_uint(&json, NULL, pair->n_target_operators);
    return end_record(p, &json, &p->tensors);
}

/* ---- rows ---- */

/* ",1.2345"; NaN and infinity are null. */
static void number(fxtap_buffer *out, double value)
{
    fxtap_buffer_text(out, ",");
    if (isfinite(value)) {
        fxtap_buffer_digits(out, value, DIGITS);
    } else {
        fxtap_buffer_text(out, "null");
    }
}

static void sample(fxtap_buffer *out, double value, int n_digits)
{
    const char *quote = isfinite(value) ? "" : "\"";
    fxtap_buffer_printf(out, ",%s", quote);
    fxtap_buffer_digits(out, value, n_digits);
    fxtap_buffer_text(out, quote);
}

/* Position, golden, target; position, ...: with enough digits to distinguish the two values. */
static void worst(fxtap_buffer *out, const fxtap_pair *pair)
{
    if (pair->n_worst == 0 || !fx_verdict_is_bad(pair->verdict)) {
        fxtap_buffer_text(out, ",0");
        return;
    }
    for (size_t i = 0; i < pair->n_worst && i < SHOWN_WORST; i++) {
        const fxtap_coordinate *at = &pair->worst[i];
        double gap = fabs(at->golden - at->target) / fmax(fabs(at->golden), fabs(at->target));
        int more = gap > 0 && isfinite(gap) ? (int)ceil(-log10(gap)) + 1 : 0;
        int n_digits = more < DIGITS ? DIGITS : more > 17 ? 17 : more;
        fxtap_buffer_printf(out, "%s%" PRIu64, i == 0 ? ",[" : ",", at->index);
        sample(out, at->golden, n_digits);
        sample(out, at->target, n_digits);
    }
    fxtap_buffer_text(out, "]");
}

static void bins(fxtap_buffer *out, const uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_printf(out, "%s%" PRIu64, i == 0 ? ",[" : ",", values[i]);
    }
    fxtap_buffer_text(out, "]");
}

static void histogram(fxtap_buffer *out, const fxtap_histograms *histograms)
{
    if (histograms == NULL) {
        fxtap_buffer_text(out, ",0");
        return;
    }
    fxtap_buffer_text(out, ",[");
    fxtap_buffer_double(out, histograms->low);
    fxtap_buffer_text(out, ",");
    fxtap_buffer_double(out, histograms->high);
    bins(out, histograms->golden, histograms->n_bins);
    bins(out, histograms->target, histograms->n_bins);
    fxtap_buffer_text(out, "]");
}

static bool is_equal(const fxtap_pair *pair)
{
    return pair->measured && pair->max_abs_err == 0 && pair->mismatched == 0 && pair->rel_l2 == 0;
}

/* The order of the fields is R in page.html. An equal pair ends after its verdict, an unmeasured one with null. */
static void write_row(page *p, size_t index)
{
    const fxtap_pair *pair = &p->report->pairs[index];
    fxtap_buffer *out = p->out;
    size_t tensor = tensor_number(p, pair);
    bool has_details = pair->detail[0] != '\0' || pair->histograms != NULL;
    fxtap_buffer_printf(out, "[%zu,%zu,%d", tensor, p->group_of[index], (int)pair->verdict);
    if (!pair->measured && !has_details) {
        fxtap_buffer_text(out, ",null");
    } else if (!is_equal(pair) || has_details) {
        number(out, pair->measured ? pair->rel_l2 : NAN);
        number(out, pair->measured ? pair->max_abs_err : NAN);
        number(out, pair->measured ? pair->max_rel_err : NAN);
        number(out, pair->measured ? 1.0 - pair->cosine : NAN);
        number(out, pair->measured ? pair->max_ulp : NAN);
        fxtap_buffer_printf(out, ",%" PRId64, pair->measured ? (int64_t)pair->mismatched : -1);
        number(out, pair->measured && pair->io != FXTAP_INPUT ? pair->growth : NAN);
        worst(out, pair);
        if (has_details || pair->nan_mismatched + pair->inf_mismatched > 0) {
            fxtap_buffer_printf(out, ",%zu", intern(p, &p->texts, pair->detail, strlen(pair->detail)));
            histogram(out, pair->histograms);
            fxtap_buffer_printf(out, ",%" PRIu64 ",%" PRIu64, pair->nan_mismatched, pair->inf_mismatched);
        }
    }
    fxtap_buffer_text(out, "]");
}

static void write_table(page *p, const char *key, const fx_texts *table, bool is_json)
{
    fxtap_json json;
    fxtap_buffer_printf(p->out, ",\"%s\":[", key);
    for (size_t i = 0; i < table->count; i++) {
        const fx_texts_entry *entry = table->entries[i];
        fxtap_buffer_text(p->out, i > 0 ? "," : "");
        if (is_json) {
            fxtap_buffer_append(p->out, entry->text, entry->length);
            continue;
        }
        fxtap_json_init(&json, p->out, false);
        json.for_html = true;
        fxtap_json_string_n(&json, NULL, entry->text, entry->length);
    }
    fxtap_buffer_text(p->out, "]");
}

/* A letter for each row: the first of its verdict. */
static void write_verified(page *p)
{
    if (!p->report->verified.is_known) {
        return;
    }
    fxtap_buffer_text(p->out, ",\"verified\":\"");
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const char *verdict = p->report->pairs[p->order[i]].verified;
        fxtap_buffer_append(p->out, verdict == NULL ? "-" : verdict, 1);
    }
    fxtap_buffer_text(p->out, "\"");
}

/* The rows are written before the tables, which are complete only after all rows. */
static void write_rows(page *p)
{
    fxtap_buffer_text(p->out, ",\"pairs\":[");
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        fxtap_buffer_text(p->out, i > 0 ? "," : "");
        write_row(p, p->order[i]);
    }
    fxtap_buffer_text(p->out, "]");
    write_verified(p);
    write_table(p, "texts", &p->texts, false);
    write_table(p, "nodes", &p->nodes, true);
    write_table(p, "tensors", &p->tensors, true);
}

/* ---- order of execution ---- */

typedef struct sorting {
    const fxtap_report *report;
    const size_t *group_of;
} sorting;

/* Sorts by order of execution, so that a backward follows its forward. */
static int compare_rows(const void *left, const void *right, void *context)
{
    const sorting *by = context;
    size_t i = *(const size_t *)left, k = *(const size_t *)right;
    size_t a = by->group_of[i], b = by->group_of[k];
    if (a != b && by->report->n_groups > 0) {
        return fx_compare_groups(&by->report->groups[a], &by->report->groups[b]);
    }
    return (i > k) - (i < k);
}

static bool find_order(page *p)
{
    size_t n = p->report->n_pairs;
    p->order = fx_calloc(n + 1, sizeof *p->order);
    p->row_of = fx_calloc(n + 1, sizeof *p->row_of);
    p->group_of = fx_calloc(n + 1, sizeof *p->group_of);
    if (p->order == NULL || p->row_of == NULL || p->group_of == NULL) {
        return false;
    }
    for (size_t g = 0; g < p->report->n_groups; g++) {
        const fxtap_group *group = &p->report->groups[g];
        for (size_t i = 0; i < group->n_pairs; i++) {
            p->group_of[group->first_pair + i] = g;
        }
    }
    for (size_t i = 0; i < n; i++) {
        p->order[i] = i;
    }
    sorting by = {p->report, p->group_of};
    qsort_r(p->order, n, sizeof *p->order, compare_rows, &by);
    for (size_t i = 0; i < n; i++) {
        p->row_of[p->order[i]] = i;
    }
    return true;
}

static void write_groups(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_begin_array(json, "groups");
    for (size_t i = 0; i < report->n_groups; i++) {
        fxtap_json_begin_array(json, NULL);
        fxtap_json_int(json, NULL, report->groups[i].rank);
        fxtap_json_uint(json, NULL, report->groups[i].graph);
        fxtap_json_int(json, NULL, report->groups[i].step);
        fxtap_json_end_array(json);
    }
    fxtap_json_end_array(json);
}

/* ---- origins ---- */

static void write_around(fxtap_json *json, const fxtap_neighbourhood *around)
{
    fxtap_json_begin_object(json, "around");
    fxtap_json_begin_array(json, "nodes");
    for (size_t i = 0; i < around->n_nodes; i++) {
        const fxtap_neighbour *node = &around->nodes[i];
        fxtap_json_begin_array(json, NULL);
        fxtap_json_string(json, NULL, node->node);
        fxtap_json_string(json, NULL, node->operator_name);
        fxtap_json_int(json, NULL, node->depth);
        fxtap_json_bool(json, NULL, node->is_judged);
        fxtap_json_bool(json, NULL, node->is_bad);
        fxtap_json_double(json, NULL, node->rel_l2);
        fxtap_json_end_array(json);
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "edges");
    for (size_t i = 0; i < around->n_edges; i++) {
        fxtap_json_begin_array(json, NULL);
        fxtap_json_uint(json, NULL, around->edges[2 * i]);
        fxtap_json_uint(json, NULL, around->edges[2 * i + 1]);
        fxtap_json_end_array(json);
    }
    fxtap_json_end_array(json);
    fxtap_json_end_object(json);
}

static void write_origins(fxtap_json *json, const page *p)
{
    const fxtap_report *report = p->report;
    fxtap_json_begin_array(json, "origins");
    for (size_t i = 0; i < report->n_origins; i++) {
        const fxtap_origin *origin = &report->origins[i];
        fxtap_json_begin_object(json, NULL);
        fxtap_json_uint(json, "pair", p->row_of[origin->pair - report->pairs]);
        fxtap_json_string(json, "reason",
                          origin->pair->operator_name[0] == '\0' ? "" : fx_origin_reason_text(origin->reason));
        fxtap_json_double(json, "input_error", origin->input_error);
        fxtap_json_double(json, "growth", origin->growth);
        fxtap_json_uint(json, "carried", origin->n_carried);
        fxtap_json_string(json, "other", origin->other_operator);
        fxtap_json_string(json, "other_source", origin->other_source);
        fxtap_json_string(json, "other_code", origin->other_code);
        fxtap_json_string(json, "literal", origin->literal);
        fxtap_json_string(json, "between", origin->between);
        fxtap_json_string(json, "between_source", origin->between_source);
        fxtap_json_string(json, "between_code", origin->between_code);
        fxtap_json_string(json, "between_module", origin->between_module);
        fxtap_json_string(json, "input", origin->input);
        fxtap_json_bool(json, "weight", origin->reason == FXTAP_ORIGIN_WEIGHT);
        fxtap_json_bool(json, "outside", origin->pair->io == FXTAP_INPUT);
        fxtap_json_bool(json, "region", origin->reason == FXTAP_ORIGIN_REGION);
        fxtap_json_bool(json, "drift", origin->reason == FXTAP_ORIGIN_DRIFT);
        fxtap_json_bool(json, "before", origin->reason == FXTAP_ORIGIN_BEFORE);
        fxtap_json_bool(json, "follows", origin->follows);
        int64_t step;
        if (fx_update_before(report, origin, &step)) {
            fxtap_json_int(json, "update", step);
        } else {
            fxtap_json_null(json, "update");
        }
        if (origin->around != NULL) {
            write_around(json, origin->around);
        }
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

static void write_head(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_string(json, "fxtap", fxtap_version());
    fxtap_json_string(json, "golden", report->golden_path);
    fxtap_json_string(json, "target", report->target_path);
    fxtap_json_string(json, "verdict", fxtap_verdict_name(fxtap_report_verdict(report)));
    fxtap_json_bool(json, "stopped", report->stopped_early);
    fxtap_json_uint(json, "missing", report->n_missing);
    fxtap_json_string(json, "steps", report->steps);
    fxtap_json_string(json, "explanation", report->explanation);
    fxtap_json_uint(json, "rules", report->n_rules);
    fxtap_json_begin_array(json, "verdicts");
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        fxtap_json_string(json, NULL, fxtap_verdict_name((fxtap_verdict)verdict));
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "pairings");
    for (int pairing = 0; pairing < FXTAP_PAIR_COUNT; pairing++) {
        fxtap_json_string(json, NULL, fxtap_pairing_name((fxtap_pairing)pairing));
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "evidence");
    for (size_t i = 0; fxtap_evidence_name(i) != NULL; i++) {
        fxtap_json_string(json, NULL, fxtap_evidence_name(i));
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "counts");
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        fxtap_json_uint(json, NULL, report->counts[verdict]);
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "warnings");
    for (size_t i = 0; i < report->n_warnings; i++) {
        fxtap_json_string(json, NULL, report->warnings[i]);
    }
    fxtap_json_end_array(json);
}

static void write_data(page *p)
{
    fxtap_json json;
    fxtap_json_init(&json, p->out, false);
    json.for_html = true;
    fxtap_json_begin_object(&json, NULL);
    write_head(&json, p->report);
    write_groups(&json, p->report);
    write_origins(&json, p);
    if (p->more != NULL) {
        p->more->write(&json, p->more->context);
    }
    write_rows(p);
    fxtap_json_end_object(&json);
}

/* Writes the page up to `mark` and returns what follows the mark. */
static const char *write_until(fxtap_buffer *out, const char *text_of_page, const char *mark)
{
    const char *at = strstr(text_of_page, mark);
    fxtap_buffer_append(out, text_of_page, (size_t)(at - text_of_page));
    return at + strlen(mark);
}

const char *fx_page_begin(fxtap_buffer *out, const char *text_of_page)
{
    const char *rest = write_until(out, text_of_page, "@STYLE@");
    fxtap_buffer_text(out, fx_report_style);
    return write_until(out, rest, "@DATA@");
}

void fx_page_end(fxtap_buffer *out, const char *rest)
{
    rest = write_until(out, rest, "@SCRIPT@");
    fxtap_buffer_text(out, fx_report_script);
    fxtap_buffer_text(out, rest);
}

void fx_report_print_html(const fxtap_report *report, const fx_report_more *more, fxtap_buffer *out)
{
    page p = {.report = report, .more = more, .out = out};
    fx_arena_init(&p.arena);
    fxtap_buffer_init(&p.scratch);
    p.texts.arena = p.nodes.arena = p.tensors.arena = &p.arena;
    if (find_order(&p)) {
        intern(&p, &p.texts, "", 0);
        const char *rest = fx_page_begin(out, fx_compare_page);
        write_data(&p);
        fx_page_end(out, rest);
    } else {
        out->status = FXTAP_E_NOMEM;
    }
    if (fxtap_buffer_status(&p.scratch) != FXTAP_OK) {
        out->status = p.scratch.status;
    }
    fx_free(p.order);
    fx_free(p.row_of);
    fx_free(p.group_of);
    fx_texts_clear(&p.texts);
    fx_texts_clear(&p.nodes);
    fx_texts_clear(&p.tensors);
    fx_arena_clear(&p.arena);
    fxtap_buffer_clear(&p.scratch);
}
