/*
 * difference_parts.h - one part of each kind into the running state: between difference.c and its difference_*.c.
 */
#ifndef FX_TENSOR_DIFFERENCE_PARTS_H
#define FX_TENSOR_DIFFERENCE_PARTS_H

#include "tensor/difference_kernel.h"

/* A part of both sides in their saved dtypes. */
typedef struct fx_difference_pair {
    fxtap_dtype golden_dtype;
    fxtap_dtype target_dtype;
    const void *golden;
    const void *target;
    size_t n;
} fx_difference_pair;

typedef struct fx_difference_sums {
    long double error;
    long double square;
    long double golden;
    long double target;
    long double product;
} fx_difference_sums;

/* One pair that is not finite on both sides; complex: the moduli, NaN where a part is. */
void fx_difference_non_finite(fx_difference_place *place, size_t i, double golden, double target, bool equal);

/* Keeps the first such points of all, whatever the order in which they come. */
void fx_difference_keep_non_finite(fx_difference *difference, const fx_difference_point *point);

/* The counts and sums of a part's finite pairs. */
void fx_difference_take(fx_difference *difference, const fx_difference_part *part, const fx_difference_sums *sums,
                        size_t n, size_t n_finite);

void fx_difference_lane_sums(const fx_difference_part *part, fx_difference_sums *out);

/* True when float64 could not hold these sums: overflow, or squares that vanished. */
bool fx_difference_sums_lost(const fx_difference_sums *sums);

/* 64-bit integers on a side, integers on the other. */
void fx_difference_add_i64(fx_difference_place *place, const fx_difference_pair *pair);

/* A complex dtype on a side. */
void fx_difference_add_complex(fx_difference_place *place, const fx_difference_pair *pair);

/* The largest distance in ulps of `judged` (a float dtype with one) over the finite pairs of two float dtypes. */
uint64_t fx_difference_ulp(const fx_difference_kernels *kernels, fxtap_dtype judged, const fx_difference_pair *pair);

#endif
