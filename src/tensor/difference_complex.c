/*
 * difference_complex.c - complex dtypes: moduli instead of absolute values.
 */
#include <math.h>

#include "tensor/difference_parts.h"
#include "tensor/difference_steps.h"
#include "tensor/values.h"

#define CHUNK 128

static bool is_finite_complex(const double z[2])
{
    return isfinite(z[0]) && isfinite(z[1]);
}

static bool is_nan_complex(const double z[2])
{
    return isnan(z[0]) || isnan(z[1]);
}

/* `narrow`: float64 holds the squares. */
static double modulus(double real, double imag, bool narrow)
{
    return narrow ? sqrt(real * real + imag * imag) : hypot(real, imag);
}

static void step(fx_difference_place *place, fx_difference_part *part, size_t i, const double b[2], const double a[2],
                 bool narrow)
{
    double error = modulus(a[0] - b[0], a[1] - b[1], narrow), golden = modulus(b[0], b[1], narrow);
    fx_difference_count(part, &place->difference->options, error, golden);
    if (fx_difference_is_record(place->difference, error, golden) || isinf(error)) {
        fx_difference_offer(place, i, error, golden, modulus(a[0], a[1], narrow));
    }
    if (narrow) {
        size_t lane = i % FX_DIFFERENCE_LANES;
        part->error[lane] += error;
        part->square[lane] += (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]);
        part->golden[lane] += b[0] * b[0] + b[1] * b[1];
        part->target[lane] += a[0] * a[0] + a[1] * a[1];
        part->product[lane] += a[0] * b[0] + a[1] * b[1];
    }
}

/* Adds one pair to the sums, in long double, where no square overflows. */
static void add_wide(fx_difference_sums *sums, const double golden[2], const double target[2])
{
    long double b[2] = {golden[0], golden[1]}, a[2] = {target[0], target[1]};
    long double square = (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]);
    sums->error += sqrtl(square);
    sums->square += square;
    sums->golden += b[0] * b[0] + b[1] * b[1];
    sums->target += a[0] * a[0] + a[1] * a[1];
    sums->product += a[0] * b[0] + a[1] * b[1];
}

static size_t add_chunk(fx_difference_place *place, fx_difference_part *part, fx_difference_sums *wide, size_t first,
                        const double *golden, const double *target, size_t n, bool narrow)
{
    size_t n_finite = 0;
    for (size_t k = 0; k < n; k++) {
        const double *b = golden + 2 * k, *a = target + 2 * k;
        if (is_finite_complex(b) && is_finite_complex(a)) {
            step(place, part, first + k, b, a, narrow);
            if (!narrow) {
                add_wide(wide, b, a);
            }
            n_finite++;
        } else {
            double golden_size = is_nan_complex(b) ? (double)NAN : hypot(b[0], b[1]);
            double target_size = is_nan_complex(a) ? (double)NAN : hypot(a[0], a[1]);
            bool equal = (isnan(golden_size) && isnan(target_size)) || (b[0] == a[0] && b[1] == a[1]);
            fx_difference_non_finite(place, first + k, golden_size, target_size, equal);
        }
    }
    return n_finite;
}

/* Everything but float64 and its complex: integers have 64 bits at most. */
static bool is_narrow(fxtap_dtype dtype)
{
    return dtype != FXTAP_COMPLEX128 && dtype != FXTAP_FLOAT64;
}

void fx_difference_add_complex(fx_difference_place *place, const fx_difference_pair *pair)
{
    double golden[2 * CHUNK], target[2 * CHUNK];
    fx_difference_part part = {0};
    fx_difference_sums sums = {0};
    size_t n_finite = 0;
    bool narrow = is_narrow(pair->golden_dtype) && is_narrow(pair->target_dtype);
    size_t golden_bytes = fxtap_dtype_size(pair->golden_dtype), target_bytes = fxtap_dtype_size(pair->target_dtype);
    for (size_t first = 0; first < pair->n; first += CHUNK) {
        size_t n = pair->n - first < CHUNK ? pair->n - first : CHUNK;
        fx_values_to_c128(pair->golden_dtype, (const unsigned char *)pair->golden + golden_bytes * first, n, golden);
        fx_values_to_c128(pair->target_dtype, (const unsigned char *)pair->target + target_bytes * first, n, target);
        n_finite += add_chunk(place, &part, &sums, first, golden, target, n, narrow);
    }
    if (narrow) {
        fx_difference_lane_sums(&part, &sums);
    }
    fx_difference_take(place->difference, &part, &sums, pair->n, n_finite);
}
