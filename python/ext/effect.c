#include "effect.h"

#include <string.h>

/* Functions of the module `operator` that change their first argument. */
static const char *const in_place_names[] = {
    "iadd", "iand",    "iconcat", "ifloordiv", "ilshift", "imatmul", "imod",    "imul",        "ior",
    "ipow", "irshift", "isub",    "itruediv",  "ixor",    "setitem", "delitem", "__setitem__", "__delitem__",
};

/* operator.add, math.floor and similar functions do not change their arguments. */
static int is_pure_function(PyObject *target, bool *out)
{
    PyObject *module;
    PyObject *name;
    *out = false;
    int has_module = fx_optional_attr(target, "__module__", &module);
    if (has_module <= 0) {
        return has_module;
    }
    bool is_operator = PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "_operator") == 0;
    bool is_math = PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "math") == 0;
    Py_DECREF(module);
    if (!is_operator && !is_math) {
        return 0;
    }
    int has_name = fx_optional_attr(target, "__name__", &name);
    if (has_name <= 0) {
        return has_name;
    }
    *out = true;
    for (size_t i = 0; is_operator && i < sizeof in_place_names / sizeof *in_place_names; i++) {
        if (PyUnicode_CompareWithASCIIString(name, in_place_names[i]) == 0) {
            *out = false;
        }
    }
    Py_DECREF(name);
    return 0;
}

