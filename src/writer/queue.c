/*
 * The queue of jobs: bounded in bytes, drained by workers and by callers that wait.
 *
 * What keeps every caller that waits from sleeping for good, all of it under the lock:
 *  1. No caller sleeps in `done` while a job is queued. It goes to sleep only when the queue is empty, and the job that
 *     makes the queue non-empty wakes all that sleep; each runs what is queued or has what it waited for. So a job needs
 *     no worker to be run: workers that sleep in `work` are woken for speed alone.
 *  2. Whatever a sleeping caller may wait for wakes it: the end of a job (its value, its memory, its room, its call),
 *     room given back unused, and a higher bound on room.
 *  3. Whoever sleeps for room has none: a reservation is taken whole or not at all.
 * Only a caller that keeps a reservation from being submitted can hold up another one.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "writer/writer.h"
#include "util/memory.h"
#include "util/system.h"

/* A worker is woken for a big tensor at once, for small ones when there are some: waking costs more than they do. */
#define WAKE_BYTES (64 * 1024)
#define WAKE_JOBS 16
/* A batch goes through the lock together. */
#define BATCH_JOBS 32
#define BATCH_BYTES (256 * 1024)
#define MOST_AUTOMATIC_WORKERS 4
/* Without workers a team works this much off at a time: enough to be worth its start, little enough to be in the cache. */
#define LENT_BYTES ((uint64_t)16 << 20)

static void init_locks(fx_queue *queue)
{
    fx_short_lock_init(&queue->lock);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->done, NULL);
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
    queue->threads = fx_calloc(n_threads > 0 ? n_threads : MOST_AUTOMATIC_WORKERS, sizeof *queue->threads);
    if (queue->threads == NULL) {
        return FXTAP_E_NOMEM;
    }
    init_locks(queue);
    return FXTAP_OK;
}

static void wake_callers_locked(fx_queue *queue)
{
    if (queue->n_waiting > 0) {
        pthread_cond_broadcast(&queue->done);
    }
}

/* Never fewer workers than before: those that run go on. */
void fx_queue_adapt(fx_queue *queue)
{
    if (queue->n_processors == 0) {
        return;
    }
    int size = queue->team.run != NULL ? queue->team.size() : 0;
    pthread_mutex_lock(&queue->lock);
    queue->n_team = size > 0 ? (unsigned)size : 0;
    unsigned n_free = queue->n_processors > queue->n_team ? queue->n_processors - queue->n_team : 0;
    unsigned n_workers = n_free < MOST_AUTOMATIC_WORKERS ? n_free : MOST_AUTOMATIC_WORKERS;
    queue->n_wanted = n_workers > queue->n_threads ? n_workers : queue->n_threads;
    bool is_lent = queue->n_wanted == 0 && queue->limit_bytes > LENT_BYTES;
    uint64_t room_bytes = is_lent ? LENT_BYTES : queue->limit_bytes;
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

/* Some jobs from the front: fewer when few are left, so that all threads end together. */
static fx_job *pop_locked(fx_queue *queue)
{
    size_t n_runners = (size_t)queue->n_threads + (queue->n_team > 0 ? queue->n_team : 1);
    size_t share = queue->n_queued / (2 * n_runners) + 1;
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

/* The end of a value's first job: the names that waited for it can be made. */
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
        job->next = call->done;
        call->done = job;
        atomic_store_explicit(&call->has_done, true, memory_order_release);
    }
    assert(call->n_open > 0);
    call->n_open--;
}

static void finish_all_locked(fx_queue *queue, fx_job *done)
{
    while (done != NULL) {
        fx_job *next = done->next;
        finish_locked(queue, done);
        done = next;
    }
    wake_callers_locked(queue);
}

/* Runs a batch with the lock let go. */
static void run_batch_locked(fx_queue *queue, void **scratch)
{
    fx_job *batch = pop_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    fx_job *done = NULL;
    while (batch != NULL) {
        fx_job *next = batch->next;
        fx_job_run(batch, scratch, &done);
        batch = next;
    }
    pthread_mutex_lock(&queue->lock);
    finish_all_locked(queue, done);
}

