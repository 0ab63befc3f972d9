/*
 * The queue of jobs.
 *
 * Workers, callers that wait and the threads of a team all run jobs in one loop, run_until_locked(); they differ only
 * in what ends it. Its invariants, all under the lock:
 *  1. A thread goes to sleep only when the queue is empty and what it waits for has not happened.
 *  2. Whatever can end a caller's sleep wakes all callers before the lock is released: a job in an empty queue, the end
 *     of a job (its value, its memory, its room, its call), room given back unused, a higher limit on room.
 *  3. A caller that sleeps for room has none of its own: a reservation is taken whole or not at all.
 * So no caller sleeps while a job is queued, and none depends on a worker. A worker may sleep while a few small jobs
 * are queued: it is woken for speed alone, and when the queue stops. Only a caller that neither uses nor gives back its
 * room can hold up another one.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "util/memory.h"
#include "util/system.h"
#include "writer/dump.h"

/* A worker is woken at once for a large tensor, but only for several small ones: waking costs more than they do. */
#define WAKE_BYTES (64 * 1024)
#define WAKE_JOBS 16
/* The jobs of a batch take the lock together. */
#define BATCH_JOBS 32
#define BATCH_BYTES (256 * 1024)
#define MAX_AUTOMATIC_WORKERS 4
/* What a team runs at a time where there are no workers: enough to be worth its start, and still in the cache. */
#define TEAM_BYTES ((uint64_t)16 << 20)

/* What ends a thread's work on the queue. Called with the lock held. */
typedef bool (*ending)(fx_queue *queue, const void *context);

static void init_locks(fx_queue *queue)
{
    fx_short_lock_init(&queue->lock);
    pthread_cond_init(&queue->workers.wake, NULL);
    pthread_cond_init(&queue->callers.wake, NULL);
}

fxtap_status fx_queue_init(fx_queue *queue, uint64_t limit_bytes, unsigned n_threads, const fxtap_team *team)
{
    memset(queue, 0, sizeof *queue);
    queue->limit_bytes = limit_bytes;
    atomic_store(&queue->room_bytes, limit_bytes);
    queue->n_wanted = n_threads;
    if (n_threads == 0) {
        queue->n_processors = fx_processor_count();
        queue->team = team != NULL ? *team : (fxtap_team){NULL, NULL};
    }
    queue->threads = fx_calloc(n_threads > 0 ? n_threads : MAX_AUTOMATIC_WORKERS, sizeof *queue->threads);
    if (queue->threads == NULL) {
        return FXTAP_E_NOMEM;
    }
    init_locks(queue);
    return FXTAP_OK;
}

static void wake_callers_locked(fx_queue *queue)
{
    if (queue->callers.n > 0) {
        pthread_cond_broadcast(&queue->callers.wake);
    }
}

