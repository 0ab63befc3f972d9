/*
 * stats_avx512.c - the kernels for AVX-512 F, BW, DQ, VL: stats_vector.h over 64-byte vectors.
 */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>

#include "tensor/vector_avx512.h"

#include "tensor/stats_vector.h"

const fx_stats_kernels fx_stats_avx512 = STATS_KERNELS;
#endif
