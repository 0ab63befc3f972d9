#include "index/file_names.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/memory.h"
#include "util/utf8.h"

#define HASH_TEXT 17 /* "~" and 16 digits */
#define POSITION_MAX 64

/* Replaces every byte that a file name must not contain. True if anything changed. */
static bool escape(char *text, size_t length)
{
    bool changed = false;
    unsigned char *bytes = (unsigned char *)text;
    for (size_t i = 0; i < length;) {
        size_t n;
        fx_utf8_decode(text + i, length - i, &n);
        if (n == 0 || bytes[i] == '/' || bytes[i] < 0x20 || bytes[i] == 0x7F) {
            bytes[i] = '_';
            changed = true;
            n = 1;
        }
        i += n;
    }
    if (length > 0 && text[0] == '.') {
        text[0] = '_';
        changed = true;
    }
    return changed;
}

/* The longest prefix of at most `limit` bytes that does not end inside a UTF-8 sequence. */
static size_t cut_at(const char *text, size_t length, size_t limit)
{
    if (length <= limit) {
        return length;
    }
    while (limit > 0 && ((unsigned char)text[limit] & 0xC0) == 0x80) {
        limit--;
    }
    return limit;
}

/* Shortens `text` so that it and the hash fit into `limit` bytes, and appends the hash. */
static void append_hash(char *text, size_t length, size_t limit, uint64_t hash)
{
    size_t keep = cut_at(text, length, limit - HASH_TEXT);
    snprintf(text + keep, HASH_TEXT + 1, "~%016llx", (unsigned long long)hash);
}

static uint64_t seed_of(const char *twin)
{
    return twin != NULL ? XXH3_64bits(twin, strlen(twin)) : 0;
}

fxtap_status fx_name_stem(const char *node, const char *target, const char *twin, char dst[FX_STEM_MAX + 1])
{
    size_t length = strlen(node) + 1 + strlen(target);
    char *full = fx_alloc(length + HASH_TEXT + 1);
    if (full == NULL) {
        return FXTAP_E_NOMEM;
    }
    snprintf(full, length + 1, "%s-%s", node, target);
    uint64_t hash = XXH3_64bits_withSeed(full, length, seed_of(twin));
    bool changed = escape(full, length);
    if (changed || twin != NULL || length > FX_STEM_MAX) {
        append_hash(full, length, FX_STEM_MAX, hash);
    }
    memcpy(dst, full, strlen(full) + 1);
    fx_free(full);
    return FXTAP_OK;
}

static size_t make_position(const char *position, const char *twin, char dst[POSITION_MAX + 1])
{
    size_t length = strlen(position);
    uint64_t hash = XXH3_64bits_withSeed(position, length, seed_of(twin));
    size_t kept = cut_at(position, length, POSITION_MAX);
    memcpy(dst, position, kept);
    dst[kept] = '\0';
    bool changed = escape(dst, kept);
    if (changed || twin != NULL || kept < length || length == 0) {
        append_hash(dst, kept, POSITION_MAX, hash);
    }
    return strlen(dst);
}

void fx_name_prefix(const char *stem, fxtap_io io, const char *position, const char *twin, char dst[FX_PREFIX_MAX + 1],
                    size_t *length_out)
{
    static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
    const char *io_name = io_names[io <= FXTAP_INOUT ? io : FXTAP_INPUT];
    char short_position[POSITION_MAX + 1];
    char short_stem[FX_STEM_MAX + 1];
    size_t tail = 3 + strlen(io_name) + make_position(position, twin, short_position);
    size_t length = strlen(stem);
    memcpy(short_stem, stem, length + 1);
    if (length + tail > FX_PREFIX_MAX) {
        append_hash(short_stem, length, FX_PREFIX_MAX - tail, XXH3_64bits(stem, length));
    }
    const char *const parts[] = {short_stem, io_name, short_position};
    size_t used = 0;
    for (size_t i = 0; i < 3; i++) { /* printf is slow under PyTorch: see fx_u64_text() */
        size_t n = strlen(parts[i]);
        memcpy(dst + used, parts[i], n);
        used += n;
        dst[used++] = '.';
    }
    dst[used] = '\0';
    *length_out = used;
}

