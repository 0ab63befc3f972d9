/* record_tensor.c - tensors of a graph: their meta, and the values of constants. */
#include <string.h>

#include "bridge.h"
#include "errors.h"
#include "record.h"

static int ok(fxtap_status status)
{
    if (status == FXTAP_OK) {
        return 0;
    }
    fx_raise(status);
    return -1;
}

/* Storage for a tensor's meta while it is added. */
typedef struct tensor_parts {
    PyObject *dtype;
    PyObject *device;
    PyObject *layout;
    fxtap_value *shape;
    fxtap_value *strides;
    PyObject *dense; /* keeps `bytes` alive */
    fx_bridged bridged;
} tensor_parts;

static void clear_parts(tensor_parts *parts)
{
    Py_XDECREF(parts->dtype);
    Py_XDECREF(parts->device);
    Py_XDECREF(parts->layout);
    PyMem_Free(parts->shape);
    PyMem_Free(parts->strides);
    fx_bridge_drop(&parts->bridged);
    Py_XDECREF(parts->dense);
}

static PyObject *attribute_text(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    PyObject *text = value == NULL ? NULL : fx_text_of(value);
    Py_XDECREF(value);
    return text;
}

/* Handles of a sequence of sizes; takes the reference. */
static int record_sizes(fx_recorder *r, PyObject *sizes, fxtap_value **out, size_t *n_out)
{
    Py_ssize_t n = sizes == NULL ? -1 : PySequence_Size(sizes);
    int status = n < 0 ? -1 : 0;
    *out = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof **out);
    if (status == 0 && *out == NULL) {
        PyErr_NoMemory();
        status = -1;
    }
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *size = PySequence_GetItem(sizes, i);
        status = size == NULL ? -1 : fx_record_value(r, size, &(*out)[i]);
        Py_XDECREF(size);
    }
    *n_out = n < 0 ? 0 : (size_t)n;
    Py_XDECREF(sizes);
    return status;
}

/* The values of a constant, row-major in its own dtype; left out if unavailable. */
static int fetch_bytes(fx_recorder *r, PyObject *tensor, tensor_parts *parts, fxtap_tensor_meta *meta)
{
    fx_guard guard;
    if (fx_guard_enter(r->state, &guard) < 0) {
        return -1;
    }
    static const char *const steps[] = {"detach", "cpu", "resolve_conj", "resolve_neg", "contiguous"};
    PyObject *dense = Py_NewRef(tensor);
    for (size_t i = 0; dense != NULL && i < sizeof steps / sizeof *steps; i++) {
        PyObject *next = PyObject_CallMethod(dense, steps[i], NULL);
        Py_DECREF(dense);
        dense = next;
    }
    int status = 0;
    uint64_t count;
    if (dense == NULL) {
        PyErr_Clear(); /* sparse, nested, ...: only the meta */
    } else if (fx_bridge_read(r->state, dense, true, &parts->bridged) < 0) {
        status = -1;
    } else if (parts->bridged.owner != NULL && parts->bridged.original_dtype == FXTAP_DTYPE_NONE &&
               parts->bridged.layout[0] == '\0' && fxtap_view_count(&parts->bridged.view, &count) == FXTAP_OK &&
               count <= r->constant_bytes / fxtap_dtype_size(meta->dtype)) {
        meta->bytes = count == 0 ? "" : parts->bridged.view.data;
        meta->n_bytes = (size_t)count * fxtap_dtype_size(meta->dtype);
    }
    parts->dense = dense;
    fx_guard_leave(&guard);
    return status;
}

/* 1 if it has real values: not a fake, functional or other wrapper tensor. */
static int has_values(fx_recorder *r, PyObject *tensor)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    if (type != r->state->tensor_type && type != r->state->parameter_type) {
        return 0;
    }
    PyObject *is_meta = PyObject_GetAttrString(tensor, "is_meta");
    int status = is_meta == NULL ? -1 : is_meta != Py_True;
    Py_XDECREF(is_meta);
    return status;
}

static int fill_texts(PyObject *tensor, tensor_parts *parts, fxtap_tensor_meta *meta)
{
    parts->dtype = attribute_text(tensor, "dtype");
    parts->device = parts->dtype == NULL ? NULL : attribute_text(tensor, "device");
    parts->layout = parts->device == NULL ? NULL : attribute_text(tensor, "layout");
    PyObject *requires_grad = parts->layout == NULL ? NULL : PyObject_GetAttrString(tensor, "requires_grad");
    if (requires_grad == NULL) {
        return -1;
    }
    meta->dtype = fxtap_dtype_from_name(PyBytes_AsString(parts->dtype));
    meta->device = PyBytes_AsString(parts->device);
    meta->layout = PyBytes_AsString(parts->layout);
    meta->requires_grad = requires_grad == Py_True;
    Py_DECREF(requires_grad);
    return 0;
}

