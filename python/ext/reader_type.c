/* reader_type.c - the type fxtap._core.Reader. */
#include "reader.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "record.h"

typedef struct reader_object {
    PyObject_HEAD fxtap_reader *reader;
    pthread_mutex_t lock; /* one thread reads at a time. Taken without the GIL, and never held in Python */
} reader_object;

fxtap_reader *fx_reader_of(PyObject *self)
{
    return ((reader_object *)self)->reader;
}

PyObject *fx_py_text(const char *text)
{
    if (text == NULL) {
        return Py_NewRef(Py_None);
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

PyObject *fx_py_path(const char *path)
{
    return path == NULL ? Py_NewRef(Py_None) : PyUnicode_DecodeFSDefault(path);
}

PyObject *fx_py_hash(fxtap_hash128 hash)
{
    char digits[33];
    snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    return PyUnicode_FromString(digits);
}

PyObject *fx_py_integers(const int64_t *values, int32_t n)
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

int fx_dict_put(PyObject *dict, const char *key, PyObject *value)
{
    if (value == NULL) {
        return -1;
    }
    int status = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return status;
}

PyObject *fx_py_list(size_t n, fx_item_function item, const void *items)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *value = item(items, i);
        if (value == NULL || PyList_SetItem(list, (Py_ssize_t)i, value) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
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
    Py_BEGIN_ALLOW_THREADS status = fxtap_reader_open(bytes, &reader);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    reader_object *self = (reader_object *)fx_object_new((PyObject *)type);
    if (self == NULL) {
        fxtap_reader_close(reader);
        return NULL;
    }
    self->reader = reader;
    pthread_mutex_init(&self->lock, NULL);
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    fxtap_reader *reader = fx_reader_of(self);
    Py_BEGIN_ALLOW_THREADS fxtap_reader_close(reader);
    Py_END_ALLOW_THREADS pthread_mutex_destroy(&((reader_object *)self)->lock);
    fx_object_free(self);
}

/* ---- questions: answered without the GIL, as an index may be locked by another process, a disk slow ---- */

/*
 * What is asked for, and the answer. What it points to lives as long as the reader, but for what is said to be a copy.
 */
typedef struct question {
    int64_t run;
    size_t i; /* of a rank, or of a graph of the run */
    fxtap_tensor_query tensors;
    size_t n;
    void *copies; /* n of what is asked for; free() */
    const fxtap_graph_info *const *graphs;
    const fxtap_step_info *const *steps;
    const fxtap_node_info *const *nodes;
    fxtap_graph *record; /* a copy */
    fxtap_tensor_list *list;
    bool is_past_the_end;
} question;

typedef fxtap_status answer(fxtap_reader *reader, question *q);

/* 0, or -1 with an exception. */
static int ask(PyObject *self, answer *find, question *q)
{
    reader_object *object = (reader_object *)self;
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&object->lock);
    status = find(object->reader, q);
    pthread_mutex_unlock(&object->lock);
    Py_END_ALLOW_THREADS if (status != FXTAP_OK)
    {
        fx_raise(status);
        return -1;
    }
    return 0;
}

/* Room for n copies, which q owns. */
static fxtap_status make_room(question *q, size_t n, size_t item_bytes)
{
    q->n = n;
    q->copies = calloc(n + 1, item_bytes);
    return q->copies != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

static fxtap_status copy_warnings(fxtap_reader *reader, question *q)
{
    fxtap_status status = make_room(q, fxtap_reader_warning_count(reader), sizeof(const char *));
    for (size_t i = 0; status == FXTAP_OK && i < q->n; i++) {
        ((const char **)q->copies)[i] = fxtap_reader_warning(reader, i);
    }
    return status;
}

static fxtap_status copy_ranks(fxtap_reader *reader, question *q)
{
    fxtap_status status = make_room(q, fxtap_reader_rank_count(reader), sizeof(fxtap_rank_info));
    for (size_t i = 0; status == FXTAP_OK && i < q->n; i++) {
        ((fxtap_rank_info *)q->copies)[i] = *fxtap_reader_rank(reader, i);
    }
    return status;
}

static fxtap_status copy_runs(fxtap_reader *reader, question *q)
{
    q->is_past_the_end = q->i >= fxtap_reader_rank_count(reader);
    fxtap_status status = make_room(q, fxtap_reader_run_count(reader, q->i), sizeof(fxtap_run_info));
    for (size_t i = 0; status == FXTAP_OK && i < q->n; i++) {
        ((fxtap_run_info *)q->copies)[i] = *fxtap_reader_run(reader, q->i, i);
    }
    return status;
}

static fxtap_status find_graphs(fxtap_reader *reader, question *q)
{
    return fxtap_reader_graphs(reader, q->run, &q->graphs, &q->n);
}

/* The i-th graph of the run; NULL past the end, also on failure. */
static fxtap_status find_graph(fxtap_reader *reader, question *q, const fxtap_graph_info **out)
{
    fxtap_status status = find_graphs(reader, q);
    q->is_past_the_end = status == FXTAP_OK && q->i >= q->n;
    *out = status == FXTAP_OK && !q->is_past_the_end ? q->graphs[q->i] : NULL;
    return status;
}

static fxtap_status find_steps(fxtap_reader *reader, question *q)
{
    const fxtap_graph_info *graph;
    fxtap_status status = find_graph(reader, q, &graph);
    return graph != NULL ? fxtap_reader_steps(reader, graph, &q->steps, &q->n) : status;
}

static fxtap_status find_nodes(fxtap_reader *reader, question *q)
{
    const fxtap_graph_info *graph;
    fxtap_status status = find_graph(reader, q, &graph);
    return graph != NULL ? fxtap_reader_nodes(reader, graph, &q->nodes, &q->n) : status;
}

static fxtap_status copy_record(fxtap_reader *reader, question *q)
{
    const fxtap_graph_info *info;
    const fxtap_graph *graph = NULL;
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_status status = find_graph(reader, q, &info);
    if (info != NULL) {
        status = fxtap_reader_record(reader, info, &graph);
    }
    if (graph != NULL) {
        status = fxtap_graph_serialise(graph, &bytes, &n_bytes);
        status = status == FXTAP_OK ? fxtap_graph_deserialise(bytes, n_bytes, &q->record) : status;
    }
    fxtap_free(bytes);
    return status;
}

/* A pattern that matches nothing is an error that names what is near. */
static fxtap_status find_tensors(fxtap_reader *reader, question *q)
{
    const char *pattern = q->tensors.pattern;
    fxtap_status status = fxtap_reader_tensors(reader, &q->tensors, &q->list);
    if (status == FXTAP_OK && pattern != NULL && fxtap_tensor_list_count(q->list) == 0) {
        status = fxtap_reader_check_pattern(reader, q->tensors.run, pattern, false);
        if (status != FXTAP_OK) {
            fxtap_tensor_list_free(q->list);
            q->list = NULL;
        }
    }
    return status;
}

/* The same for a method that takes (run, i), the i-th graph of a run. */
static int ask_graph(PyObject *self, PyObject *args, answer *find, question *q)
{
    long long run;
    Py_ssize_t i;
    if (!PyArg_ParseTuple(args, "Ln", &run, &i)) {
        return -1;
    }
    *q = (question){.run = run, .i = i < 0 ? SIZE_MAX : (size_t)i};
    if (ask(self, find, q) < 0) {
        return -1;
    }
    if (q->is_past_the_end) {
        PyErr_SetString(PyExc_IndexError, "no such graph");
        return -1;
    }
    return 0;
}

/* ---- answers as Python values ---- */

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
    return fx_py_path(fxtap_reader_path(fx_reader_of(self)));
}

static PyObject *warning_at(const void *items, size_t i)
{
    return fx_py_text(((const char *const *)items)[i]);
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    question q = {.n = 0};
    if (ask(self, copy_warnings, &q) < 0) {
        return NULL;
    }
    PyObject *list = fx_py_list(q.n, warning_at, q.copies);
    free(q.copies);
    return list;
}

static PyObject *rank_dict(const void *items, size_t i)
{
    const fxtap_rank_info *rank = (const fxtap_rank_info *)items + i;
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_dict_put(dict, "world_size", PyLong_FromLong(rank->world_size)) == 0 &&
              fx_dict_put(dict, "rank", PyLong_FromLong(rank->rank)) == 0 &&
              fx_dict_put(dict, "path", fx_py_path(rank->path)) == 0 &&
              fx_dict_put(dict, "has_index", PyBool_FromLong(rank->has_index)) == 0;
    return done(dict, ok);
}

static PyObject *ranks(PyObject *self, PyObject *unused)
{
    (void)unused;
    question q = {.n = 0};
    if (ask(self, copy_ranks, &q) < 0) {
        return NULL;
    }
    PyObject *list = fx_py_list(q.n, rank_dict, q.copies);
    free(q.copies);
    return list;
}

static PyObject *run_dict(const void *items, size_t i)
{
    const fxtap_run_info *run = (const fxtap_run_info *)items + i;
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_dict_put(dict, "run", PyLong_FromLongLong(run->run)) == 0 &&
              fx_dict_put(dict, "pid", PyLong_FromLongLong(run->pid)) == 0 &&
              fx_dict_put(dict, "host", fx_py_text(run->host)) == 0 &&
              fx_dict_put(dict, "versions", fx_py_text(run->versions)) == 0 &&
              fx_dict_put(dict, "command", fx_py_text(run->command)) == 0 &&
              fx_dict_put(dict, "type", fx_py_text(run->type)) == 0 &&
              fx_dict_put(dict, "started_us", PyLong_FromUnsignedLongLong(run->started_us)) == 0 &&
              fx_dict_put(dict, "ended_us", PyLong_FromUnsignedLongLong(run->ended_us)) == 0;
    return done(dict, ok);
}

static PyObject *runs(PyObject *self, PyObject *number)
{
    question q = {.i = PyLong_AsSize_t(number)};
    if (PyErr_Occurred() != NULL || ask(self, copy_runs, &q) < 0) {
        return NULL;
    }
    PyObject *list = NULL;
    if (q.is_past_the_end) {
        PyErr_SetString(PyExc_IndexError, "no such rank");
    } else {
        list = fx_py_list(q.n, run_dict, q.copies);
    }
    free(q.copies);
    return list;
}

static PyObject *kind_text(fxtap_graph_kind kind)
{
    static const char *const names[] = {[FXTAP_GRAPH_INFERENCE] = "inference",
                                        [FXTAP_GRAPH_FORWARD] = "forward",
                                        [FXTAP_GRAPH_BACKWARD] = "backward",
                                        [FXTAP_GRAPH_SUBGRAPH] = "subgraph"};
    size_t i = (size_t)kind;
    return fx_py_text(i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL);
}

static PyObject *graph_dict(const void *items, size_t i)
{
    const fxtap_graph_info *graph = ((const fxtap_graph_info *const *)items)[i];
    PyObject *dict = PyDict_New();
    bool has = graph->has_keys;
    bool ok = dict != NULL && fx_dict_put(dict, "rank_i", PyLong_FromSize_t(graph->rank_i)) == 0 &&
              fx_dict_put(dict, "run", PyLong_FromLongLong(graph->run)) == 0 &&
              fx_dict_put(dict, "graph", PyLong_FromUnsignedLong(graph->graph)) == 0 &&
              fx_dict_put(dict, "kind", kind_text(graph->kind)) == 0 &&
              fx_dict_put(dict, "strict_key", has ? fx_py_hash(graph->strict_key) : Py_NewRef(Py_None)) == 0 &&
              fx_dict_put(dict, "structural_key", has ? fx_py_hash(graph->structural_key) : Py_NewRef(Py_None)) == 0 &&
              fx_dict_put(dict, "occurrence", PyLong_FromUnsignedLong(graph->occurrence)) == 0 &&
              fx_dict_put(dict, "n_nodes", PyLong_FromSize_t(graph->n_nodes)) == 0 &&
              fx_dict_put(dict, "n_dumped", PyLong_FromSize_t(graph->n_dumped)) == 0 &&
              fx_dict_put(dict, "n_steps", PyLong_FromSize_t(graph->n_steps)) == 0 &&
              fx_dict_put(dict, "path", fx_py_path(graph->path)) == 0;
    return done(dict, ok);
}

static PyObject *graphs(PyObject *self, PyObject *number)
{
    question q = {.run = PyLong_AsLongLong(number)};
    if (PyErr_Occurred() != NULL || ask(self, find_graphs, &q) < 0) {
        return NULL;
    }
    return fx_py_list(q.n, graph_dict, q.graphs);
}

static PyObject *step_dict(const void *items, size_t i)
{
    const fxtap_step_info *step = ((const fxtap_step_info *const *)items)[i];
    static const char *const states[] = {
        [FXTAP_STEP_WHOLE] = "whole", [FXTAP_STEP_FAILED] = "failed", [FXTAP_STEP_PARTIAL] = "partial"};
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_dict_put(dict, "state", fx_py_text(states[step->state])) == 0 &&
              fx_dict_put(dict, "step", PyLong_FromLongLong(step->step)) == 0 &&
              fx_dict_put(dict, "call", PyLong_FromLongLong(step->call)) == 0 &&
              fx_dict_put(dict, "folder", fx_py_path(step->folder)) == 0 &&
              fx_dict_put(dict, "reason", fx_py_text(step->reason)) == 0 &&
              fx_dict_put(dict, "started_us", PyLong_FromUnsignedLongLong(step->started_us)) == 0 &&
              fx_dict_put(dict, "ended_us", PyLong_FromUnsignedLongLong(step->ended_us)) == 0;
    return done(dict, ok);
}

static PyObject *steps(PyObject *self, PyObject *args)
{
    question q;
    if (ask_graph(self, args, find_steps, &q) < 0) {
        return NULL;
    }
    return fx_py_list(q.n, step_dict, q.steps);
}

static PyObject *node_dict(const void *items, size_t i)
{
    const fxtap_node_info *node = ((const fxtap_node_info *const *)items)[i];
    PyObject *dict = PyDict_New();
    bool ok = dict != NULL && fx_dict_put(dict, "order", PyLong_FromSize_t(node->order)) == 0 &&
              fx_dict_put(dict, "name", fx_py_text(node->name)) == 0 &&
              fx_dict_put(dict, "target", fx_py_text(node->target)) == 0 &&
              fx_dict_put(dict, "source_file", fx_py_text(node->source_file)) == 0 &&
              fx_dict_put(dict, "source_line", PyLong_FromLong(node->source_line)) == 0 &&
              fx_dict_put(dict, "source_function", fx_py_text(node->source_function)) == 0 &&
              fx_dict_put(dict, "source_code", fx_py_text(node->source_code)) == 0 &&
              fx_dict_put(dict, "stack", fx_py_text(node->stack)) == 0 &&
              fx_dict_put(dict, "module_path", fx_py_text(node->module_path)) == 0 &&
              fx_dict_put(dict, "module_type", fx_py_text(node->module_type)) == 0 &&
              fx_dict_put(dict, "skipped", fx_py_text(node->skipped)) == 0;
    return done(dict, ok);
}

static PyObject *nodes(PyObject *self, PyObject *args)
{
    question q;
    if (ask_graph(self, args, find_nodes, &q) < 0) {
        return NULL;
    }
    return fx_py_list(q.n, node_dict, q.nodes);
}

/* A copy: a Graph owns its record. */
static PyObject *record(PyObject *self, PyObject *args)
{
    question q;
    return ask_graph(self, args, copy_record, &q) < 0 ? NULL : fx_graph_new(fx_state_of(self), q.record);
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
    question q = {.n = 0};
    q.tensors = (fxtap_tensor_query){
        .struct_size = sizeof(q.tensors),
        .run = run,
        .rank = rank,
        .graph = graph,
        .step = step,
        .with_incomplete = incomplete != 0,
        .pattern = pattern,
        .io = io,
    };
    return ask(self, find_tensors, &q) < 0 ? NULL : fx_tensors_new(fx_state_of(self), self, q.list);
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
