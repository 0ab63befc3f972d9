/*
 * stats_vector.h - the vector kernels, written once over a few operations that stats_avx2.c and stats_avx512.c define
 * before they include this. One step is 16 elements, one for each lane, so the lanes are those of stats_steps.h.
 *
 *   VF_N, VD_N        32-bit and 64-bit lanes of a vector
 *   v32, v64, vd      vectors of 32-bit and 64-bit integers, of float64
 *   v32_*, v64_*      signed min, max; count_* adds 1 to the lanes of a counter where a comparison holds;
 *                     select_gt(a, b, x, y): x where a > b, else y
 */
#include "tensor/stats_ints.h"
#include "tensor/stats_steps.h"

#define STEP FX_STATS_LANES
#define N32 (STEP / VF_N) /* vectors of 32-bit elements in a step */
#define N64 (STEP / VD_N) /* vectors of 64-bit elements in a step */

typedef struct scan_32 {
    v32 abs_max, key_min, key_max, n_zero, n_small, n_nan, n_pos_inf, n_neg_inf;
} scan_32;

/* Counts and range of one vector. Unless `special`, NaN may not be there and infinities are not counted. */
static inline __attribute__((always_inline)) void scan_32_add(scan_32 *s, v32 bits, v32 min_normal, bool special)
{
    v32 infinity = v32_set((int32_t)FX_F32_INF);
    v32 magnitude = v32_and(bits, v32_set(INT32_MAX));
    v32 key = v32_xor(bits, v32_and(v32_sign(bits), v32_set(INT32_MAX)));
    v32 low = key, high = key;
    if (special) {
        s->n_nan = v32_count_gt(s->n_nan, magnitude, infinity);
        s->n_pos_inf = v32_count_eq(s->n_pos_inf, bits, infinity);
        s->n_neg_inf = v32_count_eq(s->n_neg_inf, bits, v32_set(INT32_MIN | (int32_t)FX_F32_INF));
        low = v32_select_gt(magnitude, infinity, v32_set(INT32_MAX), key);
        high = v32_select_gt(magnitude, infinity, v32_set(INT32_MIN), key);
    }
    s->abs_max = v32_max(s->abs_max, magnitude);
    s->key_min = v32_min(s->key_min, low);
    s->key_max = v32_max(s->key_max, high);
    s->n_zero = v32_count_eq(s->n_zero, magnitude, v32_set(0));
    s->n_small = v32_count_gt(s->n_small, min_normal, magnitude);
}

static inline uint64_t sum_32(v32 counts)
{
    uint32_t lanes[VF_N];
    uint64_t sum = 0;
    memcpy(lanes, &counts, sizeof lanes);
    for (size_t i = 0; i < VF_N; i++) {
        sum += lanes[i];
    }
    return sum;
}

static inline void take_scan_32(const scan_32 *s, bool special, fx_float_scan *out)
{
    int32_t low[VF_N], high[VF_N];
    memcpy(low, &s->key_min, sizeof low);
    memcpy(high, &s->key_max, sizeof high);
    for (size_t i = 0; i < VF_N; i++) {
        bool any = low[i] != INT32_MAX || high[i] != INT32_MIN; /* neither is the key of a value */
        out->key_min = any && low[i] < out->key_min ? low[i] : out->key_min;
        out->key_max = any && high[i] > out->key_max ? high[i] : out->key_max;
    }
    if (out->key_min <= out->key_max) {
        uint64_t a = fx_key_magnitude(out->key_min), b = fx_key_magnitude(out->key_max);
        out->abs_max = a > b ? a : b;
    }
    out->n_zero = sum_32(s->n_zero);
    out->n_subnormal = sum_32(s->n_small) - out->n_zero;
    if (special) {
        out->n_nan = sum_32(s->n_nan);
        out->n_pos_inf = sum_32(s->n_pos_inf);
        out->n_neg_inf = sum_32(s->n_neg_inf);
    }
}

/* Whole steps below n; false where a NaN or an infinity is there and `special` is not set. */
static inline __attribute__((always_inline)) bool scan_f32_steps(const unsigned char *bytes, size_t n,
                                                                  uint32_t min_normal, bool special,
                                                                  fx_float_scan *out)
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

/* Arithmetic on this part overlaps the reading of the next; past the end of the data it does nothing. */
static inline void prefetch_next_part(const unsigned char *at, size_t step_bytes)
{
    for (size_t line = 0; line < step_bytes; line += 64) {
        __builtin_prefetch((const void *)((uintptr_t)at + FX_STATS_PART_BYTES + line), 0, 2);
    }
}

static inline __attribute__((always_inline)) void spread_f32_steps(const unsigned char *bytes, size_t n, bool special,
                                                                    double mean, fx_float_spread *out)
{
    vd centre = vd_set(mean), sum[N64], squares[N64];
    for (size_t k = 0; k < N64; k++) {
        sum[k] = squares[k] = vd_set(0);
    }
    for (size_t i = 0; i < n; i += STEP) {
        prefetch_next_part(bytes + 4 * i, 4 * STEP);
        for (size_t k = 0; k < N64; k++) {
            vd x = vd_from_f32(bytes + 4 * (i + k * VD_N));
            vd distance = vd_sub(x, centre);
            distance = special ? vd_keep_finite(distance, x) : distance;
            sum[k] = vd_add(sum[k], distance);
            squares[k] = vd_add(squares[k], vd_mul(distance, distance));
        }
    }
    memcpy(out->sum, sum, sizeof out->sum);
    memcpy(out->square_sum, squares, sizeof out->square_sum);
}

