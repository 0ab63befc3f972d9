/* GE's data types: the enumeration, and conversion from torch's. */
#include <string.h>

#include "ge/ge.h"

static const char *const TEXTS[] = {
    "DT_FLOAT",         "DT_FLOAT16",     "DT_INT8",          "DT_INT32",          "DT_UINT8",       NULL,
    "DT_INT16",         "DT_UINT16",      "DT_UINT32",        "DT_INT64",          "DT_UINT64",      "DT_DOUBLE",
    "DT_BOOL",          "DT_STRING",      "DT_DUAL_SUB_INT8", "DT_DUAL_SUB_UINT8", "DT_COMPLEX64",   "DT_COMPLEX128",
    "DT_QINT8",         "DT_QINT16",      "DT_QINT32",        "DT_QUINT8",         "DT_QUINT16",     "DT_RESOURCE",
    "DT_STRING_REF",    "DT_DUAL",        "DT_VARIANT",       "DT_BF16",           "DT_UNDEFINED",   "DT_INT4",
    "DT_UINT1",         "DT_INT2",        "DT_UINT2",         "DT_COMPLEX32",      "DT_HIFLOAT8",    "DT_FLOAT8_E5M2",
    "DT_FLOAT8_E4M3FN", "DT_FLOAT8_E8M0", "DT_FLOAT6_E3M2",   "DT_FLOAT6_E2M3",    "DT_FLOAT4_E2M1", "DT_FLOAT4_E1M2",
};

static const struct {
    fxtap_dtype torch;
    int ge;
    const char *short_name;
} PAIRS[] = {
    {FXTAP_FLOAT32, 0, "f32"},
    {FXTAP_FLOAT16, 1, "f16"},
    {FXTAP_INT8, 2, "i8"},
    {FXTAP_INT32, 3, "i32"},
    {FXTAP_UINT8, 4, "u8"},
    {FXTAP_INT16, 6, "i16"},
    {FXTAP_UINT16, 7, "u16"},
    {FXTAP_UINT32, 8, "u32"},
    {FXTAP_INT64, 9, "i64"},
    {FXTAP_UINT64, 10, "u64"},
    {FXTAP_FLOAT64, 11, "f64"},
    {FXTAP_BOOL, 12, "bool"},
    {FXTAP_COMPLEX64, 16, "c64"},
    {FXTAP_COMPLEX128, 17, "c128"},
    {FXTAP_QINT8, 18, "qint8"},
    {FXTAP_QINT32, 20, "qint32"},
    {FXTAP_QUINT8, 21, "quint8"},
    {FXTAP_BFLOAT16, 27, "bf16"},
    {FXTAP_COMPLEX32, 33, "c32"},
    {FXTAP_FLOAT8_E5M2, 35, "f8e5m2"},
    {FXTAP_FLOAT8_E4M3FN, 36, "f8e4m3"},
    {FXTAP_FLOAT8_E8M0FNU, 37, "f8e8m0"},
};

#define N_PAIRS (sizeof PAIRS / sizeof PAIRS[0])

int fx_ge_dtype_of(fxtap_dtype dtype)
{
    for (size_t i = 0; i < N_PAIRS; i++) {
        if (PAIRS[i].torch == dtype) {
            return PAIRS[i].ge;
        }
    }
    return FX_GE_UNDEFINED;
}

const char *fx_ge_dtype_text(int ge_dtype)
{
    if (ge_dtype < 0 || (size_t)ge_dtype >= sizeof TEXTS / sizeof TEXTS[0]) {
        return NULL;
    }
    return TEXTS[ge_dtype];
}

bool fx_ge_dtype_by_name(const char *name, size_t length, int *out)
{
    for (size_t i = 0; i < N_PAIRS; i++) {
        if (strlen(PAIRS[i].short_name) == length && memcmp(PAIRS[i].short_name, name, length) == 0) {
            *out = PAIRS[i].ge;
            return true;
        }
    }
    return false;
}

size_t fx_ge_dtype_bytes(int ge_dtype)
{
    switch (ge_dtype) {
    case 2:
    case 4:
    case FX_GE_BOOL:
    case 18:
    case 21:
    case 35:
    case 36:
    case 37:
        return 1;
    case FX_GE_FLOAT16:
    case 6:
    case 7:
    case FX_GE_BF16:
        return 2;
    case FX_GE_FLOAT:
    case FX_GE_INT32:
    case FX_GE_UINT32:
    case 20:
    case 33:
        return 4;
    case FX_GE_INT64:
    case FX_GE_UINT64:
    case FX_GE_DOUBLE:
    case FX_GE_COMPLEX64:
        return 8;
    case 17:
        return 16;
    default:
        return 0;
    }
}
