#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "dump_type.h"
#include "errors.h"
#include "record.h"

/* ---- places ---- */

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = PyMem_Malloc(n);
    if (copy == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    return memcpy(copy, text, n);
}

static int init_place(fx_place *place, const char *position, const char *arg_name)
{
    place->position = copy_text(position);
    if (place->position == NULL) {
        return -1;
    }
    if (arg_name != NULL) {
        place->arg_name = copy_text(arg_name);
        return place->arg_name == NULL ? -1 : 0;
    }
    return 0;
}

static void clear_place(fx_place *place)
{
    for (size_t i = 0; i < place->n_children; i++) {
        if (place->children[i] != NULL) {
            clear_place(place->children[i]);
            PyMem_Free(place->children[i]);
        }
    }
    if (place->constant != NULL) {
        fx_small_clear(place->constant);
        PyMem_Free(place->constant);
    }
    PyMem_Free(place->children);
    PyMem_Free(place->position);
    PyMem_Free(place->arg_name);
}

static fx_place *make_child(const fx_place *place, size_t index)
{
    char *position = PyMem_Malloc(strlen(place->position) + 24);
    fx_place *child = PyMem_Calloc(1, sizeof *child);
    if (position == NULL || child == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    const char *separator = place->position[0] == '\0' ? "" : ".";
    snprintf(position, strlen(place->position) + 24, "%s%s%zu", place->position, separator, index);
    if (init_place(child, position, place->arg_name) == 0) {
        PyMem_Free(position);
        return child;
    }
    clear_place(child);
failed:
    PyMem_Free(position);
    PyMem_Free(child);
    return NULL;
}

fx_place *fx_place_child(fx_place *place, size_t index)
{
    if (index >= place->n_children) {
        fx_place **children = PyMem_Realloc(place->children, (index + 1) * sizeof(fx_place *));
        if (children == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        for (size_t i = place->n_children; i <= index; i++) {
            children[i] = NULL;
        }
        place->children = children;
        place->n_children = index + 1;
    }
    if (place->children[index] == NULL) {
        place->children[index] = make_child(place, index);
    }
    return place->children[index];
}

/* Encodes values that are constant in the graph, once. */
static int set_constant(fx_place *place, const fx_template *item)
{
    if (item->kind != FX_T_CONSTANT) {
        return 0;
    }
    fx_small small;
    int encoded = fx_small_encode(item->object, &small);
    if (encoded <= 0) {
        return encoded;
    }
    place->constant = PyMem_Malloc(sizeof small);
    if (place->constant == NULL) {
        fx_small_clear(&small);
        PyErr_NoMemory();
        return -1;
    }
    *place->constant = small;
    return 0;
}

/* ---- nodes ---- */

static int plan_args(fx_node_plan *out, const fx_instruction *instruction, const fxtap_node_desc *desc)
{
    char position[24];
    for (size_t i = 0; i < instruction->n_args; i++) {
        fx_place *place = &out->inputs[out->n_inputs++];
        const char *name = desc->arg_names != NULL && i < desc->n_args ? desc->arg_names[i] : NULL;
        snprintf(position, sizeof position, "%zu", i);
        if (init_place(place, position, name) < 0 || set_constant(place, &instruction->args[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int plan_kwargs(fx_node_plan *out, const fx_instruction *instruction, const fxtap_node_desc *desc)
{
    for (size_t i = 0; instruction->kwargs != NULL && i < desc->n_kwargs; i++) {
        fx_place *place = &out->inputs[out->n_inputs++];
        if (init_place(place, desc->kwarg_names[i], desc->kwarg_names[i]) < 0 ||
            set_constant(place, &instruction->kwargs[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int plan_inouts(fx_node_plan *out, const fx_instruction *instruction)
{
    out->inouts = PyMem_Calloc(instruction->n_mutated + 1, sizeof *out->inouts);
    if (out->inouts == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < instruction->n_mutated; i++) {
        const fx_mutated *mutated = &instruction->mutated[i];
        PyObject *keyword = fx_utf8(mutated->keyword);
        if (keyword == NULL) {
            return -1;
        }
        char position[24];
        const char *name = PyBytes_AsString(keyword);
        bool is_positional = (size_t)mutated->position < instruction->n_args;
        snprintf(position, sizeof position, "%zd", mutated->position);
        int status = init_place(&out->inouts[out->n_inouts++], is_positional ? position : name, name);
        Py_DECREF(keyword);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

static int plan_node(fx_node_plan *out, const fx_instruction *instruction, const fxtap_graph *record)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    fxtap_status status = fxtap_graph_node(record, instruction->slot, &desc);
    if (status != FXTAP_OK) {
        fx_raise(status);
        return -1;
    }
    size_t n_kwargs = instruction->kwarg_names == NULL ? 0 : (size_t)PyTuple_Size(instruction->kwarg_names);
    if (desc.n_kwargs != n_kwargs || desc.n_args != instruction->n_args) {
        PyErr_Format(PyExc_ValueError, "node %S: the record belongs to another graph", instruction->node);
        return -1;
    }
    out->node = instruction->slot;
    out->is_async = (desc.flags & FXTAP_NODE_ASYNC) != 0;
    out->is_wait = strstr(desc.target, "c10d_functional") != NULL && strstr(desc.target, ".wait_tensor.") != NULL;
    out->inputs = PyMem_Calloc(instruction->n_args + n_kwargs + 1, sizeof *out->inputs);
    if (out->inputs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (init_place(&out->outputs, "", NULL) < 0 || plan_args(out, instruction, &desc) < 0 ||
        plan_kwargs(out, instruction, &desc) < 0) {
        return -1;
    }
    return plan_inouts(out, instruction);
}

static void clear_node(fx_node_plan *plan)
{
    for (size_t i = 0; i < plan->n_inputs; i++) {
        clear_place(&plan->inputs[i]);
    }
    for (size_t i = 0; i < plan->n_inouts; i++) {
        clear_place(&plan->inouts[i]);
    }
    clear_place(&plan->outputs);
    PyMem_Free(plan->inputs);
    PyMem_Free(plan->inouts);
}

/* ---- the plan ---- */

/* One entry per node, NULL for dumped nodes. The list *keep_out owns the texts. */
static const char **skip_reasons(PyObject *skip, size_t n_nodes, PyObject **keep_out)
{
    PyObject *keep = *keep_out = PyList_New(0);
    const char **reasons = PyMem_Calloc(n_nodes + 1, sizeof *reasons);
    if (keep == NULL || reasons == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    if (skip == Py_None) {
        return reasons;
    }
    Py_ssize_t n = PySequence_Size(skip);
    if (n != (Py_ssize_t)n_nodes) {
        if (n >= 0) {
            PyErr_Format(PyExc_ValueError, "skip has %zd entries for %zu nodes", n, n_nodes);
        }
        goto failed;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *reason = PySequence_GetItem(skip, i);
        if (reason == Py_None) {
            Py_DECREF(reason);
            continue;
        }
        if (reason != NULL && !PyUnicode_Check(reason)) {
            PyErr_Format(PyExc_TypeError, "skip[%zd] is neither None nor a string", i);
            Py_CLEAR(reason);
        }
        PyObject *bytes = reason == NULL ? NULL : fx_utf8(reason);
        Py_XDECREF(reason);
        int status = bytes == NULL ? -1 : PyList_Append(keep, bytes);
        Py_XDECREF(bytes);
        if (status < 0) {
            goto failed;
        }
        reasons[i] = PyBytes_AsString(bytes); /* the list owns it */
    }
    return reasons;
failed:
    PyMem_Free(reasons);
    return NULL;
}

/* Whether the index records why a graph has nothing to dump: not if a filter excluded it all. */
static bool has_reason(const char *const *reasons, size_t n_nodes)
{
    bool found = false;
    for (size_t i = 0; i < n_nodes; i++) {
        if (reasons[i] != NULL && strcmp(reasons[i], "filter") == 0) {
            return false;
        }
        found = found || reasons[i] != NULL;
    }
    return found;
}

static bool is_dumped(const fx_instruction *instruction, const char *const *reasons)
{
    bool is_function = instruction->action == FX_CALL || instruction->action == FX_GETITEM;
    return is_function && reasons[instruction->slot] == NULL;
}

static int plan_nodes(fx_program *program, fx_plan *plan, const fxtap_graph *record, const char *const *reasons)
{
    size_t n = 0;
    for (size_t i = 0; i < program->n_instructions; i++) {
        n += is_dumped(&program->instructions[i], reasons);
    }
    plan->nodes = PyMem_Calloc(n + 1, sizeof *plan->nodes);
    plan->has_warned = PyMem_Calloc((size_t)program->n_slots + 1, sizeof *plan->has_warned);
    if (plan->nodes == NULL || plan->has_warned == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < program->n_instructions; i++) {
        fx_instruction *instruction = &program->instructions[i];
        if (is_dumped(instruction, reasons)) {
            instruction->plan = &plan->nodes[plan->n_nodes++];
            if (plan_node(instruction->plan, instruction, record) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int register_graph(fx_plan *plan, const fxtap_graph *record, unsigned int id, const char *const *reasons)
{
    fxtap_status status = fxtap_dump_add_graph(fx_dump_handle(plan->dump), record, id, reasons, &plan->capture);
    if (status != FXTAP_OK) {
        fx_raise(status);
        return -1;
    }
    return 0;
}

static int fill(fx_program *program, fx_plan *plan, const fx_plan_options *options)
{
    const fxtap_graph *record = fx_graph_of(program->state, options->record);
    if (record == NULL) {
        return -1;
    }
    if (fxtap_graph_node_count(record) != program->n_slots) {
        PyErr_Format(PyExc_ValueError, "the record has %zu nodes, the graph has %u", fxtap_graph_node_count(record),
                     program->n_slots);
        return -1;
    }
    PyObject *keep;
    const char **reasons = skip_reasons(options->skip, program->n_slots, &keep);
    int status = -1;
    if (reasons != NULL && plan_nodes(program, plan, record, reasons) == 0) {
        bool is_wanted = plan->n_nodes > 0 || has_reason(reasons, program->n_slots);
        status = is_wanted ? register_graph(plan, record, options->graph_id, reasons) : 0;
    }
    Py_XDECREF(keep);
    PyMem_Free(reasons);
    return status;
}

static int check(const fx_program *program, const fx_plan_options *options)
{
    if (strcmp(options->on_error, "raise") != 0 && strcmp(options->on_error, "warn") != 0) {
        PyErr_Format(PyExc_ValueError, "on_error must be raise or warn, not '%s'", options->on_error);
        return -1;
    }
    if (options->dump == Py_None) {
        return 0;
    }
    if (!PyObject_TypeCheck(options->dump, (PyTypeObject *)program->state->dump_type)) {
        PyErr_Format(PyExc_TypeError, "expected a Dump, got %R", Py_TYPE(options->dump));
        return -1;
    }
    if (fx_dump_handle(options->dump) == NULL) {
        PyErr_SetString(PyExc_ValueError, "the dump is closed");
        return -1;
    }
    if (options->graph_id == 0) {
        PyErr_SetString(PyExc_ValueError, "graph_id must be at least 1");
        return -1;
    }
    return 0;
}

int fx_plan_create(fx_program *program, const fx_plan_options *options)
{
    if (check(program, options) < 0 || options->dump == Py_None) {
        return PyErr_Occurred() ? -1 : 0;
    }
    fx_plan *plan = PyMem_Calloc(1, sizeof *plan);
    if (plan == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    plan->dump = Py_NewRef(options->dump);
    plan->log = Py_NewRef(options->log);
    plan->verifier = Py_NewRef(options->verifier);
    plan->warns = strcmp(options->on_error, "warn") == 0;
    plan->is_sync = fx_dump_is_sync(plan->dump);
    program->plan = plan; /* freed with the program */
    return fill(program, plan, options);
}

void fx_plan_free(fx_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clear_node(&plan->nodes[i]);
    }
    PyMem_Free(plan->nodes);
    PyMem_Free(plan->has_warned);
    Py_XDECREF(plan->dump);
    Py_XDECREF(plan->log);
    Py_XDECREF(plan->verifier);
    PyMem_Free(plan);
}

int fx_plan_traverse(fx_plan *plan, visitproc visit, void *arg)
{
    if (plan != NULL) {
        Py_VISIT(plan->dump);
        Py_VISIT(plan->log);
        Py_VISIT(plan->verifier);
    }
    return 0;
}

bool fx_plan_is_on(const fx_plan *plan)
{
    return plan != NULL && plan->capture != NULL && !plan->is_stopped && fx_dump_handle(plan->dump) != NULL;
}