bool fx_is_hidden_mutation(const char *target, const char *argument)
{
    static const char *const exceptions[] = {"backward", "functional", "no_training", "elemt", "no_stats"};
    bool is_statistic = strcmp(argument, "running_mean") == 0 || strcmp(argument, "running_var") == 0;
    bool is_normalisation = strstr(target, "batch_norm") != NULL || strstr(target, "instance_norm") != NULL;
    if (!is_statistic || !is_normalisation) {
        return false;
    }
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        if (strstr(target, exceptions[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* Operators whose result, or part of it, is uninitialised memory. */
static const char *const undefined_names[] = {
    "aten.empty.",
    "aten.new_empty.",
    "aten.empty_like.",
    "aten.empty_strided.",
    "aten.empty_permuted.",
    "aten.new_empty_strided.",
    "aten.resize.",
    "aten.resize_.",
    "aten.resize_as.",
    "aten.resize_as_.",
    "aten.empty_quantized.",
    "aten._empty_affine_quantized.",
    "aten._empty_per_channel_affine_quantized.",
    "aten._resize_output.",
    "aten._resize_output_.",
    "prims.empty_strided.",
    "prims.empty_permuted.",
    "inductor_prims.empty.",
};

bool fx_is_undefined(const char *target)
{
    for (size_t i = 0; i < sizeof undefined_names / sizeof *undefined_names; i++) {
        if (strncmp(target, undefined_names[i], strlen(undefined_names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int is_hidden(PyObject *target, PyObject *argument)
{
    PyObject *name = PyObject_GetAttrString(argument, "name");
    PyObject *name_text = name == NULL ? NULL : fx_utf8(name);
    PyObject *text = name_text == NULL ? NULL : PyObject_Str(target);
    PyObject *target_text = text == NULL ? NULL : fx_utf8(text);
    int result = -1;
    if (target_text != NULL) {
        result = fx_is_hidden_mutation(PyBytes_AsString(target_text), PyBytes_AsString(name_text));
    }
    Py_XDECREF(name);
    Py_XDECREF(name_text);
    Py_XDECREF(text);
    Py_XDECREF(target_text);
    return result;
}

/* 1 if the call writes to the argument, by its schema or as a hidden mutation. */
static int is_written(PyObject *target, PyObject *argument)
{
    PyObject *alias = PyObject_GetAttrString(argument, "alias_info");
    if (alias == NULL || alias == Py_None) {
        int status = alias == NULL ? -1 : is_hidden(target, argument);
        Py_XDECREF(alias);
        return status;
    }
    PyObject *is_write = PyObject_GetAttrString(alias, "is_write");
    Py_DECREF(alias);
    int result = is_write == NULL ? -1 : PyObject_IsTrue(is_write);
    Py_XDECREF(is_write);
    return result;
}

static int add_mutated(fx_instruction *out, PyObject *argument, Py_ssize_t position)
{
    fx_mutated *grown = PyMem_Realloc(out->mutated, (out->n_mutated + 1) * sizeof *grown);
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    out->mutated = grown;
    PyObject *keyword = PyObject_GetAttrString(argument, "name");
    if (keyword == NULL) {
        return -1;
    }
    grown[out->n_mutated++] = (fx_mutated){position, keyword};
    out->effect = FX_MUTATES;
    return 0;
}

/*
 * 1 if the call may free the memory of a whole storage, of which the argument may be only a part: other views of it
 * then refer to freed memory. This applies to resize_ and set_ of any library (inductor's schema does not declare the
 * write), and to an `out` argument of the wrong shape.
 */
static int moves_storage(PyObject *schema)
{
    PyObject *name = PyObject_GetAttrString(schema, "name");
    PyObject *bytes = name == NULL ? NULL : fx_utf8(name);
    const char *text = bytes == NULL ? NULL : PyBytes_AsString(bytes);
    int result = text == NULL ? -1 : strstr(text, "resize") != NULL || strstr(text, "::set_") != NULL;
    Py_XDECREF(name);
    Py_XDECREF(bytes);
    return result;
}

/* Torch's own operators behave as their schemas declare; other operators are checked. */
static bool is_own_namespace(const char *schema_name)
{
    static const char *const namespaces[] = {"aten::",
                                             "prims::",
                                             "prim::",
                                             "inductor::",
                                             "inductor_prims::",
                                             "_c10d_functional::",
                                             "_c10d_functional_autograd::",
                                             "c10d_functional::",
                                             "c10d::",
                                             "fsdp::",
                                             "symm_mem::",
                                             "rngprims::",
                                             "profiler::",
                                             "debugprims::"};
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
        if (strncmp(schema_name, namespaces[i], strlen(namespaces[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Sets argument_names of an operator whose schema is not trusted. */
static int note_names(PyObject *schema, PyObject *arguments, Py_ssize_t n, fx_instruction *out)
{
    PyObject *name = PyObject_GetAttrString(schema, "name");
    PyObject *bytes = name == NULL ? NULL : fx_utf8(name);
    int status = bytes == NULL ? -1 : 0;
    if (status == 0 && !is_own_namespace(PyBytes_AsString(bytes))) {
        out->argument_names = PyTuple_New(n);
        status = out->argument_names == NULL ? -1 : 0;
        for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
            PyObject *argument = PySequence_GetItem(arguments, i);
            PyObject *text = argument == NULL ? NULL : PyObject_GetAttrString(argument, "name");
            Py_XDECREF(argument);
            status = text == NULL ? -1 : PyTuple_SetItem(out->argument_names, i, text);
        }
    }
    Py_XDECREF(name);
    Py_XDECREF(bytes);
    return status;
}

static int note_undefined(PyObject *target, fx_instruction *out)
{
    PyObject *text = PyObject_Str(target);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    out->is_undefined = bytes != NULL && fx_is_undefined(PyBytes_AsString(bytes));
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return bytes == NULL ? -1 : 0;
}

/* Notes what matters on devices: whether the operator may return before a copy is done, and whether it is one. */
static int note_copy(PyObject *schema, PyObject *argument, Py_ssize_t position, fx_instruction *out)
{
    PyObject *name = PyObject_GetAttrString(argument, "name");
    PyObject *schema_name = name == NULL ? NULL : PyObject_GetAttrString(schema, "name");
    int status = schema_name == NULL ? -1 : 0;
    if (status == 0 && PyUnicode_CompareWithASCIIString(name, "non_blocking") == 0) {
        out->non_blocking = position + 1;
        out->is_copy = PyUnicode_CompareWithASCIIString(schema_name, "aten::copy_") == 0;
    }
    Py_XDECREF(name);
    Py_XDECREF(schema_name);
    return status;
}

static int note_out(PyObject *argument, bool *out)
{
    PyObject *is_out = PyObject_GetAttrString(argument, "is_out");
    int result = is_out == NULL ? -1 : PyObject_IsTrue(is_out);
    Py_XDECREF(is_out);
    *out = *out || result > 0;
    return result < 0 ? -1 : 0;
}

static int schema_effect(PyObject *target, fx_instruction *out)
{
    bool has_out = false;
    PyObject *schema = PyObject_GetAttrString(target, "_schema");
    PyObject *arguments = schema == NULL ? NULL : PyObject_GetAttrString(schema, "arguments");
    Py_ssize_t n = arguments == NULL ? -1 : PySequence_Size(arguments);
    int status = n < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *argument = PySequence_GetItem(arguments, i);
        int written = argument == NULL ? -1 : is_written(target, argument);
        status = written < 0 ? -1 : note_copy(schema, argument, i, out);
        if (status == 0 && written > 0) {
            status = add_mutated(out, argument, i) < 0 ? -1 : note_out(argument, &has_out);
        }
        Py_XDECREF(argument);
    }
    if (status == 0) {
        status = note_names(schema, arguments, n, out) < 0 ? -1 : note_undefined(target, out);
    }
    int moves = status < 0 ? -1 : has_out ? 1 : moves_storage(schema);
    if (moves > 0) {
        out->effect = FX_UNKNOWN;
    }
    status = moves < 0 ? -1 : 0;
    Py_XDECREF(schema);
    Py_XDECREF(arguments);
    return status;
}

int fx_effect_copy(const fx_instruction *from, fx_instruction *out)
{
    out->effect = from->effect;
    out->is_undefined = from->is_undefined;
    out->is_copy = from->is_copy;
    out->non_blocking = from->non_blocking;
    out->argument_names = Py_XNewRef(from->argument_names);
    if (from->n_mutated == 0) {
        return 0;
    }
    out->mutated = PyMem_Malloc(from->n_mutated * sizeof *out->mutated);
    if (out->mutated == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < from->n_mutated; i++) {
        out->mutated[i] = (fx_mutated){from->mutated[i].position, Py_NewRef(from->mutated[i].keyword)};
    }
    out->n_mutated = from->n_mutated;
    return 0;
}

int fx_effect_of(fx_state *state, PyObject *target, fx_instruction *out)
{
    if (PyObject_TypeCheck(target, (PyTypeObject *)state->op_overload_type)) {
        return schema_effect(target, out);
    }
    bool is_pure;
    if (is_pure_function(target, &is_pure) < 0) {
        return -1;
    }
    out->effect = is_pure ? FX_PURE : FX_UNKNOWN;
    return 0;
}
