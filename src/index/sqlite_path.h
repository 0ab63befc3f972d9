/*
 * sqlite_path.h - opening a database at any path and on any file system. SQLite itself takes 512 bytes at most; a longer
 * path is reached through a descriptor of its folder (/proc/self/fd), which must then stay open as long as the database.
 * Where the file system cannot lock files (NFS without its lock manager, Lustre without -o flock), SQLite takes that for
 * a lock that another process holds, and would wait for it: there a database is opened without locks.
 */
#ifndef FX_INDEX_SQLITE_PATH_H
#define FX_INDEX_SQLITE_PATH_H

#include <stdbool.h>

#include <sqlite3.h>

/* What SQLite is given for a path. */
typedef struct fx_sqlite_place {
    char path[512];
    const char *vfs; /* NULL: the usual one */
    int folder_fd;   /* to be closed after the database; -1: none */
} fx_sqlite_place;

/*
 * Where a database is opened to be read: neither it nor its log or journal is opened for writing, created or deleted
 * there, and links are not resolved. A result code. Unless it is SQLITE_OK, only folder_fd is set, to -1.
 */
int fx_sqlite_place_to_read(const char *path, bool with_locks, fx_sqlite_place *out);

/*
 * The first bytes of a database, `n_bytes` at most. 0, or an errno. The file is opened by SQLite: closing a descriptor of
 * our own would release the locks that a writer in this process holds.
 */
int fx_sqlite_read_head(const char *path, void *bytes, int n_bytes, int *n_out);

/*
 * Whether files beside `path` can be locked: tried on one of its own, which is removed at once. True where that cannot
 * be made. A lock that cannot be had although nobody else knows the file is none, whatever the reason.
 */
bool fx_sqlite_can_lock(const char *path);

/* Waits before a try at a lock that another process holds: a little longer each time. What it has waited in all then. */
int fx_sqlite_wait(int n_tries);

/*
 * To be written: as sqlite3_open_v2(), a result code, and a handle (to be closed) also with most errors. *folder_fd_out is the
 * descriptor that the caller closes after the database, or -1.
 */
int fx_sqlite_open(const char *path, bool with_locks, int flags, sqlite3 **out, int *folder_fd_out);

#endif
