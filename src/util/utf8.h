/*
 * utf8.h - UTF-8 (RFC 3629) read strictly: no overlong forms, no surrogates, nothing over U+10FFFF.
 */
#ifndef FX_UTIL_UTF8_H
#define FX_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point at text[0..length), its bytes counted in *used_out; on failure it is 0, and so is the result. */
uint32_t fx_utf8_decode(const char *text, size_t length, size_t *used_out);

/* Writes one code point (a surrogate or one over U+10FFFF becomes U+FFFD); returns the number of bytes, 1 to 4. */
size_t fx_utf8_encode(uint32_t code_point, char out[4]);

/*
 * Whether a code point may go to a terminal as it is: no control character, no mark that takes no place or turns the
 * direction of writing. Machine-readable output escapes the others, since it is printed to terminals too.
 */
bool fx_utf8_is_shown(uint32_t code_point);

bool fx_utf8_is_valid(const char *text, size_t length);

/*
 * Code points of `text` into `out`, which has room for `length` of them (never more are needed); returns how many.
 * A bad byte becomes U+FFFD.
 */
size_t fx_utf8_to_ucs4(const char *text, size_t length, uint32_t *out);

#endif
