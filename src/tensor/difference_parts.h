/*
 * difference_parts.h - adds one part of each kind to the state: shared by difference.c and difference_*.c.
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

/* Adds a pair that is not finite; complex: the moduli, NaN if a part is NaN. */
void fx_difference_non_finite(fx_difference_place *place, size_t i, double golden, double target, bool equal);

/* Keeps the first such points by index, in any order of calls. */
void fx_difference_keep_non_finite(fx_difference *difference, const fx_difference_point *point);

/* The counts and sums of a part's finite pairs. */
void fx_difference_take(fx_difference *difference, const fx_difference_part *part, const fx_difference_sums *sums,
                        size_t n, size_t n_finite);

void fx_difference_lane_sums(const fx_difference_part *part, fx_difference_sums *out);

/* True if float64 cannot hold these sums: overflow, or squares that underflow. */
bool fx_difference_sums_lost(const fx_difference_sums *sums);

/* 64-bit integers on one side, integers on the other. */
void fx_difference_add_i64(fx_difference_place *place, const fx_difference_pair *pair);

/* A complex dtype on at least one side. */
void fx_difference_add_complex(fx_difference_place *place, const fx_difference_pair *pair);

/* The largest distance in ulps of `judged` (a float dtype that has ulps) over the finite pairs of two float dtypes. */
uint64_t fx_difference_ulp(const fx_difference_kernels *kernels, fxtap_dtype judged, const fx_difference_pair *pair);

#endif
