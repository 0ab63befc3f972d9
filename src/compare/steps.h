/*
 * steps.h - the calls of one rank in order of execution, and where an iteration of the model begins.
 *
 * A call is of a *class*: the kind of its graph and the first line of code in it, so that a recompilation is of the class of
 * what it replaces. An iteration is what the sequence of classes repeats; where nothing repeats, it begins where the first
 * class comes again after another one; where that leaves the sides with different numbers, everything is one; but where one side alone repeats
 * itself, and an iteration of it is about as large as all of the other side, that is one iteration, too.
 */
#ifndef FX_COMPARE_STEPS_H
#define FX_COMPARE_STEPS_H

#include "compare/report.h"

typedef struct fx_calls {
    const fx_set **sets;  /* in order of execution */
    uint64_t *classes;
    size_t n;
    size_t *first;        /* of each step, and behind the last `n` */
    size_t n_steps;
    bool is_repeating;    /* the sequence of classes repeats itself */
} fx_calls;

/* Sorts the sets by call, finds their classes and steps; arrays in `arena`. `step_of`: a pattern, or NULL. */
fxtap_status fx_calls_create(fx_arena *arena, fxtap_reader *reader, const fx_set **sets, size_t n, const char *step_of,
                             fx_calls *out);

/* Makes the steps of both sides comparable: where their numbers differ, by taking several, or all, as one. */
void fx_calls_balance(fx_calls *golden, fx_calls *target);

#endif
