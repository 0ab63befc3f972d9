/*
 * fxtap/npy.h - NumPy's .npy files, read and written.
 *
 * Read: format versions 1, 2 and 3, both byte orders, both memory orders, memory-mapped (a file of any size costs
 * address space alone; no descriptor stays open). Nothing is trusted: every length is held against the bytes that remain
 * before anything is allocated. Object arrays are refused (FXTAP_E_UNSUPPORTED), never unpickled.
 *
 * A mapping is the file itself: where another process cuts a file short after it was opened, whoever reads the missing
 * pages gets SIGBUS, and where one writes into it, other values. With FXTAP_READ_COPY a file is read into memory when
 * it is opened, and what happens to it later does not matter; it costs memory of the file's size.
 *
 * Written: version 1 (2 where the header needs it), little-endian, the data 64-byte aligned.
 *
 * Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef FXTAP_NPY_H
#define FXTAP_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/status.h"
#include "fxtap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_npy fxtap_npy; /* an open file; one thread at a time, or any number that only read the view */

/*
 * Opens and maps a file. FXTAP_E_IO (errno, path), FXTAP_E_FORMAT (cut, foreign, a header that is none),
 * FXTAP_E_UNSUPPORTED (structured or object dtype, a version from the future, more than 64 dimensions).
 * The caller owns *out and frees it with fxtap_npy_close().
 */
FXTAP_API fxtap_status fxtap_npy_open(const char *path, fxtap_npy **out);

#define FXTAP_READ_COPY 1u /* read the whole file when it is opened, in place of mapping it */

/* The same with FXTAP_READ_ flags; FXTAP_E_INVALID for unknown ones. */
FXTAP_API fxtap_status fxtap_npy_open_with(const char *path, uint32_t flags, fxtap_npy **out);

/* The same over bytes in memory, which stay the caller's and must outlive *out. `name` is for messages. */
FXTAP_API fxtap_status fxtap_npy_open_bytes(const char *name, const void *bytes, size_t n_bytes, fxtap_npy **out);

FXTAP_API void fxtap_npy_close(fxtap_npy *npy); /* NULL is allowed */

/* The array as a view into the mapping, valid until close. Text arrays (<U) have dtype FXTAP_STRING and no strides. */
FXTAP_API const fxtap_view *fxtap_npy_view(const fxtap_npy *npy);

/* The descr as written in the file, as "<f4"; for text "<U5". Borrowed. */
FXTAP_API const char *fxtap_npy_descr(const fxtap_npy *npy);

FXTAP_API bool fxtap_npy_fortran_order(const fxtap_npy *npy);

/* Bytes of data that the header promises, and bytes that follow them (0 in a well-formed file). */
FXTAP_API uint64_t fxtap_npy_data_bytes(const fxtap_npy *npy);
FXTAP_API uint64_t fxtap_npy_trailing_bytes(const fxtap_npy *npy);

/* The text of a 0-d <U array as UTF-8, owned by `npy`; FXTAP_E_INVALID where it is no text. */
FXTAP_API fxtap_status fxtap_npy_text(fxtap_npy *npy, const char **out);

/*
 * Writes a view to a new file (as its saved dtype, conj and neg resolved; row-major, or column-major where it lies
 * so). The file must not exist (FXTAP_E_EXISTS). Under `path` there is a whole file or none.
 */
FXTAP_API fxtap_status fxtap_npy_save(const char *path, const fxtap_view *view);

/*
 * The header bytes (magic to padding) of an array with this descr, order and shape, into `dst` of `capacity` bytes;
 * the length, a multiple of 64, into *out. FXTAP_E_INVALID where the capacity is too small (64 dimensions need less
 * than 2048 bytes).
 */
FXTAP_API fxtap_status fxtap_npy_header(const char *descr, bool fortran_order, int32_t ndim, const int64_t *shape,
                                        void *dst, size_t capacity, size_t *out);

#ifdef __cplusplus
}
#endif
#endif
