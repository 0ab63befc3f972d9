#include "template.h"

#include <string.h>

static int init_items(fx_template *out, PyObject *sequence, const fx_template_context *context)
{
    Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0) {
        return -1;
    }
    out->items = PyMem_Calloc((size_t)n + 1, sizeof *out->items);
    if (out->items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        int status = item == NULL ? -1 : fx_template_init(&out->items[i], item, context);
        Py_XDECREF(item);
        if (status < 0) {
            return -1;
        }
        out->n_items++;
    }
    return 0;
}

static int init_dict(fx_template *out, PyObject *dict, const fx_template_context *context)
{
    PyObject *keys = PyDict_Keys(dict);
    out->object = keys == NULL ? NULL : PyList_AsTuple(keys);
    Py_XDECREF(keys);
    PyObject *values = out->object == NULL ? NULL : PyDict_Values(dict);
    int status = values == NULL ? -1 : init_items(out, values, context);
    Py_XDECREF(values);
    return status;
}

static int init_slice(fx_template *out, PyObject *slice, const fx_template_context *context)
{
    PyObject *start = PyObject_GetAttrString(slice, "start");
    PyObject *stop = start == NULL ? NULL : PyObject_GetAttrString(slice, "stop");
    PyObject *step = stop == NULL ? NULL : PyObject_GetAttrString(slice, "step");
    PyObject *parts = step == NULL ? NULL : PyTuple_Pack(3, start, stop, step);
    int status = parts == NULL ? -1 : init_items(out, parts, context);
    Py_XDECREF(parts);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return status;
}

static int init_tuple(fx_template *out, PyObject *tuple, const fx_template_context *context)
{
    out->kind = FX_T_TUPLE;
    PyObject *fields;
    if (!PyTuple_CheckExact(tuple)) {
        int named = fx_optional_attr(tuple, "_fields", &fields);
        if (named < 0) {
            return -1;
        }
        if (named > 0) {
            Py_DECREF(fields);
            out->kind = FX_T_NAMED;
            out->object = Py_NewRef((PyObject *)Py_TYPE(tuple));
        }
    }
    return init_items(out, tuple, context);
}

static int init_ref(fx_template *out, PyObject *node, const fx_template_context *context)
{
    PyObject *slot = PyDict_GetItemWithError(context->slots, node);
    if (slot == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "node %S is used before it is defined", node);
        }
        return -1;
    }
    out->kind = FX_T_REF;
    out->slot = (uint32_t)PyLong_AsUnsignedLong(slot);
    return 0;
}

static bool is_constant(const fx_template *item)
{
    if (item->kind == FX_T_REF) {
        return false;
    }
    for (size_t i = 0; i < item->n_items; i++) {
        if (!is_constant(&item->items[i])) {
            return false;
        }
    }
    return true;
}

/* Replaces a template without references by its value. Lists and dicts only if they cannot be modified. */
static int fold(fx_template *item, bool share_containers)
{
    bool is_mutable = item->kind == FX_T_LIST || item->kind == FX_T_DICT;
    if (item->kind == FX_T_CONSTANT || (is_mutable && !share_containers) || !is_constant(item)) {
        return 0;
    }
    for (size_t i = 0; !share_containers && i < item->n_items; i++) {
        if (item->items[i].kind != FX_T_CONSTANT) {
            return 0; /* a tuple that contains a list */
        }
    }
    PyObject *value = fx_template_build(item, NULL);
    if (value == NULL) {
        return -1;
    }
    fx_template_clear(item);
    item->kind = FX_T_CONSTANT;
    item->object = value;
    return 0;
}

int fx_template_init(fx_template *out, PyObject *argument, const fx_template_context *context)
{
    memset(out, 0, sizeof *out);
    int status = 0;
    if (PyObject_TypeCheck(argument, (PyTypeObject *)context->state->fx_node_type)) {
        status = init_ref(out, argument, context);
    } else if (PyTuple_Check(argument) && Py_TYPE(argument) != (PyTypeObject *)context->state->size_type) {
        status = init_tuple(out, argument, context);
    } else if (PyList_Check(argument)) {
        out->kind = FX_T_LIST;
        status = init_items(out, argument, context);
    } else if (PyDict_Check(argument)) {
        out->kind = FX_T_DICT;
        status = init_dict(out, argument, context);
    } else if (PySlice_Check(argument)) {
        out->kind = FX_T_SLICE;
        status = init_slice(out, argument, context);
    } else {
        out->object = Py_NewRef(argument);
    }
    if (status == 0) {
        status = fold(out, context->share_containers);
    }
    if (status < 0) {
        fx_template_clear(out);
    }
    return status;
}

void fx_template_clear(fx_template *item)
{
    for (size_t i = 0; i < item->n_items; i++) {
        fx_template_clear(&item->items[i]);
    }
    PyMem_Free(item->items);
    Py_XDECREF(item->object);
    memset(item, 0, sizeof *item);
}

int fx_template_traverse(const fx_template *item, visitproc visit, void *arg)
{
    Py_VISIT(item->object);
    for (size_t i = 0; i < item->n_items; i++) {
        int status = fx_template_traverse(&item->items[i], visit, arg);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static PyObject *build_list(const fx_template *item, PyObject *const *values)
{
    PyObject *list = PyList_New((Py_ssize_t)item->n_items);
    for (size_t i = 0; list != NULL && i < item->n_items; i++) {
        PyObject *value = fx_template_build(&item->items[i], values);
        if (value == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SetItem(list, (Py_ssize_t)i, value);
    }
    return list;
}

static PyObject *build_tuple(const fx_template *item, PyObject *const *values)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)item->n_items);
    for (size_t i = 0; tuple != NULL && i < item->n_items; i++) {
        PyObject *value = fx_template_build(&item->items[i], values);
        if (value == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, (Py_ssize_t)i, value);
    }
    return tuple;
}

static PyObject *build_dict(const fx_template *item, PyObject *const *values)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < item->n_items; i++) {
        PyObject *value = fx_template_build(&item->items[i], values);
        if (value == NULL || PyDict_SetItem(dict, PyTuple_GetItem(item->object, (Py_ssize_t)i), value) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}

PyObject *fx_template_build(const fx_template *item, PyObject *const *values)
{
    PyObject *parts;
    PyObject *result;
    switch (item->kind) {
    case FX_T_CONSTANT:
        return Py_NewRef(item->object);
    case FX_T_REF:
        return Py_NewRef(values[item->slot]);
    case FX_T_LIST:
        return build_list(item, values);
    case FX_T_TUPLE:
        return build_tuple(item, values);
    case FX_T_DICT:
        return build_dict(item, values);
    case FX_T_NAMED:
        parts = build_tuple(item, values);
        result = parts == NULL ? NULL : PyObject_Call(item->object, parts, NULL);
        Py_XDECREF(parts);
        return result;
    case FX_T_SLICE:
        parts = build_tuple(item, values);
        result = parts == NULL
                     ? NULL
                     : PySlice_New(PyTuple_GetItem(parts, 0), PyTuple_GetItem(parts, 1), PyTuple_GetItem(parts, 2));
        Py_XDECREF(parts);
        return result;
    }
    PyErr_SetString(PyExc_SystemError, "unknown kind of argument");
    return NULL;
}

void fx_template_slots(const fx_template *item, void (*see)(void *context, uint32_t slot), void *context)
{
    if (item->kind == FX_T_REF) {
        see(context, item->slot);
    }
    for (size_t i = 0; i < item->n_items; i++) {
        fx_template_slots(&item->items[i], see, context);
    }
}
