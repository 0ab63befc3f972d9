/*
 * run.c - judges a batch's pairs on several threads. Threads take pairs one by one, the largest first, so that no large
 * pair is left for the end (in order of execution with fail_fast).
 *
 * With a progress callback the calling thread does not judge: it calls the callback ten times a second, and can stop
 * the work in the middle of a large pair.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "compare/batch.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/system.h"

#define MAX_THREADS 64
#define PROGRESS_NS 100000000L

typedef struct worker {
    pthread_t thread;
    fx_judging *judging;
    fx_judge_memory memory;
    fxtap_status status;
    fx_error_copy error;
} worker;

struct fx_judging {
    fx_batch *batch;
    size_t *order; /* order in which pairs are judged */
    atomic_size_t next;
    atomic_size_t done;
    atomic_size_t first_bad; /* fail_fast: the first pair known to differ, or SIZE_MAX */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t n_running; /* protected by `lock` */
    worker *workers;  /* the first is the calling thread's, if that judges too */
    size_t n_workers;
    size_t first;     /* index of the first worker with its own thread */
    size_t n_started; /* workers with a running thread */
};

static void note_bad(fx_judging *j, size_t p)
{
    size_t first = atomic_load(&j->first_bad);
    while (p < first && !atomic_compare_exchange_weak(&j->first_bad, &first, p)) {
    }
}

/* With fail_fast pairs are taken in order: those before the first bad one have all been taken, and are finished. */
static void judge_pairs(worker *w)
{
    fx_judging *j = w->judging;
    const fx_batch *batch = j->batch;
    fx_comparison *c = batch->comparison;
    bool fail_fast = c->options->fail_fast;
    while (w->status == FXTAP_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        size_t i = atomic_fetch_add(&j->next, 1);
        if (i >= batch->n_pairs || (fail_fast && i > atomic_load(&j->first_bad))) {
            break;
        }
        size_t p = j->order[i];
        w->status = fx_judge(batch, p, &w->memory);
        atomic_fetch_add_explicit(&j->done, 1, memory_order_relaxed);
        if (w->status == FXTAP_OK && fail_fast && fx_verdict_is_bad(batch->pairs[p].verdict)) {
            note_bad(j, p);
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
    pthread_mutex_lock(&w->judging->lock);
    w->judging->n_running--;
    pthread_cond_signal(&w->judging->ended);
    pthread_mutex_unlock(&w->judging->lock);
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

static fxtap_status order_pairs(fx_batch *batch, size_t **out)
{
    size_t n = batch->n_pairs;
    size_t *order = fx_arena_calloc(&batch->arena, n, sizeof *order);
    uint64_t *bytes = fx_arena_calloc(&batch->arena, n, sizeof *bytes);
    if (order == NULL || bytes == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const fxtap_tensor_info *golden = fx_batch_golden(batch, batch->sources[i].golden);
        order[i] = i;
        bytes[i] = golden != NULL && golden->has_meta ? golden->bytes : 0;
    }
    if (!batch->comparison->options->fail_fast) {
        qsort_r(order, n, sizeof *order, compare_sizes, bytes);
    }
    *out = order;
    return FXTAP_OK;
}

static size_t thread_count(const fx_batch *batch)
{
    int32_t wanted = batch->comparison->options->n_threads;
    size_t n = wanted > 0 ? (size_t)wanted : fx_processor_count();
    n = n > MAX_THREADS ? MAX_THREADS : n;
    return n > batch->n_pairs ? (batch->n_pairs > 0 ? batch->n_pairs : 1) : n;
}

/* ---- begin ---- */

static void init_lock(fx_judging *j)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* If a thread cannot be started, the others do its work; without any, the calling thread does all of it. */
static void start_workers(fx_judging *j)
{
    while (j->first + j->n_started < j->n_workers) {
        worker *w = &j->workers[j->first + j->n_started];
        pthread_mutex_lock(&j->lock);
        j->n_running++;
        pthread_mutex_unlock(&j->lock);
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            pthread_mutex_lock(&j->lock);
            j->n_running--;
            pthread_mutex_unlock(&j->lock);
            break;
        }
        j->n_started++;
    }
}

fxtap_status fx_judging_begin(fx_batch *batch, fx_judging **out)
{
    size_t n = thread_count(batch);
    fx_judging *j = fx_arena_calloc(&batch->arena, 1, sizeof *j);
    worker *workers = fx_arena_calloc(&batch->arena, n, sizeof *workers);
    if (j == NULL || workers == NULL || order_pairs(batch, &j->order) != FXTAP_OK) {
        return FXTAP_E_NOMEM;
    }
    j->batch = batch;
    j->workers = workers;
    j->n_workers = n;
    j->first = batch->comparison->options->progress != NULL ? 0 : 1;
    atomic_init(&j->next, 0);
    atomic_init(&j->done, 0);
    atomic_init(&j->first_bad, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        workers[i].judging = j;
        fx_arena_init(&workers[i].memory.arena);
        fx_folder_cache_init(&workers[i].memory.golden_folder);
        fx_folder_cache_init(&workers[i].memory.target_folder);
    }
    init_lock(j);
    start_workers(j);
    *out = j;
    return FXTAP_OK;
}

/* ---- end ---- */

/* The number of pairs is exact once all groups are paired; before that, it is extrapolated from the groups so far. */
static uint64_t expected_pairs(const fx_comparison *c)
{
    double share = c->n_begun < c->groups.n_items ? (double)c->n_begun / (double)c->groups.n_items : 1.0;
    return (uint64_t)((double)c->n_paired / share);
}

/* Waits for the workers and reports progress; true if the caller asked to stop. */
static bool watch(fx_judging *j)
{
    fx_comparison *c = j->batch->comparison;
    bool stopped = false, running = true;
    while (running) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&j->lock);
        int error = 0;
        while (j->n_running > 0 && error == 0) {
            error = pthread_cond_timedwait(&j->ended, &j->lock, &until);
        }
        running = j->n_running > 0;
        pthread_mutex_unlock(&j->lock);
        uint64_t done = c->n_judged + atomic_load_explicit(&j->done, memory_order_relaxed);
        if (!stopped && !c->options->progress(c->options->context, done, expected_pairs(c))) {
            stopped = true;
            atomic_store(&c->stop, true);
        }
    }
    return stopped;
}

