#include "describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "text.h"

#define DIGITS 6

static bool is_integer(const fxtap_stats *stats)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(stats->dtype);
    return class == FXTAP_CLASS_BOOL || class == FXTAP_CLASS_UINT || class == FXTAP_CLASS_INT;
}

void describe_bound(fxtap_buffer *out, const fxtap_stats *stats, bool is_max, int digits)
{
    int64_t integer = is_max ? stats->max_int : stats->min_int;
    if (!is_integer(stats)) {
        text_append_number(out, is_max ? stats->max : stats->min, digits);
    } else if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_INT) {
        fxtap_buffer_printf(out, "%" PRId64, integer);
    } else {
        fxtap_buffer_printf(out, "%" PRIu64, (uint64_t)integer);
    }
}

static void append_named(fxtap_buffer *out, const char *name, double value)
{
    fxtap_buffer_printf(out, "%s ", name);
    text_append_number(out, value, DIGITS);
    fxtap_buffer_text(out, "  ");
}

static void append_counted(fxtap_buffer *out, const char *separator, uint64_t count, const char *what)
{
    if (count > 0) {
        fxtap_buffer_text(out, separator);
        text_append_count(out, count);
        fxtap_buffer_printf(out, " %s", what);
    }
}

void describe_non_finite(fxtap_buffer *out, const fxtap_stats *stats)
{
    size_t start = out->length;
    append_counted(out, "", stats->nan_count, "nan");
    append_counted(out, out->length > start ? ", " : "", stats->pos_inf_count, "+inf");
    append_counted(out, out->length > start ? ", " : "", stats->neg_inf_count, "-inf");
}

static void append_range(fxtap_buffer *out, const fxtap_stats *stats)
{
    if (stats->has_range) {
        fxtap_buffer_text(out, "min ");
        describe_bound(out, stats, false, DIGITS);
        fxtap_buffer_text(out, "  max ");
        describe_bound(out, stats, true, DIGITS);
        fxtap_buffer_text(out, "  ");
    }
    fxtap_buffer_text(out, "absmax ");
    text_append_number(out, stats->abs_max, DIGITS);
    fxtap_buffer_text(out, "\n");
}

static void append_moments(fxtap_buffer *out, const fxtap_stats *stats)
{
    append_named(out, "mean", stats->mean);
    if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_COMPLEX) {
        append_named(out, "mean.imag", stats->mean_imag);
    }
    append_named(out, "std", stats->std);
    append_named(out, "rms", stats->rms);
    fxtap_buffer_text(out, "l2 ");
    text_append_number(out, stats->l2_norm, DIGITS);
    fxtap_buffer_text(out, "\n");
}

void describe_stats(fxtap_buffer *out, const char *indent, const fxtap_stats *stats)
{
    if (stats->count == 0) {
        fxtap_buffer_printf(out, "%sno elements\n", indent);
        return;
    }
    if (!isnan(stats->abs_max)) {
        fxtap_buffer_text(out, indent);
        append_range(out, stats);
    }
    if (stats->finite_count > 0) {
        fxtap_buffer_text(out, indent);
        append_moments(out, stats);
    }
    fxtap_buffer_text(out, indent);
    text_append_count(out, stats->count);
    fxtap_buffer_text(out, stats->count == 1 ? " value" : " values");
    append_counted(out, ", ", stats->zero_count, stats->zero_count == 1 ? "zero" : "zeros");
    append_counted(out, ", ", stats->subnormal_count, "subnormal");
    if (stats->finite_count < stats->count) {
        fxtap_buffer_printf(out, ", %s", text_begin(STYLE_BAD));
        describe_non_finite(out, stats);
        fxtap_buffer_text(out, text_end(STYLE_BAD));
    }
    fxtap_buffer_text(out, "\n");
}

/* ---- JSON ---- */

static void json_bound(fxtap_json *json, const char *key, const fxtap_stats *stats, bool is_max)
{
    int64_t integer = is_max ? stats->max_int : stats->min_int;
    if (!stats->has_range) {
        fxtap_json_null(json, key);
    } else if (!is_integer(stats)) {
        fxtap_json_double(json, key, is_max ? stats->max : stats->min);
    } else if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_INT) {
        fxtap_json_int(json, key, integer);
    } else {
        fxtap_json_uint(json, key, (uint64_t)integer);
    }
}

void describe_stats_json(fxtap_json *json, const fxtap_stats *stats)
{
    fxtap_json_uint(json, "count", stats->count);
    fxtap_json_uint(json, "finite", stats->finite_count);
    fxtap_json_uint(json, "nan", stats->nan_count);
    fxtap_json_uint(json, "pos_inf", stats->pos_inf_count);
    fxtap_json_uint(json, "neg_inf", stats->neg_inf_count);
    fxtap_json_uint(json, "zero", stats->zero_count);
    fxtap_json_uint(json, "subnormal", stats->subnormal_count);
    json_bound(json, "min", stats, false);
    json_bound(json, "max", stats, true);
    fxtap_json_double(json, "abs_max", stats->abs_max);
    fxtap_json_double(json, "mean", stats->mean);
    if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_COMPLEX) {
        fxtap_json_double(json, "mean_imag", stats->mean_imag);
    }
    fxtap_json_double(json, "std", stats->std);
    fxtap_json_double(json, "rms", stats->rms);
    fxtap_json_double(json, "l2_norm", stats->l2_norm);
}

static void json_extents(fxtap_json *json, const char *key, const int64_t *extents, int32_t ndim)
{
    fxtap_json_begin_array(json, key);
    for (int32_t i = 0; i < ndim; i++) {
        fxtap_json_int(json, NULL, extents[i]);
    }
    fxtap_json_end_array(json);
}

void describe_hash(char out[33], fxtap_hash128 hash)
{
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

void describe_tensor_json(fxtap_json *json, const fxtap_tensor_info *info)
{
    if (info->has_meta) {
        fxtap_json_string(json, "dtype", fxtap_dtype_name(info->dtype));
        fxtap_json_string(json, "saved_dtype", fxtap_dtype_name(info->saved_dtype));
        json_extents(json, "shape", info->shape, info->ndim);
        if (info->strides != NULL) {
            json_extents(json, "strides", info->strides, info->ndim);
        }
        if (info->layout[0] != '\0') {
            fxtap_json_string(json, "layout", info->layout);
        }
        if (info->device[0] != '\0') {
            fxtap_json_string(json, "device", info->device);
        }
        fxtap_json_bool(json, "fortran_order", info->fortran_order);
        fxtap_json_uint(json, "bytes", info->bytes);
    }
    if (info->has_hash) {
        char hash[33];
        describe_hash(hash, info->hash);
        fxtap_json_string(json, "hash", hash);
    }
    if (info->has_stats) {
        fxtap_json_begin_object(json, "statistics");
        describe_stats_json(json, &info->stats);
        if (info->undefined_count > 0) {
            fxtap_json_uint(json, "undefined", info->undefined_count);
        }
        fxtap_json_end_object(json);
    }
}
