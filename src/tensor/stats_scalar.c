/*
 * stats_scalar.c - the portable kernels, one element at a time: the twins that the vector kernels must equal.
 */
#include <limits.h>

#include "tensor/stats_kernel.h"

static void scan_begin(fx_float_scan *out)
{
    *out = (fx_float_scan){.key_min = INT64_MAX, .key_max = INT64_MIN};
}

static void scan_add(fx_float_scan *out, uint64_t magnitude, int64_t key, uint64_t infinity, uint64_t min_normal)
{
    if (magnitude > infinity) {
        out->n_nan++;
        return;
    }
    out->n_pos_inf += magnitude == infinity && key > 0;
    out->n_neg_inf += magnitude == infinity && key < 0;
    out->n_zero += magnitude == 0;
    out->n_subnormal += magnitude > 0 && magnitude < min_normal;
    out->abs_max = magnitude > out->abs_max ? magnitude : out->abs_max;
    out->key_min = key < out->key_min ? key : out->key_min;
    out->key_max = key > out->key_max ? key : out->key_max;
}

static void scan_f32(const void *elements, size_t n, uint32_t min_normal, fx_float_scan *out)
{
    const unsigned char *bytes = elements;
    scan_begin(out);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + 4 * i, sizeof bits);
        uint32_t magnitude = bits & INT32_MAX;
        scan_add(out, magnitude, fx_f32_key(bits), FX_F32_INF, min_normal);
        if (magnitude < FX_F32_INF) {
            out->sum[i % FX_STATS_LANES] += (double)fx_f32_from_bits(bits);
        }
    }
}

static void scan_f64(const void *elements, size_t n, uint64_t min_normal, fx_float_scan *out)
{
    const unsigned char *bytes = elements;
    scan_begin(out);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, bytes + 8 * i, sizeof bits);
        uint64_t magnitude = bits & INT64_MAX;
        scan_add(out, magnitude, fx_f64_key(bits), FX_F64_INF, min_normal);
        if (magnitude < FX_F64_INF) {
            out->sum[i % FX_STATS_LANES] += fx_f64_from_bits(bits);
        }
    }
}

static void spread_add(fx_float_spread *out, size_t i, double distance)
{
    out->sum[i % FX_STATS_LANES] += distance;
    out->square_sum[i % FX_STATS_LANES] += distance * distance;
}

static void spread_f32(const void *elements, size_t n, double mean, fx_float_spread *out)
{
    const unsigned char *bytes = elements;
    *out = (fx_float_spread){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + 4 * i, sizeof bits);
        if ((bits & INT32_MAX) < FX_F32_INF) {
            spread_add(out, i, (double)fx_f32_from_bits(bits) - mean);
        }
    }
}

static void spread_f64(const void *elements, size_t n, double mean, fx_float_spread *out)
{
    const unsigned char *bytes = elements;
    *out = (fx_float_spread){0};
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, bytes + 8 * i, sizeof bits);
        if ((bits & INT64_MAX) < FX_F64_INF) {
            spread_add(out, i, fx_f64_from_bits(bits) - mean);
        }
    }
}

/* IEEE binary16 to binary32 by its definition, with integers alone (no flush-to-zero mode can reach it). */
static uint32_t f32_bits_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0x1f) {
        return sign | FX_F32_INF | fraction << 13;
    }
    if (exponent != 0) {
        return sign | (exponent + 112) << 23 | fraction << 13;
    }
    if (fraction == 0) {
        return sign;
    }
    uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21; /* brings the leading one to bit 10 */
    return sign | (113 - shift) << 23 | ((fraction << shift) & 0x3ffu) << 13;
}

static void widen_f16(const void *elements, size_t n, float *out)
{
    const unsigned char *bytes = elements;
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        out[i] = fx_f32_from_bits(f32_bits_of_f16(half));
    }
}

/* One loop per integer type; `VALUE` makes an int64_t of the element. */
#define DEFINE_INT_SCAN(NAME, TYPE, VALUE)                                                                             \
    static void NAME(const void *elements, size_t n, fx_int_scan *out)                                                 \
    {                                                                                                                  \
        const unsigned char *bytes = elements;                                                                         \
        *out = (fx_int_scan){.min = INT64_MAX, .max = INT64_MIN};                                                      \
        for (size_t i = 0; i < n; i++) {                                                                               \
            TYPE element;                                                                                              \
            memcpy(&element, bytes + sizeof element * i, sizeof element);                                              \
            int64_t value = VALUE;                                                                                     \
            uint64_t square = (uint64_t)value * (uint64_t)value;                                                       \
            out->min = value < out->min ? value : out->min;                                                            \
            out->max = value > out->max ? value : out->max;                                                            \
            out->n_zero += value == 0;                                                                                 \
            out->sum += value;                                                                                         \
            out->square_low += square & UINT32_MAX;                                                                    \
            out->square_high += square >> 32;                                                                          \
        }                                                                                                              \
    }

DEFINE_INT_SCAN(scan_i8, int8_t, element)
DEFINE_INT_SCAN(scan_u8, uint8_t, element)
DEFINE_INT_SCAN(scan_i16, int16_t, element)
DEFINE_INT_SCAN(scan_u16, uint16_t, element)
DEFINE_INT_SCAN(scan_i32, int32_t, element)
DEFINE_INT_SCAN(scan_u32, uint32_t, element)
DEFINE_INT_SCAN(scan_bool, uint8_t, element != 0)

const fx_stats_kernels fx_stats_scalar = {
    .scan_f32 = scan_f32,
    .spread_f32 = spread_f32,
    .scan_f64 = scan_f64,
    .spread_f64 = spread_f64,
    .widen_f16 = widen_f16,
    .scan_i8 = scan_i8,
    .scan_u8 = scan_u8,
    .scan_i16 = scan_i16,
    .scan_u16 = scan_u16,
    .scan_i32 = scan_i32,
    .scan_u32 = scan_u32,
    .scan_bool = scan_bool,
};
