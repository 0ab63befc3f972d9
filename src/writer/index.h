/*
 * index.h - the index's database: opening, statements, transactions. All functions are called with index.lock held.
 */
#ifndef FX_WRITER_INDEX_H
#define FX_WRITER_INDEX_H

#include <pthread.h>
#include <stdatomic.h>

#include <sqlite3.h>

#include "util/table.h"
#include "writer/tree.h"

/* Statements, prepared once and kept with the database. */
typedef enum fx_sql {
    FX_SQL_BEGIN,
    FX_SQL_COMMIT,
    FX_SQL_RUN,
    FX_SQL_RUN_END,
    FX_SQL_GRAPH,
    FX_SQL_NODE,
    FX_SQL_SLOT,
    FX_SQL_VALUE,
    FX_SQL_TENSOR,
    FX_SQL_LAST_STEP,
    FX_SQL_STEP,
    FX_SQL_RESTAMP,
    FX_SQL_FINDING,
    FX_SQL_UNDEFINED,
    FX_SQL_COUNT
} fx_sql;

typedef struct fx_index {
    pthread_mutex_t lock;
    sqlite3 *db; /* NULL: not open */
    sqlite3_stmt *statements[FX_SQL_COUNT];
    char *path;
    int folder_fd;    /* the folder that a long path is reached through; -1: none */
    bool has_journal; /* a rollback journal in place of the write-ahead log */
    dev_t device;
    ino_t inode;
    uint64_t n_bytes;    /* size of the file when last checked */
    int busy_ms;         /* how long to wait for another process */
    bool was_busy;       /* that wait ended in vain: the next one is short */
    bool has_locks;      /* the file system has */
    bool has_lost_locks; /* since the database was opened: it has to be opened again */
    atomic_int_fast64_t run;
    bool in_transaction;
    uint64_t transaction; /* counts them */
    fx_table values;      /* rows of this run by the key of all their columns */
    int64_t **fresh;      /* row numbers given in this transaction: zeroed when it is rolled back */
    size_t n_fresh;
    size_t fresh_capacity;
} fx_index;

void fx_index_init(fx_index *index);
void fx_index_destroy(fx_index *index);
/* Opens it in the rank's folder and inserts the run's row, unless it is open and still the file of that name. */
fxtap_status fx_index_open(fxtap_dump *dump, const fx_rank_folder *rank);
/* `abandon`: without touching the disk (after a fork, or when the file is gone). */
void fx_index_close(fx_index *index, bool abandon);
/* The open database still is the file of its name. */
bool fx_index_still_exists(fx_index *index);

fxtap_status fx_index_begin(fx_index *index);
fxtap_status fx_index_commit(fx_index *index);
void fx_index_rollback(fx_index *index);
/* Copies the log into the database. */
void fx_index_checkpoint(fx_index *index);

/* A status for a result code of SQLite. */
fxtap_status fx_index_error(fx_index *index, int code, const char *action);
fxtap_status fx_index_statement(fx_index *index, fx_sql which, sqlite3_stmt **out);
/* Runs a statement and resets it. */
fxtap_status fx_index_step(fx_index *index, sqlite3_stmt *statement);
/* Makes a table that only some dumps need. */
fxtap_status fx_index_make_table(fx_index *index, const char *sql);
/* Remembers that *row is given in this transaction. */
fxtap_status fx_index_track_row(fx_index *index, int64_t *row);

/* The row of a value of this run; 0: none. */
int64_t fx_index_find_value(const fx_index *index, fxtap_hash128 key);
void fx_index_remember_value(fx_index *index, fxtap_hash128 key, int64_t row);

#endif
