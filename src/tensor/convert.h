/*
 * convert.h - exact conversions from the element types that NumPy lacks to those that it has, on contiguous elements.
 * No alignment is asked of `src` or `dst`; they do not overlap. Any thread.
 *
 * Sources of the formats: OCP Microscaling Formats 1.0 (float4, float6, e8m0), OCP 8-bit Floating Point 1.0 (e4m3fn,
 * e5m2), and the names' own meaning: fn = finite, NaN where all bits are set; fnuz = finite, the negative zero's
 * pattern is the one NaN; bNN = exponent bias NN; without letters as IEEE 754.
 */
#ifndef FX_TENSOR_CONVERT_H
#define FX_TENSOR_CONVERT_H

#include <stddef.h>

#include "fxtap/dtype.h"

/*
 * `n` elements of `dtype` (FLOAT4_E2M1FN_X2: n pairs, 2n results) into fxtap_dtype_saved(dtype), which must not be
 * NONE nor STRING. A plain copy where they are the same.
 */
void fx_convert_to_saved(fxtap_dtype dtype, const void *src, size_t n, void *dst);

/* float16 to float32; NaN keeps sign and payload and becomes quiet, as in hardware. Free of subnormal arithmetic: right under flush-to-zero too. */
void fx_convert_half(const void *src, size_t n, void *dst);

/* The float32 value of each of the 256 bytes of a float8 or float6 dtype; NULL for other dtypes. Static. */
const float *fx_float8_table(fxtap_dtype dtype);

#endif
