/*
 * submit.h - submits Python values to the slots of one call.
 */
#ifndef FX_EXT_SUBMIT_H
#define FX_EXT_SUBMIT_H

#include "fxtap/dump.h"
#include "known.h"
#include "plan.h"

/*
 * Memory that a queued job reads, kept alive until the job is finished and released with the GIL held: by its DLPack
 * handle (the Python tensor itself can die earlier, and the garbage collector visits fewer objects), or by any object.
 */
typedef struct fx_pinned {
    struct fx_capture *capture;
    PyObject *owner; /* owned, or NULL */
    struct fx_dlpack_versioned *managed;
    struct fx_pinned *next; /* in the list of those whose job is finished */
} fx_pinned;

struct fx_capture {
    fx_state *state;
    fx_program *program;
    fx_plan *plan;
    fxtap_call *call;
    unsigned int generation; /* of the dump */
    bool is_guarded;         /* a torch function mode is active: it must not see our calls */
    bool has_begun;          /* something was submitted: folders and index exist */
    bool is_broken;          /* something failed: nothing more is submitted */
    bool has_device_failed;  /* a device raised while its memory was copied: the model's failure, not the dump's */
    PyObject *error;         /* what: the exception; owned */
    fx_node_plan *node;      /* the running one */
    PyObject *copied;        /* what the running node copies to its result; borrowed, or NULL */
    uint64_t stamp_us;
    unsigned int depth; /* nesting of the value that is being submitted */
    fx_known known;
    fx_pinned *finished; /* to be released */
};

/*
 * Submits a value under a place: tensors, numbers, strings, lists of them; None and other objects are recorded as
 * skipped. 0, or -1 with an exception.
 */
int fx_submit(struct fx_capture *capture, fx_place *place, fxtap_io io, PyObject *value);

/* What a node returned: a tensor or a number is output 0, the elements of a list outputs 0, 1, ... */
int fx_submit_outputs(struct fx_capture *capture, PyObject *result);

/* Records that a place has no value, and why. */
int fx_submit_skip(struct fx_capture *capture, fx_place *place, fxtap_io io, const char *reason);

/* Records a finding about an operator. 0, or -1 with an exception. */
int fx_submit_note(struct fx_capture *capture, const fxtap_note *note);

/* Releases what finished jobs have read. */
void fx_submit_release(struct fx_capture *capture);

#endif
