#include "verifier.h"

#include "errors.h"

typedef struct fx_capture capture;

/*
 * Calls a method of the verifier; `guarded`: with torch's modes and autograd disabled. Takes over `arguments`, which
 * may be NULL.
 */
static PyObject *ask(capture *c, const char *method, bool guarded, PyObject *arguments)
{
    fx_guard guard = {{NULL, NULL, NULL}};
    PyObject *answer = NULL;
    if (arguments != NULL && (!guarded || fx_guard_enter(c->state, &guard) == 0)) {
        PyObject *function = PyObject_GetAttrString(c->plan->verifier, method);
        answer = function == NULL ? NULL : PyObject_CallObject(function, arguments);
        Py_XDECREF(function);
        fx_guard_leave(&guard);
    }
    Py_XDECREF(arguments);
    return answer;
}

int fx_verifier_before(capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                       PyObject **held_out)
{
    *held_out = NULL;
    if (c->node->is_async) {
        return 0;
    }
    bool is_changed = instruction->effect != FX_PURE || instruction->argument_names != NULL;
    bool is_copied = is_changed && !c->node->is_wait;
    PyObject *held =
        ask(c, "before", is_copied,
            Py_BuildValue("kKOOO", (unsigned long)instruction->slot, (unsigned long long)fxtap_call_step(c->call), args,
                          kwargs == NULL ? Py_None : kwargs, is_copied ? Py_True : Py_False));
    if (held == NULL) {
        return -1;
    }
    if (held == Py_None) {
        Py_CLEAR(held);
    }
    *held_out = held;
    return 0;
}

int fx_verifier_after(capture *c, const fx_instruction *instruction, PyObject *held, PyObject *args, PyObject *kwargs,
                      PyObject *result)
{
    PyObject *answer =
        ask(c, "after", true,
            Py_BuildValue("kKKOOOO", (unsigned long)instruction->slot, (unsigned long long)fxtap_call_step(c->call),
                          (unsigned long long)fxtap_call_number(c->call), held, args, kwargs == NULL ? Py_None : kwargs,
                          result));
    int is_wrong = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return is_wrong;
}
