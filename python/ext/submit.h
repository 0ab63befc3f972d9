/*
 * submit.h - Python values into the slots of one call.
 */
#ifndef FX_EXT_SUBMIT_H
#define FX_EXT_SUBMIT_H

#include "fxtap/dump.h"
#include "known.h"
#include "plan.h"

/*
 * What a queued job reads from, given up once the job is over, with the GIL held: memory by its DLPack handle (so
 * that the Python tensor can die in time, and the garbage collector has less to walk), or any object.
 */
typedef struct fx_held {
    struct fx_capture *capture;
    PyObject *owner; /* owned, or NULL */
    struct fx_dlpack_versioned *managed;
    struct fx_held *next; /* among those whose job is over */
} fx_held;

struct fx_capture {
    fx_state *state;
    fx_program *program;
    fx_plan *plan;
    fxtap_call *call;
    unsigned int generation; /* of the dump */
    bool is_guarded;         /* a torch function mode is on: it must not see us */
    bool has_begun;          /* something was handed over: folders and index are there */
    bool is_broken;          /* something failed: nothing more is submitted */
    PyObject *error;         /* what: the exception; owned */
    fx_node_plan *node;      /* that runs */
    uint64_t stamp_us;
    unsigned int depth;      /* lists around the value that is being submitted */
    fx_known known;
    fx_held *done;           /* jobs are over: to be given up */
};

/*
 * Submits a value under a place: tensors, numbers, strings, lists of them; None and other objects are recorded as
 * skipped. 0, or -1 with an exception.
 */
int fx_submit(struct fx_capture *capture, fx_place *place, fxtap_io io, PyObject *value);

/* What a node returned: a tensor or a number is output 0, the elements of a list outputs 0, 1, ... */
int fx_submit_outputs(struct fx_capture *capture, PyObject *result);

/* Records a place as having no value, and why. */
int fx_submit_skip(struct fx_capture *capture, fx_place *place, fxtap_io io, const char *reason);

/* Records what was found wrong with an operator. 0, or -1 with an exception. */
int fx_submit_note(struct fx_capture *capture, const fxtap_note *note);

/* Gives up what finished jobs held. */
void fx_submit_release(struct fx_capture *capture);

#endif
