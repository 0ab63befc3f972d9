#include "bridge.h"

#include <string.h>

#include "dlpack.h"
#include "errors.h"

static int skip(fx_bridged *out, const char *reason)
{
    out->skip = PyUnicode_FromString(reason);
    return out->skip == NULL ? -1 : 0;
}

/* Converts torch's exception to the reason for skipping; MemoryError and non-Exceptions such as Ctrl-C stay raised. */
static int skip_exception(fx_bridged *out)
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

static bool on_host(const fx_dlpack_tensor *dl)
{
    return dl->device_type == FX_DLPACK_CPU || dl->device_type == FX_DLPACK_CUDA_HOST ||
           dl->device_type == FX_DLPACK_ROCM_HOST;
}

static bool is_empty(const fx_dlpack_tensor *dl)
{
    for (int32_t i = 0; i < dl->ndim; i++) {
        if (dl->shape[i] == 0) {
            return true;
        }
    }
    return false;
}

static fxtap_dtype dtype_of(const fx_dlpack_tensor *dl)
{
    if (dl->code == 17 && dl->bits == 4 && dl->lanes == 2) {
        return FXTAP_FLOAT4_E2M1FN_X2; /* two values per element */
    }
    return fxtap_dtype_from_dlpack(dl->code, dl->bits, dl->lanes);
}

static fxtap_view view_of(const fx_dlpack_tensor *dl, fxtap_dtype dtype)
{
    return (fxtap_view){.data = dl->data == NULL ? NULL : (const char *)dl->data + dl->byte_offset,
                        .dtype = dtype,
                        .ndim = dl->ndim,
                        .shape = dl->shape,
                        .strides = dl->strides};
}

static int call_predicate(PyObject *tensor, PyCFunction function, const char *name)
{
    PyObject *answer = function != NULL ? function(tensor, NULL) : PyObject_CallMethod(tensor, name, NULL);
    if (answer == NULL) {
        return -1;
    }
    int is_true = answer == Py_True;
    Py_DECREF(answer);
    return is_true;
}

/* Any numeric tensor can have the neg bit (integers by aten._neg_view); only complex tensors have the conj bit. */
static int set_flags(fx_state *state, PyObject *tensor, fxtap_view *view)
{
    fxtap_dtype_class kind = fxtap_dtype_class_of(view->dtype);
    int is_neg = call_predicate(tensor, state->is_neg, "is_neg");
    int is_conj = kind == FXTAP_CLASS_COMPLEX && is_neg >= 0 ? call_predicate(tensor, state->is_conj, "is_conj") : 0;
    if (is_neg < 0 || is_conj < 0) {
        return -1;
    }
    view->flags |= (is_neg ? FXTAP_VIEW_NEG : 0u) | (is_conj ? FXTAP_VIEW_CONJ : 0u);
    return 0;
}

static int copy_text(PyObject *object, const char *attribute, char *out, size_t n)
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

/* The dtype of a tensor that `__dlpack__()` rejects, and that is read as bytes; NONE: another one, or an exception. */
static fxtap_dtype dtype_as_bytes(PyObject *tensor)
{
    char name[48];
    bool is_narrow = copy_text(tensor, "dtype", name, sizeof name) == 0 &&
                     (strstr(name, "float8") != NULL || strstr(name, "float4") != NULL);
    return is_narrow ? fxtap_dtype_from_name(name) : FXTAP_DTYPE_NONE;
}

/* A capsule of the memory from `__dlpack__()`, which rejects tensors that require grad or have conj or neg bits. */
static PyObject *fallback_capsule(fx_state *state, PyObject *tensor, uint32_t flags, bool as_bytes)
{
    PyObject *plain = PyObject_CallMethod(tensor, "detach", NULL);
    PyObject *next;
    if (plain != NULL && (flags & FXTAP_VIEW_CONJ) != 0) {
        next = PyObject_CallFunctionObjArgs(state->conj, plain, NULL);
        Py_DECREF(plain);
        plain = next;
    }
    if (plain != NULL && (flags & FXTAP_VIEW_NEG) != 0) {
        next = PyObject_CallFunctionObjArgs(state->neg_view, plain, NULL);
        Py_DECREF(plain);
        plain = next;
    }
    if (plain != NULL && as_bytes) {
        next = PyObject_CallMethod(plain, "view", "O", state->uint8);
        Py_DECREF(plain);
        plain = next;
    }
    PyObject *capsule = plain == NULL ? NULL : PyObject_CallMethod(plain, "__dlpack__", NULL);
    Py_XDECREF(plain);
    return capsule;
}

static const fx_dlpack_tensor *capsule_tensor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        fx_dlpack_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed != NULL && managed->version.major == FX_DLPACK_MAJOR) {
            return &managed->tensor;
        }
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        fx_dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (managed != NULL) {
            return &managed->tensor;
        }
    }
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_BufferError, "unknown DLPack capsule");
    }
    return NULL;
}

