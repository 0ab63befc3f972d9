/* run.c - the run loop. */
#include "capture.h"
#include "errors.h"
#include "program.h"

/* One call; not shared between threads. */
typedef struct run {
    fx_program *program;
    PyObject **values; /* by slot; NULL before a value is computed and after it is dropped */
    fx_capture *capture;
} run;

static PyObject *wrong_count(const fx_program *program, Py_ssize_t given)
{
    const char *plural = program->n_placeholders == 1 ? "" : "s";
    if (program->n_required == program->n_placeholders) {
        return PyErr_Format(PyExc_TypeError, "the graph takes %zd argument%s, but %zd %s given",
                            (Py_ssize_t)program->n_placeholders, plural, given, given == 1 ? "was" : "were");
    }
    return PyErr_Format(PyExc_TypeError, "the graph takes from %zd to %zd arguments, but %zd %s given",
                        (Py_ssize_t)program->n_required, (Py_ssize_t)program->n_placeholders, given,
                        given == 1 ? "was" : "were");
}

/* Moves the arguments into their slots and empties the list, so that the caller's tensors can be freed. */
static int take_arguments(run *r, PyObject *arguments)
{
    const fx_program *program = r->program;
    Py_ssize_t given = PyList_Size(arguments);
    if ((size_t)given > program->n_placeholders || (size_t)given < program->n_required) {
        wrong_count(program, given);
        return -1;
    }
    for (size_t i = 0; i < program->n_placeholders; i++) {
        const fx_placeholder *placeholder = &program->placeholders[i];
        if (placeholder->is_used) {
            PyObject *value = i < (size_t)given ? PyList_GetItem(arguments, (Py_ssize_t)i) : placeholder->fallback;
            r->values[placeholder->slot] = Py_NewRef(value);
        }
    }
    return PyList_SetSlice(arguments, 0, given, NULL);
}

static inline PyObject *resolve(const fx_template *item, PyObject *const *values)
{
    if (item->kind == FX_T_REF) {
        return Py_NewRef(values[item->slot]);
    }
    return item->kind == FX_T_CONSTANT ? Py_NewRef(item->object) : fx_template_build(item, values);
}

static PyObject *build_args(const fx_instruction *instruction, PyObject *const *values)
{
    PyObject *args = PyTuple_New((Py_ssize_t)instruction->n_args);
    for (size_t i = 0; args != NULL && i < instruction->n_args; i++) {
        PyObject *value = resolve(&instruction->args[i], values);
        if (value == NULL) {
            Py_CLEAR(args);
            break;
        }
        PyTuple_SetItem(args, (Py_ssize_t)i, value);
    }
    return args;
}

static PyObject *build_kwargs(const fx_instruction *instruction, PyObject *const *values)
{
    PyObject *kwargs = PyDict_New();
    Py_ssize_t n = PyTuple_Size(instruction->kwarg_names);
    for (Py_ssize_t i = 0; kwargs != NULL && i < n; i++) {
        PyObject *value = resolve(&instruction->kwargs[i], values);
        if (value == NULL || PyDict_SetItem(kwargs, PyTuple_GetItem(instruction->kwarg_names, i), value) < 0) {
            Py_CLEAR(kwargs);
        }
        Py_XDECREF(value);
    }
    return kwargs;
}

/* module.a.b */
static PyObject *follow(PyObject *module, PyObject *path)
{
    PyObject *object = Py_NewRef(module);
    Py_ssize_t n = PyTuple_Size(path);
    for (Py_ssize_t i = 0; object != NULL && i < n; i++) {
        PyObject *next = PyObject_GetAttr(object, PyTuple_GetItem(path, i));
        Py_DECREF(object);
        object = next;
    }
    return object;
}

