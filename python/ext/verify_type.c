/* verify_type.c - the type fxtap._core.Verification: results judged and collected (fxtap/verify.h). */
#include "verify_type.h"

#include <string.h>

#include "compare.h"
#include "errors.h"
#include "fxtap/verify.h"
#include "reader.h"

#define GIL_BYTES (64 * 1024) /* below, releasing the GIL costs more than the measurement */

typedef struct verification_object {
    PyObject_HEAD fxtap_verification *handle;
    bool is_busy; /* measured or printed without the GIL; changed with the GIL held */
} verification_object;

static verification_object *enter(PyObject *object)
{
    verification_object *self = (verification_object *)object;
    if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "the verification is in use by another thread");
        return NULL;
    }
    return self;
}

static PyObject *wrap(PyTypeObject *type, fxtap_verification *handle)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    verification_object *self = (verification_object *)allocate(type, 0);
    if (self == NULL) {
        fxtap_verification_free(handle);
        return NULL;
    }
    self->handle = handle;
    return (PyObject *)self;
}

static PyObject *new_verification(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"golden", "target", NULL};
    const char *golden, *target;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "zs:Verification", names, &golden, &target)) {
        return NULL;
    }
    fxtap_verification *handle = NULL;
    fxtap_status status = fxtap_verification_create(golden, target, &handle);
    return status == FXTAP_OK ? wrap(type, handle) : fx_raise(status);
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    fxtap_verification_free(((verification_object *)self)->handle);
    release(self);
    Py_DECREF(type);
}

/* ---- judging ---- */

enum { SAVED, REFERENCE, THIRD, SPREAD, N_BUFFERS };

typedef struct buffers {
    Py_buffer views[N_BUFFERS];
    bool is_open[N_BUFFERS];
} buffers;

static void close_buffers(buffers *b)
{
    for (size_t i = 0; i < N_BUFFERS; i++) {
        if (b->is_open[i]) {
            PyBuffer_Release(&b->views[i]);
        }
    }
}

/* None: no buffer. */
static bool open_buffers(buffers *b, PyObject *const objects[N_BUFFERS])
{
    for (size_t i = 0; i < N_BUFFERS; i++) {
        if (objects[i] != Py_None) {
            if (PyObject_GetBuffer(objects[i], &b->views[i], PyBUF_ANY_CONTIGUOUS) < 0) {
                return false;
            }
            b->is_open[i] = true;
        }
    }
    return true;
}

/* The data of a buffer that must have `n_bytes` and be aligned; NULL with an exception, or if not given. */
static const void *data_of(const buffers *b, size_t i, size_t n_bytes, size_t alignment)
{
    static const char *const names[] = {"saved", "reference", "third", "spread"};
    if (!b->is_open[i]) {
        return NULL;
    }
    const Py_buffer *view = &b->views[i];
    if ((size_t)view->len != n_bytes) {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, expected %zu", names[i], view->len, n_bytes);
        return NULL;
    }
    if (n_bytes > 0 && (uintptr_t)view->buf % alignment != 0) {
        PyErr_Format(PyExc_ValueError, "%s is not aligned to its elements", names[i]);
        return NULL;
    }
    return view->buf;
}

/* Bytes of an element of the reference. */
static size_t reference_bytes(fxtap_dtype dtype)
{
    switch (fxtap_dtype_class_of(dtype)) {
    case FXTAP_CLASS_FLOAT:
        return sizeof(double);
    case FXTAP_CLASS_COMPLEX:
        return 2 * sizeof(double);
    default:
        return fxtap_dtype_size(fxtap_dtype_saved(dtype));
    }
}

static bool fill_input(fxtap_verify_input *input, const buffers *b)
{
    size_t size = fxtap_dtype_size(fxtap_dtype_saved(input->dtype)), wide = reference_bytes(input->dtype);
    size_t n_bytes = (size_t)b->views[SAVED].len;
    if (size == 0 || n_bytes % size != 0) {
        PyErr_SetString(PyExc_ValueError,
                        size == 0 ? "tensors of this dtype are not saved" : "saved is not a whole number of elements");
        return false;
    }
    size_t n = n_bytes / size, alignment = wide < sizeof(double) ? 1 : sizeof(double);
    input->n_elems = n;
    input->saved = data_of(b, SAVED, n_bytes, 1);
    input->reference = data_of(b, REFERENCE, n * wide, alignment);
    input->third = data_of(b, THIRD, n_bytes, 1);
    input->spread = data_of(b, SPREAD, n * wide, alignment);
    return !PyErr_Occurred();
}

