/* npy_file.c - opening .npy files: small ones are read, large ones mapped. */
#include "fxtap/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/npy_file.h"
#include "tensor/npy_header.h"
#include "tensor/text.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/file.h"
#include "util/memory.h"

#define TINY_BYTES ((size_t)8 << 10)
#define READ_BYTES ((size_t)64 << 10) /* up to this size a read is cheaper than a mapping */

struct fxtap_npy {
    void *owned;   /* the bytes of a small file, or NULL */
    void *mapping; /* the mapping of a large file, or NULL */
    size_t n_mapped;
    char *text; /* set by fxtap_npy_text() */
    uint64_t trailing_bytes;
    fx_npy_header header;
    int64_t strides[FXTAP_MAX_DIMS];
    fxtap_view view;
};

/* Fills header and view from the bytes of the whole file. */
static fxtap_status understand(fxtap_npy *npy, const char *name, const void *bytes, size_t n_bytes)
{
    fx_npy_header *header = &npy->header;
    fxtap_status status = fx_npy_parse(name, bytes, n_bytes, header);
    if (status != FXTAP_OK) {
        return status;
    }
    uint64_t n_after = n_bytes - header->data_offset;
    if (header->data_bytes > n_after) {
        return fx_error_at(FXTAP_E_FORMAT, name,
                           "truncated: the header declares %" PRIu64 " bytes of data, found %" PRIu64,
                           header->data_bytes, n_after);
    }
    npy->trailing_bytes = n_after - header->data_bytes;
    fx_contiguous_strides(header->ndim, header->shape, header->fortran_order, npy->strides);
    npy->view = (fxtap_view){.data = (const char *)bytes + header->data_offset,
                             .dtype = header->dtype,
                             .ndim = header->ndim,
                             .flags = header->big_endian ? FXTAP_VIEW_BIG_ENDIAN : 0,
                             .shape = header->shape,
                             .strides = header->dtype == FXTAP_STRING ? NULL : npy->strides};
    return FXTAP_OK;
}

