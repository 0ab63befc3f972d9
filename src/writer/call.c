/* Submissions of a call. Beginning and ending one: call_begin.c, call_end.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tensor/undefined.h"
#include "tensor/view.h"
#include "util/memory.h"
#include "util/utf8.h"
#include "writer/dump.h"

void fx_call_set_error(fxtap_call *call, fxtap_status status)
{
    fx_queue *queue = &call->dump->queue;
    pthread_mutex_lock(&queue->lock);
    if (!atomic_load(&call->has_failed)) {
        fx_error_save(status, &call->error);
        atomic_store(&call->has_failed, true);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool fx_call_is_stale(const fxtap_call *call)
{
    return call->generation != fx_fork_count();
}

bool fx_call_is_dead(const fxtap_call *call)
{
    return atomic_load_explicit(&call->has_failed, memory_order_relaxed) || fx_call_is_stale(call);
}

static bool is_open(const fxtap_call *call)
{
    return call != NULL && call->dump != NULL;
}

fxtap_status fx_call_check(const fxtap_call *call)
{
    if (call == NULL) {
        return fx_error(FXTAP_E_INVALID, "the call is NULL");
    }
    return call->dump != NULL ? FXTAP_OK : fx_error(FXTAP_E_INVALID, "the dump of this call is closed");
}

/* ---- room in the queue, releases ---- */

void fxtap_call_release_done(fxtap_call *call)
{
    if (!is_open(call)) {
        return;
    }
    fx_job *job = fx_queue_take_finished(&call->dump->queue, call);
    while (job != NULL) {
        fx_job *next = job->next;
        fxtap_release release = job->release;
        job->release = NULL;
        release(job->context);
        job = next;
    }
}

void fx_call_unreserve(fxtap_call *call)
{
    if (call->reserved_bytes > 0) {
        fx_queue_unreserve(&call->dump->queue, call->reserved_bytes);
        call->reserved_bytes = 0;
    }
}

/* A call gives its room back before it waits for more: else two calls could wait for each other. */
static fxtap_status reserve(fxtap_call *call, uint64_t bytes, bool wait)
{
    fx_queue *queue = &call->dump->queue;
    uint64_t more = bytes;
    if (!fx_queue_reserve(queue, bytes, false)) {
        if (!wait) {
            return fx_error(FXTAP_E_AGAIN, "the queue has no room for %" PRIu64 " bytes now", bytes);
        }
        more += call->reserved_bytes;
        if (more < bytes) {
            return fx_error(FXTAP_E_INVALID, "%" PRIu64 " bytes more than are reserved exceed 64 bits", bytes);
        }
        fx_call_unreserve(call);
        (void)fx_queue_reserve(queue, more, true);
    }
    call->reserved_bytes += more;
    return FXTAP_OK;
}

fxtap_status fxtap_call_reserve(fxtap_call *call, uint64_t bytes, bool wait)
{
    fxtap_status status = fx_call_check(call);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_call_release_done(call);
    if (fx_call_is_dead(call)) {
        return FXTAP_OK;
    }
    return reserve(call, bytes, wait);
}

bool fxtap_call_is_pending(fxtap_call *call, const void *first, const void *end)
{
    return is_open(call) && !fx_call_is_stale(call) && fx_queue_overlaps(&call->dump->queue, first, end);
}

void fxtap_call_settle(fxtap_call *call, const void *first, const void *end)
{
    if (is_open(call) && !fx_call_is_stale(call)) {
        fx_queue_wait_memory(&call->dump->queue, first, end);
    }
}

/* ---- entries ---- */

static fxtap_status enter_rank(fxtap_call *call)
{
    fxtap_dump *dump = call->dump;
    fxtap_status status = fx_tree_acquire_rank(dump, &call->rank);
    if (status == FXTAP_OK && atomic_load(&dump->indexed_rank) != call->rank->number) {
        pthread_mutex_lock(&dump->index.lock);
        status = fx_index_open(dump, call->rank);
        pthread_mutex_unlock(&dump->index.lock);
    }
    return status;
}

bool fx_call_ensure_begun(fxtap_call *call, bool has_file)
{
    fxtap_dump_type type = call->dump->type;
    fxtap_status status = FXTAP_OK;
    bool begins = !call->has_begun;
    if (begins) {
        call->has_begun = true;
        status = enter_rank(call);
    }
    bool makes_folder = type == FXTAP_DUMP_VERIFY ? has_file && call->dir_fd < 0 : type == FXTAP_DUMP_NPY && begins;
    if (status == FXTAP_OK && makes_folder && !fx_call_is_dead(call)) {
        status = fx_tree_begin(call);
    }
    if (status != FXTAP_OK) {
        fx_call_set_error(call, status);
    }
    return !fx_call_is_dead(call);
}

