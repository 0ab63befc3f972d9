/* json.c - a verification as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "util/memory.h"
#include "util/number.h"
#include "verify/print.h"

#define FORMAT_VERSION 1

/* "file:line"; null if `place` is NULL. */
static void source(fxtap_json *json, const char *key, const fxtap_verify_place *place)
{
    if (place == NULL || place->source_file[0] == '\0') {
        fxtap_json_null(json, key);
        return;
    }
    char line[4200];
    snprintf(line, sizeof line, "%s:%" PRId32, place->source_file, place->source_line);
    fxtap_json_string(json, key, line);
}

static void place(fxtap_json *json, const fxtap_verify_place *place)
{
    fxtap_json_string(json, "node", place->node);
    fxtap_json_string(json, "target", place->operator_name);
    fxtap_json_int(json, "rank", place->rank);
    fxtap_json_uint(json, "graph", place->graph);
    fxtap_json_int(json, "step", place->step);
    fxtap_json_string(json, "slot", place->slot);
    source(json, "source", place);
    fxtap_json_string(json, "code", place->source_code);
    fxtap_json_string(json, "module", place->module_path);
    fxtap_json_string(json, "dtype", fxtap_dtype_name(place->dtype));
    fxtap_json_begin_array(json, "shape");
    for (int32_t i = 0; i < place->ndim; i++) {
        fxtap_json_int(json, NULL, place->shape[i]);
    }
    fxtap_json_end_array(json);
}

/* JSON has no NaN and no infinities: they are strings. */
static void value(fxtap_json *json, const char *key, double number)
{
    if (isfinite(number)) {
        fxtap_json_double(json, key, number);
    } else {
        char text[FX_NUMBER_BYTES];
        fx_double_text(number, text);
        fxtap_json_string(json, key, text);
    }
}

static void worst(fxtap_json *json, const fxtap_rounding_error *error)
{
    fxtap_json_begin_array(json, "worst");
    for (size_t i = 0; i < error->n_worst; i++) {
        fxtap_json_begin_object(json, NULL);
        fxtap_json_uint(json, "index", error->worst[i].index);
        value(json, "saved", error->worst[i].saved);
        value(json, "exact", error->worst[i].reference);
        fxtap_json_end_object(json);
    }
    fxtap_json_end_array(json);
}

static void distances(fxtap_json *json, const fxtap_verify_distances *from_exact)
{
    if (isnan(from_exact->target)) {
        return;
    }
    fxtap_json_begin_object(json, "distances");
    value(json, "golden", from_exact->golden);
    value(json, "target", from_exact->target);
    value(json, "rounding", from_exact->rounding);
    fxtap_json_end_object(json);
}

/* What differs only because of a wrong operator. */
static void downstream(fxtap_json *json, const fxtap_verification *verification, const fx_downstream *found)
{
    fxtap_json_begin_object(json, "downstream");
    fxtap_json_uint(json, "results", found->count);
    const fxtap_verify_place *first = found->count == 0 ? NULL : &verification->results[found->first].place;
    fxtap_json_string(json, "first", first == NULL ? NULL : first->node);
    source(json, "first_source", first);
    fxtap_json_end_object(json);
}

/* Shares of elements rather than counts; null if nothing was measured. */
static void numbers(fxtap_json *json, const fxtap_verify_result *result)
{
    const fxtap_rounding_error *error = &result->error;
    bool known = result->is_measured;
    fxtap_json_double(json, "ratio", known ? error->ratio : (double)NAN);
    fxtap_json_double(json, "misrounded", known ? fx_misrounded_share(error) : (double)NAN);
    fxtap_json_double(json, "misrounded_usual", result->has_third ? fx_misrounded_share(&result->third) : (double)NAN);
    fxtap_json_double(json, "ratio_usual", result->has_third ? result->third.ratio : (double)NAN);
    fxtap_json_double(json, "bias", known ? error->bias : (double)NAN);
    if (!known) {
        return;
    }
    fxtap_json_double(json, "bias_error", error->bias_error);
    fxtap_json_uint(json, "count", error->count);
    fxtap_json_double(json, "rms_error", error->rms_error);
    fxtap_json_double(json, "rms_allowance", error->rms_allowance);
    fxtap_json_double(json, "max_ulp", error->max_ulp);
    fxtap_json_uint(json, "max_ulp_index", error->max_ulp_index);
    fxtap_json_double(json, "max_ratio", error->max_ratio);
    fxtap_json_uint(json, "max_ratio_index", error->max_ratio_index);
    fxtap_json_uint(json, "up", error->up);
    fxtap_json_uint(json, "down", error->down);
    fxtap_json_uint(json, "unexplained", error->unexplained);
    fxtap_json_uint(json, "outliers", error->outliers);
    fxtap_json_uint(json, "special", error->special);
    fxtap_json_uint(json, "zero_signs", error->zero_signs);
    fxtap_json_uint(json, "distinct", error->distinct);
}

