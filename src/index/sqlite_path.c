#include "index/sqlite_path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/memory.h"

#define UNLOCKED_VFS "unix-none" /* SQLite's name for it */
#define MAX_BYTES 480            /* leaves space for "-journal" */
#define LOCK_FIRST 0x40000000    /* where SQLite places its locks */
#define LOCK_BYTES 512
#define MAX_PROBES 1000

/* Keeps names unchanged: by default SQLite would resolve the link in /proc to the long path. */
static int keep_name(sqlite3_vfs *vfs, const char *name, int capacity, char *out)
{
    (void)vfs;
    int written = snprintf(out, (size_t)capacity, "%s", name);
    return written < capacity ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* For writing through a long path, and for reading; index 0 uses SQLite's locks, index 1 none. */
enum { LONG_PATH, READING, N_USES };
static sqlite3_vfs own_vfs[N_USES][2];
static int (*usual_open[2])(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static const char *const usual_names[2] = {NULL, UNLOCKED_VFS};
static const char *const own_names[N_USES][2] = {{"fxtap-short", "fxtap-short-none"},
                                                 {"fxtap-read", "fxtap-read-none"}};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;

/* SQLite opens the log for writing, and creates it if it is missing, even if the database is only read. */
static int open_read_only(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out)
{
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0) {
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    }
    return usual_open[vfs == &own_vfs[READING][1]](vfs, name, file, flags, flags_out);
}

static int delete_nothing(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    (void)name;
    (void)sync_folder;
    return SQLITE_IOERR_DELETE;
}

static void register_vfs(void)
{
    for (int i = 0; i < N_USES * 2; i++) {
        int use = i / 2, unlocked = i % 2;
        const sqlite3_vfs *usual = sqlite3_vfs_find(usual_names[unlocked]);
        if (usual == NULL) {
            return;
        }
        sqlite3_vfs *vfs = &own_vfs[use][unlocked];
        *vfs = *usual;
        vfs->zName = own_names[use][unlocked];
        vfs->pNext = NULL;
        vfs->xFullPathname = keep_name;
        if (use == READING) {
            usual_open[unlocked] = usual->xOpen;
            vfs->xOpen = open_read_only;
            vfs->xDelete = delete_nothing;
        }
        if (sqlite3_vfs_register(vfs, 0) != SQLITE_OK) {
            return;
        }
    }
    registered = SQLITE_OK;
}

static int place_through_folder(const char *path, fx_sqlite_place *out)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
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
    if (snprintf(out->path, sizeof out->path, "/proc/self/fd/%d%s", fd, slash) > MAX_BYTES) {
        close(fd);
        return SQLITE_CANTOPEN;
    }
    out->folder_fd = fd;
    return SQLITE_OK;
}

static int find_place(const char *path, bool with_locks, bool is_read_only, fx_sqlite_place *out)
{
    size_t n_bytes = strlen(path);
    out->vfs = usual_names[!with_locks];
    out->folder_fd = -1;
    if (is_read_only || n_bytes > MAX_BYTES) {
        pthread_once(&once, register_vfs);
        if (registered != SQLITE_OK) {
            return registered;
        }
        out->vfs = own_names[is_read_only ? READING : LONG_PATH][!with_locks];
    }
    if (n_bytes > MAX_BYTES) {
        return place_through_folder(path, out);
    }
    memcpy(out->path, path, n_bytes + 1);
    return SQLITE_OK;
}

int fx_sqlite_place_to_read(const char *path, bool with_locks, fx_sqlite_place *out)
{
    return find_place(path, with_locks, true, out);
}

int fx_sqlite_open(const char *path, bool with_locks, int flags, sqlite3 **out, int *folder_fd_out)
{
    fx_sqlite_place place;
    *out = NULL;
    int code = find_place(path, with_locks, false, &place);
    *folder_fd_out = place.folder_fd;
    return code == SQLITE_OK ? sqlite3_open_v2(place.path, out, flags, place.vfs) : code;
}

static int read_open_file(sqlite3_file *file, void *bytes, int n_bytes, int *n_out)
{
    sqlite3_int64 size = 0;
    int code = file->pMethods->xFileSize(file, &size);
    *n_out = size < n_bytes ? (int)size : n_bytes;
    if (code == SQLITE_OK && *n_out > 0) {
        code = file->pMethods->xRead(file, bytes, *n_out, 0);
    }
    return code == SQLITE_OK ? 0 : code == SQLITE_IOERR_NOMEM ? ENOMEM : errno != 0 ? errno : EIO;
}

int fx_sqlite_read_head(const char *path, void *bytes, int n_bytes, int *n_out)
{
    fx_sqlite_place place;
    union { /* SQLite's own VFS files need less than 200 bytes */
        sqlite3_file file;
        max_align_t aligned;
        char bytes[1024];
    } storage = {0};
    errno = 0;
    int code = fx_sqlite_place_to_read(path, true, &place);
    if (code != SQLITE_OK) {
        return code == SQLITE_NOMEM ? ENOMEM : errno != 0 ? errno : EIO;
    }
    sqlite3_vfs *vfs = sqlite3_vfs_find(place.vfs);
    const char *name = sqlite3_create_filename(place.path, "", "", 0, NULL);
    int result = name == NULL ? ENOMEM : EIO;
    if (name != NULL && vfs != NULL && vfs->szOsFile <= (int)sizeof storage) {
        int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
        code = vfs->xOpen(vfs, name, &storage.file, flags, NULL);
        result = code == SQLITE_OK ? read_open_file(&storage.file, bytes, n_bytes, n_out) : errno != 0 ? errno : EIO;
    }
    if (storage.file.pMethods != NULL) {
        storage.file.pMethods->xClose(&storage.file);
    }
    sqlite3_free_filename(name);
    if (place.folder_fd >= 0) {
        close(place.folder_fd);
    }
    return result;
}

/* Creates and unlinks a temporary file beside `path`; -1 if that fails. */
static int make_probe(const char *path)
{
    size_t n_bytes = strlen(path) + 64;
    char *name = fx_alloc(n_bytes);
    int fd = -1;
    for (int i = 0; name != NULL && i < MAX_PROBES; i++) {
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
