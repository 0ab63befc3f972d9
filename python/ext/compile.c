/* compile.c - compiles torch.fx nodes to instructions. */
#include <string.h>

#include "effect.h"
#include "program.h"

typedef struct compiler {
    fx_program *program;
    PyObject *slots;      /* dict: node -> number */
    PyObject *effects;    /* dict: target -> index of its first instruction */
    uint32_t *last_use;   /* slot -> index of the last instruction that uses it, plus one; 0: never used */
    uint32_t instruction; /* index of the instruction being compiled */
} compiler;

static void note_use(void *context, uint32_t slot)
{
    compiler *c = context;
    c->last_use[slot] = c->instruction + 1;
}

static bool is_a(PyObject *object, PyObject *type)
{
    return PyObject_TypeCheck(object, (PyTypeObject *)type);
}

/* The callable of a call_function target. */
static PyObject *callable_of(fx_state *state, PyObject *target)
{
    if (Py_TYPE(target) == (PyTypeObject *)state->op_overload_type) {
        /* OpOverload.__call__ only calls this function, which handles modes and subclasses. */
        return PyObject_GetAttrString(target, "_op");
    }
    return Py_NewRef(target);
}

static PyObject *path_of(PyObject *target)
{
    PyObject *parts = PyObject_CallMethod(target, "split", "s", ".");
    PyObject *path = parts == NULL ? NULL : PyList_AsTuple(parts);
    Py_XDECREF(parts);
    return path;
}

static int set_effect(compiler *c, fx_instruction *out, PyObject *target)
{
    PyObject *first = PyDict_GetItemWithError(c->effects, target);
    if (first != NULL) {
        return fx_effect_copy(&c->program->instructions[PyLong_AsUnsignedLong(first)], out);
    }
    if (PyErr_Occurred() || fx_effect_of(c->program->state, target, out) < 0) {
        return -1;
    }
    PyObject *index = PyLong_FromUnsignedLong(c->instruction);
    int status = index == NULL ? -1 : PyDict_SetItem(c->effects, target, index);
    Py_XDECREF(index);
    return status;
}

static int set_action(compiler *c, fx_instruction *out, const char *op, PyObject *target)
{
    fx_state *state = c->program->state;
    if (strcmp(op, "call_function") == 0) {
        out->action = FX_CALL;
        out->callable = callable_of(state, target);
        return out->callable == NULL ? -1 : set_effect(c, out, target);
    }
    if (strcmp(op, "call_method") == 0) {
        out->action = FX_METHOD;
        out->callable = Py_NewRef(target);
        out->effect = FX_UNKNOWN;
    } else if (strcmp(op, "call_module") == 0) {
        out->action = FX_MODULE;
        out->callable = path_of(target);
        out->effect = FX_UNKNOWN;
    } else if (strcmp(op, "get_attr") == 0) {
        out->action = FX_ATTRIBUTE;
        out->callable = path_of(target);
    } else if (strcmp(op, "output") == 0) {
        out->action = FX_RETURN;
        out->callable = Py_NewRef(Py_None);
    } else {
        PyErr_Format(PyExc_ValueError, "node %S: unknown op %s", out->node, op);
        return -1;
    }
    return out->callable == NULL ? -1 : 0;
}

static int set_templates(compiler *c, fx_template **out, size_t *n_out, PyObject *items, bool share)
{
    fx_template_context context = {c->program->state, c->slots, share};
    Py_ssize_t n = PySequence_Size(items);
    *out = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof **out);
    if (*out == NULL) {
        return n < 0 ? -1 : (PyErr_NoMemory(), -1);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(items, i);
        int status = item == NULL ? -1 : fx_template_init(&(*out)[i], item, &context);
        Py_XDECREF(item);
        if (status < 0) {
            return -1;
        }
        (*n_out)++;
        fx_template_slots(&(*out)[i], note_use, c);
    }
    return 0;
}