static bool grow_last(fxtap_call *call, fxtap_slot slot)
{
    void *grown = call->last_us;
    size_t capacity = call->n_last;
    if (!fx_grow(&grown, &capacity, (size_t)slot + 1, sizeof *call->last_us)) {
        return false;
    }
    call->last_us = grown;
    memset(call->last_us + call->n_last, 0, (capacity - call->n_last) * sizeof *call->last_us);
    call->n_last = capacity;
    return true;
}

/* The stamps of a slot rise within a call. */
static fxtap_status check_stamp(const fxtap_call *call, fxtap_slot slot, uint64_t stamp_us)
{
    uint64_t last_us = slot < call->n_last ? call->last_us[slot] : 0;
    if (stamp_us == 0 || stamp_us > FX_LAST_STAMP_US) {
        return fx_error(FXTAP_E_INVALID, "%" PRIu64 " is not a time stamp in microseconds", stamp_us);
    }
    if (stamp_us <= last_us) {
        return fx_error(stamp_us == last_us ? FXTAP_E_EXISTS : FXTAP_E_INVALID,
                        "slot %u of graph %u has a value of stamp %" PRIu64 " already, another one needs a later stamp",
                        slot, call->capture->graph_id, last_us);
    }
    return FXTAP_OK;
}

/* NULL: *status says why. */
static fx_call_entry *add_entry(fxtap_call *call, fxtap_slot number, uint64_t stamp_us, fxtap_status *status)
{
    fx_capture_slot *slot = fx_capture_slot_at(call->capture, number);
    if (slot == NULL) {
        *status = fx_error(FXTAP_E_INVALID, "graph %u has no slot %u", call->capture->graph_id, number);
        return NULL;
    }
    *status = check_stamp(call, number, stamp_us);
    if (*status != FXTAP_OK) {
        return NULL;
    }
    *status = FXTAP_E_NOMEM;
    void *grown = call->entries;
    bool has_room = fx_grow(&grown, &call->entry_capacity, call->n_entries + 1, sizeof *call->entries);
    call->entries = grown;
    if (!has_room || (number >= call->n_last && !grow_last(call, number))) {
        return NULL;
    }
    fx_call_entry *entry = &call->entries[call->n_entries++];
    *entry = (fx_call_entry){.slot_number = number, .slot = slot, .stamp_us = stamp_us};
    call->last_us[number] = stamp_us;
    return entry;
}

/* ---- values and jobs ---- */

/* A copy in the arena; the default itself where the text equals it. */
static const char *keep_text(fxtap_call *call, const char *text, const char *by_default)
{
    if (text == NULL || strcmp(text, by_default) == 0) {
        return by_default;
    }
    if (call->last_text != NULL && strcmp(call->last_text, text) == 0) {
        return call->last_text;
    }
    const char *copy = fx_arena_strdup(&call->arena, text);
    call->last_text = copy != NULL ? copy : call->last_text;
    return copy;
}

static bool copy_numbers(fxtap_call *call, const int64_t *numbers, int32_t n, const int64_t **out)
{
    *out = NULL;
    if (numbers != NULL && n > 0) {
        *out = fx_arena_memdup(&call->arena, numbers, (size_t)n * sizeof *numbers);
        return *out != NULL;
    }
    return true;
}

/* Adds a value to the call; *ticket_out is its number. NULL: no memory. */
static fx_value *add_value(fxtap_call *call, const fxtap_view *view, const char *layout, const char *device,
                           fxtap_ticket *ticket_out)
{
    fx_value *value = fx_arena_calloc(&call->arena, 1, sizeof *value);
    void *grown = call->values;
    bool has_room = fx_grow(&grown, &call->value_capacity, call->n_values + 1, sizeof(fx_value *));
    call->values = grown;
    if (value == NULL || !has_room) {
        return NULL;
    }
    value->view = *view;
    value->original_dtype = view->dtype;
    value->layout = keep_text(call, layout, FX_DEFAULT_LAYOUT);
    value->device = keep_text(call, device, FX_DEFAULT_DEVICE);
    if (value->layout == NULL || value->device == NULL ||
        !copy_numbers(call, view->shape, view->ndim, &value->view.shape) ||
        !copy_numbers(call, view->strides, view->ndim, &value->view.strides)) {
        return NULL;
    }
    value->order = fxtap_view_order(&value->view);
    call->values[call->n_values++] = value;
    *ticket_out = call->n_values;
    return value;
}

