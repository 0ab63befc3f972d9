/*
 * hash_avx512.c - XXH3 for this level.
 */
#if defined(__x86_64__)
#include "tensor/hash_kernel.h"

const fx_hash_kernels fx_hash_avx512 = HASH_KERNELS;
#endif
