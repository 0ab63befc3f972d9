/*
 * number.h - decimal text of numbers, independent of the locale.
 */
#ifndef FX_UTIL_NUMBER_H
#define FX_UTIL_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define FX_NUMBER_BYTES 40 /* room for any text that these functions make, NUL included */

/*
 * Shortest digits that read back to the same value, the nearest of those, laid out as Python's repr: fixed notation
 * for exponents -4 to 15, else "1e-05", "1.5e+16"; "inf", "-inf", "nan". Returns the length without NUL.
 */
size_t fx_double_text(double value, char out[FX_NUMBER_BYTES]);
size_t fx_float_text(float value, char out[FX_NUMBER_BYTES]);

/* At most `n_digits` (1 to 17) significant digits, correctly rounded, trailing zeros dropped: as Python's %g. */
size_t fx_double_digits(double value, int n_digits, char out[FX_NUMBER_BYTES]);

/*
 * Integers, where thousands are formatted: printf takes a microsecond in a process in which a library has registered
 * conversions of its own, as PyTorch's do. Returns the length without NUL.
 */
size_t fx_u64_text(uint64_t value, char out[FX_NUMBER_BYTES]);
size_t fx_i64_text(int64_t value, char out[FX_NUMBER_BYTES]);

#endif
