#include "tensor/convert.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

typedef enum special_rule {
    RULE_IEEE,   /* exponent all ones: infinity where the mantissa is zero, else NaN */
    RULE_FN,     /* all bits set: NaN; no infinity */
    RULE_FNUZ,   /* the bits of -0 are NaN; no infinity, no -0 */
    RULE_FINITE, /* every bit pattern is a number */
    RULE_E8M0    /* no sign, no mantissa, no zero: 2^(bits - 127); all ones is NaN */
} special_rule;

typedef struct small_format {
    fxtap_dtype dtype;
    uint8_t n_exponent;
    uint8_t n_mantissa;
    int8_t bias;
    special_rule rule;
} small_format;

static const small_format formats[] = {
    {FXTAP_FLOAT8_E4M3FN, 4, 3, 7, RULE_FN},        {FXTAP_FLOAT8_E5M2, 5, 2, 15, RULE_IEEE},
    {FXTAP_FLOAT8_E4M3FNUZ, 4, 3, 8, RULE_FNUZ},    {FXTAP_FLOAT8_E5M2FNUZ, 5, 2, 16, RULE_FNUZ},
    {FXTAP_FLOAT8_E8M0FNU, 8, 0, 127, RULE_E8M0},   {FXTAP_FLOAT8_E4M3, 4, 3, 7, RULE_IEEE},
    {FXTAP_FLOAT8_E3M4, 3, 4, 3, RULE_IEEE},        {FXTAP_FLOAT8_E4M3B11FNUZ, 4, 3, 11, RULE_FNUZ},
    {FXTAP_FLOAT6_E2M3FN, 2, 3, 1, RULE_FINITE},    {FXTAP_FLOAT6_E3M2FN, 3, 2, 3, RULE_FINITE},
    {FXTAP_FLOAT4_E2M1FN_X2, 2, 1, 1, RULE_FINITE},
};

#define N_FORMATS (sizeof formats / sizeof formats[0])
#define FLOAT32_INF 0x7F800000u
#define FLOAT32_QUIET 0x00400000u

static float tables[N_FORMATS][256];
static uint64_t float4_pairs[256]; /* the two float32 of a byte; the low half's is first in memory */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* The float32 bits of m * 2^e, m > 0: exact integer arithmetic, independent of rounding and flushing modes. */
static uint32_t scaled_bits(uint32_t m, int e)
{
    int top = 0; /* the highest bit of m */
    while (m >> top > 1) {
        top++;
    }
    int exponent = e + top + 127;
    if (exponent >= 1) {
        return (uint32_t)exponent << 23 | (m << (23 - top) & 0x7FFFFFu);
    }
    assert(e >= -149 && e < -149 + 32);
    return m << (e + 149); /* a float32 subnormal: e >= -149 for all formats here */
}

/*
 * The float32 bits, including the sign, of an infinity or NaN; 0 for a number. NaN bits are those of torch's own
 * conversion, so that results can be compared bit for bit.
 */
static uint32_t special_bits(const small_format *format, uint32_t magnitude, uint32_t sign)
{
    uint32_t mantissa = magnitude & ((1u << format->n_mantissa) - 1);
    uint32_t payload = mantissa << (23 - format->n_mantissa);
    uint32_t all_ones = (1u << (format->n_exponent + format->n_mantissa)) - 1;
    bool top_exponent = magnitude >> format->n_mantissa == (1u << format->n_exponent) - 1;
    switch (format->rule) {
    case RULE_IEEE:
        if (top_exponent) {
            return FLOAT32_INF | sign << 31 | (mantissa == 0 ? 0 : payload | FLOAT32_QUIET);
        }
        return 0;
    case RULE_FN:
        return magnitude == all_ones ? FLOAT32_INF | sign << 31 | payload : 0;
    case RULE_FNUZ:
        return magnitude == 0 && sign != 0 ? FLOAT32_INF | 1 : 0;
    case RULE_E8M0:
        return magnitude == all_ones ? FLOAT32_INF | 1 : 0;
    case RULE_FINITE:
        break;
    }
    return 0;
}

