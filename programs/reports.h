/*
 * reports.h - what the commands that make a report (compare, verify) share: -q, --json, --csv, --html, --force; and the
 * shards in which many processes make one.
 */
#ifndef REPORTS_H
#define REPORTS_H

#include "fxtap/verify.h"
#include "options.h"

#define N_REPORT_FILES 3

typedef struct report_files {
    const char *paths[N_REPORT_FILES]; /* JSON, CSV, HTML; NULL: not requested; "-": standard output */
    bool force;
    bool quiet;
} report_files;

/* Entries of an option table; `r` is a report_files. */
#define REPORT_OPTIONS(r, csv_help)                                                                                    \
    {'q', "quiet", OPTION_FLAG, &(r).quiet, NULL, "the verdict's line alone"},                                         \
        {0, "json", OPTION_TEXT, &(r).paths[0], "FILE", "all of it, as JSON (- for standard output)"},                 \
        {0, "csv", OPTION_TEXT, &(r).paths[1], "FILE", csv_help},                                                      \
        {0, "html", OPTION_TEXT, &(r).paths[2], "FILE", "a page to look at, in one file"},                             \
    {                                                                                                                  \
        0, "force", OPTION_FLAG, &(r).force, NULL, "write over reports that are there"                                 \
    }

/* Prints a report in the format of the options. */
typedef fxtap_status (*report_printer)(const void *report, const fxtap_report_options *options, fxtap_buffer *out);

/*
 * Finds a file that must not be overwritten before the work, not after it. `out_path` is one more file, or NULL.
 * EXIT_SAME, or EXIT_TROUBLE after an error message.
 */
int reports_check(const char *name, const report_files *files, const char *out_path);

/* Writes the text, unless a file is "-", and all files. EXIT_SAME, or EXIT_TROUBLE after an error message. */
int reports_write(const report_files *files, report_printer print, const void *report);

/* Parses K/N: part K of N, counted from 0. False after an error message. */
bool read_shard(const char *name, const char *text, uint32_t *shard_out, uint32_t *n_shards_out);

typedef struct shard_list {
    fxtap_buffer *buffers; /* own what `bytes` points to */
    const void **bytes;
    size_t *n_bytes;
    size_t count;
} shard_list;

/* Reads files 0, 1, 2 ... of a folder until one is missing. EXIT_SAME, or EXIT_TROUBLE after an error message. */
int shards_read(const char *folder, shard_list *out);
/* A new shard at the end of a list that began as {0}: fill the buffer, then call shards_end(). */
fxtap_buffer *shards_add(shard_list *shards);
void shards_end(shard_list *shards);
/* Merges shards of a verification. False after an error message. If interrupted, says what the report is then. */
bool shards_verification(const shard_list *shards, fxtap_verification **out);
/* Exit status of a verification: EXIT_SAME, EXIT_FOUND, or EXIT_TROUBLE if nothing could be replayed. */
int verification_status(const fxtap_verification *verification);
/* Also after shards_read() failed. */
void shards_clear(shard_list *shards);

#endif
