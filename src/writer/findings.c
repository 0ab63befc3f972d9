/* Findings: whether submitted memory was changed, and notes about operators. */
#include <string.h>

#include "tensor/hash.h"
#include "tensor/view.h"
#include "util/memory.h"
#include "writer/dump.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

/* ---- values that changed ---- */

/* The hash of a view's saved form, as the dump computes it. */
static fxtap_status hash_view(const fxtap_view *view, uint64_t n_bytes, fxtap_hash128 *out)
{
    if (fx_view_is_saved_form(view)) {
        *out = fx_hash_bytes(view->data, (size_t)n_bytes);
        return FXTAP_OK;
    }
    size_t item = fxtap_dtype_size(fxtap_dtype_saved(view->dtype));
    uint64_t n = n_bytes / item, at_once = BLOCK_BYTES / item;
    unsigned char *block = fx_alloc(BLOCK_BYTES);
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_hasher hasher;
    fx_hasher_init(&hasher);
    fxtap_status status = FXTAP_OK;
    for (uint64_t first = 0; first < n && status == FXTAP_OK; first += at_once) {
        uint64_t count = n - first < at_once ? n - first : at_once;
        status = fxtap_view_gather(view, first, count, block);
        fx_hasher_update(&hasher, block, status == FXTAP_OK ? (size_t)count * item : 0);
    }
    *out = fx_hasher_finish(&hasher);
    fx_free(block);
    return status;
}

fxtap_status fxtap_call_has_changed(fxtap_call *call, fxtap_ticket ticket, const fxtap_view *view, bool *out)
{
    FX_REQUIRE(view);
    FX_REQUIRE(out);
    fxtap_status status = fx_call_check(call);
    if (status != FXTAP_OK) {
        return status;
    }
    *out = false;
    if (fx_call_is_dead(call)) {
        return FXTAP_OK;
    }
    if (ticket == 0 || ticket > call->n_values) {
        return fx_error(FXTAP_E_INVALID, "no such value was submitted in this call");
    }
    fx_value *value = call->values[ticket - 1];
    uint64_t n_bytes = 0;
    status = fxtap_view_check(view);
    if (status == FXTAP_OK) {
        status = fxtap_view_saved_bytes(view, &n_bytes);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    if (n_bytes != value->saved_bytes || fxtap_dtype_saved(view->dtype) != fxtap_dtype_saved(value->view.dtype)) {
        return fx_error(FXTAP_E_INVALID, "the view is not the one that was submitted");
    }
    fx_queue_wait_value(&call->dump->queue, value);
    if (atomic_load(&value->state) != FX_VALUE_DONE) {
        return FXTAP_OK;
    }
    fxtap_hash128 hash;
    status = hash_view(view, n_bytes, &hash);
    *out = status == FXTAP_OK && (hash.high != value->hash.high || hash.low != value->hash.low);
    return status;
}

/* ---- findings ---- */

fxtap_status fxtap_call_note(fxtap_call *call, const fxtap_note *note)
{
    FX_REQUIRE(note);
    fxtap_status status = fx_call_check(call);
    if (status != FXTAP_OK) {
        return status;
    }
    if (note->struct_size != sizeof *note) {
        return fx_error(FXTAP_E_INVALID, "fxtap_note has %zu bytes here, not %zu", sizeof *note, note->struct_size);
    }
    if (note->node >= call->capture->n_nodes || note->position == NULL || note->kind < FXTAP_FINDING_UNDECLARED_WRITE ||
        note->kind > FXTAP_FINDING_UNWRITTEN_READ) {
        return fx_error(FXTAP_E_INVALID, "a finding needs a node of the graph, a kind and a position");
    }
    if (fx_call_is_dead(call) || !fx_call_ensure_begun(call, false)) {
        return FXTAP_OK;
    }
    fx_call_note *copy = fx_arena_calloc(&call->arena, 1, sizeof *copy);
    if (copy != NULL) {
        copy->note = *note;
        copy->note.position = fx_arena_strdup(&call->arena, note->position);
        copy->note.arg_name = fx_arena_strdup(&call->arena, note->arg_name != NULL ? note->arg_name : "");
    }
    if (copy == NULL || copy->note.position == NULL || copy->note.arg_name == NULL) {
        fx_call_set_error(call, FXTAP_E_NOMEM);
        return FXTAP_OK;
    }
    fx_call_note **link = call->last_note != NULL ? &call->last_note->next : &call->notes;
    *link = call->last_note = copy;
    return FXTAP_OK;
}
