#include "capture.h"

#include <string.h>

#include "dump_type.h"
#include "errors.h"
#include "submit.h"
#include "undefined.h"
#include "verifier.h"
#include "watch.h"

/* ---- failures of the dump: stored until the end of the call; the model runs on ---- */

/*
 * Takes the current exception and stores the first one. Returns -1 and leaves it if it is not an Exception (Ctrl-C), or
 * the device's: an operator that ran earlier has failed, and the model would hear of it at its own next copy.
 */
static int keep_error(fx_capture *c)
{
    if (c->has_device_failed || !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (c->error == NULL) {
        c->error = value;
    } else {
        Py_XDECREF(value);
    }
    c->is_broken = true;
    return 0;
}

/* ---- a call begins ---- */

static bool is_function_mode_on(fx_state *state)
{
    PyObject *answer = PyObject_CallNoArgs(state->is_function_mode_on);
    bool is_on = answer == Py_True;
    if (answer == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(answer);
    return is_on;
}

int fx_capture_begin(fx_program *program, fx_capture **out)
{
    fx_plan *plan = program->plan;
    unsigned int generation;
    *out = NULL;
    if (!fx_plan_is_on(plan) || !fx_dump_enter(plan->dump, &generation)) {
        return 0;
    }
    fx_capture *c = PyMem_Calloc(1, sizeof *c);
    if (c == NULL) {
        fx_dump_leave(plan->dump, generation);
        PyErr_NoMemory();
        return -1;
    }
    *c = (fx_capture){.state = program->state, .program = program, .plan = plan, .generation = generation};
    fxtap_status status = fxtap_call_begin(plan->capture, &c->call);
    if (status != FXTAP_OK) {
        fx_raise(status);
        if (keep_error(c) < 0) {
            PyMem_Free(c);
            fx_dump_leave(plan->dump, generation);
            return -1;
        }
    }
    c->is_guarded = is_function_mode_on(program->state);
    fx_undefined_begin_call(c);
    *out = c;
    return 0;
}

/* ---- nodes that change memory ---- */

static PyObject *mutated_value(const fx_mutated *mutated, PyObject *args, PyObject *kwargs)
{
    if (mutated->position < PyTuple_Size(args)) {
        return PyTuple_GetItem(args, mutated->position); /* borrowed */
    }
    return kwargs == NULL ? NULL : PyDict_GetItemWithError(kwargs, mutated->keyword);
}

/* Before a tensor changes: waits for pending jobs on it, and forgets the known values in its memory. */
static int release_memory(fx_capture *c, PyObject *value)
{
    if (PyObject_TypeCheck(value, (PyTypeObject *)c->state->tensor_type)) {
        const void *first;
        const void *end;
        if (fx_bridge_extent(c->state, value, c->is_guarded, &first, &end) < 0) {
            return -1;
        }
        fx_watch_settle(c, first, end);
        fx_known_forget(&c->known, value, first, end);
        return 0;
    }
    bool is_list = PyList_Check(value);
    Py_ssize_t n = is_list ? PyList_Size(value) : PyTuple_Check(value) ? PyTuple_Size(value) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i);
        if (item == NULL || release_memory(c, item) < 0) {
            return -1;
        }
    }
    return 0;
}

