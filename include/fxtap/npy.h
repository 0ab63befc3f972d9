/*
 * fxtap/npy.h - reads and writes NumPy's .npy files.
 *
 * Reading: format versions 1, 2 and 3, both byte orders, both memory orders, memory-mapped (a file of any size needs
 * only address space; no descriptor stays open). Files are not trusted: every length is compared with the remaining
 * bytes before anything is allocated. Object arrays are rejected (FXTAP_E_UNSUPPORTED), never unpickled.
 *
 * A mapping shows later changes of the file: if another process truncates it, reading the missing pages raises SIGBUS;
 * if one writes to it, the values change. With FXTAP_READ_COPY a file is read into memory when it is opened, so later
 * changes have no effect; this needs memory of the file's size.
 *
 * Writing: version 1 (2 if the header needs it), little-endian, the data 64-byte aligned.
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

typedef struct fxtap_npy fxtap_npy; /* an open file; for one thread, or any number that only read the view */

/*
 * Opens and maps a file. FXTAP_E_IO (errno, path), FXTAP_E_FORMAT (truncated, not an .npy file, invalid header),
 * FXTAP_E_UNSUPPORTED (structured or object dtype, a newer version, more than 64 dimensions).
 * The caller owns *out and frees it with fxtap_npy_close().
 */
FXTAP_API fxtap_status fxtap_npy_open(const char *path, fxtap_npy **out);

#define FXTAP_READ_COPY 1u /* read the whole file when it is opened instead of mapping it */

/* The same with FXTAP_READ_ flags; FXTAP_E_INVALID for unknown flags. */
FXTAP_API fxtap_status fxtap_npy_open_with(const char *path, uint32_t flags, fxtap_npy **out);

/* The same for bytes in memory, which are borrowed and must outlive *out. `name` is for messages. */
FXTAP_API fxtap_status fxtap_npy_open_bytes(const char *name, const void *bytes, size_t n_bytes, fxtap_npy **out);

FXTAP_API void fxtap_npy_close(fxtap_npy *npy); /* NULL is allowed */

/* The array as a view into the mapping, valid until close. Text arrays (<U) have dtype FXTAP_STRING and no strides. */
FXTAP_API const fxtap_view *fxtap_npy_view(const fxtap_npy *npy);

/* The descr in the file: "<f4"; for text "<U5". Borrowed. */
FXTAP_API const char *fxtap_npy_descr(const fxtap_npy *npy);

FXTAP_API bool fxtap_npy_fortran_order(const fxtap_npy *npy);

/* Bytes of data according to the header, and bytes after them (0 in a well-formed file). */
FXTAP_API uint64_t fxtap_npy_data_bytes(const fxtap_npy *npy);
FXTAP_API uint64_t fxtap_npy_trailing_bytes(const fxtap_npy *npy);

/* The text of a 0-d <U array as UTF-8, owned by `npy`; FXTAP_E_INVALID if it is not text. */
FXTAP_API fxtap_status fxtap_npy_text(fxtap_npy *npy, const char **out);

/*
 * Writes a view to a new file (as its saved dtype, conj and neg resolved; column-major if the view is, else row-major).
 * The file must not exist (FXTAP_E_EXISTS). `path` never names a partial file.
 */
FXTAP_API fxtap_status fxtap_npy_save(const char *path, const fxtap_view *view);

/*
 * Writes the header (magic to padding) of an array with this descr, order and shape to `dst` of `capacity` bytes, and
 * its length, a multiple of 64, to *out. FXTAP_E_INVALID if the capacity is too small (64 dimensions need less than
 * 2048 bytes).
 */
FXTAP_API fxtap_status fxtap_npy_header(const char *descr, bool fortran_order, int32_t ndim, const int64_t *shape,
                                        void *dst, size_t capacity, size_t *out);

#ifdef __cplusplus
}
#endif
#endif