static PyObject *call_method(const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_Size(args);
    if (n == 0) {
        return PyErr_Format(PyExc_TypeError, "method %S has no argument to be called on", instruction->callable);
    }
    PyObject *method = PyObject_GetAttr(PyTuple_GetItem(args, 0), instruction->callable);
    PyObject *rest = method == NULL ? NULL : PyTuple_GetSlice(args, 1, n);
    PyObject *result = rest == NULL ? NULL : PyObject_Call(method, rest, kwargs);
    Py_XDECREF(method);
    Py_XDECREF(rest);
    return result;
}

PyObject *fx_program_invoke(fx_program *program, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    PyObject *object;
    PyObject *result;
    switch (instruction->action) {
    case FX_CALL:
        return PyObject_Call(instruction->callable, args, kwargs);
    case FX_GETITEM:
        return PyObject_GetItem(PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 1));
    case FX_METHOD:
        return call_method(instruction, args, kwargs);
    case FX_MODULE:
        object = follow(program->module, instruction->callable);
        result = object == NULL ? NULL : PyObject_Call(object, args, kwargs);
        Py_XDECREF(object);
        return result;
    case FX_ATTRIBUTE:
        return follow(program->module, instruction->callable);
    case FX_RETURN:
        return Py_NewRef(PyTuple_GetItem(args, 0));
    }
    PyErr_SetString(PyExc_SystemError, "unknown action");
    return NULL;
}

/* Runs a getitem node that is not dumped: the most frequent node that is not an operator; needs no argument tuple. */
static PyObject *get_item(const fx_instruction *instruction, PyObject *const *values)
{
    PyObject *index = resolve(&instruction->args[1], values);
    PyObject *object = index == NULL ? NULL : resolve(&instruction->args[0], values);
    PyObject *result = object == NULL ? NULL : PyObject_GetItem(object, index);
    Py_XDECREF(object);
    Py_XDECREF(index);
    return result;
}

static PyObject *step(run *r, const fx_instruction *instruction)
{
    if (instruction->action == FX_GETITEM && instruction->plan == NULL) {
        return get_item(instruction, r->values);
    }
    PyObject *args = build_args(instruction, r->values);
    PyObject *kwargs = NULL;
    PyObject *result = NULL;
    if (args != NULL && instruction->kwarg_names != NULL) {
        kwargs = build_kwargs(instruction, r->values);
    }
    if (args != NULL && (instruction->kwarg_names == NULL || kwargs != NULL)) {
        if (r->capture == NULL) {
            result = fx_program_invoke(r->program, instruction, args, kwargs);
        } else {
            result = fx_capture_step(r->capture, instruction, args, kwargs);
        }
    }
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *loop(run *r)
{
    const fx_program *program = r->program;
    for (size_t i = 0; i < program->n_instructions; i++) {
        const fx_instruction *instruction = &program->instructions[i];
        PyObject *result = PyErr_CheckSignals() < 0 ? NULL : step(r, instruction);
        if (result == NULL) {
            fx_error_note_node(instruction->node);
            return NULL;
        }
        if (instruction->action == FX_RETURN) {
            return result;
        }
        r->values[instruction->slot] = result;
        for (size_t d = 0; d < instruction->n_dead; d++) {
            PyObject **dead = &r->values[instruction->dead[d]];
            if (r->capture != NULL) {
                fx_capture_drop(r->capture, *dead);
            }
            Py_CLEAR(*dead);
        }
    }
    PyErr_SetString(PyExc_SystemError, "the program has no return");
    return NULL;
}

PyObject *fx_program_run(fx_program *program, PyObject *arguments)
{
    run r = {.program = program};
    r.values = PyMem_Calloc((size_t)program->n_slots + 1, sizeof(PyObject *));
    if (r.values == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = NULL;
    if (take_arguments(&r, arguments) == 0 && fx_capture_begin(program, &r.capture) == 0) {
        result = loop(&r);
        result = fx_capture_end(r.capture, result);
    }
    for (uint32_t slot = 0; slot < program->n_slots; slot++) {
        Py_XDECREF(r.values[slot]);
    }
    PyMem_Free(r.values);
    return result;
}