static bool dtype_of(const char *name, fxtap_dtype *out)
{
    *out = name == NULL ? FXTAP_DTYPE_NONE : fxtap_dtype_from_name(name);
    if (name != NULL && *out == FXTAP_DTYPE_NONE) {
        PyErr_Format(PyExc_ValueError, "dtype '%s' is not known", name);
        return false;
    }
    return true;
}

static PyObject *measure(verification_object *self, const fxtap_verify_input *input, size_t n_bytes)
{
    static const char *const needs[] = {"", "third", "spread", "more spread"};
    fxtap_verify_need need = FXTAP_NEED_NOTHING;
    fxtap_verify_verdict verdict = FXTAP_VERIFY_NOT_REPLAYED;
    fxtap_status status;
    if (n_bytes > GIL_BYTES) {
        self->is_busy = true;
        Py_BEGIN_ALLOW_THREADS status = fxtap_verification_judge(self->handle, input, &need, &verdict);
        Py_END_ALLOW_THREADS self->is_busy = false;
    } else {
        status = fxtap_verification_judge(self->handle, input, &need, &verdict);
    }
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    return PyUnicode_FromString(need == FXTAP_NEED_NOTHING ? fxtap_verify_verdict_name(verdict) : needs[need]);
}

static PyObject *judge(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"saved",       "dtype",     "reference",    "third",     "spread",
                            "spread_runs", "reduction", "coarse_dtype", "pointwise", "wrong_indices",
                            "no_third",    "no_spread", "continued",    NULL};
    PyObject *arrays[N_BUFFERS] = {Py_None, Py_None, Py_None, Py_None}, *wrong = Py_None;
    const char *dtype, *coarse = NULL;
    unsigned int runs = 0;
    unsigned long long reduction = 1;
    int is_pointwise = 0, no_third = 0, no_spread = 0, is_continued = 0;
    verification_object *self = enter(object);
    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OsO|$OOIKzpOppp:judge", names, &arrays[SAVED], &dtype,
                                     &arrays[REFERENCE], &arrays[THIRD], &arrays[SPREAD], &runs, &reduction, &coarse,
                                     &is_pointwise, &wrong, &no_third, &no_spread, &is_continued)) {
        return NULL;
    }
    fxtap_verify_input input;
    fxtap_verify_input_init(&input);
    input.spread_runs = runs;
    input.reduction = reduction;
    input.is_pointwise = is_pointwise != 0;
    input.is_continued = is_continued != 0;
    input.no_third = no_third != 0;
    input.no_spread = no_spread != 0;
    input.wrong_indices = wrong == Py_None ? -1 : PyLong_AsLongLong(wrong);
    if (PyErr_Occurred() || !dtype_of(dtype, &input.dtype) || !dtype_of(coarse, &input.coarse)) {
        return NULL;
    }
    buffers b = {0};
    PyObject *answer = NULL;
    if (open_buffers(&b, arrays) && fill_input(&input, &b)) {
        answer = measure(self, &input, (size_t)b.views[SAVED].len);
    }
    close_buffers(&b);
    return answer;
}

/* ---- collecting ---- */

/* Extents of a sequence of at most FXTAP_MAX_DIMS; the number of dimensions, or -1 with an exception. */
static int32_t read_shape(PyObject *shape, int64_t *extents)
{
    PyObject *tuple = PySequence_Tuple(shape);
    if (tuple == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n && i < FXTAP_MAX_DIMS; i++) {
        extents[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    }
    Py_DECREF(tuple);
    if (n > FXTAP_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "shape of %zd dimensions, at most %d", n, FXTAP_MAX_DIMS);
    }
    return PyErr_Occurred() ? -1 : (int32_t)n;
}

