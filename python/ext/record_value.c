/* record_value.c - arguments and constants as values of a graph record. */
#include <string.h>

#include "errors.h"
#include "record.h"

#define MAX_REPR_BYTES 65536

static int ok(fxtap_status status)
{
    if (status == FXTAP_OK) {
        return 0;
    }
    fx_raise(status);
    return -1;
}

PyObject *fx_text_of(PyObject *object)
{
    PyObject *text = PyObject_Str(object);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    Py_XDECREF(text);
    return bytes;
}

/* A value of `kind` with bytes; takes the reference. */
static int add_bytes(fx_recorder *r, fxtap_value_kind kind, PyObject *bytes, fxtap_value *out)
{
    char *data;
    Py_ssize_t length;
    int status = -1;
    if (bytes != NULL && PyBytes_AsStringAndSize(bytes, &data, &length) == 0) {
        status = ok(fxtap_graph_add_text(r->graph, kind, data, (size_t)length, out));
    }
    Py_XDECREF(bytes);
    return status;
}

/* The object's repr, or the name of its type if repr() fails: that must not stop a compilation. */
static PyObject *describe(PyObject *object)
{
    PyObject *text = PyObject_Repr(object);
    if (text == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        PyObject *name = PyType_GetQualName(Py_TYPE(object));
        text = name == NULL ? NULL : PyUnicode_FromFormat("<%U object>", name);
        Py_XDECREF(name);
    }
    return text;
}

static int add_other(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    PyObject *text = describe(object);
    if (text != NULL && PyUnicode_GetLength(text) > MAX_REPR_BYTES) {
        PyObject *start = PyUnicode_Substring(text, 0, MAX_REPR_BYTES);
        Py_DECREF(text);
        text = start;
    }
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    Py_XDECREF(text);
    return add_bytes(r, FXTAP_V_OTHER, bytes, out);
}

static int add_int(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    PyObject *number = PyNumber_Index(object); /* enumerations too */
    if (number == NULL) {
        return -1;
    }
    int overflow = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
    PyObject *text = NULL;
    int status;
    if (overflow == 0) {
        status = value == -1 && PyErr_Occurred() ? -1 : ok(fxtap_graph_add_int(r->graph, value, out));
    } else {
        text = PyNumber_ToBase(number, 10);
        status = text == NULL ? -1 : add_bytes(r, FXTAP_V_BIGINT, fx_utf8(text), out);
    }
    Py_XDECREF(text);
    Py_DECREF(number);
    return status;
}

static int add_number(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    if (PyBool_Check(object)) {
        return ok(fxtap_graph_add_bool(r->graph, object == Py_True, out));
    }
    if (PyLong_Check(object)) {
        return add_int(r, object, out);
    }
    if (PyFloat_Check(object)) {
        return ok(fxtap_graph_add_float(r->graph, PyFloat_AsDouble(object), out));
    }
    double real = PyComplex_RealAsDouble(object);
    return ok(fxtap_graph_add_complex(r->graph, real, PyComplex_ImagAsDouble(object), out));
}

/* ---- symbols ---- */

/* The text of a symbolic number's expression, cached: sympy's printer is slow. A new reference. */
static PyObject *expression_text(fx_recorder *r, PyObject *node)
{
    PyObject *expression = PyObject_GetAttrString(node, "expr");
    if (expression == NULL) {
        return NULL;
    }
    PyObject *text = PyDict_GetItemWithError(r->texts, expression);
    Py_XINCREF(text);
    if (text == NULL && !PyErr_Occurred()) {
        text = fx_text_of(expression);
        if (text != NULL && PyDict_SetItem(r->texts, expression, text) < 0) {
            Py_CLEAR(text);
        }
    }
    Py_DECREF(expression);
    return text;
}

/* 1 with a hint, 0 without one (unbacked symbols raise when asked). */
static int hint_of(PyObject *node, double *out)
{
    PyObject *hint = PyObject_GetAttrString(node, "hint");
    int found = 0;
    if (hint != NULL && hint != Py_None) {
        PyObject *number = PyNumber_Float(hint);
        if (number != NULL) {
            *out = PyFloat_AsDouble(number);
            found = !PyErr_Occurred();
            Py_DECREF(number);
        }
    }
    Py_XDECREF(hint);
    PyErr_Clear();
    return found;
}

static int add_symbol(fx_recorder *r, fxtap_value_kind kind, PyObject *object, fxtap_value *out)
{
    PyObject *node = PyObject_GetAttrString(object, "node");
    PyObject *text = node == NULL ? NULL : expression_text(r, node);
    int status = -1;
    if (text != NULL) {
        double hint;
        bool has_hint = hint_of(node, &hint) > 0;
        status = ok(fxtap_graph_add_symbol(r->graph, kind, PyBytes_AsString(text), has_hint ? &hint : NULL, out));
    }
    Py_XDECREF(node);
    Py_XDECREF(text);
    return status;
}

/* ---- containers ---- */

