/*
 * convert.h - exact conversions from element types that NumPy lacks to types that it has, on contiguous elements. `src`
 * and `dst` may be unaligned and must not overlap. Any thread.
 *
 * Sources of the formats: OCP Microscaling Formats 1.0 (float4, float6, e8m0), OCP 8-bit Floating Point 1.0 (e4m3fn,
 * e5m2), and the suffixes of the names: fn = finite, NaN if all bits are set; fnuz = finite, the bits of negative zero
 * are the only NaN; bNN = exponent bias NN; no suffix = IEEE 754.
 */
#ifndef FX_TENSOR_CONVERT_H
#define FX_TENSOR_CONVERT_H

#include <stddef.h>

#include "fxtap/dtype.h"

/*
 * `n` elements of `dtype` (FLOAT4_E2M1FN_X2: n pairs, 2n results) into fxtap_dtype_saved(dtype), which must not be
 * NONE nor STRING. A plain copy if both are the same.
 */
void fx_convert_to_saved(fxtap_dtype dtype, const void *src, size_t n, void *dst);

/* float16 to float32; NaN keeps its sign and payload and becomes quiet. Correct under flush-to-zero. */
void fx_convert_half(const void *src, size_t n, void *dst);

/* The float32 value of each of the 256 bytes of a float8 or float6 dtype; NULL for other dtypes. Static. */
const float *fx_float8_table(fxtap_dtype dtype);

#endif
