/*
 * text.h - text as NumPy's 0-d <U arrays: UCS-4, one fixed width, padded with NULs.
 */
#ifndef FX_TENSOR_TEXT_H
#define FX_TENSOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * UTF-8 of `n` UCS-4 code points at `bytes` (any alignment), without trailing NULs; invalid code points become U+FFFD.
 * The caller frees it; NULL: no memory.
 */
char *fx_text_from_ucs4(const void *bytes, size_t n, bool big_endian);

#endif
