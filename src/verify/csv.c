/* csv.c - a verification as CSV: one row for each operator call, of the result that decides its verdict. */
#include <inttypes.h>
#include <math.h>

#include "report/print.h"
#include "verify/print.h"

typedef const fxtap_verify_result row;

static void number(fxtap_buffer *out, bool is_known, double value)
{
    if (is_known && !isnan(value)) {
        fxtap_buffer_double(out, value);
    }
}

static void count(fxtap_buffer *out, row *r, uint64_t value)
{
    if (r->is_measured) {
        fxtap_buffer_printf(out, "%" PRIu64, value);
    }
}

static void source(fxtap_buffer *out, const fxtap_verify_place *place)
{
    if (place->source_file[0] != '\0') {
        fxtap_buffer_printf(out, "%s:%" PRId32, place->source_file, place->source_line);
    }
}

/* Column, and what writes its cell; `r` is the row and `out` the cell. */
#define COLUMNS(X)                                                                                                     \
    X(rank, fxtap_buffer_printf(out, "%" PRId32, r->place.rank))                                                       \
    X(graph, fxtap_buffer_printf(out, "%" PRIu32, r->place.graph))                                                     \
    X(step, fxtap_buffer_printf(out, "%" PRId64, r->place.step))                                                       \
    X(node, fxtap_buffer_text(out, r->place.node))                                                                     \
    X(target, fxtap_buffer_text(out, r->place.operator_name))                                                          \
    X(slot, fxtap_buffer_text(out, r->place.slot))                                                                     \
    X(dtype, fxtap_buffer_text(out, fxtap_dtype_name(r->place.dtype)))                                                 \
    X(shape, fx_print_shape(out, r->place.ndim, r->place.shape, ","))                                                  \
    X(verdict, fxtap_buffer_text(out, fxtap_verify_verdict_name(r->verdict)))                                          \
    X(reason, fxtap_buffer_text(out, r->reason))                                                                       \
    X(ratio, number(out, r->is_measured, r->error.ratio))                                                              \
    X(ratio_usual, number(out, r->has_third, r->third.ratio))                                                          \
    X(misrounded, number(out, r->is_measured, fx_misrounded_share(&r->error)))                                         \
    X(misrounded_usual, number(out, r->has_third, fx_misrounded_share(&r->third)))                                     \
    X(bias, number(out, r->is_measured, r->error.bias))                                                                \
    X(bias_error, number(out, r->is_measured, r->error.bias_error))                                                    \
    X(max_ulp, number(out, r->is_measured, r->error.max_ulp))                                                          \
    X(rms_error, number(out, r->is_measured, r->error.rms_error))                                                      \
    X(rms_allowance, number(out, r->is_measured, r->error.rms_allowance))                                              \
    X(count, count(out, r, r->error.count))                                                                            \
    X(outliers, count(out, r, r->error.outliers))                                                                      \
    X(special, count(out, r, r->error.special))                                                                        \
    X(unexplained, count(out, r, r->error.unexplained))                                                                \
    X(source, source(out, &r->place))                                                                                  \
    X(code, fxtap_buffer_text(out, r->place.source_code))                                                              \
    X(module, fxtap_buffer_text(out, r->place.module_path))

#define X(name, write)                                                                                                 \
    static void cell_##name(fxtap_buffer *out, row *r)                                                                 \
    {                                                                                                                  \
        write;                                                                                                         \
    }
COLUMNS(X)
#undef X

static const struct {
    const char *title;
    void (*write)(fxtap_buffer *out, row *r);
} columns[] = {
#define X(name, write) {#name, cell_##name},
    COLUMNS(X)
#undef X
};

void fx_verification_print_csv(const fxtap_verification *verification, fxtap_buffer *out)
{
    size_t n_columns = sizeof columns / sizeof columns[0];
    for (size_t c = 0; c < n_columns; c++) {
        fxtap_csv_field(out, columns[c].title, c == 0);
    }
    fxtap_csv_end_row(out);
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    for (size_t i = 0; i < verification->n_operators; i++) {
        for (size_t c = 0; c < n_columns; c++) {
            cell.length = 0;
            columns[c].write(&cell, fx_deciding_result(verification, i));
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
