/* device.c - tensors in a device's memory: where they are, and how they reach the host. */
#include <string.h>

#include "bridge_parts.h"

/* Reads a tuple of numbers into `numbers`; its length, or -1 with an exception. */
static Py_ssize_t read_numbers(PyObject *tuple, int64_t *numbers)
{
    Py_ssize_t n = tuple == NULL ? -1 : PySequence_Size(tuple);
    for (Py_ssize_t i = 0; i < n && i < FXTAP_MAX_DIMS; i++) {
        PyObject *item = PySequence_GetItem(tuple, i);
        numbers[i] = item == NULL ? -1 : PyLong_AsLongLong(item);
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return n;
}

/* Describes a tensor by its attributes, where torch has no exchange table. 1: done; 0: not strided; -1: exception. */
static int describe_by_attributes(PyObject *tensor, fx_bridged *out, fxtap_view *view)
{
    char dtype[48], layout[32];
    if (fx_copy_text(tensor, "dtype", dtype, sizeof dtype) < 0 ||
        fx_copy_text(tensor, "layout", layout, sizeof layout) < 0) {
        return -1;
    }
    int is_quantised = fx_is_true(tensor, "is_quantized");
    if (is_quantised != 0 || strcmp(layout, "torch.strided") != 0) {
        return is_quantised < 0 ? -1 : 0;
    }
    out->numbers = PyMem_Malloc(2 * FXTAP_MAX_DIMS * sizeof *out->numbers);
    if (out->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *shape = PyObject_GetAttrString(tensor, "shape");
    PyObject *strides = PyObject_CallMethod(tensor, "stride", NULL);
    PyObject *address = PyObject_CallMethod(tensor, "data_ptr", NULL);
    Py_ssize_t n = read_numbers(shape, out->numbers);
    bool is_read = n >= 0 && read_numbers(strides, out->numbers + FXTAP_MAX_DIMS) == n && address != NULL;
    *view = (fxtap_view){.data = is_read ? PyLong_AsVoidPtr(address) : NULL,
                         .dtype = fxtap_dtype_from_name(dtype),
                         .ndim = (int32_t)n,
                         .shape = out->numbers,
                         .strides = out->numbers + FXTAP_MAX_DIMS};
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : n <= FXTAP_MAX_DIMS;
}

/* The same by the exchange table, without an exception. */
static int describe_by_table(const fx_state *state, PyObject *tensor, fxtap_view *view)
{
    fx_dlpack_tensor dl;
    if (state->exchange->dltensor_from_py_object_no_sync(tensor, &dl) != 0) {
        PyErr_Clear(); /* sparse, nested, quantised */
        return 0;
    }
    *view = fx_dlpack_view(&dl, fx_dlpack_dtype(&dl));
    return !fx_on_host(&dl) && dl.ndim <= FXTAP_MAX_DIMS;
}

static uint64_t key_of_device(const char *device)
{
    uint64_t key = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (; *device != '\0'; device++) {
        key = (key ^ (unsigned char)*device) * UINT64_C(0x100000001B3);
    }
    return key;
}

int fx_locate(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    char device[sizeof out->device];
    fxtap_view memory = {0};
    if (fx_copy_text(tensor, "device", device, sizeof device) < 0) {
        return -1;
    }
    bool has_table = state->exchange != NULL && !state->force_fallback;
    int found = strcmp(device, "cpu") == 0 ? 0
                : has_table                ? describe_by_table(state, tensor, &memory)
                                           : describe_by_attributes(tensor, out, &memory);
    if (found <= 0) {
        return found;
    }
    uint64_t count;
    bool has_memory = memory.data != NULL || (fxtap_view_count(&memory, &count) == FXTAP_OK && count == 0);
    if (!has_memory || memory.dtype == FXTAP_DTYPE_NONE || fx_set_flags(state, tensor, &memory) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    out->memory = memory;
    out->device_key = key_of_device(device);
    out->original_strides = memory.strides;
    memcpy(out->device, device, sizeof device);
    out->is_away = true;
    return 1;
}

/* The elements between a tensor's first and last one, as a vector on its device. */
static PyObject *whole_extent(PyObject *tensor, Py_ssize_t n)
{
    PyObject *offset = PyObject_CallMethod(tensor, "storage_offset", NULL);
    PyObject *flat =
        offset == NULL ? NULL : PyObject_CallMethod(tensor, "as_strided", "(n)(n)O", n, (Py_ssize_t)1, offset);
    Py_XDECREF(offset);
    return flat;
}

/* A host copy of a device's tensor. Elements that share memory, as those of an expanded tensor, are copied once. */
static PyObject *copy_to_host(PyObject *tensor, const fxtap_view *memory)
{
    const void *first;
    const void *end;
    uint64_t count;
    fxtap_view_extent(memory, &first, &end);
    size_t n = (size_t)((const char *)end - (const char *)first) / fxtap_dtype_size(memory->dtype);
    bool is_dense = fxtap_view_count(memory, &count) != FXTAP_OK || count <= n;
    PyObject *flat = is_dense ? Py_NewRef(tensor) : whole_extent(tensor, (Py_ssize_t)n);
    PyObject *host = flat == NULL ? NULL : PyObject_CallMethod(flat, "to", "s", "cpu");
    Py_XDECREF(flat);
    if (host == NULL || is_dense) {
        return host;
    }
    PyObject *shape = PyObject_GetAttrString(tensor, "shape");
    PyObject *strides = shape == NULL ? NULL : PyObject_CallMethod(tensor, "stride", NULL);
    PyObject *spread = strides == NULL ? NULL : PyObject_CallMethod(host, "as_strided", "OO", shape, strides);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_DECREF(host);
    return spread;
}

/* Whether the current exception says that there is no room for the copy; anything else is the device's failure. */
static bool is_out_of_memory(void)
{
    static const char *const texts[] = {"out of memory", "can't allocate memory", "not enough memory"};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    bool is_it = false;
    for (size_t i = 0; bytes != NULL && i < sizeof texts / sizeof *texts; i++) {
        is_it = is_it || strstr(PyBytes_AsString(bytes), texts[i]) != NULL;
    }
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return is_it;
}

static int fetch(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    PyObject *plain = PyObject_CallMethod(tensor, "detach", NULL);
    PyObject *host = plain == NULL ? NULL : copy_to_host(plain, &out->memory);
    Py_XDECREF(plain);
    if (host == NULL) {
        return is_out_of_memory() ? fx_skip_exception(out) : -1;
    }
    fx_bridged copy = {0};
    int taken = fx_take_strided(state, host, &copy);
    Py_DECREF(host);
    out->view = copy.view;
    out->owner = copy.owner;
    return taken > 0 ? 0 : taken < 0 ? -1 : fx_skip(out, "its memory cannot be read");
}

int fx_bridge_fetch(fx_state *state, PyObject *tensor, fx_bridged *bridged)
{
    fx_guard guard;
    if (!bridged->is_away || bridged->skip != NULL) {
        return 0;
    }
    if (fx_guard_enter(state, &guard) < 0) {
        return -1;
    }
    bridged->is_away = false;
    bridged->is_copy = true;
    int status = fetch(state, tensor, bridged);
    fx_guard_leave(&guard);
    return status;
}
