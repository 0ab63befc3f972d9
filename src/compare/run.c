/*
 * run.c - judging every pair on all threads. Pairs are handed out one by one, the largest first so that none is left
 * over at the end (in order of execution where the first difference ends it).
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "compare/report.h"
#include "util/error.h"
#include "util/memory.h"

#define MAX_THREADS 64

typedef struct queue {
    fx_comparison *comparison;
    size_t *order;
    atomic_size_t next;
    atomic_size_t done;
} queue;

typedef struct worker {
    pthread_t thread;
    queue *queue;
    fx_arena arena;
    bool reports_progress;
    fxtap_status status;
    fx_error_copy error;
} worker;

static void report_progress(worker *w)
{
    const fxtap_compare_options *options = w->queue->comparison->options;
    size_t done = atomic_load_explicit(&w->queue->done, memory_order_relaxed);
    if (!options->progress(options->context, done, w->queue->comparison->report->n_pairs)) {
        w->status = fx_error(FXTAP_E_CANCELLED, "the comparison was stopped");
        atomic_store(&w->queue->comparison->stop, true);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    fx_comparison *c = w->queue->comparison;
    while (w->status == FXTAP_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        size_t i = atomic_fetch_add(&w->queue->next, 1);
        if (i >= c->report->n_pairs) {
            break;
        }
        size_t p = w->queue->order[i];
        w->status = fx_judge(c, &c->report->pairs[p], &c->sources[p], &w->arena);
        atomic_fetch_add(&w->queue->done, 1);
        if (w->status == FXTAP_OK && c->options->fail_fast && fx_verdict_is_bad(c->report->pairs[p].verdict)) {
            atomic_store(&c->found_enough, true);
            atomic_store(&c->stop, true);
        }
        if (w->status == FXTAP_OK && w->reports_progress) {
            report_progress(w);
        }
    }
    if (w->status != FXTAP_OK) {
        fx_error_save(w->status, &w->error);
        atomic_store(&c->stop, true);
    }
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

/* Runs the workers; this thread is the first of them. One that cannot be started leaves its work to the others. */
static void run_workers(worker *workers, size_t n)
{
    size_t n_started = 1;
    while (n_started < n && pthread_create(&workers[n_started].thread, NULL, work, &workers[n_started]) == 0) {
        n_started++;
    }
    work(&workers[0]);
    for (size_t i = 1; i < n_started; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

fxtap_status fx_judge_all(fx_comparison *comparison)
{
    queue q = {.comparison = comparison};
    atomic_init(&q.next, 0);
    atomic_init(&q.done, 0);
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
        workers[i].reports_progress = i == 0 && comparison->options->progress != NULL;
        fx_arena_init(&workers[i].arena);
    }
    run_workers(workers, n);
    comparison->report->stopped_early = atomic_load(&comparison->found_enough);
    for (size_t i = 0; i < n; i++) {
        fx_arena_adopt(&comparison->report->arena, &workers[i].arena);
        bool is_first = status == FXTAP_OK || status == FXTAP_E_CANCELLED;
        bool stopped = workers[i].status == FXTAP_E_CANCELLED && comparison->report->stopped_early;
        if (workers[i].status != FXTAP_OK && !stopped && is_first) {
            status = fx_error_restore(&workers[i].error);
        }
    }
    fx_free(workers);
    fx_free(q.order);
    return status;
}
