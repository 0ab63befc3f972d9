#include "submit.h"

#include <string.h>

#include "dlpack.h"
#include "errors.h"
#include "undefined.h"

#define MAX_SKIP_TEXT 256
#define MAX_NESTING 64

typedef struct fx_capture capture;

static int ok(fxtap_status status)
{
    if (status == FXTAP_OK) {
        return 0;
    }
    fx_raise(status);
    return -1;
}

/*
 * Releases the GIL where the dump may wait for a file or a lock: at the first submission of a call, which makes folders
 * and opens the index, and at every one where files are written synchronously. NULL: the GIL is kept.
 */
static PyThreadState *release_gil(capture *c)
{
    bool may_wait = c->plan->is_sync || !c->has_begun;
    c->has_begun = true;
    return may_wait ? PyEval_SaveThread() : NULL;
}

static int acquire_gil(PyThreadState *saved, fxtap_status status)
{
    if (saved != NULL) {
        PyEval_RestoreThread(saved);
    }
    return ok(status);
}

static int slot_of(capture *c, fx_place *place, fxtap_io io)
{
    if (place->has_slot) {
        return 0;
    }
    fxtap_status status =
        fxtap_capture_slot(c->plan->capture, c->node->node, io, place->position, place->arg_name, &place->slot);
    place->has_slot = status == FXTAP_OK;
    return ok(status);
}

int fx_submit_skip(capture *c, fx_place *place, fxtap_io io, const char *reason)
{
    if (slot_of(c, place, io) < 0) {
        return -1;
    }
    PyThreadState *saved = release_gil(c);
    return acquire_gil(saved, fxtap_call_skip(c->call, place->slot, c->stamp_us, reason));
}

int fx_submit_note(capture *c, const fxtap_note *note)
{
    PyThreadState *saved = release_gil(c);
    return acquire_gil(saved, fxtap_call_note(c->call, note));
}

static int skip_text(capture *c, fx_place *place, fxtap_io io, PyObject *text)
{
    PyObject *start = text == NULL ? NULL : PyUnicode_Substring(text, 0, MAX_SKIP_TEXT);
    PyObject *bytes = start == NULL ? NULL : fx_utf8(start);
    int status = bytes == NULL ? -1 : fx_submit_skip(c, place, io, PyBytes_AsString(bytes));
    Py_XDECREF(start);
    Py_XDECREF(bytes);
    return status;
}

/* ---- tensors ---- */

/* Called by the library inside one of our calls, perhaps without the GIL: only records that the job is finished. */
static void on_release(void *context)
{
    fx_pinned *pinned = context;
    pinned->next = pinned->capture->finished;
    pinned->capture->finished = pinned;
}

static void unpin(fx_pinned *pinned)
{
    fx_pinned copy = *pinned;
    PyMem_Free(pinned);
    if (copy.managed != NULL && copy.managed->deleter != NULL) {
        copy.managed->deleter(copy.managed);
    }
    Py_XDECREF(copy.owner);
}

void fx_submit_release(capture *c)
{
    if (c->finished == NULL) {
        return;
    }
    while (c->finished != NULL) {
        fx_pinned *pinned = c->finished;
        c->finished = pinned->next;
        unpin(pinned); /* may run any code: the list is consistent by now */
    }
    fx_known_sweep(&c->known);
}

/* Reserves room in the queue; releases the GIL while it waits. */
static int reserve(capture *c, uint64_t bytes)
{
    fxtap_status status = fxtap_call_reserve(c->call, bytes, false);
    if (status == FXTAP_E_AGAIN) {
        Py_BEGIN_ALLOW_THREADS status = fxtap_call_reserve(c->call, bytes, true);
        Py_END_ALLOW_THREADS
    }
    return ok(status);
}

static int submit_alias(capture *c, const fx_place *place, fxtap_ticket ticket)
{
    PyThreadState *saved = release_gil(c);
    return acquire_gil(saved, fxtap_call_alias(c->call, place->slot, c->stamp_us, ticket));
}

