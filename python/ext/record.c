/* record.c - adds the nodes of a torch.fx graph to a graph record. */
#include "record.h"

#include <string.h>

#include "errors.h"

/* Storage for a node's description while it is added. */
typedef struct node_parts {
    PyObject *op;
    PyObject *name;
    PyObject *target;
    PyObject *python;
    PyObject *stack;
    PyObject *module_path;
    PyObject *module_type;
    PyObject *kwarg_keys; /* list of bytes */
    fxtap_value *args;
    const char **arg_names;
    const char **kwarg_names;
    fxtap_value *kwargs;
} node_parts;

static void clear_parts(node_parts *parts)
{
    Py_XDECREF(parts->op);
    Py_XDECREF(parts->name);
    Py_XDECREF(parts->target);
    Py_XDECREF(parts->python);
    Py_XDECREF(parts->stack);
    Py_XDECREF(parts->module_path);
    Py_XDECREF(parts->module_type);
    Py_XDECREF(parts->kwarg_keys);
    PyMem_Free(parts->args);
    PyMem_Free(parts->arg_names);
    PyMem_Free(parts->kwarg_names);
    PyMem_Free(parts->kwargs);
}

static fxtap_node_op op_of(const char *name)
{
    static const char *const names[] = {
        [FXTAP_OP_PLACEHOLDER] = "placeholder", [FXTAP_OP_CALL_FUNCTION] = "call_function",
        [FXTAP_OP_GET_ATTR] = "get_attr",       [FXTAP_OP_OUTPUT] = "output",
        [FXTAP_OP_CALL_MODULE] = "call_module", [FXTAP_OP_CALL_METHOD] = "call_method",
    };
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            return (fxtap_node_op)i;
        }
    }
    return 0;
}

static int set_args(fx_recorder *r, PyObject *args, PyObject *names, node_parts *parts, fxtap_node_desc *desc)
{
    Py_ssize_t n = PyTuple_Size(args);
    parts->args = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *parts->args);
    parts->arg_names = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *parts->arg_names);
    if (parts->args == NULL || parts->arg_names == NULL) {
        return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    }
    Py_ssize_t n_names = names == NULL ? 0 : PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (fx_record_value(r, PyTuple_GetItem(args, i), &parts->args[i]) < 0) {
            return -1;
        }
        parts->arg_names[i] = i < n_names ? PyBytes_AsString(PyTuple_GetItem(names, i)) : NULL;
    }
    desc->args = parts->args;
    desc->arg_names = parts->arg_names;
    desc->n_args = (size_t)n;
    return 0;
}

static int set_kwargs(fx_recorder *r, PyObject *kwargs, node_parts *parts, fxtap_node_desc *desc)
{
    Py_ssize_t n = PyDict_Size(kwargs);
    if (n <= 0) {
        return n < 0 ? -1 : 0;
    }
    parts->kwarg_keys = PyList_New(0);
    parts->kwarg_names = PyMem_Calloc((size_t)n, sizeof *parts->kwarg_names);
    parts->kwargs = PyMem_Calloc((size_t)n, sizeof *parts->kwargs);
    if (parts->kwarg_keys == NULL || parts->kwarg_names == NULL || parts->kwargs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *key;
    PyObject *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(kwargs, &position, &key, &value); i++) {
        PyObject *text = fx_text_of(key);
        if (text == NULL || PyList_Append(parts->kwarg_keys, text) < 0) {
            Py_XDECREF(text);
            return -1;
        }
        parts->kwarg_names[i] = PyBytes_AsString(text);
        Py_DECREF(text); /* the list owns it */
        if (fx_record_value(r, value, &parts->kwargs[i]) < 0) {
            return -1;
        }
    }
    desc->kwarg_names = parts->kwarg_names;
    desc->kwarg_values = parts->kwargs;
    desc->n_kwargs = (size_t)n;
    return 0;
}

/* The type of a module as text: "torch.nn.modules.linear.Linear". Dynamo gives classes or their names. */
static PyObject *type_text(PyObject *type)
{
    if (!PyType_Check(type)) {
        return fx_text_of(type);
    }
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    PyObject *name = module == NULL ? NULL : PyObject_GetAttrString(type, "__qualname__");
    PyObject *text = name == NULL ? NULL : PyUnicode_FromFormat("%S.%U", module, name);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(text);
    return bytes;
}

/* The innermost module: the last entry of the stack, key -> (path, type). */
static int set_module(PyObject *meta, node_parts *parts, fxtap_node_desc *desc)
{
    PyObject *stack = PyDict_GetItemString(meta, "nn_module_stack");
    if (stack == NULL || !PyDict_Check(stack) || PyDict_Size(stack) == 0) {
        stack = PyDict_GetItemString(meta, "fwd_nn_module_stack"); /* a backward node's */
    }
    if (stack == NULL || !PyDict_Check(stack) || PyDict_Size(stack) == 0) {
        return 0;
    }
    PyObject *key;
    PyObject *last = NULL;
    Py_ssize_t position = 0;
    while (PyDict_Next(stack, &position, &key, &last)) {
    }
    if (!PyTuple_Check(last) || PyTuple_Size(last) != 2) {
        return 0;
    }
    parts->module_path = fx_text_of(PyTuple_GetItem(last, 0));
    parts->module_type = parts->module_path == NULL ? NULL : type_text(PyTuple_GetItem(last, 1));
    if (parts->module_type == NULL) {
        return -1;
    }
    desc->module_path = PyBytes_AsString(parts->module_path);
    desc->module_type = PyBytes_AsString(parts->module_type);
    return 0;
}