static int fill_sizes(fx_recorder *r, PyObject *tensor, tensor_parts *parts, fxtap_tensor_meta *meta)
{
    size_t n_strides;
    if (record_sizes(r, PyObject_CallMethod(tensor, "size", NULL), &parts->shape, &meta->n_dims) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) {
            return -1;
        }
        PyErr_Clear(); /* nested tensors have no size */
        meta->n_dims = 0;
    }
    meta->shape = parts->shape;
    if (strcmp(meta->layout, "torch.strided") == 0 &&
        record_sizes(r, PyObject_CallMethod(tensor, "stride", NULL), &parts->strides, &n_strides) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) {
            return -1;
        }
        PyErr_Clear();
        PyMem_Free(parts->strides);
        parts->strides = NULL;
    }
    meta->strides = parts->strides;
    return 0;
}

int fx_record_tensor(fx_recorder *r, PyObject *tensor, bool with_bytes, fxtap_value *out)
{
    tensor_parts parts = {0};
    fxtap_tensor_meta meta = {.struct_size = sizeof meta};
    int status = -1;
    int is_real = has_values(r, tensor);
    if (is_real >= 0 && fill_texts(tensor, &parts, &meta) == 0 && fill_sizes(r, tensor, &parts, &meta) == 0) {
        meta.is_fake = !is_real;
        status = 0;
        if (with_bytes && is_real && fxtap_dtype_size(meta.dtype) > 0) {
            status = fetch_bytes(r, tensor, &parts, &meta);
        }
    }
    if (status == 0) {
        status = ok(fxtap_graph_add_tensor(r->graph, &meta, out));
    }
    clear_parts(&parts);
    return status;
}

/* torch.fx.passes.shape_prop's summary of a tensor: a named tuple. */
static int record_summary(fx_recorder *r, PyObject *summary, fxtap_value *out)
{
    PyObject *shape = PyObject_GetAttrString(summary, "shape");
    PyObject *stride = shape == NULL ? NULL : PyObject_GetAttrString(summary, "stride");
    PyObject *dtype = stride == NULL ? NULL : attribute_text(summary, "dtype");
    tensor_parts parts = {.dtype = dtype};
    fxtap_tensor_meta meta = {.struct_size = sizeof meta, .is_fake = true, .device = ""};
    size_t n_strides;
    int status = -1;
    if (dtype != NULL && record_sizes(r, Py_NewRef(shape), &parts.shape, &meta.n_dims) == 0 &&
        record_sizes(r, Py_NewRef(stride), &parts.strides, &n_strides) == 0) {
        meta.dtype = fxtap_dtype_from_name(PyBytes_AsString(dtype));
        meta.shape = parts.shape;
        meta.strides = n_strides == meta.n_dims ? parts.strides : NULL;
        status = ok(fxtap_graph_add_tensor(r->graph, &meta, out));
    }
    Py_XDECREF(shape);
    Py_XDECREF(stride);
    clear_parts(&parts);
    return status;
}

/* Tensors in a result are recorded by their meta, other objects as arguments are. */
static int record_yielded(fx_recorder *r, PyObject *value, fxtap_value *out)
{
    if (PyObject_TypeCheck(value, (PyTypeObject *)r->state->tensor_type)) {
        return fx_record_tensor(r, value, false, out);
    }
    if (!PyList_Check(value) && !PyTuple_Check(value)) {
        return fx_record_value(r, value, out);
    }
    Py_ssize_t n = PySequence_Size(value);
    fxtap_value *items = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *items);
    if (items == NULL) {
        return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        status = item == NULL ? -1 : record_yielded(r, item, &items[i]);
        Py_XDECREF(item);
    }
    if (status == 0) {
        fxtap_value_kind kind = PyList_Check(value) ? FXTAP_V_LIST : FXTAP_V_TUPLE;
        status = ok(fxtap_graph_add_items(r->graph, kind, items, (size_t)n, out));
    }
    PyMem_Free(items);
    return status;
}

int fx_record_yield(fx_recorder *r, PyObject *meta, fxtap_value *out)
{
    static const char *const keys[] = {"val", "example_value"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        PyObject *value = PyDict_GetItemString(meta, keys[i]); /* borrowed */
        if (value != NULL && value != Py_None) {
            return record_yielded(r, value, out);
        }
    }
    PyObject *summary = PyDict_GetItemString(meta, "tensor_meta");
    if (summary != NULL && summary != Py_None) {
        if (record_summary(r, summary, out) == 0) {
            return 0;
        }
        if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) {
            return -1;
        }
        PyErr_Clear(); /* a list of summaries, ... */
    }
    *out = 0;
    return 0;
}
