/* plan.c - nothing is dumped yet: every program runs plain. */
#include "plan.h"

#include "capture.h"

int fx_plan_create(fx_program *program, const fx_plan_options *options)
{
    program->plan = NULL;
    if (options->dump != Py_None) {
        PyErr_SetString(PyExc_NotImplementedError, "dumping is not there yet");
        return -1;
    }
    return 0;
}

void fx_plan_free(fx_plan *plan)
{
    (void)plan;
}

int fx_plan_traverse(fx_plan *plan, visitproc visit, void *arg)
{
    (void)plan;
    (void)visit;
    (void)arg;
    return 0;
}

bool fx_plan_is_on(const fx_plan *plan)
{
    return plan != NULL;
}

int fx_capture_begin(fx_program *program, fx_capture **out)
{
    (void)program;
    *out = NULL;
    return 0;
}

PyObject *fx_capture_step(fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs)
{
    (void)capture;
    (void)instruction;
    (void)args;
    (void)kwargs;
    return NULL;
}

PyObject *fx_capture_end(fx_capture *capture, PyObject *result)
{
    (void)capture;
    return result;
}
