/*
 * sqlite_path.h - opening a database at any path and on any file system. SQLite itself takes 512 bytes at most; a
 * longer path is reached through a descriptor of its folder (/proc/self/fd), which must then stay open as long as the
 * database. Where the file system cannot lock files (NFS without its lock manager, Lustre without -o flock), SQLite
 * takes that for a lock that another process holds, and would wait for it: there a database is opened without locks.
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
 * What to open a database with for reading: neither it nor its log or journal is then opened for writing, created or
 * deleted, and links are not resolved. Returns a result code; on an error only folder_fd is set, to -1.
 */
int fx_sqlite_place_to_read(const char *path, bool with_locks, fx_sqlite_place *out);

/*
 * Reads the first bytes of a database, at most `n_bytes`. Returns 0 or an errno. SQLite opens the file: closing a
 * descriptor of our own would release the locks that a writer in this process holds.
 */
int fx_sqlite_read_head(const char *path, void *bytes, int n_bytes, int *n_out);

/*
 * Whether files beside `path` can be locked: tries it on a temporary file, which is removed at once. True if that file
 * cannot be created. No other process knows the file, so any failure to lock it means that there are no locks.
 */
bool fx_sqlite_can_lock(const char *path);

/* Waits before the next try at a lock that another process holds. Returns the total waiting time in ms. */
int fx_sqlite_wait(int n_tries);

/*
 * Opens a database for writing. Like sqlite3_open_v2() it returns a result code, and with most errors also a handle to
 * be closed. *folder_fd_out is a descriptor that the caller closes after the database, or -1.
 */
int fx_sqlite_open(const char *path, bool with_locks, int flags, sqlite3 **out, int *folder_fd_out);

#endif
