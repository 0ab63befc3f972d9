/*
 * number.h - decimal text of numbers, independent of the locale. Nothing else in the library parses numbers or formats
 * non-integers (scripts/check_locale.py).
 */
#ifndef FX_UTIL_NUMBER_H
#define FX_UTIL_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define FX_NUMBER_BYTES 40 /* enough for any result of these functions, including NUL */

/*
 * Shortest digits that read back to the same value, the nearest of those, formatted as Python's repr: fixed notation
 * for exponents -4 to 15, else "1e-05", "1.5e+16"; "inf", "-inf", "nan". Returns the length without NUL.
 */
size_t fx_double_text(double value, char out[FX_NUMBER_BYTES]);
size_t fx_float_text(float value, char out[FX_NUMBER_BYTES]);

/* At most `n_digits` (1 to 17) significant digits, correctly rounded, trailing zeros removed: as Python's %g. */
size_t fx_double_digits(double value, int n_digits, char out[FX_NUMBER_BYTES]);

/* As printf's "%.Ne" and "%.Nf" with a point; `conversion` is 'e' or 'f'. Cut at `capacity`; returns the length. */
size_t fx_double_format(double value, char conversion, int n_decimals, char *out, size_t capacity);

/*
 * The decimal number that `text` begins with ("-12", "12", "1.5e-3": no blanks, no plus sign, no inf); returns its
 * length in bytes, 0 without a number or (integers) on overflow.
 */
size_t fx_read_i64(const char *text, int64_t *out);
size_t fx_read_u64(const char *text, uint64_t *out);
size_t fx_read_double(const char *text, double *out);

/*
 * Fast formatting of integers: printf takes a microsecond if a library has registered its own conversions, as PyTorch's
 * do. Returns the length without NUL.
 */
size_t fx_u64_text(uint64_t value, char out[FX_NUMBER_BYTES]);
size_t fx_i64_text(int64_t value, char out[FX_NUMBER_BYTES]);

#endif
