/* record_schema.c - flags, argument names and target text of a node, from its operator's schema and tags. */
#include <string.h>

#include "effect.h"
#include "record.h"

static uint32_t flags_of_name(const char *target)
{
    uint32_t flags = strncmp(target, "aten.", 5) == 0 ? FXTAP_NODE_TARGET_ATEN : 0u;
    if (fx_is_undefined(target)) {
        flags |= FXTAP_NODE_UNDEFINED | FXTAP_NODE_TRACKED;
    }
    bool is_collective =
        strncmp(target, "_c10d_functional.", 17) == 0 || strncmp(target, "_c10d_functional_autograd.", 26) == 0;
    if (is_collective && strstr(target, ".wait_tensor.") == NULL) {
        flags |= FXTAP_NODE_ASYNC;
    }
    return flags;
}

/* FXTAP_NODE_MUTATES or FXTAP_NODE_VIEW for an argument's alias; -1 with an exception. */
static int alias_flags(PyObject *argument)
{
    PyObject *alias = PyObject_GetAttrString(argument, "alias_info");
    if (alias == NULL || alias == Py_None) {
        int status = alias == NULL ? -1 : 0;
        Py_XDECREF(alias);
        return status;
    }
    PyObject *is_write = PyObject_GetAttrString(alias, "is_write");
    Py_DECREF(alias);
    int written = is_write == NULL ? -1 : PyObject_IsTrue(is_write);
    Py_XDECREF(is_write);
    return written < 0 ? -1 : (int)(written ? FXTAP_NODE_MUTATES : FXTAP_NODE_VIEW);
}

/* Names of the schema's arguments, as a tuple of bytes; adds to *flags. */
static PyObject *argument_names(PyObject *target, const char *text, uint32_t *flags)
{
    PyObject *schema = PyObject_GetAttrString(target, "_schema");
    PyObject *arguments = schema == NULL ? NULL : PyObject_GetAttrString(schema, "arguments");
    Py_ssize_t n = arguments == NULL ? -1 : PySequence_Size(arguments);
    PyObject *names = n < 0 ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; names != NULL && i < n; i++) {
        PyObject *argument = PySequence_GetItem(arguments, i);
        PyObject *name = argument == NULL ? NULL : PyObject_GetAttrString(argument, "name");
        PyObject *bytes = name == NULL ? NULL : fx_utf8(name);
        int alias = bytes == NULL ? -1 : alias_flags(argument);
        Py_XDECREF(argument);
        Py_XDECREF(name);
        if (alias < 0) {
            Py_XDECREF(bytes);
            Py_CLEAR(names);
            break;
        }
        *flags |= (uint32_t)alias;
        if (fx_is_hidden_mutation(text, PyBytes_AsString(bytes))) {
            *flags |= FXTAP_NODE_MUTATES;
        }
        PyTuple_SetItem(names, i, bytes);
    }
    if ((*flags & FXTAP_NODE_MUTATES) != 0) {
        *flags &= ~FXTAP_NODE_VIEW; /* aliases the argument that it mutated */
    }
    Py_XDECREF(schema);
    Py_XDECREF(arguments);
    return names;
}

static int add_random(fx_state *state, PyObject *target, uint32_t *flags)
{
    PyObject *tags = PyObject_GetAttrString(target, "tags");
    int is_random = tags == NULL ? -1 : PySequence_Contains(tags, state->random_tag);
    Py_XDECREF(tags);
    if (is_random > 0) {
        *flags |= FXTAP_NODE_RANDOM;
    }
    return is_random < 0 ? -1 : 0;
}

static PyObject *make_schema(fx_recorder *r, PyObject *target)
{
    if (!PyObject_TypeCheck(target, (PyTypeObject *)r->state->op_overload_type)) {
        return Py_BuildValue("(I())", 0u);
    }
    PyObject *text = fx_text_of(target);
    if (text == NULL) {
        return NULL;
    }
    const char *string = PyBytes_AsString(text);
    uint32_t flags = flags_of_name(string);
    PyObject *names = add_random(r->state, target, &flags) < 0 ? NULL : argument_names(target, string, &flags);
    Py_DECREF(text);
    return names == NULL ? NULL : Py_BuildValue("(IN)", flags, names);
}

PyObject *fx_record_schema(fx_recorder *r, PyObject *target)
{
    PyObject *schema = PyDict_GetItemWithError(r->schemas, target);
    if (schema != NULL || PyErr_Occurred()) {
        return schema;
    }
    schema = make_schema(r, target);
    if (schema == NULL || PyDict_SetItem(r->schemas, target, schema) < 0) {
        Py_XDECREF(schema);
        return NULL;
    }
    Py_DECREF(schema); /* the dict owns it */
    return schema;
}

/* ---- targets ---- */

/* "operator.mul", "math.floor", "torch.sym_max": module and name of a Python function; NULL without an exception if it
 * has none. */
static PyObject *function_text(PyObject *target)
{
    PyObject *module;
    PyObject *name;
    int has_name = fx_optional_attr(target, "__qualname__", &name);
    if (has_name <= 0) {
        return NULL;
    }
    int has_module = fx_optional_attr(target, "__module__", &module);
    PyObject *text = NULL;
    if (has_module > 0 && PyUnicode_Check(module)) {
        bool is_operator = PyUnicode_CompareWithASCIIString(module, "_operator") == 0;
        text = is_operator ? PyUnicode_FromFormat("operator.%U", name) : PyUnicode_FromFormat("%U.%U", module, name);
    } else if (has_module >= 0) {
        text = Py_NewRef(name);
    }
    Py_XDECREF(module);
    Py_DECREF(name);
    PyObject *bytes = text == NULL ? NULL : fx_utf8(text);
    Py_XDECREF(text);
    return bytes;
}

static PyObject *prefixed(const char *prefix, PyObject *text)
{
    return text == NULL ? NULL : PyBytes_FromFormat("%s%s", prefix, PyBytes_AsString(text));
}

int fx_record_target(fx_state *state, PyObject *target, PyObject **text_out, PyObject **python_out)
{
    PyTypeObject *overload = (PyTypeObject *)state->op_overload_type;
    PyTypeObject *packet = (PyTypeObject *)state->op_packet_type;
    const char *prefix = NULL;
    *python_out = NULL;
    if (PyUnicode_Check(target)) {
        *text_out = fx_utf8(target);
        return *text_out == NULL ? -1 : 0;
    }
    if (PyObject_TypeCheck(target, overload) || PyObject_TypeCheck(target, packet)) {
        prefix = "torch.ops.";
    } else if (PyObject_TypeCheck(target, (PyTypeObject *)state->higher_order_type)) {
        prefix = "torch.ops.higher_order.";
    }
    if (prefix != NULL) {
        *text_out = fx_text_of(target);
        *python_out = prefixed(prefix, *text_out);
        if (*python_out == NULL) {
            Py_CLEAR(*text_out);
        }
        return *python_out == NULL ? -1 : 0;
    }
    *text_out = function_text(target);
    if (*text_out == NULL && !PyErr_Occurred()) {
        *text_out = fx_text_of(target);
    }
    return *text_out == NULL ? -1 : 0;
}