static int before_effect(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    if (instruction->effect == FX_UNKNOWN) {
        fx_watch_settle(c, NULL, (const void *)UINTPTR_MAX);
        fx_known_clear(&c->known);
        return 0;
    }
    for (size_t i = 0; i < instruction->n_mutated; i++) {
        PyObject *value = mutated_value(&instruction->mutated[i], args, kwargs);
        if (value != NULL && release_memory(c, value) < 0) {
            return -1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- a node ---- */

static int submit_inputs(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    fx_node_plan *node = c->node;
    for (size_t i = 0; i < node->n_inputs; i++) {
        PyObject *value;
        if (i < instruction->n_args) {
            value = PyTuple_GetItem(args, (Py_ssize_t)i);
        } else {
            Py_ssize_t k = (Py_ssize_t)(i - instruction->n_args);
            value = PyDict_GetItemWithError(kwargs, PyTuple_GetItem(instruction->kwarg_names, k));
        }
        if (value == NULL) {
            return -1;
        }
        int status = node->is_wait ? fx_submit_skip(c, &node->inputs[i], FXTAP_INPUT, "asynchronous: not ready yet")
                                   : fx_submit(c, &node->inputs[i], FXTAP_INPUT, value);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

/* Whether the value is the result or one of its elements. */
static bool is_returned(PyObject *value, PyObject *result)
{
    if (value == result) {
        return true;
    }
    bool is_list = PyList_Check(result);
    Py_ssize_t n = is_list ? PyList_Size(result) : PyTuple_Check(result) ? PyTuple_Size(result) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        if ((is_list ? PyList_GetItem(result, i) : PyTuple_GetItem(result, i)) == value) {
            return true;
        }
    }
    return false;
}

static int submit_inouts(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                         PyObject *result)
{
    for (size_t i = 0; i < instruction->n_mutated; i++) {
        PyObject *value = mutated_value(&instruction->mutated[i], args, kwargs);
        if (value == NULL && PyErr_Occurred()) {
            return -1;
        }
        if (value != NULL && value != Py_None && !is_returned(value, result) &&
            fx_submit(c, &c->node->inouts[i], FXTAP_INOUT, value) < 0) {
            return -1;
        }
    }
    return 0;
}

/* An argument of a call by its position in the schema, or by keyword; borrowed, NULL if it is not passed. */
static PyObject *argument_at(Py_ssize_t position, const char *keyword, PyObject *args, PyObject *kwargs)
{
    if (position < PyTuple_Size(args)) {
        return PyTuple_GetItem(args, position);
    }
    return kwargs == NULL ? NULL : PyDict_GetItemString(kwargs, keyword);
}

/* After a copy from a device that did not wait: waits for it, before the result is read. */
static int wait_for_copy(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    fx_guard guard;
    PyObject *choice = argument_at(instruction->non_blocking - 1, "non_blocking", args, kwargs);
    if (choice == NULL || choice == Py_False || fx_guard_enter(c->state, &guard) < 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *done = PyObject_Call(c->state->synchronise, args, NULL);
    fx_guard_leave(&guard);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int submit_async(fx_capture *c)
{
    fx_place *place = fx_place_child(&c->node->outputs, 0);
    return place == NULL ? -1 : fx_submit_skip(c, place, FXTAP_OUTPUT, "asynchronous: saved at its wait_tensor");
}

static int submit_results(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                          PyObject *result)
{
    if (c->node->is_async) {
        return submit_async(c);
    }
    c->copied = instruction->is_copy ? argument_at(1, "src", args, kwargs) : NULL;
    int status = fx_submit_outputs(c, result);
    c->copied = NULL;
    if (status < 0) {
        return -1;
    }
    return instruction->n_mutated == 0 ? 0 : submit_inouts(c, instruction, args, kwargs, result);
}

/* Before a dumped node runs. *held_out: what the verifier holds of its arguments, or NULL. */
static int begin_node(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                      PyObject **held_out)
{
    c->stamp_us = fxtap_call_stamp(c->call);
    return c->plan->verifier == Py_None ? submit_inputs(c, instruction, args, kwargs)
                                        : fx_verifier_before(c, instruction, args, kwargs, held_out);
}

/* When it has returned. */
static int end_node(fx_capture *c, const fx_instruction *instruction, PyObject *held, PyObject *args, PyObject *kwargs,
                    PyObject *result)
{
    if (c->plan->verifier != Py_None) {
        int is_wrong = held == NULL ? 0 : fx_verifier_after(c, instruction, held, args, kwargs, result);
        if (is_wrong <= 0) {
            return is_wrong;
        }
        if (submit_inputs(c, instruction, PyTuple_GetItem(held, 0), PyTuple_GetItem(held, 1)) < 0) {
            return -1;
        }
    }
    return submit_results(c, instruction, args, kwargs, result);
}

/* Runs an operator that is not torch's own, and checks for undeclared writes to its arguments. */
static PyObject *invoke_watched(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    fx_watch watch = {0};
    PyObject *result = NULL;
    if (fx_watch_begin(c, instruction, args, kwargs, &watch) == 0 || keep_error(c) == 0) {
        result = fx_program_invoke(c->program, instruction, args, kwargs);
    }
    if (result != NULL && !c->is_broken && fx_watch_end(c, instruction, &watch) < 0 && keep_error(c) < 0) {
        Py_CLEAR(result);
    }
    fx_watch_clear(&watch);
    return result;
}

static PyObject *run_node(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                          PyObject **held)
{
    if (c->node != NULL && !c->is_broken && begin_node(c, instruction, args, kwargs, held) < 0 && keep_error(c) < 0) {
        return NULL;
    }
    if (instruction->effect != FX_PURE && c->call != NULL && before_effect(c, instruction, args, kwargs) < 0 &&
        keep_error(c) < 0) {
        return NULL;
    }
    if (c->call != NULL) {
        fxtap_call_release_done(c->call);
    }
    fx_submit_release(c);
    PyObject *pending = NULL;
    if (c->call != NULL && !c->is_broken && fx_undefined_before(c, instruction, args, kwargs, &pending) < 0 &&
        keep_error(c) < 0) {
        return NULL;
    }
    bool is_watched = instruction->argument_names != NULL && c->call != NULL && !c->is_broken;
    PyObject *result = is_watched ? invoke_watched(c, instruction, args, kwargs)
                                  : fx_program_invoke(c->program, instruction, args, kwargs);
    if (result != NULL && instruction->non_blocking != 0 && wait_for_copy(c, instruction, args, kwargs) < 0) {
        Py_CLEAR(result);
    }
    if (pending != NULL && result == NULL) {
        Py_DECREF(pending);
    } else if (pending != NULL && fx_undefined_after(c, instruction, pending, result) < 0 && keep_error(c) < 0) {
        Py_CLEAR(result);
    }
    if (result != NULL && c->node != NULL && !c->is_broken &&
        end_node(c, instruction, *held, args, kwargs, result) < 0 && keep_error(c) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

PyObject *fx_capture_step(fx_capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    c->node = instruction->plan;
    PyObject *held = NULL;
    PyObject *result = run_node(c, instruction, args, kwargs, &held);
    Py_XDECREF(held); /* an exception, if there is one, stays: what is freed are tuples and tensors */
    return result;
}

void fx_capture_drop(fx_capture *c, PyObject *value)
{
    fx_known_drop(&c->known, value);
}

/* ---- a call ends ---- */

/* repr() of an exception, with the first line of its text: torch's go on with a C++ stack. */
static PyObject *reason_of(PyObject *error)
{
    PyObject *text = PyObject_Str(error);
    PyObject *lines = text == NULL ? NULL : PyObject_CallMethod(text, "splitlines", NULL);
    PyObject *name = lines == NULL ? NULL : PyObject_GetAttrString((PyObject *)Py_TYPE(error), "__name__");
    bool is_long = name != NULL && PyList_Size(lines) > 1;
    PyErr_Clear();
    PyObject *reason = is_long ? PyUnicode_FromFormat("%U(%R)", name, PyList_GetItem(lines, 0)) : PyObject_Repr(error);
    Py_XDECREF(text);
    Py_XDECREF(lines);
    Py_XDECREF(name);
    return reason;
}

/* Ends the call as failed, with the exception as the reason. */
static void fail_call(fx_capture *c, PyObject *error)
{
    if (c->call == NULL) {
        return;
    }
    PyObject *text = error == NULL ? NULL : reason_of(error);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    const char *reason = bytes == NULL ? "exception" : PyBytes_AsString(bytes);
    fxtap_call *call = c->call;
    c->call = NULL;
    Py_BEGIN_ALLOW_THREADS fxtap_call_fail(call, reason);
    Py_END_ALLOW_THREADS Py_XDECREF(text);
    Py_XDECREF(bytes);
    PyErr_Clear();
}

static int end_call(fx_capture *c)
{
    fxtap_status status;
    uint64_t step;
    fxtap_call *call = c->call;
    c->call = NULL;
    Py_BEGIN_ALLOW_THREADS status = fxtap_call_end(call, &step);
    Py_END_ALLOW_THREADS if (status != FXTAP_OK)
    {
        fx_raise(status);
        return keep_error(c);
    }
    return 0;
}

/* Logs one line. Takes over `line`, which may be NULL with an exception. Returns 0, or -1 with an exception. */
static int log_line(const fx_capture *c, PyObject *line)
{
    PyObject *log = c->plan->log;
    PyObject *done = line == NULL || log == Py_None ? Py_XNewRef(line) : PyObject_CallFunctionObjArgs(log, line, NULL);
    Py_XDECREF(line);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Logs the error once and stops dumping in this program. */
static int warn(fx_capture *c)
{
    if (c->plan->is_stopped) {
        return 0;
    }
    c->plan->is_stopped = true;
    return log_line(c, PyUnicode_FromFormat("dumping stops: %S", c->error));
}

/* Logs a warning of the dump, if there is one. */
static int log_dump_warning(const fx_capture *c)
{
    const char *warning = fx_dump_take_warning(c->plan->dump);
    return warning == NULL ? 0 : log_line(c, PyUnicode_DecodeFSDefault(warning));
}

/* The model failed; its exception is kept. */
static void end_failed(fx_capture *c)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    fail_call(c, value);
    PyErr_Restore(type, value, traceback);
}

/* The model succeeded. Returns 0, or -1 with the dump's exception. */
static int end_succeeded(fx_capture *c)
{
    if (c->error != NULL) {
        fail_call(c, c->error);
    } else if (end_call(c) < 0) {
        return -1;
    }
    if (c->error == NULL) {
        return log_dump_warning(c);
    }
    if (c->plan->warns) {
        return warn(c);
    }
    PyErr_SetObject((PyObject *)Py_TYPE(c->error), c->error);
    return -1;
}

PyObject *fx_capture_end(fx_capture *c, PyObject *result)
{
    if (c == NULL) {
        return result;
    }
    if (result == NULL) {
        end_failed(c);
    } else if (end_succeeded(c) < 0) {
        Py_CLEAR(result);
    }
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* dropping references may run any code */
    fx_submit_release(c);
    fx_known_clear(&c->known);
    Py_XDECREF(c->error);
    fx_dump_leave(c->plan->dump, c->generation);
    PyMem_Free(c);
    PyErr_Restore(type, value, traceback);
    return result;
}
