#include "small.h"

#include <string.h>

/* In increasing order: the array of a list has its widest kind. */
typedef enum number_kind {
    KIND_NONE = 0,
    KIND_BOOL,
    KIND_INT,
    KIND_UINT, /* over 2^63-1 */
    KIND_FLOAT,
    KIND_COMPLEX
} number_kind;

static const fxtap_dtype kind_dtypes[] = {
    [KIND_BOOL] = FXTAP_BOOL,     [KIND_INT] = FXTAP_INT64,          [KIND_UINT] = FXTAP_UINT64,
    [KIND_FLOAT] = FXTAP_FLOAT64, [KIND_COMPLEX] = FXTAP_COMPLEX128,
};

/* The kind of an int by its size; KIND_NONE if it fits no array. */
static number_kind kind_of_int(PyObject *value)
{
    int overflow;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        return KIND_INT;
    }
    if (overflow > 0) {
        PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred()) {
            return KIND_UINT;
        }
        PyErr_Clear();
    }
    return KIND_NONE;
}

static number_kind kind_of(PyObject *value)
{
    if (PyBool_Check(value)) {
        return KIND_BOOL;
    }
    if (PyLong_Check(value)) {
        return kind_of_int(value);
    }
    if (PyFloat_Check(value)) {
        return KIND_FLOAT;
    }
    return PyComplex_Check(value) ? KIND_COMPLEX : KIND_NONE;
}

static void store(PyObject *value, number_kind kind, void *data, Py_ssize_t i)
{
    switch (kind) {
    case KIND_BOOL:
        ((uint8_t *)data)[i] = value == Py_True;
        break;
    case KIND_INT:
        ((int64_t *)data)[i] = PyLong_AsLongLong(value);
        break;
    case KIND_UINT:
        ((uint64_t *)data)[i] = PyLong_AsUnsignedLongLong(value);
        break;
    case KIND_FLOAT:
        ((double *)data)[i] = PyFloat_AsDouble(value);
        break;
    case KIND_COMPLEX:
        ((double *)data)[2 * i] = PyComplex_RealAsDouble(value);
        ((double *)data)[2 * i + 1] = PyComplex_ImagAsDouble(value);
        break;
    case KIND_NONE:
        break;
    }
}

/* The kind of a list's array; KIND_NONE if an element is not a number, or the elements fit no common array. */
static number_kind kind_of_list(PyObject *list, Py_ssize_t n, bool is_list)
{
    number_kind widest = KIND_NONE;
    bool has_negative = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i);
        number_kind kind = item == NULL ? KIND_NONE : kind_of(item);
        if (kind == KIND_NONE) {
            return KIND_NONE;
        }
        has_negative = has_negative || (kind == KIND_INT && PyLong_AsLongLong(item) < 0);
        widest = kind > widest ? kind : widest;
    }
    if (n == 0) {
        return KIND_FLOAT;
    }
    return widest == KIND_UINT && has_negative ? KIND_NONE : widest;
}

static int encode_list(PyObject *list, fx_small *out)
{
    bool is_list = PyList_Check(list);
    Py_ssize_t n = is_list ? PyList_Size(list) : PyTuple_Size(list);
    number_kind kind = kind_of_list(list, n, is_list);
    if (kind == KIND_NONE) {
        return 0;
    }
    out->data = PyMem_Calloc((size_t)n + 1, 2 * sizeof(double)); /* room for the widest kind */
    if (out->data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    out->dtype = kind_dtypes[kind];
    out->ndim = 1;
    out->length = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        store(is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i), kind, out->data, i);
    }
    if (PyErr_Occurred()) { /* an integer too large for a float */
        PyErr_Clear();
        fx_small_clear(out);
        return 0;
    }
    return 1;
}

static int encode_text(PyObject *text, fx_small *out)
{
    out->text = fx_utf8(text);
    if (out->text == NULL) {
        return -1;
    }
    out->dtype = FXTAP_STRING;
    out->length = PyBytes_Size(out->text);
    return 1;
}

int fx_small_encode(PyObject *value, fx_small *out)
{
    memset(out, 0, sizeof *out);
    if (PyUnicode_Check(value)) {
        return encode_text(value, out);
    }
    if (PyList_Check(value) || PyTuple_Check(value)) {
        return encode_list(value, out);
    }
    number_kind kind = kind_of(value);
    if (kind == KIND_NONE) {
        return 0;
    }
    out->dtype = kind_dtypes[kind];
    out->length = 1;
    store(value, kind, out->inline_data, 0);
    return 1;
}

void fx_small_clear(fx_small *small)
{
    PyMem_Free(small->data);
    Py_XDECREF(small->text);
    memset(small, 0, sizeof *small);
}

fxtap_view fx_small_view(const fx_small *small)
{
    fxtap_view view = {.data = small->data != NULL ? small->data : small->inline_data,
                       .dtype = small->dtype,
                       .ndim = small->ndim,
                       .shape = &small->length};
    return view;
}
