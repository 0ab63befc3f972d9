/* text_file.c - reads a small hand-written file whole, also from a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/error.h"
#include "util/text_file.h"

#define MAX_BYTES ((size_t)4 << 20)

static fxtap_status read_all(int fd, const char *path, fxtap_buffer *out)
{
    char block[16384];
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fx_error_errno(errno, "read", path);
        }
        if (n == 0) {
            fxtap_buffer_append(out, "", 0); /* `bytes` is not NULL for an empty file either */
            return fxtap_buffer_status(out);
        }
        if (out->length + (size_t)n > MAX_BYTES) {
            return fx_error_at(FXTAP_E_INVALID, path, "file is larger than %zu bytes", MAX_BYTES);
        }
        fxtap_buffer_append(out, block, (size_t)n);
        if (fxtap_buffer_status(out) != FXTAP_OK) {
            return fxtap_buffer_status(out);
        }
    }
}

fxtap_status fx_text_file_read(const char *path, fxtap_buffer *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fx_error_errno(errno, "open", path);
    }
    fxtap_status status = read_all(fd, path, out);
    close(fd);
    return status;
}
