/*
 * effect.h - what a call may do to memory that a pending job still reads.
 */
#ifndef FX_EXT_EFFECT_H
#define FX_EXT_EFFECT_H

#include "program.h"

/* Sets effect, mutated and n_mutated for a call_function target. 0, or -1 with an exception. */
int fx_effect_of(fx_state *state, PyObject *target, fx_instruction *out);

#endif
