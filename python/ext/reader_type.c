/* reader_type.c - the type fxtap._core.Reader. */
#include "reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "record.h"

typedef struct reader_object {
    PyObject_HEAD
    fxtap_reader *reader;
} reader_object;

fxtap_reader *fx_reader_of(PyObject *self)
{
    return ((reader_object *)self)->reader;
}

PyObject *fx_tell_text(const char *text)
{
    if (text == NULL) {
        return Py_NewRef(Py_None);
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

PyObject *fx_tell_path(const char *path)
{
    return path == NULL ? Py_NewRef(Py_None) : PyUnicode_DecodeFSDefault(path);
}

PyObject *fx_tell_hash(fxtap_hash128 hash)
{
    char digits[33];
    snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    return PyUnicode_FromString(digits);
}

PyObject *fx_tell_integers(const int64_t *values, int32_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = PyLong_FromLongLong(values[i]);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

int fx_tell_put(PyObject *dict, const char *key, PyObject *value)
{
    if (value == NULL) {
        return -1;
    }
    int status = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return status;
}

/* Appends a dict that was filled, or gives up: takes over `dict` (NULL: failed already). */
static int append(PyObject *list, PyObject *dict)
{
    if (dict == NULL) {
        return -1;
    }
    int status = PyList_Append(list, dict);
    Py_DECREF(dict);
    return status;
}

static PyObject *done(PyObject *dict, bool is_filled)
{
    if (!is_filled) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *new_reader(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", NULL};
    PyObject *path = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Reader", names, PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    fxtap_reader *reader = NULL;
    const char *bytes = PyBytes_AsString(path);
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS
    status = fxtap_reader_open(bytes, &reader);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    reader_object *self = (reader_object *)allocate(type, 0);
    if (self == NULL) {
        fxtap_reader_close(reader);
        return NULL;
    }
    self->reader = reader;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    fxtap_reader_close(fx_reader_of(self));
    release(self);
    Py_DECREF(type);
}

static PyObject *get_kind(PyObject *self, void *closure)
{
    (void)closure;
    switch (fxtap_reader_kind(fx_reader_of(self))) {
    case FXTAP_READ_INDEXED:
        return PyUnicode_FromString("indexed");
    case FXTAP_READ_NAMED:
        return PyUnicode_FromString("named");
    case FXTAP_READ_PLAIN:
        return PyUnicode_FromString("plain");
    case FXTAP_READ_FILE:
        return PyUnicode_FromString("file");
    }
    return Py_NewRef(Py_None);
}

static PyObject *get_path(PyObject *self, void *closure)
{
    (void)closure;
    return fx_tell_path(fxtap_reader_path(fx_reader_of(self)));
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    const fxtap_reader *reader = fx_reader_of(self);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < fxtap_reader_warning_count(reader); i++) {
        if (append(list, fx_tell_text(fxtap_reader_warning(reader, i))) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *ranks(PyObject *self, PyObject *unused)
{
    (void)unused;
    const fxtap_reader *reader = fx_reader_of(self);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < fxtap_reader_rank_count(reader); i++) {
        const fxtap_rank_info *rank = fxtap_reader_rank(reader, i);
        PyObject *dict = PyDict_New();
        bool ok = dict != NULL && fx_tell_put(dict, "world_size", PyLong_FromLong(rank->world_size)) == 0 &&
                  fx_tell_put(dict, "rank", PyLong_FromLong(rank->rank)) == 0 &&
                  fx_tell_put(dict, "path", fx_tell_path(rank->path)) == 0 &&
                  fx_tell_put(dict, "has_index", PyBool_FromLong(rank->has_index)) == 0;
        if (append(list, done(dict, ok)) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *run_dict(const fxtap_run_info *run)
{
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_tell_put(dict, "run", PyLong_FromLongLong(run->run)) == 0 &&
              fx_tell_put(dict, "pid", PyLong_FromLongLong(run->pid)) == 0 &&
              fx_tell_put(dict, "host", fx_tell_text(run->host)) == 0 &&
              fx_tell_put(dict, "versions", fx_tell_text(run->versions)) == 0 &&
              fx_tell_put(dict, "command", fx_tell_text(run->command)) == 0 &&
              fx_tell_put(dict, "type", fx_tell_text(run->type)) == 0 &&
              fx_tell_put(dict, "started_us", PyLong_FromUnsignedLongLong(run->started_us)) == 0 &&
              fx_tell_put(dict, "ended_us", PyLong_FromUnsignedLongLong(run->ended_us)) == 0;
    return done(dict, ok);
}

static PyObject *runs(PyObject *self, PyObject *number)
{
    fxtap_reader *reader = fx_reader_of(self);
    size_t rank_i = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    if (rank_i >= fxtap_reader_rank_count(reader)) {
        PyErr_SetString(PyExc_IndexError, "no such rank");
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < fxtap_reader_run_count(reader, rank_i); i++) {
        if (append(list, run_dict(fxtap_reader_run(reader, rank_i, i))) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *kind_text(fxtap_graph_kind kind)
{
    static const char *const names[] = {[FXTAP_GRAPH_INFERENCE] = "inference",
                                        [FXTAP_GRAPH_FORWARD] = "forward",
                                        [FXTAP_GRAPH_BACKWARD] = "backward",
                                        [FXTAP_GRAPH_SUBGRAPH] = "subgraph"};
    size_t i = (size_t)kind;
    return fx_tell_text(i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL);
}

static PyObject *graph_dict(const fxtap_graph_info *graph)
{
    PyObject *dict = PyDict_New();
    bool has = graph->has_keys;
    bool ok = dict != NULL && fx_tell_put(dict, "rank_i", PyLong_FromSize_t(graph->rank_i)) == 0 &&
              fx_tell_put(dict, "run", PyLong_FromLongLong(graph->run)) == 0 &&
              fx_tell_put(dict, "graph", PyLong_FromUnsignedLong(graph->graph)) == 0 &&
              fx_tell_put(dict, "kind", kind_text(graph->kind)) == 0 &&
              fx_tell_put(dict, "strict_key", has ? fx_tell_hash(graph->strict_key) : Py_NewRef(Py_None)) == 0 &&
              fx_tell_put(dict, "structural_key",
                            has ? fx_tell_hash(graph->structural_key) : Py_NewRef(Py_None)) == 0 &&
              fx_tell_put(dict, "occurrence", PyLong_FromUnsignedLong(graph->occurrence)) == 0 &&
              fx_tell_put(dict, "n_nodes", PyLong_FromSize_t(graph->n_nodes)) == 0 &&
              fx_tell_put(dict, "n_dumped", PyLong_FromSize_t(graph->n_dumped)) == 0 &&
              fx_tell_put(dict, "n_steps", PyLong_FromSize_t(graph->n_steps)) == 0 &&
              fx_tell_put(dict, "path", fx_tell_path(graph->path)) == 0;
    return done(dict, ok);
}

static PyObject *graphs(PyObject *self, PyObject *number)
{
    int64_t run = PyLong_AsLongLong(number);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    const fxtap_graph_info *const *infos;
    size_t n;
    fxtap_status status = fxtap_reader_graphs(fx_reader_of(self), run, &infos, &n);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        if (append(list, graph_dict(infos[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* The graph that (run, i) means: the i-th of graphs(run). NULL with an exception. */
static const fxtap_graph_info *graph_at(PyObject *self, PyObject *args)
{
    long long run;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(args, "Ln", &run, &i)) {
        return NULL;
    }
    const fxtap_graph_info *const *infos;
    size_t n;
    fxtap_status status = fxtap_reader_graphs(fx_reader_of(self), run, &infos, &n);
    if (status != FXTAP_OK) {
        fx_raise(status);
        return NULL;
    }
    if (i < 0 || (size_t)i >= n) {
        PyErr_SetString(PyExc_IndexError, "no such graph");
        return NULL;
    }
    return infos[i];
}

static PyObject *step_dict(const fxtap_step_info *step)
{
    static const char *const states[] = {[FXTAP_STEP_WHOLE] = "whole",
                                         [FXTAP_STEP_FAILED] = "failed",
                                         [FXTAP_STEP_PARTIAL] = "partial"};
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_tell_put(dict, "state", fx_tell_text(states[step->state])) == 0 &&
              fx_tell_put(dict, "step", PyLong_FromLongLong(step->step)) == 0 &&
              fx_tell_put(dict, "call", PyLong_FromLongLong(step->call)) == 0 &&
              fx_tell_put(dict, "folder", fx_tell_path(step->folder)) == 0 &&
              fx_tell_put(dict, "reason", fx_tell_text(step->reason)) == 0 &&
              fx_tell_put(dict, "started_us", PyLong_FromUnsignedLongLong(step->started_us)) == 0 &&
              fx_tell_put(dict, "ended_us", PyLong_FromUnsignedLongLong(step->ended_us)) == 0;
    return done(dict, ok);
}

static PyObject *steps(PyObject *self, PyObject *args)
{
    const fxtap_graph_info *graph = graph_at(self, args);
    if (graph == NULL) {
        return NULL;
    }
    const fxtap_step_info *const *infos;
    size_t n;
    fxtap_status status = fxtap_reader_steps(fx_reader_of(self), graph, &infos, &n);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        if (append(list, step_dict(infos[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *node_dict(const fxtap_node_info *node)
{
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_tell_put(dict, "order", PyLong_FromSize_t(node->order)) == 0 &&
              fx_tell_put(dict, "name", fx_tell_text(node->name)) == 0 &&
              fx_tell_put(dict, "target", fx_tell_text(node->target)) == 0 &&
              fx_tell_put(dict, "source_file", fx_tell_text(node->source_file)) == 0 &&
              fx_tell_put(dict, "source_line", PyLong_FromLong(node->source_line)) == 0 &&
              fx_tell_put(dict, "source_function", fx_tell_text(node->source_function)) == 0 &&
              fx_tell_put(dict, "source_code", fx_tell_text(node->source_code)) == 0 &&
              fx_tell_put(dict, "stack", fx_tell_text(node->stack)) == 0 &&
              fx_tell_put(dict, "module_path", fx_tell_text(node->module_path)) == 0 &&
              fx_tell_put(dict, "module_type", fx_tell_text(node->module_type)) == 0 &&
              fx_tell_put(dict, "skipped", fx_tell_text(node->skipped)) == 0;
    return done(dict, ok);
}

static PyObject *nodes(PyObject *self, PyObject *args)
{
    const fxtap_graph_info *graph = graph_at(self, args);
    if (graph == NULL) {
        return NULL;
    }
    const fxtap_node_info *const *infos;
    size_t n;
    fxtap_status status = fxtap_reader_nodes(fx_reader_of(self), graph, &infos, &n);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < n; i++) {
        if (append(list, node_dict(infos[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* A copy: a Graph owns its record. */
static PyObject *record(PyObject *self, PyObject *args)
{
    const fxtap_graph_info *info = graph_at(self, args);
    if (info == NULL) {
        return NULL;
    }
    const fxtap_graph *graph = NULL;
    fxtap_graph *copy = NULL;
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_status status = fxtap_reader_record(fx_reader_of(self), info, &graph);
    if (status == FXTAP_OK) {
        status = fxtap_graph_serialise(graph, &bytes, &n_bytes);
    }
    if (status == FXTAP_OK) {
        status = fxtap_graph_deserialise(bytes, n_bytes, &copy);
    }
    fxtap_free(bytes);
    return status == FXTAP_OK ? fx_graph_new(fx_state_of(self), copy) : fx_raise(status);
}

static PyObject *tensors(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"run", "rank", "graph", "step", "incomplete", "pattern", "io", NULL};
    long long run = 0, rank = -1, graph = -1, step = -1;
    int incomplete = 0, io = -1;
    const char *pattern = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|LLLLpzi:tensors", names, &run, &rank, &graph, &step, &incomplete,
                                     &pattern, &io)) {
        return NULL;
    }
    fxtap_tensor_query query = {
        .struct_size = sizeof(query),
        .run = run,
        .rank = rank,
        .graph = graph,
        .step = step,
        .with_incomplete = incomplete != 0,
        .pattern = pattern,
        .io = io,
    };
    fxtap_tensor_list *list = NULL;
    fxtap_status status = fxtap_reader_tensors(fx_reader_of(self), &query, &list);
    return status == FXTAP_OK ? fx_tensors_new(fx_state_of(self), self, list) : fx_raise(status);
}

static PyGetSetDef getters[] = {
    {"kind", get_kind, NULL, NULL, NULL},
    {"path", get_path, NULL, NULL, NULL},
    {"warnings", get_warnings, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"ranks", ranks, METH_NOARGS, NULL},
    {"runs", runs, METH_O, NULL},
    {"graphs", graphs, METH_O, NULL},
    {"steps", steps, METH_VARARGS, NULL},
    {"nodes", nodes, METH_VARARGS, NULL},
    {"record", record, METH_VARARGS, NULL},
    {"tensors", (PyCFunction)(void (*)(void))tensors, METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A dump, opened for reading (include/fxtap/reader.h)."},
    {Py_tp_new, new_reader},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec fx_reader_spec = {
    .name = "fxtap._core.Reader",
    .basicsize = sizeof(reader_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
