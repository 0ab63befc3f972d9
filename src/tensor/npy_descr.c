/*
 * npy_descr.c - NumPy's type strings: an optional byte order, a letter, a size, as in "<f4"; also what other programs
 * write and NumPy accepts: a letter alone ("?", ">d"), and names ("float32").
 */
#include <inttypes.h>
#include <string.h>

#include "tensor/npy_header.h"
#include "util/error.h"

static const struct {
    char kind;
    uint64_t size;
    fxtap_dtype dtype;
} types[] = {
    {'b', 1, FXTAP_BOOL},      {'u', 1, FXTAP_UINT8},       {'u', 2, FXTAP_UINT16},  {'u', 4, FXTAP_UINT32},
    {'u', 8, FXTAP_UINT64},    {'i', 1, FXTAP_INT8},        {'i', 2, FXTAP_INT16},   {'i', 4, FXTAP_INT32},
    {'i', 8, FXTAP_INT64},     {'f', 2, FXTAP_FLOAT16},     {'f', 4, FXTAP_FLOAT32}, {'f', 8, FXTAP_FLOAT64},
    {'c', 8, FXTAP_COMPLEX64}, {'c', 16, FXTAP_COMPLEX128},
};

static fxtap_status malformed(const char *name, const char *descr)
{
    return fx_error_at(FXTAP_E_FORMAT, name, "descr '%s' is not a NumPy dtype", descr);
}

/* Without a size: letters of C types and of NumPy, with any byte order; names, without one. C's long has 8 bytes. */
static const struct {
    const char *word;
    const char *means;
} words[] = {
    {"?", "b1"},           {"b", "i1"},         {"B", "u1"},           {"h", "i2"},           {"H", "u2"},
    {"i", "i4"},           {"I", "u4"},         {"l", "i8"},           {"L", "u8"},           {"q", "i8"},
    {"Q", "u8"},           {"p", "i8"},         {"P", "u8"},           {"n", "i8"},           {"N", "u8"},
    {"e", "f2"},           {"f", "f4"},         {"d", "f8"},           {"g", "f16"},          {"F", "c8"},
    {"D", "c16"},          {"G", "c32"},        {"U", "U0"},           {"c", "S1"},           {"bool", "b1"},
    {"bool_", "b1"},       {"int8", "i1"},      {"byte", "i1"},        {"uint8", "u1"},       {"ubyte", "u1"},
    {"int16", "i2"},       {"short", "i2"},     {"uint16", "u2"},      {"ushort", "u2"},      {"int32", "i4"},
    {"intc", "i4"},        {"uint32", "u4"},    {"uintc", "u4"},       {"int64", "i8"},       {"int", "i8"},
    {"int_", "i8"},        {"intp", "i8"},      {"long", "i8"},        {"longlong", "i8"},    {"uint64", "u8"},
    {"uint", "u8"},        {"uintp", "u8"},     {"ulong", "u8"},       {"ulonglong", "u8"},   {"float16", "f2"},
    {"half", "f2"},        {"float32", "f4"},   {"single", "f4"},      {"float64", "f8"},     {"double", "f8"},
    {"float", "f8"},       {"float128", "f16"}, {"longdouble", "f16"}, {"complex64", "c8"},   {"csingle", "c8"},
    {"complex128", "c16"}, {"cdouble", "c16"},  {"complex", "c16"},    {"complex256", "c32"}, {"clongdouble", "c32"},
    {"str", "U0"},         {"str_", "U0"},      {"unicode", "U0"},     {"bytes", "S0"},       {"bytes_", "S0"},
    {"object", "O"},       {"object_", "O"},    {"void", "V0"},
};

/* The letter and size of a word; the text itself if the word is unknown. */
static const char *without_words(const char *text, bool has_order)
{
    if (text[0] != '\0' && text[1] >= '0' && text[1] <= '9') {
        return text; /* "f4", as in nearly every file: not a word */
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, text) == 0 && (!has_order || text[1] == '\0')) {
            return words[i].means;
        }
    }
    bool is_time = strncmp(text, "datetime64", 10) == 0 || strncmp(text, "timedelta64", 11) == 0;
    const char unit = is_time ? text[strcspn(text, "4") + 1] : 'x';
    return unit == '\0' || unit == '[' ? "M8" : text; /* "datetime64[ns]" */
}

/* NumPy kinds that tensors do not have; NULL for an unknown letter. */
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

/* Decimal digits to the end of the text; false if there are none, too many, or other characters. */
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
    bool has_order = *c != '\0' && strchr("<>|=!", *c) != NULL;
    header->big_endian = *c == '>' || *c == '!';
    c += has_order;
    if (strchr(c, ',') != NULL || (*c >= '0' && *c <= '9')) { /* "f4,i4", "2f4" */
        return fx_error_at(FXTAP_E_UNSUPPORTED, name, "descr '%s' is a structured dtype, not supported", header->descr);
    }
    c = without_words(c, has_order);
    char kind = *c;
    const char *foreign = foreign_kind(kind);
    size_t n_digits = kind == '\0' ? 0 : strspn(c + 1, "0123456789");
    if (foreign != NULL && (c[1 + n_digits] == '\0' || c[1 + n_digits] == '[')) { /* "M8[ns]" */
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
