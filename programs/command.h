/*
 * command.h - the table of commands, and what they share: reading options, saying what went wrong, writing files.
 *
 * Exit status of every command: 0 done (compare: the same), 1 a difference or a problem was found, 2 trouble.
 */
#ifndef FXTAP_COMMAND_H
#define FXTAP_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h> /* EXIT_SUCCESS */

#include "util/output.h"

enum { EXIT_SAME = 0, EXIT_FOUND = 1, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
    const char *summary;
} command;

int cmd_check(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_graph(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_repro(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_verify(int argc, char **argv);

/* ---- program.c ---- */

/* "fxtap: ..." to standard error, with no control character in it; returns EXIT_TROUBLE, for `return
 * report_error(...)`. */
int report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The library's message for this thread's last failure. */
int report_library_error(void);
/* "fxtap NAME: ... (see fxtap NAME --help)". */
int usage_error(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool parse_int64(const char *text, int64_t low, int64_t high, int64_t *out);
/* Independent of the locale; not negative and finite. */
bool parse_amount(const char *text, double *out);
/* "A" or "A:B"; a lone A stands for both. */
bool parse_pair(const char *text, int64_t low, int64_t high, int64_t *first_out, int64_t *second_out);

/* Memory that is there, or the program ends with a line and EXIT_TROUBLE. */
void *must_realloc(void *memory, size_t n_items, size_t item_bytes);

/* ---- write.c ---- */

/*
 * Writes a file whole or not at all; a file that is there already is left alone unless `force`. Returns false after
 * saying why on standard error.
 */
bool write_file(const char *path, const void *bytes, size_t n_bytes, bool force);
/* False, after saying so, where a file of that name is there and nothing forces it. */
bool may_write(const char *path, bool force);
/* False after saying why. Where who reads has gone (a closed pipe), the program ends silently. */
bool write_stdout(const void *bytes, size_t n_bytes);
/* The same for a buffer, which is emptied. */
bool flush_buffer(fxtap_buffer *buffer);

/* ---- terminal.c ---- */

/* A line on standard error that is written over; nothing where that is no terminal. Begin before, end after. */
void progress_begin(const char *what);
/* An fxtap_progress: false once the user asked to stop (Ctrl-C). */
bool progress_show(void *context, uint64_t done, uint64_t total);
void progress_end(void);
/* From progress_begin() on a signal that would end the program is only noted; this says whether one came. */
bool was_interrupted(void);
/* Ends the program by that signal, as the shell expects. */
int end_interrupted(void);

#endif
