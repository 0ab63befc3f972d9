/* A constant tensor as torch's str() prints it: tensor([[1., 2.], [3., 4.]], dtype=torch.float64). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ge/ge.h"
#include "util/number.h"

enum { EDGE_ITEMS = 3, SUMMARY_OVER = 1000, LINE_WIDTH = 80, PREFIX = 7 };

typedef struct shown {
    const fx_ge_tensor *tensor;
    size_t item_bytes;
    fxtap_dtype_class class_of;
    bool is_whole; /* every finite float is an integer: printed as "1." */
    bool is_scientific;
    int width;
    bool is_summary;
} shown;

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023, sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25));
}

static double float_at(const shown *s, size_t index)
{
    const uint8_t *at = (const uint8_t *)s->tensor->bytes + index * s->item_bytes;
    uint16_t half;
    uint32_t word;
    float single;
    double value;
    switch (s->tensor->dtype) {
    case FXTAP_FLOAT64:
        memcpy(&value, at, 8);
        return value;
    case FXTAP_FLOAT32:
        memcpy(&single, at, 4);
        return (double)single;
    case FXTAP_BFLOAT16:
        memcpy(&half, at, 2);
        word = (uint32_t)half << 16;
        memcpy(&single, &word, 4);
        return (double)single;
    default:
        memcpy(&half, at, 2);
        return half_value(half);
    }
}

static int64_t int_at(const shown *s, size_t index)
{
    const uint8_t *at = (const uint8_t *)s->tensor->bytes + index * s->item_bytes;
    uint64_t bits = 0;
    memcpy(&bits, at, s->item_bytes);
    unsigned unused = (unsigned)(64 - 8 * s->item_bytes);
    if (s->class_of == FXTAP_CLASS_INT && unused > 0) {
        return (int64_t)(bits << unused) >> unused;
    }
    return (int64_t)bits;
}

/* ---- numbers ---- */

static int number_text(const shown *s, size_t index, char *out, size_t capacity)
{
    if (s->class_of == FXTAP_CLASS_BOOL) {
        return snprintf(out, capacity, "%s", int_at(s, index) != 0 ? "True" : "False");
    }
    if (s->class_of == FXTAP_CLASS_INT) {
        return snprintf(out, capacity, "%lld", (long long)int_at(s, index));
    }
    if (s->class_of == FXTAP_CLASS_UINT) {
        return snprintf(out, capacity, "%llu", (unsigned long long)int_at(s, index));
    }
    double value = float_at(s, index);
    if (isnan(value)) {
        return snprintf(out, capacity, "nan");
    }
    if (isinf(value)) {
        return snprintf(out, capacity, "%s", value < 0 ? "-inf" : "inf");
    }
    bool is_whole = s->is_whole && !s->is_scientific;
    size_t length = fx_double_format(value, s->is_scientific ? 'e' : 'f', is_whole ? 0 : 4, out, capacity - is_whole);
    if (is_whole) {
        out[length++] = '.';
        out[length] = '\0';
    }
    return (int)length;
}

/* Indices that are printed along a dimension. */
static bool is_shown(const shown *s, int64_t index, int64_t size)
{
    return !s->is_summary || size <= 2 * EDGE_ITEMS || index < EDGE_ITEMS || index >= size - EDGE_ITEMS;
}

typedef void (*visitor)(shown *s, size_t index, void *context);

static void visit(shown *s, size_t dim, size_t base, visitor call, void *context)
{
    if (dim == s->tensor->n_dims) {
        call(s, base, context);
        return;
    }
    int64_t size = s->tensor->dims[dim];
    for (int64_t i = 0; i < size; i++) {
        if (is_shown(s, i, size)) {
            visit(s, dim + 1, base * (size_t)size + (size_t)i, call, context);
        }
    }
}

typedef struct extent {
    double smallest, largest; /* magnitudes of the finite values that are not 0 */
    bool all_whole, any;
} extent;

static void measure(shown *s, size_t index, void *context)
{
    extent *e = context;
    double value = float_at(s, index), magnitude = fabs(value);
    if (!isfinite(value) || value == 0) {
        return;
    }
    e->smallest = !e->any || magnitude < e->smallest ? magnitude : e->smallest;
    e->largest = !e->any || magnitude > e->largest ? magnitude : e->largest;
    e->all_whole &= value == ceil(value);
    e->any = true;
}

static void widen(shown *s, size_t index, void *context)
{
    char text[400];
    (void)context;
    if (s->class_of == FXTAP_CLASS_FLOAT && (!isfinite(float_at(s, index)) || float_at(s, index) == 0)) {
        return; /* torch measures finite values other than 0, and integers without the point */
    }
    int length = number_text(s, index, text, sizeof text) - (s->is_whole ? 1 : 0);
    s->width = length > s->width ? length : s->width;
}

static void choose_format(shown *s)
{
    extent e = {0, 0, true, false};
    if (s->class_of == FXTAP_CLASS_FLOAT) {
        visit(s, 0, 0, measure, &e);
        double ratio = e.any ? e.largest / e.smallest : 1;
        s->is_whole = e.all_whole;
        s->is_scientific = e.any && (ratio > 1000 || e.largest > 1e8 || (!e.all_whole && e.smallest < 1e-4));
        s->is_whole = s->is_whole && !s->is_scientific;
    }
    visit(s, 0, 0, widen, NULL);
}