fxtap_status fxtap_npy_open_bytes(const char *name, const void *bytes, size_t n_bytes, fxtap_npy **out)
{
    FX_REQUIRE(name);
    FX_REQUIRE(out);
    if (n_bytes > 0) {
        FX_REQUIRE(bytes);
    }
    fxtap_npy *npy = fx_calloc(1, sizeof *npy);
    if (npy == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = understand(npy, name, bytes, n_bytes);
    if (status != FXTAP_OK) {
        fxtap_npy_close(npy);
        return status;
    }
    *out = npy;
    return FXTAP_OK;
}

/* Only a file that begins as an .npy file is read whole: for any other, the beginning is enough for the message. */
static fxtap_status read_whole(fxtap_npy *npy, int fd, const char *path, size_t n_bytes)
{
    fx_npy_header header;
    npy->owned = fx_alloc(n_bytes < READ_BYTES ? n_bytes : READ_BYTES);
    if (npy->owned == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (n_bytes <= READ_BYTES) {
        return fx_pread_all(fd, npy->owned, n_bytes, 0, path);
    }
    fxtap_status status = fx_pread_all(fd, npy->owned, READ_BYTES, 0, path);
    if (status == FXTAP_OK && memcmp(npy->owned, "\x93NUMPY", 6) != 0) {
        return fx_npy_parse(path, npy->owned, READ_BYTES, &header);
    }
    void *whole = status == FXTAP_OK ? fx_realloc_array(npy->owned, n_bytes, 1) : NULL;
    if (whole == NULL) {
        return status == FXTAP_OK ? FXTAP_E_NOMEM : status;
    }
    npy->owned = whole;
    return fx_pread_all(fd, (char *)whole + READ_BYTES, n_bytes - READ_BYTES, READ_BYTES, path);
}

static fxtap_status load(fxtap_npy *npy, int fd, const char *path, size_t n_bytes, uint32_t flags)
{
    if (n_bytes <= READ_BYTES || (flags & FXTAP_READ_COPY) != 0) {
        return read_whole(npy, fd, path, n_bytes);
    }
    void *mapping = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
        return fx_error_errno(errno, "map", path);
    }
    npy->mapping = mapping;
    npy->n_mapped = n_bytes;
    return FXTAP_OK;
}

/* A pipe or a device may block or never end, and a folder has no bytes. */
static fxtap_status file_size(int fd, const char *path, size_t *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return fx_error_errno(errno, "examine", path);
    }
    if (S_ISDIR(info.st_mode)) {
        return fx_error_errno(EISDIR, "read", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return fx_error_at(FXTAP_E_FORMAT, path, "not a regular file");
    }
    *out = (size_t)info.st_size;
    return FXTAP_OK;
}

/*
 * Reads a tiny file with one call, since asking for its size takes as long as reading it. NULL if the file is larger,
 * or on any error: the general way then reports it.
 */
static fxtap_npy *open_tiny(int fd, const char *path)
{
    char bytes[TINY_BYTES];
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    if (n <= 0 || (size_t)n == sizeof bytes) {
        return NULL;
    }
    fxtap_npy *npy = fx_calloc(1, sizeof *npy);
    void *copy = fx_alloc((size_t)n);
    if (npy == NULL || copy == NULL) {
        fx_free(npy);
        fx_free(copy);
        return NULL;
    }
    npy->owned = memcpy(copy, bytes, (size_t)n);
    if (understand(npy, path, copy, (size_t)n) != FXTAP_OK) {
        fxtap_npy_close(npy);
        return NULL;
    }
    return npy;
}

/* Takes ownership of the descriptor. */
static fxtap_status open_fd(int fd, const char *path, uint32_t flags, fxtap_npy **out)
{
    fxtap_npy *tiny = open_tiny(fd, path);
    if (tiny != NULL) {
        close(fd);
        *out = tiny;
        return FXTAP_OK;
    }
    size_t n_bytes = 0;
    fxtap_npy *npy = NULL;
    fxtap_status status = file_size(fd, path, &n_bytes);
    if (status == FXTAP_OK) {
        npy = fx_calloc(1, sizeof *npy);
        status = npy == NULL ? FXTAP_E_NOMEM : load(npy, fd, path, n_bytes, flags);
    }
    close(fd);
    if (status == FXTAP_OK) {
        status = understand(npy, path, npy->owned != NULL ? npy->owned : npy->mapping, n_bytes);
    }
    if (status != FXTAP_OK) {
        fxtap_npy_close(npy);
        return status;
    }
    *out = npy;
    return FXTAP_OK;
}

fxtap_status fxtap_npy_open_with(const char *path, uint32_t flags, fxtap_npy **out)
{
    FX_REQUIRE(path);
    FX_REQUIRE(out);
    if ((flags & ~FXTAP_READ_COPY) != 0) {
        return fx_error(FXTAP_E_INVALID, "unknown read flags 0x%" PRIx32, flags);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? fx_error_errno(errno, "open", path) : open_fd(fd, path, flags, out);
}

fxtap_status fxtap_npy_open(const char *path, fxtap_npy **out)
{
    return fxtap_npy_open_with(path, 0, out);
}

fxtap_status fx_npy_open_at(int folder_fd, const char *name, const char *path, uint32_t flags, fxtap_npy **out)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ELOOP) {
        return fx_error_at(FXTAP_E_FORMAT, path, "a symbolic link, not followed");
    }
    return fd < 0 ? fx_error_errno(errno, "open", path) : open_fd(fd, path, flags, out);
}

void fxtap_npy_close(fxtap_npy *npy)
{
    if (npy == NULL) {
        return;
    }
    if (npy->mapping != NULL) {
        munmap(npy->mapping, npy->n_mapped);
    }
    fx_free(npy->owned);
    fx_free(npy->text);
    fx_free(npy);
}

const fxtap_view *fxtap_npy_view(const fxtap_npy *npy)
{
    return &npy->view;
}

const char *fxtap_npy_descr(const fxtap_npy *npy)
{
    return npy->header.descr;
}

bool fxtap_npy_fortran_order(const fxtap_npy *npy)
{
    return npy->header.fortran_order;
}

uint64_t fxtap_npy_data_bytes(const fxtap_npy *npy)
{
    return npy->header.data_bytes;
}

uint64_t fxtap_npy_trailing_bytes(const fxtap_npy *npy)
{
    return npy->trailing_bytes;
}

fxtap_status fxtap_npy_text(fxtap_npy *npy, const char **out)
{
    FX_REQUIRE(npy);
    FX_REQUIRE(out);
    const fx_npy_header *header = &npy->header;
    if (header->dtype != FXTAP_STRING || header->ndim != 0) {
        return fx_error(FXTAP_E_INVALID, "an array of descr %s with %" PRId32 " dimensions is not text", header->descr,
                        header->ndim);
    }
    if (npy->text == NULL) {
        npy->text = fx_text_from_ucs4(npy->view.data, header->item_bytes / 4, header->big_endian);
        if (npy->text == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    *out = npy->text;
    return FXTAP_OK;
}
