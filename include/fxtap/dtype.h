/*
 * fxtap/dtype.h - element types: all of torch's and DLPack's, and their types in a .npy file.
 *
 * The *original* dtype is that of the tensor. The *saved* dtype is one that NumPy can read: the same if NumPy has it,
 * else, without loss, float32 (bfloat16, float8, float4) or complex64 (complex32). `bits` types are saved as the
 * unsigned integer of their size.
 */
#ifndef FXTAP_DTYPE_H
#define FXTAP_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fixed values: they are stored in serialised graph records. */
typedef enum fxtap_dtype {
    FXTAP_DTYPE_NONE = 0,
    FXTAP_BOOL = 1,
    FXTAP_UINT8 = 2,
    FXTAP_UINT16 = 3,
    FXTAP_UINT32 = 4,
    FXTAP_UINT64 = 5,
    FXTAP_INT8 = 6,
    FXTAP_INT16 = 7,
    FXTAP_INT32 = 8,
    FXTAP_INT64 = 9,
    FXTAP_FLOAT16 = 10,
    FXTAP_BFLOAT16 = 11,
    FXTAP_FLOAT32 = 12,
    FXTAP_FLOAT64 = 13,
    FXTAP_COMPLEX32 = 14, /* two float16 */
    FXTAP_COMPLEX64 = 15,
    FXTAP_COMPLEX128 = 16,
    FXTAP_FLOAT8_E4M3FN = 17,
    FXTAP_FLOAT8_E5M2 = 18,
    FXTAP_FLOAT8_E4M3FNUZ = 19,
    FXTAP_FLOAT8_E5M2FNUZ = 20,
    FXTAP_FLOAT8_E8M0FNU = 21,
    FXTAP_FLOAT8_E4M3 = 22,
    FXTAP_FLOAT8_E3M4 = 23,
    FXTAP_FLOAT8_E4M3B11FNUZ = 24,
    FXTAP_FLOAT4_E2M1FN_X2 = 25, /* two values in a byte, the low half first; saved with the last axis doubled */
    FXTAP_FLOAT6_E2M3FN = 26,    /* one value in the low six bits of a byte */
    FXTAP_FLOAT6_E3M2FN = 27,
    FXTAP_BITS8 = 28,
    FXTAP_BITS16 = 29,
    FXTAP_STRING = 30, /* NumPy's <U: UCS-4 text; only for text, never for a tensor */
    FXTAP_QINT8 = 31,  /* quantised: only the name is known; the caller dequantises before saving */
    FXTAP_QUINT8 = 32,
    FXTAP_QINT32 = 33,
    FXTAP_DTYPE_COUNT = 34
} fxtap_dtype;

typedef enum fxtap_dtype_class {
    FXTAP_CLASS_NONE = 0,
    FXTAP_CLASS_BOOL,
    FXTAP_CLASS_UINT,
    FXTAP_CLASS_INT,
    FXTAP_CLASS_FLOAT,
    FXTAP_CLASS_COMPLEX,
    FXTAP_CLASS_TEXT
} fxtap_dtype_class;

/* torch's name without "torch.": "bfloat16", "float8_e4m3fn"; "" for FXTAP_DTYPE_NONE. Never NULL. */
FXTAP_API const char *fxtap_dtype_name(fxtap_dtype dtype);

/* The dtype of a name, with or without "torch."; also "bits1x8", "quint4x2" ...; FXTAP_DTYPE_NONE if unknown. */
FXTAP_API fxtap_dtype fxtap_dtype_from_name(const char *name);

/* The dtype of a DLPack (code, bits, lanes); FXTAP_DTYPE_NONE if there is none (lanes other than 1, ...). */
FXTAP_API fxtap_dtype fxtap_dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes);

/* Bytes of one element in memory (FLOAT4_E2M1FN_X2: 1, a pair); 0 for NONE and STRING. */
FXTAP_API size_t fxtap_dtype_size(fxtap_dtype dtype);

FXTAP_API fxtap_dtype_class fxtap_dtype_class_of(fxtap_dtype dtype);

/* The saved dtype; the same if NumPy has it. FXTAP_DTYPE_NONE for quantised dtypes. */
FXTAP_API fxtap_dtype fxtap_dtype_saved(fxtap_dtype dtype);

/* NumPy's little-endian descr of a saved dtype: "<f4", "|b1"; NULL if NumPy has no such type. */
FXTAP_API const char *fxtap_dtype_descr(fxtap_dtype saved);

#ifdef __cplusplus
}
#endif
#endif
