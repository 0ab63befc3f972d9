/*
 * sqlite_path.h - opening a database at any path. SQLite itself takes 512 bytes at most; a longer path is reached
 * through a descriptor of its folder (/proc/self/fd), which must then stay open as long as the database.
 */
#ifndef FX_STORE_SQLITE_PATH_H
#define FX_STORE_SQLITE_PATH_H

#include <sqlite3.h>

/*
 * As sqlite3_open_v2(): a result code, and a handle (to be closed) also with most errors. *folder_fd_out is the
 * descriptor that the caller closes after the database, or -1.
 */
int fx_sqlite_open(const char *path, int flags, sqlite3 **out, int *folder_fd_out);

#endif