static uint32_t decode(const small_format *format, uint32_t bits)
{
    unsigned n_magnitude = (unsigned)format->n_exponent + format->n_mantissa;
    uint32_t magnitude = bits & ((1u << n_magnitude) - 1);
    uint32_t sign = format->rule == RULE_E8M0 ? 0 : bits >> n_magnitude & 1;
    uint32_t out = special_bits(format, magnitude, sign);
    if (out != 0) {
        return out;
    }
    uint32_t exponent = magnitude >> format->n_mantissa;
    uint32_t m = magnitude & ((1u << format->n_mantissa) - 1);
    if (format->rule == RULE_E8M0) {
        out = scaled_bits(1, (int)exponent - format->bias);
    } else if (exponent == 0) {
        out = m == 0 ? 0 : scaled_bits(m, 1 - format->bias - format->n_mantissa);
    } else {
        out = scaled_bits(m | 1u << format->n_mantissa, (int)exponent - format->bias - format->n_mantissa);
    }
    return out | sign << 31;
}

static void build_tables(void)
{
    for (size_t f = 0; f < N_FORMATS; f++) {
        for (uint32_t bits = 0; bits < 256; bits++) {
            uint32_t value = decode(&formats[f], bits);
            memcpy(&tables[f][bits], &value, sizeof value);
        }
    }
    for (uint32_t bits = 0; bits < 256; bits++) {
        const float pair[2] = {tables[N_FORMATS - 1][bits & 15], tables[N_FORMATS - 1][bits >> 4]};
        memcpy(&float4_pairs[bits], pair, sizeof pair);
    }
}

const float *fx_float8_table(fxtap_dtype dtype)
{
    pthread_once(&tables_once, build_tables);
    for (size_t f = 0; f + 1 < N_FORMATS; f++) {
        if (formats[f].dtype == dtype) {
            return tables[f];
        }
    }
    return NULL;
}

static void convert_float8(const float *table, const uint8_t *src, size_t n, char *dst)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(dst + i * 4, &table[src[i]], 4);
    }
}

static void convert_float4(const uint8_t *src, size_t n, char *dst)
{
    pthread_once(&tables_once, build_tables);
    for (size_t i = 0; i < n; i++) {
        memcpy(dst + i * 8, &float4_pairs[src[i]], 8);
    }
}

static void convert_bfloat16(const char *src, size_t n, char *dst)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, src + i * 2, 2);
        uint32_t wide = (uint32_t)bits << 16;
        memcpy(dst + i * 4, &wide, 4);
    }
}

void fx_convert_half(const void *src, size_t n, void *dst)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const char *)src + i * 2, 2);
        uint32_t magnitude = half & 0x7FFFu;
        uint32_t normal = (magnitude << 13) + (112u << 23);
        uint32_t special = (magnitude << 13) | FLOAT32_INF | (magnitude > 0x7C00u ? FLOAT32_QUIET : 0);
        float small = (float)(int32_t)magnitude * 0x1p-24f; /* exact: no operand or result is subnormal */
        uint32_t subnormal;
        memcpy(&subnormal, &small, 4);
        uint32_t bits = magnitude >= 0x7C00u ? special : (magnitude < 0x400u ? subnormal : normal);
        bits |= (uint32_t)(half & 0x8000u) << 16;
        memcpy((char *)dst + i * 4, &bits, 4);
    }
}

void fx_convert_to_saved(fxtap_dtype dtype, const void *src, size_t n, void *dst)
{
    assert(fxtap_dtype_size(fxtap_dtype_saved(dtype)) > 0);
    const float *table;
    switch (dtype) {
    case FXTAP_BFLOAT16:
        convert_bfloat16(src, n, dst);
        break;
    case FXTAP_COMPLEX32:
        fx_convert_half(src, n * 2, dst);
        break;
    case FXTAP_FLOAT4_E2M1FN_X2:
        convert_float4(src, n, dst);
        break;
    default:
        table = fx_float8_table(dtype);
        if (table != NULL) {
            convert_float8(table, src, n, dst);
        } else {
            memcpy(dst, src, n * fxtap_dtype_size(dtype));
        }
    }
}
