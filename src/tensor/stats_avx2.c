/*
 * stats_avx2.c - the kernels for AVX2 and F16C: stats_vector.h over 32-byte vectors.
 */
#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

#include "tensor/vector_avx2.h"

#include "tensor/stats_vector.h"

const fx_stats_kernels fx_stats_avx2 = STATS_KERNELS;
#endif