/* The number of workers never falls. */
void fx_queue_adapt(fx_queue *queue)
{
    if (queue->n_processors == 0) {
        return;
    }
    int size = queue->team.run != NULL ? queue->team.size() : 0;
    pthread_mutex_lock(&queue->lock);
    queue->n_team = size > 0 ? (unsigned)size : 0;
    unsigned n_free = queue->n_processors > queue->n_team ? queue->n_processors - queue->n_team : 0;
    unsigned n_workers = n_free < MAX_AUTOMATIC_WORKERS ? n_free : MAX_AUTOMATIC_WORKERS;
    queue->n_wanted = n_workers > queue->n_threads ? n_workers : queue->n_threads;
    bool needs_team = queue->n_wanted == 0 && queue->limit_bytes > TEAM_BYTES;
    uint64_t room_bytes = needs_team ? TEAM_BYTES : queue->limit_bytes;
    if (atomic_exchange(&queue->room_bytes, room_bytes) < room_bytes) {
        wake_callers_locked(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

static uint64_t bytes_of(const fx_job *job)
{
    return job->is_first ? job->value->saved_bytes : 0;
}

static void push_locked(fx_queue *queue, fx_job *job)
{
    job->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = job;
    } else {
        queue->head = job;
        wake_callers_locked(queue);
    }
    queue->tail = job;
    queue->n_queued++;
    queue->queued_bytes += bytes_of(job);
}

/* Takes jobs from the front: fewer when few are left, so that all threads end at the same time. */
static fx_job *pop_locked(fx_queue *queue)
{
    size_t n_running = (size_t)queue->n_threads + (queue->n_team > 0 ? queue->n_team : 1);
    size_t share = queue->n_queued / (2 * n_running) + 1;
    size_t most = share < BATCH_JOBS ? share : BATCH_JOBS;
    fx_job *batch = queue->head;
    fx_job *last = NULL;
    uint64_t n_bytes = 0;
    for (size_t n = 0; queue->head != NULL && n < most && n_bytes < BATCH_BYTES; n++) {
        last = queue->head;
        queue->head = last->next;
        n_bytes += bytes_of(last);
        queue->n_queued--;
    }
    queue->queued_bytes -= n_bytes;
    if (last != NULL) {
        last->next = NULL;
    }
    if (queue->head == NULL) {
        queue->tail = NULL;
    }
    return batch;
}

static void add_pending_locked(fx_queue *queue, fx_job *job)
{
    if (job->first == NULL) {
        return;
    }
    job->pending_previous = NULL;
    job->pending_next = queue->pending;
    if (queue->pending != NULL) {
        queue->pending->pending_previous = job;
    }
    queue->pending = job;
    atomic_fetch_add_explicit(&queue->n_pending, 1, memory_order_release);
}

static void remove_pending_locked(fx_queue *queue, fx_job *job)
{
    if (job->first == NULL) {
        return;
    }
    if (job->pending_previous != NULL) {
        job->pending_previous->pending_next = job->pending_next;
    } else {
        queue->pending = job->pending_next;
    }
    if (job->pending_next != NULL) {
        job->pending_next->pending_previous = job->pending_previous;
    }
    atomic_fetch_sub_explicit(&queue->n_pending, 1, memory_order_release);
}

/* The value's first job is finished: the jobs that waited for it can run. */
static void finish_value_locked(fx_queue *queue, fx_job *job)
{
    fx_value *value = job->value;
    atomic_store(&value->state, job->is_written ? FX_VALUE_DONE : FX_VALUE_FAILED);
    fx_job *waiter = value->waiters;
    value->waiters = value->last_waiter = NULL;
    while (waiter != NULL) {
        fx_job *next = waiter->next;
        push_locked(queue, waiter);
        waiter = next;
    }
}

static void finish_locked(fx_queue *queue, fx_job *job)
{
    fxtap_call *call = job->call;
    if (job->is_first) {
        finish_value_locked(queue, job);
    }
    remove_pending_locked(queue, job);
    if (job->reserved_bytes > 0) {
        atomic_fetch_sub(&queue->used_bytes, job->reserved_bytes);
        job->reserved_bytes = 0;
    }
    if (job->release != NULL) {
        job->next = call->finished;
        call->finished = job;
        atomic_store_explicit(&call->has_finished, true, memory_order_release);
    }
    assert(call->n_unfinished > 0);
    call->n_unfinished--;
}

static void finish_all_locked(fx_queue *queue, fx_job *finished)
{
    while (finished != NULL) {
        fx_job *next = finished->next;
        finish_locked(queue, finished);
        finished = next;
    }
    wake_callers_locked(queue);
}

/* Runs a batch with the lock released. */
static void run_batch_locked(fx_queue *queue, void **scratch)
{
    fx_job *batch = pop_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    fx_job *finished = NULL;
    while (batch != NULL) {
        fx_job *next = batch->next;
        fx_job_run(batch, scratch, &finished);
        batch = next;
    }
    pthread_mutex_lock(&queue->lock);
    finish_all_locked(queue, finished);
}

static void run_until_locked(fx_queue *queue, fx_sleepers *sleepers, ending is_over, const void *context)
{
    void *scratch = NULL;
    while (!is_over(queue, context)) {
        if (queue->head != NULL) {
            run_batch_locked(queue, &scratch);
        } else {
            sleepers->n++;
            pthread_cond_wait(&sleepers->wake, &queue->lock);
            sleepers->n--;
        }
    }
    fx_free(scratch);
}

static bool is_empty(fx_queue *queue, const void *context)
{
    (void)context;
    return queue->head == NULL;
}

static bool has_stopped(fx_queue *queue, const void *context)
{
    (void)context;
    return queue->is_stopping && queue->head == NULL;
}

static void *run_worker(void *argument)
{
    fx_queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    run_until_locked(queue, &queue->workers, has_stopped, NULL);
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* Workers block all signals: those are for the process's other threads. */
static void start_threads_locked(fx_queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (queue->n_threads < queue->n_wanted) {
        if (pthread_create(&queue->threads[queue->n_threads], NULL, run_worker, queue) != 0) {
            queue->n_wanted = queue->n_threads; /* callers run the jobs themselves */
            break;
        }
        fx_name_thread(queue->threads[queue->n_threads++], "fxtap writer");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Runs all that is queued in the calling thread. */
static void run_all(void *argument)
{
    fx_queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    run_until_locked(queue, &queue->callers, is_empty, NULL);
    pthread_mutex_unlock(&queue->lock);
}

void fx_queue_stop(fx_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_stopping = true;
    pthread_cond_broadcast(&queue->workers.wake);
    pthread_mutex_unlock(&queue->lock);
    run_all(queue);
    for (unsigned i = 0; i < queue->n_threads; i++) {
        pthread_join(queue->threads[i], NULL);
    }
    queue->n_threads = 0;
}

void fx_queue_destroy(fx_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->workers.wake);
    pthread_cond_destroy(&queue->callers.wake);
    fx_free(queue->threads);
}

void fx_queue_after_fork(fx_queue *queue)
{
    init_locks(queue); /* threads of the parent may hold the old ones */
    queue->head = queue->tail = queue->pending = NULL;
    queue->n_queued = 0;
    queue->queued_bytes = 0;
    atomic_store(&queue->used_bytes, 0);
    queue->workers.n = queue->callers.n = queue->n_threads = 0;
    queue->team = (fxtap_team){NULL, NULL}; /* its threads do not exist here */
    atomic_store(&queue->n_pending, 0);
}

void fx_queue_add(fx_queue *queue, fx_job *job)
{
    fx_value *awaited = job->is_first ? job->value->source : job->value;
    pthread_mutex_lock(&queue->lock);
    job->call->n_unfinished++;
    add_pending_locked(queue, job);
    if (awaited != NULL && atomic_load(&awaited->state) == FX_VALUE_PENDING) {
        job->next = NULL;
        if (awaited->last_waiter != NULL) {
            awaited->last_waiter->next = job;
        } else {
            awaited->waiters = job;
        }
        awaited->last_waiter = job;
    } else {
        push_locked(queue, job);
        if (queue->n_threads < queue->n_wanted) {
            start_threads_locked(queue);
        }
        if (queue->workers.n > 0 && (queue->queued_bytes >= WAKE_BYTES || queue->n_queued >= WAKE_JOBS)) {
            pthread_cond_signal(&queue->workers.wake);
        }
    }
    pthread_mutex_unlock(&queue->lock);
}

void fx_queue_run_now(fx_queue *queue, fx_job *job)
{
    pthread_mutex_lock(&queue->lock);
    job->call->n_unfinished++;
    add_pending_locked(queue, job);
    pthread_mutex_unlock(&queue->lock);
    void *scratch = NULL;
    fx_job *finished = NULL;
    fx_job_run(job, &scratch, &finished);
    fx_free(scratch);
    pthread_mutex_lock(&queue->lock);
    finish_all_locked(queue, finished);
    pthread_mutex_unlock(&queue->lock);
}

void fx_queue_run_team(fx_queue *queue, void (*work)(void *), void *argument)
{
    pthread_mutex_lock(&queue->lock);
    bool is_worth_it = queue->team.run != NULL && queue->n_team > 1 && queue->n_queued > 1;
    pthread_mutex_unlock(&queue->lock);
    if (is_worth_it) {
        queue->team.run(work, argument);
    } else {
        work(argument);
    }
}

/* Without workers a caller that must wait has its team run all that is queued first. */
static void run_all_with_team_locked(fx_queue *queue)
{
    if (queue->n_threads == 0 && queue->head != NULL) {
        pthread_mutex_unlock(&queue->lock);
        fx_queue_run_team(queue, run_all, queue);
        pthread_mutex_lock(&queue->lock);
    }
}

static bool is_done(fx_queue *queue, const void *value)
{
    (void)queue;
    return atomic_load(&((const fx_value *)value)->state) != FX_VALUE_PENDING;
}

void fx_queue_wait_value(fx_queue *queue, fx_value *value)
{
    if (atomic_load_explicit(&value->state, memory_order_acquire) != FX_VALUE_PENDING) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    run_until_locked(queue, &queue->callers, is_done, value);
    pthread_mutex_unlock(&queue->lock);
}

static bool is_finished(fx_queue *queue, const void *call)
{
    (void)queue;
    return ((const fxtap_call *)call)->n_unfinished == 0;
}

void fx_queue_wait_call(fx_queue *queue, fxtap_call *call)
{
    pthread_mutex_lock(&queue->lock);
    run_until_locked(queue, &queue->callers, is_finished, call);
    pthread_mutex_unlock(&queue->lock);
}

static bool has_room(fx_queue *queue, uint64_t used_bytes, uint64_t n_bytes)
{
    uint64_t room_bytes = atomic_load_explicit(&queue->room_bytes, memory_order_relaxed);
    return used_bytes == 0 || (n_bytes <= room_bytes && used_bytes <= room_bytes - n_bytes);
}

static bool take_room(fx_queue *queue, const void *n_bytes)
{
    uint64_t more = *(const uint64_t *)n_bytes;
    uint64_t used = atomic_load(&queue->used_bytes);
    while (has_room(queue, used, more)) {
        if (atomic_compare_exchange_weak(&queue->used_bytes, &used, used + more)) {
            return true;
        }
    }
    return false;
}

bool fx_queue_reserve(fx_queue *queue, uint64_t n_bytes, bool wait)
{
    bool is_taken = take_room(queue, &n_bytes); /* usually, and then without the lock */
    if (!is_taken && wait) {
        pthread_mutex_lock(&queue->lock);
        run_all_with_team_locked(queue);
        run_until_locked(queue, &queue->callers, take_room, &n_bytes);
        pthread_mutex_unlock(&queue->lock);
        is_taken = true;
    }
    return is_taken;
}

void fx_queue_unreserve(fx_queue *queue, uint64_t n_bytes)
{
    pthread_mutex_lock(&queue->lock);
    atomic_fetch_sub(&queue->used_bytes, n_bytes);
    wake_callers_locked(queue);
    pthread_mutex_unlock(&queue->lock);
}

typedef struct memory_range {
    const char *first;
    const char *end;
} memory_range;

/* No pending job reads the memory. */
static bool is_unread(fx_queue *queue, const void *context)
{
    const memory_range *range = context;
    const fx_job *job = queue->pending;
    while (job != NULL && ((const char *)job->first >= range->end || range->first >= (const char *)job->end)) {
        job = job->pending_next;
    }
    return job == NULL;
}

bool fx_queue_overlaps(fx_queue *queue, const void *first, const void *end)
{
    if (atomic_load_explicit(&queue->n_pending, memory_order_acquire) == 0) {
        return false;
    }
    pthread_mutex_lock(&queue->lock);
    bool is_free = is_unread(queue, &(memory_range){first, end});
    pthread_mutex_unlock(&queue->lock);
    return !is_free;
}

void fx_queue_wait_memory(fx_queue *queue, const void *first, const void *end)
{
    if (atomic_load_explicit(&queue->n_pending, memory_order_acquire) == 0) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    run_all_with_team_locked(queue);
    run_until_locked(queue, &queue->callers, is_unread, &(memory_range){first, end});
    pthread_mutex_unlock(&queue->lock);
}

fx_job *fx_queue_take_finished(fx_queue *queue, fxtap_call *call)
{
    if (!atomic_load_explicit(&call->has_finished, memory_order_acquire)) {
        return NULL;
    }
    pthread_mutex_lock(&queue->lock);
    fx_job *finished = call->finished;
    call->finished = NULL;
    atomic_store_explicit(&call->has_finished, false, memory_order_relaxed);
    pthread_mutex_unlock(&queue->lock);
    return finished;
}
