/*
 * watch.h - operators that write to an argument without declaring it.
 *
 * An operator that is not torch's own may say one thing in its schema and do another. The values that it is given and
 * does not say it changes are held against their hashes when it has returned.
 */
#ifndef FX_EXT_WATCH_H
#define FX_EXT_WATCH_H

#include "program.h"
#include "submit.h"

typedef struct fx_watched {
    PyObject *tensor; /* owned */
    fxtap_ticket ticket;
    char position[32];
    PyObject *name; /* of the argument; borrowed from the instruction, or NULL */
} fx_watched;

typedef struct fx_watch {
    fx_watched *items;
    size_t n_items;
} fx_watch;

/*
 * Before an operator runs that is not torch's own: its tensors whose values are in the dump, for which pending jobs
 * finish. After what it declares has been forgotten (capture.c). 0, or -1 with an exception; fx_watch_clear() follows.
 */
int fx_watch_begin(struct fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                   fx_watch *out);

/* When it has returned: what changed is noted in the index, logged once, and forgotten as a known value. */
int fx_watch_end(struct fx_capture *capture, const fx_instruction *instruction, const fx_watch *watch);

void fx_watch_clear(fx_watch *watch);

/* Pending jobs that read the memory finish, without the GIL. */
void fx_watch_settle(struct fx_capture *capture, const void *first, const void *end);

/* One line to the log about a node, the first time. 0, or -1 with an exception. */
int fx_watch_tell(struct fx_capture *capture, const fx_instruction *instruction, const char *what);

#endif
