/*
 * team.h - torch's OpenMP threads as the team of a dump.
 *
 * Nothing is linked: the runtime that torch has loaded is asked for by its public entry points (GOMP_parallel, which
 * GNU's, LLVM's and Intel's runtimes have, and omp_get_max_threads).
 */
#ifndef FX_EXT_TEAM_H
#define FX_EXT_TEAM_H

#include "fxtap/dump.h"

/* Called once when the module is made, to detect forked children, which have none of the team's threads. */
void fx_team_watch_forks(void);

/* The team, or NULL: there is no such runtime, it is not torch's, or this is a forked child. */
const fxtap_team *fx_team(int torch_threads);

#endif
