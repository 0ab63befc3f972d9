#include "state.h"

#include <string.h>

#include "dlpack.h"

fx_state *fx_state_of_module(PyObject *module)
{
    return (fx_state *)PyModule_GetState(module);
}

fx_state *fx_state_of(PyObject *self)
{
    return (fx_state *)PyType_GetModuleState(Py_TYPE(self));
}

int fx_optional_attr(PyObject *object, const char *name, PyObject **out)
{
    *out = PyObject_GetAttrString(object, name);
    if (*out != NULL) {
        return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

PyObject *fx_utf8(PyObject *text)
{
    return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

int fx_add_type(PyObject *module, PyType_Spec *spec, PyObject **slot)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) {
        return -1;
    }
    *slot = type;
    const char *dot = strrchr(spec->name, '.');
    return PyModule_AddObjectRef(module, dot + 1, type);
}

PyObject *fx_attribute(PyObject *object, const char *path)
{
    char part[256];
    Py_INCREF(object);
    while (object != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        if (length >= sizeof part) {
            Py_DECREF(object);
            return PyErr_Format(PyExc_AttributeError, "attribute name too long: %s", path);
        }
        memcpy(part, path, length);
        part[length] = '\0';
        PyObject *next = PyObject_GetAttrString(object, part);
        Py_DECREF(object);
        object = next;
        path += length + (path[length] == '.');
    }
    return object;
}

/* module.a.b; imports the module if necessary. */
static PyObject *fetch(const char *module_name, const char *path)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *object = module == NULL ? NULL : fx_attribute(module, path);
    Py_XDECREF(module);
    return object;
}

/*
 * The C function of a method without arguments, or NULL. Calling it directly saves the lookup and the bound method: two
 * thirds of the time to read one bit of a tensor.
 */
static PyCFunction bare_method(PyObject *tensor, const char *name)
{
    PyObject *bound = PyObject_GetAttrString(tensor, name);
    if (bound == NULL) {
        PyErr_Clear();
        return NULL;
    }
    PyCFunction function = NULL;
    if (PyObject_TypeCheck(bound, &PyCFunction_Type) && PyCFunction_GetFlags(bound) == METH_NOARGS) {
        function = PyCFunction_GetFunction(bound);
    }
    Py_DECREF(bound); /* the function is in torch's static method table */
    return function;
}

static int fetch_methods(fx_state *state)
{
    PyObject *tensor = PyObject_CallNoArgs(state->tensor_type);
    if (tensor == NULL) {
        return -1;
    }
    state->is_neg = bare_method(tensor, "is_neg");
    state->is_conj = bare_method(tensor, "is_conj");
    Py_DECREF(tensor);
    return 0;
}

static int fetch_exchange(fx_state *state)
{
    PyObject *capsule;
    int found = fx_optional_attr(state->tensor_type, "__dlpack_c_exchange_api__", &capsule);
    if (found <= 0) {
        return found;
    }
    const fx_dlpack_api *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule);
    while (api != NULL && api->header.version.major > FX_DLPACK_MAJOR) {
        api = (const fx_dlpack_api *)api->header.previous;
    }
    if (api == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (api->header.version.major == FX_DLPACK_MAJOR && api->dltensor_from_py_object_no_sync != NULL) {
        state->exchange = api;
    }
    return 0;
}

int fx_state_torch(fx_state *state)
{
    if (state->has_torch) {
        return 0;
    }
#define X(field, module, path)                                                                                         \
    if (state->field == NULL && (state->field = fetch(module, path)) == NULL) {                                        \
        return -1;                                                                                                     \
    }
    FX_TORCH_OBJECTS(X)
#undef X
    if (fetch_methods(state) < 0 || fetch_exchange(state) < 0) {
        return -1;
    }
    state->has_torch = true;
    return 0;
}

int fx_state_traverse(fx_state *state, visitproc visit, void *arg)
{
    Py_VISIT(state->undefined_memory);
    Py_VISIT(state->undefined_regions);
#define X(field, ...) Py_VISIT(state->field);
    FX_TYPES(X)
    FX_TORCH_OBJECTS(X)
#undef X
    return 0;
}

void fx_state_clear(fx_state *state)
{
    Py_CLEAR(state->undefined_memory);
    Py_CLEAR(state->undefined_regions);
#define X(field, ...) Py_CLEAR(state->field);
    FX_TYPES(X)
    FX_TORCH_OBJECTS(X)
#undef X
    state->has_torch = false;
}

PyObject *fx_object_new(PyObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    return allocate((PyTypeObject *)type, 0);
}

void fx_object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}
