/* A dump session: options, opening, closing, fork. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/memory.h"
#include "util/system.h"
#include "writer/dump.h"
#include "writer/index_rows.h"
#include "writer/root.h"

#define DEFAULT_QUEUE_BYTES (UINT64_C(1) << 30)
#define MAX_THREADS 256

/* ---- fork: no other thread holds one of our locks while the process is copied ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static fxtap_dump *all_dumps; /* all_lock */
static atomic_uint n_forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

unsigned fx_fork_count(void)
{
    return atomic_load_explicit(&n_forks, memory_order_relaxed);
}

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
    for (fxtap_dump *dump = all_dumps; dump != NULL; dump = dump->next) {
        pthread_mutex_lock(&dump->index.lock);
        pthread_mutex_lock(&dump->rank_lock);
        pthread_mutex_lock(&dump->lock);
        pthread_mutex_lock(&dump->contents.move);
        pthread_mutex_lock(&dump->contents.lock);
        pthread_mutex_lock(&dump->queue.lock);
    }
}

static void after_fork_in_parent(void)
{
    for (fxtap_dump *dump = all_dumps; dump != NULL; dump = dump->next) {
        pthread_mutex_unlock(&dump->queue.lock);
        pthread_mutex_unlock(&dump->contents.lock);
        pthread_mutex_unlock(&dump->contents.move);
        pthread_mutex_unlock(&dump->lock);
        pthread_mutex_unlock(&dump->rank_lock);
        pthread_mutex_unlock(&dump->index.lock);
    }
    pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void)
{
    atomic_fetch_add(&n_forks, 1);
    after_fork_in_parent();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void fxtap_dump_after_fork(fxtap_dump *dump)
{
    if (dump->generation == fx_fork_count()) {
        return;
    }
    unsigned before = dump->generation;
    dump->generation = fx_fork_count();
    fx_calls_forget_steps(dump, before);
    fx_queue_after_fork(&dump->queue);
    fx_contents_forget(&dump->contents); /* files that the parent's workers are writing are not ours */
    fx_index_close(&dump->index, true);
    fx_rows_forget(dump);
    atomic_store(&dump->indexed_rank, 0);
    dump->started_us = fx_dump_now_us(dump);
}

/* ---- options ---- */

static uint64_t system_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t fx_dump_now_us(const fxtap_dump *dump)
{
    return dump->clock_us();
}

const char *fx_dump_type_name(fxtap_dump_type type)
{
    switch (type) {
    case FXTAP_DUMP_NPY:
        return "npy";
    case FXTAP_DUMP_STATS:
        return "stats";
    case FXTAP_DUMP_VERIFY:
        return "verify";
    }
    return NULL;
}

static fxtap_status check(const fxtap_dump_options *options)
{
    if (options->struct_size != sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "fxtap_dump_options has %zu bytes here, not %zu", sizeof *options,
                        options->struct_size);
    }
    if (options->path == NULL || options->path[0] == '\0') {
        return fx_error(FXTAP_E_INVALID, "a dump needs a path");
    }
    if (options->world_size < 1) {
        return fx_error(FXTAP_E_INVALID, "world_size is %d, it must be at least 1", options->world_size);
    }
    if (options->rank < 0 || options->rank >= options->world_size) {
        return fx_error(FXTAP_E_INVALID, "rank is %d, with world_size %d it must be 0 to %d", options->rank,
                        options->world_size, options->world_size - 1);
    }
    if (fx_dump_type_name(options->type) == NULL) {
        return fx_error(FXTAP_E_INVALID, "dump type %d is not known", (int)options->type);
    }
    if (options->n_threads < 0 || options->n_threads > MAX_THREADS) {
        return fx_error(FXTAP_E_INVALID, "n_threads is %d, it must be 0 to %d", options->n_threads, MAX_THREADS);
    }
    return FXTAP_OK;
}

static fxtap_status set_paths(fxtap_dump *dump, const char *path)
{
    fxtap_status status = fx_root_resolve(path, &dump->root_path);
    if (status != FXTAP_OK) {
        return status;
    }
    size_t root_bytes = strcmp(dump->root_path, "/") == 0 ? 0 : strlen(dump->root_path);
    size_t n_bytes = root_bytes + 64;
    dump->rank_path = fx_alloc(n_bytes);
    if (dump->rank_path == NULL) {
        return FXTAP_E_NOMEM;
    }
    snprintf(dump->rank_path, n_bytes, "%.*s/worldsize%d_global_rank%d", (int)root_bytes, dump->root_path,
             dump->world_size, dump->rank);
    dump->rank_name = dump->rank_path + root_bytes + 1;
    return FXTAP_OK;
}

