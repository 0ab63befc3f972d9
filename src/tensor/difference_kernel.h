/*
 * difference_kernel.h - the inner loops of difference.c and their results. Each takes at most one part.
 */
#ifndef FX_TENSOR_DIFFERENCE_KERNEL_H
#define FX_TENSOR_DIFFERENCE_KERNEL_H

#include <stdbool.h>
#include <string.h>

#include "tensor/difference.h"
#include "tensor/stats_kernel.h"

#define FX_DIFFERENCE_PART_ELEMS 4096
#define FX_DIFFERENCE_LANES FX_STATS_LANES

/* The position of a part, for coordinates. */
typedef struct fx_difference_place {
    fx_difference *difference;
    uint64_t first;            /* position of the part's first element */
    const fxtap_view *fortran; /* not NULL: positions are in the memory order of this view */
} fx_difference_place;

/* Sums over the finite pairs of a part, element i in lane i % 16; other pairs count as equal here. */
typedef struct fx_difference_part {
    double error[FX_DIFFERENCE_LANES];
    double square[FX_DIFFERENCE_LANES];
    double golden[FX_DIFFERENCE_LANES];
    double target[FX_DIFFERENCE_LANES];
    double product[FX_DIFFERENCE_LANES];
    uint64_t n_outside; /* of the tolerance */
    uint64_t n_over_1e3;
    uint64_t n_over_5e3;
} fx_difference_part;

/* Records an error that may be among the largest. Rare, so kept out of the loops. */
void fx_difference_offer(fx_difference_place *place, size_t i, double error, double golden, double target);

/* True if fx_difference_offer() would record it. */
static inline bool fx_difference_is_record(const fx_difference *difference, double error, double golden_magnitude)
{
    return error > difference->floor || (golden_magnitude != 0 && error > difference->max_rel.error * golden_magnitude);
}

/*
 * The kernels of one level; any alignment. finite_* return whether all values of both sides are finite; part_* take
 * that as an argument and first clear `out`. ulp_f16 reads float16, ulp_bf16 float32 that it rounds to bfloat16.
 * Distances are over the finite pairs.
 */
typedef struct fx_difference_kernels {
    bool (*finite_f16)(const void *golden, const void *target, size_t n);
    bool (*finite_f32)(const void *golden, const void *target, size_t n);
    bool (*finite_f64)(const void *golden, const void *target, size_t n);
    void (*part_f16)(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out);
    void (*part_f32)(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out);
    void (*part_f64)(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,
                     fx_difference_part *out);
    uint64_t (*ulp_f16)(const void *golden, const void *target, size_t n);
    uint64_t (*ulp_bf16)(const void *golden, const void *target, size_t n);
    uint64_t (*ulp_f32)(const void *golden, const void *target, size_t n);
    uint64_t (*ulp_f64)(const void *golden, const void *target, size_t n);
} fx_difference_kernels;

extern const fx_difference_kernels fx_difference_scalar;
#if defined(__x86_64__)
extern const fx_difference_kernels fx_difference_avx2;
extern const fx_difference_kernels fx_difference_avx512;
#endif

#endif
