/* graph_type.c - the type fxtap._core.Graph: a graph record in Python. */
#include <string.h>

#include "errors.h"
#include "record.h"

typedef struct graph_object {
    PyObject_HEAD fxtap_graph *owned; /* NULL for a subgraph */
    const fxtap_graph *graph;
    PyObject *outer; /* the Graph that owns a subgraph; NULL otherwise */
} graph_object;

static PyObject *make(fx_state *state, fxtap_graph *owned, const fxtap_graph *graph, PyObject *outer)
{
    graph_object *self = (graph_object *)fx_object_new(state->graph_type);
    if (self == NULL) {
        fxtap_graph_free(owned);
        return NULL;
    }
    self->owned = owned;
    self->graph = graph;
    self->outer = Py_XNewRef(outer);
    return (PyObject *)self;
}

PyObject *fx_graph_new(fx_state *state, fxtap_graph *graph)
{
    return make(state, graph, graph, NULL);
}

const fxtap_graph *fx_graph_of(fx_state *state, PyObject *object)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->graph_type)) {
        PyErr_Format(PyExc_TypeError, "expected a Graph, got %R", Py_TYPE(object));
        return NULL;
    }
    return ((graph_object *)object)->graph;
}

static const fxtap_graph *graph_of(PyObject *self)
{
    return ((graph_object *)self)->graph;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((graph_object *)self)->outer);
    return 0;
}

static int clear(PyObject *self)
{
    (void)self; /* `outer` never refers back to us, so we are not part of a cycle */
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    graph_object *object = (graph_object *)self;
    fxtap_graph_free(object->owned);
    Py_XDECREF(object->outer);
    fx_object_free(self);
}

static PyObject *text_or_empty(const char *text)
{
    return text == NULL ? PyUnicode_FromString("")
                        : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogatepass");
}

static PyObject *get_kind(PyObject *self, void *Py_UNUSED(closure))
{
    switch (fxtap_graph_kind_of(graph_of(self))) {
    case FXTAP_GRAPH_INFERENCE:
        return PyUnicode_FromString("inference");
    case FXTAP_GRAPH_FORWARD:
        return PyUnicode_FromString("forward");
    case FXTAP_GRAPH_BACKWARD:
        return PyUnicode_FromString("backward");
    case FXTAP_GRAPH_SUBGRAPH:
        return PyUnicode_FromString("subgraph");
    }
    return PyUnicode_FromString("");
}

/* ---- one entry per node ---- */

typedef struct node_field {
    PyObject *(*get)(const fxtap_graph *graph, fxtap_node node, const fxtap_node_desc *desc); /* NULL: a text */
    size_t offset; /* of the text in the description */
} node_field;

static PyObject *get_node_field(PyObject *self, void *closure)
{
    const node_field *field = closure;
    const fxtap_graph *graph = graph_of(self);
    size_t n = fxtap_graph_node_count(graph);
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple != NULL && i < n; i++) {
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        fxtap_status status = fxtap_graph_node(graph, (fxtap_node)i, &desc);
        PyObject *item = status != FXTAP_OK   ? fx_raise(status)
                         : field->get != NULL ? field->get(graph, (fxtap_node)i, &desc)
                                              : text_or_empty(*(const char **)((char *)&desc + field->offset));
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
    }
    return tuple;
}

static PyObject *node_op(const fxtap_graph *graph, fxtap_node node, const fxtap_node_desc *desc)
{
    static const char *const names[] = {"",       "placeholder", "call_function", "get_attr",
                                        "output", "call_module", "call_method"};
    (void)graph;
    (void)node;
    return PyUnicode_FromString(names[desc->op]);
}

static PyObject *node_source(const fxtap_graph *graph, fxtap_node node, const fxtap_node_desc *desc)
{
    const char *file;
    const char *function;
    const char *code;
    int32_t line;
    (void)desc;
    fxtap_graph_source(graph, node, &file, &line, &function, &code);
    return Py_BuildValue("(NiNN)", text_or_empty(file), (int)line, text_or_empty(function), text_or_empty(code));
}

