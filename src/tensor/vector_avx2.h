/*
 * vector_avx2.h - the operations of stats_vector.h and difference_vector.h over 32-byte vectors.
 */
#ifndef FX_TENSOR_VECTOR_AVX2_H
#define FX_TENSOR_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_OP(RESULT, NAME, PARAMETERS, ...)                                                                       \
    static inline RESULT NAME PARAMETERS                                                                               \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

#define VF_N 8
#define VD_N 4

typedef __m256i v32;
typedef __m256i v64;
typedef __m256d vd;

VECTOR_OP(v32, v32_set, (int32_t value), _mm256_set1_epi32(value))
VECTOR_OP(v32, v32_load, (const void *from), _mm256_loadu_si256((const __m256i *)from))
VECTOR_OP(v32, v32_and, (v32 a, v32 b), _mm256_and_si256(a, b))
VECTOR_OP(v32, v32_xor, (v32 a, v32 b), _mm256_xor_si256(a, b))

/* All ones where negative. */
VECTOR_OP(v32, v32_sign, (v32 a), _mm256_srai_epi32(a, 31))
VECTOR_OP(v32, v32_min, (v32 a, v32 b), _mm256_min_epi32(a, b))
VECTOR_OP(v32, v32_max, (v32 a, v32 b), _mm256_max_epi32(a, b))
VECTOR_OP(v32, v32_count_eq, (v32 counter, v32 a, v32 b), _mm256_sub_epi32(counter, _mm256_cmpeq_epi32(a, b)))
VECTOR_OP(v32, v32_count_gt, (v32 counter, v32 a, v32 b), _mm256_sub_epi32(counter, _mm256_cmpgt_epi32(a, b)))
VECTOR_OP(v32, v32_select_gt, (v32 a, v32 b, v32 x, v32 y), _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi32(a, b)))
VECTOR_OP(bool, v32_any_over, (v32 a, int32_t limit), _mm256_movemask_epi8(_mm256_cmpgt_epi32(a, v32_set(limit))) != 0)
VECTOR_OP(v64, v64_set, (int64_t value), _mm256_set1_epi64x(value))
VECTOR_OP(v64, v64_load, (const void *from), _mm256_loadu_si256((const __m256i *)from))
VECTOR_OP(v64, v64_and, (v64 a, v64 b), _mm256_and_si256(a, b))
VECTOR_OP(v64, v64_xor, (v64 a, v64 b), _mm256_xor_si256(a, b))
VECTOR_OP(v64, v64_sign, (v64 a), _mm256_cmpgt_epi64(_mm256_setzero_si256(), a))
VECTOR_OP(v64, v64_select_gt, (v64 a, v64 b, v64 x, v64 y), _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(a, b)))
VECTOR_OP(v64, v64_min, (v64 a, v64 b), v64_select_gt(a, b, b, a))
VECTOR_OP(v64, v64_max, (v64 a, v64 b), v64_select_gt(a, b, a, b))
VECTOR_OP(v64, v64_count_eq, (v64 counter, v64 a, v64 b), _mm256_sub_epi64(counter, _mm256_cmpeq_epi64(a, b)))
VECTOR_OP(v64, v64_count_gt, (v64 counter, v64 a, v64 b), _mm256_sub_epi64(counter, _mm256_cmpgt_epi64(a, b)))
VECTOR_OP(bool, v64_any_over, (v64 a, int64_t limit), _mm256_movemask_epi8(_mm256_cmpgt_epi64(a, v64_set(limit))) != 0)
VECTOR_OP(vd, vd_set, (double value), _mm256_set1_pd(value))
VECTOR_OP(vd, vd_add, (vd a, vd b), _mm256_add_pd(a, b))
VECTOR_OP(vd, vd_sub, (vd a, vd b), _mm256_sub_pd(a, b))
VECTOR_OP(vd, vd_mul, (vd a, vd b), _mm256_mul_pd(a, b))
VECTOR_OP(vd, vd_load, (const void *from), _mm256_loadu_pd((const double *)from))

/* float64 of float32 and of float16. */
VECTOR_OP(vd, vd_from_f32, (const void *from), _mm256_cvtps_pd(_mm_loadu_ps((const float *)from)))
VECTOR_OP(vd, vd_from_f16, (const void *from), _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)from))))

/* x where `by` is finite, else 0. */
static inline vd vd_keep_finite(vd x, vd by)
{
    vd magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), by);
    return _mm256_and_pd(x, _mm256_cmp_pd(magnitude, _mm256_set1_pd(__builtin_inf()), _CMP_LT_OQ));
}

static inline void v32_widen_f16(float *to, const void *from)
{
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)));
}

/* Unsigned maximum. */
VECTOR_OP(v32, v32_max_u, (v32 a, v32 b), _mm256_max_epu32(a, b))

/* Unsigned maximum of 16-bit integers. */
VECTOR_OP(v32, v32_max_u16, (v32 a, v32 b), _mm256_max_epu16(a, b))
VECTOR_OP(v32, v32_sub, (v32 a, v32 b), _mm256_sub_epi32(a, b))
VECTOR_OP(v32, v32_add, (v32 a, v32 b), _mm256_add_epi32(a, b))
VECTOR_OP(v32, v32_shift_right_16, (v32 a), _mm256_srli_epi32(a, 16))

/* 16-bit integers, zero-extended. */
VECTOR_OP(v32, v32_load_u16, (const void *from), _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)))
VECTOR_OP(v64, v64_sub, (v64 a, v64 b), _mm256_sub_epi64(a, b))

/* Unsigned maximum. */
static inline v64 v64_max_u(v64 a, v64 b)
{
    v64 top = v64_set(INT64_MIN);
    return v64_select_gt(v64_xor(a, top), v64_xor(b, top), a, b);
}

VECTOR_OP(vd, vd_abs, (vd a), _mm256_andnot_pd(_mm256_set1_pd(-0.0), a))
VECTOR_OP(vd, vd_min, (vd a, vd b), _mm256_min_pd(a, b))
VECTOR_OP(bool, vd_any_over, (vd a, vd b), _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)) != 0)

/* Adds 1 to the lanes of a counter where a > b. */
static inline v64 v64_count_over(v64 counter, vd a, vd b)
{
    return _mm256_sub_epi64(counter, _mm256_castpd_si256(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
}

/* Bit i: error[i] > floor[i], or magnitude[i] is not 0 and error[i] > bound[i]. */
static inline unsigned vd_records(vd error, vd floor, vd magnitude, vd bound)
{
    vd over = _mm256_cmp_pd(error, bound, _CMP_GT_OQ);
    vd ratio = _mm256_and_pd(over, _mm256_cmp_pd(magnitude, _mm256_setzero_pd(), _CMP_NEQ_OQ));
    return (unsigned)_mm256_movemask_pd(_mm256_or_pd(ratio, _mm256_cmp_pd(error, floor, _CMP_GT_OQ)));
}

#endif
