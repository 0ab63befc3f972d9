#include "util/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/system.h"

#define CALL_BYTES ((size_t)1 << 30)
#define CALL_PARTS 64

static atomic_size_t call_bytes = CALL_BYTES;

void fx_file_limit_call(size_t n_bytes)
{
    atomic_store(&call_bytes, n_bytes > 0 ? n_bytes : CALL_BYTES);
}

static size_t at_most(size_t n_bytes)
{
    size_t limit = atomic_load_explicit(&call_bytes, memory_order_relaxed);
    return n_bytes < limit ? n_bytes : limit;
}

/* How many leading parts fit the limit of one call; 0: the first is too large. */
static size_t parts_in_call(const struct iovec *parts, size_t n_parts)
{
    size_t n = 0;
    size_t left = at_most(SIZE_MAX);
    while (n < n_parts && n < CALL_PARTS && parts[n].iov_len <= left) {
        left -= parts[n++].iov_len;
    }
    return n;
}

static void advance(struct iovec **parts, size_t *n_parts, size_t n_bytes)
{
    while (*n_parts > 0 && n_bytes >= (*parts)->iov_len) {
        n_bytes -= (*parts)->iov_len;
        (*parts)++;
        (*n_parts)--;
    }
    if (n_bytes > 0) {
        assert(*n_parts > 0);
        (*parts)->iov_base = (char *)(*parts)->iov_base + n_bytes;
        (*parts)->iov_len -= n_bytes;
    }
}

/* A write of no bytes without an error would be repeated forever, so it counts as a full disk. */
int fx_writev_parts(int fd, struct iovec *parts, size_t n_parts)
{
    advance(&parts, &n_parts, 0);
    while (n_parts > 0) {
        size_t n_now = parts_in_call(parts, n_parts);
        struct iovec start = {parts->iov_base, at_most(parts->iov_len)};
        ssize_t n = fx_system.writev(fd, n_now > 0 ? parts : &start, n_now > 0 ? (int)n_now : 1);
        if (n > 0) {
            advance(&parts, &n_parts, (size_t)n);
        } else if (n == 0 || errno != EINTR) {
            return n == 0 ? ENOSPC : errno;
        }
    }
    return 0;
}

fxtap_status fx_writev_all(int fd, struct iovec *parts, size_t n_parts, const char *path)
{
    int error_number = fx_writev_parts(fd, parts, n_parts);
    return error_number == 0 ? FXTAP_OK : fx_error_errno(error_number, "write", path);
}

fxtap_status fx_write_all(int fd, const void *bytes, size_t n_bytes, const char *path)
{
    struct iovec part = {(void *)(uintptr_t)bytes, n_bytes};
    return fx_writev_all(fd, &part, 1, path);
}

fxtap_status fx_pread_all(int fd, void *bytes, size_t n_bytes, uint64_t offset, const char *path)
{
    char *at = bytes;
    if (offset > INT64_MAX || n_bytes > (uint64_t)INT64_MAX - offset) {
        return fx_error_at(FXTAP_E_FORMAT, path, "cannot read %zu bytes at offset %" PRIu64, n_bytes, offset);
    }
    while (n_bytes > 0) {
        ssize_t n = pread(fd, at, at_most(n_bytes), (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fx_error_errno(errno, "read", path);
        }
        if (n == 0) {
            return fx_error_at(FXTAP_E_FORMAT, path, "the file ends at byte %" PRIu64 ", %zu bytes too early", offset,
                               n_bytes);
        }
        at += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return FXTAP_OK;
}

static fxtap_status taken(const char *to)
{
    return fx_error_at(FXTAP_E_EXISTS, to, "already exists");
}

static fxtap_status rename_failed(const char *from, const char *to)
{
    int error_number = errno;
    char action[256];
    snprintf(action, sizeof action, "rename %.200s to", from);
    return fx_error_errno(error_number, action, to);
}

/* For file systems without RENAME_NOREPLACE. */
static fxtap_status rename_by_link(const char *from, const char *to)
{
    if (fx_system.linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0) {
        return unlink(from) == 0 ? FXTAP_OK : fx_error_errno(errno, "remove", from);
    }
    if (errno == EEXIST) {
        return taken(to);
    }
    if (errno != EPERM && errno != ENOTSUP && errno != EMLINK && errno != ENOSYS) {
        return rename_failed(from, to);
    }
    struct stat info; /* a folder, or no hard links here */
    if (lstat(to, &info) == 0) {
        return taken(to);
    }
    return fx_system.rename(AT_FDCWD, from, AT_FDCWD, to, 0) == 0 ? FXTAP_OK : rename_failed(from, to);
}

fxtap_status fx_rename_new(const char *from, const char *to)
{
    if (fx_system.rename(AT_FDCWD, from, AT_FDCWD, to, 1) == 0) {
        return FXTAP_OK;
    }
    if (errno == EEXIST) {
        return taken(to);
    }
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
        return rename_by_link(from, to);
    }
    return rename_failed(from, to);
}