static int set_kwargs(compiler *c, fx_instruction *out, PyObject *kwargs, bool share)
{
    if (!PyDict_Check(kwargs)) {
        PyErr_Format(PyExc_TypeError, "node %S: kwargs must be a dict, not %R", out->node, Py_TYPE(kwargs));
        return -1;
    }
    if (PyDict_Size(kwargs) == 0) {
        return 0;
    }
    PyObject *names = PyDict_Keys(kwargs);
    PyObject *values = names == NULL ? NULL : PyDict_Values(kwargs);
    size_t n = 0;
    int status = -1;
    if (values != NULL) {
        out->kwarg_names = PyList_AsTuple(names);
        status = out->kwarg_names == NULL ? -1 : set_templates(c, &out->kwargs, &n, values, share);
    }
    Py_XDECREF(names);
    Py_XDECREF(values);
    return status;
}

static void use_getitem(fx_state *state, fx_instruction *out)
{
    if (out->callable == state->getitem && out->n_args == 2 && out->kwarg_names == NULL) {
        out->action = FX_GETITEM;
    }
}

static int compile_node(compiler *c, fx_instruction *out, PyObject *node, const char *op)
{
    out->node = Py_NewRef(node);
    PyObject *target = PyObject_GetAttrString(node, "target");
    PyObject *args = target == NULL ? NULL : PyObject_GetAttrString(node, "args");
    PyObject *kwargs = args == NULL ? NULL : PyObject_GetAttrString(node, "kwargs");
    int status = -1;
    if (kwargs != NULL && set_action(c, out, op, target) == 0) {
        bool share = is_a(target, c->program->state->op_overload_type);
        if (set_templates(c, &out->args, &out->n_args, args, share) == 0) {
            status = set_kwargs(c, out, kwargs, share);
        }
        use_getitem(c->program->state, out);
    }
    Py_XDECREF(target);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return status;
}

static int compile_placeholder(compiler *c, PyObject *node, uint32_t slot)
{
    fx_program *program = c->program;
    fx_placeholder *out = &program->placeholders[program->n_placeholders++];
    out->slot = slot;
    PyObject *target = PyObject_GetAttrString(node, "target");
    PyObject *args = target == NULL ? NULL : PyObject_GetAttrString(node, "args");
    int status = -1;
    if (args == NULL) {
        goto done;
    }
    if (!PyUnicode_Check(target) || !PyTuple_Check(args)) {
        PyErr_Format(PyExc_TypeError, "placeholder %S: target must be a str and args a tuple, not %R and %R", node,
                     Py_TYPE(target), Py_TYPE(args));
        goto done;
    }
    PyObject *first = PyUnicode_Substring(target, 0, 1);
    if (first == NULL) {
        goto done;
    }
    bool is_starred = PyUnicode_CompareWithASCIIString(first, "*") == 0;
    Py_DECREF(first);
    if (is_starred) {
        PyErr_Format(PyExc_ValueError, "placeholder %U: variadic arguments are not supported", target);
        goto done;
    }
    if (PyTuple_Size(args) > 0) {
        out->fallback = Py_NewRef(PyTuple_GetItem(args, 0));
    } else {
        program->n_required = program->n_placeholders;
    }
    status = 0;
done:
    Py_XDECREF(target);
    Py_XDECREF(args);
    return status;
}

static int compile_one(compiler *c, PyObject *node, uint32_t slot)
{
    PyObject *number = PyLong_FromUnsignedLong(slot);
    PyObject *op = number == NULL ? NULL : PyObject_GetAttrString(node, "op");
    PyObject *op_text = op == NULL ? NULL : PyUnicode_AsASCIIString(op);
    int status = -1;
    if (op_text != NULL) {
        const char *name = PyBytes_AsString(op_text);
        if (strcmp(name, "placeholder") == 0) {
            status = compile_placeholder(c, node, slot);
        } else {
            fx_program *program = c->program;
            fx_instruction *out = &program->instructions[program->n_instructions++];
            c->instruction = (uint32_t)program->n_instructions - 1;
            out->slot = slot;
            status = compile_node(c, out, node, name);
        }
        if (status == 0) {
            status = PyDict_SetItem(c->slots, node, number);
        }
    }
    Py_XDECREF(number);
    Py_XDECREF(op);
    Py_XDECREF(op_text);
    return status;
}

