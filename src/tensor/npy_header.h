/*
 * npy_header.h - parses the header of an .npy file from untrusted bytes.
 *
 * Layout: the magic "\x93NUMPY", a version (major, minor), the length of what follows (2 bytes in version 1, 4 in
 * versions 2 and 3, little-endian), and a Python dictionary literal with the keys descr, fortran_order and shape.
 */
#ifndef FX_TENSOR_NPY_HEADER_H
#define FX_TENSOR_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/tensor.h"

#define FX_NPY_MAX_HEADER ((size_t)1 << 20) /* bytes of the dictionary; a longer one is FXTAP_E_UNSUPPORTED */
#define FX_NPY_MAX_DESCR 64                 /* with NUL */

typedef struct fx_npy_header {
    char descr[FX_NPY_MAX_DESCR];
    fxtap_dtype dtype;   /* FXTAP_STRING for <U */
    uint64_t item_bytes; /* bytes of an element: for <U5 20 */
    bool big_endian;
    bool fortran_order;
    int32_t ndim;
    int64_t shape[FXTAP_MAX_DIMS];
    uint64_t data_offset; /* bytes before the data */
    uint64_t data_bytes;  /* count * item_bytes, checked */
} fx_npy_header;

/*
 * Parses the header at the beginning of `n_bytes` bytes; reads nothing past them and allocates nothing. The data may
 * extend beyond n_bytes: the caller compares data_offset + data_bytes with the size of the file. `name` is for
 * messages. FXTAP_E_FORMAT, FXTAP_E_UNSUPPORTED.
 */
fxtap_status fx_npy_parse(const char *name, const void *bytes, size_t n_bytes, fx_npy_header *out);

/* Sets dtype, item_bytes and big_endian from header->descr. FXTAP_E_FORMAT, FXTAP_E_UNSUPPORTED. */
fxtap_status fx_npy_parse_descr(const char *name, fx_npy_header *header);

#endif
