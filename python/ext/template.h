/*
 * template.h - a compiled argument of a graph node: constants are built, results of other nodes are slots.
 */
#ifndef FX_EXT_TEMPLATE_H
#define FX_EXT_TEMPLATE_H

#include "state.h"

typedef enum fx_template_kind {
    FX_T_CONSTANT = 0,
    FX_T_REF, /* the value in a slot */
    FX_T_LIST,
    FX_T_TUPLE,
    FX_T_NAMED, /* a named tuple; `object` is its class */
    FX_T_DICT,  /* `object` is a tuple of the keys */
    FX_T_SLICE
} fx_template_kind;

typedef struct fx_template {
    fx_template_kind kind;
    uint32_t slot;    /* FX_T_REF */
    PyObject *object; /* owned; FX_T_CONSTANT: the value */
    struct fx_template *items;
    size_t n_items;
} fx_template;

typedef struct fx_template_context {
    fx_state *state;
    PyObject *slots;       /* dict: torch.fx.Node -> slot */
    bool share_containers; /* a list without references may be built once: the callee never modifies it */
} fx_template_context;

/* Compiles `argument`. 0, or -1 with an exception; then *out is empty. Free with fx_template_clear(). */
int fx_template_init(fx_template *out, PyObject *argument, const fx_template_context *context);
void fx_template_clear(fx_template *item);
int fx_template_traverse(const fx_template *item, visitproc visit, void *arg);

/* The argument with `values` substituted, a new reference; NULL with an exception. */
PyObject *fx_template_build(const fx_template *item, PyObject *const *values);

/* Calls `see` for every slot that the argument refers to, with duplicates. */
void fx_template_slots(const fx_template *item, void (*see)(void *context, uint32_t slot), void *context);

#endif