/* ---- brackets ---- */

static void one_number(fxtap_buffer *out, const shown *s, size_t index)
{
    char text[400];
    int length = number_text(s, index, text, sizeof text);
    fxtap_buffer_printf(out, "%*s", s->width, length > 0 ? text : "");
}

static void row(fxtap_buffer *out, const shown *s, size_t base, int64_t size, int indent)
{
    int per_line = (LINE_WIDTH - indent) / (s->width + 2), count = 0;
    bool has_gap = false;
    per_line = per_line < 1 ? 1 : per_line;
    fxtap_buffer_text(out, "[");
    for (int64_t i = 0; i < size; i++) {
        bool shows = is_shown(s, i, size);
        if (!shows && has_gap) {
            continue;
        }
        if (count > 0) {
            fxtap_buffer_text(out, ",");
        }
        if (count > 0 && count % per_line == 0) {
            fxtap_buffer_printf(out, "\n%*s", indent + 1, "");
        } else if (count > 0) {
            fxtap_buffer_text(out, " ");
        }
        if (shows) {
            one_number(out, s, base * (size_t)size + (size_t)i);
        } else {
            fxtap_buffer_text(out, " ...");
        }
        has_gap |= !shows;
        count++;
    }
    fxtap_buffer_text(out, "]");
}

static void nested(fxtap_buffer *out, const shown *s, size_t dim, size_t base, int indent)
{
    int64_t size = s->tensor->dims[dim];
    bool has_gap = false, is_first = true;
    if (dim + 1 == s->tensor->n_dims) {
        row(out, s, base, size, indent);
        return;
    }
    fxtap_buffer_text(out, "[");
    for (int64_t i = 0; i < size; i++) {
        bool shows = is_shown(s, i, size);
        if (!shows && has_gap) {
            continue;
        }
        if (!is_first) {
            fxtap_buffer_text(out, ",");
            for (size_t j = dim + 1; j < s->tensor->n_dims; j++) {
                fxtap_buffer_text(out, "\n");
            }
            fxtap_buffer_printf(out, "%*s", indent + 1, "");
        }
        if (shows) {
            nested(out, s, dim + 1, base * (size_t)size + (size_t)i, indent + 1);
        } else {
            fxtap_buffer_text(out, "...");
        }
        has_gap |= !shows;
        is_first = false;
    }
    fxtap_buffer_text(out, "]");
}

static bool is_default_dtype(fxtap_dtype dtype, bool is_empty)
{
    if (is_empty) {
        return dtype == FXTAP_FLOAT32;
    }
    return dtype == FXTAP_FLOAT32 || dtype == FXTAP_INT64 || dtype == FXTAP_BOOL || dtype == FXTAP_COMPLEX64;
}

static void dims_text(fxtap_buffer *out, const fx_ge_tensor *tensor)
{
    fxtap_buffer_text(out, ", size=(");
    for (size_t i = 0; i < tensor->n_dims; i++) {
        fxtap_buffer_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)tensor->dims[i]);
    }
    fxtap_buffer_text(out, ")");
}

/* UINT64_MAX on overflow. */
static uint64_t element_count(const fx_ge_tensor *tensor)
{
    uint64_t count = 1;
    bool is_empty = false, is_huge = false;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        is_empty |= tensor->dims[i] <= 0;
        is_huge |= !is_empty && __builtin_mul_overflow(count, (uint64_t)tensor->dims[i], &count);
    }
    return is_empty ? 0 : is_huge ? UINT64_MAX : count;
}

void fx_tensor_repr(fxtap_buffer *out, const fx_ge_tensor *tensor)
{
    shown s = {.tensor = tensor, .item_bytes = fxtap_dtype_size(tensor->dtype)};
    uint64_t count = element_count(tensor);
    s.class_of = fxtap_dtype_class_of(tensor->dtype);
    s.is_summary = count > SUMMARY_OVER;
    bool is_readable = tensor->bytes != NULL && count > 0 && tensor->n_bytes / s.item_bytes >= count &&
                       tensor->n_dims <= FXTAP_MAX_DIMS && /* maximum depth of brackets */
                       s.class_of != FXTAP_CLASS_COMPLEX && s.class_of != FXTAP_CLASS_TEXT && s.item_bytes <= 8 &&
                       (s.class_of != FXTAP_CLASS_FLOAT || s.item_bytes > 1);
    fxtap_buffer_text(out, "tensor(");
    if (is_readable) {
        choose_format(&s);
        if (tensor->n_dims == 0) {
            s.width = 0;
            one_number(out, &s, 0);
        } else {
            nested(out, &s, 0, 0, PREFIX);
        }
    } else {
        fxtap_buffer_text(out, count == 0 ? "[]" : "...");
    }
    if ((count == 0 && tensor->n_dims != 1) || (!is_readable && count > 0)) {
        dims_text(out, tensor);
    }
    if (!is_default_dtype(tensor->dtype, count == 0)) {
        fxtap_buffer_printf(out, ", dtype=torch.%s", fxtap_dtype_name(tensor->dtype));
    }
    fxtap_buffer_text(out, ")");
}
