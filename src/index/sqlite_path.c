#include "index/sqlite_path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/memory.h"

#define UNLOCKED_VFS "unix-none" /* SQLite's own */
#define MOST_BYTES 480 /* leaves room for "-journal" */
#define LOCK_FIRST 0x40000000 /* where SQLite's locks lie */
#define LOCK_BYTES 512
#define MOST_PROBES 1000

/* [0]: with SQLite's locks, [1]: without. */
static sqlite3_vfs short_vfs[2];
static const char *const usual_names[2] = {NULL, UNLOCKED_VFS};
static const char *const short_names[2] = {"fxtap-short", "fxtap-short-none"};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;

/* Names stay as they are: the default would follow the link in /proc back to the long path. */
static int keep_name(sqlite3_vfs *vfs, const char *name, int capacity, char *out)
{
    (void)vfs;
    int written = snprintf(out, (size_t)capacity, "%s", name);
    return written < capacity ? SQLITE_OK : SQLITE_CANTOPEN;
}

static void register_vfs(void)
{
    registered = SQLITE_OK;
    for (int i = 0; i < 2 && registered == SQLITE_OK; i++) {
        const sqlite3_vfs *usual = sqlite3_vfs_find(usual_names[i]);
        if (usual == NULL) {
            registered = SQLITE_ERROR;
            break;
        }
        short_vfs[i] = *usual;
        short_vfs[i].zName = short_names[i];
        short_vfs[i].pNext = NULL;
        short_vfs[i].xFullPathname = keep_name;
        registered = sqlite3_vfs_register(&short_vfs[i], 0);
    }
}

static int place_through_folder(const char *path, bool with_locks, fx_sqlite_place *out)
{
    pthread_once(&once, register_vfs);
    const char *slash = strrchr(path, '/');
    if (registered != SQLITE_OK || slash == NULL) {
        return SQLITE_CANTOPEN;
    }
    char *folder = fx_strdup(path);
    if (folder == NULL) {
        return SQLITE_NOMEM;
    }
    folder[slash - path + 1] = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fx_free(folder);
    if (fd < 0) {
        return SQLITE_CANTOPEN;
    }
    if (snprintf(out->path, sizeof out->path, "/proc/self/fd/%d%s", fd, slash) > MOST_BYTES) {
        close(fd);
        return SQLITE_CANTOPEN;
    }
    out->vfs = short_names[with_locks ? 0 : 1];
    out->folder_fd = fd;
    return SQLITE_OK;
}

int fx_sqlite_place_of(const char *path, bool with_locks, fx_sqlite_place *out)
{
    out->vfs = usual_names[with_locks ? 0 : 1];
    out->folder_fd = -1;
    size_t n_bytes = strlen(path);
    if (n_bytes > MOST_BYTES) {
        return place_through_folder(path, with_locks, out);
    }
    memcpy(out->path, path, n_bytes + 1);
    return SQLITE_OK;
}

int fx_sqlite_open(const char *path, bool with_locks, int flags, sqlite3 **out, int *folder_fd_out)
{
    fx_sqlite_place place;
    *out = NULL;
    int code = fx_sqlite_place_of(path, with_locks, &place);
    *folder_fd_out = place.folder_fd;
    return code == SQLITE_OK ? sqlite3_open_v2(place.path, out, flags, place.vfs) : code;
}

/* A file of its own beside `path`; -1: none can be made. */
static int make_probe(const char *path)
{
    size_t n_bytes = strlen(path) + 64;
    char *name = fx_alloc(n_bytes);
    int fd = -1;
    for (int i = 0; name != NULL && i < MOST_PROBES; i++) {
        snprintf(name, n_bytes, "%s-probe-%lld-%d", path, (long long)getpid(), i);
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    if (fd >= 0) {
        unlink(name);
    }
    fx_free(name);
    return fd;
}

bool fx_sqlite_can_lock(const char *path)
{
    static const short types[] = {F_RDLCK, F_WRLCK};
    int fd = make_probe(path);
    bool can = true;
    for (int i = 0; fd >= 0 && can && i < 2; i++) {
        struct flock lock = {.l_type = types[i], .l_whence = SEEK_SET, .l_start = LOCK_FIRST, .l_len = LOCK_BYTES};
        int result;
        do {
            result = fcntl(fd, F_SETLK, &lock);
        } while (result != 0 && errno == EINTR);
        can = result == 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return can;
}

int fx_sqlite_wait(int n_tries)
{
    enum { SHORT_TRIES = 10, LONG_MS = 10 };
    sqlite3_sleep(n_tries < SHORT_TRIES ? 1 : LONG_MS);
    return n_tries < SHORT_TRIES ? n_tries + 1 : SHORT_TRIES + (n_tries - SHORT_TRIES + 1) * LONG_MS;
}
