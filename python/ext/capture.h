/*
 * capture.h - the run loop's interface to a dump: begin a call, run nodes and submit their inputs and outputs, end the
 * call.
 */
#ifndef FX_EXT_CAPTURE_H
#define FX_EXT_CAPTURE_H

#include "program.h"

typedef struct fx_capture fx_capture; /* one call being dumped; belongs to its thread */

/*
 * Begins the capture of a call; *out is NULL if nothing is dumped. Returns 0, or -1 with an exception.
 */
int fx_capture_begin(fx_program *program, fx_capture **out);

/* Runs a node like fx_program_invoke(), and does what its plan and its effects require. */
PyObject *fx_capture_step(fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs);

/* Called before the loop drops a value. */
void fx_capture_drop(fx_capture *capture, PyObject *value);

/*
 * Ends a call. `result` is a new reference, or NULL with an exception if the call failed. Returns it, or NULL with an
 * exception if the dump failed and its error is to be raised. `capture` may be NULL.
 */
PyObject *fx_capture_end(fx_capture *capture, PyObject *result);

#endif
