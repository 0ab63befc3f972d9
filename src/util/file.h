/*
 * file.h - complete reads and writes: short ones are continued, interrupted ones repeated, and sizes over the limit of
 * one call (2147479552 bytes) split. Each failure is FXTAP_E_IO with errno; `path` is for the message. Any thread.
 */
#ifndef FX_UTIL_FILE_H
#define FX_UTIL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fxtap/status.h"

fxtap_status fx_write_all(int fd, const void *bytes, size_t n_bytes, const char *path);

/* Writes all of `parts`, in order; the entries are modified. */
fxtap_status fx_writev_all(int fd, struct iovec *parts, size_t n_parts, const char *path);

/* The same for callers that set their own message: returns 0 or an errno. A write of no bytes is ENOSPC. */
int fx_writev_parts(int fd, struct iovec *parts, size_t n_parts);

/* Reads exactly `n_bytes` at `offset`; FXTAP_E_FORMAT if the file is shorter. */
fxtap_status fx_pread_all(int fd, void *bytes, size_t n_bytes, uint64_t offset, const char *path);

/*
 * Renames a file or folder without replacing anything: FXTAP_E_EXISTS if the name exists. Atomic if the system supports
 * it (renameat2, else link for files). On a file system that supports neither, a file that another process creates
 * under that name at the same moment is lost.
 */
fxtap_status fx_rename_new(const char *from, const char *to);

/* Tests only: limits the bytes of a single call; 0 resets the limit. Process-wide. */
void fx_file_limit_call(size_t n_bytes);

#endif
