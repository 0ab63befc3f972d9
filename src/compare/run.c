/*
 * run.c - judging every pair on all threads. Pairs are handed out one by one, the largest first so that none is left
 * over at the end (in order of execution where the first difference ends it).
 *
 * Where somebody wants to see progress the calling thread does nothing else: it is told ten times a second, and can stop
 * the work in the middle of a large pair.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "compare/report.h"
#include "util/error.h"
#include "util/memory.h"

#define MAX_THREADS 64
#define PROGRESS_NS 100000000L

typedef struct queue {
    fx_comparison *comparison;
    size_t *order;
    atomic_size_t next;
    atomic_size_t done;
    atomic_size_t first_bad; /* fail_fast: the first pair known to differ, or SIZE_MAX */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t n_running; /* under `lock` */
} queue;

typedef struct worker {
    pthread_t thread;
    queue *queue;
    fx_desk desk;
    fxtap_status status;
    fx_error_copy error;
} worker;

static void note_bad(queue *q, size_t p)
{
    size_t first = atomic_load(&q->first_bad);
    while (p < first && !atomic_compare_exchange_weak(&q->first_bad, &first, p)) {
    }
}

/* With fail_fast pairs are handed out in order: those before the first bad one are all under way, and are finished. */
static void judge_pairs(worker *w)
{
    fx_comparison *c = w->queue->comparison;
    bool fail_fast = c->options->fail_fast;
    while (w->status == FXTAP_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        size_t i = atomic_fetch_add(&w->queue->next, 1);
        if (i >= c->report->n_pairs || (fail_fast && i > atomic_load(&w->queue->first_bad))) {
            break;
        }
        size_t p = w->queue->order[i];
        w->status = fx_judge(c, &c->report->pairs[p], &c->sources[p], &w->desk);
        atomic_fetch_add_explicit(&w->queue->done, 1, memory_order_relaxed);
        if (w->status == FXTAP_OK && fail_fast && fx_verdict_is_bad(c->report->pairs[p].verdict)) {
            note_bad(w->queue, p);
        }
    }
    if (w->status != FXTAP_OK) {
        fx_error_save(w->status, &w->error);
        atomic_store(&c->stop, true);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    judge_pairs(w);
    pthread_mutex_lock(&w->queue->lock);
    w->queue->n_running--;
    pthread_cond_signal(&w->queue->ended);
    pthread_mutex_unlock(&w->queue->lock);
    return NULL;
}

static int compare_sizes(const void *left, const void *right, void *context)
{
    const uint64_t *bytes = context;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    if (bytes[a] != bytes[b]) {
        return bytes[a] < bytes[b] ? 1 : -1;
    }
    return (a > b) - (a < b);
}

static fxtap_status order_pairs(const fx_comparison *c, size_t **out)
{
    size_t n = c->report->n_pairs;
    size_t *order = fx_calloc(n, sizeof *order);
    uint64_t *bytes = fx_calloc(n, sizeof *bytes);
    if (order == NULL || bytes == NULL) {
        fx_free(order);
        fx_free(bytes);
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const fxtap_tensor_info *golden = fx_side_at(&c->golden, c->sources[i].golden);
        order[i] = i;
        bytes[i] = golden != NULL && golden->has_meta ? golden->bytes : 0;
    }
    if (!c->options->fail_fast) {
        qsort_r(order, n, sizeof *order, compare_sizes, bytes);
    }
    fx_free(bytes);
    *out = order;
    return FXTAP_OK;
}

static size_t thread_count(const fx_comparison *c)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = c->options->n_threads > 0 ? (size_t)c->options->n_threads : processors > 0 ? (size_t)processors : 1;
    n = n > MAX_THREADS ? MAX_THREADS : n;
    return n > c->report->n_pairs ? (c->report->n_pairs > 0 ? c->report->n_pairs : 1) : n;
}

static void told_to_stop(fx_comparison *c, worker *first)
{
    atomic_store(&c->stop, true);
    if (first->status == FXTAP_OK) {
        first->status = fx_error(FXTAP_E_CANCELLED, "the comparison was stopped");
        fx_error_save(first->status, &first->error);
    }
}