static int add_sequence(fx_recorder *r, fxtap_value_kind kind, PyObject *sequence, fxtap_value *out)
{
    Py_ssize_t n = PySequence_Size(sequence);
    fxtap_value *items = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *items);
    if (items == NULL) {
        return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    }
    int status = 0;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        status = item == NULL ? -1 : fx_record_value(r, item, &items[i]);
        Py_XDECREF(item);
    }
    if (status == 0) {
        status = ok(fxtap_graph_add_items(r->graph, kind, items, (size_t)n, out));
    }
    PyMem_Free(items);
    return status;
}

static int add_dict(fx_recorder *r, PyObject *dict, fxtap_value *out)
{
    PyObject *flat = PyList_New(0);
    PyObject *key;
    PyObject *value;
    Py_ssize_t position = 0;
    int status = flat == NULL ? -1 : 0;
    while (status == 0 && PyDict_Next(dict, &position, &key, &value)) {
        if (PyList_Append(flat, key) < 0 || PyList_Append(flat, value) < 0) {
            status = -1;
        }
    }
    if (status == 0) {
        status = add_sequence(r, FXTAP_V_DICT, flat, out);
    }
    Py_XDECREF(flat);
    return status;
}

static int add_slice(fx_recorder *r, PyObject *slice, fxtap_value *out)
{
    PyObject *parts = PyTuple_New(3);
    static const char *const names[] = {"start", "stop", "step"};
    for (Py_ssize_t i = 0; parts != NULL && i < 3; i++) {
        PyObject *part = PyObject_GetAttrString(slice, names[i]);
        if (part == NULL) {
            Py_CLEAR(parts);
        } else {
            PyTuple_SetItem(parts, i, part);
        }
    }
    int status = parts == NULL ? -1 : add_sequence(r, FXTAP_V_SLICE, parts, out);
    Py_XDECREF(parts);
    return status;
}

/* ---- all kinds ---- */

static bool is_a(PyObject *object, PyObject *type)
{
    return PyObject_TypeCheck(object, (PyTypeObject *)type);
}

static int add_node_ref(fx_recorder *r, PyObject *node, fxtap_value *out)
{
    PyObject *number = PyDict_GetItemWithError(r->nodes, node);
    if (number == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "node %S is used before it is defined", node);
        }
        return -1;
    }
    return ok(fxtap_graph_add_node_ref(r->graph, (fxtap_node)PyLong_AsUnsignedLong(number), out));
}

/* The kind of torch constants that are recorded as text; 0 for any other object. */
static fxtap_value_kind text_kind(fx_state *state, PyObject *object)
{
    if (is_a(object, state->dtype_type)) {
        return FXTAP_V_DTYPE;
    }
    if (is_a(object, state->device_type)) {
        return FXTAP_V_DEVICE;
    }
    if (is_a(object, state->layout_type)) {
        return FXTAP_V_LAYOUT;
    }
    return is_a(object, state->memory_format_type) ? FXTAP_V_MEMORY_FORMAT : 0;
}

static fxtap_value_kind symbol_kind(fx_state *state, PyObject *object)
{
    if (is_a(object, state->symint_type)) {
        return FXTAP_V_SYMINT;
    }
    if (is_a(object, state->symfloat_type)) {
        return FXTAP_V_SYMFLOAT;
    }
    return is_a(object, state->symbool_type) ? FXTAP_V_SYMBOOL : 0;
}

static int add_torch(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    fx_state *state = r->state;
    if (is_a(object, state->fx_node_type)) {
        return add_node_ref(r, object, out);
    }
    fxtap_value_kind kind = symbol_kind(state, object);
    if (kind != 0) {
        return add_symbol(r, kind, object, out);
    }
    kind = text_kind(state, object);
    if (kind != 0) {
        return add_bytes(r, kind, fx_text_of(object), out);
    }
    if (is_a(object, state->tensor_type)) {
        return fx_record_tensor(r, object, true, out);
    }
    return is_a(object, state->op_overload_type) ? add_bytes(r, FXTAP_V_OTHER, fx_text_of(object), out)
                                                 : add_other(r, object, out);
}

static int add_any(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    if (object == Py_None) {
        return ok(fxtap_graph_add_none(r->graph, out));
    }
    if (PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object)) {
        return add_number(r, object, out);
    }
    if (PyUnicode_Check(object)) {
        return add_bytes(r, FXTAP_V_STRING, PyUnicode_AsEncodedString(object, "utf-8", "surrogatepass"), out);
    }
    if (PyBytes_Check(object)) {
        return add_bytes(r, FXTAP_V_BYTES, Py_NewRef(object), out);
    }
    if (PyTuple_Check(object)) {
        return add_sequence(r, FXTAP_V_TUPLE, object, out);
    }
    if (PyList_Check(object)) {
        return add_sequence(r, FXTAP_V_LIST, object, out);
    }
    if (PyDict_Check(object)) {
        return add_dict(r, object, out);
    }
    if (PySlice_Check(object)) {
        return add_slice(r, object, out);
    }
    if (object == Py_Ellipsis) {
        return ok(fxtap_graph_add_text(r->graph, FXTAP_V_ELLIPSIS, "", 0, out));
    }
    return add_torch(r, object, out);
}

int fx_record_value(fx_recorder *r, PyObject *object, fxtap_value *out)
{
    if (Py_EnterRecursiveCall(" in a graph's arguments")) {
        return -1;
    }
    int status = add_any(r, object, out);
    Py_LeaveRecursiveCall();
    return status;
}
