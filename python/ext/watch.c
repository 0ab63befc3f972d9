#include "watch.h"

#include <stdio.h>
#include <string.h>

#include "errors.h"

typedef struct fx_capture capture;

void fx_watch_settle(capture *c, const void *first, const void *end)
{
    if (fxtap_call_is_pending(c->call, first, end)) {
        Py_BEGIN_ALLOW_THREADS fxtap_call_settle(c->call, first, end);
        Py_END_ALLOW_THREADS
    }
}

static int watch_tensor(capture *c, PyObject *tensor, const char *position, PyObject *name, fx_watch *out)
{
    const void *first;
    const void *end;
    if (fx_bridge_extent(c->state, tensor, c->is_guarded, &first, &end) < 0) {
        return -1;
    }
    fx_watch_settle(c, first, end);
    fxtap_ticket ticket = fx_known_find(&c->known, tensor);
    if (ticket == 0) {
        return 0;
    }
    fx_watched *grown = PyMem_Realloc(out->items, (out->n_items + 1) * sizeof *grown);
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    out->items = grown;
    fx_watched *item = &grown[out->n_items++];
    *item = (fx_watched){.tensor = Py_NewRef(tensor), .ticket = ticket, .name = name};
    snprintf(item->position, sizeof item->position, "%s", position);
    return 0;
}

/* `value` is a tensor or a list of tensors. */
static int watch_value(capture *c, PyObject *value, const char *position, PyObject *name, fx_watch *out)
{
    if (PyObject_TypeCheck(value, (PyTypeObject *)c->state->tensor_type)) {
        return watch_tensor(c, value, position, name, out);
    }
    bool is_list = PyList_Check(value);
    Py_ssize_t n = is_list ? PyList_Size(value) : PyTuple_Check(value) ? PyTuple_Size(value) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        char inner[32];
        PyObject *item = is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i);
        snprintf(inner, sizeof inner, "%.10s.%zd", position, i);
        if (item == NULL || (PyObject_TypeCheck(item, (PyTypeObject *)c->state->tensor_type) &&
                             watch_tensor(c, item, inner, name, out) < 0)) {
            return -1;
        }
    }
    return 0;
}

int fx_watch_begin(capture *c, const fx_instruction *instruction, PyObject *args, PyObject *kwargs, fx_watch *out)
{
    Py_ssize_t n_names = PyTuple_Size(instruction->argument_names);
    for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++) {
        char position[24];
        PyObject *name = i < n_names ? PyTuple_GetItem(instruction->argument_names, i) : NULL;
        snprintf(position, sizeof position, "%zd", i);
        if (watch_value(c, PyTuple_GetItem(args, i), position, name, out) < 0) {
            return -1;
        }
    }
    PyObject *key;
    PyObject *value;
    Py_ssize_t at = 0;
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        PyObject *text = fx_utf8(key);
        int status = text == NULL ? -1 : watch_value(c, value, PyBytes_AsString(text), key, out);
        Py_XDECREF(text);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

void fx_watch_clear(fx_watch *watch)
{
    for (size_t i = 0; i < watch->n_items; i++) {
        Py_XDECREF(watch->items[i].tensor);
    }
    PyMem_Free(watch->items);
    *watch = (fx_watch){0};
}

int fx_watch_log(capture *c, const fx_instruction *instruction, const char *what)
{
    fx_plan *plan = c->plan;
    if (plan->has_warned[instruction->slot] || plan->log == Py_None) {
        return 0;
    }
    plan->has_warned[instruction->slot] = true;
    PyObject *target = PyObject_GetAttrString(instruction->node, "target");
    PyObject *line = target == NULL ? NULL : PyUnicode_FromFormat("%S (%S) %s", instruction->node, target, what);
    PyObject *done = line == NULL ? NULL : PyObject_CallFunctionObjArgs(plan->log, line, NULL);
    Py_XDECREF(target);
    Py_XDECREF(line);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int note_change(capture *c, const fx_instruction *instruction, const fx_watched *item)
{
    PyObject *name = item->name == NULL ? NULL : fx_utf8(item->name);
    if (item->name != NULL && name == NULL) {
        return -1;
    }
    fxtap_note note = {.struct_size = sizeof note,
                       .kind = FXTAP_FINDING_UNDECLARED_WRITE,
                       .node = instruction->slot,
                       .stamp_us = fxtap_call_stamp(c->call),
                       .position = item->position,
                       .arg_name = name == NULL ? NULL : PyBytes_AsString(name)};
    int status = fx_submit_note(c, &note);
    char line[160];
    snprintf(line, sizeof line, "writes to its argument %.60s without declaring it",
             note.arg_name != NULL ? note.arg_name : note.position);
    Py_XDECREF(name);
    return status < 0 ? -1 : fx_watch_log(c, instruction, line);
}

static int check_one(capture *c, const fx_instruction *instruction, const fx_watched *item)
{
    fx_bridged bridged;
    if (fx_bridge_read(c->state, item->tensor, c->is_guarded, &bridged) < 0) {
        return -1;
    }
    bool has_changed = false;
    fxtap_status status = FXTAP_OK;
    if (bridged.skip == NULL) {
        Py_BEGIN_ALLOW_THREADS status = fxtap_call_has_changed(c->call, item->ticket, &bridged.view, &has_changed);
        Py_END_ALLOW_THREADS
    }
    bool is_other_form = status == FXTAP_E_INVALID; /* resized, or another dtype */
    fx_bridge_drop(&bridged);
    if (status != FXTAP_OK && !is_other_form) {
        fx_raise(status);
        return -1;
    }
    if (!has_changed && !is_other_form) {
        return 0;
    }
    const void *first;
    const void *end;
    if (fx_bridge_extent(c->state, item->tensor, c->is_guarded, &first, &end) < 0) {
        return -1;
    }
    fx_known_forget(&c->known, item->tensor, first, end);
    return note_change(c, instruction, item);
}

int fx_watch_end(capture *c, const fx_instruction *instruction, const fx_watch *watch)
{
    for (size_t i = 0; i < watch->n_items; i++) {
        if (check_one(c, instruction, &watch->items[i]) < 0) {
            return -1;
        }
    }
    return 0;
}
