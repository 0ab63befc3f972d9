#include "dump_type.h"

#include <string.h>

#include "errors.h"
#include "team.h"

typedef struct dump_object {
    PyObject_HEAD fxtap_dump *handle; /* NULL: closed. All fields are changed with the GIL held */
    PyObject *rank_path;
    size_t n_calls;          /* running ones */
    unsigned int generation; /* rises with each fork */
    bool is_closing;         /* the last running call closes it */
    bool has_warned;
    bool is_sync;
} dump_object;

fxtap_dump *fx_dump_handle(PyObject *dump)
{
    dump_object *self = (dump_object *)dump;
    return self->is_closing ? NULL : self->handle;
}

bool fx_dump_is_sync(PyObject *dump)
{
    return ((dump_object *)dump)->is_sync;
}

static void close_handle(dump_object *self)
{
    fxtap_dump *handle = self->handle;
    self->handle = NULL;
    Py_BEGIN_ALLOW_THREADS fxtap_dump_close(handle);
    Py_END_ALLOW_THREADS
}

bool fx_dump_enter(PyObject *dump, unsigned int *generation_out)
{
    dump_object *self = (dump_object *)dump;
    if (fx_dump_handle(dump) == NULL) {
        return false;
    }
    self->n_calls++;
    *generation_out = self->generation;
    return true;
}

void fx_dump_leave(PyObject *dump, unsigned int generation)
{
    dump_object *self = (dump_object *)dump;
    if (generation != self->generation) {
        return;
    }
    if (--self->n_calls == 0 && self->is_closing) {
        close_handle(self);
    }
}

const char *fx_dump_take_warning(PyObject *dump)
{
    dump_object *self = (dump_object *)dump;
    const char *warning = self->has_warned || self->handle == NULL ? NULL : fxtap_dump_warning(self->handle);
    self->has_warned = self->has_warned || warning != NULL;
    return warning;
}

static int set_type(const char *name, fxtap_dump_options *options)
{
    if (strcmp(name, "npy") == 0) {
        options->type = FXTAP_DUMP_NPY;
    } else if (strcmp(name, "stats") == 0) {
        options->type = FXTAP_DUMP_STATS;
    } else if (strcmp(name, "verify") == 0) {
        options->type = FXTAP_DUMP_VERIFY;
    } else {
        PyErr_Format(PyExc_ValueError, "type is npy, stats or verify, not '%s'", name);
        return -1;
    }
    return 0;
}

static PyObject *open_dump(PyTypeObject *type, const fxtap_dump_options *options)
{
    dump_object *self = (dump_object *)fx_object_new((PyObject *)type);
    if (self == NULL) {
        return NULL;
    }
    fxtap_status status;
    fxtap_dump *handle = NULL;
    Py_BEGIN_ALLOW_THREADS status = fxtap_dump_open(options, &handle);
    Py_END_ALLOW_THREADS self->handle = handle;
    if (status != FXTAP_OK) {
        fx_raise(status);
        Py_DECREF(self);
        return NULL;
    }
    self->is_sync = options->sync;
    self->rank_path = PyUnicode_DecodeFSDefault(fxtap_dump_rank_path(self->handle));
    if (self->rank_path == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Encodes a str as UTF-8: a new reference, and the text that it owns; neither for None. -1 with an exception. */
static int take_text(PyObject *text, PyObject **bytes_out, const char **text_out)
{
    if (text == NULL || text == Py_None) {
        return 0;
    }
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "versions and command are str or None, not %R", Py_TYPE(text));
        return -1;
    }
    *bytes_out = fx_utf8(text);
    *text_out = *bytes_out == NULL ? NULL : PyBytes_AsString(*bytes_out);
    return *bytes_out == NULL ? -1 : 0;
}

static PyObject *new_dump(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",        "world_size", "rank",         "type",     "sync",    "dedup",
                            "queue_bytes", "threads",    "lent_threads", "versions", "command", NULL};
    PyObject *path = NULL;
    PyObject *texts[2] = {NULL, NULL};
    PyObject *bytes[2] = {NULL, NULL};
    const char *type_name = "npy";
    int sync = 0;
    int dedup = 1;
    unsigned long long queue_bytes = 0;
    int lent_threads = 0;
    fxtap_dump_options options = {.struct_size = sizeof options, .world_size = 1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$iisppKiiOO:Dump", names, PyUnicode_FSConverter, &path,
                                     &options.world_size, &options.rank, &type_name, &sync, &dedup, &queue_bytes,
                                     &options.n_threads, &lent_threads, &texts[0], &texts[1])) {
        return NULL;
    }
    PyObject *self = NULL;
    if (set_type(type_name, &options) == 0 && take_text(texts[0], &bytes[0], &options.versions) == 0 &&
        take_text(texts[1], &bytes[1], &options.command) == 0) {
        options.path = PyBytes_AsString(path);
        options.sync = sync != 0;
        options.no_dedup = dedup == 0;
        options.queue_bytes = queue_bytes;
        options.team = lent_threads > 0 ? fx_team(lent_threads) : NULL;
        self = open_dump(type, &options);
    }
    Py_XDECREF(bytes[0]);
    Py_XDECREF(bytes[1]);
    Py_DECREF(path);
    return self;
}

static void dealloc(PyObject *object)
{
    dump_object *self = (dump_object *)object;
    PyObject_GC_UnTrack(object);
    if (self->handle != NULL) {
        close_handle(self);
    }
    Py_XDECREF(self->rank_path);
    fx_object_free(object);
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int clear(PyObject *self)
{
    (void)self; /* it has only a string */
    return 0;
}

static PyObject *close_dump(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    dump_object *self = (dump_object *)object;
    if (fx_dump_handle(object) != NULL) {
        if (self->n_calls > 0) {
            self->is_closing = true;
        } else {
            close_handle(self);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    dump_object *self = (dump_object *)object;
    self->generation++; /* the parent's other threads and their calls do not exist here */
    self->n_calls = 0;
    if (self->handle != NULL) {
        fxtap_dump_after_fork(self->handle);
        if (self->is_closing) {
            close_handle(self);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *get_rank_path(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((dump_object *)self)->rank_path);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(fx_dump_handle(self) == NULL);
}

static PyGetSetDef getset[] = {
    {"rank_path", get_rank_path, NULL, PyDoc_STR("The absolute path of the rank's folder."), NULL},
    {"closed", get_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"close", close_dump, METH_NOARGS, PyDoc_STR("Wait for pending jobs and close the index. Idempotent.")},
    {"after_fork", after_fork, METH_NOARGS, PyDoc_STR("Must be called first in a forked child.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, PyDoc_STR("One rank of a dump root, open for writing.")},
    {Py_tp_new, new_dump},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec fx_dump_spec = {
    .name = "fxtap._core.Dump",
    .basicsize = sizeof(dump_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