static void put_digits(char *dst, uint64_t value, int n_digits)
{
    for (int i = n_digits - 1; i >= 0; i--) {
        dst[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* Converts days to a date of the Gregorian calendar in eras of 400 years that begin on 1 March. */
void fx_name_stamp(uint64_t stamp_us, char dst[FX_STAMP_DIGITS])
{
    uint64_t us = stamp_us < FX_LAST_STAMP_US ? stamp_us : FX_LAST_STAMP_US;
    uint64_t second = us / 1000000;
    uint64_t days = second / 86400 + 719468; /* since 0000-03-01 */
    uint64_t era = days / 146097;
    uint64_t day_of_era = days % 146097;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t shifted_month = (5 * day_of_year + 2) / 153;
    uint64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    put_digits(dst, era * 400 + year_of_era + (month <= 2 ? 1 : 0), 4);
    put_digits(dst + 4, month, 2);
    put_digits(dst + 6, day_of_year - (153 * shifted_month + 2) / 5 + 1, 2);
    put_digits(dst + 8, second / 3600 % 24, 2);
    put_digits(dst + 10, second / 60 % 60, 2);
    put_digits(dst + 12, second % 60, 2);
    put_digits(dst + 14, us % 1000000, 6);
}

size_t fx_name_file(const char *prefix, size_t prefix_length, uint64_t stamp_us, char dst[FX_NAME_MAX + 1])
{
    memcpy(dst, prefix, prefix_length);
    fx_name_stamp(stamp_us, dst + prefix_length);
    memcpy(dst + prefix_length + FX_STAMP_DIGITS, ".npy", 5);
    return prefix_length + FX_STAMP_DIGITS + 4;
}

/* Code points beyond ASCII whose case-folded, decomposed form contains ASCII that no combining mark follows. */
static const struct {
    uint32_t code_point;
    const char *text;
} ascii_foldings[] = {
    {0xDF, "ss"},   {0x149, "n"},    {0x17F, "s"},    {0x37E, ";"},   {0x1E9A, "a"},
    {0x1E9E, "ss"}, {0x1FEF, "`"},   {0x212A, "k"},   {0xFB00, "ff"}, {0xFB01, "fi"},
    {0xFB02, "fl"}, {0xFB03, "ffi"}, {0xFB04, "ffl"}, {0xFB05, "st"}, {0xFB06, "st"},
};

static const char *ascii_folding(uint32_t code_point)
{
    for (size_t i = 0; i < sizeof ascii_foldings / sizeof ascii_foldings[0]; i++) {
        if (ascii_foldings[i].code_point == code_point) {
            return ascii_foldings[i].text;
        }
    }
    return "";
}

/*
 * A letter with marks may be one code point or several, so a mark removes the ASCII letter before it, just as a
 * precomposed letter is left out. U+0300 to U+036F are the marks that combine with ASCII. No folding is longer than its
 * UTF-8.
 */
void fx_name_fold(const char *name, char *dst)
{
    size_t length = strlen(name), n = 0;
    bool may_be_joined = false; /* whether the last character is an ASCII letter that a mark can combine with */
    for (size_t i = 0; i < length;) {
        size_t used;
        uint32_t c = fx_utf8_decode(name + i, length - i, &used);
        i += used > 0 ? used : 1;
        if (used == 1) {
            dst[n++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
            may_be_joined = true;
        } else if (c >= 0x300 && c <= 0x36F && c != 0x345) { /* U+0345 folds to a letter */
            n -= may_be_joined;
            may_be_joined = false;
        } else {
            const char *text = ascii_folding(c);
            size_t text_length = strlen(text);
            memcpy(dst + n, text, text_length);
            n += text_length;
            may_be_joined = text_length > 0;
        }
    }
    dst[n] = '\0';
}
