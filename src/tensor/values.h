/*
 * values.h - elements of saved dtypes (contiguous, little-endian, any alignment) as floating-point values.
 */
#ifndef FX_TENSOR_VALUES_H
#define FX_TENSOR_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "fxtap/dtype.h"

/* float16 exactly, float32 unchanged, float64 and integers rounded to nearest. */
void fx_values_to_f32(fxtap_dtype saved, const void *elements, size_t n, float *out);

/* Exact except for 64-bit integers; bool as 0 and 1. */
void fx_values_to_f64(fxtap_dtype saved, const void *elements, size_t n, double *out);

/* The same for complex dtypes, real and imaginary parts alternating; the imaginary part of a real dtype is 0. */
void fx_values_to_c128(fxtap_dtype saved, const void *elements, size_t n, double *out);

/* The bits of the nearest float16, ties to even; a value that rounds past the largest is infinity. NaN stays NaN. */
uint16_t fx_f16_of_f32(float value);

#endif
