/* rounding_scalar.c - the kernel for any processor: rounding_vector.h over 16-byte vectors. */
#define VD_N 2
#include "tensor/rounding_vector.h"

void fx_rounding_scalar(const fx_rounding *rounding, const double *saved, const double *reference, const double *spread,
                        fx_rounding_block *out)
{
    measure_block(rounding, saved, reference, spread, out);
}
