/* Ending a call: waits for its files, commits its rows, moves its folder into place. */
#include <assert.h>
#include <string.h>

#include "util/memory.h"
#include "writer/dump.h"
#include "writer/index_rows.h"

void fx_call_memory_clear(fx_call_memory *memory)
{
    fx_arena_clear(&memory->arena);
    fx_free(memory->entries);
    fx_free(memory->values);
    memset(memory, 0, sizeof *memory);
}

/* Leaves the memory to the next call, in place of what another call has left. */
static void leave_memory(fxtap_call *call)
{
    fxtap_dump *dump = call->dump;
    fx_call_memory memory = {call->arena, call->entries, call->entry_capacity, call->values, call->value_capacity};
    fx_arena_reset(&memory.arena);
    pthread_mutex_lock(&dump->lock);
    fx_call_memory other = dump->spare;
    dump->spare = memory;
    pthread_mutex_unlock(&dump->lock);
    fx_call_memory_clear(&other);
}

/* Removes the call from its dump. Its step number becomes free unless it is kept. */
static void detach(fxtap_call *call, bool keeps_step)
{
    fxtap_dump *dump = call->dump;
    assert(dump != NULL);
    fx_tree_end(call);
    leave_memory(call);
    fx_free(call->last_us);
    pthread_mutex_lock(&dump->lock);
    if (!keeps_step && call->generation == dump->generation) { /* else it was returned after the fork */
        fx_steps_give_back(&call->capture->steps, call->step);
    }
    *(call->previous != NULL ? &call->previous->next : &dump->calls) = call->next;
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    pthread_mutex_unlock(&dump->lock);
    call->dump = NULL;
    call->capture = NULL;
}

/* A call of the parent process in a forked child: only releases its memory. */
static fxtap_status discard(fxtap_call *call)
{
    for (size_t i = 0; i < call->n_entries; i++) {
        fx_job *job = call->entries[i].job;
        if (job != NULL && job->release != NULL) {
            job->release(job->context);
        }
    }
    detach(call, false);
    return fx_error(FXTAP_E_CANCELLED, "the call belongs to the parent process");
}

/* ---- rows, in the order of execution, while files are still being written ---- */

static fxtap_status begin_rows(fxtap_call *call, int64_t *step_id_out)
{
    fxtap_dump *dump = call->dump;
    fxtap_status status = fx_index_open(dump, call->rank);
    if (status == FXTAP_OK) {
        status = fx_index_begin(&dump->index);
    }
    if (status != FXTAP_OK && dump->index.has_lost_locks) { /* again, without them */
        status = fx_index_open(dump, call->rank);
        status = status == FXTAP_OK ? fx_index_begin(&dump->index) : status;
    }
    if (status == FXTAP_OK) {
        status = fx_rows_begin_step(call, step_id_out);
    }
    return status;
}

static fxtap_status insert_rows(fxtap_call *call, int64_t step_id)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; status == FXTAP_OK && i < call->n_entries; i++) {
        const fx_call_entry *entry = &call->entries[i];
        if (entry->job != NULL) {
            fx_queue_wait_value(&call->dump->queue, entry->job->value);
        }
        if (atomic_load_explicit(&call->has_failed, memory_order_acquire)) {
            break;
        }
        status = fx_rows_entry(call, step_id, entry);
    }
    return status == FXTAP_OK ? fx_rows_notes(call, step_id) : status;
}

typedef struct ending {
    fxtap_call *call;
    int64_t step_id;
    pthread_t owner;
    fxtap_status status;
} ending;

/* The owner inserts rows; the other threads of its team write the files of those rows. */
static void insert_or_help(void *argument)
{
    ending *at = argument;
    if (pthread_equal(pthread_self(), at->owner)) {
        at->status = insert_rows(at->call, at->step_id);
    } else {
        fx_queue_wait_call(&at->call->dump->queue, at->call);
    }
}

static fxtap_status insert_with_team(fxtap_call *call, int64_t step_id)
{
    ending at = {.call = call, .step_id = step_id, .owner = pthread_self()};
    fx_queue_run_team(&call->dump->queue, insert_or_help, &at);
    return at.status;
}

/* Rows of what a failed call has written. Errors are ignored: the call's own failure is returned. */
static void insert_failed_rows(fxtap_call *call, const char *reason)
{
    fx_index *index = &call->dump->index;
    int64_t step_id = 0;
    fxtap_status status = begin_rows(call, &step_id);
    for (size_t i = 0; status == FXTAP_OK && i < call->n_entries; i++) {
        const fx_call_entry *entry = &call->entries[i];
        if (entry->job == NULL || entry->job->is_written) {
            status = fx_rows_entry(call, step_id, entry);
        }
    }
    if (status == FXTAP_OK) {
        status = fx_rows_notes(call, step_id);
    }
    if (status == FXTAP_OK) {
        const char *folder = call->folder != NULL ? call->folder->path : "";
        status = fx_rows_step(call, step_id, call->step, folder, reason);
    }
    if (status == FXTAP_OK) {
        status = fx_index_commit(index);
    }
    if (status == FXTAP_OK) {
        fx_index_checkpoint(index);
    } else {
        fx_index_rollback(index);
    }
}

static fxtap_status keep_failed(fxtap_call *call, const char *reason)
{
    fxtap_status status = FXTAP_OK;
    if (call->dir_fd >= 0) {
        status = fx_tree_fail(call, call->step);
        if (status != FXTAP_OK) {
            fx_call_set_error(call, status);
        }
    }
    if (call->rank != NULL) {
        insert_failed_rows(call, reason != NULL ? reason : call->error.message);
    }
    return atomic_load(&call->has_failed) ? fx_error_restore(&call->error) : FXTAP_OK;
}

