/* module.c - the module fxtap._core. */
#include "compare.h"
#include "dump_type.h"
#include "family.h"
#include "fxtap/status.h"
#include "print.h"
#include "program.h"
#include "reader.h"
#include "record.h"
#include "state.h"
#include "team.h"
#include "util/output.h"
#include "verify_type.h"

static int exec_module(PyObject *module)
{
    fx_state *state = fx_state_of_module(module);
    fx_team_watch_forks();
    if (fx_family_start() < 0) {
        return -1;
    }
#define X(field, spec)                                                                                                 \
    if (fx_add_type(module, &spec, &state->field) < 0) {                                                               \
        return -1;                                                                                                     \
    }
    FX_TYPES(X)
#undef X
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

static PyObject *force_fallback(PyObject *module, PyObject *on)
{
    fx_state *state = fx_state_of_module(module);
    int is_on = PyObject_IsTrue(on);
    if (is_on < 0) {
        return NULL;
    }
    PyObject *before = PyBool_FromLong(state->force_fallback);
    state->force_fallback = is_on > 0;
    return before;
}

static PyObject *node_matches(PyObject *module, PyObject *args)
{
    (void)module;
    const char *pattern;
    fxtap_node_info node = {0};
    if (!PyArg_ParseTuple(args, "sssssi:node_matches", &pattern, &node.name, &node.target, &node.module_path,
                          &node.source_file, &node.source_line)) {
        return NULL;
    }
    return PyBool_FromLong(fxtap_node_matches(pattern, &node));
}

static PyObject *nearest_name(PyObject *module, PyObject *args)
{
    (void)module;
    const char *typed;
    PyObject *names;
    if (!PyArg_ParseTuple(args, "sO!:nearest_name", &typed, &PyTuple_Type, &names)) {
        return NULL;
    }
    size_t n = (size_t)PyTuple_Size(names);
    const char **texts = PyMem_Calloc(n + 1, sizeof *texts);
    PyObject *bytes = PyList_New(0); /* owns the texts */
    bool is_good = texts != NULL && bytes != NULL;
    for (size_t i = 0; is_good && i < n; i++) {
        PyObject *text = fx_utf8(PyTuple_GetItem(names, (Py_ssize_t)i));
        is_good = text != NULL && PyList_Append(bytes, text) == 0;
        texts[i] = is_good ? PyBytes_AsString(text) : NULL;
        Py_XDECREF(text);
    }
    PyObject *result = NULL;
    if (is_good) {
        const char *nearest = fxtap_nearest_name(typed, texts, n);
        result = nearest == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(nearest);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    Py_XDECREF(bytes);
    PyMem_Free(texts);
    return result;
}

static PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))fx_record_function, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Record a torch.fx graph.")},
    {"print_graph", (PyCFunction)(void (*)(void))fx_print_graph, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Print a graph in one of several formats.")},
    {"summarise", (PyCFunction)(void (*)(void))fx_summarise, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Return a summary of a graph's operators as CSV.")},
    {"compare", (PyCFunction)(void (*)(void))fx_compare_function, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Compare two dumps.")},
    {"compare_ranks", (PyCFunction)(void (*)(void))fx_compare_ranks_function, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("Compare the ranks of one dump with its first rank.")},
    {"load_rules", fx_load_rules_function, METH_O, PyDoc_STR("Load the rules of a TOML file.")},
    {"verify_report", fx_verify_report_function, METH_VARARGS,
     PyDoc_STR("Add the verdicts of a verification to a report.")},
    {"merge_reports", fx_merge_reports_function, METH_O, PyDoc_STR("Merge the bytes of all shards into one report.")},
    {"merge_verifications", fx_merge_verifications_function, METH_O,
     PyDoc_STR("Merge the bytes of all shards into one verification.")},
    {"claim_block", fx_claim_block, METH_O, PyDoc_STR("Claim a block of graph numbers that no forked relative has.")},
    {"node_matches", node_matches, METH_VARARGS, PyDoc_STR("Return whether a pattern matches a node.")},
    {"nearest_name", nearest_name, METH_VARARGS, PyDoc_STR("Return the name nearest to a given text, or None.")},
    {"force_dlpack_fallback", force_fallback, METH_O,
     PyDoc_STR("For tests: convert every tensor with __dlpack__ instead of the exchange table.")},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,      .m_name = "fxtap._core", .m_doc = PyDoc_STR("The C extension of fxtap."),
    .m_size = sizeof(fx_state), .m_methods = methods,    .m_slots = slots,
    .m_traverse = traverse,     .m_clear = clear,        .m_free = free_module,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
