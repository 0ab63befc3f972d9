#include "values.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fxtap/stats.h"
#include "text.h"

#define EDGE 3      /* values shown at each end of an axis */
#define MAX_WHOLE 8 /* an axis of this length is shown whole, and a list on one line */
#define CELL 12     /* columns of a value in a matrix */
#define CHUNK ((size_t)4096)
#define N_BINS 12
#define FEWEST 16 /* minimum number of values for a histogram */
#define DIGITS 5

/* A value of a saved dtype. */
typedef union element {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    float c64[2];
    double c128[2];
} element;

static double half_to_double(uint16_t bits)
{
    double sign = bits & 0x8000 ? -1.0 : 1.0;
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    if (exponent == 31) {
        return fraction > 0.0 ? (double)NAN : sign * (double)INFINITY;
    }
    return exponent == 0 ? sign * ldexp(fraction, -24) : sign * ldexp(1024.0 + fraction, exponent - 25);
}

/* Real part and imaginary part. */
static double to_double(fxtap_dtype saved, const element *e, double *imag_out)
{
    *imag_out = 0.0;
    switch (saved) {
    case FXTAP_BOOL:
    case FXTAP_UINT8:
        return e->u8;
    case FXTAP_UINT16:
        return e->u16;
    case FXTAP_UINT32:
        return e->u32;
    case FXTAP_UINT64:
        return (double)e->u64;
    case FXTAP_INT8:
        return e->i8;
    case FXTAP_INT16:
        return e->i16;
    case FXTAP_INT32:
        return e->i32;
    case FXTAP_INT64:
        return (double)e->i64;
    case FXTAP_FLOAT16:
        return half_to_double(e->u16);
    case FXTAP_FLOAT32:
        return (double)e->f32;
    case FXTAP_FLOAT64:
        return e->f64;
    case FXTAP_COMPLEX64:
        *imag_out = (double)e->c64[1];
        return (double)e->c64[0];
    case FXTAP_COMPLEX128:
        *imag_out = e->c128[1];
        return e->c128[0];
    default:
        return NAN;
    }
}

static void append_element(fxtap_buffer *out, fxtap_dtype saved, const element *e)
{
    double imag;
    double real = to_double(saved, e, &imag);
    switch (fxtap_dtype_class_of(saved)) {
    case FXTAP_CLASS_BOOL:
        fxtap_buffer_text(out, e->u8 != 0 ? "True" : "False");
        break;
    case FXTAP_CLASS_UINT:
    case FXTAP_CLASS_INT:
        if (saved == FXTAP_UINT64) {
            fxtap_buffer_printf(out, "%" PRIu64, e->u64);
        } else {
            fxtap_buffer_printf(out, "%" PRId64, saved == FXTAP_INT64 ? e->i64 : (int64_t)real);
        }
        break;
    case FXTAP_CLASS_COMPLEX:
        text_append_number(out, real, DIGITS);
        fxtap_buffer_text(out, signbit(imag) ? "" : "+");
        text_append_number(out, imag, DIGITS);
        fxtap_buffer_text(out, "j");
        break;
    default:
        text_append_number(out, real, DIGITS);
    }
}

static fxtap_status read_at(const fxtap_view *view, const int64_t *index, element *out)
{
    uint64_t first = 0;
    bool is_column_major = fxtap_view_order(view) == FXTAP_ORDER_FORTRAN;
    for (int32_t i = 0; i < view->ndim; i++) {
        int32_t axis = is_column_major ? view->ndim - 1 - i : i;
        first = first * (uint64_t)view->shape[axis] + (uint64_t)index[axis];
    }
    return fxtap_view_gather(view, first, 1, out);
}

/* ---- corners ---- */

typedef struct corner_printer {
    fxtap_buffer *out;
    const char *indent;
    const fxtap_view *view;
    int64_t index[FXTAP_MAX_DIMS];
    fxtap_status status;
} corner_printer;

