/*
 * effect.h - what a call may do to memory that a pending job still reads.
 */
#ifndef FX_EXT_EFFECT_H
#define FX_EXT_EFFECT_H

#include "program.h"

/* Sets effect, mutated, n_mutated, argument_names and is_undefined for a call_function target. 0, or -1 with an exception. */
int fx_effect_of(fx_state *state, PyObject *target, fx_instruction *out);

/* The same for another node of the same target: reading a schema is slow. */
int fx_effect_copy(const fx_instruction *from, fx_instruction *out);

/*
 * True for arguments that an operator changes although its schema does not say so: the running statistics of the
 * older batch and instance normalisations. `target` is "aten.native_batch_norm.default".
 */
bool fx_is_hidden_mutation(const char *target, const char *argument);

/* True where the result, or part of it, is memory as it was found. `target` is "aten.empty.memory_format". */
bool fx_is_undefined(const char *target);

#endif
