/*
 * values_type.c - the type fxtap._core.Values: the data of an open .npy file as a read-only buffer. A mapping keeps no
 * descriptor open, so the number of mappings is not limited by it; each mmap object of Python keeps one.
 */
#include "errors.h"
#include "reader.h"

typedef struct values_object {
    PyObject_HEAD fxtap_npy *npy; /* never changed: any thread may read it */
} values_object;

static const fxtap_npy *file_of(PyObject *self)
{
    return ((values_object *)self)->npy;
}

PyObject *fx_values_new(fx_state *state, fxtap_npy *npy)
{
    values_object *self = (values_object *)fx_object_new(state->values_type);
    if (self == NULL) {
        fxtap_npy_close(npy);
        return NULL;
    }
    self->npy = npy;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    fxtap_npy_close(((values_object *)self)->npy);
    fx_object_free(self);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    const fxtap_npy *npy = file_of(self);
    void *data = (void *)(uintptr_t)fxtap_npy_view(npy)->data; /* not written to: the buffer is read-only */
    return PyBuffer_FillInfo(view, self, data, (Py_ssize_t)fxtap_npy_data_bytes(npy), 1, flags);
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    const fxtap_view *view = fxtap_npy_view(file_of(self));
    return fx_py_integers(view->shape, view->ndim);
}

static PyObject *get_descr(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(fxtap_npy_descr(file_of(self)));
}

static PyObject *get_fortran_order(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(fxtap_npy_fortran_order(file_of(self)));
}

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, NULL, NULL},
    {"descr", get_descr, NULL, NULL, NULL},
    {"fortran_order", get_fortran_order, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The data of an .npy file: a read-only buffer."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getters},
    {Py_bf_getbuffer, get_buffer},
    {0, NULL},
};

PyType_Spec fx_values_spec = {
    .name = "fxtap._core.Values",
    .basicsize = sizeof(values_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
