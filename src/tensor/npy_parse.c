/* npy_parse.c - a bounds-checked cursor over the Python literal of an .npy header. */
#include <inttypes.h>
#include <string.h>

#include "tensor/npy_header.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    const unsigned char *begin;
    const char *name;
} cursor;

static fxtap_status bad(const cursor *c, const char *what)
{
    return fx_error_at(FXTAP_E_FORMAT, c->name, "%s at byte %zu of the header", what, (size_t)(c->at - c->begin));
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && is_space(*c->at)) {
        c->at++;
    }
}

/* The next character after spaces; '\0' at the end (a NUL byte is an error everywhere). */
static char peek(cursor *c)
{
    skip_space(c);
    return c->at < c->end ? (char)*c->at : '\0';
}

static bool take(cursor *c, char wanted)
{
    if (peek(c) != wanted || c->at == c->end) {
        return false;
    }
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) {
        return false;
    }
    c->at += n;
    return true;
}

/* A quoted string without escapes into `out` of `capacity` bytes. */
static fxtap_status parse_string(cursor *c, const char *what, char *out, size_t capacity)
{
    char quote = peek(c);
    if (quote == 'u' || quote == 'U') { /* Python 2 */
        c->at++;
        quote = c->at < c->end ? (char)*c->at : '\0';
    }
    if (quote != '\'' && quote != '"') {
        return bad(c, what);
    }
    c->at++;
    const unsigned char *end = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (end == NULL) {
        return bad(c, "unterminated string");
    }
    size_t n = (size_t)(end - c->at);
    if (n >= capacity) {
        return bad(c, "string too long");
    }
    for (size_t i = 0; i < n; i++) {
        if (c->at[i] < 0x20 || c->at[i] > 0x7E || c->at[i] == '\\') {
            return bad(c, "invalid character in a string");
        }
    }
    memcpy(out, c->at, n);
    out[n] = '\0';
    c->at = end + 1;
    return FXTAP_OK;
}

static fxtap_status parse_descr(cursor *c, fx_npy_header *out)
{
    char next = peek(c);
    if (next == '[' || next == '(') {
        return fx_error_at(FXTAP_E_UNSUPPORTED, c->name, "a structured dtype is not supported");
    }
    fxtap_status status = parse_string(c, "expected a dtype string", out->descr, sizeof out->descr);
    return status == FXTAP_OK ? fx_npy_parse_descr(c->name, out) : status;
}

static fxtap_status parse_bool(cursor *c, bool *out)
{
    if (take_word(c, "True")) {
        *out = true;
    } else if (take_word(c, "False")) {
        *out = false;
    } else {
        return bad(c, "fortran_order is neither True nor False");
    }
    return FXTAP_OK;
}

/* A number from 0 to 2^63-1, with or without Python 2's L suffix. */
static fxtap_status parse_extent(cursor *c, int64_t *out)
{
    int64_t value = 0;
    skip_space(c);
    const unsigned char *first = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (!fx_mul_i64(value, 10, &value) || !fx_add_i64(value, *c->at - '0', &value)) {
            return bad(c, "extent over 2^63-1");
        }
    }
    if (c->at == first) {
        return bad(c, "expected an extent");
    }
    if (c->at < c->end && *c->at == 'L') {
        c->at++;
    }
    *out = value;
    return FXTAP_OK;
}

