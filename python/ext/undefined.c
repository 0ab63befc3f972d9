#include "undefined.h"

#include <string.h>

#include "errors.h"

typedef struct fx_capture capture;

static bool is_any_left(const fx_state *state)
{
    return state->undefined_regions != NULL && PyDict_Size(state->undefined_regions) > 0;
}

/* Creates the Memory object at first use. */
static int create_memory(fx_state *state)
{
    if (state->undefined_memory != NULL) {
        return 0;
    }
    PyObject *module = PyImport_ImportModule("fxtap.undefined");
    PyObject *memory = module == NULL ? NULL : PyObject_CallMethod(module, "Memory", NULL);
    PyObject *regions = memory == NULL ? NULL : PyObject_GetAttrString(memory, "regions");
    Py_XDECREF(module);
    if (regions == NULL) {
        Py_XDECREF(memory);
        return -1;
    }
    state->undefined_memory = memory;
    state->undefined_regions = regions;
    return 0;
}

void fx_undefined_begin_call(capture *c)
{
    if (is_any_left(c->state)) {
        PyObject *done = PyObject_CallMethod(c->state->undefined_memory, "begin_call", NULL);
        Py_XDECREF(done);
        PyErr_Clear();
    }
}

static PyObject *call_before(capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    bool is_function = instruction->action == FX_CALL;
    PyObject *target = is_function ? PyObject_GetAttrString(instruction->node, "target") : Py_NewRef(Py_None);
    PyObject *pending = NULL;
    if (target != NULL) {
        pending =
            PyObject_CallMethod(c->state->undefined_memory, "before", "OOOO", target, args,
                                kwargs == NULL ? Py_None : kwargs, instruction->is_undefined ? Py_True : Py_False);
    }
    Py_XDECREF(target);
    return pending;
}

int fx_undefined_before(capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs, PyObject **out)
{
    *out = NULL;
    bool is_call = instruction->action != FX_RETURN && instruction->action != FX_ATTRIBUTE;
    if (!is_call || (!instruction->is_undefined && !is_any_left(c->state))) {
        return 0;
    }
    fx_guard guard;
    if (create_memory(c->state) < 0 || fx_guard_enter(c->state, &guard) < 0) {
        return -1;
    }
    *out = call_before(c, instruction, args, kwargs);
    fx_guard_leave(&guard);
    if (*out == NULL) {
        return -1;
    }
    if (*out == Py_None) {
        Py_CLEAR(*out);
    }
    return 0;
}

/* `read` is (position, name, unwritten elements, all elements). */
static int note_read(capture *c, const fx_instruction *instruction, PyObject *read)
{
    const char *position;
    const char *name;
    unsigned long long count, total;
    if (!PyArg_ParseTuple(read, "ssKK", &position, &name, &count, &total)) {
        return -1;
    }
    fxtap_note note = {.struct_size = sizeof note,
                       .kind = FXTAP_FINDING_UNWRITTEN_READ,
                       .node = instruction->slot,
                       .stamp_us = c->node != NULL ? c->stamp_us : fxtap_call_stamp(c->call),
                       .position = position,
                       .arg_name = name,
                       .count = count,
                       .total = total};
    return fx_submit_note(c, &note);
}

int fx_undefined_after(capture *c, const fx_instruction *instruction, PyObject *pending, PyObject *result)
{
    fx_guard guard;
    if (fx_guard_enter(c->state, &guard) < 0) {
        Py_DECREF(pending);
        return -1;
    }
    PyObject *reads = PyObject_CallMethod(c->state->undefined_memory, "after", "OO", pending, result);
    fx_guard_leave(&guard);
    Py_DECREF(pending);
    int status = reads == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_Size(reads); i++) {
        status = note_read(c, instruction, PyList_GetItem(reads, i));
    }
    Py_XDECREF(reads);
    return status;
}

/* ---- ranges ---- */

/* Makes one range of each run of equal states; `scale`: saved elements per state. */
static int add_ranges(const uint8_t *states, size_t n, uint64_t scale, fxtap_undefined_range **out, size_t *n_out)
{
    size_t capacity = 0;
    for (size_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n && states[end] == states[first]) {
            end++;
        }
        if (states[first] == 0) {
            continue;
        }
        if (*n_out == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            fxtap_undefined_range *grown = PyMem_Realloc(*out, capacity * sizeof *grown);
            if (grown == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            *out = grown;
        }
        fxtap_undefined kind = (fxtap_undefined)states[first];
        (*out)[(*n_out)++] = (fxtap_undefined_range){first * scale, (end - first) * scale, kind};
    }
    return 0;
}

/* Copies states from row-major to column-major order: a new array, or NULL with MemoryError. */
static uint8_t *to_column_major(const uint8_t *states, size_t n, const fxtap_view *view)
{
    int64_t index[FXTAP_MAX_DIMS] = {0}, strides[FXTAP_MAX_DIMS], stride = 1;
    uint8_t *copied = PyMem_Malloc(n);
    if (copied == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= view->shape[i];
    }
    int64_t at = 0;
    for (size_t k = 0; k < n; k++) {
        copied[k] = states[at];
        for (int32_t i = 0; i < view->ndim; i++) { /* the first axis varies fastest */
            at += strides[i];
            if (++index[i] < view->shape[i]) {
                break;
            }
            at -= strides[i] * view->shape[i];
            index[i] = 0;
        }
    }
    return copied;
}

static int take_states(const fxtap_view *states, const fxtap_view *view, fxtap_undefined_range **out, size_t *n_out)
{
    uint64_t n, n_view;
    if (fxtap_view_count(states, &n) != FXTAP_OK || fxtap_view_count(view, &n_view) != FXTAP_OK || n != n_view ||
        states->dtype != FXTAP_UINT8) {
        return 0;
    }
    uint64_t scale = view->dtype == FXTAP_FLOAT4_E2M1FN_X2 ? 2 : 1;
    if (fxtap_view_order(view) != FXTAP_ORDER_FORTRAN) {
        return add_ranges(states->data, (size_t)n, scale, out, n_out);
    }
    uint8_t *copied = to_column_major(states->data, (size_t)n, view);
    int status = copied == NULL ? -1 : add_ranges(copied, (size_t)n, scale, out, n_out);
    PyMem_Free(copied);
    return status;
}

int fx_undefined_ranges(capture *c, PyObject *tensor, const fxtap_view *view, fxtap_undefined_range **out,
                        size_t *n_out)
{
    *out = NULL;
    *n_out = 0;
    if (!is_any_left(c->state)) {
        return 0;
    }
    fx_guard guard;
    if (fx_guard_enter(c->state, &guard) < 0) {
        return -1;
    }
    PyObject *state = PyObject_CallMethod(c->state->undefined_memory, "state", "O", tensor);
    fx_guard_leave(&guard);
    if (state == NULL || state == Py_None) {
        Py_XDECREF(state);
        return state == NULL ? -1 : 0;
    }
    fx_bridged bridged;
    int status = fx_bridge_read(c->state, state, c->is_guarded, &bridged);
    if (status == 0 && bridged.skip == NULL) {
        status = take_states(&bridged.view, view, out, n_out);
    }
    fx_bridge_drop(&bridged);
    Py_DECREF(state);
    return status;
}
