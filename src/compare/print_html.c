/*
 * print_html.c - the report as one page that asks nothing of a network: page.html with the data in it.
 *
 * The data is JSON in a script element of its own; every `<`, `>` and `&` of it is escaped, so that no name from a dump
 * can end the element, and the page puts names into the document as text alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/print.h"

extern const char fx_compare_page[];
extern const size_t fx_compare_page_bytes;

#define PLACE "@DATA@"

static void number(fxtap_json *json, const fxtap_pair *pair, double value)
{
    if (pair->measured) {
        fxtap_json_double(json, NULL, value);
    } else {
        fxtap_json_null(json, NULL);
    }
}

static void counted(fxtap_json *json, const fxtap_pair *pair, uint64_t value)
{
    if (pair->measured) {
        fxtap_json_uint(json, NULL, value);
    } else {
        fxtap_json_null(json, NULL);
    }
}

static void text_or_null(fxtap_json *json, const char *text)
{
    fxtap_json_string(json, NULL, text == NULL || text[0] == '\0' ? NULL : text);
}

static void buffered(fxtap_json *json, fxtap_buffer *text)
{
    fxtap_json_string_n(json, NULL, text->length > 0 ? text->bytes : "", text->length);
    text->length = 0;
}

static void worst(fxtap_json *json, const fxtap_pair *pair, fxtap_buffer *scratch)
{
    if (pair->n_worst == 0 || !fx_verdict_is_bad(pair->verdict)) {
        fxtap_json_null(json, NULL);
        return;
    }
    fxtap_json_begin_array(json, NULL);
    for (size_t i = 0; i < pair->n_worst; i++) {
        fxtap_json_begin_array(json, NULL);
        fx_print_coordinates(scratch, pair->worst[i].index, pair->ndim, pair->shape);
        buffered(json, scratch);
        fxtap_json_double(json, NULL, pair->worst[i].golden);
        fxtap_json_double(json, NULL, pair->worst[i].target);
        fxtap_json_end_array(json);
    }
    fxtap_json_end_array(json);
}

static void bins(fxtap_json *json, const char *key, const uint64_t *values, size_t n)
{
    fxtap_json_begin_array(json, key);
    for (size_t i = 0; i < n; i++) {
        fxtap_json_uint(json, NULL, values[i]);
    }
    fxtap_json_end_array(json);
}

static void histogram(fxtap_json *json, const fxtap_histograms *histograms)
{
    if (histograms == NULL) {
        fxtap_json_null(json, NULL);
        return;
    }
    fxtap_json_begin_object(json, NULL);
    fxtap_json_double(json, "low", histograms->low);
    fxtap_json_double(json, "high", histograms->high);
    bins(json, "golden", histograms->golden, histograms->n_bins);
    bins(json, "target", histograms->target, histograms->n_bins);
    fxtap_json_end_object(json);
}

static void dtype(fxtap_json *json, const fxtap_pair *pair, fxtap_buffer *scratch)
{
    fxtap_dtype first = pair->golden_dtype != FXTAP_DTYPE_NONE ? pair->golden_dtype : pair->target_dtype;
    fxtap_buffer_text(scratch, fxtap_dtype_name(first));
    if (pair->target_dtype != first && pair->target_dtype != FXTAP_DTYPE_NONE) {
        fxtap_buffer_printf(scratch, "/%s", fxtap_dtype_name(pair->target_dtype));
    }
    buffered(json, scratch);
}

/* The order of these is P in page.html. */
static void write_pair(fxtap_json *json, const fxtap_pair *pair, size_t node, fxtap_buffer *scratch)
{
    fxtap_json_begin_array(json, NULL);
    fxtap_json_uint(json, NULL, node);
    fxtap_json_string(json, NULL, pair->name);
    text_or_null(json, pair->target_name);
    fxtap_json_int(json, NULL, (int64_t)pair->verdict);
    fxtap_json_string(json, NULL, fxtap_pairing_name(pair->pairing));
    number(json, pair, pair->rel_l2);
    number(json, pair, pair->max_abs_err);
    number(json, pair, pair->max_rel_err);
    number(json, pair, pair->cosine);
    number(json, pair, pair->max_ulp);
    counted(json, pair, pair->mismatched);
    counted(json, pair, pair->count);
    dtype(json, pair, scratch);
    bool has_golden = pair->golden_dtype != FXTAP_DTYPE_NONE;
    fx_print_shape(scratch, has_golden ? pair->ndim : pair->target_ndim, has_golden ? pair->shape : pair->target_shape, ", ");
    buffered(json, scratch);
    if (pair->position[0] != '\0') {
        fxtap_buffer_printf(scratch, "%s %s", fx_io_name(pair->io), pair->position);
    }
    buffered(json, scratch);
    text_or_null(json, pair->detail);
    worst(json, pair, scratch);
    histogram(json, pair->histograms);
    number(json, pair, pair->rtol);
    number(json, pair, pair->atol);
    number(json, pair, pair->io == FXTAP_INPUT ? NAN : pair->growth);
    number(json, pair, 1.0 - pair->cosine);
    fxtap_json_end_array(json);
}

