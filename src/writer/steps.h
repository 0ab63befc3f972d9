/*
 * steps.h - the step numbers of one graph that are taken, as ranges: nearly always a single one, from 0. Not
 * thread-safe: the owner locks.
 *
 * A number is taken when a call begins, so that steps are numbered in the order of beginning. A call that fails gives
 * its number back: the next call to begin takes it, unless a later one has begun meanwhile; then it stays free for a
 * caller that asks for it.
 */
#ifndef FX_WRITER_STEPS_H
#define FX_WRITER_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/status.h"

#define FX_STEP_LAST ((uint64_t)INT64_MAX - 1) /* the index and the reader have 64 signed bits */

typedef struct fx_step_range {
    uint64_t first;
    uint64_t end;
} fx_step_range;

/* Zeroed: none is taken. */
typedef struct fx_steps {
    fx_step_range *ranges; /* ascending, a gap between each and the next */
    size_t n_ranges;
    size_t capacity;
} fx_steps;

void fx_steps_clear(fx_steps *steps);
/* One more than the highest taken number. */
uint64_t fx_steps_next(const fx_steps *steps);
/* FXTAP_E_EXISTS when it is taken, FXTAP_E_INVALID over FX_STEP_LAST, FXTAP_E_NOMEM. */
fxtap_status fx_steps_take(fx_steps *steps, uint64_t step);
/* Of a number that is taken. Without memory for one more range it stays taken, and is left out. */
void fx_steps_give_back(fx_steps *steps, uint64_t step);

#endif
