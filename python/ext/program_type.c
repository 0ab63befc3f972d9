/* program_type.c - the type fxtap._core.Program. */
#include "program.h"

#include <stddef.h>
#include <structmember.h> /* for members of a heap type before Python 3.12 */

#include "plan.h"

void fx_program_clear(fx_program *program)
{
    Py_CLEAR(program->module);
    for (size_t i = 0; i < program->n_placeholders; i++) {
        Py_CLEAR(program->placeholders[i].fallback);
    }
    for (size_t i = 0; i < program->n_instructions; i++) {
        fx_instruction *instruction = &program->instructions[i];
        size_t n_kwargs = instruction->kwarg_names == NULL ? 0 : (size_t)PyTuple_Size(instruction->kwarg_names);
        for (size_t k = 0; k < instruction->n_args; k++) {
            fx_template_clear(&instruction->args[k]);
        }
        for (size_t k = 0; instruction->kwargs != NULL && k < n_kwargs; k++) {
            fx_template_clear(&instruction->kwargs[k]);
        }
        for (size_t k = 0; k < instruction->n_mutated; k++) {
            Py_CLEAR(instruction->mutated[k].keyword);
        }
        PyMem_Free(instruction->args);
        PyMem_Free(instruction->kwargs);
        PyMem_Free(instruction->mutated);
        Py_CLEAR(instruction->kwarg_names);
        Py_CLEAR(instruction->argument_names);
        Py_CLEAR(instruction->callable);
        Py_CLEAR(instruction->node);
    }
    program->n_placeholders = program->n_instructions = program->n_required = 0;
    PyMem_Free(program->placeholders);
    PyMem_Free(program->instructions);
    PyMem_Free(program->dead_pool);
    program->placeholders = NULL;
    program->instructions = NULL;
    program->dead_pool = NULL;
}

int fx_program_traverse_parts(fx_program *program, visitproc visit, void *arg)
{
    Py_VISIT(program->module);
    for (size_t i = 0; i < program->n_placeholders; i++) {
        Py_VISIT(program->placeholders[i].fallback);
    }
    for (size_t i = 0; i < program->n_instructions; i++) {
        const fx_instruction *instruction = &program->instructions[i];
        Py_VISIT(instruction->callable);
        Py_VISIT(instruction->node);
        for (size_t k = 0; k < instruction->n_args; k++) {
            int status = fx_template_traverse(&instruction->args[k], visit, arg);
            if (status != 0) {
                return status;
            }
        }
        size_t n_kwargs = instruction->kwarg_names == NULL ? 0 : (size_t)PyTuple_Size(instruction->kwarg_names);
        for (size_t k = 0; instruction->kwargs != NULL && k < n_kwargs; k++) {
            int status = fx_template_traverse(&instruction->kwargs[k], visit, arg);
            if (status != 0) {
                return status;
            }
        }
    }
    return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    fx_program *program = (fx_program *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(program->dict);
    int status = fx_plan_traverse(program->plan, visit, arg);
    return status != 0 ? status : fx_program_traverse_parts(program, visit, arg);
}

static int clear(PyObject *self)
{
    fx_program *program = (fx_program *)self;
    Py_CLEAR(program->dict);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    fx_program *program = (fx_program *)self;
    if (program->weak_references != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    clear(self);
    fx_plan_free(program->plan);
    fx_program_clear(program);
    fx_object_free(self);
}

static int set_boxed(fx_program *program)
{
    program->dict = PyDict_New();
    return program->dict == NULL ? -1 : PyDict_SetItemString(program->dict, "_boxed_call", Py_True);
}

static PyObject *new_program(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"gm", "record", "dump", "graph_id", "skip", "on_error", "log", "verifier", NULL};
    PyObject *module;
    fx_plan_options options = {
        .record = Py_None, .dump = Py_None, .skip = Py_None, .log = Py_None, .verifier = Py_None, .on_error = "raise"};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOIO$sOO:Program", names, &module, &options.record, &options.dump,
                                     &options.graph_id, &options.skip, &options.on_error, &options.log,
                                     &options.verifier)) {
        return NULL;
    }
    PyObject *self = fx_object_new((PyObject *)type);
    if (self == NULL) {
        return NULL;
    }
    fx_program *program = (fx_program *)self;
    program->state = fx_state_of(self);
    if (fx_state_torch(program->state) < 0 || set_boxed(program) < 0 || fx_program_compile(program, module) < 0 ||
        fx_plan_create(program, &options) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_Size(args) != 1 || (kwargs != NULL && PyDict_Size(kwargs) > 0) ||
        !PyList_Check(PyTuple_GetItem(args, 0))) {
        PyErr_Format(PyExc_TypeError,
                     "expected the arguments in one list (boxed calling convention), got %zd positional "
                     "and %zd keyword arguments",
                     PyTuple_Size(args), kwargs == NULL ? 0 : PyDict_Size(kwargs));
        return NULL;
    }
    return fx_program_run((fx_program *)self, PyTuple_GetItem(args, 0));
}

static PyObject *get_dumping(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(fx_plan_is_on(((fx_program *)self)->plan));
}

static PyObject *get_node_count(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(((fx_program *)self)->n_slots);
}

static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"dumping", get_dumping, NULL, PyDoc_STR("Whether the next call dumps any tensor."), NULL},
    {"node_count", get_node_count, NULL, PyDoc_STR("Number of nodes of the graph."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(fx_program, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(fx_program, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, PyDoc_STR("A torch.fx graph compiled for the run loop in C.")},
    {Py_tp_new, new_program},
    {Py_tp_call, call},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec fx_program_spec = {
    .name = "fxtap._core.Program",
    .basicsize = sizeof(fx_program),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
