/* json.c - the report as JSON; docs/compare-json.md describes every field. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/rules.h"
#include "report/print.h"
#include "util/number.h"

static void shape(fxtap_json *json, const char *key, int32_t ndim, const int64_t *extents)
{
    if (ndim > 0 && extents == NULL) {
        fxtap_json_null(json, key);
        return;
    }
    fxtap_json_begin_array(json, key);
    for (int32_t i = 0; i < ndim; i++) {
        fxtap_json_int(json, NULL, extents[i]);
    }
    fxtap_json_end_array(json);
}

static void source(fxtap_json *json, const fxtap_pair *pair)
{
    if (pair->source_file[0] == '\0') {
        fxtap_json_null(json, "source");
        return;
    }
    char line[4200];
    snprintf(line, sizeof line, "%s:%" PRId32, pair->source_file, pair->source_line);
    fxtap_json_string(json, "source", line);
}

/* The location of a pair: the fields that origins and pairs share. */
static void place(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_json_string(json, "name", pair->name);
    if (pair->target_name != NULL) {
        fxtap_json_string(json, "target_name", pair->target_name);
    }
    fxtap_json_string(json, "node", pair->node);
    fxtap_json_string(json, "target", pair->operator_name);
    fxtap_json_int(json, "rank", pair->rank);
    fxtap_json_uint(json, "graph", pair->graph);
    fxtap_json_int(json, "step", pair->step);
    fxtap_json_uint(json, "order", pair->order);
    source(json, pair);
    fxtap_json_string(json, "code", pair->source_code);
    fxtap_json_string(json, "module", pair->module_path);
    fxtap_json_string(json, "verdict", fxtap_verdict_name(pair->verdict));
}

static void metrics(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_json_bool(json, "identical_bits", pair->identical_bits);
    fxtap_json_uint(json, "count", pair->count);
    fxtap_json_double(json, "max_abs_err", pair->max_abs_err);
    fxtap_json_double(json, "max_rel_err", pair->max_rel_err);
    fxtap_json_double(json, "mean_abs_err", pair->mean_abs_err);
    fxtap_json_double(json, "rmse", pair->rmse);
    fxtap_json_double(json, "cosine", pair->cosine);
    fxtap_json_double(json, "rel_l2", pair->rel_l2);
    fxtap_json_double(json, "euclidean", pair->euclidean);
    fxtap_json_double(json, "max_ulp", pair->max_ulp);
    fxtap_json_double(json, "within_1e3", pair->within_1e3);
    fxtap_json_double(json, "within_5e3", pair->within_5e3);
    fxtap_json_uint(json, "mismatched", pair->mismatched);
    fxtap_json_uint(json, "nan_mismatched", pair->nan_mismatched);
    fxtap_json_uint(json, "inf_mismatched", pair->inf_mismatched);
    fxtap_json_uint(json, "max_abs_index", pair->max_abs_index);
    fxtap_json_uint(json, "max_rel_index", pair->max_rel_index);
    fxtap_json_double(json, "rtol", pair->rtol);
    fxtap_json_double(json, "atol", pair->atol);
}

/* JSON has no infinities: a value written as null is also written as a string. */
static void not_finite(fxtap_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        char text[FX_NUMBER_BYTES];
        fx_double_text(value, text);
        fxtap_json_string(json, key, text);
    }
}