/* Keeps the memory of a bridged tensor alive; may take over bridged->owner. NULL with an exception. */
static fx_pinned *pin(capture *c, PyObject *tensor, fx_bridged *bridged)
{
    fx_pinned *pinned = PyMem_Calloc(1, sizeof *pinned);
    if (pinned == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    pinned->capture = c;
    const fx_dlpack_api *api = c->state->exchange;
    if (bridged->owner == tensor && !c->plan->is_sync && api->managed_tensor_from_py_object_no_sync != NULL) {
        if (api->managed_tensor_from_py_object_no_sync(tensor, &pinned->managed) == 0) {
            return pinned;
        }
        pinned->managed = NULL;
        PyErr_Clear();
    }
    pinned->owner = bridged->owner;
    bridged->owner = NULL;
    return pinned;
}

/* Brings a value to the host. 1: there is no room for it, recorded as skipped; 0: done; -1 with an exception. */
static int fetch(capture *c, fx_place *place, fxtap_io io, PyObject *tensor, fx_bridged *bridged)
{
    if (fx_bridge_fetch(c->state, tensor, bridged) < 0) {
        c->has_device_failed = !PyErr_ExceptionMatches(PyExc_MemoryError);
        return -1;
    }
    return bridged->skip == NULL ? 0 : skip_text(c, place, io, bridged->skip) < 0 ? -1 : 1;
}

/*
 * Queues a job that reads the view, or, for a value on a device with the dense bytes of an earlier one, `same`, that
 * copies its file. `same` 0: there is none. *out stays 0 if the value was skipped.
 */
static int queue_view(capture *c, fx_place *place, fxtap_io io, PyObject *tensor, fx_bridged *bridged,
                      fxtap_ticket same, fxtap_ticket *out)
{
    fxtap_undefined_range *undefined;
    size_t n_undefined;
    if (fx_undefined_ranges(c, tensor, fx_bridged_form(bridged), &undefined, &n_undefined) < 0) {
        return -1;
    }
    fxtap_submission submission = {.struct_size = sizeof submission,
                                   .slot = place->slot,
                                   .stamp_us = c->stamp_us,
                                   .original_dtype = bridged->original_dtype,
                                   .original_layout = bridged->layout[0] == '\0' ? NULL : bridged->layout,
                                   .device = bridged->device[0] == '\0' ? NULL : bridged->device,
                                   .original_strides = bridged->original_strides,
                                   .same_bytes_as = n_undefined > 0 ? 0 : same,
                                   .undefined = undefined,
                                   .n_undefined = n_undefined};
    submission.is_unreadable = bridged->is_away && submission.same_bytes_as != 0;
    uint64_t bytes = 0;
    int status = ok(fxtap_view_saved_bytes(fx_bridged_form(bridged), &bytes));
    if (status == 0 && !submission.is_unreadable) {
        status = reserve(c, bytes) < 0 ? -1 : fetch(c, place, io, tensor, bridged);
    }
    submission.view = *fx_bridged_form(bridged);
    if (status == 0 && !submission.is_unreadable) {
        submission.release = on_release;
        submission.context = pin(c, tensor, bridged);
        status = submission.context == NULL ? -1 : 0;
    }
    if (status == 0) {
        PyThreadState *saved = release_gil(c);
        status = acquire_gil(saved, fxtap_call_submit(c->call, &submission, out));
    }
    PyMem_Free(undefined);
    return status < 0 ? -1 : 0;
}

/* 1: no array can hold the view (a float4 pair without an axis), recorded as skipped. 0: it can. -1: an exception. */
static int skip_unsupported(capture *c, fx_place *place, fxtap_io io, const fxtap_view *view)
{
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_E_INVALID && status != FXTAP_E_UNSUPPORTED) {
        return ok(status);
    }
    PyObject *reason = PyUnicode_FromFormat("cannot be saved: %s", fxtap_error_message());
    int result = skip_text(c, place, io, reason);
    Py_XDECREF(reason);
    return result < 0 ? -1 : 1;
}