static int set_stack(PyObject *meta, node_parts *parts, fxtap_node_desc *desc)
{
    PyObject *stack = PyDict_GetItemString(meta, "stack_trace");
    if (stack != NULL && PyUnicode_Check(stack)) {
        parts->stack = fx_utf8(stack);
        if (parts->stack == NULL) {
            return -1;
        }
        desc->stack_trace = PyBytes_AsString(parts->stack);
    }
    return 0;
}

/* ---- attributes of the module ---- */

static int record_subgraph(fx_recorder *r, PyObject *module, fxtap_value *out)
{
    PyObject *known = PyDict_GetItemWithError(r->subgraphs, module);
    if (known != NULL || PyErr_Occurred()) {
        *out = known == NULL ? 0 : (fxtap_value)PyLong_AsUnsignedLong(known);
        return known == NULL ? -1 : 0;
    }
    fxtap_graph *subgraph = fx_record_nested(r, module);
    if (subgraph == NULL) {
        return -1;
    }
    fxtap_status status = fxtap_graph_add_subgraph(r->graph, subgraph, out);
    if (status != FXTAP_OK) {
        fxtap_graph_free(subgraph);
        fx_raise(status);
        return -1;
    }
    PyObject *handle = PyLong_FromUnsignedLong(*out);
    int failed = handle == NULL ? -1 : PyDict_SetItem(r->subgraphs, module, handle);
    Py_XDECREF(handle);
    return failed;
}

/* The result of a get_attr node: a subgraph, or a tensor with its values. */
static int record_attribute(fx_recorder *r, const char *path, PyObject *meta, fxtap_value *out)
{
    PyObject *value = fx_attribute(r->module, path);
    if (value == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear(); /* recorded as far as known; running the graph reports the error */
        return fx_record_yield(r, meta, out);
    }
    int status;
    if (PyObject_TypeCheck(value, (PyTypeObject *)r->state->graph_module_type)) {
        status = record_subgraph(r, value, out);
    } else if (PyObject_TypeCheck(value, (PyTypeObject *)r->state->tensor_type)) {
        status = fx_record_tensor(r, value, true, out);
    } else {
        status = fx_record_value(r, value, out);
    }
    Py_DECREF(value);
    return status;
}

/* ---- nodes ---- */

static int fill_node(fx_recorder *r, PyObject *node, PyObject *fields[4], node_parts *parts, fxtap_node_desc *desc)
{
    PyObject *target = fields[0];
    PyObject *meta = fields[3];
    PyObject *names = NULL;
    if (fx_record_target(r->state, target, &parts->target, &parts->python) < 0) {
        return -1;
    }
    desc->target = PyBytes_AsString(parts->target);
    desc->target_python = parts->python == NULL ? NULL : PyBytes_AsString(parts->python);
    if (desc->op == FXTAP_OP_CALL_FUNCTION) {
        PyObject *schema = fx_record_schema(r, target);
        if (schema == NULL) {
            return -1;
        }
        desc->flags = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(schema, 0));
        names = PyTuple_GetItem(schema, 1);
    }
    if (!PyDict_Check(meta)) {
        PyErr_Format(PyExc_TypeError, "node %S: meta is not a dict", node);
        return -1;
    }
    if (desc->op == FXTAP_OP_PLACEHOLDER && PyDict_GetItemString(meta, "fxtap_weight") != NULL) {
        desc->flags |= FXTAP_NODE_WEIGHT; /* set by weights.py */
    }
    if (set_args(r, fields[1], names, parts, desc) < 0 || set_kwargs(r, fields[2], parts, desc) < 0 ||
        set_stack(meta, parts, desc) < 0 || set_module(meta, parts, desc) < 0) {
        return -1;
    }
    return desc->op == FXTAP_OP_GET_ATTR ? record_attribute(r, desc->target, meta, &desc->meta)
                                         : fx_record_yield(r, meta, &desc->meta);
}

static int add_filled(fx_recorder *r, PyObject *node, const fxtap_node_desc *desc)
{
    fxtap_node number;
    fxtap_status status = fxtap_graph_add_node(r->graph, desc, &number);
    if (status != FXTAP_OK) {
        fx_raise(status);
        return -1;
    }
    PyObject *object = PyLong_FromUnsignedLong(number);
    int failed = object == NULL ? -1 : PyDict_SetItem(r->nodes, node, object);
    Py_XDECREF(object);
    return failed;
}

