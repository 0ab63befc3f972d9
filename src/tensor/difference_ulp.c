/*
 * difference_ulp.c - the distance in ulps of values that must first be converted to the judged dtype.
 */
#include <string.h>

#include "tensor/difference_parts.h"
#include "tensor/difference_steps.h"
#include "tensor/values.h"

#define CHUNK 256

static const unsigned char *at(const void *elements, fxtap_dtype dtype, size_t i)
{
    return (const unsigned char *)elements + fxtap_dtype_size(dtype) * i;
}

static uint64_t ulp_in_f64(const fx_difference_kernels *kernels, const fx_difference_pair *pair, size_t first, size_t n)
{
    double golden[CHUNK], target[CHUNK];
    fx_values_to_f64(pair->golden_dtype, at(pair->golden, pair->golden_dtype, first), n, golden);
    fx_values_to_f64(pair->target_dtype, at(pair->target, pair->target_dtype, first), n, target);
    return kernels->ulp_f64(golden, target, n);
}

/* The rank of a rounded float32; a finite value that rounds to infinity is one above the largest. */
static int64_t place_in(fxtap_dtype judged, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    switch (judged) {
    case FXTAP_FLOAT16:
        return fx_ulp_place(fx_f16_of_f32(value), 0x8000);
    case FXTAP_BFLOAT16:
        return fx_ulp_place(fx_round_to_bf16(bits), 0x8000);
    default:
        return fx_ulp_place(bits, UINT64_C(1) << 31);
    }
}

static uint64_t distance_in(fxtap_dtype judged, float golden, float target)
{
    int64_t b = place_in(judged, golden), a = place_in(judged, target);
    return (uint64_t)(a > b ? a - b : b - a);
}

static uint64_t ulp_in_f16(const float *golden, const float *target, size_t n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_isfinite(golden[i]) && __builtin_isfinite(target[i])) {
            uint64_t distance = distance_in(FXTAP_FLOAT16, golden[i], target[i]);
            most = distance > most ? distance : most;
        }
    }
    return most;
}

/* A finite float64 that exceeds float32 has a rank too, so the float64 is tested for finiteness. */
static uint64_t ulp_from_f64(fxtap_dtype judged, const fx_difference_pair *pair, size_t first, size_t n)
{
    double golden[CHUNK], target[CHUNK];
    float golden_rounded[CHUNK], target_rounded[CHUNK];
    fx_values_to_f64(pair->golden_dtype, at(pair->golden, pair->golden_dtype, first), n, golden);
    fx_values_to_f64(pair->target_dtype, at(pair->target, pair->target_dtype, first), n, target);
    fx_values_to_f32(pair->golden_dtype, at(pair->golden, pair->golden_dtype, first), n, golden_rounded);
    fx_values_to_f32(pair->target_dtype, at(pair->target, pair->target_dtype, first), n, target_rounded);
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_isfinite(golden[i]) && __builtin_isfinite(target[i])) {
            uint64_t distance = distance_in(judged, golden_rounded[i], target_rounded[i]);
            most = distance > most ? distance : most;
        }
    }
    return most;
}

static uint64_t ulp_in_f32(const fx_difference_kernels *kernels, fxtap_dtype judged, const fx_difference_pair *pair,
                           size_t first, size_t n)
{
    if (pair->golden_dtype == FXTAP_FLOAT64 || pair->target_dtype == FXTAP_FLOAT64) {
        return ulp_from_f64(judged, pair, first, n);
    }
    float golden[CHUNK], target[CHUNK];
    fx_values_to_f32(pair->golden_dtype, at(pair->golden, pair->golden_dtype, first), n, golden);
    fx_values_to_f32(pair->target_dtype, at(pair->target, pair->target_dtype, first), n, target);
    if (judged == FXTAP_FLOAT16) {
        return ulp_in_f16(golden, target, n);
    }
    return judged == FXTAP_BFLOAT16 ? kernels->ulp_bf16(golden, target, n) : kernels->ulp_f32(golden, target, n);
}

static uint64_t ulp_in_chunks(const fx_difference_kernels *kernels, fxtap_dtype judged, const fx_difference_pair *pair)
{
    uint64_t most = 0;
    for (size_t first = 0; first < pair->n; first += CHUNK) {
        size_t n = pair->n - first < CHUNK ? pair->n - first : CHUNK;
        uint64_t ulp =
            judged == FXTAP_FLOAT64 ? ulp_in_f64(kernels, pair, first, n) : ulp_in_f32(kernels, judged, pair, first, n);
        most = ulp > most ? ulp : most;
    }
    return most;
}

uint64_t fx_difference_ulp(const fx_difference_kernels *kernels, fxtap_dtype judged, const fx_difference_pair *pair)
{
    fxtap_dtype dtype = pair->golden_dtype;
    if (dtype == pair->target_dtype) {
        if (judged == FXTAP_FLOAT16 && dtype == FXTAP_FLOAT16) {
            return kernels->ulp_f16(pair->golden, pair->target, pair->n);
        }
        if (judged == FXTAP_BFLOAT16 && dtype == FXTAP_FLOAT32) {
            return kernels->ulp_bf16(pair->golden, pair->target, pair->n);
        }
        if (judged == FXTAP_FLOAT32 && dtype == FXTAP_FLOAT32) {
            return kernels->ulp_f32(pair->golden, pair->target, pair->n);
        }
        if (judged == FXTAP_FLOAT64 && dtype == FXTAP_FLOAT64) {
            return kernels->ulp_f64(pair->golden, pair->target, pair->n);
        }
    }
    return ulp_in_chunks(kernels, judged, pair);
}