static bool same_node(const fxtap_pair *a, const fxtap_pair *b)
{
    return a->rank == b->rank && a->graph == b->graph && a->step == b->step && strcmp(a->node, b->node) == 0 &&
           strcmp(a->target, b->target) == 0;
}

/* The order of these is N in page.html. */
static void write_node(fxtap_json *json, const fxtap_pair *pair, fxtap_buffer *scratch)
{
    fxtap_json_begin_array(json, NULL);
    fxtap_json_string(json, NULL, pair->node);
    fxtap_json_string(json, NULL, pair->target);
    fxtap_json_int(json, NULL, pair->rank);
    fxtap_json_uint(json, NULL, pair->graph);
    fxtap_json_int(json, NULL, pair->step);
    fxtap_json_uint(json, NULL, pair->order);
    if (pair->source_file[0] != '\0') {
        fxtap_buffer_printf(scratch, "%s:%" PRId32, pair->source_file, pair->source_line);
    }
    buffered(json, scratch);
    fxtap_json_string(json, NULL, pair->source_code);
    fxtap_json_string(json, NULL, pair->module_path);
    fxtap_json_end_array(json);
}

static void write_rows(fxtap_json *json, const fxtap_report *report, fxtap_buffer *scratch)
{
    fxtap_json_begin_array(json, "nodes");
    for (size_t i = 0; i < report->n_pairs; i++) {
        if (i == 0 || !same_node(&report->pairs[i], &report->pairs[i - 1])) {
            write_node(json, &report->pairs[i], scratch);
        }
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_array(json, "pairs");
    size_t node = 0;
    for (size_t i = 0; i < report->n_pairs; i++) {
        node += i > 0 && !same_node(&report->pairs[i], &report->pairs[i - 1]);
        write_pair(json, &report->pairs[i], node, scratch);
    }
    fxtap_json_end_array(json);
}

static void write_around(fxtap_json *json, const fxtap_neighbourhood *around)
{
    fxtap_json_begin_object(json, "around");
    fxtap_json_begin_array(json, "nodes");
    for (size_t i = 0; i < around->n_nodes; i++) {
        const fxtap_neighbour *node = &around->nodes[i];
        fxtap_json_begin_array(json, NULL);
        fxtap_json_string(json, NULL, node->node);
        fxtap_json_string(json, NULL, node->target);
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

static void write_origins(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_begin_array(json, "origins");
    for (size_t i = 0; i < report->n_origins; i++) {
        const fxtap_origin *origin = &report->origins[i];
        fxtap_json_begin_object(json, NULL);
        fxtap_json_uint(json, "pair", (uint64_t)(origin->pair - report->pairs));
        fxtap_json_string(json, "reason", fx_origin_reason_text(origin->reason));
        fxtap_json_double(json, "input_error", origin->input_error);
        fxtap_json_double(json, "growth", origin->growth);
        fxtap_json_uint(json, "carried", origin->n_carried);
        fxtap_json_string(json, "other", origin->other_target);
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
    fxtap_json_uint(json, "carried", report->n_carried);
    fxtap_json_uint(json, "rules", report->n_rules);
    fxtap_json_begin_array(json, "verdicts");
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        fxtap_json_string(json, NULL, fxtap_verdict_name((fxtap_verdict)verdict));
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

static void write_data(const fxtap_report *report, fxtap_buffer *out)
{
    fxtap_json json;
    fxtap_buffer scratch;
    fxtap_buffer_init(&scratch);
    fxtap_json_init(&json, out, false);
    fxtap_json_begin_object(&json, NULL);
    write_head(&json, report);
    write_origins(&json, report);
    write_rows(&json, report, &scratch);
    fxtap_json_end_object(&json);
    if (fxtap_buffer_status(&scratch) != FXTAP_OK) {
        out->status = scratch.status;
    }
    fxtap_buffer_clear(&scratch);
}

/* In JSON these characters stand in strings alone, where an escape means the same. */
static void append_escaped(fxtap_buffer *out, const char *bytes, size_t length)
{
    size_t plain = 0;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '<' || bytes[i] == '>' || bytes[i] == '&') {
            fxtap_buffer_append(out, bytes + plain, i - plain);
            fxtap_buffer_printf(out, "\\u%04x", (unsigned)bytes[i]);
            plain = i + 1;
        }
    }
    fxtap_buffer_append(out, bytes + plain, length - plain);
}

void fx_report_print_html(const fxtap_report *report, fxtap_buffer *out)
{
    fxtap_buffer data;
    fxtap_buffer_init(&data);
    write_data(report, &data);
    if (fxtap_buffer_status(&data) != FXTAP_OK) {
        out->status = data.status;
    } else {
        const char *place = strstr(fx_compare_page, PLACE);
        size_t before = (size_t)(place - fx_compare_page), after = before + strlen(PLACE);
        fxtap_buffer_append(out, fx_compare_page, before);
        append_escaped(out, data.bytes, data.length);
        fxtap_buffer_append(out, fx_compare_page + after, fx_compare_page_bytes - after);
    }
    fxtap_buffer_clear(&data);
}
