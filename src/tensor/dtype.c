#include "fxtap/dtype.h"

#include <string.h>

/* The type codes of DLPack 1.1 (dlpack.h, DLDataTypeCode). */
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_COMPLEX = 5,
    DL_BOOL = 6,
    DL_FLOAT8_E3M4 = 7,
    DL_FLOAT8_E4M3 = 8,
    DL_FLOAT8_E4M3B11FNUZ = 9,
    DL_FLOAT8_E4M3FN = 10,
    DL_FLOAT8_E4M3FNUZ = 11,
    DL_FLOAT8_E5M2 = 12,
    DL_FLOAT8_E5M2FNUZ = 13,
    DL_FLOAT8_E8M0FNU = 14,
    DL_FLOAT6_E2M3FN = 15,
    DL_FLOAT6_E3M2FN = 16,
    DL_FLOAT4_E2M1FN = 17,
    DL_NONE = 255
};

typedef struct dtype_row {
    const char *name;
    const char *descr; /* NumPy's, where NumPy has the type */
    uint8_t size_bytes;
    uint8_t dl_code;
    uint8_t dl_bits;
    fxtap_dtype_class class_of;
    fxtap_dtype saved;
} dtype_row;

/* clang-format off */
static const dtype_row rows[FXTAP_DTYPE_COUNT] = {
    [FXTAP_DTYPE_NONE]       = {"", NULL, 0, DL_NONE, 0, FXTAP_CLASS_NONE, FXTAP_DTYPE_NONE},
    [FXTAP_BOOL]             = {"bool", "|b1", 1, DL_BOOL, 8, FXTAP_CLASS_BOOL, FXTAP_BOOL},
    [FXTAP_UINT8]            = {"uint8", "|u1", 1, DL_UINT, 8, FXTAP_CLASS_UINT, FXTAP_UINT8},
    [FXTAP_UINT16]           = {"uint16", "<u2", 2, DL_UINT, 16, FXTAP_CLASS_UINT, FXTAP_UINT16},
    [FXTAP_UINT32]           = {"uint32", "<u4", 4, DL_UINT, 32, FXTAP_CLASS_UINT, FXTAP_UINT32},
    [FXTAP_UINT64]           = {"uint64", "<u8", 8, DL_UINT, 64, FXTAP_CLASS_UINT, FXTAP_UINT64},
    [FXTAP_INT8]             = {"int8", "|i1", 1, DL_INT, 8, FXTAP_CLASS_INT, FXTAP_INT8},
    [FXTAP_INT16]            = {"int16", "<i2", 2, DL_INT, 16, FXTAP_CLASS_INT, FXTAP_INT16},
    [FXTAP_INT32]            = {"int32", "<i4", 4, DL_INT, 32, FXTAP_CLASS_INT, FXTAP_INT32},
    [FXTAP_INT64]            = {"int64", "<i8", 8, DL_INT, 64, FXTAP_CLASS_INT, FXTAP_INT64},
    [FXTAP_FLOAT16]          = {"float16", "<f2", 2, DL_FLOAT, 16, FXTAP_CLASS_FLOAT, FXTAP_FLOAT16},
    [FXTAP_BFLOAT16]         = {"bfloat16", NULL, 2, DL_BFLOAT, 16, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT32]          = {"float32", "<f4", 4, DL_FLOAT, 32, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT64]          = {"float64", "<f8", 8, DL_FLOAT, 64, FXTAP_CLASS_FLOAT, FXTAP_FLOAT64},
    [FXTAP_COMPLEX32]        = {"complex32", NULL, 4, DL_COMPLEX, 32, FXTAP_CLASS_COMPLEX, FXTAP_COMPLEX64},
    [FXTAP_COMPLEX64]        = {"complex64", "<c8", 8, DL_COMPLEX, 64, FXTAP_CLASS_COMPLEX, FXTAP_COMPLEX64},
    [FXTAP_COMPLEX128]       = {"complex128", "<c16", 16, DL_COMPLEX, 128, FXTAP_CLASS_COMPLEX, FXTAP_COMPLEX128},
    [FXTAP_FLOAT8_E4M3FN]    = {"float8_e4m3fn", NULL, 1, DL_FLOAT8_E4M3FN, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E5M2]      = {"float8_e5m2", NULL, 1, DL_FLOAT8_E5M2, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E4M3FNUZ]  = {"float8_e4m3fnuz", NULL, 1, DL_FLOAT8_E4M3FNUZ, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E5M2FNUZ]  = {"float8_e5m2fnuz", NULL, 1, DL_FLOAT8_E5M2FNUZ, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E8M0FNU]   = {"float8_e8m0fnu", NULL, 1, DL_FLOAT8_E8M0FNU, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E4M3]      = {"float8_e4m3", NULL, 1, DL_FLOAT8_E4M3, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E3M4]      = {"float8_e3m4", NULL, 1, DL_FLOAT8_E3M4, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT8_E4M3B11FNUZ] = {"float8_e4m3b11fnuz", NULL, 1, DL_FLOAT8_E4M3B11FNUZ, 8, FXTAP_CLASS_FLOAT,
                                  FXTAP_FLOAT32},
    [FXTAP_FLOAT4_E2M1FN_X2] = {"float4_e2m1fn_x2", NULL, 1, DL_FLOAT4_E2M1FN, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT6_E2M3FN]    = {"float6_e2m3fn", NULL, 1, DL_FLOAT6_E2M3FN, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_FLOAT6_E3M2FN]    = {"float6_e3m2fn", NULL, 1, DL_FLOAT6_E3M2FN, 8, FXTAP_CLASS_FLOAT, FXTAP_FLOAT32},
    [FXTAP_BITS8]            = {"bits8", NULL, 1, DL_NONE, 0, FXTAP_CLASS_UINT, FXTAP_UINT8},
    [FXTAP_BITS16]           = {"bits16", NULL, 2, DL_NONE, 0, FXTAP_CLASS_UINT, FXTAP_UINT16},
    [FXTAP_STRING]           = {"str", NULL, 0, DL_NONE, 0, FXTAP_CLASS_TEXT, FXTAP_STRING},
    [FXTAP_QINT8]            = {"qint8", NULL, 1, DL_NONE, 0, FXTAP_CLASS_INT, FXTAP_DTYPE_NONE},
    [FXTAP_QUINT8]           = {"quint8", NULL, 1, DL_NONE, 0, FXTAP_CLASS_UINT, FXTAP_DTYPE_NONE},
    [FXTAP_QINT32]           = {"qint32", NULL, 4, DL_NONE, 0, FXTAP_CLASS_INT, FXTAP_DTYPE_NONE},
};

