/*
 * vector_avx512.h - the operations of stats_vector.h and difference_vector.h over 64-byte vectors.
 */
#ifndef FX_TENSOR_VECTOR_AVX512_H
#define FX_TENSOR_VECTOR_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_OP(RESULT, NAME, PARAMETERS, ...)                                                                       \
    static inline RESULT NAME PARAMETERS                                                                               \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

#define VF_N 16
#define VD_N 8

typedef __m512i v32;
typedef __m512i v64;
typedef __m512d vd;

VECTOR_OP(v32, v32_set, (int32_t value), _mm512_set1_epi32(value))
VECTOR_OP(v32, v32_load, (const void *from), _mm512_loadu_si512(from))
VECTOR_OP(v32, v32_and, (v32 a, v32 b), _mm512_and_si512(a, b))
VECTOR_OP(v32, v32_xor, (v32 a, v32 b), _mm512_xor_si512(a, b))

/* All ones where negative. */
VECTOR_OP(v32, v32_sign, (v32 a), _mm512_srai_epi32(a, 31))
VECTOR_OP(v32, v32_min, (v32 a, v32 b), _mm512_min_epi32(a, b))
VECTOR_OP(v32, v32_max, (v32 a, v32 b), _mm512_max_epi32(a, b))

static inline v32 v32_count_eq(v32 counter, v32 a, v32 b)
{
    return _mm512_mask_sub_epi32(counter, _mm512_cmpeq_epi32_mask(a, b), counter, _mm512_set1_epi32(-1));
}

static inline v32 v32_count_gt(v32 counter, v32 a, v32 b)
{
    return _mm512_mask_sub_epi32(counter, _mm512_cmpgt_epi32_mask(a, b), counter, _mm512_set1_epi32(-1));
}

VECTOR_OP(v32, v32_select_gt, (v32 a, v32 b, v32 x, v32 y), _mm512_mask_mov_epi32(y, _mm512_cmpgt_epi32_mask(a, b), x))
VECTOR_OP(bool, v32_any_over, (v32 a, int32_t limit), _mm512_cmpgt_epi32_mask(a, v32_set(limit)) != 0)
VECTOR_OP(v64, v64_set, (int64_t value), _mm512_set1_epi64(value))
VECTOR_OP(v64, v64_load, (const void *from), _mm512_loadu_si512(from))
VECTOR_OP(v64, v64_and, (v64 a, v64 b), _mm512_and_si512(a, b))
VECTOR_OP(v64, v64_xor, (v64 a, v64 b), _mm512_xor_si512(a, b))
VECTOR_OP(v64, v64_sign, (v64 a), _mm512_srai_epi64(a, 63))
VECTOR_OP(v64, v64_select_gt, (v64 a, v64 b, v64 x, v64 y), _mm512_mask_mov_epi64(y, _mm512_cmpgt_epi64_mask(a, b), x))
VECTOR_OP(v64, v64_min, (v64 a, v64 b), _mm512_min_epi64(a, b))
VECTOR_OP(v64, v64_max, (v64 a, v64 b), _mm512_max_epi64(a, b))

static inline v64 v64_count_eq(v64 counter, v64 a, v64 b)
{
    return _mm512_mask_sub_epi64(counter, _mm512_cmpeq_epi64_mask(a, b), counter, _mm512_set1_epi64(-1));
}

static inline v64 v64_count_gt(v64 counter, v64 a, v64 b)
{
    return _mm512_mask_sub_epi64(counter, _mm512_cmpgt_epi64_mask(a, b), counter, _mm512_set1_epi64(-1));
}

VECTOR_OP(bool, v64_any_over, (v64 a, int64_t limit), _mm512_cmpgt_epi64_mask(a, v64_set(limit)) != 0)
VECTOR_OP(vd, vd_set, (double value), _mm512_set1_pd(value))
VECTOR_OP(vd, vd_add, (vd a, vd b), _mm512_add_pd(a, b))
VECTOR_OP(vd, vd_sub, (vd a, vd b), _mm512_sub_pd(a, b))
VECTOR_OP(vd, vd_mul, (vd a, vd b), _mm512_mul_pd(a, b))
VECTOR_OP(vd, vd_load, (const void *from), _mm512_loadu_pd(from))

/* float64 of float32 and of float16. */
VECTOR_OP(vd, vd_from_f32, (const void *from), _mm512_cvtps_pd(_mm256_loadu_ps((const float *)from)))
VECTOR_OP(vd, vd_from_f16, (const void *from), _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from))))

/* x where `by` is finite, else 0. 0x99: quiet and signalling NaN, both infinities. */
VECTOR_OP(vd, vd_keep_finite, (vd x, vd by), _mm512_maskz_mov_pd((__mmask8)~_mm512_fpclass_pd_mask(by, 0x99), x))

static inline void v32_widen_f16(float *to, const void *from)
{
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)));
}

/* Unsigned maximum. */
VECTOR_OP(v32, v32_max_u, (v32 a, v32 b), _mm512_max_epu32(a, b))

/* Unsigned maximum of 16-bit integers. */
VECTOR_OP(v32, v32_max_u16, (v32 a, v32 b), _mm512_max_epu16(a, b))
VECTOR_OP(v32, v32_sub, (v32 a, v32 b), _mm512_sub_epi32(a, b))
VECTOR_OP(v32, v32_add, (v32 a, v32 b), _mm512_add_epi32(a, b))
VECTOR_OP(v32, v32_shift_right_16, (v32 a), _mm512_srli_epi32(a, 16))

/* 16-bit integers, zero-extended. */
VECTOR_OP(v32, v32_load_u16, (const void *from), _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)))
VECTOR_OP(v64, v64_sub, (v64 a, v64 b), _mm512_sub_epi64(a, b))

/* Unsigned maximum. */
VECTOR_OP(v64, v64_max_u, (v64 a, v64 b), _mm512_max_epu64(a, b))
VECTOR_OP(vd, vd_abs, (vd a), _mm512_abs_pd(a))
VECTOR_OP(vd, vd_min, (vd a, vd b), _mm512_min_pd(a, b))
VECTOR_OP(bool, vd_any_over, (vd a, vd b), _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0)

/* Adds 1 to the lanes of a counter where a > b. */
static inline v64 v64_count_over(v64 counter, vd a, vd b)
{
    return _mm512_mask_sub_epi64(counter, _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), counter, _mm512_set1_epi64(-1));
}

/* Bit i: error[i] > floor[i], or magnitude[i] is not 0 and error[i] > bound[i]. */
static inline unsigned vd_records(vd error, vd floor, vd magnitude, vd bound)
{
    __mmask8 over = _mm512_cmp_pd_mask(error, bound, _CMP_GT_OQ);
    __mmask8 ratio = _mm512_mask_cmp_pd_mask(over, magnitude, _mm512_setzero_pd(), _CMP_NEQ_OQ);
    return (unsigned)(ratio | _mm512_cmp_pd_mask(error, floor, _CMP_GT_OQ));
}

#endif
