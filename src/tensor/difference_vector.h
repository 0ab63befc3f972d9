/*
 * difference_vector.h - the vector kernels, in terms of the operations of vector_avx2.h or vector_avx512.h, which is
 * included first. One step is 16 elements, one for each lane, as in difference_steps.h.
 */
#include "tensor/difference_steps.h"

#define STEP FX_DIFFERENCE_LANES
#define N32 (STEP / VF_N)
#define N64 (STEP / VD_N)
#define INLINE static inline __attribute__((always_inline))

typedef struct difference_sums {
    vd error[N64], square[N64], golden[N64], target[N64], product[N64];
    v64 n_outside, n_over_1e3, n_over_5e3;
} difference_sums;

INLINE void sums_begin(difference_sums *sums)
{
    for (size_t k = 0; k < N64; k++) {
        sums->error[k] = sums->square[k] = sums->golden[k] = sums->target[k] = sums->product[k] = vd_set(0);
    }
    sums->n_outside = sums->n_over_1e3 = sums->n_over_5e3 = v64_set(0);
}

static uint64_t count_lanes(v64 counts)
{
    uint64_t lanes[VD_N], sum = 0;
    memcpy(lanes, &counts, sizeof lanes);
    for (size_t i = 0; i < VD_N; i++) {
        sum += lanes[i];
    }
    return sum;
}

INLINE void sums_store(const difference_sums *sums, fx_difference_part *out)
{
    memcpy(out->error, sums->error, sizeof out->error);
    memcpy(out->square, sums->square, sizeof out->square);
    memcpy(out->golden, sums->golden, sizeof out->golden);
    memcpy(out->target, sums->target, sizeof out->target);
    memcpy(out->product, sums->product, sizeof out->product);
    out->n_outside = count_lanes(sums->n_outside);
    out->n_over_1e3 = count_lanes(sums->n_over_1e3);
    out->n_over_5e3 = count_lanes(sums->n_over_5e3);
}

/* Processes the marked lanes of one vector in order; an earlier one may exclude a later one. Rare. */
static __attribute__((noinline)) void offer_lanes(fx_difference_place *place, size_t i, vd error, vd golden, vd target)
{
    double errors[VD_N], goldens[VD_N], targets[VD_N];
    memcpy(errors, &error, sizeof errors);
    memcpy(goldens, &golden, sizeof goldens);
    memcpy(targets, &target, sizeof targets);
    for (size_t lane = 0; lane < VD_N; lane++) {
        if (fx_difference_is_record(place->difference, errors[lane], fabs(goldens[lane]))) {
            fx_difference_offer(place, i + lane, errors[lane], goldens[lane], targets[lane]);
        }
    }
}

/* One vector of pairs, all finite (or set to zero on both sides). */
INLINE void add_pairs(difference_sums *sums, size_t k, vd golden, vd target, fx_difference_place *place, size_t i,
                      vd *floor, vd *ratio)
{
    const fx_difference *difference = place->difference;
    vd error = vd_abs(vd_sub(target, golden)), magnitude = vd_abs(golden);
    vd bound = vd_add(vd_set(difference->options.atol), vd_mul(vd_set(difference->options.rtol), magnitude));
    sums->error[k] = vd_add(sums->error[k], error);
    sums->square[k] = vd_add(sums->square[k], vd_mul(error, error));
    sums->golden[k] = vd_add(sums->golden[k], vd_mul(golden, golden));
    sums->target[k] = vd_add(sums->target[k], vd_mul(target, target));
    sums->product[k] = vd_add(sums->product[k], vd_mul(golden, target));
    sums->n_outside = v64_count_over(sums->n_outside, error, bound);
    sums->n_over_1e3 = v64_count_over(sums->n_over_1e3, error, vd_mul(vd_set(1e-3), magnitude));
    sums->n_over_5e3 = v64_count_over(sums->n_over_5e3, error, vd_mul(vd_set(5e-3), magnitude));
    /* One comparison that finds all new maxima; those of a zero golden are removed by the second. */
    vd least = vd_mul(*ratio, magnitude);
    if (__builtin_expect(vd_any_over(error, vd_min(least, *floor)), 0)) {
        if (vd_records(error, *floor, magnitude, least) != 0) {
            offer_lanes(place, i, error, golden, target);
            *floor = vd_set(difference->floor);
            *ratio = vd_set(difference->max_rel.error);
        }
    }
}

/* Prefetches the next part while this one is computed; no effect past the end of the data. */
INLINE void prefetch_next_part(const unsigned char *elements, size_t size, size_t i)
{
    uintptr_t next = (uintptr_t)elements + size * (FX_DIFFERENCE_PART_ELEMS + i);
    for (size_t line = 0; line < size * STEP; line += 64) {
        __builtin_prefetch((const void *)(next + line), 0, 2);
    }
}

