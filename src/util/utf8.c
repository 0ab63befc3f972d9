#include "util/utf8.h"

#define REPLACEMENT 0xFFFDu

/* Length of a sequence by its first byte; 0 for an invalid first byte. */
static size_t sequence_length(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        return 2;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        return 3;
    }
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

uint32_t fx_utf8_decode(const char *text, size_t length, size_t *used_out)
{
    const unsigned char *bytes = (const unsigned char *)text;
    *used_out = 0;
    size_t n = length > 0 ? sequence_length(bytes[0]) : 0;
    if (n == 0 || n > length) {
        return 0;
    }
    uint32_t code_point = n == 1 ? bytes[0] : bytes[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
        code_point = code_point << 6 | (bytes[i] & 0x3Fu);
    }
    bool overlong = (n == 3 && code_point < 0x800) || (n == 4 && code_point < 0x10000);
    if (overlong || (code_point >= 0xD800 && code_point <= 0xDFFF) || code_point > 0x10FFFF) {
        return 0;
    }
    *used_out = n;
    return code_point;
}

size_t fx_utf8_encode(uint32_t c, char out[4])
{
    if ((c >= 0xD800 && c <= 0xDFFF) || c > 0x10FFFF) {
        c = REPLACEMENT;
    }
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : (c < 0x10000 ? 3 : 4);
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)((0xF00u >> n & 0xFFu) | c);
    return n;
}

bool fx_utf8_is_shown(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
        return false;
    }
    return c != 0x061C && !(c >= 0x200B && c <= 0x200F) && !(c >= 0x2028 && c <= 0x202E) &&
           !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF && !(c >= 0xFFF9 && c <= 0xFFFB);
}

bool fx_utf8_is_valid(const char *text, size_t length)
{
    for (size_t at = 0, used; at < length; at += used) {
        fx_utf8_decode(text + at, length - at, &used);
        if (used == 0) {
            return false;
        }
    }
    return true;
}

size_t fx_utf8_to_ucs4(const char *text, size_t length, uint32_t *out)
{
    size_t n = 0;
    for (size_t at = 0, used; at<length; at += used> 0 ? used : 1) {
        uint32_t code_point = fx_utf8_decode(text + at, length - at, &used);
        out[n++] = used > 0 ? code_point : REPLACEMENT;
    }
    return n;
}