/* Reads (hash, differs) pairs; the caller frees *out with PyMem_Free(). -1 with an exception. */
static Py_ssize_t read_values(PyObject *sequence, fxtap_verify_value **out)
{
    PyObject *tuple = PySequence_Tuple(sequence);
    Py_ssize_t n = tuple == NULL ? -1 : PyTuple_Size(tuple);
    fxtap_verify_value *values = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *values);
    if (n >= 0 && values == NULL) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; values != NULL && i < n; i++) {
        unsigned long long hash;
        int differs;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "Kp:value", &hash, &differs)) {
            PyMem_Free(values);
            values = NULL;
        } else {
            values[i] = (fxtap_verify_value){hash, differs != 0};
        }
    }
    Py_XDECREF(tuple);
    *out = values;
    return values == NULL ? -1 : n;
}

static PyObject *add_place(verification_object *self, fxtap_verify_place *place, const char *verdict_name,
                           const char *reason)
{
    fxtap_verify_verdict verdict;
    fxtap_status status = fxtap_verify_verdict_from_name(verdict_name, &verdict);
    if (status == FXTAP_OK) {
        reason = reason == NULL || reason[0] == '\0' ? NULL : reason; /* none: what judging found */
        status = fxtap_verification_add(self->handle, place, verdict, reason);
    }
    return status == FXTAP_OK ? Py_NewRef(Py_None) : fx_raise(status);
}

static PyObject *add(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rank",      "graph", "step",  "node",    "op",     "slot", "source",
                            "module",    "dtype", "shape", "verdict", "reason", "call", "order",
                            "distances", "alone", "value", "inputs",  NULL};
    fxtap_verify_place place;
    fxtap_verify_place_init(&place);
    const char *dtype, *verdict_name, *reason = NULL;
    PyObject *shape, *inputs = NULL;
    unsigned long long hash = 0;
    long long step, call = -1, order = -1;
    int is_alone = 0, differs = 0;
    int64_t extents[FXTAP_MAX_DIMS];
    verification_object *self = enter(object);
    if (self == NULL || !PyArg_ParseTupleAndKeywords(
                            args, kwargs, "iILsss(siss)ssOs|z$LL(ddd)p(Kp)O:add", names, &place.rank, &place.graph,
                            &step, &place.node, &place.operator_name, &place.slot, &place.source_file,
                            &place.source_line, &place.source_function, &place.source_code, &place.module_path, &dtype,
                            &shape, &verdict_name, &reason, &call, &order, &place.distances.golden,
                            &place.distances.target, &place.distances.rounding, &is_alone, &hash, &differs, &inputs)) {
        return NULL;
    }
    place.step = step;
    place.call = call;
    place.order = order;
    place.is_alone = is_alone != 0;
    place.value = (fxtap_verify_value){hash, differs != 0};
    place.shape = extents;
    place.ndim = read_shape(shape, extents);
    if (place.ndim < 0 || !dtype_of(dtype[0] == '\0' ? NULL : dtype, &place.dtype)) {
        return NULL;
    }
    fxtap_verify_value *values = NULL;
    Py_ssize_t n_inputs = inputs == NULL ? 0 : read_values(inputs, &values);
    if (n_inputs < 0) {
        return NULL;
    }
    place.inputs = values;
    place.n_inputs = (size_t)n_inputs;
    PyObject *added = add_place(self, &place, verdict_name, reason);
    PyMem_Free(values);
    return added;
}

/* ---- the whole ---- */

static PyObject *print_with(verification_object *self, const fxtap_report_options *options)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_status status;
    self->is_busy = true;
    Py_BEGIN_ALLOW_THREADS status = fxtap_verification_print(self->handle, options, &text);
    Py_END_ALLOW_THREADS self->is_busy = false;
    PyObject *bytes =
        status == FXTAP_OK ? PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.length) : fx_raise(status);
    fxtap_buffer_clear(&text);
    return bytes;
}

static PyObject *print(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"format", "width", "colour", "ascii", "quiet", NULL};
    int format, width = 0, colour = 0, ascii = 0, quiet = 0;
    verification_object *self = enter(object);
    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "i|$ippp:print", names, &format, &width, &colour, &ascii, &quiet)) {
        return NULL;
    }
    fxtap_report_options options = {.struct_size = sizeof options,
                                    .format = (fxtap_report_format)format,
                                    .width = width,
                                    .colour = colour != 0,
                                    .ascii = ascii != 0,
                                    .quiet = quiet != 0};
    return print_with(self, &options);
}

