/*
 * utf8.h - strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing over U+10FFFF.
 */
#ifndef FX_UTIL_UTF8_H
#define FX_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the code point at text[0..length); its length goes to *used_out. On failure both are 0. */
uint32_t fx_utf8_decode(const char *text, size_t length, size_t *used_out);

/* Writes one code point (a surrogate or one over U+10FFFF becomes U+FFFD); returns the number of bytes, 1 to 4. */
size_t fx_utf8_encode(uint32_t code_point, char out[4]);

/*
 * Whether a code point is safe to print to a terminal: not a control character, zero-width or bidirectional mark.
 * Machine-readable output escapes the others, since it is printed to terminals too.
 */
bool fx_utf8_is_shown(uint32_t code_point);

bool fx_utf8_is_valid(const char *text, size_t length);

/*
 * Decodes `text` into `out`, which has room for `length` code points (always enough); returns their number. An invalid
 * byte becomes U+FFFD.
 */
size_t fx_utf8_to_ucs4(const char *text, size_t length, uint32_t *out);

#endif
