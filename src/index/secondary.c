#include "index/secondary.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/schema.h"
#include "index/sqlite_path.h"

#define WORTH_BYTES ((off_t)1 << 20) /* smaller ones are read whole about as fast */

/* The first covers counting a graph's nodes without reading their stacks. */
static const char make_sql[] =
    "BEGIN IMMEDIATE;"
    "CREATE INDEX IF NOT EXISTS node_graph ON node(graph_id, position, skipped);"
    "CREATE INDEX IF NOT EXISTS slot_node ON slot(node_id);"
    "COMMIT";
static const char count_sql[] =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name IN ('node_graph', 'slot_node')";

static bool may_write(const char *path)
{
    char folder[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) >= sizeof folder) {
        return false;
    }
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= WORTH_BYTES &&
           access(path, W_OK) == 0 && access(folder, W_OK) == 0;
}

static bool is_ours(sqlite3 *database)
{
    sqlite3_stmt *statement = NULL;
    bool ours = sqlite3_prepare_v2(database, "PRAGMA application_id", -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW &&
                sqlite3_column_int64(statement, 0) == FX_INDEX_APPLICATION_ID;
    sqlite3_finalize(statement);
    return ours;
}

bool fx_index_wants_secondary(sqlite3 *database, const char *path)
{
    sqlite3_stmt *statement = NULL;
    bool missing = sqlite3_prepare_v2(database, count_sql, -1, &statement, NULL) == SQLITE_OK &&
                   sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) < 2;
    sqlite3_finalize(statement);
    return missing && may_write(path);
}

void fx_index_make_secondary(const char *path)
{
    sqlite3 *database = NULL;
    int folder_fd;
    if (fx_sqlite_open(path, true, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, &database, &folder_fd) == SQLITE_OK) {
        sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        if (is_ours(database) && sqlite3_exec(database, make_sql, NULL, NULL, NULL) != SQLITE_OK) {
            sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL); /* busy, full, damaged: read without */
        }
    }
    sqlite3_close_v2(database);
    if (folder_fd >= 0) {
        close(folder_fd);
    }
}
