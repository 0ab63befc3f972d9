/*
 * queue.h - the queue of jobs, bounded in bytes. Its invariants are stated in queue.c. All functions may be called from
 * any thread, except where stated.
 */
#ifndef FX_WRITER_QUEUE_H
#define FX_WRITER_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "writer/job.h"

/* Threads that sleep until they are woken. */
typedef struct fx_sleepers {
    pthread_cond_t wake;
    unsigned n;
} fx_sleepers;

typedef struct fx_queue {
    pthread_mutex_t lock; /* protects every field but the atomic ones and the constants */
    fx_sleepers workers;
    fx_sleepers callers;
    fx_job *head;
    fx_job *tail;
    size_t n_queued;
    uint64_t queued_bytes;
    fx_job *pending; /* newest first */
    atomic_size_t n_pending;
    atomic_uint_fast64_t used_bytes; /* of the limit; lowered under the lock, raised without it */
    uint64_t limit_bytes;            /* constant */
    atomic_uint_fast64_t room_bytes; /* the limit in force: limit_bytes, or less where a team must run the jobs soon */
    fxtap_team team;                 /* run is NULL: no team */
    unsigned n_team;                 /* size of the team when last asked; 0: no team */
    unsigned n_processors;           /* constant; 0: the caller set the number of workers */
    bool is_stopping;
    pthread_t *threads;
    unsigned n_threads; /* running workers */
    unsigned n_wanted;
} fx_queue;

/* `n_threads` workers; 0: as many as the team (may be NULL) leaves processors for, see fx_queue_adapt(). */
fxtap_status fx_queue_init(fx_queue *queue, uint64_t limit_bytes, unsigned n_threads, const fxtap_team *team);
/* Asks for the team's size again. Called from a thread that is about to queue jobs. */
void fx_queue_adapt(fx_queue *queue);
/* Runs what is queued and joins the workers. No other thread may use the queue. */
void fx_queue_stop(fx_queue *queue);
void fx_queue_destroy(fx_queue *queue);
/* In a forked child: forgets the parent's jobs and threads. */
void fx_queue_after_fork(fx_queue *queue);

/* Queues a job, or keeps it with the value that it depends on until that value is done. */
void fx_queue_add(fx_queue *queue, fx_job *job);
/* Runs a job in the calling thread, with all bookkeeping. */
void fx_queue_run_now(fx_queue *queue, fx_job *job);

/*
 * Calls work(argument) in each thread of the team; in the calling thread alone where there is no team or too little is
 * queued. `work` may call any of the functions that wait.
 */
void fx_queue_run_team(fx_queue *queue, void (*work)(void *), void *argument);

/* Run queued jobs, and sleep while there are none, until the value's first job or all jobs of the call are finished. */
void fx_queue_wait_value(fx_queue *queue, fx_value *value);
void fx_queue_wait_call(fx_queue *queue, fxtap_call *call);
/* The same until no pending job reads memory in [first, end). With the team; not to be called from within it. */
void fx_queue_wait_memory(fx_queue *queue, const void *first, const void *end);
/* Whether a pending job reads memory in [first, end). */
bool fx_queue_overlaps(fx_queue *queue, const void *first, const void *end);

/* Takes room for `n_bytes`; more than the limit is let in alone. False: no room now, and no `wait`. Team as above. */
bool fx_queue_reserve(fx_queue *queue, uint64_t n_bytes, bool wait);
void fx_queue_unreserve(fx_queue *queue, uint64_t n_bytes);

/* Takes the finished jobs of a call whose releases are due. */
fx_job *fx_queue_take_finished(fx_queue *queue, fxtap_call *call);

#endif