static void run_job(fxtap_call *call, fx_job *job)
{
    fx_queue *queue = &call->dump->queue;
    if (call->dump->sync) {
        fx_queue_run_now(queue, job);
        fx_queue_wait_call(queue, call);
    } else {
        fx_queue_add(queue, job);
    }
}

/* Gives the entry its job; false: no memory. */
static bool add_job(fxtap_call *call, fx_call_entry *entry, fx_value *value, bool is_first,
                    const fxtap_submission *from)
{
    fx_job *job = fx_arena_calloc(&call->arena, 1, sizeof *job);
    if (job == NULL) {
        return false;
    }
    job->call = call;
    job->value = value;
    job->slot = entry->slot;
    job->stamp_us = entry->stamp_us;
    job->is_first = is_first;
    entry->job = job;
    if (from != NULL) {
        fxtap_view_extent(&value->view, &job->first, &job->end);
        job->reserved_bytes = call->reserved_bytes;
        call->reserved_bytes = 0;
        job->release = from->release;
        job->context = from->context;
    }
    run_job(call, job);
    return true;
}

/* Removes an incomplete entry. Lack of memory becomes the failure of the call, which its end returns. */
static fxtap_status abandon_entry(fxtap_call *call, size_t n_entries, fxtap_status status)
{
    call->n_entries = n_entries;
    if (status == FXTAP_E_NOMEM) {
        fx_call_set_error(call, status);
        return FXTAP_OK;
    }
    return status;
}

/* ---- submitting ---- */

static fxtap_status check_view(const fxtap_view *view, uint64_t *bytes_out)
{
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (fxtap_dtype_descr(fxtap_dtype_saved(view->dtype)) == NULL) {
        return fx_error(FXTAP_E_INVALID, "a tensor of %s has no saved form", fxtap_dtype_name(view->dtype));
    }
    return fxtap_view_saved_bytes(view, bytes_out);
}

static fxtap_status no_such_value(fxtap_ticket ticket)
{
    return fx_error(FXTAP_E_INVALID, "no value %" PRIu64 " was submitted in this call", ticket);
}

/* Whether the view can have the dense bytes of the earlier value that the submission names. */
static fxtap_status check_same_bytes(const fxtap_call *call, const fxtap_submission *from, uint64_t saved_bytes)
{
    if (from->same_bytes_as == 0) {
        return from->is_unreadable ? fx_error(FXTAP_E_INVALID, "an unreadable view needs same_bytes_as") : FXTAP_OK;
    }
    if (from->same_bytes_as > call->n_values) {
        return no_such_value(from->same_bytes_as);
    }
    const fx_value *value = call->values[from->same_bytes_as - 1];
    if (from->is_unreadable && (value->n_undefined > 0 || from->n_undefined > 0)) {
        return fx_error(FXTAP_E_INVALID, "an unreadable view cannot have undefined elements");
    }
    bool is_dense = saved_bytes == 0 || fxtap_view_order(&from->view) != FXTAP_ORDER_STRIDED;
    if (from->view.dtype != value->view.dtype || saved_bytes != value->saved_bytes || !is_dense) {
        return fx_error(FXTAP_E_INVALID, "same_bytes_as needs a dense view with the value's dtype and size");
    }
    return FXTAP_OK;
}

static fxtap_status check_undefined(const fxtap_submission *from, uint64_t saved_bytes)
{
    size_t item = fxtap_dtype_size(fxtap_dtype_saved(from->view.dtype));
    if (from->n_undefined > 0 && !fx_undefined_check(from->undefined, from->n_undefined, saved_bytes / item)) {
        return fx_error(FXTAP_E_INVALID, "ranges of undefined elements must ascend and lie within the tensor");
    }
    return FXTAP_OK;
}

static bool copy_undefined(fxtap_call *call, const fxtap_submission *from, fx_value *value)
{
    if (from->n_undefined == 0) {
        return true;
    }
    value->undefined = fx_arena_memdup(&call->arena, from->undefined, from->n_undefined * sizeof *from->undefined);
    value->n_undefined = from->n_undefined;
    return value->undefined != NULL;
}

