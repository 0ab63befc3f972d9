/*
 * stats_parts.h - adds one part of each kind to the state: shared by stats.c and stats_*.c.
 */
#ifndef FX_TENSOR_STATS_PARTS_H
#define FX_TENSOR_STATS_PARTS_H

#include "tensor/stats_kernel.h"

/* Combines the moments of `n` finite elements (the pairwise update of stats.h). */
void fx_stats_join(fx_stats_state *state, uint64_t n, long double mean, long double mean_imag, long double m2);

void fx_stats_range(fx_stats_state *state, int64_t key_min, int64_t key_max);

void fx_stats_add_c64_part(fx_stats_state *state, const void *elements, size_t n);
void fx_stats_add_c128_part(fx_stats_state *state, const void *elements, size_t n);

void fx_stats_add_i64_part(fx_stats_state *state, const void *elements, size_t n);
void fx_stats_add_u64_part(fx_stats_state *state, const void *elements, size_t n);
void fx_stats_take_ints(fx_stats_state *state, const fx_int_scan *scan);
void fx_stats_finish_ints(const fx_stats_state *state, fxtap_stats *out);

#endif
