/* index.h - opening and querying the index of a rank (index.c). */
#ifndef FX_READER_INDEX_H
#define FX_READER_INDEX_H

#include "reader/reader.h"

/*
 * *usable_out is false, with a warning, if the file is not an index. FXTAP_E_UNSUPPORTED: written by a later version.
 */
fxtap_status fx_index_probe(fxtap_reader *reader, const char *rank_path, bool *usable_out);
/* Opens the rank's index if it is not open. Public functions close it before they return, with fx_index_release(). */
fxtap_status fx_index_use(fxtap_reader *reader, fx_rank *rank);
/* Closes the open index; a copy, which nothing else can have open, stays until another index is used. */
void fx_index_release(fxtap_reader *reader);
void fx_index_drop(fxtap_reader *reader);
/* Whether the rank's index has an ordinary table (not a view) of this name: some tables are optional. */
fxtap_status fx_index_has_table(fxtap_reader *reader, fx_rank *rank, const char *name, bool *out);
/* Runs SQLite's quick_check. If the index is not sound, `detail` is the first fault found. */
fxtap_status fx_index_is_sound(fxtap_reader *reader, fx_rank *rank, bool *out, char *detail, size_t capacity);

struct sqlite3_stmt;

/* A query. Its rows are counted: a sound index has fewer rows than its file has bytes. */
typedef struct fx_rows {
    fxtap_reader *reader;
    struct sqlite3_stmt *statement;
    uint64_t n_left;
} fx_rows;

/*
 * FXTAP_E_DATABASE: the index is damaged, and the dump is read by file names instead. FXTAP_E_IO (locked by another
 * process, a device error, no descriptors left) and FXTAP_E_NOMEM say nothing about the index; the caller may try
 * again.
 */
fxtap_status fx_rows_begin(fxtap_reader *reader, fx_rank *rank, const char *sql, const int64_t *parameters,
                           fx_rows *out);
/* *more_out is false after the last row. Errors as above. */
fxtap_status fx_rows_next(fx_rows *rows, bool *more_out);
/* Begins the same query again, with other parameters. */
void fx_rows_restart(fx_rows *rows, const int64_t *parameters);
void fx_rows_end(fx_rows *rows);
int64_t fx_rows_int(const fx_rows *rows, int column);
/* Interned in the reader; "" for NULL. NULL: no memory. */
const char *fx_rows_text(const fx_rows *rows, int column);
bool fx_rows_is_null(const fx_rows *rows, int column);
/* 16 bytes; 0 if the value has another length. */
fxtap_hash128 fx_rows_hash(const fx_rows *rows, int column);

#endif