/* ---- a step ---- */

static fxtap_status keep_stamps(const fxtap_call *call, uint64_t **out)
{
    uint64_t *stamps = fx_alloc(call->n_entries * sizeof *stamps);
    if (stamps == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < call->n_entries; i++) {
        stamps[i] = call->entries[i].stamp_us;
    }
    *out = stamps;
    return FXTAP_OK;
}

/*
 * The rows are committed before the folder moves, so that a step is never seen without its rows: the rows name the
 * partial folder, and while that exists the step is not whole.
 */
static fxtap_status publish(fxtap_call *call, int64_t step_id)
{
    uint64_t *given_us = NULL;
    bool is_restamped = false;
    fxtap_status status = FXTAP_OK;
    if (call->dir_fd >= 0) {
        status = keep_stamps(call, &given_us);
        if (status == FXTAP_OK) {
            status = fx_tree_publish(call, call->step, &is_restamped);
        }
    }
    if (is_restamped) { /* also after a failure: the rows must match the files */
        fx_error_copy *error = status != FXTAP_OK ? fx_alloc(sizeof *error) : NULL;
        if (error != NULL) {
            fx_error_save(status, error);
        }
        fxtap_status restamped = fx_rows_restamp(call, step_id, given_us);
        status = status == FXTAP_OK ? restamped : error != NULL ? fx_error_restore(error) : status;
        fx_free(error);
    }
    fx_free(given_us);
    return status;
}

static fxtap_status commit_step(fxtap_call *call, int64_t step_id)
{
    fxtap_dump *dump = call->dump;
    char folder[sizeof call->partial] = "";
    if (call->dir_fd >= 0) {
        fx_tree_step_path(call, call->step, folder, sizeof folder);
    }
    fxtap_status status = fx_rows_step(call, step_id, call->step, folder, NULL);
    return status == FXTAP_OK ? fx_index_commit(&dump->index) : status;
}

/* index.lock is held. */
static fxtap_status end_locked(fxtap_call *call, const char *reason)
{
    fxtap_dump *dump = call->dump;
    int64_t step_id = 0;
    if (reason == NULL && !atomic_load(&call->has_failed)) {
        fxtap_status status = begin_rows(call, &step_id);
        if (status == FXTAP_OK) {
            status = insert_with_team(call, step_id);
        }
        if (status != FXTAP_OK) {
            fx_call_set_error(call, status);
        }
    }
    fx_queue_wait_call(&dump->queue, call);
    if (reason == NULL && !atomic_load(&call->has_failed)) {
        fxtap_status status = commit_step(call, step_id);
        if (status == FXTAP_OK) {
            status = publish(call, step_id);
            if (status != FXTAP_OK) {
                return status;
            }
            fx_index_checkpoint(&dump->index);
            return FXTAP_OK;
        }
        fx_call_set_error(call, status);
    }
    fx_index_rollback(&dump->index);
    return keep_failed(call, reason);
}

/* Ends the call, but does not free it. */
static fxtap_status finish(fxtap_call *call, const char *reason)
{
    fxtap_dump *dump = call->dump;
    assert(dump != NULL);
    fx_call_unreserve(call);
    bool is_step = call->capture->is_skipped || dump->type == FXTAP_DUMP_VERIFY; /* without any value, too */
    if (reason == NULL && is_step && !atomic_load(&call->has_failed)) {
        fx_call_ensure_begun(call, false); /* the index gets the skip reasons, the graph that was verified */
    }
    if (pthread_mutex_trylock(&dump->index.lock) != 0) {
        fx_queue_wait_call(&dump->queue, call); /* while another call is ending */
        pthread_mutex_lock(&dump->index.lock);
    }
    fxtap_status status = FXTAP_OK;
    if (call->has_begun) {
        status = end_locked(call, reason);
    } else if (atomic_load(&call->has_failed)) {
        status = fx_error_restore(&call->error);
    } /* else nothing was submitted: an empty step */
    pthread_mutex_unlock(&dump->index.lock);
    fxtap_call_release_done(call);
    detach(call, status == FXTAP_OK && reason == NULL);
    return status;
}

static fxtap_status end(fxtap_call *call, const char *reason, uint64_t *step_out)
{
    FX_REQUIRE(call);
    fxtap_status status;
    uint64_t step = call->step;
    if (call->dump == NULL) {
        status = fx_error(FXTAP_E_CANCELLED, "the dump was closed before this call ended");
    } else {
        status = fx_call_is_stale(call) ? discard(call) : finish(call, reason);
    }
    fx_free(call);
    if (status == FXTAP_OK && step_out != NULL) {
        *step_out = step;
    }
    return status;
}

fxtap_status fxtap_call_end(fxtap_call *call, uint64_t *step_out)
{
    return end(call, NULL, step_out);
}

fxtap_status fxtap_call_fail(fxtap_call *call, const char *reason)
{
    return end(call, reason != NULL ? reason : "", NULL);
}

/* ---- calls that were not ended ---- */

void fx_calls_abandon(fxtap_dump *dump)
{
    while (dump->calls != NULL) { /* no other thread uses the dump */
        fxtap_call *call = dump->calls;
        if (fx_call_is_stale(call)) {
            detach(call, true); /* its memory is in use by the parent's threads */
        } else {
            finish(call, "the dump was closed before the call ended");
        }
    }
}

void fx_calls_forget_steps(fxtap_dump *dump, unsigned generation)
{
    pthread_mutex_lock(&dump->lock);
    for (fxtap_call *call = dump->calls; call != NULL; call = call->next) {
        if (call->generation == generation) {
            fx_steps_give_back(&call->capture->steps, call->step);
        }
    }
    pthread_mutex_unlock(&dump->lock);
}