/* Sorts the slots by their last use; a result that is never used is dropped by its own instruction. */
static int set_dead(compiler *c)
{
    fx_program *program = c->program;
    size_t n = program->n_instructions;
    uint32_t *pool = program->dead_pool = PyMem_Calloc((size_t)program->n_slots + 1, sizeof *pool);
    if (pool == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        fx_instruction *instruction = &program->instructions[i];
        if (c->last_use[instruction->slot] == 0) {
            c->last_use[instruction->slot] = (uint32_t)i + 1;
        }
    }
    for (uint32_t slot = 0; slot < program->n_slots; slot++) {
        if (c->last_use[slot] > 0) {
            program->instructions[c->last_use[slot] - 1].n_dead++;
        }
    }
    for (size_t i = 0; i < n; i++) {
        program->instructions[i].dead = pool;
        pool += program->instructions[i].n_dead;
        program->instructions[i].n_dead = 0;
    }
    for (uint32_t slot = 0; slot < program->n_slots; slot++) {
        if (c->last_use[slot] > 0) {
            fx_instruction *last = &program->instructions[c->last_use[slot] - 1];
            program->dead_pool[(size_t)(last->dead - program->dead_pool) + last->n_dead++] = slot;
        }
    }
    for (size_t i = 0; i < program->n_placeholders; i++) {
        program->placeholders[i].is_used = c->last_use[program->placeholders[i].slot] > 0;
    }
    return 0;
}

static int compile_nodes(compiler *c, PyObject *nodes)
{
    fx_program *program = c->program;
    Py_ssize_t n = PyList_Size(nodes);
    program->n_slots = (uint32_t)n;
    program->placeholders = PyMem_Calloc((size_t)n + 1, sizeof *program->placeholders);
    program->instructions = PyMem_Calloc((size_t)n + 1, sizeof *program->instructions);
    c->last_use = PyMem_Calloc((size_t)n + 1, sizeof *c->last_use);
    c->slots = PyDict_New();
    c->effects = PyDict_New();
    if (program->placeholders == NULL || program->instructions == NULL || c->last_use == NULL || c->slots == NULL ||
        c->effects == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (compile_one(c, PyList_GetItem(nodes, i), (uint32_t)i) < 0) {
            return -1;
        }
    }
    if (program->n_instructions == 0 || program->instructions[program->n_instructions - 1].action != FX_RETURN) {
        PyErr_SetString(PyExc_ValueError, "the graph does not end with an output node");
        return -1;
    }
    return set_dead(c);
}

int fx_program_compile(fx_program *program, PyObject *module)
{
    if (!is_a(module, program->state->graph_module_type)) {
        PyErr_Format(PyExc_TypeError, "expected a torch.fx.GraphModule, got %R", Py_TYPE(module));
        return -1;
    }
    program->module = Py_NewRef(module);
    compiler c = {.program = program};
    PyObject *graph = PyObject_GetAttrString(module, "graph");
    PyObject *view = graph == NULL ? NULL : PyObject_GetAttrString(graph, "nodes");
    PyObject *nodes = view == NULL ? NULL : PySequence_List(view);
    int status = nodes == NULL ? -1 : compile_nodes(&c, nodes);
    Py_XDECREF(graph);
    Py_XDECREF(view);
    Py_XDECREF(nodes);
    Py_XDECREF(c.slots);
    Py_XDECREF(c.effects);
    PyMem_Free(c.last_use);
    return status;
}
