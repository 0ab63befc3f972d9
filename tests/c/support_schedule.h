/*
 * support_schedule.h - a deterministic scheduler: runs the threads of a scenario one at a time, in an order that a seed
 * decides, and finds deadlocks and lost wake-ups. Code participates if it is compiled with support_seam.h included
 * first.
 *
 * A thread runs until it blocks or a *point* (a lock, a wait, a signal, an atomic operation) lets another one go on.
 * Each thread has a random priority and the highest runs; at a few random points the running thread becomes the lowest,
 * so that preemptions are bounded (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding
 * bugs", ASPLOS 2010). Equal seeds give equal runs. Conditions have no spurious wake-ups: those would hide lost ones.
 */
#ifndef SUPPORT_SCHEDULE_H
#define SUPPORT_SCHEDULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct schedule_outcome {
    bool is_stuck;   /* all remaining threads were blocked */
    bool is_endless; /* too many points */
    unsigned n_points;
    char blocked[256]; /* which threads, and where */
} schedule_outcome;

/* Runs scenario(argument) and the threads that it starts. If they are stuck, all are ended. */
schedule_outcome schedule_run(uint64_t seed, void (*scenario)(void *), void *argument);

void schedule_point(void);

/* ---- faults, to be found ---- */

/* Broadcasts of the calling thread do nothing. */
void schedule_drop_broadcasts(bool on);
/* Only the next one does nothing. */
void schedule_drop_next_broadcast(void);
/* A mutex that does not exclude in the next run; NULL: none. */
void schedule_ignore(const pthread_mutex_t *mutex);

/* ---- replacements of the functions of pthread.h ---- */

int schedule_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int schedule_mutex_destroy(pthread_mutex_t *mutex);
int schedule_mutex_lock(pthread_mutex_t *mutex);
int schedule_mutex_trylock(pthread_mutex_t *mutex);
int schedule_mutex_unlock(pthread_mutex_t *mutex);
int schedule_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes);
int schedule_cond_destroy(pthread_cond_t *cond);
int schedule_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int schedule_cond_signal(pthread_cond_t *cond);
int schedule_cond_broadcast(pthread_cond_t *cond);
int schedule_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument);
int schedule_join(pthread_t thread, void **result);

#endif
