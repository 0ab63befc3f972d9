/*
 * stats_complex.c - complex64 and complex128. An element is NaN if a part is; else infinite if a part is; zero if both
 * parts are; else subnormal if a part is.
 */
#include <math.h>

#include "tensor/stats_parts.h"

typedef struct complex_sums {
    double real[FX_STATS_LANES];
    double imag[FX_STATS_LANES];
    double square[FX_STATS_LANES];
} complex_sums;

/* The magnitude bits of both parts, in the width of a part, and the values as float64. */
typedef struct complex_element {
    uint64_t real_bits;
    uint64_t imag_bits;
    double real;
    double imag;
} complex_element;

static inline complex_element load_c64(const unsigned char *bytes, size_t i)
{
    uint32_t parts[2];
    memcpy(parts, bytes + 8 * i, sizeof parts);
    return (complex_element){parts[0] & INT32_MAX, parts[1] & INT32_MAX, (double)fx_f32_from_bits(parts[0]),
                             (double)fx_f32_from_bits(parts[1])};
}

static inline complex_element load_c128(const unsigned char *bytes, size_t i)
{
    uint64_t parts[2];
    memcpy(parts, bytes + 16 * i, sizeof parts);
    return (complex_element){parts[0] & INT64_MAX, parts[1] & INT64_MAX, fx_f64_from_bits(parts[0]),
                             fx_f64_from_bits(parts[1])};
}

static inline complex_element load(const unsigned char *bytes, size_t i, bool is_c128)
{
    return is_c128 ? load_c128(bytes, i) : load_c64(bytes, i);
}

static inline bool is_finite(complex_element x, uint64_t infinity)
{
    return x.real_bits < infinity && x.imag_bits < infinity;
}

static inline bool is_subnormal(uint64_t bits, uint64_t min_normal)
{
    return bits > 0 && bits < min_normal;
}

/* Counts the element; returns whether it is finite. */
static inline bool classify(fx_stats_state *state, complex_element x, uint64_t infinity)
{
    uint64_t min_normal = state->min_normal_bits;
    if (x.real_bits > infinity || x.imag_bits > infinity) {
        state->nan_count++;
        return false;
    }
    if (!is_finite(x, infinity)) {
        state->pos_inf_count++;
        state->abs_max = INFINITY;
        return false;
    }
    state->zero_count += x.real_bits == 0 && x.imag_bits == 0;
    state->subnormal_count += is_subnormal(x.real_bits, min_normal) || is_subnormal(x.imag_bits, min_normal);
    return true;
}

static void add_narrow(fx_stats_state *state, const unsigned char *bytes, size_t n, bool is_c128, uint64_t n_finite,
                       double real, double imag)
{
    complex_sums sums = {0};
    uint64_t infinity = is_c128 ? FX_F64_INF : FX_F32_INF;
    long double count = (long double)n_finite;
    for (size_t i = 0; i < n; i++) {
        complex_element x = load(bytes, i, is_c128);
        if (is_finite(x, infinity)) {
            double a = x.real - real, b = x.imag - imag;
            sums.real[i % FX_STATS_LANES] += a;
            sums.imag[i % FX_STATS_LANES] += b;
            sums.square[i % FX_STATS_LANES] += a * a + b * b;
        }
    }
    long double a = fx_lanes_sum(sums.real), b = fx_lanes_sum(sums.imag);
    long double m2 = fx_lanes_sum(sums.square) - (a * a + b * b) / count;
    fx_stats_join(state, n_finite, real + a / count, imag + b / count, m2 > 0 ? m2 : 0);
}

/* complex128 whose squares do not fit float64. */
static void add_wide(fx_stats_state *state, const unsigned char *bytes, size_t n, uint64_t n_finite)
{
    long double real = 0, imag = 0, m2 = 0;
    for (size_t i = 0; i < n; i++) {
        complex_element x = load_c128(bytes, i);
        if (is_finite(x, FX_F64_INF)) {
            real += x.real / (long double)n_finite;
            imag += x.imag / (long double)n_finite;
        }
    }
    for (size_t i = 0; i < n; i++) {
        complex_element x = load_c128(bytes, i);
        if (is_finite(x, FX_F64_INF)) {
            long double a = x.real - real, b = x.imag - imag;
            m2 += a * a + b * b;
        }
    }
    fx_stats_join(state, n_finite, real, imag, m2);
}

static inline void add_part(fx_stats_state *state, const unsigned char *bytes, size_t n, bool is_c128)
{
    complex_sums sums = {0};
    double largest = 0; /* of any part: decides whether squares fit */
    uint64_t infinity = is_c128 ? FX_F64_INF : FX_F32_INF, n_finite = 0;
    for (size_t i = 0; i < n; i++) {
        complex_element x = load(bytes, i, is_c128);
        if (classify(state, x, infinity)) {
            sums.real[i % FX_STATS_LANES] += x.real;
            sums.imag[i % FX_STATS_LANES] += x.imag;
            largest = fmax(largest, fmax(fabs(x.real), fabs(x.imag)));
            double modulus = is_c128 ? hypot(x.real, x.imag) : sqrt(x.real * x.real + x.imag * x.imag);
            state->abs_max = modulus > state->abs_max ? modulus : state->abs_max;
            n_finite++;
        }
    }
    if (n_finite == 0) {
        return;
    }
    if (is_c128 && largest != 0 && (largest > 1e145 || largest < 1e-140)) {
        add_wide(state, bytes, n, n_finite);
        return;
    }
    add_narrow(state, bytes, n, is_c128, n_finite, fx_lanes_sum(sums.real) / (double)n_finite,
               fx_lanes_sum(sums.imag) / (double)n_finite);
}

void fx_stats_add_c64_part(fx_stats_state *state, const void *elements, size_t n)
{
    add_part(state, elements, n, false);
}

void fx_stats_add_c128_part(fx_stats_state *state, const void *elements, size_t n)
{
    add_part(state, elements, n, true);
}
