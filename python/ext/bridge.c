#include "bridge.h"

#include <string.h>

#include "bridge_parts.h"
#include "errors.h"

int fx_skip(fx_bridged *out, const char *reason)
{
    out->skip = PyUnicode_FromString(reason);
    return out->skip == NULL ? -1 : 0;
}

int fx_skip_exception(fx_bridged *out)
{
    if (PyErr_ExceptionMatches(PyExc_MemoryError) || !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *line = fx_error_take_line();
    if (line == NULL) {
        return -1;
    }
    PyObject *lines = PyObject_CallMethod(line, "splitlines", NULL); /* torch appends C++ stacks */
    PyErr_Clear();                                                   /* use the whole line if splitting fails */
    PyObject *first = lines != NULL && PyList_Size(lines) > 0 ? PyList_GetItem(lines, 0) : line;
    out->skip = PyUnicode_FromFormat("cannot be read: %U", first);
    Py_XDECREF(lines);
    Py_DECREF(line);
    return out->skip == NULL ? -1 : 0;
}

int fx_copy_text(PyObject *object, const char *attribute, char *out, size_t n)
{
    PyObject *value = PyObject_GetAttrString(object, attribute);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    int status = -1;
    if (bytes != NULL) {
        const char *string = PyBytes_AsString(bytes);
        size_t length = strlen(string) < n - 1 ? strlen(string) : n - 1;
        memcpy(out, string, length);
        out[length] = '\0';
        status = 0;
    }
    Py_XDECREF(value);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return status;
}

int fx_is_true(PyObject *tensor, const char *name)
{
    PyObject *value = PyObject_GetAttrString(tensor, name);
    int result = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return result;
}

/* ---- tensors of other kinds ---- */

/* Replaces *tensor by the result of a call on it; takes over both references. */
static int replace(PyObject **tensor, PyObject *result, fx_bridged *out)
{
    Py_DECREF(*tensor);
    *tensor = result;
    out->is_copy = true;
    return result == NULL ? -1 : 0;
}

static int make_dense(PyObject **tensor, fx_bridged *out)
{
    char layout[sizeof out->layout];
    if (fx_copy_text(*tensor, "layout", layout, sizeof layout) < 0) {
        return -1;
    }
    if (strcmp(layout, "torch.strided") == 0) {
        return 0;
    }
    memcpy(out->layout, layout, sizeof layout);
    return replace(tensor, PyObject_CallMethod(*tensor, "to_dense", NULL), out);
}

static int make_readable_dtype(fx_state *state, PyObject **tensor, fx_bridged *out)
{
    char dtype[48];
    if (fx_copy_text(*tensor, "dtype", dtype, sizeof dtype) < 0) {
        return -1;
    }
    if (strstr(dtype, "quint") != NULL || strstr(dtype, "qint") != NULL) {
        out->original_dtype = fxtap_dtype_from_name(dtype);
        return replace(tensor, PyObject_CallMethod(*tensor, "dequantize", NULL), out);
    }
    if (strstr(dtype, "bits") != NULL) {
        out->original_dtype = fxtap_dtype_from_name(dtype);
        PyObject *plain = strstr(dtype, "bits16") != NULL ? state->uint16 : state->uint8;
        return replace(tensor, PyObject_CallMethod(*tensor, "view", "O", plain), out);
    }
    return 0;
}

static int bring_to_host(PyObject **tensor, fx_bridged *out)
{
    char device[sizeof out->device];
    if (fx_copy_text(*tensor, "device", device, sizeof device) < 0) {
        return -1;
    }
    if (strcmp(device, "cpu") == 0) {
        return 0;
    }
    memcpy(out->device, device, sizeof device);
    return replace(tensor, PyObject_CallMethod(*tensor, "to", "s", "cpu"), out);
}

static int materialise_zeros(PyObject **tensor, fx_bridged *out)
{
    int is_zero = fx_call_predicate(*tensor, NULL, "_is_zerotensor");
    return is_zero <= 0 ? is_zero : replace(tensor, PyObject_CallMethod(*tensor, "clone", NULL), out);
}

/* 1: there is a reason, in out->skip; 0: it may be read; -1: exception. */
static int find_reason(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    if (PyObject_TypeCheck(tensor, (PyTypeObject *)state->fake_tensor_type)) {
        return fx_skip(out, "fake tensor") < 0 ? -1 : 1;
    }
    PyObject *dispatch;
    int found = fx_optional_attr((PyObject *)Py_TYPE(tensor), "__torch_dispatch__", &dispatch);
    if (found < 0) {
        return -1;
    }
    bool is_wrapper = found > 0 && dispatch != state->no_torch_dispatch;
    Py_XDECREF(dispatch);
    if (is_wrapper) {
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(tensor), "__qualname__");
        out->skip = name == NULL ? NULL : PyUnicode_FromFormat("tensor subclass %U", name);
        Py_XDECREF(name);
        return out->skip == NULL ? -1 : 1;
    }
    static const char *const attributes[] = {"is_nested", "is_meta"};
    static const char *const reasons[] = {"nested tensor", "meta tensor"};
    for (size_t i = 0; i < 2; i++) {
        int yes = fx_is_true(tensor, attributes[i]);
        if (yes != 0) {
            return yes < 0 || fx_skip(out, reasons[i]) < 0 ? -1 : 1;
        }
    }
    return 0;
}