/* Further names that torch prints or accepts. Packed types are opaque bytes. */
static const struct {
    const char *name;
    fxtap_dtype dtype;
} aliases[] = {
    {"bits1x8", FXTAP_BITS8}, {"bits2x4", FXTAP_BITS8}, {"bits4x2", FXTAP_BITS8},
    {"quint4x2", FXTAP_QUINT8}, {"quint2x4", FXTAP_QUINT8},
    {"half", FXTAP_FLOAT16}, {"float", FXTAP_FLOAT32}, {"double", FXTAP_FLOAT64},
    {"short", FXTAP_INT16}, {"int", FXTAP_INT32}, {"long", FXTAP_INT64},
    {"chalf", FXTAP_COMPLEX32}, {"cfloat", FXTAP_COMPLEX64}, {"cdouble", FXTAP_COMPLEX128},
};
/* clang-format on */

static const dtype_row *row_of(fxtap_dtype dtype)
{
    return (unsigned)dtype < FXTAP_DTYPE_COUNT ? &rows[dtype] : &rows[FXTAP_DTYPE_NONE];
}

const char *fxtap_dtype_name(fxtap_dtype dtype)
{
    return row_of(dtype)->name;
}

fxtap_dtype fxtap_dtype_from_name(const char *name)
{
    static const char prefix[] = "torch.";
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
    }
    for (int i = 1; i < FXTAP_DTYPE_COUNT; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            return (fxtap_dtype)i;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(name, aliases[i].name) == 0) {
            return aliases[i].dtype;
        }
    }
    return FXTAP_DTYPE_NONE;
}

/*
 * A value of less than eight bits has its own byte (as torch exports float6); float4 comes in pairs: one element of
 * eight bits, or two lanes of four.
 */
fxtap_dtype fxtap_dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes)
{
    if (code == DL_FLOAT4_E2M1FN && bits == 4 && lanes == 2) {
        return FXTAP_FLOAT4_E2M1FN_X2;
    }
    if ((code == DL_FLOAT6_E2M3FN || code == DL_FLOAT6_E3M2FN) && bits == 6) {
        bits = 8;
    }
    if (lanes != 1 || code == DL_NONE) {
        return FXTAP_DTYPE_NONE;
    }
    for (int i = 1; i < FXTAP_DTYPE_COUNT; i++) {
        if (rows[i].dl_code == code && rows[i].dl_bits == bits) {
            return (fxtap_dtype)i;
        }
    }
    return FXTAP_DTYPE_NONE;
}

size_t fxtap_dtype_size(fxtap_dtype dtype)
{
    return row_of(dtype)->size_bytes;
}

fxtap_dtype_class fxtap_dtype_class_of(fxtap_dtype dtype)
{
    return row_of(dtype)->class_of;
}

fxtap_dtype fxtap_dtype_saved(fxtap_dtype dtype)
{
    return row_of(dtype)->saved;
}

const char *fxtap_dtype_descr(fxtap_dtype saved)
{
    return row_of(saved)->descr;
}
