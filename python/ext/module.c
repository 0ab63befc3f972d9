/* module.c - the module fxtap._core. */
#include "fxtap/status.h"
#include "program.h"
#include "state.h"

static int exec_module(PyObject *module)
{
    fx_state *state = fx_state_of_module(module);
    if (fx_add_type(module, &fx_program_spec, &state->program_type) < 0) {
        return -1;
    }
    return PyModule_AddStringConstant(module, "version", fxtap_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    return fx_state_traverse(fx_state_of_module(module), visit, arg);
}

static int clear(PyObject *module)
{
    fx_state_clear(fx_state_of_module(module));
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

static PyMethodDef methods[] = {
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fxtap._core",
    .m_doc = PyDoc_STR("The C side of fxtap."),
    .m_size = sizeof(fx_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