static void spread_f32(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out)
{
    size_t whole = n - n % STEP;
    if (all_finite) {
        spread_f32_steps(elements, whole, false, mean, out);
    } else {
        spread_f32_steps(elements, whole, true, mean, out);
    }
    fx_spread_f32_steps(elements, whole, n, mean, out);
}

typedef struct scan_64 {
    v64 abs_max, key_min, key_max, n_zero, n_small, n_nan, n_pos_inf, n_neg_inf;
} scan_64;

static inline __attribute__((always_inline)) void scan_64_add(scan_64 *s, v64 bits, v64 min_normal, bool special)
{
    v64 infinity = v64_set((int64_t)FX_F64_INF);
    v64 magnitude = v64_and(bits, v64_set(INT64_MAX));
    v64 key = v64_xor(bits, v64_and(v64_sign(bits), v64_set(INT64_MAX)));
    v64 low = key, high = key;
    if (special) {
        s->n_nan = v64_count_gt(s->n_nan, magnitude, infinity);
        s->n_pos_inf = v64_count_eq(s->n_pos_inf, bits, infinity);
        s->n_neg_inf = v64_count_eq(s->n_neg_inf, bits, v64_set(INT64_MIN | (int64_t)FX_F64_INF));
        low = v64_select_gt(magnitude, infinity, v64_set(INT64_MAX), key);
        high = v64_select_gt(magnitude, infinity, v64_set(INT64_MIN), key);
    }
    s->abs_max = v64_max(s->abs_max, magnitude);
    s->key_min = v64_min(s->key_min, low);
    s->key_max = v64_max(s->key_max, high);
    s->n_zero = v64_count_eq(s->n_zero, magnitude, v64_set(0));
    s->n_small = v64_count_gt(s->n_small, min_normal, magnitude);
}

static inline uint64_t sum_64(v64 counts)
{
    uint64_t lanes[VD_N];
    uint64_t sum = 0;
    memcpy(lanes, &counts, sizeof lanes);
    for (size_t i = 0; i < VD_N; i++) {
        sum += lanes[i];
    }
    return sum;
}

static inline void take_scan_64(const scan_64 *s, bool special, fx_float_scan *out)
{
    int64_t low[VD_N], high[VD_N];
    memcpy(low, &s->key_min, sizeof low);
    memcpy(high, &s->key_max, sizeof high);
    for (size_t i = 0; i < VD_N; i++) {
        out->key_min = low[i] < out->key_min ? low[i] : out->key_min;
        out->key_max = high[i] > out->key_max ? high[i] : out->key_max;
    }
    if (out->key_min <= out->key_max) {
        uint64_t a = fx_key_magnitude(out->key_min), b = fx_key_magnitude(out->key_max);
        out->abs_max = a > b ? a : b;
    }
    out->n_zero = sum_64(s->n_zero);
    out->n_subnormal = sum_64(s->n_small) - out->n_zero;
    if (special) {
        out->n_nan = sum_64(s->n_nan);
        out->n_pos_inf = sum_64(s->n_pos_inf);
        out->n_neg_inf = sum_64(s->n_neg_inf);
    }
}

static inline __attribute__((always_inline)) bool scan_f64_steps(const unsigned char *bytes, size_t n,
                                                                  uint64_t min_normal, bool special,
                                                                  fx_float_scan *out)
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

static inline __attribute__((always_inline)) void spread_f64_steps(const unsigned char *bytes, size_t n, bool special,
                                                                    double mean, fx_float_spread *out)
{
    vd centre = vd_set(mean), sum[N64], squares[N64];
    for (size_t k = 0; k < N64; k++) {
        sum[k] = squares[k] = vd_set(0);
    }
    for (size_t i = 0; i < n; i += STEP) {
        prefetch_next_part(bytes + 8 * i, 8 * STEP);
        for (size_t k = 0; k < N64; k++) {
            vd x = vd_load(bytes + 8 * (i + k * VD_N));
            vd distance = vd_sub(x, centre);
            distance = special ? vd_keep_finite(distance, x) : distance;
            sum[k] = vd_add(sum[k], distance);
            squares[k] = vd_add(squares[k], vd_mul(distance, distance));
        }
    }
    memcpy(out->sum, sum, sizeof out->sum);
    memcpy(out->square_sum, squares, sizeof out->square_sum);
}

static void spread_f64(const void *elements, size_t n, bool all_finite, double mean, fx_float_spread *out)
{
    size_t whole = n - n % STEP;
    if (all_finite) {
        spread_f64_steps(elements, whole, false, mean, out);
    } else {
        spread_f64_steps(elements, whole, true, mean, out);
    }
    fx_spread_f64_steps(elements, whole, n, mean, out);
}

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