/* Waits for the workers and tells how far they are; true when the caller asked to stop. */
static bool watch(queue *q)
{
    const fxtap_compare_options *options = q->comparison->options;
    bool stopped = false, running = true;
    while (running) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&q->lock);
        int error = 0;
        while (q->n_running > 0 && error == 0) {
            error = pthread_cond_timedwait(&q->ended, &q->lock, &until);
        }
        running = q->n_running > 0;
        pthread_mutex_unlock(&q->lock);
        uint64_t done = atomic_load_explicit(&q->done, memory_order_relaxed);
        if (!stopped && !options->progress(options->context, done, q->comparison->report->n_pairs)) {
            stopped = true;
            atomic_store(&q->comparison->stop, true);
        }
    }
    return stopped;
}

static size_t start_workers(queue *q, worker *workers, size_t n)
{
    size_t n_started = 0;
    while (n_started < n) {
        pthread_mutex_lock(&q->lock);
        q->n_running++;
        pthread_mutex_unlock(&q->lock);
        if (pthread_create(&workers[n_started].thread, NULL, work, &workers[n_started]) != 0) {
            pthread_mutex_lock(&q->lock);
            q->n_running--;
            pthread_mutex_unlock(&q->lock);
            break;
        }
        n_started++;
    }
    return n_started;
}

/* One that cannot be started leaves its work to the others; with none, this thread does it all. */
static void run_workers(worker *workers, size_t n)
{
    queue *q = workers[0].queue;
    const fxtap_compare_options *options = q->comparison->options;
    bool is_watched = options->progress != NULL;
    size_t first = is_watched ? 0 : 1;
    size_t n_started = start_workers(q, workers + first, n - first);
    bool stopped = false;
    if (is_watched && n_started > 0) {
        stopped = watch(q);
    } else {
        judge_pairs(&workers[0]);
    }
    for (size_t i = 0; i < n_started; i++) {
        pthread_join(workers[first + i].thread, NULL);
    }
    if (stopped) {
        told_to_stop(q->comparison, &workers[0]);
    }
}

/* What other threads judged beyond the first bad pair is dropped: the report is the same every time. */
static void forget_after(fx_comparison *c, size_t first_bad)
{
    c->report->stopped_early = first_bad != SIZE_MAX;
    for (size_t i = first_bad; first_bad != SIZE_MAX && i + 1 < c->report->n_pairs; i++) {
        fxtap_pair *pair = &c->report->pairs[i + 1];
        bool has_both = c->sources[i + 1].golden != FX_MISSING && c->sources[i + 1].target != FX_MISSING;
        if (has_both && pair->verdict != FXTAP_UNDEFINED) {
            pair->verdict = FXTAP_NOT_COMPARED;
            pair->measured = pair->identical_bits = false;
            pair->golden_stats = pair->target_stats = NULL;
            pair->n_worst = 0;
            pair->detail = "";
        }
    }
}

fxtap_status fx_judge_all(fx_comparison *comparison)
{
    queue q = {.comparison = comparison, .lock = PTHREAD_MUTEX_INITIALIZER};
    atomic_init(&q.next, 0);
    atomic_init(&q.done, 0);
    atomic_init(&q.first_bad, SIZE_MAX);
    fxtap_status status = order_pairs(comparison, &q.order);
    if (status != FXTAP_OK) {
        return status;
    }
    size_t n = thread_count(comparison);
    worker *workers = fx_calloc(n, sizeof *workers);
    if (workers == NULL) {
        fx_free(q.order);
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        workers[i].queue = &q;
        fx_arena_init(&workers[i].desk.arena);
        fx_folder_init(&workers[i].desk.golden_folder);
        fx_folder_init(&workers[i].desk.target_folder);
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    run_workers(workers, n);
    pthread_cond_destroy(&q.ended);
    pthread_mutex_destroy(&q.lock);
    forget_after(comparison, atomic_load(&q.first_bad));
    for (size_t i = 0; i < n; i++) {
        fx_arena_adopt(&comparison->report->arena, &workers[i].desk.arena);
        fx_folder_close(&workers[i].desk.golden_folder);
        fx_folder_close(&workers[i].desk.target_folder);
        if (workers[i].status != FXTAP_OK && (status == FXTAP_OK || status == FXTAP_E_CANCELLED)) {
            status = fx_error_restore(&workers[i].error);
        }
    }
    fx_free(workers);
    fx_free(q.order);
    return status;
}
