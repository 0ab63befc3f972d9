#include "support_schedule.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 32
#define MAX_MUTEXES 64
#define MAX_POINTS 200000
#define N_PREEMPTIONS 3

typedef enum activity { RUNNABLE, IN_LOCK, IN_WAIT, IN_JOIN, FINISHED } activity;

typedef struct actor {
    pthread_t thread;
    sem_t turn;
    activity activity;
    const void *object; /* what it is blocked on */
    int64_t priority;
    bool drops_all;
    bool drops_next;
    bool is_joined;
    void *(*work)(void *);
    void *argument;
} actor;

typedef struct owned {
    const pthread_mutex_t *mutex;
    const actor *owner;
} owned;

/* Accessed by the running thread alone. */
static struct {
    actor actors[MAX_THREADS];
    size_t n_actors;
    owned mutexes[MAX_MUTEXES];
    size_t n_mutexes;
    uint64_t random;
    unsigned preempted_at[N_PREEMPTIONS];
    int64_t lowest;
    bool is_over; /* stuck or endless: every thread must exit */
    schedule_outcome outcome;
} run;

static _Thread_local actor *self; /* NULL: not in a run, where nothing is concurrent */
static const pthread_mutex_t *ignored;

static uint64_t next_random(void)
{
    uint64_t z = run.random += UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void end_if_over(void)
{
    if (run.is_over) {
        pthread_exit(NULL);
    }
}

static actor *highest(void)
{
    actor *found = NULL;
    for (size_t i = 0; i < run.n_actors; i++) {
        actor *at = &run.actors[i];
        if (at->activity == RUNNABLE && (found == NULL || at->priority > found->priority)) {
            found = at;
        }
    }
    return found;
}

static void describe_blocked(void)
{
    static const char *const words[] = {"runs", "locks", "waits", "joins", "has ended"};
    char *at = run.outcome.blocked;
    size_t left = sizeof run.outcome.blocked;
    for (size_t i = 0; i < run.n_actors && left > 1; i++) {
        int n = snprintf(at, left, "%sthread %zu %s", i > 0 ? ", " : "", i, words[run.actors[i].activity]);
        size_t used = (size_t)n < left ? (size_t)n : left - 1;
        at += used;
        left -= used;
    }
}

/* Ends the run and all remaining threads. */
static void give_up(bool *why)
{
    *why = true;
    describe_blocked();
    run.is_over = true;
    for (size_t i = 0; i < run.n_actors; i++) {
        if (&run.actors[i] != self && run.actors[i].activity != FINISHED) {
            sem_post(&run.actors[i].turn);
        }
    }
}

/* Resumes the highest thread; returns when that is the caller again. */
static void switch_thread(void)
{
    actor *next = highest();
    if (next == self) {
        return;
    }
    if (next != NULL) {
        sem_post(&next->turn);
    } else {
        give_up(&run.outcome.is_stuck);
        pthread_exit(NULL);
    }
    while (sem_wait(&self->turn) != 0) {
    }
    end_if_over();
}

void schedule_point(void)
{
    if (self == NULL) {
        return;
    }
    end_if_over();
    unsigned n = ++run.outcome.n_points;
    for (size_t i = 0; i < N_PREEMPTIONS; i++) {
        if (run.preempted_at[i] == n) {
            self->priority = --run.lowest;
        }
    }
    if (n > MAX_POINTS) {
        give_up(&run.outcome.is_endless);
        pthread_exit(NULL);
    }
    switch_thread();
}

static void block_in(activity how, const void *object)
{
    self->activity = how;
    self->object = object;
    switch_thread();
}

static void unblock(activity how, const void *object)
{
    for (size_t i = 0; i < run.n_actors; i++) {
        if (run.actors[i].activity == how && run.actors[i].object == object) {
            run.actors[i].activity = RUNNABLE;
        }
    }
}

/* ---- threads ---- */

/* All on one processor: switching is several times faster. */
static void choose_processor(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        size_t first = 0;
        while (!CPU_ISSET(first, &set)) {
            first++;
        }
        CPU_ZERO(&set);
        CPU_SET(first, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
}

static void *run_actor(void *argument)
{
    self = argument;
    choose_processor();
    while (sem_wait(&self->turn) != 0) {
    }
    end_if_over();
    self->work(self->argument);
    self->activity = FINISHED;
    unblock(IN_JOIN, self);
    actor *next = highest();
    if (next != NULL) {
        sem_post(&next->turn);
        return NULL;
    }
    for (size_t i = 0; i < run.n_actors; i++) {
        if (run.actors[i].activity != FINISHED) {
            give_up(&run.outcome.is_stuck);
            break;
        }
    }
    return NULL;
}

static actor *add_actor(void *(*work)(void *), void *argument)
{
    if (run.n_actors == MAX_THREADS) {
        abort();
    }
    actor *added = &run.actors[run.n_actors++];
    *added = (actor){.priority = (int64_t)(next_random() >> 2), .work = work, .argument = argument};
    sem_init(&added->turn, 0, 0);
    if (pthread_create(&added->thread, NULL, run_actor, added) != 0) {
        abort();
    }
    return added;
}

int schedule_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument)
{
    (void)attributes;
    *thread = add_actor(work, argument)->thread;
    schedule_point();
    return 0;
}

int schedule_join(pthread_t thread, void **result)
{
    (void)result;
    actor *at = run.actors;
    while (at->is_joined || !pthread_equal(at->thread, thread)) {
        at++;
    }
    schedule_point();
    while (at->activity != FINISHED) {
        block_in(IN_JOIN, at);
    }
    at->is_joined = true;
    return pthread_join(thread, NULL);
}

typedef struct first_call {
    void (*scenario)(void *);
    void *argument;
} first_call;

static void *run_first(void *argument)
{
    first_call *call = argument;
    call->scenario(call->argument);
    return NULL;
}

schedule_outcome schedule_run(uint64_t seed, void (*scenario)(void *), void *argument)
{
    memset(&run, 0, sizeof run);
    run.random = seed;
    for (size_t i = 0; i < N_PREEMPTIONS; i++) { /* runs are short and long: points of any order of magnitude */
        run.preempted_at[i] = 1 + (unsigned)(next_random() % (8u << next_random() % 8));
    }
    first_call call = {scenario, argument};
    actor *first = add_actor(run_first, &call);
    sem_post(&first->turn);
    pthread_join(first->thread, NULL); /* it ends last, or all end together */
    for (size_t i = 1; i < run.n_actors; i++) {
        if (!run.actors[i].is_joined) {
            pthread_join(run.actors[i].thread, NULL);
        }
    }
    for (size_t i = 0; i < run.n_actors; i++) {
        sem_destroy(&run.actors[i].turn);
    }
    return run.outcome;
}

/* ---- mutexes ---- */

static owned *find_mutex(const pthread_mutex_t *mutex)
{
    owned *at = run.mutexes;
    while (at < run.mutexes + run.n_mutexes && at->mutex != mutex) {
        at++;
    }
    if (at == run.mutexes + run.n_mutexes) {
        if (run.n_mutexes == MAX_MUTEXES) {
            abort();
        }
        run.n_mutexes++;
        *at = (owned){.mutex = mutex};
    }
    return at;
}

static void acquire(const pthread_mutex_t *mutex)
{
    owned *at = find_mutex(mutex);
    while (at->owner != NULL && mutex != ignored) {
        block_in(IN_LOCK, mutex);
    }
    at->owner = self;
}

static void release(const pthread_mutex_t *mutex)
{
    owned *at = find_mutex(mutex);
    if (at->owner != self && mutex != ignored) {
        abort();
    }
    at->owner = NULL;
    unblock(IN_LOCK, mutex);
}

int schedule_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    return pthread_mutex_init(mutex, attributes);
}