static int take_fallback(fx_state *state, PyObject *tensor, fx_bridged *out, fx_dlpack_tensor *dl,
                         fxtap_dtype *dtype_out)
{
    int is_neg = call_predicate(tensor, state->is_neg, "is_neg");
    int is_conj = is_neg < 0 ? -1 : call_predicate(tensor, state->is_conj, "is_conj");
    if (is_conj < 0) {
        return -1;
    }
    uint32_t flags = (is_neg ? FXTAP_VIEW_NEG : 0u) | (is_conj ? FXTAP_VIEW_CONJ : 0u);
    fxtap_dtype narrow = dtype_as_bytes(tensor);
    bool as_bytes = narrow != FXTAP_DTYPE_NONE;
    PyObject *capsule = PyErr_Occurred() ? NULL : fallback_capsule(state, tensor, flags, as_bytes);
    const fx_dlpack_tensor *found = capsule == NULL ? NULL : capsule_tensor(capsule);
    if (found == NULL) {
        Py_XDECREF(capsule);
        return -1;
    }
    *dl = *found;
    *dtype_out = as_bytes ? narrow : dtype_of(dl);
    out->owner = capsule; /* not consumed: its destructor releases the memory */
    return 0;
}

/* The view of a strided tensor: 1 taken, 0 not such a tensor, -1 with torch's exception. */
static int take_strided(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    fx_dlpack_tensor dl;
    fxtap_dtype dtype;
    if (state->exchange != NULL && !state->force_fallback) {
        if (state->exchange->dltensor_from_py_object_no_sync(tensor, &dl) != 0) {
            return -1;
        }
        out->owner = Py_NewRef(tensor);
        dtype = dtype_of(&dl);
    } else if (take_fallback(state, tensor, out, &dl, &dtype) < 0) {
        return -1;
    }
    bool has_memory = dl.data != NULL || is_empty(&dl);
    if (!on_host(&dl) || !has_memory || dtype == FXTAP_DTYPE_NONE || dl.ndim > FXTAP_MAX_DIMS) {
        Py_CLEAR(out->owner);
        return 0;
    }
    out->view = view_of(&dl, dtype);
    if (set_flags(state, tensor, &out->view) < 0) {
        Py_CLEAR(out->owner);
        return -1;
    }
    out->memory = out->view;
    return 1;
}

/* ---- tensors of other kinds ---- */

static int is_true(PyObject *tensor, const char *name)
{
    PyObject *value = PyObject_GetAttrString(tensor, name);
    int result = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return result;
}

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
    if (copy_text(*tensor, "layout", layout, sizeof layout) < 0) {
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
    if (copy_text(*tensor, "dtype", dtype, sizeof dtype) < 0) {
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
    if (copy_text(*tensor, "device", device, sizeof device) < 0) {
        return -1;
    }
    if (strcmp(device, "cpu") == 0) {
        return 0;
    }
    memcpy(out->device, device, sizeof device);
    return replace(tensor, PyObject_CallMethod(*tensor, "to", "s", "cpu"), out);
}

/* ---- tensors on a device ---- */

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
    if (copy_text(tensor, "dtype", dtype, sizeof dtype) < 0 || copy_text(tensor, "layout", layout, sizeof layout) < 0) {
        return -1;
    }
    int is_quantised = is_true(tensor, "is_quantized");
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
    *view = view_of(&dl, dtype_of(&dl));
    return !on_host(&dl) && dl.ndim <= FXTAP_MAX_DIMS;
}

static uint64_t key_of_device(const char *device)
{
    uint64_t key = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (; *device != '\0'; device++) {
        key = (key ^ (unsigned char)*device) * UINT64_C(0x100000001B3);
    }
    return key;
}

/* Describes a strided tensor in a device's memory: 1 done, 0 not such a tensor, -1 with an exception. */
static int locate(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    char device[sizeof out->device];
    fxtap_view memory = {0};
    if (copy_text(tensor, "device", device, sizeof device) < 0) {
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
    if (!has_memory || memory.dtype == FXTAP_DTYPE_NONE || set_flags(state, tensor, &memory) < 0) {
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

/* A copy of a device's tensor on the host. Elements that share memory, as those of an expanded tensor, are copied once. */
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
        return is_out_of_memory() ? skip_exception(out) : -1;
    }
    fx_bridged copy = {0};
    int taken = take_strided(state, host, &copy);
    Py_DECREF(host);
    out->view = copy.view;
    out->owner = copy.owner;
    return taken > 0 ? 0 : taken < 0 ? -1 : skip(out, "its memory cannot be read");
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

static int materialise_zeros(PyObject **tensor, fx_bridged *out)
{
    int is_zero = call_predicate(*tensor, NULL, "_is_zerotensor");
    return is_zero <= 0 ? is_zero : replace(tensor, PyObject_CallMethod(*tensor, "clone", NULL), out);
}

/* 1: there is a reason, in out->skip; 0: it may be read; -1: exception. */
static int find_reason(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    if (PyObject_TypeCheck(tensor, (PyTypeObject *)state->fake_tensor_type)) {
        return skip(out, "fake tensor") < 0 ? -1 : 1;
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
        int yes = is_true(tensor, attributes[i]);
        if (yes != 0) {
            return yes < 0 || skip(out, reasons[i]) < 0 ? -1 : 1;
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
    int is_located = locate(state, tensor, out);
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
        status = take_strided(state, plain, out);
        if (status == 0) {
            status = skip(out, "its memory cannot be read");
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
        status = skip_exception(out);
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
        int taken = take_strided(state, tensor, out);
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
        if (dtype_of(&dl) != FXTAP_DTYPE_NONE && dl.ndim <= FXTAP_MAX_DIMS) {
            fxtap_view memory = view_of(&dl, dtype_of(&dl));
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
