/* rounding_avx2.c - the kernel for AVX2: rounding_vector.h over 32-byte vectors. */
#if defined(__AVX2__)
#define VD_N 4
#include "tensor/rounding_vector.h"

void fx_rounding_avx2(const fx_rounding *rounding, const double *saved, const double *reference, const double *spread,
                      fx_rounding_block *out)
{
    measure_block(rounding, saved, reference, spread, out);
}
#endif