/* A tuple: (), (6,), (6, 7), (6, 7,). Without a comma, (6) is a number in parentheses. */
static fxtap_status parse_shape(cursor *c, fx_npy_header *out)
{
    bool comma = false;
    if (!take(c, '(')) {
        return bad(c, "shape is not a tuple");
    }
    out->ndim = 0;
    while (!take(c, ')')) {
        int64_t extent = 0;
        if (out->ndim > 0 && !comma) {
            return bad(c, "expected a comma between extents");
        }
        fxtap_status status = parse_extent(c, &extent);
        if (status != FXTAP_OK) {
            return status;
        }
        if (out->ndim == FXTAP_MAX_DIMS) {
            return fx_error_at(FXTAP_E_UNSUPPORTED, c->name, "more than %d dimensions", FXTAP_MAX_DIMS);
        }
        out->shape[out->ndim++] = extent;
        comma = take(c, ',');
    }
    return out->ndim == 1 && !comma ? bad(c, "shape is a number in parentheses, not a tuple") : FXTAP_OK;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static fxtap_status parse_entry(cursor *c, unsigned *has, fx_npy_header *out)
{
    char key[16];
    fxtap_status status = parse_string(c, "expected a key", key, sizeof key);
    if (status != FXTAP_OK) {
        return status;
    }
    unsigned bit = strcmp(key, "descr") == 0           ? HAS_DESCR
                   : strcmp(key, "fortran_order") == 0 ? HAS_ORDER
                   : strcmp(key, "shape") == 0         ? HAS_SHAPE
                                                       : 0;
    if (bit == 0 || (*has & bit) != 0) {
        return bad(c, bit == 0 ? "unknown key" : "duplicate key");
    }
    if (!take(c, ':')) {
        return bad(c, "expected a colon after a key");
    }
    *has |= bit;
    if (bit == HAS_DESCR) {
        return parse_descr(c, out);
    }
    return bit == HAS_ORDER ? parse_bool(c, &out->fortran_order) : parse_shape(c, out);
}

static fxtap_status parse_dictionary(cursor *c, fx_npy_header *out)
{
    unsigned has = 0;
    bool comma = true;
    if (!take(c, '{')) {
        return bad(c, "expected a dictionary");
    }
    while (!take(c, '}')) {
        if (!comma) {
            return bad(c, "expected a comma between entries");
        }
        fxtap_status status = parse_entry(c, &has, out);
        if (status != FXTAP_OK) {
            return status;
        }
        comma = take(c, ',');
    }
    skip_space(c);
    if (c->at != c->end) {
        return bad(c, "trailing data after the dictionary");
    }
    return has == HAS_ALL ? FXTAP_OK : bad(c, "descr, fortran_order or shape is missing");
}

/* Parses the part before the dictionary: its length goes to *prefix_out, that of the dictionary to *length_out. */
static fxtap_status parse_prefix(const char *name, const unsigned char *bytes, size_t n_bytes, size_t *prefix_out,
                                 size_t *length_out)
{
    static const char magic[6] = "\x93NUMPY";
    size_t n_magic = n_bytes < sizeof magic ? n_bytes : sizeof magic;
    if (n_bytes == 0) {
        return fx_error_at(FXTAP_E_FORMAT, name, "the file is empty");
    }
    if (memcmp(bytes, magic, n_magic) != 0) {
        return fx_error_at(FXTAP_E_FORMAT, name, "not a .npy file: it does not begin with \\x93NUMPY");
    }
    if (n_bytes < 10) {
        return fx_error_at(FXTAP_E_FORMAT, name, "truncated in the header, at byte %zu", n_bytes);
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, name, ".npy version %u.%u", bytes[6], bytes[7]);
    }
    if (bytes[6] == 1) {
        *prefix_out = 10;
        *length_out = bytes[8] | (size_t)bytes[9] << 8;
        return FXTAP_OK;
    }
    if (n_bytes < 12) {
        return fx_error_at(FXTAP_E_FORMAT, name, "truncated in the header, at byte %zu", n_bytes);
    }
    *prefix_out = 12;
    *length_out = bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    return FXTAP_OK;
}

static fxtap_status count_bytes(const char *name, fx_npy_header *out)
{
    const fxtap_view view = {.ndim = out->ndim, .shape = out->shape};
    uint64_t count;
    if (fxtap_view_count(&view, &count) != FXTAP_OK || !fx_mul_u64(count, out->item_bytes, &out->data_bytes) ||
        out->data_bytes > INT64_MAX - FX_NPY_MAX_HEADER - 12) {
        return fx_error_at(FXTAP_E_FORMAT, name, "the header declares more data than a file can hold");
    }
    return FXTAP_OK;
}

fxtap_status fx_npy_parse(const char *name, const void *bytes, size_t n_bytes, fx_npy_header *out)
{
    fx_npy_header header = {.ndim = 0};
    size_t prefix = 0;
    size_t length = 0;
    fxtap_status status = parse_prefix(name, bytes, n_bytes, &prefix, &length);
    if (status != FXTAP_OK) {
        return status;
    }
    if (length > n_bytes - prefix) {
        return fx_error_at(FXTAP_E_FORMAT, name, "the header should have %zu bytes, the file has %zu after its length",
                           length, n_bytes - prefix);
    }
    if (length > FX_NPY_MAX_HEADER) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, name, "a header of %zu bytes: at most %zu are read", length,
                           FX_NPY_MAX_HEADER);
    }
    const unsigned char *begin = (const unsigned char *)bytes + prefix;
    cursor c = {.at = begin, .end = begin + length, .begin = begin, .name = name};
    status = parse_dictionary(&c, &header);
    if (status == FXTAP_OK) {
        header.data_offset = prefix + length;
        status = count_bytes(name, &header);
    }
    if (status == FXTAP_OK) {
        *out = header;
    }
    return status;
}
