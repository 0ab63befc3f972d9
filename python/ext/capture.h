/*
 * capture.h - what the run loop asks of a dump: a call begins, nodes are run with their inputs and outputs submitted,
 * the call ends.
 */
#ifndef FX_EXT_CAPTURE_H
#define FX_EXT_CAPTURE_H

#include "program.h"

typedef struct fx_capture fx_capture; /* one call being dumped; belongs to its thread */

/*
 * Begins a call's capture; *out is NULL where nothing is dumped. 0, or -1 with an exception.
 */
int fx_capture_begin(fx_program *program, fx_capture **out);

/* Runs a node with what its plan and its effects ask for. As fx_program_invoke(). */
PyObject *fx_capture_step(fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs);

/* The loop is about to drop a value. */
void fx_capture_drop(fx_capture *capture, PyObject *value);

/*
 * Ends a call with its result (a new reference; NULL with an exception when it failed) and gives it on, or takes it
 * away where the dump failed and that is to be raised. NULL is allowed.
 */
PyObject *fx_capture_end(fx_capture *capture, PyObject *result);

#endif
