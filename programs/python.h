/* python.h - finds and starts the Python in which the package is installed. */
#ifndef PYTHON_H
#define PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "reports.h"
#include "util/output.h"

/*
 * A command line in construction: python -m fxtap WORD ... The first word is python's path, and NULL ends the list.
 * Words are copied.
 */
typedef struct python_line {
    char **words;
    int count;
} python_line;

/*
 * Begins a line with the interpreter: `chosen` (--python), else $FXTAP_PYTHON, else python3 beside this program, into
 * whose environment it was installed, else python3 in PATH. `chosen` may be NULL.
 */
void python_begin(python_line *line, const char *chosen);
void python_add(python_line *line, const char *word);
/* Adds an option and its value; nothing where the number is negative, or the text NULL. */
void python_add_number(python_line *line, const char *option, int64_t number);
void python_add_text(python_line *line, const char *option, const char *text);
/* Adds -m fxtap COMMAND, without the working directory in Python's path: it may be a dump with a torch.py in it. */
void python_add_command(python_line *line, const char *command);
void python_clear(python_line *line);

/*
 * Whether that Python has a module; false after one line that says where to install it. A folder with its name, such
 * as a clone beside the script, does not count. Python itself reports any other problem when it runs.
 */
bool python_has(const python_line *line, const char *module);

/*
 * Runs the line with one more option, --out-fd N, and collects what it writes there. A signal that is noted (see
 * progress_begin) is passed on. Returns the exit status of Python, or EXIT_TROUBLE after an error message.
 */
int python_collect(python_line *line, fxtap_buffer *out);

/*
 * Runs a line of the command verify-shard, with progress; the serialised verification becomes a shard of `out`.
 * EXIT_SAME, or EXIT_TROUBLE after an error message.
 */
int python_verify(python_line *line, shard_list *out);

/* Replaces this process. Returns EXIT_TROUBLE after an error message. */
int python_execute(python_line *line);

#endif
