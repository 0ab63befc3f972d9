#include "tensor/values.h"

#include <string.h>

#include "tensor/stats_kernel.h"

#define DEFINE_TO_F64(NAME, TYPE, VALUE)                                                                               \
    static void NAME(const void *elements, size_t n, double *out)                                                      \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            TYPE element;                                                                                              \
            memcpy(&element, (const unsigned char *)elements + sizeof element * i, sizeof element);                    \
            out[i] = (double)(VALUE);                                                                                  \
        }                                                                                                              \
    }

DEFINE_TO_F64(from_bool, uint8_t, element != 0)
DEFINE_TO_F64(from_u8, uint8_t, element)
DEFINE_TO_F64(from_u16, uint16_t, element)
DEFINE_TO_F64(from_u32, uint32_t, element)
DEFINE_TO_F64(from_u64, uint64_t, element)
DEFINE_TO_F64(from_i8, int8_t, element)
DEFINE_TO_F64(from_i16, int16_t, element)
DEFINE_TO_F64(from_i32, int32_t, element)
DEFINE_TO_F64(from_i64, int64_t, element)
DEFINE_TO_F64(from_f32, float, element)
DEFINE_TO_F64(from_f64, double, element)

static void from_f16(const void *elements, size_t n, double *out)
{
    float wide[256];
    for (size_t done = 0; done < n;) {
        size_t count = n - done < 256 ? n - done : 256;
        fx_stats_in_use()->widen_f16((const unsigned char *)elements + 2 * done, count, wide);
        from_f32(wide, count, out + done);
        done += count;
    }
}

void fx_values_to_f64(fxtap_dtype saved, const void *elements, size_t n, double *out)
{
    static void (*const table[FXTAP_DTYPE_COUNT])(const void *, size_t, double *) = {
        [FXTAP_BOOL] = from_bool,  [FXTAP_UINT8] = from_u8,    [FXTAP_UINT16] = from_u16,  [FXTAP_UINT32] = from_u32,
        [FXTAP_UINT64] = from_u64, [FXTAP_INT8] = from_i8,     [FXTAP_INT16] = from_i16,   [FXTAP_INT32] = from_i32,
        [FXTAP_INT64] = from_i64,  [FXTAP_FLOAT16] = from_f16, [FXTAP_FLOAT32] = from_f32, [FXTAP_FLOAT64] = from_f64,
    };
    table[saved](elements, n, out);
}

void fx_values_to_f32(fxtap_dtype saved, const void *elements, size_t n, float *out)
{
    if (saved == FXTAP_FLOAT32) {
        memcpy(out, elements, n * sizeof *out);
        return;
    }
    if (saved == FXTAP_FLOAT16) {
        fx_stats_in_use()->widen_f16(elements, n, out);
        return;
    }
    double wide[256];
    for (size_t done = 0; done < n;) {
        size_t count = n - done < 256 ? n - done : 256;
        fx_values_to_f64(saved, (const unsigned char *)elements + fxtap_dtype_size(saved) * done, count, wide);
        for (size_t i = 0; i < count; i++) {
            out[done + i] = (float)wide[i];
        }
        done += count;
    }
}

void fx_values_to_c128(fxtap_dtype saved, const void *elements, size_t n, double *out)
{
    if (saved == FXTAP_COMPLEX64) {
        from_f32(elements, 2 * n, out);
        return;
    }
    if (saved == FXTAP_COMPLEX128) {
        from_f64(elements, 2 * n, out);
        return;
    }
    fx_values_to_f64(saved, elements, n, out);
    for (size_t i = n; i > 0; i--) {
        out[2 * i - 2] = out[i - 1];
        out[2 * i - 1] = 0;
    }
}

/* Drops `shift` low bits, to nearest, ties to even. */
static uint32_t round_shift(uint32_t bits, uint32_t shift)
{
    uint32_t half = (UINT32_C(1) << (shift - 1)) - 1;
    return (bits + half + (bits >> shift & 1)) >> shift;
}

uint16_t fx_f16_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & INT32_MAX;
    uint32_t half;
    if (magnitude > FX_F32_INF) {
        half = 0x7e00;
    } else if (magnitude >= 0x47800000) { /* 65536 and above */
        half = 0x7c00;
    } else if (magnitude >= 0x38800000) { /* normal; a carry out of 65504 yields infinity */
        half = round_shift(magnitude - (UINT32_C(112) << 23), 13);
    } else if (magnitude >= 0x33000000) { /* subnormal: multiples of 2^-24 */
        half = round_shift((magnitude & 0x7fffff) | 0x800000, 126 - (magnitude >> 23));
    } else {
        half = 0;
    }
    return (uint16_t)(sign | half);
}
