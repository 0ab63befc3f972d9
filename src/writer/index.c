/* The index's database: opening, creating, one transaction per call. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "index/schema.h"
#include "index/sqlite_path.h"
#include "util/memory.h"
#include "writer/dump.h"
#include "writer/index_rows.h"

#define BUSY_MS 60000           /* another process that starts or ends a step in the same index takes milliseconds */
#define RETRY_DIVISOR 60        /* after a wait in vain the next one is so many times shorter */
#define MAGIC "SQLite format 3" /* with its NUL */
#define WRITE "write the index" /* the action in messages */
#define MAX_VALUES 1000000

/* Of statfs(2). */
#define EXT4_SUPER_MAGIC 0xEF53u
#define XFS_MAGIC 0x58465342u
#define TMPFS_MAGIC 0x01021994u
#define OVERLAYFS_MAGIC 0x794C7630u

typedef struct value_row {
    fxtap_hash128 key;
    int64_t row;
} value_row;

static const char *const statement_sql[FX_SQL_COUNT] = {
    [FX_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [FX_SQL_COMMIT] = "COMMIT",
    [FX_SQL_RUN] = "INSERT INTO run(pid, host, started_us, world_size, rank, type, fxtap, versions, command)"
                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [FX_SQL_RUN_END] = "UPDATE run SET ended_us = ?1 WHERE id = ?2",
    [FX_SQL_GRAPH] = "INSERT INTO graph(run_id, graph, kind, strict_key, structural_key, occurrence, record)"
                     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [FX_SQL_NODE] = "INSERT INTO node(graph_id, position, name, target, stem, source_file, source_line,"
                    " source_function, source_code, stack, module_path, module_type, flags, skipped)"
                    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    [FX_SQL_SLOT] = "INSERT INTO slot(node_id, io, position, arg_name, prefix) VALUES(?1, ?2, ?3, ?4, ?5)",
    [FX_SQL_VALUE] = "INSERT INTO value(dtype, descr, fortran, shape, strides, layout, device, bytes, hash, count,"
                     " finite_count, nan_count, pos_inf_count, neg_inf_count, zero_count, subnormal_count, min, max,"
                     " abs_max, mean, mean_imag, std, rms, l2_norm) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
                     " ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
    [FX_SQL_TENSOR] = "INSERT OR REPLACE INTO tensor(step_id, slot_id, stamp_us, value_id, skipped)"
                      " VALUES(?1, ?2, ?3, ?4, ?5)",
    [FX_SQL_LAST_STEP] = "SELECT coalesce(max(id), 0) FROM step",
    [FX_SQL_STEP] = "INSERT OR REPLACE INTO step(id, graph_id, step, call, state, folder, partial, started_us,"
                    " ended_us, reason) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [FX_SQL_RESTAMP] = "DELETE FROM tensor WHERE step_id = ?1 AND slot_id = ?2 AND stamp_us = ?3",
    [FX_SQL_FINDING] = "INSERT INTO finding(step_id, node_id, stamp_us, kind, position, arg_name, count, total)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [FX_SQL_UNDEFINED] = "INSERT INTO undefined(value_id, count, ranges, hash) VALUES(?1, ?2, ?3, ?4)",
};

void fx_index_init(fx_index *index)
{
    memset(index, 0, sizeof *index);
    index->folder_fd = -1;
    index->busy_ms = BUSY_MS;
    pthread_mutex_init(&index->lock, NULL);
    fx_table_init(&index->values, sizeof(value_row), MAX_VALUES, NULL, NULL);
}

int64_t fx_index_find_value(const fx_index *index, fxtap_hash128 key)
{
    const value_row *found = fx_table_find(&index->values, key);
    return found != NULL ? found->row : 0;
}

void fx_index_remember_value(fx_index *index, fxtap_hash128 key, int64_t row)
{
    value_row *record = fx_table_insert(&index->values, key);
    if (record != NULL) { /* without memory the value gets a second row */
        record->row = row;
    }
}

static bool is_the_disk(int code)
{
    return code == SQLITE_IOERR || code == SQLITE_PERM;
}

/*
 * The errno of an I/O error. SQLite keeps it if the error occurred in a statement, but not in the commit at its end;
 * then the files have it.
 */
static int system_error(sqlite3 *db, int code)
{
    sqlite3_file *log = NULL;
    int number = 0;
    if (db != NULL && code == SQLITE_IOERR) {
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
        if (log != NULL && log->pMethods != NULL) {
            log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
        }
        if (number == 0) {
            sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
        }
    }
    if (number == 0 && db != NULL) {
        number = sqlite3_system_errno(db);
    }
    return number != 0 ? number : EIO;
}

/*
 * SQLite opens a file that it cannot write for reading; if that fails too, its last error may concern another file,
 * such as a missing log.
 */
static int open_error(sqlite3 *db, int code, const char *path)
{
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
        return errno;
    }
    return code == SQLITE_READONLY ? EACCES : system_error(db, code);
}

