/*
 * sqlite_path.h - opening a database at any path. SQLite itself takes 512 bytes at most; a longer path is reached
 * through a descriptor of its folder (/proc/self/fd), which must then stay open as long as the database.
 */
#ifndef FX_STORE_SQLITE_PATH_H
#define FX_STORE_SQLITE_PATH_H

#include <sqlite3.h>

/* What SQLite is given for a path. */
typedef struct fx_sqlite_place {
    char path[512];
    const char *vfs; /* NULL: the usual one */
    int folder_fd;   /* to be closed after the database; -1: none */
} fx_sqlite_place;

/* A result code. Unless it is SQLITE_OK, only folder_fd is set, to -1. */
int fx_sqlite_place_of(const char *path, fx_sqlite_place *out);

/*
 * As sqlite3_open_v2(): a result code, and a handle (to be closed) also with most errors. *folder_fd_out is the
 * descriptor that the caller closes after the database, or -1.
 */
int fx_sqlite_open(const char *path, int flags, sqlite3 **out, int *folder_fd_out);

#endif
