/*
 * difference_avx512.c - the kernels for AVX-512 F, BW, DQ, VL: difference_vector.h over 64-byte vectors.
 */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "tensor/vector_avx512.h"

#include "tensor/difference_vector.h"

const fx_difference_kernels fx_difference_avx512 = DIFFERENCE_KERNELS;
#endif
