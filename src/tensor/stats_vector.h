/*
 * stats_vector.h - the vector kernels, in terms of a few operations that stats_avx2.c and stats_avx512.c define before
 * they include this. One step is 16 elements, one for each lane, with the lanes of stats_steps.h.
 *
 *   VF_N, VD_N        32-bit and 64-bit lanes of a vector
 *   v32, v64, vd      vectors of 32-bit and 64-bit integers, of float64
 *   v32_*, v64_*      signed min, max; count_* adds 1 to the lanes of a counter where a comparison is true;
 *                     select_gt(a, b, x, y): x where a > b, else y
 */
#include "tensor/stats_ints.h"
#include "tensor/stats_steps.h"

#define STEP FX_STATS_LANES
#define N32 (STEP / VF_N) /* vectors of 32-bit elements in a step */
#define N64 (STEP / VD_N) /* vectors of 64-bit elements in a step */

/*
 * For elements of either size: counts and range of one vector (unless `special`, there must be no NaN and infinities
 * are not counted), the sum of a counter's lanes, and the result of a scan.
 */
#define DEFINE_SCAN(BITS, LANES, WORD, LEAST, MOST, INFINITE)                                                          \
    typedef struct scan_##BITS {                                                                                       \
        v##BITS abs_max, key_min, key_max, n_zero, n_small, n_nan, n_pos_inf, n_neg_inf;                               \
    } scan_##BITS;                                                                                                     \
                                                                                                                       \
    static inline __attribute__((always_inline)) void scan_##BITS##_add(scan_##BITS *s, v##BITS bits,                  \
                                                                        v##BITS min_normal, bool special)              \
    {                                                                                                                  \
        v##BITS infinity = v##BITS##_set((WORD)(INFINITE));                                                            \
        v##BITS magnitude = v##BITS##_and(bits, v##BITS##_set(MOST));                                                  \
        v##BITS key = v##BITS##_xor(bits, v##BITS##_and(v##BITS##_sign(bits), v##BITS##_set(MOST)));                   \
        v##BITS low = key, high = key;                                                                                 \
        if (special) {                                                                                                 \
            s->n_nan = v##BITS##_count_gt(s->n_nan, magnitude, infinity);                                              \
            s->n_pos_inf = v##BITS##_count_eq(s->n_pos_inf, bits, infinity);                                           \
            s->n_neg_inf = v##BITS##_count_eq(s->n_neg_inf, bits, v##BITS##_set(LEAST | (WORD)(INFINITE)));            \
            low = v##BITS##_select_gt(magnitude, infinity, v##BITS##_set(MOST), key);                                  \
            high = v##BITS##_select_gt(magnitude, infinity, v##BITS##_set(LEAST), key);                                \
        }                                                                                                              \
        s->abs_max = v##BITS##_max(s->abs_max, magnitude);                                                             \
        s->key_min = v##BITS##_min(s->key_min, low);                                                                   \
        s->key_max = v##BITS##_max(s->key_max, high);                                                                  \
        s->n_zero = v##BITS##_count_eq(s->n_zero, magnitude, v##BITS##_set(0));                                        \
        s->n_small = v##BITS##_count_gt(s->n_small, min_normal, magnitude);                                            \
    }                                                                                                                  \
                                                                                                                       \
    static inline uint64_t sum_##BITS(v##BITS counts)                                                                  \
    {                                                                                                                  \
        u##WORD lanes[LANES];                                                                                          \
        uint64_t sum = 0;                                                                                              \
        memcpy(lanes, &counts, sizeof lanes);                                                                          \
        for (size_t i = 0; i < (LANES); i++) {                                                                         \
            sum += lanes[i];                                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static inline void take_scan_##BITS(const scan_##BITS *s, bool special, fx_float_scan *out)                        \
    {                                                                                                                  \
        WORD low[LANES], high[LANES];                                                                                  \
        memcpy(low, &s->key_min, sizeof low);                                                                          \
        memcpy(high, &s->key_max, sizeof high);                                                                        \
        for (size_t i = 0; i < (LANES); i++) {                                                                         \
            bool any = low[i] != (MOST) || high[i] != (LEAST); /* not the key of any value */                          \
            out->key_min = any && low[i] < out->key_min ? low[i] : out->key_min;                                       \
            out->key_max = any && high[i] > out->key_max ? high[i] : out->key_max;                                     \
        }                                                                                                              \
        if (out->key_min <= out->key_max) {                                                                            \
            uint64_t a = fx_key_magnitude(out->key_min), b = fx_key_magnitude(out->key_max);                           \
            out->abs_max = a > b ? a : b;                                                                              \
        }                                                                                                              \
        out->n_zero = sum_##BITS(s->n_zero);                                                                           \
        out->n_subnormal = sum_##BITS(s->n_small) - out->n_zero;                                                       \
        if (special) {                                                                                                 \
            out->n_nan = sum_##BITS(s->n_nan);                                                                         \
            out->n_pos_inf = sum_##BITS(s->n_pos_inf);                                                                 \
            out->n_neg_inf = sum_##BITS(s->n_neg_inf);                                                                 \
        }                                                                                                              \
    }

DEFINE_SCAN(32, VF_N, int32_t, INT32_MIN, INT32_MAX, FX_F32_INF)
DEFINE_SCAN(64, VD_N, int64_t, INT64_MIN, INT64_MAX, FX_F64_INF)

/* Whole steps below n; false if there is a NaN or an infinity and `special` is not set. */
static inline __attribute__((always_inline)) bool scan_f32_steps(const unsigned char *bytes, size_t n,
                                                                 uint32_t min_normal, bool special, fx_float_scan *out)
{
    v32 zero = v32_set(0), limit = v32_set((int32_t)min_normal);
    scan_32 s = {zero, v32_set(INT32_MAX), v32_set(INT32_MIN), zero, zero, zero, zero, zero};
    vd sum[N64];
    for (size_t k = 0; k < N64; k++) {
        sum[k] = vd_set(0);
    }
    for (size_t i = 0; i < n; i += STEP) {
        for (size_t k = 0; k < N32; k++) {
            scan_32_add(&s, v32_load(bytes + 4 * (i + k * VF_N)), limit, special);
        }
        for (size_t k = 0; k < N64; k++) {
            vd x = vd_from_f32(bytes + 4 * (i + k * VD_N));
            sum[k] = vd_add(sum[k], special ? vd_keep_finite(x, x) : x);
        }
    }
    if (!special && v32_any_over(s.abs_max, (int32_t)FX_F32_INF - 1)) {
        return false;
    }
    take_scan_32(&s, special, out);
    memcpy(out->sum, sum, sizeof out->sum);
    return true;
}

static void scan_f32(const void *elements, size_t n, uint32_t min_normal, fx_float_scan *out)
{
    size_t whole = n - n % STEP;
    fx_scan_begin(out);
    if (whole > 0 && !scan_f32_steps(elements, whole, min_normal, false, out)) {
        scan_f32_steps(elements, whole, min_normal, true, out);
    }
    fx_scan_f32_steps(elements, whole, n, min_normal, out);
}

/* Prefetches the next part while this one is computed; no effect past the end of the data. */
static inline void prefetch_next_part(const unsigned char *at, size_t step_bytes)
{
    for (size_t line = 0; line < step_bytes; line += 64) {
        __builtin_prefetch((const void *)((uintptr_t)at + FX_STATS_PART_BYTES + line), 0, 2);
    }
}

/* The same for elements of either size. */
#define DEFINE_SPREAD(NAME, BYTES, LOAD)                                                                               \
    static inline __attribute__((always_inline)) void spread_##NAME##_steps(                                           \
        const unsigned char *bytes, size_t n, bool special, double mean, fx_float_spread *out)                         \
    {                                                                                                                  \
        vd centre = vd_set(mean), sum[N64], squares[N64];                                                              \
        for (size_t k = 0; k < N64; k++) {                                                                             \
            sum[k] = squares[k] = vd_set(0);                                                                           \
        }                                                                                                              \
        for (size_t i = 0; i < n; i += STEP) {                                                                         \
            prefetch_next_part(bytes + (BYTES)*i, (BYTES)*STEP);                                                       \
            for (size_t k = 0; k < N64; k++) {                                                                         \
                vd x = LOAD(bytes + (BYTES) * (i + k * VD_N));                                                         \
                vd distance = vd_sub(x, centre);                                                                       \
                distance = special ? vd_keep_finite(distance, x) : distance;                                           \
                sum[k] = vd_add(sum[k], distance);                                                                     \
                squares[k] = vd_add(squares[k], vd_mul(distance, distance));                                           \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(out->sum, sum, sizeof out->sum);                                                                        \
        memcpy(out->square_sum, squares, sizeof out->square_sum);                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static void spread_##NAME(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out)      \
    {                                                                                                                  \
        size_t whole = n - n % STEP;                                                                                   \
        if (all_finite) {                                                                                              \
            spread_##NAME##_steps(elements, whole, false, mean, out);                                                  \
        } else {                                                                                                       \
            spread_##NAME##_steps(elements, whole, true, mean, out);                                                   \
        }                                                                                                              \
        fx_spread_##NAME##_steps(elements, whole, n, mean, out);                                                       \
    }

DEFINE_SPREAD(f32, 4, vd_from_f32)

static inline __attribute__((always_inline)) bool scan_f64_steps(const unsigned char *bytes, size_t n,
                                                                 uint64_t min_normal, bool special, fx_float_scan *out)
{
    v64 zero = v64_set(0), limit = v64_set((int64_t)min_normal);
    scan_64 s = {zero, v64_set(INT64_MAX), v64_set(INT64_MIN), zero, zero, zero, zero, zero};
    vd sum[N64];
    for (size_t k = 0; k < N64; k++) {
        sum[k] = vd_set(0);
    }
    for (size_t i = 0; i < n; i += STEP) {
        for (size_t k = 0; k < N64; k++) {
            const unsigned char *at = bytes + 8 * (i + k * VD_N);
            scan_64_add(&s, v64_load(at), limit, special);
            vd x = vd_load(at);
            sum[k] = vd_add(sum[k], special ? vd_keep_finite(x, x) : x);
        }
    }
    if (!special && v64_any_over(s.abs_max, (int64_t)FX_F64_INF - 1)) {
        return false;
    }
    take_scan_64(&s, special, out);
    memcpy(out->sum, sum, sizeof out->sum);
    return true;
}

static void scan_f64(const void *elements, size_t n, uint64_t min_normal, fx_float_scan *out)
{
    size_t whole = n - n % STEP;
    fx_scan_begin(out);
    if (whole > 0 && !scan_f64_steps(elements, whole, min_normal, false, out)) {
        scan_f64_steps(elements, whole, min_normal, true, out);
    }
    fx_scan_f64_steps(elements, whole, n, min_normal, out);
}

DEFINE_SPREAD(f64, 8, vd_load)

static void widen_f16(const void *elements, size_t n, float *out)
{
    const unsigned char *bytes = elements;
    size_t whole = n - n % VF_N;
    for (size_t i = 0; i < whole; i += VF_N) {
        v32_widen_f16(out + i, bytes + 2 * i);
    }
    fx_widen_f16_steps(elements, whole, n, out);
}

#define STATS_KERNELS                                                                                                  \
    {                                                                                                                  \
        .scan_f32 = scan_f32, .spread_f32 = spread_f32, .scan_f64 = scan_f64, .spread_f64 = spread_f64,                \
        .widen_f16 = widen_f16, .scan_i8 = scan_i8, .scan_u8 = scan_u8, .scan_i16 = scan_i16, .scan_u16 = scan_u16,    \
        .scan_i32 = scan_i32, .scan_u32 = scan_u32, .scan_i64 = scan_i64, .scan_bool = scan_bool,                      \
    }