static PyObject *serialise(PyObject *object, PyObject *unused)
{
    (void)unused;
    verification_object *self = enter(object);
    void *data = NULL;
    size_t n_bytes = 0;
    if (self == NULL) {
        return NULL;
    }
    fxtap_status status = fxtap_verification_serialise(self->handle, &data, &n_bytes);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)n_bytes);
    fxtap_free(data);
    return bytes;
}

static PyObject *get_verdict(PyObject *object, void *closure)
{
    (void)closure;
    verification_object *self = enter(object);
    return self == NULL ? NULL
                        : PyUnicode_FromString(fxtap_verification_is_wrong(self->handle) ? "wrong" : "nothing wrong");
}

static PyObject *get_counts(PyObject *object, void *closure)
{
    (void)closure;
    verification_object *self = enter(object);
    PyObject *dict = self == NULL ? NULL : PyDict_New();
    for (int v = 0; dict != NULL && v < FXTAP_VERIFY_COUNT; v++) {
        uint64_t n = fxtap_verification_count(self->handle, (fxtap_verify_verdict)v);
        if (fx_dict_put(dict, fxtap_verify_verdict_name((fxtap_verify_verdict)v), PyLong_FromUnsignedLongLong(n)) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* A member of the JSON: one description of an operator serves programs and Python. */
static PyObject *get_json(PyObject *object, void *closure)
{
    const fxtap_report_options options = {.struct_size = sizeof options, .format = FXTAP_REPORT_JSON};
    verification_object *self = enter(object);
    PyObject *text = self == NULL ? NULL : print_with(self, &options);
    PyObject *json = text == NULL ? NULL : PyImport_ImportModule("json");
    PyObject *document = json == NULL ? NULL : PyObject_CallMethod(json, "loads", "O", text);
    PyObject *member = document == NULL ? NULL : PyMapping_GetItemString(document, closure);
    Py_XDECREF(document);
    Py_XDECREF(json);
    Py_XDECREF(text);
    return member;
}

fxtap_verification *fx_verification_of(PyObject *module, PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)fx_state_of_module(module)->verification_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Verification");
        return NULL;
    }
    verification_object *self = enter(object);
    return self == NULL ? NULL : self->handle;
}

PyObject *fx_merge_verifications_function(PyObject *module, PyObject *shards)
{
    PyObject *tuple = PySequence_Tuple(shards);
    if (tuple == NULL) {
        return NULL;
    }
    size_t n = (size_t)PyTuple_Size(tuple);
    const void **bytes = PyMem_Calloc(n + 1, sizeof *bytes);
    size_t *n_bytes = PyMem_Calloc(n + 1, sizeof *n_bytes);
    fxtap_verification *merged = NULL;
    if (bytes == NULL || n_bytes == NULL) {
        PyErr_NoMemory();
    } else if (fx_list_shards(tuple, bytes, n_bytes)) {
        fxtap_status status;
        Py_BEGIN_ALLOW_THREADS status = fxtap_verification_merge(bytes, n_bytes, n, &merged);
        Py_END_ALLOW_THREADS if (status != FXTAP_OK)
        {
            fx_raise(status);
        }
    }
    PyMem_Free(bytes);
    PyMem_Free(n_bytes);
    Py_DECREF(tuple);
    return merged == NULL ? NULL : wrap((PyTypeObject *)fx_state_of_module(module)->verification_type, merged);
}

static PyGetSetDef getters[] = {
    {"verdict", get_verdict, NULL, NULL, NULL},
    {"counts", get_counts, NULL, NULL, NULL},
    {"wrong", get_json, NULL, NULL, "wrong"},
    {"operators", get_json, NULL, NULL, "operators"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"judge", (PyCFunction)(void (*)(void))judge, METH_VARARGS | METH_KEYWORDS, NULL},
    {"add", (PyCFunction)(void (*)(void))add, METH_VARARGS | METH_KEYWORDS, NULL},
    {"print", (PyCFunction)(void (*)(void))print, METH_VARARGS | METH_KEYWORDS, NULL},
    {"serialise", serialise, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Results judged and collected (include/fxtap/verify.h)."},
    {Py_tp_new, new_verification},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec fx_verification_spec = {
    .name = "fxtap._core.Verification",
    .basicsize = sizeof(verification_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