static fxtap_status submit(fxtap_call *call, const fxtap_submission *from, uint64_t saved_bytes, fxtap_ticket *out)
{
    size_t n_entries = call->n_entries;
    fxtap_status status = FXTAP_OK;
    fx_call_entry *entry = add_entry(call, from->slot, from->stamp_us, &status);
    fx_value *value = entry != NULL ? add_value(call, &from->view, from->original_layout, from->device, out) : NULL;
    if (value == NULL) {
        return abandon_entry(call, n_entries, status);
    }
    value->saved_bytes = saved_bytes;
    fx_value *source = from->same_bytes_as > 0 ? call->values[from->same_bytes_as - 1] : NULL;
    bool is_alike = source != NULL && source->n_undefined == 0 && from->n_undefined == 0;
    value->source = is_alike ? source : NULL; /* statistics of defined elements alone cannot be shared */
    value->is_unreadable = from->is_unreadable;
    if (from->original_dtype != FXTAP_DTYPE_NONE) {
        value->original_dtype = from->original_dtype;
    }
    bool is_kept = copy_numbers(call, from->original_strides, from->view.ndim, &value->original_strides) &&
                   copy_undefined(call, from, value);
    if (!is_kept || !add_job(call, entry, value, true, from)) {
        return abandon_entry(call, n_entries, FXTAP_E_NOMEM);
    }
    return FXTAP_OK;
}

static fxtap_status check_submission(const fxtap_submission *from, uint64_t *bytes_out)
{
    if (from->original_dtype != FXTAP_DTYPE_NONE && fxtap_dtype_name(from->original_dtype)[0] == '\0') {
        return fx_error(FXTAP_E_INVALID, "original_dtype %d is not a dtype", (int)from->original_dtype);
    }
    return check_view(&from->view, bytes_out);
}

/* Submits to a call that is neither closed nor failed. */
static fxtap_status submit_alive(fxtap_call *call, const fxtap_submission *from, uint64_t saved_bytes,
                                 fxtap_ticket *out)
{
    fx_call_ensure_begun(call, true);
    fxtap_status status = check_same_bytes(call, from, saved_bytes);
    if (status == FXTAP_OK) {
        status = check_undefined(from, saved_bytes);
    }
    if (status == FXTAP_OK && !fx_call_is_dead(call)) {
        uint64_t reserved = call->reserved_bytes;
        status = saved_bytes > reserved ? reserve(call, saved_bytes - reserved, true) : FXTAP_OK;
    }
    if (status == FXTAP_OK && !fx_call_is_dead(call)) {
        status = submit(call, from, saved_bytes, out);
    }
    return status;
}

static void reject(fxtap_call *call, const fxtap_submission *submission)
{
    if (is_open(call)) {
        fx_call_unreserve(call);
    }
    if (submission->release != NULL) {
        submission->release(submission->context);
    }
}

fxtap_status fxtap_call_submit(fxtap_call *call, const fxtap_submission *submission, fxtap_ticket *out)
{
    FX_REQUIRE(submission);
    if (submission->struct_size != sizeof *submission) {
        return fx_error(FXTAP_E_INVALID, "fxtap_submission has %zu bytes here, not %zu", sizeof *submission,
                        submission->struct_size);
    }
    uint64_t saved_bytes = 0;
    fxtap_ticket ticket = 0;
    fxtap_status status = fx_call_check(call);
    fxtap_call_release_done(call);
    if (status == FXTAP_OK) {
        status = check_submission(submission, &saved_bytes);
    }
    size_t n_entries = is_open(call) ? call->n_entries : 0;
    if (status == FXTAP_OK && is_open(call) && !fx_call_is_dead(call)) {
        status = submit_alive(call, submission, saved_bytes, &ticket);
    }
    if (!is_open(call) || call->n_entries == n_entries) { /* no job was made */
        reject(call, submission);
        ticket = 0;
    }
    if (status == FXTAP_OK && out != NULL) {
        *out = ticket;
    }
    return status;
}

fxtap_status fxtap_call_alias(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, fxtap_ticket ticket)
{
    fxtap_status status = fx_call_check(call);
    fxtap_call_release_done(call);
    if (status != FXTAP_OK || fx_call_is_dead(call)) {
        return status;
    }
    if (ticket == 0 || ticket > call->n_values) {
        return no_such_value(ticket);
    }
    fx_value *value = call->values[ticket - 1];
    size_t n_entries = call->n_entries;
    fx_call_entry *entry = add_entry(call, slot, stamp_us, &status);
    atomic_store_explicit(&value->has_aliases, true, memory_order_relaxed);
    if (entry == NULL || !add_job(call, entry, value, false, NULL)) {
        return abandon_entry(call, n_entries, status);
    }
    return FXTAP_OK;
}

