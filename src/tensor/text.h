/*
 * text.h - text as NumPy's 0-d <U arrays: UCS-4, one fixed width, padded with NULs.
 */
#ifndef FX_TENSOR_TEXT_H
#define FX_TENSOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "fxtap/status.h"

/*
 * UTF-8 of `n` UCS-4 code points at `bytes` (any alignment), trailing NULs dropped, what is no code point as U+FFFD.
 * The caller frees it; NULL: no memory.
 */
char *fx_text_from_ucs4(const void *bytes, size_t n, bool big_endian);

/*
 * A whole .npy image (header and data) of `length` bytes of UTF-8 as a 0-d array; bad bytes become U+FFFD. As NumPy
 * has it, the empty text is one of width 1. `header_bytes_out` is where the data begins. The caller frees *out.
 * FXTAP_E_NOMEM.
 */
fxtap_status fx_text_to_npy(const char *text, size_t length, void **out, size_t *n_bytes_out, size_t *header_bytes_out);

#endif