static fxtap_status copy_options(fxtap_dump *dump, const fxtap_dump_options *options)
{
    dump->world_size = options->world_size;
    dump->rank = options->rank;
    dump->type = options->type;
    dump->sync = options->sync;
    dump->no_dedup = options->no_dedup;
    dump->clock_us = options->clock_us != NULL ? options->clock_us : system_clock_us;
    dump->versions = fx_strdup(options->versions != NULL ? options->versions : "");
    dump->command = fx_strdup(options->command != NULL ? options->command : "");
    if (dump->versions == NULL || dump->command == NULL) {
        return FXTAP_E_NOMEM;
    }
    return set_paths(dump, options->path);
}

/* ---- opening and closing ---- */

static void free_dump(fxtap_dump *dump)
{
    while (dump->captures != NULL) {
        fxtap_capture *capture = dump->captures;
        dump->captures = capture->next;
        fx_capture_free(capture);
    }
    fx_index_destroy(&dump->index);
    fx_contents_clear(&dump->contents);
    if (dump->open_rank != NULL) {
        fx_tree_release_rank(dump, dump->open_rank);
    }
    fx_queue_destroy(&dump->queue);
    fx_call_memory_clear(&dump->spare);
    pthread_mutex_destroy(&dump->lock);
    pthread_mutex_destroy(&dump->rank_lock);
    fx_free(dump->root_path);
    fx_free(dump->rank_path);
    fx_free(dump->versions);
    fx_free(dump->command);
    fx_free(atomic_load(&dump->warning));
    fx_free(dump);
}

fxtap_status fxtap_dump_open(const fxtap_dump_options *options, fxtap_dump **out)
{
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    fxtap_status status = check(options);
    if (status != FXTAP_OK) {
        return status;
    }
    pthread_once(&once, watch_forks);
    fxtap_dump *dump = fx_calloc(1, sizeof *dump);
    if (dump == NULL) {
        return FXTAP_E_NOMEM;
    }
    uint64_t queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES;
    status = fx_queue_init(&dump->queue, queue_bytes, (unsigned)options->n_threads, options->team);
    if (status != FXTAP_OK) {
        fx_free(dump);
        return status;
    }
    pthread_mutex_init(&dump->lock, NULL);
    pthread_mutex_init(&dump->rank_lock, NULL);
    fx_contents_init(&dump->contents);
    fx_index_init(&dump->index);
    status = copy_options(dump, options);
    if (status != FXTAP_OK) {
        free_dump(dump);
        return status;
    }
    dump->generation = fx_fork_count();
    dump->started_us = fx_dump_now_us(dump);
    pthread_mutex_lock(&all_lock);
    dump->next = all_dumps;
    all_dumps = dump;
    pthread_mutex_unlock(&all_lock);
    *out = dump;
    return FXTAP_OK;
}

static void unlist(fxtap_dump *dump)
{
    pthread_mutex_lock(&all_lock);
    fxtap_dump **at = &all_dumps;
    while (*at != dump) {
        at = &(*at)->next;
    }
    *at = dump->next;
    pthread_mutex_unlock(&all_lock);
}

void fxtap_dump_close(fxtap_dump *dump)
{
    if (dump == NULL) {
        return;
    }
    fxtap_dump_after_fork(dump);
    fx_queue_stop(&dump->queue);
    fx_calls_abandon(dump);
    unlist(dump);
    pthread_mutex_lock(&dump->index.lock);
    if (dump->index.db != NULL) {
        fx_rows_run_end(dump);
    }
    fx_index_close(&dump->index, !fx_index_still_exists(&dump->index));
    pthread_mutex_unlock(&dump->index.lock);
    free_dump(dump);
}

const char *fxtap_dump_rank_path(const fxtap_dump *dump)
{
    return dump->rank_path;
}

const char *fxtap_dump_warning(const fxtap_dump *dump)
{
    return atomic_load(&dump->warning);
}
