/*
 * rounding_kernel.h - the inner loop of rounding.c, over one block of real elements.
 */
#ifndef FX_TENSOR_ROUNDING_KERNEL_H
#define FX_TENSOR_ROUNDING_KERNEL_H

#include "tensor/rounding.h"

#define FX_ROUNDING_BLOCK 256
#define FX_ROUNDING_LANES 8 /* of the sums, at every vector width: element i belongs to lane i % 8 */

/* What the kernel leaves to rounding.c, one element at a time. */
enum {
    FX_ROUNDING_SPECIAL = 1, /* not in the sums: a value or its allowance is not finite, or a zero's sign is lost */
    FX_ROUNDING_RECORD = 2   /* in the sums, and perhaps one of the worst */
};

typedef struct fx_rounding_block {
    double error_sum[FX_ROUNDING_LANES]; /* squares */
    double allow_sum[FX_ROUNDING_LANES]; /* squares */
    double bias_sum[FX_ROUNDING_LANES];
    double bias_square_sum[FX_ROUNDING_LANES];
    int64_t misrounded[FX_ROUNDING_LANES];
    int64_t up[FX_ROUNDING_LANES];
    int64_t unexplained[FX_ROUNDING_LANES];
    int64_t unfaithful[FX_ROUNDING_LANES];
    int64_t outliers[FX_ROUNDING_LANES];
    int64_t marked[FX_ROUNDING_LANES]; /* all marks, combined by or */
    int64_t marks[FX_ROUNDING_BLOCK];
} fx_rounding_block;

/* Measures a block by the format and options of `rounding`, and marks what may exceed its records. */
typedef void fx_rounding_kernel(const fx_rounding *rounding, const double *saved, const double *reference,
                                const double *spread, fx_rounding_block *out);

extern fx_rounding_kernel fx_rounding_scalar;
#if defined(__x86_64__)
extern fx_rounding_kernel fx_rounding_avx2;
extern fx_rounding_kernel fx_rounding_avx512;
#endif

#endif
