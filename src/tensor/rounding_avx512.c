/* rounding_avx512.c - the kernel for AVX-512: rounding_vector.h over 64-byte vectors. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define VD_N 8
#include "tensor/rounding_vector.h"

void fx_rounding_avx512(const fx_rounding *rounding, const double *saved, const double *reference, const double *spread,
                        fx_rounding_block *out)
{
    measure_block(rounding, saved, reference, spread, out);
}
#endif