static int convert(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    int has_reason = find_reason(state, tensor, out);
    if (has_reason != 0) {
        return has_reason < 0 ? -1 : 0;
    }
    int is_located = fx_locate(state, tensor, out);
    if (is_located != 0) {
        return is_located < 0 ? -1 : 0;
    }
    PyObject *plain = PyObject_CallMethod(tensor, "detach", NULL);
    int status = plain == NULL ? -1 : bring_to_host(&plain, out);
    if (status == 0) {
        status = make_dense(&plain, out);
    }
    if (status == 0) {
        status = make_readable_dtype(state, &plain, out);
    }
    if (status == 0) {
        status = materialise_zeros(&plain, out);
    }
    if (status == 0) {
        status = fx_take_strided(state, plain, out);
        if (status == 0) {
            status = fx_skip(out, "its memory cannot be read");
        } else if (status > 0) {
            status = 0;
            out->memory = out->is_copy ? (fxtap_view){0} : out->memory;
        }
    }
    Py_XDECREF(plain);
    return status;
}

static int take_other(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    fx_guard guard;
    if (fx_guard_enter(state, &guard) < 0) {
        return -1;
    }
    memset(out, 0, sizeof *out);
    int status = convert(state, tensor, out);
    if (status < 0) {
        fx_bridge_drop(out);
        status = fx_skip_exception(out);
    }
    fx_guard_leave(&guard);
    return status;
}

static bool is_plain(const fx_state *state, PyObject *tensor)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    return type == state->tensor_type || type == state->parameter_type;
}

int fx_bridge_take(fx_state *state, PyObject *tensor, bool guarded, fx_bridged *out)
{
    memset(out, 0, sizeof *out);
    if (!guarded && is_plain(state, tensor) && !state->force_fallback && state->exchange != NULL) {
        int taken = fx_take_strided(state, tensor, out);
        if (taken > 0) {
            return 0;
        }
        PyErr_Clear();
    }
    return take_other(state, tensor, out);
}

int fx_bridge_read(fx_state *state, PyObject *tensor, bool guarded, fx_bridged *out)
{
    int status = fx_bridge_take(state, tensor, guarded, out);
    return status < 0 ? -1 : fx_bridge_fetch(state, tensor, out);
}

int fx_bridge_extent(fx_state *state, PyObject *tensor, bool guarded, const void **first_out, const void **end_out)
{
    fx_bridged bridged;
    fx_dlpack_tensor dl;
    *first_out = *end_out = NULL;
    if (state->exchange != NULL && !state->force_fallback) {
        if (state->exchange->dltensor_from_py_object_no_sync(tensor, &dl) != 0) {
            PyErr_Clear(); /* sparse, nested, quantised: only a copy is read */
            return 0;
        }
        if (fx_dlpack_dtype(&dl) != FXTAP_DTYPE_NONE && dl.ndim <= FXTAP_MAX_DIMS) {
            fxtap_view memory = fx_dlpack_view(&dl, fx_dlpack_dtype(&dl));
            fxtap_view_extent(&memory, first_out, end_out);
        }
        return 0;
    }
    if (fx_bridge_take(state, tensor, guarded, &bridged) < 0) {
        return -1;
    }
    if (bridged.skip == NULL && bridged.memory.data != NULL) {
        fxtap_view_extent(&bridged.memory, first_out, end_out);
    }
    fx_bridge_drop(&bridged);
    return 0;
}

void fx_bridge_drop(fx_bridged *bridged)
{
    Py_CLEAR(bridged->owner);
    Py_CLEAR(bridged->skip);
    PyMem_Free(bridged->numbers);
    memset(bridged, 0, sizeof *bridged);
}
