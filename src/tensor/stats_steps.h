/*
 * stats_steps.h - the kernels one element at a time: used by the portable code, and by the vector code for the elements
 * that do not fill a vector. Element i of a part always goes to lane i % 16.
 */
#ifndef FX_TENSOR_STATS_STEPS_H
#define FX_TENSOR_STATS_STEPS_H

#include "tensor/stats_kernel.h"

static inline void fx_scan_begin(fx_float_scan *out)
{
    *out = (fx_float_scan){.key_min = INT64_MAX, .key_max = INT64_MIN};
}

static inline void fx_scan_step(fx_float_scan *out, uint64_t magnitude, int64_t key, uint64_t infinity,
                                uint64_t min_normal)
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

static inline void fx_spread_step(fx_float_spread *out, size_t i, double distance)
{
    out->sum[i % FX_STATS_LANES] += distance;
    out->square_sum[i % FX_STATS_LANES] += distance * distance;
}

/* Elements first .. n of a part. */
#define FX_DEFINE_STEPS(NAME, UINT, MOST, INFINITE)                                                                    \
    static inline void fx_scan_##NAME##_steps(const void *elements, size_t first, size_t n, UINT min_normal,           \
                                              fx_float_scan *out)                                                      \
    {                                                                                                                  \
        const unsigned char *bytes = elements;                                                                         \
        for (size_t i = first; i < n; i++) {                                                                           \
            UINT bits;                                                                                                 \
            memcpy(&bits, bytes + sizeof bits * i, sizeof bits);                                                       \
            UINT magnitude = bits & (MOST);                                                                            \
            fx_scan_step(out, magnitude, fx_##NAME##_key(bits), INFINITE, min_normal);                                 \
            if (magnitude < (INFINITE)) {                                                                              \
                out->sum[i % FX_STATS_LANES] += (double)fx_##NAME##_from_bits(bits);                                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static inline void fx_spread_##NAME##_steps(const void *elements, size_t first, size_t n, double mean,             \
                                                fx_float_spread *out)                                                  \
    {                                                                                                                  \
        const unsigned char *bytes = elements;                                                                         \
        for (size_t i = first; i < n; i++) {                                                                           \
            UINT bits;                                                                                                 \
            memcpy(&bits, bytes + sizeof bits * i, sizeof bits);                                                       \
            if ((bits & (MOST)) < (INFINITE)) {                                                                        \
                fx_spread_step(out, i, (double)fx_##NAME##_from_bits(bits) - mean);                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

FX_DEFINE_STEPS(f32, uint32_t, INT32_MAX, FX_F32_INF)
FX_DEFINE_STEPS(f64, uint64_t, INT64_MAX, FX_F64_INF)
#undef FX_DEFINE_STEPS

/* IEEE binary16 to binary32 by its definition, with integers only, so that flush-to-zero modes have no effect. */
static inline uint32_t fx_f32_bits_of_f16(uint16_t half)
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

static inline void fx_widen_f16_steps(const void *elements, size_t first, size_t n, float *out)
{
    const unsigned char *bytes = elements;
    for (size_t i = first; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        uint32_t bits = fx_f32_bits_of_f16(half);
        memcpy(out + i, &bits, sizeof bits);
    }
}

#endif