/* The next printed index along an axis: all of a short one, else three at each end; -1 marks the gap. */
static int64_t next_shown(int64_t i, int64_t extent, int64_t most)
{
    if (extent > most && i == EDGE - 1) {
        return -1;
    }
    return i == -1 ? extent - EDGE : i + 1;
}

/* Maximum length of a row that is shown whole: for a matrix, as many values as fit the line. */
static int64_t max_in_row(const corner_printer *p)
{
    bool has_room = p->view->ndim == 1 || strlen(p->indent) + (size_t)MAX_WHOLE * CELL <= text_width();
    return has_room ? MAX_WHOLE : 2 * EDGE;
}

static void append_row(corner_printer *p)
{
    int32_t axis = p->view->ndim - 1;
    int64_t extent = p->view->shape[axis], most = max_in_row(p);
    fxtap_buffer cell;
    fxtap_buffer_init(&cell);
    for (int64_t i = 0; i < extent && p->status == FXTAP_OK; i = next_shown(i, extent, most)) {
        if (i < 0) {
            fxtap_buffer_text(p->out, "  ...");
            continue;
        }
        element e = {0};
        p->index[axis] = i;
        p->status = read_at(p->view, p->index, &e);
        append_element(&cell, p->view->dtype, &e);
        fxtap_buffer_printf(p->out, "%*s", p->view->ndim > 1 ? CELL : (int)cell.length + 2, cell.bytes);
        fxtap_buffer_clear(&cell);
    }
    fxtap_buffer_text(p->out, "\n");
}

/* With more than two axes, only the first matrix is shown, with its index. */
static void append_matrix(corner_printer *p)
{
    const fxtap_view *view = p->view;
    int32_t axis = view->ndim - 2;
    if (view->ndim > 2) {
        fxtap_buffer_printf(p->out, "%s[", p->indent);
        for (int32_t i = 0; i < axis; i++) {
            fxtap_buffer_text(p->out, "0, ");
        }
        fxtap_buffer_text(p->out, ":, :]\n");
    }
    int64_t extent = view->shape[axis];
    for (int64_t i = 0; i < extent && p->status == FXTAP_OK; i = next_shown(i, extent, MAX_WHOLE)) {
        fxtap_buffer_text(p->out, p->indent);
        if (i < 0) {
            fxtap_buffer_printf(p->out, "%*s\n", CELL, "...");
            continue;
        }
        p->index[axis] = i;
        append_row(p);
    }
}

static bool has_elements(const fxtap_view *view)
{
    uint64_t count;
    return view->dtype != FXTAP_STRING && fxtap_view_count(view, &count) == FXTAP_OK && count > 0;
}

fxtap_status values_append_scalar(fxtap_buffer *out, const fxtap_npy *npy)
{
    element e = {0};
    fxtap_status status = fxtap_view_gather(fxtap_npy_view(npy), 0, 1, &e);
    if (status == FXTAP_OK) {
        append_element(out, fxtap_npy_view(npy)->dtype, &e);
    }
    return status;
}

bool values_append_list(fxtap_buffer *out, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    if (view->ndim != 1 || view->shape[0] > MAX_WHOLE || !has_elements(view)) {
        return false;
    }
    fxtap_buffer list;
    fxtap_buffer_init(&list);
    fxtap_status status = FXTAP_OK;
    for (int64_t i = 0; i < view->shape[0] && status == FXTAP_OK; i++) {
        element e = {0};
        status = read_at(view, &i, &e);
        fxtap_buffer_text(&list, i > 0 ? ", " : " = [");
        append_element(&list, view->dtype, &e);
    }
    fxtap_buffer_text(&list, "]");
    bool is_well = status == FXTAP_OK && fxtap_buffer_status(&list) == FXTAP_OK;
    is_well = is_well && text_columns_of_line(out) + list.length <= text_width();
    if (is_well) {
        fxtap_buffer_append(out, list.bytes, list.length);
    }
    fxtap_buffer_clear(&list);
    return is_well;
}

