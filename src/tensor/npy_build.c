/* npy_build.c - writes the header of an .npy file, byte for byte as NumPy (1.23 and later) does. */
#include "fxtap/npy.h"

#include <inttypes.h>
#include <string.h>

#include "util/error.h"
#include "util/number.h"

#define ALIGNMENT 64
#define GROWTH_DIGITS 21 /* as NumPy: room to rewrite the first extent (the last in Fortran order) in place */

/* Text in the caller's memory; `length` counts on if it does not fit. */
typedef struct sink {
    char *bytes;
    size_t capacity;
    size_t length;
} sink;

static void put(sink *to, const char *text, size_t n)
{
    if (to->bytes != NULL && to->length + n <= to->capacity) {
        memcpy(to->bytes + to->length, text, n);
    }
    to->length += n;
}

static size_t put_extent(sink *to, int64_t extent)
{
    char digits[FX_NUMBER_BYTES];
    size_t n = fx_i64_text(extent, digits);
    put(to, digits, n);
    return n;
}

static void put_spaces(sink *to, size_t n)
{
    if (to->bytes != NULL && n <= to->capacity && to->length <= to->capacity - n) {
        memset(to->bytes + to->length, ' ', n);
    }
    to->length += n;
}

static void put_dictionary(sink *to, const char *descr, bool fortran_order, int32_t ndim, const int64_t *shape)
{
    const char *order =
        fortran_order ? "', 'fortran_order': True, 'shape': (" : "', 'fortran_order': False, 'shape': (";
    size_t growing_digits = GROWTH_DIGITS;
    put(to, "{'descr': '", 11);
    put(to, descr, strlen(descr));
    put(to, order, strlen(order));
    for (int32_t i = 0; i < ndim; i++) {
        size_t n = put_extent(to, shape[i]);
        if (i == (fortran_order ? ndim - 1 : 0)) {
            growing_digits = n;
        }
        put(to, ", ", i + 1 < ndim ? 2 : (ndim == 1 ? 1 : 0));
    }
    put(to, "), }", 4);
    put_spaces(to, GROWTH_DIGITS - growing_digits);
}

/* Pads prefix and dictionary with spaces and a newline to a multiple of the alignment, and prepends the prefix. */
static void finish(sink *to, size_t prefix, char *dst)
{
    size_t total = (prefix + to->length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    put_spaces(to, total - 1 - to->length - prefix);
    put(to, "\n", 1);
    const unsigned char start[12] = {0x93,
                                     'N',
                                     'U',
                                     'M',
                                     'P',
                                     'Y',
                                     prefix == 10 ? 1 : 2,
                                     0,
                                     (unsigned char)to->length,
                                     (unsigned char)(to->length >> 8),
                                     (unsigned char)(to->length >> 16),
                                     (unsigned char)(to->length >> 24)};
    memcpy(dst, start, prefix);
}

fxtap_status fxtap_npy_header(const char *descr, bool fortran_order, int32_t ndim, const int64_t *shape, void *dst,
                              size_t capacity, size_t *out)
{
    FX_REQUIRE(descr);
    FX_REQUIRE(dst);
    FX_REQUIRE(out);
    if (ndim < 0 || ndim > FXTAP_MAX_DIMS) {
        return fx_error(FXTAP_E_INVALID, "an array has %" PRId32 " dimensions: 0 to %d are allowed", ndim,
                        FXTAP_MAX_DIMS);
    }
    if (ndim > 0) {
        FX_REQUIRE(shape);
    }
    /* Measured first: the version depends on the length. */
    sink to = {.bytes = NULL};
    put_dictionary(&to, descr, fortran_order, ndim, shape);
    size_t prefix = to.length + 10 + ALIGNMENT > UINT16_MAX ? 12 : 10;
    size_t total = (prefix + to.length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (total > capacity) {
        return fx_error(FXTAP_E_INVALID, "a header of %zu bytes does not fit in %zu", total, capacity);
    }
    to = (sink){.bytes = (char *)dst + prefix, .capacity = capacity - prefix};
    put_dictionary(&to, descr, fortran_order, ndim, shape);
    finish(&to, prefix, dst);
    *out = total;
    return FXTAP_OK;
}
