/*
 * difference_int.c - 64-bit integers: exact differences for any signedness of the sides.
 */
#include <math.h>

#include "tensor/difference_parts.h"
#include "tensor/difference_steps.h"

typedef unsigned __int128 u128;

/* Any integer or bool, exactly. */
static __int128 load_int(fxtap_dtype dtype, const void *elements, size_t i)
{
    uint64_t bits = 0;
    size_t size = fxtap_dtype_size(dtype);
    memcpy(&bits, (const unsigned char *)elements + size * i, size);
    switch (dtype) {
    case FXTAP_BOOL:
        return bits != 0;
    case FXTAP_INT8:
        return (int8_t)bits;
    case FXTAP_INT16:
        return (int16_t)bits;
    case FXTAP_INT32:
        return (int32_t)bits;
    case FXTAP_INT64:
        return (int64_t)bits;
    default:
        return bits;
    }
}

void fx_difference_add_i64(fx_difference_place *place, const fx_difference_pair *pair)
{
    fx_difference *difference = place->difference;
    fx_difference_part part = {0};
    fx_difference_sums sums;
    u128 most = difference->max_abs_exact, error_sum = 0;
    for (size_t i = 0; i < pair->n; i++) {
        __int128 b = load_int(pair->golden_dtype, pair->golden, i);
        __int128 a = load_int(pair->target_dtype, pair->target, i);
        u128 error = (u128)(a > b ? a - b : b - a);
        most = error > most ? error : most;
        error_sum += error;
        fx_difference_step(place, &part, i, (double)error, (double)b, (double)a);
    }
    difference->max_abs_exact = most > UINT64_MAX ? UINT64_MAX : (uint64_t)most;
    fx_difference_lane_sums(&part, &sums);
    sums.error = (long double)error_sum;
    fx_difference_take(difference, &part, &sums, pair->n, pair->n);
}
