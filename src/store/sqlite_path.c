#include "store/sqlite_path.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/memory.h"

#define VFS_NAME "fxtap-short"
#define MOST_BYTES 480 /* leaves room for "-journal" */

static sqlite3_vfs short_vfs;
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
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    if (usual != NULL) {
        short_vfs = *usual;
        short_vfs.zName = VFS_NAME;
        short_vfs.pNext = NULL;
        short_vfs.xFullPathname = keep_name;
        registered = sqlite3_vfs_register(&short_vfs, 0);
    }
}

static int place_through_folder(const char *path, fx_sqlite_place *out)
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
    out->vfs = VFS_NAME;
    out->folder_fd = fd;
    return SQLITE_OK;
}

int fx_sqlite_place_of(const char *path, fx_sqlite_place *out)
{
    out->vfs = NULL;
    out->folder_fd = -1;
    size_t n_bytes = strlen(path);
    if (n_bytes > MOST_BYTES) {
        return place_through_folder(path, out);
    }
    memcpy(out->path, path, n_bytes + 1);
    return SQLITE_OK;
}

int fx_sqlite_open(const char *path, int flags, sqlite3 **out, int *folder_fd_out)
{
    fx_sqlite_place place;
    *out = NULL;
    int code = fx_sqlite_place_of(path, &place);
    *folder_fd_out = place.folder_fd;
    return code == SQLITE_OK ? sqlite3_open_v2(place.path, out, flags, place.vfs) : code;
}
