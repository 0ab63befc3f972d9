/* report_type.c - the type fxtap._core.Report: a finished comparison as Python values, or printed. */
#include <math.h>

#include "compare.h"
#include "errors.h"
#include "reader.h"
#include "verify_type.h"

typedef struct report_object {
    PyObject_HEAD fxtap_report *report;
    PyObject *verification; /* or NULL: it was not verified */
    const fxtap_verification *handle;
} report_object;

static const fxtap_report *report_of(PyObject *self)
{
    return ((report_object *)self)->report;
}

PyObject *fx_report_new(fx_state *state, fxtap_report *report)
{
    report_object *self = (report_object *)fx_object_new(state->report_type);
    if (self == NULL) {
        fxtap_report_free(report);
        return NULL;
    }
    self->report = report;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    fxtap_report_free(((report_object *)self)->report);
    Py_XDECREF(((report_object *)self)->verification);
    fx_object_free(self);
}

/* ---- values ---- */

static PyObject *shape(int32_t ndim, const int64_t *extents)
{
    if (ndim > 0 && extents == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *tuple = PyTuple_New(ndim);
    for (int32_t i = 0; tuple != NULL && i < ndim; i++) {
        PyObject *extent = PyLong_FromLongLong(extents[i]);
        if (extent == NULL || PyTuple_SetItem(tuple, i, extent) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

static PyObject *dtype(fxtap_dtype value)
{
    return value == FXTAP_DTYPE_NONE ? Py_NewRef(Py_None) : PyUnicode_FromString(fxtap_dtype_name(value));
}

static PyObject *io(fxtap_io value)
{
    static const char *const names[] = {"INPUT", "OUTPUT", "INOUT"};
    return PyUnicode_FromString(names[value]);
}

static PyObject *worst(const fxtap_pair *pair)
{
    PyObject *list = PyList_New((Py_ssize_t)pair->n_worst);
    for (size_t i = 0; list != NULL && i < pair->n_worst; i++) {
        const fxtap_coordinate *at = &pair->worst[i];
        PyObject *item = Py_BuildValue("(Kdd)", (unsigned long long)at->index, at->golden, at->target);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *known(bool is_known, double value)
{
    return is_known ? PyFloat_FromDouble(value) : Py_NewRef(Py_None);
}

static PyObject *stats(const fxtap_stats *s)
{
    return Py_BuildValue("{s:N,s:N,s:d,s:d,s:d,s:d,s:N,s:K,s:K,s:K,s:K}", "min", known(s->has_range, s->min), "max",
                         known(s->has_range, s->max), "mean", s->mean, "std", s->std, "rms", s->rms, "l2_norm",
                         s->l2_norm, "abs_max", known(!isnan(s->abs_max), s->abs_max), "count",
                         (unsigned long long)s->count, "nan_count", (unsigned long long)s->nan_count, "pos_inf_count",
                         (unsigned long long)s->pos_inf_count, "neg_inf_count", (unsigned long long)s->neg_inf_count);
}

static PyObject *evidence(const fxtap_pair *pair)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && fxtap_evidence_name(i) != NULL; i++) {
        PyObject *name = (pair->evidence >> i & 1u) != 0 ? PyUnicode_FromString(fxtap_evidence_name(i)) : NULL;
        if ((pair->evidence >> i & 1u) != 0 && (name == NULL || PyList_Append(list, name) < 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(name);
    }
    return list;
}

/*
 * The fields in order: name, whether tables have it, when it is known, its value. `p` is the pair; unknown fields are
 * None.
 */
#define FIELDS(X)                                                                                                      \
    X(verdict, true, true, PyUnicode_FromString(fxtap_verdict_name(p->verdict)))                                       \
    X(name, true, true, fx_py_text(p->name))                                                                           \
    X(target_name, true, true, fx_py_text(p->target_name))                                                             \
    X(node, true, true, fx_py_text(p->node))                                                                           \
    X(target, true, true, fx_py_text(p->operator_name))                                                                \
    X(io, true, true, io(p->io))                                                                                       \
    X(position, true, true, fx_py_text(p->position))                                                                   \
    X(rank, true, true, PyLong_FromLong(p->rank))                                                                      \
    X(graph, true, true, PyLong_FromUnsignedLong(p->graph))                                                            \
    X(target_graph, true, true, PyLong_FromUnsignedLong(p->target_graph))                                              \
    X(step, true, true, PyLong_FromLongLong(p->step))                                                                  \
    X(target_step, true, true, PyLong_FromLongLong(p->target_step))                                                    \
    X(order, true, true, PyLong_FromSize_t(p->order))                                                                  \
    X(pairing, true, true, PyUnicode_FromString(fxtap_pairing_name(p->pairing)))                                       \
    X(confidence, true, true, PyFloat_FromDouble(p->confidence))                                                       \
    X(golden_dtype, true, true, dtype(p->golden_dtype))                                                                \
    X(target_dtype, true, true, dtype(p->target_dtype))                                                                \
    X(golden_shape, true, true, shape(p->ndim, p->shape))                                                              \
    X(target_shape, true, true, shape(p->target_ndim, p->target_shape))                                                \
    X(identical_bits, true, p->measured, PyBool_FromLong(p->identical_bits))                                           \
    X(count, true, p->measured, PyLong_FromUnsignedLongLong(p->count))                                                 \
    X(mismatched, true, p->measured, PyLong_FromUnsignedLongLong(p->mismatched))                                       \
    X(nan_mismatched, true, p->measured, PyLong_FromUnsignedLongLong(p->nan_mismatched))                               \
    X(inf_mismatched, true, p->measured, PyLong_FromUnsignedLongLong(p->inf_mismatched))                               \
    X(undefined_count, true, true, PyLong_FromUnsignedLongLong(p->undefined_count))                                    \
    X(max_abs_err, true, p->measured, PyFloat_FromDouble(p->max_abs_err))                                              \
    X(max_rel_err, true, p->measured, PyFloat_FromDouble(p->max_rel_err))                                              \
    X(mean_abs_err, true, p->measured, PyFloat_FromDouble(p->mean_abs_err))                                            \
    X(rmse, true, p->measured, PyFloat_FromDouble(p->rmse))                                                            \
    X(cosine, true, p->measured, PyFloat_FromDouble(p->cosine))                                                        \
    X(rel_l2, true, p->measured, PyFloat_FromDouble(p->rel_l2))                                                        \
    X(euclidean, true, p->measured, PyFloat_FromDouble(p->euclidean))                                                  \
    X(max_ulp, true, p->measured, PyFloat_FromDouble(p->max_ulp))                                                      \
    X(within_1e3, true, p->measured, PyFloat_FromDouble(p->within_1e3))                                                \
    X(within_5e3, true, p->measured, PyFloat_FromDouble(p->within_5e3))                                                \
    X(max_abs_index, true, p->measured, PyLong_FromUnsignedLongLong(p->max_abs_index))                                 \
    X(max_rel_index, true, p->measured, PyLong_FromUnsignedLongLong(p->max_rel_index))                                 \
    X(rtol, true, p->measured, PyFloat_FromDouble(p->rtol))                                                            \
    X(atol, true, p->measured, PyFloat_FromDouble(p->atol))                                                            \
    X(is_literal, true, true, PyBool_FromLong(p->is_literal))                                                          \
    X(is_missing, true, true, PyBool_FromLong(p->is_missing))                                                          \
    X(evidence, false, true, evidence(p))                                                                              \
    X(n_golden_operators, false, true, PyLong_FromUnsignedLong(p->n_golden_operators))                                 \
    X(n_target_operators, false, true, PyLong_FromUnsignedLong(p->n_target_operators))                                 \
    X(source_file, true, true, fx_py_text(p->source_file))                                                             \
    X(source_line, true, true, PyLong_FromLong(p->source_line))                                                        \
    X(source_code, true, true, fx_py_text(p->source_code))                                                             \
    X(module_path, true, true, fx_py_text(p->module_path))                                                             \
    X(golden_path, true, true, fx_py_path(p->golden_path))                                                             \
    X(target_path, true, true, fx_py_path(p->target_path))                                                             \
    X(verified, false, true, fx_py_text(p->verified))                                                                  \
    X(detail, true, true, fx_py_text(p->detail))                                                                       \
    X(worst, false, p->measured, worst(p))                                                                             \
    X(golden_stats, false, p->golden_stats != NULL, stats(p->golden_stats))                                            \
    X(target_stats, false, p->target_stats != NULL, stats(p->target_stats))

#define X(field, in_table, known, value)                                                                               \
    static PyObject *make_##field(const fxtap_pair *p)                                                                 \
    {                                                                                                                  \
        return (known) ? (value) : Py_NewRef(Py_None);                                                                 \
    }
FIELDS(X)
#undef X

static const struct field {
    const char *name;
    bool in_table;
    PyObject *(*make)(const fxtap_pair *pair);
} fields[] = {
#define X(field, in_table, known, value) {#field, in_table, make_##field},
    FIELDS(X)
#undef X
};

#define N_FIELDS (sizeof fields / sizeof fields[0])

static PyObject *pair_dict(const fxtap_pair *pair)
{
    if (pair == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict != NULL && k < N_FIELDS; k++) {
        if (fx_dict_put(dict, fields[k].name, fields[k].make(pair)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* ---- pairs ---- */

static Py_ssize_t length(PyObject *self)
{
    return (Py_ssize_t)fxtap_report_pair_count(report_of(self));
}

static PyObject *item(PyObject *self, Py_ssize_t i)
{
    if (i < 0 || i >= length(self)) {
        PyErr_SetString(PyExc_IndexError, "no such pair");
        return NULL;
    }
    return pair_dict(fxtap_report_pair(report_of(self), (size_t)i));
}

static PyObject *column(const fxtap_report *report, const struct field *field)
{
    size_t n = fxtap_report_pair_count(report);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list != NULL && i < n; i++) {
        PyObject *value = field->make(fxtap_report_pair(report, i));
        if (value == NULL || PyList_SetItem(list, (Py_ssize_t)i, value) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* Whether a field is selected; `names` NULL selects the fields of tables. -1 with an exception. */
static int is_selected(PyObject *names, const struct field *field)
{
    if (names == NULL) {
        return field->in_table;
    }
    PyObject *name = PyUnicode_FromString(field->name);
    int found = name == NULL ? -1 : PySequence_Contains(names, name);
    Py_XDECREF(name);
    return found;
}

static PyObject *columns(PyObject *self, PyObject *args)
{
    PyObject *names = NULL;
    if (!PyArg_ParseTuple(args, "|O:columns", &names)) {
        return NULL;
    }
    PyObject *dict = PyDict_New();
    for (size_t k = 0; dict != NULL && k < N_FIELDS; k++) {
        int selected = is_selected(names, &fields[k]);
        if (selected < 0 ||
            (selected > 0 && fx_dict_put(dict, fields[k].name, column(report_of(self), &fields[k])) < 0)) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* ---- the rest of a report ---- */

static PyObject *get_verdict(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(fxtap_verdict_name(fxtap_report_verdict(report_of(self))));
}

static PyObject *get_counts(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *dict = PyDict_New();
    for (int v = 0; dict != NULL && v < FXTAP_VERDICT_COUNT; v++) {
        uint64_t n = fxtap_report_count(report_of(self), (fxtap_verdict)v);
        if (fx_dict_put(dict, fxtap_verdict_name((fxtap_verdict)v), PyLong_FromUnsignedLongLong(n)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *get_pairings(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *dict = PyDict_New();
    for (int p = 0; dict != NULL && p < FXTAP_PAIR_COUNT; p++) {
        uint64_t n = fxtap_report_pairing_count(report_of(self), (fxtap_pairing)p);
        if (fx_dict_put(dict, fxtap_pairing_name((fxtap_pairing)p), PyLong_FromUnsignedLongLong(n)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *get_steps(PyObject *self, void *closure)
{
    (void)closure;
    return fx_py_text(fxtap_report_steps(report_of(self)));
}

static PyObject *get_explanation(PyObject *self, void *closure)
{
    (void)closure;
    return fx_py_text(fxtap_report_explanation(report_of(self)));
}

static PyObject *get_first_non_finite(PyObject *self, void *closure)
{
    (void)closure;
    return pair_dict(fxtap_report_first_non_finite(report_of(self)));
}

static PyObject *warning_at(const void *report, size_t i)
{
    return fx_py_text(fxtap_report_warning(report, i));
}

static PyObject *get_warnings(PyObject *self, void *closure)
{
    (void)closure;
    return fx_py_list(fxtap_report_warning_count(report_of(self)), warning_at, report_of(self));
}

static PyObject *origin_dict(const void *report, size_t i)
{
    const fxtap_origin *origin = fxtap_report_origin(report, i);
    return Py_BuildValue("{s:s,s:N,s:d,s:d,s:d,s:n,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "reason",
                         fxtap_origin_reason_name(origin->reason), "pair", pair_dict(origin->pair), "input_error",
                         origin->input_error, "output_error", origin->output_error, "growth", origin->growth,
                         "n_carried", (Py_ssize_t)origin->n_carried, "follows", PyBool_FromLong(origin->follows),
                         "other_target", fx_py_text(origin->other_operator), "literal", fx_py_text(origin->literal),
                         "between", fx_py_text(origin->between), "between_source", fx_py_text(origin->between_source),
                         "between_code", fx_py_text(origin->between_code), "between_module",
                         fx_py_text(origin->between_module), "other_source", fx_py_text(origin->other_source),
                         "other_code", fx_py_text(origin->other_code));
}

static PyObject *get_origins(PyObject *self, void *closure)
{
    (void)closure;
    return fx_py_list(fxtap_report_origin_count(report_of(self)), origin_dict, report_of(self));
}

static PyObject *group_dict(const void *report, size_t i)
{
    const fxtap_group *group = fxtap_report_group(report, i);
    return Py_BuildValue("{s:i,s:I,s:I,s:L,s:L,s:s,s:n,s:n,s:n}", "rank", (int)group->rank, "graph",
                         (unsigned int)group->graph, "target_graph", (unsigned int)group->target_graph, "step",
                         (long long)group->step, "target_step", (long long)group->target_step, "pairing",
                         fxtap_pairing_name(group->pairing), "first_pair", (Py_ssize_t)group->first_pair, "n_pairs",
                         (Py_ssize_t)group->n_pairs, "n_different", (Py_ssize_t)group->n_different);
}

static PyObject *get_groups(PyObject *self, void *closure)
{
    (void)closure;
    return fx_py_list(fxtap_report_group_count(report_of(self)), group_dict, report_of(self));
}

/* ---- as text, as bytes ---- */

static PyObject *print(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"format", "width", "colour", "ascii", "quiet", NULL};
    int format, width = 0, colour = 0, ascii = 0, quiet = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|$ippp:print", names, &format, &width, &colour, &ascii, &quiet)) {
        return NULL;
    }
    fxtap_report_options options = {.struct_size = sizeof options,
                                    .format = (fxtap_report_format)format,
                                    .width = width,
                                    .colour = colour != 0,
                                    .ascii = ascii != 0,
                                    .quiet = quiet != 0};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    const fxtap_report *report = report_of(self);
    const fxtap_verification *verification = ((report_object *)self)->handle;
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS status = verification == NULL
                                        ? fxtap_report_print(report, &options, &text)
                                        : fxtap_report_print_verified(report, verification, &options, &text);
    Py_END_ALLOW_THREADS PyObject *bytes =
        status == FXTAP_OK ? PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.length) : fx_raise(status);
    fxtap_buffer_clear(&text);
    return bytes;
}

static PyObject *serialise(PyObject *self, PyObject *unused)
{
    (void)unused;
    void *data = NULL;
    size_t n_bytes = 0;
    fxtap_status status = fxtap_report_serialise(report_of(self), &data, &n_bytes);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)n_bytes);
    fxtap_free(data);
    return bytes;
}

PyObject *fx_verify_report_function(PyObject *module, PyObject *args)
{
    PyObject *object, *verification;
    if (!PyArg_ParseTuple(args, "O!O:verify_report", fx_state_of_module(module)->report_type, &object, &verification)) {
        return NULL;
    }
    report_object *self = (report_object *)object;
    const fxtap_verification *handle = fx_verification_of(module, verification);
    if (handle == NULL) {
        return NULL;
    }
    fxtap_status status = fxtap_report_verify(self->report, handle);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    Py_XDECREF(self->verification);
    self->verification = Py_NewRef(verification);
    self->handle = handle;
    return PyBool_FromLong(fxtap_report_is_rounding(self->report));
}

static PyGetSetDef getters[] = {
    {"verdict", get_verdict, NULL, NULL, NULL},         {"counts", get_counts, NULL, NULL, NULL},
    {"pairings", get_pairings, NULL, NULL, NULL},       {"origins", get_origins, NULL, NULL, NULL},
    {"groups", get_groups, NULL, NULL, NULL},           {"steps", get_steps, NULL, NULL, NULL},
    {"explanation", get_explanation, NULL, NULL, NULL}, {"first_non_finite", get_first_non_finite, NULL, NULL, NULL},
    {"warnings", get_warnings, NULL, NULL, NULL},       {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"columns", columns, METH_VARARGS, NULL},
    {"print", (PyCFunction)(void (*)(void))print, METH_VARARGS | METH_KEYWORDS, NULL},
    {"serialise", serialise, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A finished comparison (include/fxtap/compare.h): a sequence of pairs."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_sq_length, length},
    {Py_sq_item, item},
    {0, NULL},
};

PyType_Spec fx_report_spec = {
    .name = "fxtap._core.Report",
    .basicsize = sizeof(report_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
