/* guard.c - disables torch's modes and autograd while the bridge uses a tensor. */
#include "bridge.h"

static PyObject *enter(PyObject *type)
{
    PyObject *context = PyObject_CallNoArgs(type);
    PyObject *entered = context == NULL ? NULL : PyObject_CallMethod(context, "__enter__", NULL);
    if (entered == NULL) {
        Py_XDECREF(context);
        return NULL;
    }
    Py_DECREF(entered);
    return context;
}

int fx_guard_enter(fx_state *state, fx_guard *out)
{
    PyObject *types[3] = {state->disable_function, state->disable_dispatch, state->no_grad};
    *out = (fx_guard){{NULL, NULL, NULL}};
    for (size_t i = 0; i < 3; i++) {
        out->entered[i] = enter(types[i]);
        if (out->entered[i] == NULL) {
            fx_guard_leave(out);
            return -1;
        }
    }
    return 0;
}

void fx_guard_leave(fx_guard *guard)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 3; i-- > 0;) {
        if (guard->entered[i] != NULL) {
            PyObject *left = PyObject_CallMethod(guard->entered[i], "__exit__", "OOO", Py_None, Py_None, Py_None);
            Py_XDECREF(left);
            PyErr_Clear();
            Py_CLEAR(guard->entered[i]);
        }
    }
    PyErr_Restore(type, value, traceback);
}
