/* npy_save.c - saves a view as a new .npy file: written under a temporary name, then renamed. */
#include "fxtap/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/view.h"
#include "util/error.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/system.h"

#define HEADER_BYTES 2048
#define BLOCK_ELEMS ((uint64_t)1 << 16) /* bytes gathered at a time */

static fxtap_status write_gathered(int fd, const char *path, const fxtap_view *view)
{
    uint64_t count = fx_view_saved_count(view);
    size_t size = fxtap_dtype_size(fxtap_dtype_saved(view->dtype));
    uint64_t block = count < BLOCK_ELEMS ? count : BLOCK_ELEMS;
    void *bytes = fx_realloc_array(NULL, block, size);
    fxtap_status status = bytes == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (uint64_t first = 0; first < count && status == FXTAP_OK; first += block) {
        uint64_t n = count - first < block ? count - first : block;
        status = fxtap_view_gather(view, first, n, bytes);
        if (status == FXTAP_OK) {
            status = fx_write_all(fd, bytes, n * size, path);
        }
    }
    fx_free(bytes);
    return status;
}

static fxtap_status write_array(int fd, const char *path, const fxtap_view *view)
{
    char header[HEADER_BYTES];
    size_t header_bytes;
    int64_t shape[FXTAP_MAX_DIMS];
    uint64_t n_bytes;
    fxtap_status status = fxtap_view_saved_bytes(view, &n_bytes);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_view_saved_shape(view, shape);
    status = fxtap_npy_header(fxtap_dtype_descr(fxtap_dtype_saved(view->dtype)),
                              fxtap_view_order(view) == FXTAP_ORDER_FORTRAN, view->ndim, shape, header, sizeof header,
                              &header_bytes);
    if (status == FXTAP_OK && !fx_view_is_saved_form(view)) {
        status = fx_write_all(fd, header, header_bytes, path);
        return status == FXTAP_OK ? write_gathered(fd, path, view) : status;
    }
    struct iovec parts[2] = {{header, header_bytes}, {(void *)(uintptr_t)view->data, n_bytes}};
    return status == FXTAP_OK ? fx_writev_all(fd, parts, 2, path) : status;
}

/* A temporary name in the folder of `path`, unique on this machine. Freed by the caller. */
static char *temporary_name(const char *path)
{
    static atomic_uint counter;
    const char *slash = strrchr(path, '/');
    size_t n_folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char name[64];
    int n = snprintf(name, sizeof name, ".fxtap-%d-%u.tmp", (int)getpid(), atomic_fetch_add(&counter, 1));
    char *out = fx_alloc(n_folder + (size_t)n + 1);
    if (out != NULL) {
        memcpy(out, path, n_folder);
        memcpy(out + n_folder, name, (size_t)n + 1);
    }
    return out;
}

/* Creates, fills and closes `temporary`; messages name `path`. */
static fxtap_status write_temporary(const char *temporary, const char *path, const fxtap_view *view)
{
    int fd = fx_system.openat(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fx_error_errno(errno, "create", path);
    }
    fxtap_status status = write_array(fd, path, view);
    if (fx_system.close(fd) != 0 && status == FXTAP_OK) {
        status = fx_error_errno(errno, "write", path);
    }
    if (status == FXTAP_OK) {
        status = fx_rename_new(temporary, path);
    }
    if (status != FXTAP_OK) {
        unlink(temporary);
    }
    return status;
}

fxtap_status fxtap_npy_save(const char *path, const fxtap_view *view)
{
    FX_REQUIRE(path);
    FX_REQUIRE(view);
    struct stat info;
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (fxtap_dtype_descr(fxtap_dtype_saved(view->dtype)) == NULL) {
        return fx_error(FXTAP_E_UNSUPPORTED, "dtype %s has no saved form", fxtap_dtype_name(view->dtype));
    }
    if (lstat(path, &info) == 0) {
        return fx_error_at(FXTAP_E_EXISTS, path, "already exists");
    }
    char *temporary = temporary_name(path);
    if (temporary == NULL) {
        return FXTAP_E_NOMEM;
    }
    status = write_temporary(temporary, path, view);
    fx_free(temporary);
    return status;
}