static int record_node(fx_recorder *r, PyObject *node)
{
    static const char *const names[4] = {"target", "args", "kwargs", "meta"};
    PyObject *fields[4] = {NULL, NULL, NULL, NULL};
    node_parts parts = {0};
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    int status = 0;
    for (size_t i = 0; status == 0 && i < 4; i++) {
        fields[i] = PyObject_GetAttrString(node, names[i]);
        status = fields[i] == NULL ? -1 : 0;
    }
    PyObject *op = status < 0 ? NULL : PyObject_GetAttrString(node, "op");
    PyObject *name = op == NULL ? NULL : PyObject_GetAttrString(node, "name");
    parts.op = name == NULL ? NULL : fx_utf8(op);
    parts.name = parts.op == NULL ? NULL : fx_utf8(name);
    status = -1;
    if (parts.name != NULL) {
        desc.op = op_of(PyBytes_AsString(parts.op));
        desc.name = PyBytes_AsString(parts.name);
        if (fill_node(r, node, fields, &parts, &desc) == 0) {
            status = add_filled(r, node, &desc);
        }
    }
    Py_XDECREF(op);
    Py_XDECREF(name);
    for (size_t i = 0; i < 4; i++) {
        Py_XDECREF(fields[i]);
    }
    clear_parts(&parts);
    return status;
}

/* ---- graphs ---- */

static int record_nodes(fx_recorder *r)
{
    PyObject *graph = PyObject_GetAttrString(r->module, "graph");
    PyObject *view = graph == NULL ? NULL : PyObject_GetAttrString(graph, "nodes");
    PyObject *nodes = view == NULL ? NULL : PySequence_List(view);
    int status = nodes == NULL ? -1 : 0;
    Py_ssize_t n = nodes == NULL ? 0 : PyList_Size(nodes);
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        status = record_node(r, PyList_GetItem(nodes, i));
    }
    Py_XDECREF(graph);
    Py_XDECREF(view);
    Py_XDECREF(nodes);
    return status;
}

static fxtap_graph *run_recorder(fx_recorder *r, fxtap_graph_kind kind)
{
    if (!PyObject_TypeCheck(r->module, (PyTypeObject *)r->state->graph_module_type)) {
        PyErr_Format(PyExc_TypeError, "expected a torch.fx.GraphModule, got %R", Py_TYPE(r->module));
        return NULL;
    }
    fxtap_status status = fxtap_graph_create(kind, &r->graph);
    if (status != FXTAP_OK) {
        fx_raise(status);
        return NULL;
    }
    r->nodes = PyDict_New();
    r->subgraphs = PyDict_New();
    if (r->nodes == NULL || r->subgraphs == NULL || record_nodes(r) < 0) {
        fxtap_graph_free(r->graph);
        r->graph = NULL;
    }
    Py_XDECREF(r->nodes);
    Py_XDECREF(r->subgraphs);
    return r->graph;
}

fxtap_graph *fx_record_nested(const fx_recorder *outer, PyObject *module)
{
    if (Py_EnterRecursiveCall(" in nested graphs")) {
        return NULL;
    }
    fx_recorder r = *outer;
    r.module = module;
    fxtap_graph *graph = run_recorder(&r, FXTAP_GRAPH_SUBGRAPH);
    Py_LeaveRecursiveCall();
    return graph;
}

fxtap_graph *fx_record_module(fx_state *state, PyObject *module, fxtap_graph_kind kind, uint64_t constant_bytes)
{
    fx_recorder r = {.state = state, .module = module, .constant_bytes = constant_bytes};
    r.schemas = PyDict_New();
    r.texts = PyDict_New();
    fxtap_graph *graph = r.schemas == NULL || r.texts == NULL ? NULL : run_recorder(&r, kind);
    Py_XDECREF(r.schemas);
    Py_XDECREF(r.texts);
    return graph;
}

static fxtap_graph_kind kind_of(const char *name)
{
    static const char *const names[] = {"inference", "forward", "backward"};
    static const fxtap_graph_kind kinds[] = {FXTAP_GRAPH_INFERENCE, FXTAP_GRAPH_FORWARD, FXTAP_GRAPH_BACKWARD};
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(names[i], name) == 0) {
            return kinds[i];
        }
    }
    return 0;
}

PyObject *fx_record_function(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"gm", "kind", "constant_bytes", NULL};
    PyObject *gm;
    const char *kind_name = "inference";
    unsigned long long constant_bytes = 1u << 20;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s$K:record", names, &gm, &kind_name, &constant_bytes)) {
        return NULL;
    }
    fxtap_graph_kind kind = kind_of(kind_name);
    if (kind == 0) {
        return PyErr_Format(PyExc_ValueError, "kind must be inference, forward or backward, not '%s'", kind_name);
    }
    fx_state *state = fx_state_of_module(module);
    if (fx_state_torch(state) < 0) {
        return NULL;
    }
    fxtap_graph *graph = fx_record_module(state, gm, kind, constant_bytes);
    return graph == NULL ? NULL : fx_graph_new(state, graph);
}