/* One kernel per dtype that is read in place: `SIZE` bytes per element; `LOAD` converts a vector of them to float64. */
#define DEFINE_PART(NAME, SIZE, LOAD, STEPS)                                                                           \
    INLINE void NAME##_steps(const unsigned char *golden, const unsigned char *target, size_t n, bool finite,          \
                             fx_difference_place *place, fx_difference_part *out)                                      \
    {                                                                                                                  \
        difference_sums sums;                                                                                          \
        vd floor = vd_set(place->difference->floor), ratio = vd_set(place->difference->max_rel.error);                 \
        sums_begin(&sums);                                                                                             \
        for (size_t i = 0; i < n; i += STEP) {                                                                         \
            prefetch_next_part(golden, SIZE, i);                                                                       \
            prefetch_next_part(target, SIZE, i);                                                                       \
            for (size_t k = 0; k < N64; k++) {                                                                         \
                size_t at = i + k * VD_N;                                                                              \
                vd b = LOAD(golden + SIZE * at), a = LOAD(target + SIZE * at);                                         \
                if (!finite) {                                                                                         \
                    vd kept = vd_keep_finite(vd_keep_finite(b, b), a);                                                 \
                    a = vd_keep_finite(vd_keep_finite(a, a), b);                                                       \
                    b = kept;                                                                                          \
                }                                                                                                      \
                add_pairs(&sums, k, b, a, place, at, &floor, &ratio);                                                  \
            }                                                                                                          \
        }                                                                                                              \
        sums_store(&sums, out);                                                                                        \
    }                                                                                                                  \
    static void NAME(const void *golden, const void *target, size_t n, bool finite, fx_difference_place *place,        \
                     fx_difference_part *out)                                                                          \
    {                                                                                                                  \
        size_t whole = n - n % STEP;                                                                                   \
        if (finite) {                                                                                                  \
            NAME##_steps(golden, target, whole, true, place, out);                                                     \
        } else {                                                                                                       \
            NAME##_steps(golden, target, whole, false, place, out);                                                    \
        }                                                                                                              \
        STEPS(golden, target, whole, n, place, out);                                                                   \
    }

DEFINE_PART(part_f16, 2, vd_from_f16, fx_part_steps_16)
DEFINE_PART(part_f32, 4, vd_from_f32, fx_part_steps_32)
DEFINE_PART(part_f64, 8, vd_load, fx_part_steps_64)

static bool finite_f16(const void *golden, const void *target, size_t n)
{
    const unsigned char *b = golden, *a = target;
    size_t whole = n - n % (2 * VF_N);
    uint16_t lanes[2 * VF_N], found = 0;
    v32 most = v32_set(0), mask = v32_set(0x7fff7fff);
    for (size_t i = 0; i < whole; i += 2 * VF_N) {
        most = v32_max_u16(most, v32_and(v32_load(b + 2 * i), mask));
        most = v32_max_u16(most, v32_and(v32_load(a + 2 * i), mask));
    }
    memcpy(lanes, &most, sizeof lanes);
    for (size_t i = 0; i < 2 * VF_N; i++) {
        found = lanes[i] > found ? lanes[i] : found;
    }
    return found < 0x7c00 && fx_finite_steps_16(golden, target, whole, n);
}

static bool finite_f32(const void *golden, const void *target, size_t n)
{
    const unsigned char *b = golden, *a = target;
    size_t whole = n - n % VF_N;
    v32 most = v32_set(0), mask = v32_set(INT32_MAX);
    for (size_t i = 0; i < whole; i += VF_N) {
        most = v32_max(most, v32_and(v32_load(b + 4 * i), mask));
        most = v32_max(most, v32_and(v32_load(a + 4 * i), mask));
    }
    return !v32_any_over(most, (int32_t)FX_F32_INF - 1) && fx_finite_steps_32(golden, target, whole, n);
}

static bool finite_f64(const void *golden, const void *target, size_t n)
{
    const unsigned char *b = golden, *a = target;
    size_t whole = n - n % VD_N;
    v64 most = v64_set(0), mask = v64_set(INT64_MAX);
    for (size_t i = 0; i < whole; i += VD_N) {
        most = v64_max(most, v64_and(v64_load(b + 8 * i), mask));
        most = v64_max(most, v64_and(v64_load(a + 8 * i), mask));
    }
    return !v64_any_over(most, (int64_t)FX_F64_INF - 1) && fx_finite_steps_64(golden, target, whole, n);
}

/* Two's complement of sign and magnitude. */
INLINE v32 place_32(v32 magnitude, v32 sign)
{
    return v32_sub(v32_xor(magnitude, sign), sign);
}

/* The distance of two ranks, 0 unless both magnitudes are below that of infinity. */
INLINE v32 distance_32(v32 magnitude_b, v32 sign_b, v32 magnitude_a, v32 sign_a, v32 infinity)
{
    v32 b = place_32(magnitude_b, sign_b), a = place_32(magnitude_a, sign_a);
    v32 distance = v32_sub(v32_max(a, b), v32_min(a, b));
    return v32_select_gt(infinity, v32_max(magnitude_a, magnitude_b), distance, v32_set(0));
}

