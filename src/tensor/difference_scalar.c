/*
 * difference_scalar.c - the portable kernels: the reference for the vector kernels.
 */
#include "tensor/difference_steps.h"

static bool finite_f16(const void *golden, const void *target, size_t n)
{
    return fx_finite_steps_16(golden, target, 0, n);
}

static bool finite_f32(const void *golden, const void *target, size_t n)
{
    return fx_finite_steps_32(golden, target, 0, n);
}

static bool finite_f64(const void *golden, const void *target, size_t n)
{
    return fx_finite_steps_64(golden, target, 0, n);
}

static void part_f16(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out)
{
    (void)finite;
    *out = (fx_difference_part){0};
    fx_part_steps_16(golden, target, 0, n, place, out);
}

static void part_f32(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out)
{
    (void)finite;
    *out = (fx_difference_part){0};
    fx_part_steps_32(golden, target, 0, n, place, out);
}

static void part_f64(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out)
{
    (void)finite;
    *out = (fx_difference_part){0};
    fx_part_steps_64(golden, target, 0, n, place, out);
}

static uint64_t ulp_f16(const void *golden, const void *target, size_t n)
{
    return fx_ulp_steps_f16(golden, target, 0, n);
}

static uint64_t ulp_bf16(const void *golden, const void *target, size_t n)
{
    return fx_ulp_steps_bf16(golden, target, 0, n);
}

static uint64_t ulp_f32(const void *golden, const void *target, size_t n)
{
    return fx_ulp_steps_f32(golden, target, 0, n);
}

static uint64_t ulp_f64(const void *golden, const void *target, size_t n)
{
    return fx_ulp_steps_f64(golden, target, 0, n);
}

const fx_difference_kernels fx_difference_scalar = {
    .finite_f16 = finite_f16,
    .finite_f32 = finite_f32,
    .finite_f64 = finite_f64,
    .part_f16 = part_f16,
    .part_f32 = part_f32,
    .part_f64 = part_f64,
    .ulp_f16 = ulp_f16,
    .ulp_bf16 = ulp_bf16,
    .ulp_f32 = ulp_f32,
    .ulp_f64 = ulp_f64,
};
