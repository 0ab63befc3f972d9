/*
 * team.h - the OpenMP threads that torch keeps, lent to a dump.
 *
 * Nothing is linked: the runtime that torch has loaded is asked for by its public entry points (GOMP_parallel, which
 * GNU's, LLVM's and Intel's runtimes have, and omp_get_max_threads).
 */
#ifndef FX_EXT_TEAM_H
#define FX_EXT_TEAM_H

#include "fxtap/dump.h"

/* To be called once when the module is made: a forked child has none of the team's threads, and must know. */
void fx_team_watch_forks(void);

/* The team, or NULL: there is no such runtime, it is not torch's, or this is a forked child. */
const fxtap_team *fx_team(int torch_threads);

#endif
