/*
 * rounding_vector.h - the kernel, in vectors as the compiler offers them: rounding_*.c define VD_N, the number of
 * elements in one, before they include this. The formulas are those of rounding.c, whose divisions by powers of two are
 * products here: both are exact.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/rounding_kernel.h"

typedef double vd __attribute__((vector_size(8 * VD_N)));
typedef int64_t vi __attribute__((vector_size(8 * VD_N))); /* as the result of a comparison: 0 or -1 */

#define N_VECTORS (FX_ROUNDING_LANES / VD_N)
#define EXPONENT INT64_C(0x7FF0000000000000)
#define INVERSE INT64_C(0x7FE0000000000000) /* less the bits of a power of two: those of its inverse */
#define SQUARE_MAX 0x1p512                  /* of an allowance; times the largest power's square it is still finite */

typedef struct sums {
    vd error, allow, bias, bias_square;
    vi misrounded, up, unexplained, unfaithful, outliers, marked;
} sums;

static inline vd load(const double *from)
{
    vd v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline vd splat(double value)
{
    return value - (vd){0};
}

static inline vd select(vi mask, vd yes, vd no)
{
    return (vd)((mask & (vi)yes) | (~mask & (vi)no));
}

static inline vd keep(vi mask, vd v)
{
    return (vd)(mask & (vi)v);
}

static inline vd magnitude(vd v)
{
    return (vd)((vi)v & INT64_MAX);
}

static inline vd power_at(const fx_rounding_format *format, vd v)
{
    vd size = magnitude(v), smallest = splat(format->smallest), largest = splat(format->largest);
    size = select(size > smallest, size, smallest);
    size = select(size < largest, size, largest);
    return (vd)((vi)size & EXPONENT);
}

static inline __attribute__((always_inline)) vi add_step(const fx_rounding *r, vd saved, vd reference, vd spread,
                                                         vd worst, sums *out)
{
    const fx_rounding_format *format = r->format;
    const fx_rounding_options *options = &r->options;
    vd power = power_at(format, reference), inverse = (vd)(INVERSE - (vi)power), shift = power * format->shift;
    vd rounded = reference + shift - shift, size = magnitude(reference) * inverse;
    vd error = magnitude(saved - reference) * inverse, flush = r->flush * inverse;
    vd scaled_spread = options->spread_scale * (spread * inverse), relative = options->relative * size;
    vd allow_square = r->unit * r->unit + scaled_spread * scaled_spread + relative * relative + flush * flush;
    vi lost_sign = (saved == 0) & (rounded == 0) & (((vi)saved ^ (vi)reference) < 0);
    vi plain = (magnitude(saved) < (double)INFINITY) & (magnitude(rounded) <= format->largest) &
               (allow_square <= SQUARE_MAX) & ~lost_sign;
    vd error_square = error * error, ratio = error_square / allow_square;
    vi differs = plain & (saved != rounded);
    vi record = plain & ((error * (0.5 / r->unit) > r->out.max_ulp) | (ratio > r->max_square));
    record |= differs & (ratio > worst);
    out->error += keep(plain, error_square * (power * power));
    out->allow += keep(plain, allow_square * (power * power));
    out->outliers -= plain & (ratio > FX_ROUNDING_REACH * FX_ROUNDING_REACH);

    vd ulps = keep(differs, (saved - rounded) * inverse * (0.5 / r->unit));
    out->bias += ulps;
    out->bias_square += ulps * ulps;
    out->misrounded -= differs;
    out->up -= differs & (saved > rounded);
    vd inner_spread = options->inner_scale * (spread * inverse), inner_relative = options->inner_relative * size;
    vd inner_square = inner_spread * inner_spread + inner_relative * inner_relative + flush * flush;
    vd above = power_at(format, saved) * inverse;
    vd half = r->unit * select(above > 1, above, splat(1)), distance = error - half;
    vi is_far = distance * distance > FX_ROUNDING_REACH * FX_ROUNDING_REACH * inner_square;
    vi is_unexplained = differs & (distance > 0) & is_far;
    out->unexplained -= is_unexplained;
    out->unfaithful -= is_unexplained & (distance >= half);

    vi marks = (~plain & FX_ROUNDING_SPECIAL) | (record & FX_ROUNDING_RECORD);
    out->marked |= marks;
    return marks;
}

static void measure_block(const fx_rounding *rounding, const double *saved, const double *reference,
                          const double *spread, fx_rounding_block *out)
{
    bool is_full = rounding->out.n_worst == FXTAP_ROUNDING_WORST_MAX;
    vd worst = splat(is_full ? rounding->worst_rank[FXTAP_ROUNDING_WORST_MAX - 1] : -1);
    sums lanes[N_VECTORS];
    memset(lanes, 0, sizeof lanes);
    for (size_t i = 0; i < FX_ROUNDING_BLOCK; i += FX_ROUNDING_LANES) {
        for (size_t k = 0; k < N_VECTORS; k++) {
            size_t at = i + k * VD_N;
            vi marks = add_step(rounding, load(saved + at), load(reference + at), load(spread + at), worst, &lanes[k]);
            memcpy(out->marks + at, &marks, sizeof marks);
        }
    }
    for (size_t k = 0; k < N_VECTORS; k++) {
        memcpy(out->error_sum + k * VD_N, &lanes[k].error, sizeof(vd));
        memcpy(out->allow_sum + k * VD_N, &lanes[k].allow, sizeof(vd));
        memcpy(out->bias_sum + k * VD_N, &lanes[k].bias, sizeof(vd));
        memcpy(out->bias_square_sum + k * VD_N, &lanes[k].bias_square, sizeof(vd));
        memcpy(out->misrounded + k * VD_N, &lanes[k].misrounded, sizeof(vi));
        memcpy(out->up + k * VD_N, &lanes[k].up, sizeof(vi));
        memcpy(out->unexplained + k * VD_N, &lanes[k].unexplained, sizeof(vi));
        memcpy(out->unfaithful + k * VD_N, &lanes[k].unfaithful, sizeof(vi));
        memcpy(out->outliers + k * VD_N, &lanes[k].outliers, sizeof(vi));
        memcpy(out->marked + k * VD_N, &lanes[k].marked, sizeof(vi));
    }
}