static void worst(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_json_begin_array(json, "worst");
    for (size_t i = 0; i < pair->n_worst; i++) {
        fxtap_json_begin_object(json, NULL);
        fxtap_json_uint(json, "index", pair->worst[i].index);
        fxtap_json_double(json, "golden", pair->worst[i].golden);
        fxtap_json_double(json, "target", pair->worst[i].target);
        not_finite(json, "golden_text", pair->worst[i].golden);
        not_finite(json, "target_text", pair->worst[i].target);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

static void growth(fxtap_json *json, const fxtap_pair *pair)
{
    if (pair->io != FXTAP_INPUT) {
        fxtap_json_double(json, "input_error", pair->input_error);
        fxtap_json_double(json, "growth", pair->growth);
    }
}

static void evidence(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_json_begin_array(json, "evidence");
    for (size_t i = 0; fxtap_evidence_name(i) != NULL; i++) {
        if ((pair->evidence >> i & 1u) != 0) {
            fxtap_json_string(json, NULL, fxtap_evidence_name(i));
        }
    }
    fxtap_json_end_array(json);
}

static void write_pair(fxtap_json *json, const fxtap_pair *pair)
{
    fxtap_json_begin_object(json, NULL);
    place(json, pair);
    fxtap_json_string(json, "io", fx_io_name(pair->io));
    fxtap_json_string(json, "position", pair->position);
    fxtap_json_string(json, "pairing", fxtap_pairing_name(pair->pairing));
    fxtap_json_double(json, "confidence", pair->confidence);
    evidence(json, pair);
    fxtap_json_bool(json, "literal", pair->is_literal);
    fxtap_json_bool(json, "missing", pair->is_missing);
    if (pair->n_golden_operators > 0) {
        fxtap_json_uint(json, "golden_operators", pair->n_golden_operators);
        fxtap_json_uint(json, "target_operators", pair->n_target_operators);
    }
    fxtap_json_string(json, "golden_dtype", fxtap_dtype_name(pair->golden_dtype));
    fxtap_json_string(json, "target_dtype", fxtap_dtype_name(pair->target_dtype));
    shape(json, "golden_shape", pair->ndim, pair->shape);
    shape(json, "target_shape", pair->target_ndim, pair->target_shape);
    fxtap_json_string(json, "golden_path", pair->golden_path);
    fxtap_json_string(json, "target_path", pair->target_path);
    if (pair->detail[0] != '\0') {
        fxtap_json_string(json, "detail", pair->detail);
    }
    if (pair->verified != NULL) {
        fxtap_json_string(json, "verified", pair->verified);
    }
    if (pair->undefined_count > 0) {
        fxtap_json_uint(json, "undefined_count", pair->undefined_count);
    }
    if (pair->measured) {
        metrics(json, pair);
        growth(json, pair);
        worst(json, pair);
    }
    fxtap_json_end_object(json);
}

static void write_origin(fxtap_json *json, const fxtap_origin *origin)
{
    fxtap_json_begin_object(json, NULL);
    place(json, origin->pair);
    fxtap_json_string(json, "reason", fxtap_origin_reason_name(origin->reason));
    fxtap_json_double(json, "input_error", origin->input_error);
    fxtap_json_double(json, "output_error", origin->output_error);
    fxtap_json_double(json, "growth", origin->growth);
    fxtap_json_uint(json, "carried_by", origin->n_carried);
    fxtap_json_string(json, "input", origin->input);
    fxtap_json_bool(json, "follows", origin->follows);
    if (origin->other_operator != NULL) {
        fxtap_json_string(json, "other_target", origin->other_operator);
    }
    fxtap_json_string(json, "other_source", origin->other_source);
    fxtap_json_string(json, "other_code", origin->other_code);
    fxtap_json_string(json, "literal", origin->literal);
    fxtap_json_string(json, "between", origin->between);
    fxtap_json_string(json, "between_source", origin->between_source);
    fxtap_json_string(json, "between_code", origin->between_code);
    fxtap_json_string(json, "between_module", origin->between_module);
    if (origin->pair->measured) {
        metrics(json, origin->pair);
        worst(json, origin->pair);
    }
    fxtap_json_end_object(json);
}

static void write_counts(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_begin_object(json, "counts");
    fxtap_json_uint(json, "pairs", report->n_pairs);
    for (int verdict = 0; verdict < FXTAP_VERDICT_COUNT; verdict++) {
        fxtap_json_uint(json, fxtap_verdict_name((fxtap_verdict)verdict), report->counts[verdict]);
    }
    fxtap_json_uint(json, "missing", report->n_missing);
    fxtap_json_uint(json, "carried_on", report->n_carried);
    fxtap_json_end_object(json);
    fxtap_json_begin_object(json, "pairing");
    for (int pairing = 0; pairing < FXTAP_PAIR_COUNT; pairing++) {
        fxtap_json_uint(json, fxtap_pairing_name((fxtap_pairing)pairing), report->pairing_counts[pairing]);
    }
    fxtap_json_end_object(json);
}

static void rule_number(fxtap_json *json, const char *key, double value)
{
    if (value >= 0.0) {
        fxtap_json_double(json, key, value);
    }
}

static void write_rules(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_begin_array(json, "rules");
    for (size_t i = 0; i < report->n_rules; i++) {
        const fxtap_rule *rule = &report->rules[i];
        fxtap_json_begin_object(json, NULL);
        fxtap_json_string(json, "dtype", rule->dtype);
        fxtap_json_string(json, "target", rule->operator_name);
        fxtap_json_string(json, "node", rule->node);
        rule_number(json, "rtol", rule->rtol);
        rule_number(json, "atol", rule->atol);
        rule_number(json, "cosine", rule->min_cosine);
        rule_number(json, "max_abs", rule->max_abs);
        rule_number(json, "rel_l2", rule->max_rel_l2);
        rule_number(json, "max_ulp", rule->max_ulp);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
    fxtap_json_begin_object(json, "default_tolerances");
    for (int dtype = 1; dtype < FXTAP_DTYPE_COUNT; dtype++) {
        double rtol, atol;
        fx_default_tolerance((fxtap_dtype)dtype, &rtol, &atol);
        if (fxtap_dtype_saved((fxtap_dtype)dtype) != FXTAP_DTYPE_NONE) {
            fxtap_json_begin_object(json, fxtap_dtype_name((fxtap_dtype)dtype));
            fxtap_json_double(json, "rtol", rtol);
            fxtap_json_double(json, "atol", atol);
            fxtap_json_end_object(json);
        }
    }
    fxtap_json_end_object(json);
}

static void write_groups(fxtap_json *json, const fxtap_report *report)
{
    fxtap_json_begin_array(json, "groups");
    for (size_t i = 0; i < report->n_groups; i++) {
        const fxtap_group *group = &report->groups[i];
        fxtap_json_begin_object(json, NULL);
        fxtap_json_int(json, "rank", group->rank);
        fxtap_json_uint(json, "graph", group->graph);
        fxtap_json_uint(json, "target_graph", group->target_graph);
        fxtap_json_int(json, "step", group->step);
        fxtap_json_int(json, "target_step", group->target_step);
        fxtap_json_int(json, "call", group->call);
        fxtap_json_string(json, "pairing", fxtap_pairing_name(group->pairing));
        fxtap_json_uint(json, "unit", group->unit);
        fxtap_json_uint(json, "pairs", group->n_pairs);
        fxtap_json_uint(json, "different", group->n_different);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

void fx_report_print_json(const fxtap_report *report, const fx_report_more *more, fxtap_buffer *out)
{
    fxtap_json json;
    fxtap_json_init(&json, out, true);
    fxtap_json_begin_object(&json, NULL);
    fxtap_json_string(&json, "fxtap", fxtap_version());
    fxtap_json_string(&json, "golden", report->golden_path);
    fxtap_json_string(&json, "target", report->target_path);
    fxtap_json_string(&json, "verdict", fxtap_verdict_name(fxtap_report_verdict(report)));
    fxtap_json_bool(&json, "stopped_early", report->stopped_early);
    write_counts(&json, report);
    write_rules(&json, report);
    fxtap_json_begin_array(&json, "origins");
    for (size_t i = 0; i < report->n_origins; i++) {
        write_origin(&json, &report->origins[i]);
    }
    fxtap_json_end_array(&json);
    const fxtap_pair *non_finite = fxtap_report_first_non_finite(report);
    fxtap_json_string(&json, "first_non_finite", non_finite == NULL ? NULL : non_finite->name);
    fxtap_json_string(&json, "steps", report->steps);
    fxtap_json_string(&json, "explanation", report->explanation);
    write_groups(&json, report);
    fxtap_json_begin_array(&json, "warnings");
    for (size_t i = 0; i < report->n_warnings; i++) {
        fxtap_json_string(&json, NULL, report->warnings[i]);
    }
    fxtap_json_end_array(&json);
    fxtap_json_begin_array(&json, "pairs");
    for (size_t i = 0; i < report->n_pairs; i++) {
        write_pair(&json, &report->pairs[i]);
    }
    fxtap_json_end_array(&json);
    if (more != NULL) {
        more->write(&json, more->context);
    }
    fxtap_json_end_object(&json);
    fxtap_buffer_text(out, "\n");
}
