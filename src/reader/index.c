/*
 * index.c - opening an index to read it. The file is not trusted: it is opened read-only and in defensive mode,
 * anything but ordinary tables is rejected, and rows are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/schema.h"
#include "index/sqlite_path.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "util/error.h"
#include "util/memory.h"

#define HEADER_BYTES 100
#define BUSY_MS 2000
#define COPY_CACHE "-65536" /* KiB */

static const char *index_path(fxtap_reader *reader, const char *rank_path)
{
    return fx_reader_join(reader, rank_path, FX_INDEX_FILE);
}

/* ---- the header ---- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static fxtap_status version_error(const char *path, uint32_t version)
{
    return fx_error_at(FXTAP_E_UNSUPPORTED, path, "index version %u is not supported; this fxtap reads version %d",
                       version, FX_INDEX_VERSION);
}

typedef struct header {
    unsigned char bytes[HEADER_BYTES];
    size_t n_bytes;
} header;

/* 0: no such file; 1: header read; negative: an errno for FXTAP_E_IO. */
static int read_header(const char *path, header *out)
{
    struct stat info;
    int n_bytes = 0;
    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISREG(info.st_mode)) {
        return -ELOOP;
    }
    int error_number = fx_sqlite_read_head(path, out->bytes, HEADER_BYTES, &n_bytes);
    out->n_bytes = (size_t)n_bytes;
    return error_number == 0 ? 1 : -error_number;
}

/* Missing permission and refused links persist; any other error may be temporary. */
static bool is_lasting(int error_number)
{
    return error_number == ELOOP || error_number == EACCES || error_number == EPERM;
}

fxtap_status fx_index_probe(fxtap_reader *reader, const char *rank_path, bool *usable_out)
{
    header head;
    const char *path = index_path(reader, rank_path);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    *usable_out = false;
    int found = read_header(path, &head);
    if (found == 0) {
        return FXTAP_OK;
    }
    if (found < 0 && !is_lasting(-found)) {
        return found == -ENOMEM ? fx_error_nomem() : fx_error_errno(-found, "read the index", path);
    }
    if (found < 0) {
        return fx_reader_warn(reader, "%s: the index cannot be read (%s); reading by file names instead", path,
                              found == -ELOOP ? "symbolic link, not followed" : strerror(-found));
    }
    if (head.n_bytes == 0) { /* just created; its contents are still in the log */
        *usable_out = true;
        return FXTAP_OK;
    }
    if (head.n_bytes < HEADER_BYTES || memcmp(head.bytes, "SQLite format 3", 16) != 0) {
        return fx_reader_warn(reader, "%s: not an SQLite database; reading by file names instead", path);
    }
    uint32_t version = big_endian(head.bytes + 60), application = big_endian(head.bytes + 68);
    if (application == FX_INDEX_APPLICATION_ID && version > FX_INDEX_VERSION) {
        return version_error(path, version);
    }
    *usable_out = true;
    return FXTAP_OK;
}

/* ---- opening ---- */

/* The errno of an error that may be temporary and says nothing about the index; 0 for any other error. */
static int passing_errno(sqlite3 *database)
{
    int code = sqlite3_extended_errcode(database), system_errno = sqlite3_system_errno(database);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return EBUSY;
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_CANTOPEN:
        return system_errno == EMFILE || system_errno == ENFILE || system_errno == ENOMEM ? system_errno : 0;
    case SQLITE_IOERR:
        break;
    default:
        return 0;
    }
    switch (code) {
    case SQLITE_IOERR_SHORT_READ: /* truncated */
    case SQLITE_IOERR_SHMOPEN:    /* memory cannot be shared here */
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMLOCK:
    case SQLITE_IOERR_SHMMAP:
    case SQLITE_IOERR_LOCK:
    case SQLITE_IOERR_RDLOCK:
        return 0;
    default:
        return system_errno != 0 ? system_errno : EIO;
    }
}

/* FXTAP_E_DATABASE for a damaged index; FXTAP_E_IO or FXTAP_E_NOMEM if the index may be intact. */
static fxtap_status database_error(const fxtap_reader *reader)
{
    sqlite3 *database = reader->database;
    const char *path = reader->database_path;
    int code = sqlite3_extended_errcode(database), error_number = passing_errno(database);
    if ((code & 0xff) == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM) {
        return fx_error_nomem();
    }
    if (error_number != 0) {
        return fx_error_errno(error_number, "read the index", path);
    }
    return fx_error_at(FXTAP_E_DATABASE, path, "%s", sqlite3_errmsg(database));
}

/* How an index is opened. */
typedef enum sharing {
    SHARED, /* with locks; the log's shared memory is not written: a live process maintains it, or we use our own */
    LIVE, /* with locks; shared memory is written: another process has the index open and left no reader slot for us */
    UNLOCKED, /* without locks, with private memory: no process can lock it, or memory cannot be shared */
    IMMUTABLE /* the database file alone */
} sharing;