fxtap_status values_append_corners(fxtap_buffer *out, const char *indent, const fxtap_npy *npy)
{
    corner_printer printer = {.out = out, .indent = indent, .view = fxtap_npy_view(npy)};
    if (!has_elements(printer.view)) {
        return FXTAP_OK;
    }
    if (printer.view->ndim > 1) {
        append_matrix(&printer);
        return printer.status;
    }
    fxtap_buffer_text(out, indent);
    if (printer.view->ndim == 1) {
        append_row(&printer);
        return printer.status;
    }
    printer.status = values_append_scalar(out, npy);
    fxtap_buffer_text(out, "\n");
    return printer.status;
}

/* ---- places ---- */

typedef struct places {
    bool has_largest, has_nan, has_inf;
    double largest;
    uint64_t at_largest, at_nan, at_inf; /* positions as fxtap_view_gather() counts */
    double low, high;                    /* of the finite values */
    uint64_t n_finite;
} places;

static void look_at(places *found, double real, double imag, uint64_t position)
{
    double magnitude = imag != 0.0 ? hypot(real, imag) : fabs(real);
    if (isnan(real) || isnan(imag)) {
        found->at_nan = found->has_nan ? found->at_nan : position;
        found->has_nan = true;
    } else if (isinf(magnitude)) {
        found->at_inf = found->has_inf ? found->at_inf : position;
        found->has_inf = true;
    } else {
        if (!found->has_largest || magnitude > found->largest) {
            found->has_largest = true;
            found->largest = magnitude;
            found->at_largest = position;
        }
        found->low = found->n_finite == 0 || real < found->low ? real : found->low;
        found->high = found->n_finite == 0 || real > found->high ? real : found->high;
        found->n_finite++;
    }
}

/* One pass over the values, piece by piece. */
static fxtap_status scan(const fxtap_view *view, places *found)
{
    uint64_t count;
    size_t size = fxtap_dtype_size(view->dtype);
    fxtap_status status = fxtap_view_count(view, &count);
    unsigned char *chunk = must_realloc(NULL, CHUNK, sizeof(element));
    for (uint64_t first = 0; status == FXTAP_OK && first < count; first += CHUNK) {
        uint64_t n = count - first < CHUNK ? count - first : CHUNK;
        status = fxtap_view_gather(view, first, n, chunk);
        for (uint64_t i = 0; status == FXTAP_OK && i < n; i++) {
            element e = {0};
            double imag;
            memcpy(&e, chunk + i * size, size);
            double real = to_double(view->dtype, &e, &imag);
            look_at(found, real, imag, first + i);
        }
    }
    free(chunk);
    return status;
}

static void append_index(fxtap_buffer *out, const fxtap_view *view, uint64_t position)
{
    int64_t index[FXTAP_MAX_DIMS];
    bool is_column_major = fxtap_view_order(view) == FXTAP_ORDER_FORTRAN;
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        int32_t axis = is_column_major ? view->ndim - 1 - i : i;
        index[axis] = (int64_t)(position % (uint64_t)view->shape[axis]);
        position /= (uint64_t)view->shape[axis];
    }
    fxtap_buffer_text(out, "[");
    for (int32_t i = 0; i < view->ndim; i++) {
        fxtap_buffer_printf(out, "%s%" PRId64, i > 0 ? ", " : "", index[i]);
    }
    fxtap_buffer_text(out, "]");
}

fxtap_status values_append_places(fxtap_buffer *out, const char *indent, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    places found = {0};
    if (!has_elements(view) || view->ndim == 0) {
        return FXTAP_OK;
    }
    fxtap_status status = scan(view, &found);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_buffer_text(out, indent);
    if (found.has_largest) {
        fxtap_buffer_text(out, "largest ");
        text_append_number(out, found.largest, DIGITS);
        fxtap_buffer_text(out, " at ");
        append_index(out, view, found.at_largest);
    }
    if (found.has_nan) {
        fxtap_buffer_text(out, found.has_largest ? "  first nan at " : "first nan at ");
        append_index(out, view, found.at_nan);
    }
    if (found.has_inf) {
        fxtap_buffer_text(out, found.has_largest || found.has_nan ? "  first inf at " : "first inf at ");
        append_index(out, view, found.at_inf);
    }
    fxtap_buffer_text(out, "\n");
    return FXTAP_OK;
}