static void told_to_stop(worker *first)
{
    if (first->status == FXTAP_OK) {
        first->status = fx_error(FXTAP_E_CANCELLED, "the comparison was stopped");
        fx_error_save(first->status, &first->error);
    }
}

/* Drops what other threads judged after the first bad pair, so that the report is deterministic. */
static void forget_after(fx_batch *batch, size_t first_bad)
{
    if (first_bad == SIZE_MAX) {
        return;
    }
    batch->comparison->found_bad = batch->comparison->report->stopped_early = true;
    for (size_t i = first_bad + 1; i < batch->n_pairs; i++) {
        fx_pair_forget(&batch->pairs[i]);
    }
}

fxtap_status fx_judging_end(fx_judging *judging)
{
    fx_batch *batch = judging->batch;
    if (judging->first == 0 && judging->n_started > 0) {
        if (watch(judging)) {
            told_to_stop(&judging->workers[0]);
        }
    } else {
        judge_pairs(&judging->workers[0]);
    }
    for (size_t i = 0; i < judging->n_started; i++) {
        pthread_join(judging->workers[judging->first + i].thread, NULL);
    }
    pthread_cond_destroy(&judging->ended);
    pthread_mutex_destroy(&judging->lock);
    forget_after(batch, atomic_load(&judging->first_bad));
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < judging->n_workers; i++) {
        worker *w = &judging->workers[i];
        fx_arena_adopt(&batch->comparison->report->arena, &w->memory.arena);
        fx_folder_cache_clear(&w->memory.golden_folder);
        fx_folder_cache_clear(&w->memory.target_folder);
        if (w->status != FXTAP_OK && (status == FXTAP_OK || status == FXTAP_E_CANCELLED)) {
            status = fx_error_restore(&w->error);
        }
    }
    return status;
}
