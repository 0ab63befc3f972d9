/*
 * Preloaded into Python: reports on stderr each call that opens, creates, stats, moves or links a file below a folder
 * named "watched" while its thread holds the GIL, and at exit the total number of such calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int n_calls;

static int is_watched(int dir_fd, const char *path)
{
    char link[64], folder[4096] = "";
    if (path[0] != '/' && dir_fd >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
        return readlink(link, folder, sizeof folder - 1) > 0 && strstr(folder, "/watched") != NULL;
    }
    return strstr(path, "/watched") != NULL;
}

static void watch(const char *call, int dir_fd, const char *path)
{
    static int (*holds_the_gil)(void);
    if (path == NULL || !is_watched(dir_fd, path)) {
        return;
    }
    if (holds_the_gil == NULL) {
        holds_the_gil = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
    }
    n_calls++;
    if (holds_the_gil != NULL && holds_the_gil()) {
        fprintf(stderr, "held: %s %s\n", call, path);
    }
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "watched: %d\n", n_calls);
}

#define WATCH(result, name, parameters, dir_fd, path, arguments)                                                       \
    result name parameters                                                                                             \
    {                                                                                                                  \
        static result(*real) parameters;                                                                               \
        if (real == NULL) {                                                                                            \
            real = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                                      \
        }                                                                                                              \
        watch(#name, dir_fd, path);                                                                                    \
        return real arguments;                                                                                         \
    }

/* If a caller passes no mode, it is undefined, and not used. */
WATCH(int, openat, (int at, const char *path, int flags, mode_t mode), at, path, (at, path, flags, mode))
WATCH(int, openat64, (int at, const char *path, int flags, mode_t mode), at, path, (at, path, flags, mode))
WATCH(int, open, (const char *path, int flags, mode_t mode), -1, path, (path, flags, mode))
WATCH(int, open64, (const char *path, int flags, mode_t mode), -1, path, (path, flags, mode))
WATCH(int, mkdirat, (int at, const char *path, mode_t mode), at, path, (at, path, mode))
WATCH(int, unlinkat, (int at, const char *path, int flags), at, path, (at, path, flags))
WATCH(int, linkat, (int from, const char *old, int at, const char *path, int flags), at, path,
      (from, old, at, path, flags))
WATCH(int, renameat2, (int from, const char *old, int at, const char *path, unsigned flags), at, path,
      (from, old, at, path, flags))
WATCH(int, fstatat, (int at, const char *path, struct stat *out, int flags), at, path, (at, path, out, flags))
WATCH(int, fstatat64, (int at, const char *path, struct stat64 *out, int flags), at, path, (at, path, out, flags))
WATCH(int, lstat, (const char *path, struct stat *out), -1, path, (path, out))
WATCH(int, lstat64, (const char *path, struct stat64 *out), -1, path, (path, out))
WATCH(int, stat, (const char *path, struct stat *out), -1, path, (path, out))
WATCH(int, stat64, (const char *path, struct stat64 *out), -1, path, (path, out))
