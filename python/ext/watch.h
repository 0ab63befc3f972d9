/*
 * watch.h - operators that write to an argument without declaring it.
 *
 * The schema of an operator that is not torch's own may be wrong. After the operator has returned, the arguments that
 * it does not declare as mutated are compared with their hashes.
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
 * Called before an operator that is not torch's own runs, after the arguments that it declares as mutated have been
 * forgotten (capture.c). Collects its tensors whose values are in the dump, and waits for pending jobs on its tensors.
 * Returns 0, or -1 with an exception; call fx_watch_clear() in both cases.
 */
int fx_watch_begin(struct fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                   fx_watch *out);

/* Called when it has returned: records changes in the index, logs them once, and forgets the known values. */
int fx_watch_end(struct fx_capture *capture, const fx_instruction *instruction, const fx_watch *watch);

void fx_watch_clear(fx_watch *watch);

/* Waits for pending jobs that read the memory, without the GIL. */
void fx_watch_settle(struct fx_capture *capture, const void *first, const void *end);

/* Logs one line about a node, the first time only. Returns 0, or -1 with an exception. */
int fx_watch_log(struct fx_capture *capture, const fx_instruction *instruction, const char *what);

#endif
