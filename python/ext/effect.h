/*
 * effect.h - effects of a call on memory that a pending job still reads.
 */
#ifndef FX_EXT_EFFECT_H
#define FX_EXT_EFFECT_H

#include "program.h"

/*
 * Sets effect, mutated, n_mutated, argument_names, is_undefined for a call_function target. 0, or -1 with an exception.
 */
int fx_effect_of(fx_state *state, PyObject *target, fx_instruction *out);

/* Copies them for another node with the same target: reading a schema is slow. */
int fx_effect_copy(const fx_instruction *from, fx_instruction *out);

/*
 * Returns whether an operator changes an argument that its schema does not declare as mutated: the running statistics
 * of the older batch and instance normalisations. `target` is a name such as "aten.native_batch_norm.default".
 */
bool fx_is_hidden_mutation(const char *target, const char *argument);

/* Returns whether the result, or part of it, is uninitialised memory. `target`: "aten.empty.memory_format". */
bool fx_is_undefined(const char *target);

#endif