static uint64_t max_of_32(v32 most)
{
    uint32_t lanes[VF_N], found = 0;
    memcpy(lanes, &most, sizeof lanes);
    for (size_t i = 0; i < VF_N; i++) {
        found = lanes[i] > found ? lanes[i] : found;
    }
    return found;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t ulp_f16(const void *golden, const void *target, size_t n)
{
    const unsigned char *from_b = golden, *from_a = target;
    size_t whole = n - n % VF_N;
    v32 most = v32_set(0), mask = v32_set(0x7fff), infinity = v32_set(0x7c00);
    for (size_t i = 0; i < whole; i += VF_N) {
        v32 b = v32_load_u16(from_b + 2 * i), a = v32_load_u16(from_a + 2 * i);
        v32 sign_b = v32_select_gt(b, mask, v32_set(-1), v32_set(0));
        v32 sign_a = v32_select_gt(a, mask, v32_set(-1), v32_set(0));
        most = v32_max_u(most, distance_32(v32_and(b, mask), sign_b, v32_and(a, mask), sign_a, infinity));
    }
    return larger(max_of_32(most), fx_ulp_steps_f16(golden, target, whole, n));
}

static uint64_t ulp_f32(const void *golden, const void *target, size_t n)
{
    const unsigned char *from_b = golden, *from_a = target;
    size_t whole = n - n % VF_N;
    v32 most = v32_set(0), mask = v32_set(INT32_MAX), infinity = v32_set((int32_t)FX_F32_INF);
    for (size_t i = 0; i < whole; i += VF_N) {
        v32 b = v32_load(from_b + 4 * i), a = v32_load(from_a + 4 * i);
        v32 distance = distance_32(v32_and(b, mask), v32_sign(b), v32_and(a, mask), v32_sign(a), infinity);
        most = v32_max_u(most, distance);
    }
    return larger(max_of_32(most), fx_ulp_steps_f32(golden, target, whole, n));
}

/* As fx_round_to_bf16(), of a magnitude. */
INLINE v32 round_to_bf16(v32 magnitude)
{
    v32 odd = v32_and(v32_shift_right_16(magnitude), v32_set(1));
    return v32_shift_right_16(v32_add(v32_add(magnitude, v32_set(0x7fff)), odd));
}

static uint64_t ulp_bf16(const void *golden, const void *target, size_t n)
{
    const unsigned char *from_b = golden, *from_a = target;
    size_t whole = n - n % VF_N;
    v32 most = v32_set(0), mask = v32_set(INT32_MAX), infinity = v32_set((int32_t)FX_F32_INF);
    for (size_t i = 0; i < whole; i += VF_N) {
        v32 b = v32_load(from_b + 4 * i), a = v32_load(from_a + 4 * i);
        v32 size_b = v32_and(b, mask), size_a = v32_and(a, mask);
        v32 place_b = place_32(round_to_bf16(size_b), v32_sign(b));
        v32 place_a = place_32(round_to_bf16(size_a), v32_sign(a));
        v32 distance = v32_sub(v32_max(place_a, place_b), v32_min(place_a, place_b));
        most = v32_max_u(most, v32_select_gt(infinity, v32_max(size_a, size_b), distance, v32_set(0)));
    }
    return larger(max_of_32(most), fx_ulp_steps_bf16(golden, target, whole, n));
}

static uint64_t ulp_f64(const void *golden, const void *target, size_t n)
{
    const unsigned char *from_b = golden, *from_a = target;
    size_t whole = n - n % VD_N;
    v64 most = v64_set(0), mask = v64_set(INT64_MAX), infinity = v64_set((int64_t)FX_F64_INF);
    uint64_t lanes[VD_N], found = 0;
    for (size_t i = 0; i < whole; i += VD_N) {
        v64 b = v64_load(from_b + 8 * i), a = v64_load(from_a + 8 * i);
        v64 size_b = v64_and(b, mask), size_a = v64_and(a, mask), sign_b = v64_sign(b), sign_a = v64_sign(a);
        b = v64_sub(v64_xor(size_b, sign_b), sign_b);
        a = v64_sub(v64_xor(size_a, sign_a), sign_a);
        v64 distance = v64_sub(v64_max(a, b), v64_min(a, b));
        distance = v64_select_gt(infinity, v64_max(size_a, size_b), distance, v64_set(0));
        most = v64_max_u(most, distance);
    }
    memcpy(lanes, &most, sizeof lanes);
    for (size_t i = 0; i < VD_N; i++) {
        found = larger(found, lanes[i]);
    }
    return larger(found, fx_ulp_steps_f64(golden, target, whole, n));
}

#define DIFFERENCE_KERNELS                                                                                             \
    {                                                                                                                  \
        .finite_f16 = finite_f16, .finite_f32 = finite_f32, .finite_f64 = finite_f64, .part_f16 = part_f16,            \
        .part_f32 = part_f32, .part_f64 = part_f64, .ulp_f16 = ulp_f16, .ulp_bf16 = ulp_bf16, .ulp_f32 = ulp_f32,      \
        .ulp_f64 = ulp_f64,                                                                                            \
    }
