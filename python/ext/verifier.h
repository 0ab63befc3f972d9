/*
 * verifier.h - a dump of type "verify": asks a Python object (fxtap.verification.live.Verifier) about each run of a
 * node; only tensors of wrong ones are submitted.
 */
#ifndef FX_EXT_VERIFIER_H
#define FX_EXT_VERIFIER_H

#include "program.h"
#include "submit.h"

/*
 * Called before a node runs. *held_out is the tuple of its args and kwargs as they are now: copies where it may change
 * them; NULL if this run is not verified. Returns 0, or -1 with an exception.
 */
int fx_verifier_before(struct fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                       PyObject **held_out);

/* Called when it has returned. Whether a result is wrong: 1 or 0, or -1 with an exception. */
int fx_verifier_after(struct fx_capture *capture, const fx_instruction *instruction, PyObject *held, PyObject *args,
                      PyObject *kwargs, PyObject *result);

#endif
