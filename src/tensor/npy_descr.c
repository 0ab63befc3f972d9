/* npy_descr.c - NumPy's type strings: an optional byte order, a letter, a size, as "<f4". */
#include <inttypes.h>
#include <string.h>

#include "tensor/npy_header.h"
#include "util/error.h"

static const struct {
    char kind;
    uint64_t size;
    fxtap_dtype dtype;
} types[] = {
    {'b', 1, FXTAP_BOOL},    {'u', 1, FXTAP_UINT8},   {'u', 2, FXTAP_UINT16},    {'u', 4, FXTAP_UINT32},
    {'u', 8, FXTAP_UINT64},  {'i', 1, FXTAP_INT8},    {'i', 2, FXTAP_INT16},     {'i', 4, FXTAP_INT32},
    {'i', 8, FXTAP_INT64},   {'f', 2, FXTAP_FLOAT16}, {'f', 4, FXTAP_FLOAT32},   {'f', 8, FXTAP_FLOAT64},
    {'c', 8, FXTAP_COMPLEX64}, {'c', 16, FXTAP_COMPLEX128},
};

static fxtap_status malformed(const char *name, const char *descr)
{
    return fx_error_at(FXTAP_E_FORMAT, name, "descr '%s' is no NumPy dtype", descr);
}

/* Kinds that NumPy has and a tensor has not; NULL for a letter that is none. */
static const char *foreign_kind(char kind)
{
    switch (kind) {
    case 'O':
        return "an object array, which is never unpickled";
    case 'M':
    case 'm':
        return "an array of dates or durations";
    case 'S':
    case 'a':
        return "an array of byte strings";
    case 'V':
        return "an array of raw bytes";
    case 'T':
        return "an array of variable-length strings";
    default:
        return NULL;
    }
}

/* Decimal digits to the end of the text; false where there are none, others, or too many. */
static bool parse_size(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 12) {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return true;
}

static bool find_type(char kind, uint64_t size, fxtap_dtype *out)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].kind == kind && types[i].size == size) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

fxtap_status fx_npy_parse_descr(const char *name, fx_npy_header *header)
{
    const char *c = header->descr;
    header->big_endian = *c == '>' || *c == '!';
    c += *c != '\0' && strchr("<>|=!", *c) != NULL;
    char kind = *c;
    const char *foreign = foreign_kind(kind);
    if (foreign != NULL) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, name, "descr '%s' is %s", header->descr, foreign);
    }
    uint64_t size;
    if (kind == '\0' || !parse_size(c + 1, &size)) {
        return malformed(name, header->descr);
    }
    if (kind == 'U') {
        header->dtype = FXTAP_STRING;
        header->item_bytes = size * 4;
        return FXTAP_OK;
    }
    if (find_type(kind, size, &header->dtype)) {
        header->item_bytes = size;
        return FXTAP_OK;
    }
    bool extended = (kind == 'f' && (size == 12 || size == 16)) || (kind == 'c' && (size == 24 || size == 32));
    if (extended) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, name, "descr '%s' is extended precision", header->descr);
    }
    return malformed(name, header->descr);
}