static PyObject *node_flags(const fxtap_graph *graph, fxtap_node node, const fxtap_node_desc *desc)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } flags[] = {{FXTAP_NODE_MUTATES, "mutates"}, {FXTAP_NODE_UNDEFINED, "undefined"}, {FXTAP_NODE_RANDOM, "random"},
                 {FXTAP_NODE_ASYNC, "async"},     {FXTAP_NODE_TARGET_ATEN, "aten"},    {FXTAP_NODE_VIEW, "view"},
                 {FXTAP_NODE_WEIGHT, "weight"}};
    (void)graph;
    (void)node;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < sizeof flags / sizeof *flags; i++) {
        if ((desc->flags & flags[i].flag) != 0) {
            PyObject *name = PyUnicode_FromString(flags[i].name);
            if (name == NULL || PyList_Append(list, name) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(name);
        }
    }
    PyObject *set = list == NULL ? NULL : PyFrozenSet_New(list);
    Py_XDECREF(list);
    return set;
}

static node_field name_field = {NULL, offsetof(fxtap_node_desc, name)};
static node_field target_field = {NULL, offsetof(fxtap_node_desc, target)};
static node_field stack_field = {NULL, offsetof(fxtap_node_desc, stack_trace)};
static node_field module_path_field = {NULL, offsetof(fxtap_node_desc, module_path)};
static node_field module_type_field = {NULL, offsetof(fxtap_node_desc, module_type)};
static node_field op_field = {node_op, 0};
static node_field flags_field = {node_flags, 0};
static node_field source_field = {node_source, 0};

/* ---- the whole graph ---- */

static PyObject *hex_key(fxtap_hash128 key)
{
    static const char digits[] = "0123456789abcdef";
    char text[33];
    for (int i = 0; i < 16; i++) {
        text[i] = digits[key.high >> (60 - 4 * i) & 15];
        text[16 + i] = digits[key.low >> (60 - 4 * i) & 15];
    }
    text[32] = '\0';
    return PyUnicode_FromString(text);
}

static PyObject *get_strict_key(PyObject *self, void *Py_UNUSED(closure))
{
    return hex_key(fxtap_graph_strict_key(graph_of(self)));
}

static PyObject *get_structural_key(PyObject *self, void *Py_UNUSED(closure))
{
    return hex_key(fxtap_graph_structural_key(graph_of(self)));
}

static PyObject *get_subgraphs(PyObject *self, void *Py_UNUSED(closure))
{
    size_t n = fxtap_graph_subgraph_count(graph_of(self));
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = make(fx_state_of(self), NULL, fxtap_graph_subgraph(graph_of(self), i), self);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
    }
    return tuple;
}

static PyObject *serialise(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    void *bytes;
    size_t n_bytes;
    fxtap_status status = fxtap_graph_serialise(graph_of(self), &bytes, &n_bytes);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n_bytes);
    fxtap_free(bytes);
    return result;
}

static PyObject *from_bytes(PyObject *type, PyObject *data)
{
    char *bytes;
    Py_ssize_t n_bytes;
    if (PyBytes_AsStringAndSize(data, &bytes, &n_bytes) < 0) {
        return NULL;
    }
    fxtap_graph *graph;
    fxtap_status status = fxtap_graph_deserialise(bytes, (size_t)n_bytes, &graph);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    return fx_graph_new((fx_state *)PyType_GetModuleState((PyTypeObject *)type), graph);
}

static Py_ssize_t length(PyObject *self)
{
    return (Py_ssize_t)fxtap_graph_node_count(graph_of(self));
}

static PyGetSetDef getset[] = {
    {"kind", get_kind, NULL, NULL, NULL},
    {"names", get_node_field, NULL, NULL, &name_field},
    {"ops", get_node_field, NULL, NULL, &op_field},
    {"targets", get_node_field, NULL, NULL, &target_field},
    {"flags", get_node_field, NULL, NULL, &flags_field},
    {"stack_traces", get_node_field, NULL, NULL, &stack_field},
    {"module_paths", get_node_field, NULL, NULL, &module_path_field},
    {"module_types", get_node_field, NULL, NULL, &module_type_field},
    {"sources", get_node_field, NULL, NULL, &source_field},
    {"strict_key", get_strict_key, NULL, NULL, NULL},
    {"structural_key", get_structural_key, NULL, NULL, NULL},
    {"subgraphs", get_subgraphs, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"serialise", serialise, METH_NOARGS, PyDoc_STR("The record as bytes.")},
    {"from_bytes", from_bytes, METH_O | METH_CLASS, PyDoc_STR("Restore a record from the bytes of serialise.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, PyDoc_STR("A graph record, independent of torch.")},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_sq_length, length},
    {0, NULL},
};

PyType_Spec fx_graph_spec = {
    .name = "fxtap._core.Graph",
    .basicsize = sizeof(graph_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
