/* write.c - files that appear whole under their name, or not at all. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(const char *path)
{
    report_error("cannot write '%s': %s", path, strerror(errno));
    return false;
}

static bool write_all(int fd, const char *bytes, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, bytes, n_bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

/* Devices, pipes and the like (/dev/stdout, a shell's >(...)) are written to as they are. */
static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static bool write_special(const char *path, const void *bytes, size_t n_bytes)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return failed(path);
    }
    bool written = write_all(fd, bytes, n_bytes);
    if (!written) {
        failed(path);
    }
    close(fd);
    return written;
}

/* Gives the finished file its name; without `force` only where nothing has it yet. */
static bool publish(const char *temporary, const char *path, bool force)
{
    if (force) {
        return rename(temporary, path) == 0;
    }
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return true;
    }
    if (errno == EEXIST || access(path, F_OK) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(temporary, path) == 0; /* a file system without hard links */
}

static bool is_there(const char *path)
{
    report_error("'%s' already exists; use --force to overwrite it", path);
    return false;
}

/* Whether a file can be made beside where `path` is to be. */
static bool is_folder_writable(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    if ((size_t)snprintf(folder, sizeof folder, "%.*s", length, slash == NULL ? "." : path) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return failed(path);
    }
    return access(folder, W_OK | X_OK) == 0 || failed(path);
}

bool may_write(const char *path, bool force)
{
    struct stat info;
    if (is_special(path)) {
        return true;
    }
    if (path[0] == '\0' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode))) {
        errno = path[0] == '\0' ? ENOENT : EISDIR;
        return failed(path);
    }
    return force || lstat(path, &info) != 0 ? is_folder_writable(path) : is_there(path);
}

bool write_file(const char *path, const void *bytes, size_t n_bytes, bool force)
{
    if (is_special(path)) {
        return write_special(path, bytes, n_bytes);
    }
    char temporary[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    if ((size_t)snprintf(temporary, sizeof temporary, "%.*s.fxtap-XXXXXX", folder, path) >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return failed(path);
    }
    int fd = mkstemp(temporary);
    if (fd < 0) {
        return failed(path);
    }
    mode_t mask = umask(0);
    umask(mask);
    bool done = fchmod(fd, 0666 & ~mask) == 0 && write_all(fd, bytes, n_bytes);
    int error = errno;
    if (close(fd) != 0 && done) {
        error = errno;
        done = false;
    }
    if (done && !publish(temporary, path, force)) {
        error = errno;
        done = false;
    }
    if (!done) {
        unlink(temporary);
        if (error == EEXIST) {
            return is_there(path);
        }
        errno = error;
        return failed(path);
    }
    return true;
}

bool write_stdout(const void *bytes, size_t n_bytes)
{
    if (fwrite(bytes, 1, n_bytes, stdout) != n_bytes || fflush(stdout) != 0) {
        if (errno == EPIPE) {
            exit(EXIT_SUCCESS); /* who reads has seen enough */
        }
        report_error("cannot write to standard output: %s", strerror(errno));
        return false;
    }
    return true;
}

bool flush_buffer(fxtap_buffer *buffer)
{
    if (fxtap_buffer_status(buffer) != FXTAP_OK) {
        report_error("out of memory");
        return false;
    }
    bool written = buffer->length == 0 || write_stdout(buffer->bytes, buffer->length);
    fxtap_buffer_clear(buffer);
    return written;
}