/* ---- numbers and text ---- */

static fx_value *small_value(fxtap_call *call, const fxtap_view *view, uint64_t saved_bytes)
{
    int64_t shape[FXTAP_MAX_DIMS];
    int64_t strides[FXTAP_MAX_DIMS];
    fxtap_view kept = {.dtype = fxtap_dtype_saved(view->dtype), .ndim = view->ndim, .shape = shape};
    if (view->ndim > 0) {
        fx_view_saved_shape(view, shape);
    }
    if (fxtap_view_order(view) == FXTAP_ORDER_FORTRAN) {
        fx_contiguous_strides(view->ndim, shape, true, strides);
        kept.strides = strides;
    }
    void *data = fx_arena_alloc(&call->arena, (size_t)saved_bytes);
    if (data == NULL || fxtap_view_gather(view, 0, fx_view_saved_count(view), data) != FXTAP_OK) {
        return NULL;
    }
    kept.data = data;
    fxtap_ticket unused;
    fx_value *value = add_value(call, &kept, NULL, NULL, &unused);
    if (value != NULL) {
        value->original_dtype = view->dtype;
        value->saved_bytes = saved_bytes;
    }
    return value;
}

/* NumPy writes an empty string as one NUL: <U0 cannot be loaded. */
static fx_value *text_value(fxtap_call *call, const char *text, size_t length)
{
    uint32_t *points = fx_arena_calloc(&call->arena, length + 1, sizeof *points);
    if (points == NULL) {
        return NULL;
    }
    size_t n_points = fx_utf8_to_ucs4(text, length, points);
    fxtap_view view = {.data = points, .dtype = FXTAP_STRING};
    fxtap_ticket unused;
    fx_value *value = add_value(call, &view, NULL, NULL, &unused);
    if (value != NULL) {
        value->saved_bytes = 4 * (uint64_t)(n_points > 0 ? n_points : 1);
    }
    return value;
}

static fxtap_status check_small(const fxtap_view *view, const char *text, size_t text_length, uint64_t *bytes_out)
{
    if ((text == NULL) == (view == NULL)) {
        return fx_error(FXTAP_E_INVALID, "a small value needs either a view or a text");
    }
    if (text != NULL && !fx_utf8_is_valid(text, text_length)) {
        return fx_error(FXTAP_E_INVALID, "the text is not UTF-8");
    }
    return text != NULL ? FXTAP_OK : check_view(view, bytes_out);
}

fxtap_status fxtap_call_submit_small(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const fxtap_view *view,
                                     const char *text, size_t text_length)
{
    uint64_t saved_bytes = 0;
    fxtap_status status = fx_call_check(call);
    fxtap_call_release_done(call);
    if (status == FXTAP_OK) {
        status = check_small(view, text, text_length, &saved_bytes);
    }
    if (status != FXTAP_OK || fx_call_is_dead(call)) {
        return status;
    }
    if (!fx_call_ensure_begun(call, true)) {
        return FXTAP_OK;
    }
    size_t n_entries = call->n_entries;
    fx_call_entry *entry = add_entry(call, slot, stamp_us, &status);
    fx_value *value = NULL;
    if (entry != NULL) {
        value = text != NULL ? text_value(call, text, text_length) : small_value(call, view, saved_bytes);
    }
    if (value == NULL || !add_job(call, entry, value, true, NULL)) {
        return abandon_entry(call, n_entries, status);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_call_skip(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const char *what)
{
    FX_REQUIRE(what);
    fxtap_status status = fx_call_check(call);
    if (status != FXTAP_OK || fx_call_is_dead(call)) {
        return status;
    }
    if (!fx_call_ensure_begun(call, false)) {
        return FXTAP_OK;
    }
    size_t n_entries = call->n_entries;
    fx_call_entry *entry = add_entry(call, slot, stamp_us, &status);
    if (entry == NULL) {
        return abandon_entry(call, n_entries, status);
    }
    entry->skipped = fx_arena_strdup(&call->arena, what);
    return entry->skipped != NULL ? FXTAP_OK : abandon_entry(call, n_entries, FXTAP_E_NOMEM);
}