static void *run_worker(void *argument)
{
    fx_queue *queue = argument;
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    while (!queue->is_stopping || queue->head != NULL) {
        if (queue->head != NULL) {
            run_batch_locked(queue, &scratch);
        } else {
            queue->n_idle++;
            pthread_cond_wait(&queue->work, &queue->lock);
            queue->n_idle--;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
    return NULL;
}

/* Signals are the process's business: they go to its other threads. */
static void start_threads_locked(fx_queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (queue->n_threads < queue->n_wanted) {
        if (pthread_create(&queue->threads[queue->n_threads], NULL, run_worker, queue) != 0) {
            queue->n_wanted = queue->n_threads; /* callers do the work themselves */
            break;
        }
        fx_name_thread(queue->threads[queue->n_threads++], "fxtap writer");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* In the calling thread, all that is queued. */
static void work_off(void *argument)
{
    fx_queue *queue = argument;
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    while (queue->head != NULL) {
        run_batch_locked(queue, &scratch);
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
}

void fx_queue_stop(fx_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_stopping = true;
    pthread_cond_broadcast(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    work_off(queue);
    for (unsigned i = 0; i < queue->n_threads; i++) {
        pthread_join(queue->threads[i], NULL);
    }
    queue->n_threads = 0;
}

void fx_queue_destroy(fx_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->done);
    fx_free(queue->threads);
}

void fx_queue_after_fork(fx_queue *queue)
{
    init_locks(queue); /* those of the parent may be held, by threads that are not here */
    queue->head = queue->tail = queue->pending = NULL;
    queue->n_queued = 0;
    queue->queued_bytes = 0;
    atomic_store(&queue->used_bytes, 0);
    queue->n_idle = queue->n_waiting = queue->n_threads = 0;
    queue->team = (fxtap_team){NULL, NULL}; /* its threads are not here either */
    atomic_store(&queue->n_pending, 0);
}

void fx_queue_add(fx_queue *queue, fx_job *job)
{
    fx_value *awaited = job->is_first ? job->value->source : job->value;
    pthread_mutex_lock(&queue->lock);
    job->call->n_open++;
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
        if (queue->n_idle > 0 && (queue->queued_bytes >= WAKE_BYTES || queue->n_queued >= WAKE_JOBS)) {
            pthread_cond_signal(&queue->work);
        }
    }
    pthread_mutex_unlock(&queue->lock);
}

void fx_queue_run_now(fx_queue *queue, fx_job *job)
{
    pthread_mutex_lock(&queue->lock);
    job->call->n_open++;
    add_pending_locked(queue, job);
    pthread_mutex_unlock(&queue->lock);
    void *scratch = NULL;
    fx_job *done = NULL;
    fx_job_run(job, &scratch, &done);
    fx_free(scratch);
    pthread_mutex_lock(&queue->lock);
    finish_all_locked(queue, done);
    pthread_mutex_unlock(&queue->lock);
}

/* One step of a caller that waits: works where there is work, else sleeps until something is done. */
static void help_or_wait_locked(fx_queue *queue, void **scratch)
{
    if (queue->head != NULL) {
        run_batch_locked(queue, scratch);
        return;
    }
    queue->n_waiting++;
    pthread_cond_wait(&queue->done, &queue->lock);
    queue->n_waiting--;
}

void fx_queue_lend(fx_queue *queue, void (*work)(void *), void *argument)
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

/* Without workers a caller that must wait works everything off first, with its team. False: there was nothing. */
static bool work_off_locked(fx_queue *queue)
{
    bool is_ours = queue->n_threads == 0 && queue->head != NULL;
    if (is_ours) {
        pthread_mutex_unlock(&queue->lock);
        fx_queue_lend(queue, work_off, queue);
        pthread_mutex_lock(&queue->lock);
    }
    return is_ours;
}

void fx_queue_wait_value(fx_queue *queue, fx_value *value)
{
    if (atomic_load_explicit(&value->state, memory_order_acquire) != FX_VALUE_PENDING) {
        return;
    }
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    while (atomic_load(&value->state) == FX_VALUE_PENDING) {
        help_or_wait_locked(queue, &scratch);
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
}

void fx_queue_drain(fx_queue *queue, fxtap_call *call)
{
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    while (call->n_open > 0) {
        help_or_wait_locked(queue, &scratch);
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
}

static bool has_room(fx_queue *queue, uint64_t used_bytes, uint64_t n_bytes)
{
    uint64_t room_bytes = atomic_load_explicit(&queue->room_bytes, memory_order_relaxed);
    return used_bytes == 0 || (n_bytes <= room_bytes && used_bytes <= room_bytes - n_bytes);
}

static bool take_room(fx_queue *queue, uint64_t n_bytes)
{
    uint64_t used = atomic_load(&queue->used_bytes);
    while (has_room(queue, used, n_bytes)) {
        if (atomic_compare_exchange_weak(&queue->used_bytes, &used, used + n_bytes)) {
            return true;
        }
    }
    return false;
}

bool fx_queue_reserve(fx_queue *queue, uint64_t n_bytes, bool wait)
{
    if (take_room(queue, n_bytes)) { /* mostly: without the lock */
        return true;
    }
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    bool is_taken = take_room(queue, n_bytes);
    while (wait && !is_taken) {
        if (!work_off_locked(queue)) {
            help_or_wait_locked(queue, &scratch);
        }
        is_taken = take_room(queue, n_bytes);
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
    return is_taken;
}

void fx_queue_unreserve(fx_queue *queue, uint64_t n_bytes)
{
    pthread_mutex_lock(&queue->lock);
    atomic_fetch_sub(&queue->used_bytes, n_bytes);
    wake_callers_locked(queue);
    pthread_mutex_unlock(&queue->lock);
}

static bool overlaps_locked(const fx_queue *queue, const void *first, const void *end)
{
    for (const fx_job *job = queue->pending; job != NULL; job = job->pending_next) {
        if ((const char *)job->first < (const char *)end && (const char *)first < (const char *)job->end) {
            return true;
        }
    }
    return false;
}

bool fx_queue_overlaps(fx_queue *queue, const void *first, const void *end)
{
    if (atomic_load_explicit(&queue->n_pending, memory_order_acquire) == 0) {
        return false;
    }
    pthread_mutex_lock(&queue->lock);
    bool found = overlaps_locked(queue, first, end);
    pthread_mutex_unlock(&queue->lock);
    return found;
}

void fx_queue_settle(fx_queue *queue, const void *first, const void *end)
{
    if (atomic_load_explicit(&queue->n_pending, memory_order_acquire) == 0) {
        return;
    }
    void *scratch = NULL;
    pthread_mutex_lock(&queue->lock);
    (void)work_off_locked(queue);
    while (overlaps_locked(queue, first, end)) {
        help_or_wait_locked(queue, &scratch);
    }
    pthread_mutex_unlock(&queue->lock);
    fx_free(scratch);
}

fx_job *fx_queue_take_done(fx_queue *queue, fxtap_call *call)
{
    if (!atomic_load_explicit(&call->has_done, memory_order_acquire)) {
        return NULL;
    }
    pthread_mutex_lock(&queue->lock);
    fx_job *done = call->done;
    call->done = NULL;
    atomic_store_explicit(&call->has_done, false, memory_order_relaxed);
    pthread_mutex_unlock(&queue->lock);
    return done;
}
