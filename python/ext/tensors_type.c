/* tensors_type.c - the type fxtap._core.Tensors: saved tensors of a dump, one at a time or column by column. */
#include <math.h>

#include "errors.h"
#include "reader.h"

typedef struct tensors_object {
    PyObject_HEAD PyObject *reader; /* the Reader object, which everything points into */
    fxtap_tensor_list *list;
} tensors_object;

typedef struct source { /* what the fields are made from */
    const fxtap_reader *reader;
    fxtap_tensor_info tensor;      /* a copy: other threads load without the GIL */
    const fxtap_step_info *step;   /* NULL in plain folders */
    const fxtap_node_info *node;   /* NULL in plain folders */
    const fxtap_graph_info *graph; /* NULL in plain folders */
    const fxtap_rank_info *rank;   /* NULL in plain folders */
} source;

static PyObject *none(void)
{
    return Py_NewRef(Py_None);
}

static PyObject *state_text(const source *s)
{
    static const char *const names[] = {"whole", "failed", "partial"};
    return s->step == NULL ? none() : PyUnicode_FromString(names[s->step->state - FXTAP_STEP_WHOLE]);
}

static PyObject *io_text(const source *s)
{
    static const char *const names[] = {"INPUT", "OUTPUT", "INOUT"};
    return PyUnicode_FromString(names[s->tensor.io]);
}

/* The end of a range: exact for integers, None where there is none. */
static PyObject *extreme(const fxtap_stats *stats, double value, int64_t integer)
{
    if (!stats->has_range) {
        return none();
    }
    switch (fxtap_dtype_class_of(stats->dtype)) {
    case FXTAP_CLASS_BOOL:
    case FXTAP_CLASS_UINT:
        return PyLong_FromUnsignedLongLong((unsigned long long)integer);
    case FXTAP_CLASS_INT:
        return PyLong_FromLongLong(integer);
    default:
        return PyFloat_FromDouble(value);
    }
}

static PyObject *mean(const fxtap_stats *stats)
{
    if (fxtap_dtype_class_of(stats->dtype) == FXTAP_CLASS_COMPLEX) {
        return PyComplex_FromDoubles(stats->mean, stats->mean_imag);
    }
    return PyFloat_FromDouble(stats->mean);
}

/*
 * Fields in their order: name, where it is known, its value. `t`, `step`, `node`, `graph`, `rank` and `stats` are at
 * hand; a field that is not known is None.
 */
#define FIELDS(X)                                                                                                      \
    X(world_size, rank != NULL, PyLong_FromLong(rank->world_size))                                                     \
    X(rank, rank != NULL, PyLong_FromLong(rank->rank))                                                                 \
    X(run, graph != NULL, PyLong_FromLongLong(graph->run))                                                             \
    X(graph, graph != NULL, PyLong_FromUnsignedLong(graph->graph))                                                     \
    X(step, step != NULL, PyLong_FromLongLong(step->step))                                                             \
    X(state, true, state_text(s))                                                                                      \
    X(call, step != NULL, PyLong_FromLongLong(step->call))                                                             \
    X(order, node != NULL, PyLong_FromSize_t(node->order))                                                             \
    X(node, node != NULL, fx_py_text(node->name))                                                                      \
    X(target, node != NULL, fx_py_text(node->target))                                                                  \
    X(io, node != NULL, io_text(s))                                                                                    \
    X(position, node != NULL, fx_py_text(t->position))                                                                 \
    X(arg_name, node != NULL, fx_py_text(t->arg_name))                                                                 \
    X(name, true, fx_py_text(t->name))                                                                                 \
    X(skipped, true, fx_py_text(t->skipped))                                                                           \
    X(dtype, t->has_meta, PyUnicode_FromString(fxtap_dtype_name(t->dtype)))                                            \
    X(shape, t->has_meta, fx_py_integers(t->shape, t->ndim))                                                           \
    X(strides, t->has_meta && t->strides != NULL, fx_py_integers(t->strides, t->ndim))                                 \
    X(device, t->has_meta, fx_py_text(t->device))                                                                      \
    X(layout, t->has_meta, fx_py_text(t->layout))                                                                      \
    X(saved_dtype, t->has_meta, PyUnicode_FromString(fxtap_dtype_name(t->saved_dtype)))                                \
    X(bytes, t->has_meta, PyLong_FromUnsignedLongLong(t->bytes))                                                       \
    X(hash, t->has_hash, fx_py_hash(t->hash))                                                                          \
    X(count, t->has_stats, PyLong_FromUnsignedLongLong(stats->count))                                                  \
    X(min, t->has_stats, extreme(stats, stats->min, stats->min_int))                                                   \
    X(max, t->has_stats, extreme(stats, stats->max, stats->max_int))                                                   \
    X(mean, t->has_stats, mean(stats))                                                                                 \
    X(std, t->has_stats, PyFloat_FromDouble(stats->std))                                                               \
    X(rms, t->has_stats, PyFloat_FromDouble(stats->rms))                                                               \
    X(l2_norm, t->has_stats, PyFloat_FromDouble(stats->l2_norm))                                                       \
    X(abs_max, t->has_stats && !isnan(stats->abs_max), PyFloat_FromDouble(stats->abs_max))                             \
    X(nan_count, t->has_stats, PyLong_FromUnsignedLongLong(stats->nan_count))                                          \
    X(pos_inf_count, t->has_stats, PyLong_FromUnsignedLongLong(stats->pos_inf_count))                                  \
    X(neg_inf_count, t->has_stats, PyLong_FromUnsignedLongLong(stats->neg_inf_count))                                  \
    X(zero_count, t->has_stats, PyLong_FromUnsignedLongLong(stats->zero_count))                                        \
    X(subnormal_count, t->has_stats, PyLong_FromUnsignedLongLong(stats->subnormal_count))                              \
    X(undefined_count, t->has_meta, PyLong_FromUnsignedLongLong(t->undefined_count))                                   \
    X(module_path, node != NULL, fx_py_text(node->module_path))                                                        \
    X(source_file, node != NULL, fx_py_text(node->source_file))                                                        \
    X(source_line, node != NULL, PyLong_FromLong(node->source_line))                                                   \
    X(stamp_us, node != NULL, PyLong_FromUnsignedLongLong(t->stamp_us))                                                \
    X(path, true, fx_py_path(t->path))