/* A file: URI, with characters that are special in SQLite's URIs escaped. */
static char *make_uri(const char *path, sharing how)
{
    static const char hex[] = "0123456789abcdef";
    static const char *const parameters[] = {"?mode=ro&readonly_shm=1", "?mode=ro", "?mode=ro", "?immutable=1"};
    size_t length = strlen(path);
    char *uri = fx_calloc(length + 16, 3);
    if (uri == NULL) {
        return NULL;
    }
    char *c = uri + sprintf(uri, "file:");
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        if (*p == '%' || *p == '?' || *p == '#' || *p < 0x21 || *p > 0x7e) {
            *c++ = '%';
            *c++ = hex[*p >> 4];
            *c++ = hex[*p & 15];
        } else {
            *c++ = (char)*p;
        }
    }
    strcpy(c, parameters[how]);
    return uri;
}

static bool has_file(const char *path, const char *suffix, char *name, size_t capacity)
{
    struct stat info;
    int n = snprintf(name, capacity, "%s%s", path, suffix);
    return n > 0 && (size_t)n < capacity && lstat(name, &info) == 0;
}

/*
 * Whether the file system has locks: without them SQLite treats every file as locked. The test uses a log or journal,
 * which SQLite itself never locks, because closing a descriptor releases all locks of this process on the file.
 */
static bool can_lock(const char *log)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = open(log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool can = fd < 0 || fcntl(fd, F_SETLK, &lock) == 0 || errno == EINTR;
    if (fd >= 0) {
        close(fd);
    }
    return can;
}

static uint64_t file_bytes(const char *path)
{
    char log[PATH_MAX];
    struct stat info;
    uint64_t n_bytes = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    int n = snprintf(log, sizeof log, "%s-wal", path);
    if (n > 0 && (size_t)n < sizeof log && stat(log, &info) == 0) {
        n_bytes += (uint64_t)info.st_size;
    }
    return n_bytes;
}

