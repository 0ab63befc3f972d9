/* csv.c - the report as CSV: one row per pair, with the column names of msprobe's comparison. */
#include <inttypes.h>
#include <string.h>

#include "report/print.h"

typedef void (*cell_function)(fxtap_buffer *out, const fxtap_pair *pair);

static void golden_name(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, pair->verdict == FXTAP_ONLY_TARGET ? "" : pair->name);
}

static void target_name(fxtap_buffer *out, const fxtap_pair *pair)
{
    const char *name = pair->target_name != NULL ? pair->target_name : pair->name;
    fxtap_buffer_text(out, pair->verdict == FXTAP_ONLY_GOLDEN ? "" : name);
}

static void golden_dtype(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, fxtap_dtype_name(pair->golden_dtype));
}

static void target_dtype(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, fxtap_dtype_name(pair->target_dtype));
}

static void golden_shape(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, "[");
    fx_print_shape(out, pair->ndim, pair->shape, ", ");
    fxtap_buffer_text(out, "]");
}

static void target_shape(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, "[");
    fx_print_shape(out, pair->target_ndim, pair->target_shape, ", ");
    fxtap_buffer_text(out, "]");
}

static void metric(fxtap_buffer *out, const fxtap_pair *pair, double value)
{
    if (pair->measured) {
        fxtap_buffer_double(out, value);
    }
}

#define METRIC_CELL(field)                                                                                             \
    static void cell_##field(fxtap_buffer *out, const fxtap_pair *pair)                                                \
    {                                                                                                                  \
        metric(out, pair, (double)pair->field);                                                                        \
    }

METRIC_CELL(cosine)
METRIC_CELL(euclidean)
METRIC_CELL(max_abs_err)
METRIC_CELL(max_rel_err)
METRIC_CELL(within_1e3)
METRIC_CELL(within_5e3)
METRIC_CELL(mean_abs_err)
METRIC_CELL(rmse)
METRIC_CELL(rel_l2)
METRIC_CELL(max_ulp)
METRIC_CELL(mismatched)

#define STATS_CELL(side, field, is_known)                                                                              \
    static void cell_##side##_##field(fxtap_buffer *out, const fxtap_pair *pair)                                       \
    {                                                                                                                  \
        const fxtap_stats *stats = pair->side##_stats;                                                                 \
        if (stats != NULL && (is_known)) {                                                                             \
            fxtap_buffer_double(out, stats->field);                                                                    \
        }                                                                                                              \
    }

STATS_CELL(target, max, stats->has_range)
STATS_CELL(target, min, stats->has_range)
STATS_CELL(target, mean, true)
STATS_CELL(target, l2_norm, true)
STATS_CELL(golden, max, stats->has_range)
STATS_CELL(golden, min, stats->has_range)
STATS_CELL(golden, mean, true)
STATS_CELL(golden, l2_norm, true)

static void result(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, fxtap_verdict_name(pair->verdict));
}

static void message(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, pair->detail);
}

static void place(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_printf(out, "rank %" PRId32 " graph %" PRIu32 " step %" PRId64, pair->rank, pair->graph, pair->step);
}

static void source(fxtap_buffer *out, const fxtap_pair *pair)
{
    if (pair->source_file[0] != '\0') {
        fxtap_buffer_printf(out, "%s:%" PRId32, pair->source_file, pair->source_line);
    }
}

static void module(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, pair->module_path);
}

static void verified(fxtap_buffer *out, const fxtap_pair *pair)
{
    fxtap_buffer_text(out, pair->verified == NULL ? "" : pair->verified);
}

static const struct {
    const char *title;
    cell_function write;
} columns[] = {
    {"Target Name", target_name},
    {"Golden Name", golden_name},
    {"Target Dtype", target_dtype},
    {"Golden Dtype", golden_dtype},
    {"Target Tensor Shape", target_shape},
    {"Golden Tensor Shape", golden_shape},
    {"Cosine", cell_cosine},
    {"EucDist", cell_euclidean},
    {"MaxAbsErr", cell_max_abs_err},
    {"MaxRelativeErr", cell_max_rel_err},
    {"One Thousandth Err Ratio", cell_within_1e3},
    {"Five Thousandths Err Ratio", cell_within_5e3},
    {"MeanAbsErr", cell_mean_abs_err},
    {"RMSE", cell_rmse},
    {"RelativeL2", cell_rel_l2},
    {"MaxUlp", cell_max_ulp},
    {"Mismatched", cell_mismatched},
    {"Target max", cell_target_max},
    {"Target min", cell_target_min},
    {"Target mean", cell_target_mean},
    {"Target l2norm", cell_target_l2_norm},
    {"Golden max", cell_golden_max},
    {"Golden min", cell_golden_min},
    {"Golden mean", cell_golden_mean},
    {"Golden l2norm", cell_golden_l2_norm},
    {"Result", result},
    {"Err_message", message},
    {"Place", place},
    {"Source", source},
    {"Module", module},
    {"Verified", verified}, /* the last: only of a report that was verified */
};

void fx_report_print_csv(const fxtap_report *report, fxtap_buffer *out)
{
    size_t n_columns = sizeof columns / sizeof columns[0] - (report->verified.is_known ? 0 : 1);
    for (size_t c = 0; c < n_columns; c++) {
        fxtap_csv_field(out, columns[c].title, c == 0);
    }
    fxtap_csv_end_row(out);
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    for (size_t i = 0; i < report->n_pairs; i++) {
        for (size_t c = 0; c < n_columns; c++) {
            cell.length = 0;
            columns[c].write(&cell, &report->pairs[i]);
            fxtap_buffer_append(&cell, "", 1);
            fxtap_csv_field(out, fxtap_buffer_status(&cell) == FXTAP_OK ? cell.bytes : "", c == 0);
        }
        fxtap_csv_end_row(out);
    }
    if (fxtap_buffer_status(&cell) != FXTAP_OK) {
        out->status = cell.status;
    }
    fxtap_buffer_clear(&cell);
}