int schedule_mutex_destroy(pthread_mutex_t *mutex)
{
    return pthread_mutex_destroy(mutex);
}

int schedule_mutex_lock(pthread_mutex_t *mutex)
{
    if (self != NULL) {
        schedule_point();
        acquire(mutex);
    }
    return 0;
}

int schedule_mutex_trylock(pthread_mutex_t *mutex)
{
    if (self != NULL) {
        schedule_point();
        owned *at = find_mutex(mutex);
        if (at->owner != NULL) {
            return EBUSY;
        }
        at->owner = self;
    }
    return 0;
}

int schedule_mutex_unlock(pthread_mutex_t *mutex)
{
    if (self != NULL && !run.is_over) {
        release(mutex);
        schedule_point();
    }
    return 0;
}

/* ---- conditions ---- */

int schedule_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
    return pthread_cond_init(cond, attributes);
}

int schedule_cond_destroy(pthread_cond_t *cond)
{
    return pthread_cond_destroy(cond);
}

int schedule_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    schedule_point();
    release(mutex);
    block_in(IN_WAIT, cond);
    acquire(mutex);
    return 0;
}

/* Any of several waiting threads may wake. */
int schedule_cond_signal(pthread_cond_t *cond)
{
    actor *waiting[MAX_THREADS];
    size_t n = 0;
    for (size_t i = 0; i < run.n_actors; i++) {
        if (run.actors[i].activity == IN_WAIT && run.actors[i].object == cond) {
            waiting[n++] = &run.actors[i];
        }
    }
    if (n > 0) {
        waiting[next_random() % n]->activity = RUNNABLE;
    }
    schedule_point();
    return 0;
}

int schedule_cond_broadcast(pthread_cond_t *cond)
{
    if (self != NULL && !self->drops_all && !self->drops_next) {
        unblock(IN_WAIT, cond);
    }
    if (self != NULL) {
        self->drops_next = false;
    }
    schedule_point();
    return 0;
}

/* ---- faults ---- */

void schedule_drop_broadcasts(bool on)
{
    self->drops_all = on;
}

void schedule_drop_next_broadcast(void)
{
    self->drops_next = true;
}

void schedule_ignore(const pthread_mutex_t *mutex)
{
    ignored = mutex;
}