/* `found` is NULL if nothing is known of what is downstream. */
static void write_operator(fxtap_json *json, const fxtap_verification *verification, size_t i_operator,
                           const fx_downstream *found)
{
    const fxtap_verify_operator *called = &verification->operators[i_operator];
    const fxtap_verify_result *result = fx_deciding_result(verification, i_operator);
    fxtap_json_begin_object(json, NULL);
    place(json, &result->place);
    fxtap_json_string(json, "verdict", fxtap_verify_verdict_name(called->verdict));
    fxtap_json_string(json, "reason", result->reason);
    fxtap_json_uint(json, "results", called->n_results);
    numbers(json, result);
    distances(json, &result->place.distances);
    worst(json, &result->error);
    if (found != NULL && verification->golden != NULL && fx_verdict_accuses(called->verdict)) {
        downstream(json, verification, &found[i_operator]);
    }
    fxtap_json_end_object(json);
}

static void counts(fxtap_json *json, const fxtap_verification *verification)
{
    fxtap_json_begin_object(json, "counts");
    fxtap_json_uint(json, "operators", verification->n_operators);
    for (int v = 0; v < FXTAP_VERIFY_COUNT; v++) {
        fxtap_json_uint(json, fxtap_verify_verdict_name((fxtap_verify_verdict)v), verification->counts[v]);
    }
    fxtap_json_end_object(json);
}

static void operators(fxtap_json *json, const char *key, const fxtap_verification *verification, bool only_wrong)
{
    fx_downstream *found = NULL;
    fxtap_status status = verification->golden == NULL ? FXTAP_OK : fx_find_downstream(verification, &found);
    json->out->status = status != FXTAP_OK ? status : json->out->status;
    fxtap_json_begin_array(json, key);
    for (size_t i = 0; i < verification->n_operators; i++) {
        if (!only_wrong || fx_verdict_accuses(verification->operators[i].verdict)) {
            write_operator(json, verification, i, found);
        }
    }
    fxtap_json_end_array(json);
    fx_free(found);
}

void fx_verification_json_wrong(fxtap_json *json, const char *key, const fxtap_verification *verification)
{
    fxtap_json_begin_object(json, key);
    fxtap_json_string(json, "verdict", fx_verification_verdict(verification));
    counts(json, verification);
    operators(json, "wrong", verification, true);
    fxtap_json_end_object(json);
}

void fx_verification_json_document(fxtap_json *json, const char *key, const fxtap_verification *verification,
                                   bool with_wrong)
{
    fxtap_json_begin_object(json, key);
    fxtap_json_string(json, "fxtap", fxtap_version());
    fxtap_json_uint(json, "format", FORMAT_VERSION);
    fxtap_json_string(json, "golden", verification->golden);
    fxtap_json_string(json, "target", verification->target);
    fxtap_json_string(json, "verdict", fx_verification_verdict(verification));
    counts(json, verification);
    if (with_wrong) {
        operators(json, "wrong", verification, true);
    }
    operators(json, "operators", verification, false);
    fxtap_json_end_object(json);
}

void fx_verification_print_json(const fxtap_verification *verification, fxtap_buffer *out)
{
    fxtap_json json;
    fxtap_json_init(&json, out, true);
    fx_verification_json_document(&json, NULL, verification, true);
    fxtap_buffer_text(out, "\n");
}
