/*
 * sqlite_path.h - opening a database at any path and on any file system.
 *
 * SQLite accepts paths of up to 512 bytes. A longer path is opened through a descriptor of its folder (/proc/self/fd),
 * which must stay open as long as the database. On a file system without locks (NFS without its lock manager, Lustre
 * without -o flock), SQLite mistakes the error for a lock that another process holds, and would wait for it: there a
 * database is opened without locks.
 */
#ifndef FX_INDEX_SQLITE_PATH_H
#define FX_INDEX_SQLITE_PATH_H

#include <stdbool.h>

#include <sqlite3.h>

/* The arguments with which SQLite opens a path. */
typedef struct fx_sqlite_place {
    char path[512];
    const char *vfs; /* NULL: the default */
    int folder_fd;   /* close it after the database; -1: none */
} fx_sqlite_place;

/*
 * The arguments for reading a database: neither the database nor its log or journal is opened for writing, created or
 * deleted, and links are not resolved. Returns a result code; on an error only folder_fd is set, to -1.
 */
int fx_sqlite_place_to_read(const char *path, bool with_locks, fx_sqlite_place *out);

/*
 * Reads the first bytes of a database, at most `n_bytes`. Returns 0 or an errno. The file is opened by SQLite, because
 * closing a descriptor of our own would release the locks that a writer in this process holds.
 */
int fx_sqlite_read_head(const char *path, void *bytes, int n_bytes, int *n_out);

/*
 * Whether files in the folder of `path` can be locked: tests it on a temporary file. True if that file cannot be
 * created. No other process knows the file, so a failure to lock it means that the file system has no locks.
 */
bool fx_sqlite_can_lock(const char *path);

/* Waits before another attempt to take a lock that another process holds. Returns the total waiting time in ms. */
int fx_sqlite_wait(int n_tries);

/*
 * Opens a database for writing. Like sqlite3_open_v2(), returns a result code and, with most errors, a handle that must
 * be closed. *folder_fd_out is a descriptor that the caller closes after the database, or -1.
 */
int fx_sqlite_open(const char *path, bool with_locks, int flags, sqlite3 **out, int *folder_fd_out);

#endif
