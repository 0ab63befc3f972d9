/*
 * stats_kernel.h - the inner loops of stats.c and their results. Each takes at most one part.
 */
#ifndef FX_TENSOR_STATS_KERNEL_H
#define FX_TENSOR_STATS_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tensor/stats.h"

#define FX_F32_INF 0x7f800000u
#define FX_F64_INF 0x7ff0000000000000u

/* First pass over floats: everything that does not need the mean. Keys order like the values, -0.0 below +0.0. */
typedef struct fx_float_scan {
    uint64_t n_nan;
    uint64_t n_pos_inf;
    uint64_t n_neg_inf;
    uint64_t n_zero;
    uint64_t n_subnormal;
    uint64_t abs_max;           /* bits of the largest magnitude that is not NaN */
    int64_t key_min;            /* INT64_MAX if all are NaN */
    int64_t key_max;            /* INT64_MIN if all are NaN */
    double sum[FX_STATS_LANES]; /* of the finite elements */
} fx_float_scan;

/* Second pass: sums over the finite elements of x - mean and (x - mean)^2. */
typedef struct fx_float_spread {
    double sum[FX_STATS_LANES];
    double square_sum[FX_STATS_LANES];
} fx_float_spread;

/* Integers of up to 32 bits: at most one part, so that 64 bits hold the sum and the halves of the squares. */
typedef struct fx_int_scan {
    int64_t min;
    int64_t max;
    uint64_t n_zero;
    int64_t sum;
    uint64_t square_low;  /* sum of the low 32 bits of each square */
    uint64_t square_high; /* sum of the high 32 bits */
} fx_int_scan;

static inline int64_t fx_f32_key(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}

static inline int64_t fx_f64_key(uint64_t bits)
{
    return (int64_t)(bits ^ ((uint64_t)((int64_t)bits >> 63) >> 1));
}

/* The bits of |x|, from either key: -1 is the key of -0.0. */
static inline uint64_t fx_key_magnitude(int64_t key)
{
    return key < 0 ? ~(uint64_t)key : (uint64_t)key;
}

static inline float fx_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double fx_f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sums of the lanes, always in this order. */
static inline double fx_lanes_sum(const double lanes[FX_STATS_LANES])
{
    double half[FX_STATS_LANES / 2];
    for (int i = 0; i < FX_STATS_LANES / 2; i++) {
        half[i] = lanes[i] + lanes[i + FX_STATS_LANES / 2];
    }
    for (int width = FX_STATS_LANES / 4; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            half[i] += half[i + width];
        }
    }
    return half[0];
}

/* The kernels of one level. `elements` may have any alignment. */
typedef struct fx_stats_kernels {
    void (*scan_f32)(const void *elements, size_t n, uint32_t min_normal, fx_float_scan *out);
    void (*spread_f32)(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out);
    void (*scan_f64)(const void *elements, size_t n, uint64_t min_normal, fx_float_scan *out);
    void (*spread_f64)(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out);
    void (*widen_f16)(const void *elements, size_t n, float *out); /* NaN stays NaN; payloads may differ */
    void (*scan_i8)(const void *elements, size_t n, fx_int_scan *out);
    void (*scan_u8)(const void *elements, size_t n, fx_int_scan *out);
    void (*scan_i16)(const void *elements, size_t n, fx_int_scan *out);
    void (*scan_u16)(const void *elements, size_t n, fx_int_scan *out);
    void (*scan_i32)(const void *elements, size_t n, fx_int_scan *out);
    void (*scan_u32)(const void *elements, size_t n, fx_int_scan *out);
    bool (*scan_i64)(const void *elements, size_t n, fx_int_scan *out); /* false: a value needs more than 32 bits */
    void (*scan_bool)(const void *elements, size_t n, fx_int_scan *out);
} fx_stats_kernels;

/* The kernels of the level in use (fx_cpu()). */
const fx_stats_kernels *fx_stats_in_use(void);

extern const fx_stats_kernels fx_stats_scalar;
#if defined(__x86_64__)
extern const fx_stats_kernels fx_stats_avx2;
extern const fx_stats_kernels fx_stats_avx512;
#endif

#endif
