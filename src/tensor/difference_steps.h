/*
 * difference_steps.h - the kernels one element at a time: used by the portable code, and by the vector code for the
 * elements that do not fill a vector.
 */
#ifndef FX_TENSOR_DIFFERENCE_STEPS_H
#define FX_TENSOR_DIFFERENCE_STEPS_H

#include <math.h>

#include "tensor/difference_kernel.h"
#include "tensor/stats_steps.h"

/* Adds one pair, given its error and golden's magnitude (complex: the moduli). */
static inline void fx_difference_count(fx_difference_part *out, const fx_difference_options *options, double error,
                                       double magnitude)
{
    out->n_outside += error > options->atol + options->rtol * magnitude;
    out->n_over_1e3 += error > 1e-3 * magnitude;
    out->n_over_5e3 += error > 5e-3 * magnitude;
}

static inline void fx_difference_step(fx_difference_place *place, fx_difference_part *out, size_t i, double error,
                                      double golden, double target)
{
    size_t lane = i % FX_DIFFERENCE_LANES;
    double magnitude = fabs(golden);
    out->error[lane] += error;
    out->square[lane] += error * error;
    out->golden[lane] += golden * golden;
    out->target[lane] += target * target;
    out->product[lane] += golden * target;
    fx_difference_count(out, &place->difference->options, error, magnitude);
    if (fx_difference_is_record(place->difference, error, magnitude)) {
        fx_difference_offer(place, i, error, golden, target);
    }
}

static inline uint16_t fx_load_u16(const void *bytes, size_t i)
{
    uint16_t bits;
    memcpy(&bits, (const unsigned char *)bytes + 2 * i, sizeof bits);
    return bits;
}

static inline uint32_t fx_load_u32(const void *bytes, size_t i)
{
    uint32_t bits;
    memcpy(&bits, (const unsigned char *)bytes + 4 * i, sizeof bits);
    return bits;
}

static inline uint64_t fx_load_u64(const void *bytes, size_t i)
{
    uint64_t bits;
    memcpy(&bits, (const unsigned char *)bytes + 8 * i, sizeof bits);
    return bits;
}

static inline bool fx_finite_steps_16(const void *golden, const void *target, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++) {
        if ((fx_load_u16(golden, i) & 0x7c00) == 0x7c00 || (fx_load_u16(target, i) & 0x7c00) == 0x7c00) {
            return false;
        }
    }
    return true;
}

static inline bool fx_finite_steps_32(const void *golden, const void *target, size_t first, size_t n)
{
    uint32_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint32_t b = fx_load_u32(golden, i) & INT32_MAX, a = fx_load_u32(target, i) & INT32_MAX;
        most = a > most ? a : most;
        most = b > most ? b : most;
    }
    return most < FX_F32_INF;
}

static inline bool fx_finite_steps_64(const void *golden, const void *target, size_t first, size_t n)
{
    uint64_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint64_t b = fx_load_u64(golden, i) & INT64_MAX, a = fx_load_u64(target, i) & INT64_MAX;
        most = a > most ? a : most;
        most = b > most ? b : most;
    }
    return most < FX_F64_INF;
}

static inline void fx_part_steps_16(const void *golden, const void *target, size_t first, size_t n,
                                    fx_difference_place *place, fx_difference_part *out)
{
    for (size_t i = first; i < n; i++) {
        uint32_t b = fx_f32_bits_of_f16(fx_load_u16(golden, i)), a = fx_f32_bits_of_f16(fx_load_u16(target, i));
        if ((a & INT32_MAX) < FX_F32_INF && (b & INT32_MAX) < FX_F32_INF) {
            double x = (double)fx_f32_from_bits(a), y = (double)fx_f32_from_bits(b);
            fx_difference_step(place, out, i, fabs(x - y), y, x);
        }
    }
}

static inline void fx_part_steps_32(const void *golden, const void *target, size_t first, size_t n,
                                    fx_difference_place *place, fx_difference_part *out)
{
    for (size_t i = first; i < n; i++) {
        uint32_t b = fx_load_u32(golden, i), a = fx_load_u32(target, i);
        if ((a & INT32_MAX) < FX_F32_INF && (b & INT32_MAX) < FX_F32_INF) {
            double x = (double)fx_f32_from_bits(a), y = (double)fx_f32_from_bits(b);
            fx_difference_step(place, out, i, fabs(x - y), y, x);
        }
    }
}

static inline void fx_part_steps_64(const void *golden, const void *target, size_t first, size_t n,
                                    fx_difference_place *place, fx_difference_part *out)
{
    for (size_t i = first; i < n; i++) {
        uint64_t b = fx_load_u64(golden, i), a = fx_load_u64(target, i);
        if ((a & INT64_MAX) < FX_F64_INF && (b & INT64_MAX) < FX_F64_INF) {
            double x = fx_f64_from_bits(a), y = fx_f64_from_bits(b);
            fx_difference_step(place, out, i, fabs(x - y), y, x);
        }
    }
}

/* The rank of a number among all numbers of its format: sign and magnitude to two's complement. */
static inline int64_t fx_ulp_place(uint64_t bits, uint64_t sign)
{
    return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

/* Up to twice the largest magnitude: below 2^64 in every format. */
static inline uint64_t fx_ulp_distance(uint64_t b, uint64_t a, uint64_t sign, uint64_t infinity)
{
    if ((a & (sign - 1)) >= infinity || (b & (sign - 1)) >= infinity) {
        return 0;
    }
    int64_t x = fx_ulp_place(a, sign), y = fx_ulp_place(b, sign);
    return x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
}

static inline uint64_t fx_ulp_steps_f16(const void *golden, const void *target, size_t first, size_t n)
{
    uint64_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint64_t distance = fx_ulp_distance(fx_load_u16(golden, i), fx_load_u16(target, i), 0x8000, 0x7c00);
        most = distance > most ? distance : most;
    }
    return most;
}

static inline uint64_t fx_ulp_steps_f32(const void *golden, const void *target, size_t first, size_t n)
{
    uint64_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint64_t distance =
            fx_ulp_distance(fx_load_u32(golden, i), fx_load_u32(target, i), UINT64_C(1) << 31, FX_F32_INF);
        most = distance > most ? distance : most;
    }
    return most;
}

/* Rounds to bfloat16, nearest with ties to even; past the largest number it is infinity's rank. */
static inline uint32_t fx_round_to_bf16(uint32_t bits)
{
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static inline uint64_t fx_ulp_steps_bf16(const void *golden, const void *target, size_t first, size_t n)
{
    uint64_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint32_t b = fx_load_u32(golden, i), a = fx_load_u32(target, i);
        if ((a & INT32_MAX) < FX_F32_INF && (b & INT32_MAX) < FX_F32_INF) {
            uint64_t distance = fx_ulp_distance(fx_round_to_bf16(b), fx_round_to_bf16(a), 0x8000, 0x7f81);
            most = distance > most ? distance : most;
        }
    }
    return most;
}

static inline uint64_t fx_ulp_steps_f64(const void *golden, const void *target, size_t first, size_t n)
{
    uint64_t most = 0;
    for (size_t i = first; i < n; i++) {
        uint64_t distance =
            fx_ulp_distance(fx_load_u64(golden, i), fx_load_u64(target, i), UINT64_C(1) << 63, FX_F64_INF);
        most = distance > most ? distance : most;
    }
    return most;
}

#endif
