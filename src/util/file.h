/*
 * file.h - whole reads and writes: short ones are continued, interrupted ones repeated, and sizes over what one call
 * moves (2147479552 bytes) done in parts. Each failure is FXTAP_E_IO with errno and `path`, which is for the message.
 * Any thread.
 */
#ifndef FX_UTIL_FILE_H
#define FX_UTIL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fxtap/status.h"

fxtap_status fx_write_all(int fd, const void *bytes, size_t n_bytes, const char *path);

/* All of `parts`, in order; the entries are used up on the way. */
fxtap_status fx_writev_all(int fd, struct iovec *parts, size_t n_parts, const char *path);

/* The same for callers with a message of their own: 0, or the errno. A write that moves nothing is ENOSPC. */
int fx_writev_parts(int fd, struct iovec *parts, size_t n_parts);

/* Exactly `n_bytes` from `offset` on; FXTAP_E_FORMAT where the file ends before. */
fxtap_status fx_pread_all(int fd, void *bytes, size_t n_bytes, uint64_t offset, const char *path);

/*
 * Gives a file (or folder) a name that nothing has yet: FXTAP_E_EXISTS where it is taken. In one step where the
 * system can (renameat2, else link for files). Where a file system can neither, a name that another process takes at
 * the very same moment is lost.
 */
fxtap_status fx_rename_new(const char *from, const char *to);

/* Tests only: no single call moves more than this many bytes; 0 sets it back. Process-wide. */
void fx_file_limit_call(size_t n_bytes);

#endif