#define X(field, known, value)                                                                                         \
    static PyObject *make_##field(const source *s)                                                                     \
    {                                                                                                                  \
        const fxtap_tensor_info *t = &s->tensor;                                                                       \
        const fxtap_step_info *step = s->step;                                                                         \
        const fxtap_node_info *node = s->node;                                                                         \
        const fxtap_graph_info *graph = s->graph;                                                                      \
        const fxtap_rank_info *rank = s->rank;                                                                         \
        const fxtap_stats *stats = &t->stats;                                                                          \
        (void)step, (void)node, (void)graph, (void)rank, (void)stats;                                                  \
        return (known) ? (value) : none();                                                                             \
    }
FIELDS(X)
#undef X

static const struct field {
    const char *name;
    PyObject *(*make)(const source *s);
} fields[] = {
#define X(field, known, value) {#field, make_##field},
    FIELDS(X)
#undef X
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

static tensors_object *of(PyObject *self)
{
    return (tensors_object *)self;
}

static source source_at(PyObject *self, size_t i)
{
    source s = {.reader = fx_reader_of(of(self)->reader)};
    fxtap_tensor_list_get(of(self)->list, i, &s.tensor);
    s.step = s.tensor.step;
    s.node = s.tensor.node;
    s.graph = s.step != NULL ? s.step->graph : s.node != NULL ? s.node->graph : NULL;
    s.rank = s.graph == NULL ? NULL : fxtap_reader_rank(s.reader, s.graph->rank_i);
    return s;
}

PyObject *fx_tensors_new(fx_state *state, PyObject *reader, fxtap_tensor_list *list)
{
    tensors_object *self = (tensors_object *)fx_object_new(state->tensors_type);
    if (self == NULL) {
        fxtap_tensor_list_free(list);
        return NULL;
    }
    self->reader = Py_NewRef(reader);
    self->list = list;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    fxtap_tensor_list_free(of(self)->list);
    Py_XDECREF(of(self)->reader);
    fx_object_free(self);
}

static Py_ssize_t length(PyObject *self)
{
    return (Py_ssize_t)fxtap_tensor_list_count(of(self)->list);
}

static PyObject *item(PyObject *self, Py_ssize_t i)
{
    if (i < 0 || i >= length(self)) {
        PyErr_SetString(PyExc_IndexError, "no such tensor");
        return NULL;
    }
    source s = source_at(self, (size_t)i);
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict != NULL && k < N_FIELDS; k++) {
        if (fx_dict_put(dict, fields[k].name, fields[k].make(&s)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* One tensor's field in each of the lists. */
static int put_row(PyObject *self, Py_ssize_t i, PyObject *const lists[N_FIELDS])
{
    source s = source_at(self, (size_t)i);
    for (size_t k = 0; k < N_FIELDS; k++) {
        PyObject *value = fields[k].make(&s);
        if (value == NULL || PyList_SetItem(lists[k], i, value) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *columns(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *dict = PyDict_New(), *lists[N_FIELDS];
    Py_ssize_t n = length(self);
    for (size_t k = 0; dict != NULL && k < N_FIELDS; k++) {
        lists[k] = PyList_New(n);
        if (fx_dict_put(dict, fields[k].name, lists[k]) < 0) {
            Py_CLEAR(dict);
        }
    }
    for (Py_ssize_t i = 0; dict != NULL && i < n; i++) {
        if (put_row(self, i, lists) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *load(PyObject *self, PyObject *number, fxtap_status (*function)(fxtap_tensor_list *, size_t))
{
    size_t i = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    if (i >= fxtap_tensor_list_count(of(self)->list)) {
        PyErr_SetString(PyExc_IndexError, "no such tensor");
        return NULL;
    }
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS status = function(of(self)->list, i);
    Py_END_ALLOW_THREADS return status == FXTAP_OK ? none() : fx_raise(status);
}

static PyObject *load_meta(PyObject *self, PyObject *number)
{
    return load(self, number, fxtap_tensor_load_meta);
}

static PyObject *load_stats(PyObject *self, PyObject *number)
{
    return load(self, number, fxtap_tensor_load_stats);
}

static PyObject *open_values(PyObject *self, PyObject *number)
{
    size_t i = PyLong_AsSize_t(number);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    fxtap_npy *npy = NULL;
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS status = fxtap_tensor_open(of(self)->list, i, &npy);
    Py_END_ALLOW_THREADS return status == FXTAP_OK ? fx_values_new(fx_state_of(self), npy) : fx_raise(status);
}

static PyMethodDef methods[] = {
    {"columns", columns, METH_NOARGS, NULL},
    {"load_meta", load_meta, METH_O, NULL},
    {"load_stats", load_stats, METH_O, NULL},
    {"open", open_values, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Tensors of a dump: a sequence of dicts."},
    {Py_tp_dealloc, dealloc},
    {Py_sq_length, length},
    {Py_sq_item, item},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec fx_tensors_spec = {
    .name = "fxtap._core.Tensors",
    .basicsize = sizeof(tensors_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