static int wait_ms(const fx_index *index)
{
    return index->was_busy ? index->busy_ms / RETRY_DIVISOR : index->busy_ms;
}

/* Reading can run into it as well: it makes the log's shared map and rolls back a journal. */
static bool is_disk_full(int error_number)
{
    return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

/* Whether a lock failed because the file system no longer supports locks (its lock manager is gone). */
static bool has_lost_locks(fx_index *index)
{
    if (index->has_locks && !index->has_lost_locks) {
        index->has_lost_locks = !fx_sqlite_can_lock(index->path);
    }
    return index->has_lost_locks;
}

static int on_busy(void *context, int n_tries)
{
    fx_index *index = context;
    bool is_in_vain = n_tries == 0 && has_lost_locks(index);
    return !is_in_vain && fx_sqlite_wait(n_tries) <= wait_ms(index);
}

fxtap_status fx_index_error(fx_index *index, int code, const char *action)
{
    const char *path = index->path != NULL ? index->path : FX_INDEX_FILE;
    int primary = code & 0xFF;
    bool is_about_locks = primary == SQLITE_BUSY || primary == SQLITE_PROTOCOL || is_the_disk(primary);
    if (index->db != NULL && is_about_locks && has_lost_locks(index)) {
        return fx_error_errno(ENOLCK, action, path);
    }
    index->was_busy = index->was_busy || (primary == SQLITE_BUSY && index->db != NULL);
    if (primary == SQLITE_NOMEM) {
        return fx_error_nomem();
    }
    if (primary == SQLITE_FULL) {
        return fx_error_errno(ENOSPC, WRITE, path);
    }
    if (primary == SQLITE_READONLY || primary == SQLITE_CANTOPEN) {
        return fx_error_errno(open_error(index->db, primary, path), action, path);
    }
    if (is_the_disk(primary)) {
        int number = system_error(index->db, primary);
        return fx_error_errno(number, is_disk_full(number) ? WRITE : action, path);
    }
    return fx_error_at(FXTAP_E_DATABASE, path, "cannot %s: %s", action,
                       index->db != NULL ? sqlite3_errmsg(index->db) : sqlite3_errstr(code));
}

static fxtap_status execute(fx_index *index, const char *sql, const char *action)
{
    int code = sqlite3_exec(index->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? FXTAP_OK : fx_index_error(index, code, action);
}

fxtap_status fx_index_statement(fx_index *index, fx_sql which, sqlite3_stmt **out)
{
    if (index->statements[which] == NULL) {
        int code = sqlite3_prepare_v3(index->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                      &index->statements[which], NULL);
        if (code != SQLITE_OK) {
            return fx_index_error(index, code, "prepare a statement for the index");
        }
    }
    *out = index->statements[which];
    return FXTAP_OK;
}

fxtap_status fx_index_make_table(fx_index *index, const char *sql)
{
    return execute(index, sql, "make a table of the index");
}

fxtap_status fx_index_step(fx_index *index, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE || code == SQLITE_ROW) {
        sqlite3_reset(statement);
        return FXTAP_OK;
    }
    fxtap_status status = fx_index_error(index, code, WRITE);
    sqlite3_reset(statement);
    return status;
}

/* ---- opening ---- */

static fxtap_status read_version(fx_index *index, int *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(index->db, "PRAGMA user_version", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
        *out = sqlite3_column_int(statement, 0);
    }
    fxtap_status status = code == SQLITE_ROW ? FXTAP_OK : fx_index_error(index, code, "read the index");
    sqlite3_finalize(statement);
    return status;
}

/* Several processes may do this at once: the first makes the tables in a transaction, the others find them. */
static fxtap_status make_schema(fx_index *index)
{
    int version = 0;
    fxtap_status status = read_version(index, &version);
    if (status != FXTAP_OK || version == FX_INDEX_VERSION) {
        return status;
    }
    status = execute(index, "BEGIN IMMEDIATE", WRITE);
    if (status == FXTAP_OK) {
        status = read_version(index, &version);
        if (status == FXTAP_OK && version == 0) {
            char marks[96];
            snprintf(marks, sizeof marks, "PRAGMA application_id=%d; PRAGMA user_version=%d", FX_INDEX_APPLICATION_ID,
                     FX_INDEX_VERSION);
            status = execute(index, FX_INDEX_SCHEMA, "make the tables of the index");
            status = status == FXTAP_OK ? execute(index, marks, "mark the index") : status;
        } else if (status == FXTAP_OK && version != FX_INDEX_VERSION) {
            status = fx_error_at(FXTAP_E_UNSUPPORTED, index->path, "an index of version %d, this is version %d",
                                 version, FX_INDEX_VERSION);
        }
        fxtap_status ended = execute(index, status == FXTAP_OK ? "COMMIT" : "ROLLBACK", WRITE);
        status = status == FXTAP_OK ? ended : status;
    }
    return status;
}

/*
 * The write-ahead log has a file that processes share by mapping it. On a file system that copies on write, or writes
 * to a server, storing to the map can need new space, and without any the process gets SIGBUS: a full disk or a quota
 * would kill the user's program. So only file systems known to write in place get the log. The others get a journal,
 * which is written by system calls that return errors. The journal is kept while we run: making it for each step could
 * fail, and SQLite would then report a different error.
 */
static bool writes_in_place(const fx_rank_folder *rank)
{
    struct statfs info;
    if (fstatfs(rank->fd, &info) != 0) {
        return false;
    }
    switch ((uint64_t)info.f_type & UINT32_MAX) {
    case EXT4_SUPER_MAGIC: /* ext2 and ext3 too */
    case XFS_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/*
 * Switching to or from the write-ahead log needs exclusive access for a moment, and SQLite does not wait for that by
 * itself: when many processes start at once, all but one have to retry.
 */
static fxtap_status set_journal(fx_index *index, const fx_rank_folder *rank)
{
    index->has_journal = !index->has_locks || !writes_in_place(rank);
    const char *sql = index->has_journal ? "PRAGMA journal_mode=TRUNCATE" : "PRAGMA journal_mode=WAL";
    int code = SQLITE_BUSY;
    for (int waited_ms = 0; code == SQLITE_BUSY && waited_ms < wait_ms(index); waited_ms += 5) {
        code = sqlite3_exec(index->db, sql, NULL, NULL, NULL) & 0xFF;
        if (code == SQLITE_BUSY) {
            sqlite3_sleep(5);
        }
    }
    return code == SQLITE_OK ? FXTAP_OK : fx_index_error(index, code, "set up the index");
}

/* Symbolic links, which SQLite would follow, and what is not a regular file, for which its message is unclear. */
static fxtap_status refuse_others(const fx_index *index, const fx_rank_folder *rank)
{
    struct stat info;
    if (fstatat(rank->fd, FX_INDEX_FILE, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(info.st_mode)) {
        return FXTAP_OK;
    }
    if (S_ISLNK(info.st_mode) || S_ISDIR(info.st_mode)) {
        return fx_error_errno(S_ISLNK(info.st_mode) ? ELOOP : EISDIR, "open the index", index->path);
    }
    return fx_error_at(FXTAP_E_FORMAT, index->path, "is not a regular file");
}

/* Identifies the file for is_ours(). */
static void remember_file(fx_index *index, const fx_rank_folder *rank)
{
    struct stat info = {0}; /* zeros, which match no file, if the index is gone */
    fstatat(rank->fd, FX_INDEX_FILE, &info, AT_SYMLINK_NOFOLLOW);
    index->device = info.st_dev;
    index->inode = info.st_ino;
    index->n_bytes = 0;
}

/*
 * Whether the file still has a database's header and is not truncated: SQLite goes by its cache, and would write on. It
 * is read through SQLite, because closing a descriptor of our own would drop the process's locks on the file.
 */
static bool is_sound(fx_index *index, uint64_t n_bytes)
{
    unsigned char head[32]; /* 16: bytes of a page, 1 for 65536; 28: number of pages */
    sqlite3_file *file = NULL;
    sqlite3_file_control(index->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file == NULL || file->pMethods == NULL || file->pMethods->xRead(file, head, sizeof head, 0) != SQLITE_OK ||
        memcmp(head, MAGIC, sizeof MAGIC) != 0) {
        return false;
    }
    uint64_t page_bytes = (uint64_t)head[16] << 8 | head[17];
    uint64_t n_pages = (uint64_t)head[28] << 24 | (uint64_t)head[29] << 16 | (uint64_t)head[30] << 8 | head[31];
    bool is_whole = n_bytes >= index->n_bytes || n_bytes >= n_pages * (page_bytes == 1 ? 65536 : page_bytes);
    index->n_bytes = n_bytes;
    return is_whole;
}

static bool is_ours(fx_index *index, const struct stat *info)
{
    return info->st_dev == index->device && info->st_ino == index->inode && is_sound(index, (uint64_t)info->st_size);
}

static bool is_current(fx_index *index, const fx_rank_folder *rank)
{
    struct stat info;
    return index->db != NULL && fstatat(rank->fd, FX_INDEX_FILE, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_ours(index, &info);
}

bool fx_index_still_exists(fx_index *index)
{
    struct stat info;
    return index->db != NULL && lstat(index->path, &info) == 0 && is_ours(index, &info);
}

/*
 * Without locks the log cannot have its shared map: in exclusive mode a log of an earlier run is read and replaced by a
 * journal.
 */
static fxtap_status set_up(fx_index *index, const fx_rank_folder *rank)
{
    /* No fsync, also not for the change to the log; the log is copied after each step. */
    static const char settings[] = "PRAGMA page_size=8192; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY;"
                                   " PRAGMA wal_autocheckpoint=0";
    fxtap_status status = FXTAP_OK;
    if (!index->has_locks) {
        status = execute(index, "PRAGMA locking_mode=EXCLUSIVE", "set up the index");
    }
    if (status == FXTAP_OK) {
        status = execute(index, settings, "set up the index");
    }
    if (status == FXTAP_OK) {
        status = set_journal(index, rank);
    }
    if (status == FXTAP_OK && !index->has_locks) {
        status = execute(index, "PRAGMA locking_mode=NORMAL", "set up the index");
    }
    return status == FXTAP_OK ? make_schema(index) : status;
}

static fxtap_status open_database(fxtap_dump *dump, const fx_rank_folder *rank)
{
    fx_index *index = &dump->index;
    fxtap_status status = refuse_others(index, rank);
    if (status != FXTAP_OK) {
        return status;
    }
    index->has_locks = fx_sqlite_can_lock(index->path);
    index->has_lost_locks = false;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int code = fx_sqlite_open(index->path, index->has_locks, flags, &index->db, &index->folder_fd);
    if (code != SQLITE_OK) {
        return fx_index_error(index, code, "open the index");
    }
    sqlite3_extended_result_codes(index->db, 1);
    sqlite3_busy_handler(index->db, on_busy, index);
    status = set_up(index, rank);
    remember_file(index, rank);
    return status;
}

static fxtap_status make_path(fxtap_dump *dump)
{
    fx_index *index = &dump->index;
    if (index->path == NULL) {
        size_t n_bytes = strlen(dump->rank_path) + sizeof "/" FX_INDEX_FILE;
        index->path = fx_alloc(n_bytes);
        if (index->path == NULL) {
            return FXTAP_E_NOMEM;
        }
        snprintf(index->path, n_bytes, "%s/%s", dump->rank_path, FX_INDEX_FILE);
    }
    return FXTAP_OK;
}

/* Set once, and kept until the dump is closed. */
static void warn_of_locks(fxtap_dump *dump)
{
    static const char text[] = "the file system has no locks, so the index is written without: let one process at a"
                               " time write there";
    size_t n_bytes = strlen(dump->index.path) + sizeof ": " + sizeof text;
    char *warning = atomic_load(&dump->warning) == NULL ? fx_alloc(n_bytes) : NULL;
    if (warning != NULL) {
        snprintf(warning, n_bytes, "%s: %s", dump->index.path, text);
        atomic_store(&dump->warning, warning);
    }
}

fxtap_status fx_index_open(fxtap_dump *dump, const fx_rank_folder *rank)
{
    fx_index *index = &dump->index;
    if (is_current(index, rank) && !index->has_lost_locks) {
        return FXTAP_OK;
    }
    bool is_reopened = is_current(index, rank); /* the same file, from now on without locks: its rows stay valid */
    if (index->db != NULL) {
        fx_index_close(index, true);
    }
    fxtap_status status = make_path(dump);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!is_reopened) {
        fx_rows_forget(dump);
    }
    atomic_store(&dump->indexed_rank, 0);
    status = open_database(dump, rank);
    if (status == FXTAP_OK && !is_reopened) {
        status = fx_rows_run(dump);
    }
    if (status != FXTAP_OK) {
        fx_index_close(index, true);
        return status;
    }
    if (!index->has_locks) {
        warn_of_locks(dump);
    }
    atomic_store(&dump->indexed_rank, rank->number);
    return FXTAP_OK;
}

/* ---- closing ---- */

static void close_folder(fx_index *index)
{
    if (index->folder_fd >= 0) {
        close(index->folder_fd);
        index->folder_fd = -1;
    }
}

void fx_index_close(fx_index *index, bool abandon)
{
    if (index->db == NULL) {
        close_folder(index);
        return;
    }
    if (abandon) { /* neither copies the log nor removes the files: they may belong to another process by now */
        int keep = 1;
        sqlite3_db_config(index->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_file_control(index->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    }
    for (int i = 0; i < FX_SQL_COUNT; i++) {
        sqlite3_finalize(index->statements[i]);
        index->statements[i] = NULL;
    }
    if (index->has_journal && !abandon) {
        sqlite3_exec(index->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL); /* removes it, unless others use it */
    }
    sqlite3_close_v2(index->db);
    index->db = NULL;
    close_folder(index);
    index->in_transaction = false;
    index->n_fresh = 0;
    fx_table_clear(&index->values);
}

void fx_index_destroy(fx_index *index)
{
    fx_index_close(index, false);
    fx_table_clear(&index->values);
    fx_free(index->fresh);
    fx_free(index->path);
    pthread_mutex_destroy(&index->lock);
}

/* ---- transactions ---- */

fxtap_status fx_index_begin(fx_index *index)
{
    sqlite3_stmt *statement = NULL;
    fxtap_status status = fx_index_statement(index, FX_SQL_BEGIN, &statement);
    if (status == FXTAP_OK) {
        status = fx_index_step(index, statement);
    }
    index->in_transaction = status == FXTAP_OK;
    index->transaction++;
    index->n_fresh = 0;
    return status;
}

fxtap_status fx_index_commit(fx_index *index)
{
    sqlite3_stmt *statement = NULL;
    fxtap_status status = fx_index_statement(index, FX_SQL_COMMIT, &statement);
    if (status == FXTAP_OK) {
        status = fx_index_step(index, statement);
    }
    if (status == FXTAP_OK) {
        index->in_transaction = false;
        index->n_fresh = 0;
        index->was_busy = false;
    }
    return status;
}

void fx_index_rollback(fx_index *index)
{
    if (!index->in_transaction) {
        return;
    }
    sqlite3_exec(index->db, "ROLLBACK", NULL, NULL, NULL); /* fails if SQLite has rolled back itself */
    for (size_t i = 0; i < index->n_fresh; i++) {
        *index->fresh[i] = 0;
    }
    index->n_fresh = 0;
    index->in_transaction = false;
    fx_table_clear(&index->values);
}

fxtap_status fx_index_track_row(fx_index *index, int64_t *row)
{
    void *grown = index->fresh;
    if (!fx_grow(&grown, &index->fresh_capacity, index->n_fresh + 1, sizeof *index->fresh)) {
        return FXTAP_E_NOMEM;
    }
    index->fresh = grown;
    index->fresh[index->n_fresh++] = row;
    return FXTAP_OK;
}

void fx_index_checkpoint(fx_index *index)
{
    /* What cannot be copied because another process is reading is copied after the next step. */
    sqlite3_wal_checkpoint_v2(index->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}