/* The ticket of what the node copied to this tensor, if that is known, lies as it does, and has its bits; or 0. */
static int find_copied(capture *c, PyObject *tensor, const fx_bridged *bridged, fxtap_ticket *out)
{
    fx_bridged source;
    fx_guard guard;
    *out = 0;
    fxtap_ticket ticket = c->copied == NULL || !bridged->is_away ? 0 : fx_known_find(&c->known, c->copied);
    if (ticket == 0 || fx_bridge_take(c->state, c->copied, c->is_guarded, &source) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    const fxtap_view *left = &source.memory, *right = &bridged->memory;
    size_t n_bytes = (size_t)right->ndim * sizeof(int64_t);
    bool is_alike = source.device_key == bridged->device_key && left->dtype == right->dtype &&
                    left->ndim == right->ndim && left->strides != NULL && right->strides != NULL &&
                    memcmp(left->shape, right->shape, n_bytes) == 0 &&
                    memcmp(left->strides, right->strides, n_bytes) == 0;
    fx_bridge_drop(&source);
    if (!is_alike || fx_guard_enter(c->state, &guard) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(c->state->same_bits, c->copied, tensor, NULL);
    fx_guard_leave(&guard);
    c->has_device_failed = answer == NULL;
    *out = answer == Py_True ? ticket : 0;
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int submit_view(capture *c, fx_place *place, fxtap_io io, PyObject *tensor, fx_bridged *bridged)
{
    int is_skipped = skip_unsupported(c, place, io, fx_bridged_form(bridged));
    if (is_skipped != 0) {
        return is_skipped < 0 ? -1 : 0;
    }
    bool same_form = false;
    fxtap_ticket known = bridged->memory.data == NULL ? 0 : fx_known_find_memory(&c->known, bridged, &same_form);
    if (known == 0) {
        if (find_copied(c, tensor, bridged, &known) < 0) {
            return -1;
        }
        same_form = known != 0;
    }
    fxtap_ticket ticket = same_form ? known : 0;
    int status = same_form ? submit_alias(c, place, known) : queue_view(c, place, io, tensor, bridged, known, &ticket);
    return status < 0 ? -1 : fx_known_add(&c->known, tensor, bridged, ticket);
}

static int submit_tensor(capture *c, fx_place *place, fxtap_io io, PyObject *tensor)
{
    if (slot_of(c, place, io) < 0) {
        return -1;
    }
    fxtap_ticket ticket = fx_known_find(&c->known, tensor);
    if (ticket != 0) {
        return submit_alias(c, place, ticket);
    }
    fx_bridged bridged;
    if (fx_bridge_take(c->state, tensor, c->is_guarded, &bridged) < 0) {
        return -1;
    }
    int status =
        bridged.skip != NULL ? skip_text(c, place, io, bridged.skip) : submit_view(c, place, io, tensor, &bridged);
    fx_bridge_drop(&bridged);
    return status;
}

/* ---- numbers and other objects ---- */

static int submit_small(capture *c, fx_place *place, fxtap_io io, const fx_small *small)
{
    if (slot_of(c, place, io) < 0) {
        return -1;
    }
    const char *text = small->text != NULL ? PyBytes_AsString(small->text) : NULL;
    fxtap_view view = fx_small_view(small);
    PyThreadState *saved = release_gil(c);
    return acquire_gil(saved, fxtap_call_submit_small(c->call, place->slot, c->stamp_us, text == NULL ? &view : NULL,
                                                      text, text == NULL ? 0 : (size_t)small->length));
}

static bool is_tensor(const capture *c, PyObject *value)
{
    return PyObject_TypeCheck(value, (PyTypeObject *)c->state->tensor_type);
}

static PyObject *item_of(PyObject *sequence, Py_ssize_t i)
{
    return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
}

static Py_ssize_t length_of(PyObject *sequence)
{
    return PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence);
}

static int submit_elements(capture *c, fx_place *place, fxtap_io io, PyObject *sequence)
{
    int is_inside = c->depth == MAX_NESTING ? 1 : Py_ReprEnter(sequence);
    if (is_inside != 0) {
        const char *reason = c->depth == MAX_NESTING ? "nested too deep" : "a list inside itself";
        return is_inside < 0 ? -1 : fx_submit_skip(c, place, io, reason);
    }
    c->depth++;
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < length_of(sequence); i++) {
        fx_place *child = fx_place_child(place, (size_t)i);
        PyObject *item = Py_XNewRef(item_of(sequence, i));
        status = child == NULL || item == NULL ? -1 : fx_submit(c, child, io, item);
        Py_XDECREF(item);
    }
    c->depth--;
    Py_ReprLeave(sequence);
    return status;
}

/* A value without an array is recorded by its text: torch's constants by name, other objects by type. */
static int submit_object(capture *c, fx_place *place, fxtap_io io, PyObject *value)
{
    const fx_state *state = c->state;
    PyObject *const by_text[] = {state->dtype_type,         state->device_type,      state->layout_type,
                                 state->memory_format_type, state->symint_type,      state->symfloat_type,
                                 state->symbool_type,       (PyObject *)&PyLong_Type};
    PyObject *text = NULL;
    for (size_t i = 0; text == NULL && !PyErr_Occurred() && i < sizeof by_text / sizeof *by_text; i++) {
        if (PyObject_TypeCheck(value, (PyTypeObject *)by_text[i])) {
            text = PyObject_Str(value);
        }
    }
    if (text == NULL && !PyErr_Occurred()) {
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__qualname__");
        text = name == NULL ? NULL : PyUnicode_FromFormat("object of type %U", name);
        Py_XDECREF(name);
    }
    int status = skip_text(c, place, io, text);
    Py_XDECREF(text);
    return status;
}

int fx_submit(capture *c, fx_place *place, fxtap_io io, PyObject *value)
{
    if (place->constant != NULL) {
        return submit_small(c, place, io, place->constant);
    }
    if (is_tensor(c, value)) {
        return submit_tensor(c, place, io, value);
    }
    if (value == Py_None) {
        return fx_submit_skip(c, place, io, "None");
    }
    fx_small small;
    int encoded = fx_small_encode(value, &small);
    if (encoded != 0) {
        int status = encoded < 0 ? -1 : submit_small(c, place, io, &small);
        fx_small_clear(&small);
        return status;
    }
    if (PyList_Check(value) || PyTuple_Check(value)) {
        return submit_elements(c, place, io, value);
    }
    return submit_object(c, place, io, value);
}

int fx_submit_outputs(capture *c, PyObject *result)
{
    if (PyList_Check(result) || PyTuple_Check(result)) {
        return submit_elements(c, &c->node->outputs, FXTAP_OUTPUT, result);
    }
    if (result == Py_None) {
        return 0; /* an operator that returns nothing */
    }
    fx_place *place = fx_place_child(&c->node->outputs, 0);
    return place == NULL ? -1 : fx_submit(c, place, FXTAP_OUTPUT, result);
}
