/*
 * stats_scalar.c - the portable kernels, one element at a time: the reference for the vector kernels.
 */
#include "tensor/stats_ints.h"
#include "tensor/stats_steps.h"

static void scan_f32(const void *elements, size_t n, uint32_t min_normal, fx_float_scan *out)
{
    fx_scan_begin(out);
    fx_scan_f32_steps(elements, 0, n, min_normal, out);
}

static void scan_f64(const void *elements, size_t n, uint64_t min_normal, fx_float_scan *out)
{
    fx_scan_begin(out);
    fx_scan_f64_steps(elements, 0, n, min_normal, out);
}

static void spread_f32(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out)
{
    (void)all_finite;
    *out = (fx_float_spread){0};
    fx_spread_f32_steps(elements, 0, n, mean, out);
}

static void spread_f64(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out)
{
    (void)all_finite;
    *out = (fx_float_spread){0};
    fx_spread_f64_steps(elements, 0, n, mean, out);
}

static void widen_f16(const void *elements, size_t n, float *out)
{
    fx_widen_f16_steps(elements, 0, n, out);
}

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
    .scan_i64 = scan_i64,
    .scan_bool = scan_bool,
};
