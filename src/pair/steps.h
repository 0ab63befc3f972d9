/*
 * steps.h - the calls of one rank in order of execution, and where each iteration of the model begins.
 *
 * A call has a *class*: the kind of its graph and the first line of code in it, so that a recompiled graph has the
 * class of the graph it replaces. An iteration is the period of the sequence of classes. If the sequence does not
 * repeat, an iteration begins where the first class recurs after a different one. If the sides then have different
 * numbers of iterations, all calls are one iteration; but if only one side repeats, and one of its iterations is about
 * as large as the whole other side, the other side is one iteration.
 */
#ifndef FX_PAIR_STEPS_H
#define FX_PAIR_STEPS_H

#include "fxtap/reader.h"
#include "util/arena.h"

typedef struct fx_calls {
    const fxtap_step_info **items; /* in order of execution */
    uint64_t *classes;
    size_t n;
    size_t *first; /* first call of each step, followed by `n` */
    size_t n_steps;
    bool is_repeating; /* the sequence of classes repeats */
} fx_calls;

/* Sorts the calls, finds their classes and iterations; arrays in `arena`. `step_of`: a pattern, or NULL. */
fxtap_status fx_calls_create(fx_arena *arena, fxtap_reader *reader, const fxtap_step_info **items, size_t n,
                             const char *step_of, fx_calls *out);

/* Makes the steps of both sides comparable: if their numbers differ, merges several or all into one. */
void fx_calls_balance(fx_calls *golden, fx_calls *target);

#endif
