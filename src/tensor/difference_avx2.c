/*
 * difference_avx2.c - the kernels for AVX2: difference_vector.h over 32-byte vectors.
 */
#if defined(__AVX2__) && defined(__F16C__)
#include "tensor/vector_avx2.h"

#include "tensor/difference_vector.h"

const fx_difference_kernels fx_difference_avx2 = DIFFERENCE_KERNELS;
#endif