/* ---- histogram ---- */

/* A bar of `eighths` eighths of a column. */
static void append_bar(fxtap_buffer *out, size_t eighths)
{
    static const char *const parts[] = {"",
                                        "\xe2\x96\x8f",
                                        "\xe2\x96\x8e",
                                        "\xe2\x96\x8d",
                                        "\xe2\x96\x8c",
                                        "\xe2\x96\x8b",
                                        "\xe2\x96\x8a",
                                        "\xe2\x96\x89"};
    for (size_t i = 0; i < eighths / 8; i++) {
        fxtap_buffer_text(out, text_is_utf8() ? "\xe2\x96\x88" : "#");
    }
    if (eighths % 8 > 0) {
        fxtap_buffer_text(out, text_is_utf8() ? parts[eighths % 8] : eighths % 8 >= 4 ? "#" : "");
    }
}

/* The lower edge of a bin; the width of the whole range may exceed float64. */
static double edge(const places *found, size_t bin)
{
    double width = found->high - found->low, part = (double)bin / N_BINS;
    return isinf(width) ? found->low * (1 - part) + found->high * part : found->low + width / N_BINS * (double)bin;
}

/* The number of digits that distinguishes the edges. */
static int label_digits(const places *found)
{
    double size = fmax(fabs(found->low), fabs(found->high));
    double digits = ceil(log10(size) - log10(found->high / N_BINS - found->low / N_BINS)) + 1;
    return digits <= 4 ? 4 : digits < 17 ? (int)digits : 17;
}

static void append_label(fxtap_buffer *out, const char *indent, double value, int n_digits, int columns)
{
    fxtap_buffer label;
    fxtap_buffer_init(&label);
    text_append_number(&label, value, n_digits);
    fxtap_buffer_printf(out, "%s%*s", indent, columns, label.bytes);
    fxtap_buffer_clear(&label);
}

static void append_bins(fxtap_buffer *out, const char *indent, const uint64_t *bins, const places *found,
                        size_t bar_width)
{
    uint64_t most = 1;
    for (size_t i = 0; i < N_BINS; i++) {
        most = bins[i] > most ? bins[i] : most;
    }
    int n_digits = label_digits(found);
    int columns = n_digits + 7; /* sign, point, and five characters of exponent */
    for (size_t i = 0; i < N_BINS; i++) {
        append_label(out, indent, edge(found, i), n_digits, columns);
        fxtap_buffer_text(out, "  ");
        size_t eighths = (size_t)((double)bins[i] / (double)most * (double)bar_width * 8.0);
        append_bar(out, bins[i] > 0 && eighths == 0 ? 1 : eighths);
        fxtap_buffer_text(out, bins[i] > 0 ? " " : "");
        text_append_count(out, bins[i]);
        fxtap_buffer_text(out, "\n");
    }
    append_label(out, indent, found->high, n_digits, columns);
    fxtap_buffer_text(out, "\n");
}

fxtap_status values_append_histogram(fxtap_buffer *out, const char *indent, const fxtap_npy *npy, size_t width)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    fxtap_dtype_class class = fxtap_dtype_class_of(view->dtype);
    uint64_t bins[N_BINS];
    places found = {0};
    if (!has_elements(view) || class == FXTAP_CLASS_COMPLEX || class == FXTAP_CLASS_BOOL) {
        return FXTAP_OK;
    }
    fxtap_status status = scan(view, &found);
    if (status != FXTAP_OK || found.n_finite < FEWEST || !(found.low < found.high)) {
        return status;
    }
    status = fxtap_stats_histogram(view, found.low, found.high, N_BINS, bins);
    if (status == FXTAP_OK) {
        size_t taken = strlen(indent) + (size_t)label_digits(&found) + 7 + 2 + 1 + 13;
        size_t bar_width = width > taken + 10 ? width - taken : 10;
        append_bins(out, indent, bins, &found, bar_width < 50 ? bar_width : 50);
    }
    return status;
}