static void close_folder(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void fx_index_drop(fxtap_reader *reader)
{
    if (reader->database != NULL) {
        sqlite3_close_v2(reader->database);
        close_folder(reader->database_folder_fd);
    }
    reader->database = NULL;
    reader->database_rank = NULL;
    reader->database_is_copy = false;
}

static const char first_sql[] = "PRAGMA cell_size_check=ON; SELECT count(*) FROM sqlite_schema";
/* In exclusive mode SQLite keeps the log's map in private memory. */
static const char exclusive_sql[] =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cell_size_check=ON; SELECT count(*) FROM sqlite_schema";

static void be_careful(sqlite3 *database)
{
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* *code_out is SQLite's result. */
static fxtap_status open_database(fxtap_reader *reader, const char *path, sharing how, int *code_out)
{
    fx_sqlite_place place;
    int code = *code_out = fx_sqlite_place_to_read(path, how != UNLOCKED, &place);
    if (code != SQLITE_OK) {
        return code == SQLITE_NOMEM ? FXTAP_E_NOMEM : fx_error_errno(errno, "open the index", path);
    }
    char *uri = make_uri(place.path, how);
    if (uri == NULL) {
        close_folder(place.folder_fd);
        return FXTAP_E_NOMEM;
    }
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    code = sqlite3_open_v2(uri, &reader->database, flags, place.vfs);
    reader->database_folder_fd = place.folder_fd;
    fx_free(uri);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(reader->database, BUSY_MS);
        be_careful(reader->database);
        code = sqlite3_exec(reader->database, how == UNLOCKED ? exclusive_sql : first_sql, NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        *code_out = reader->database != NULL ? sqlite3_extended_errcode(reader->database) : code;
        fxtap_status status = reader->database != NULL ? database_error(reader) : fx_error_nomem();
        if (reader->database == NULL) {
            close_folder(place.folder_fd);
        }
        fx_index_drop(reader);
        return status;
    }
    return FXTAP_OK;
}

/* ---- a log that nobody keeps ---- */

/*
 * Replaces the open index by a copy with its log applied: a temporary database, in memory up to COPY_CACHE and in an
 * unlinked file beyond. The error of a failed copy is about the index, too.
 */
static fxtap_status copy_database(fxtap_reader *reader)
{
    static const char settings[] = "PRAGMA cell_size_check=ON; PRAGMA cache_size=" COPY_CACHE;
    sqlite3 *source = reader->database, *copy = NULL;
    int code = sqlite3_open_v2("", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (copy == NULL) {
        return fx_error_nomem();
    }
    be_careful(copy);
    if (code == SQLITE_OK) {
        code = sqlite3_exec(copy, settings, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        sqlite3_backup *backup = sqlite3_backup_init(copy, "main", source, "main");
        code = backup != NULL ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(copy);
        sqlite3_backup_finish(backup);
    }
    fx_index_drop(reader);
    reader->database = copy;
    reader->database_folder_fd = -1;
    reader->database_is_copy = true;
    if (code == SQLITE_DONE) {
        return FXTAP_OK;
    }
    fxtap_status status = database_error(reader);
    fx_index_drop(reader);
    return status;
}

/* SQLite's answer to the open index's request for the first part of its log's map. */
static int ask_for_map(fxtap_reader *reader)
{
    enum { PART_BYTES = 32768 };
    sqlite3_file *file = NULL;
    volatile void *map = NULL;
    sqlite3_file_control(reader->database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    bool has_maps = file != NULL && file->pMethods != NULL && file->pMethods->iVersion >= 2;
    return has_maps ? file->pMethods->xShmMap(file, 0, PART_BYTES, 0, &map) : SQLITE_OK;
}

/* ---- validation ---- */

static fxtap_status ask_number(fxtap_reader *reader, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(reader->database, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        *out = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? FXTAP_OK : database_error(reader);
}

/* Views, virtual tables and generated columns could run arbitrary code; an fxtap index has none that are read. */
static const char count_tables[] =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND name IN"
    " ('run', 'graph', 'node', 'slot', 'step', 'value', 'tensor')";
static const char count_computed[] =
    "SELECT count(*) FROM sqlite_schema s, pragma_table_xinfo(s.name) c WHERE s.type = 'table' AND c.hidden <> 0";

static fxtap_status check_identity(fxtap_reader *reader, const char *path)
{
    int64_t application = 0, version = 0, n_tables = 0, n_computed = 0;
    fxtap_status status = ask_number(reader, "PRAGMA application_id", &application);
    if (status == FXTAP_OK) {
        status = ask_number(reader, "PRAGMA user_version", &version);
    }
    if (status == FXTAP_OK) {
        status = ask_number(reader, count_tables, &n_tables);
    }
    if (status == FXTAP_OK) {
        status = ask_number(reader, count_computed, &n_computed);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    if (application == FX_INDEX_APPLICATION_ID && version > FX_INDEX_VERSION) {
        return version_error(path, (uint32_t)version);
    }
    if (application != FX_INDEX_APPLICATION_ID || n_tables != 7 || n_computed != 0) {
        return fx_error_at(FXTAP_E_DATABASE, path, "not an fxtap index");
    }
    return FXTAP_OK;
}

/*
 * SQLite has one map of a log for the whole process. While a reader that may not write has it, a writer of this process
 * cannot write. So such a reader opens it only to find out whether another process keeps the log: if one does, the map
 * is shared with it, else the index is copied. The lock lets no other reader join meanwhile, and keep it open.
 */
static fxtap_status open_logged(fxtap_reader *reader, const char *path, int *code_out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    fxtap_status status = open_database(reader, path, SHARED, code_out);
    int answer = status == FXTAP_OK ? ask_for_map(reader) : *code_out;
    switch (answer) {
    case SQLITE_READONLY_CANTINIT: /* nobody has the log */
        status = copy_database(reader);
        break;
    case SQLITE_READONLY: /* another process has it; if a writer of this one has, the map may be written already */
    case SQLITE_READONLY_CANTLOCK:
    case SQLITE_READONLY_RECOVERY:
        fx_index_drop(reader);
        status = open_database(reader, path, LIVE, code_out);
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/*
 * Without a log or journal there is no writer, and the database file is complete. Otherwise a process is writing the
 * index, or was killed: the log is read, but not written back, and no file is created or left behind.
 */
static fxtap_status open_either_way(fxtap_reader *reader, const char *path)
{
    char log[PATH_MAX], map[PATH_MAX];
    int code;
    bool is_logged = has_file(path, "-wal", log, sizeof log);
    if (!is_logged && !has_file(path, "-journal", log, sizeof log)) {
        return open_database(reader, path, IMMUTABLE, &code);
    }
    bool has_locks = can_lock(log);
    fxtap_status status = has_locks ? open_logged(reader, path, &code) : open_database(reader, path, UNLOCKED, &code);
    if (status == FXTAP_E_DATABASE && has_locks && is_logged && !has_file(path, "-shm", map, sizeof map)) {
        status = open_database(reader, path, UNLOCKED, &code);
        status = status == FXTAP_OK ? copy_database(reader) : status;
    }
    if (status == FXTAP_E_DATABASE) {
        status = open_database(reader, path, IMMUTABLE, &code);
        if (status == FXTAP_OK && has_file(path, is_logged ? "-wal" : "-journal", log, sizeof log)) {
            status =
                fx_reader_warn(reader, "%s: its write-ahead log cannot be read; the last steps may be missing", path);
        }
    }
    return status;
}

static fxtap_status open_checked(fxtap_reader *reader, const char *path)
{
    fxtap_status status = open_either_way(reader, path);
    if (status == FXTAP_OK) {
        status = check_identity(reader, path);
    }
    if (status != FXTAP_OK) {
        fx_index_drop(reader);
    }
    return status;
}

fxtap_status fx_index_use(fxtap_reader *reader, fx_rank *rank)
{
    if (reader->database != NULL && reader->database_rank == rank) {
        return FXTAP_OK;
    }
    fx_index_drop(reader);
    const char *path = reader->database_path = index_path(reader, rank->info.path);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = open_checked(reader, path);
    if (status != FXTAP_OK) {
        return status;
    }
    reader->database_rank = rank;
    reader->database_bytes = file_bytes(path);
    status = fx_index_has_table(reader, rank, "undefined", &reader->has_undefined);
    if (status != FXTAP_OK) {
        fx_index_drop(reader);
    }
    return status;
}

void fx_index_release(fxtap_reader *reader)
{
    if (!reader->database_is_copy) {
        fx_index_drop(reader);
    }
}

fxtap_status fx_index_has_table(fxtap_reader *reader, fx_rank *rank, const char *name, bool *out)
{
    sqlite3_stmt *statement = NULL;
    *out = false;
    fxtap_status status = fx_index_use(reader, rank);
    if (status != FXTAP_OK) {
        return status;
    }
    int code = sqlite3_prepare_v2(reader->database,
                                  "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1"
                                  " AND sql LIKE 'CREATE TABLE%'",
                                  -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
        *out = code == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? FXTAP_OK : database_error(reader);
}

/* ---- rows ---- */

fxtap_status fx_rows_begin(fxtap_reader *reader, fx_rank *rank, const char *sql, const int64_t *parameters,
                           fx_rows *out)
{
    fxtap_status status = fx_index_use(reader, rank);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(reader->database, sql, -1, &statement, NULL) != SQLITE_OK) {
        return database_error(reader);
    }
    *out = (fx_rows){.reader = reader, .statement = statement};
    fx_rows_restart(out, parameters);
    return FXTAP_OK;
}

void fx_rows_restart(fx_rows *rows, const int64_t *parameters)
{
    sqlite3_reset(rows->statement);
    for (int i = 0; i < sqlite3_bind_parameter_count(rows->statement); i++) {
        sqlite3_bind_int64(rows->statement, i + 1, parameters[i]);
    }
    rows->n_left = rows->reader->database_bytes;
}

fxtap_status fx_rows_next(fx_rows *rows, bool *more_out)
{
    int code = sqlite3_step(rows->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        return database_error(rows->reader);
    }
    *more_out = code == SQLITE_ROW;
    if (*more_out && rows->n_left-- == 0) {
        return fx_error_at(FXTAP_E_DATABASE, rows->reader->database_path,
                           "more rows than a file of this size can hold");
    }
    return FXTAP_OK;
}

void fx_rows_end(fx_rows *rows)
{
    sqlite3_finalize(rows->statement);
    rows->statement = NULL;
}

int64_t fx_rows_int(const fx_rows *rows, int column)
{
    return sqlite3_column_int64(rows->statement, column);
}

const char *fx_rows_text(const fx_rows *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows->statement, column);
    return fx_reader_text(rows->reader, text != NULL ? text : "");
}

bool fx_rows_is_null(const fx_rows *rows, int column)
{
    return sqlite3_column_type(rows->statement, column) == SQLITE_NULL;
}

fxtap_hash128 fx_rows_hash(const fx_rows *rows, int column)
{
    const unsigned char *bytes = sqlite3_column_blob(rows->statement, column);
    if (bytes == NULL || sqlite3_column_bytes(rows->statement, column) != 16) {
        return (fxtap_hash128){0};
    }
    return (fxtap_hash128){.high = (uint64_t)big_endian(bytes) << 32 | big_endian(bytes + 4),
                           .low = (uint64_t)big_endian(bytes + 8) << 32 | big_endian(bytes + 12)};
}

/* ---- integrity ---- */

fxtap_status fx_index_is_sound(fxtap_reader *reader, fx_rank *rank, bool *out, char *detail, size_t capacity)
{
    fx_rows rows = {0};
    bool more = false;
    fxtap_status status = fx_rows_begin(reader, rank, "PRAGMA quick_check(1)", NULL, &rows);
    if (status == FXTAP_OK) {
        status = fx_rows_next(&rows, &more);
    }
    const char *found = status == FXTAP_OK && more ? (const char *)sqlite3_column_text(rows.statement, 0) : NULL;
    *out = found != NULL && strcmp(found, "ok") == 0;
    snprintf(detail, capacity, "%s", found != NULL ? found : fxtap_error_message());
    fx_rows_end(&rows);
    return status == FXTAP_E_DATABASE ? FXTAP_OK : status;
}
