/*
 * record.h - converts a torch.fx graph to a graph record (fxtap/graph.h).
 */
#ifndef FX_EXT_RECORD_H
#define FX_EXT_RECORD_H

#include "fxtap/graph.h"
#include "state.h"

typedef struct fx_recorder {
    fx_state *state;
    fxtap_graph *graph;
    PyObject *module;    /* borrowed */
    PyObject *nodes;     /* dict: torch.fx.Node -> number */
    PyObject *subgraphs; /* dict: GraphModule -> value handle */
    PyObject *schemas;   /* dict: target -> (flags, (name bytes, ...)); shared with subgraphs */
    PyObject *texts;     /* dict: sympy expression -> text, since printing is slow; shared with subgraphs */
    uint64_t constant_bytes;
} fx_recorder;

/* A new record of a module; NULL with an exception. */
fxtap_graph *fx_record_module(fx_state *state, PyObject *module, fxtap_graph_kind kind, uint64_t constant_bytes);
/* The same with the caches of an outer graph. */
fxtap_graph *fx_record_nested(const fx_recorder *outer, PyObject *module);

/* An argument or a constant as a value. All return 0, or -1 with an exception. */
int fx_record_value(fx_recorder *r, PyObject *object, fxtap_value *out);
/* A tensor by its meta; `with_bytes`: also its values, if they are available and few. */
int fx_record_tensor(fx_recorder *r, PyObject *tensor, bool with_bytes, fxtap_value *out);
/* The result of a node, from its meta; 0 if unknown. */
int fx_record_yield(fx_recorder *r, PyObject *meta, fxtap_value *out);

/* Flags (FXTAP_NODE_) and argument names of a call_function target: borrowed (int, tuple of bytes); NULL: exception. */
PyObject *fx_record_schema(fx_recorder *r, PyObject *target);

/* Texts of a target; new references to bytes objects. *python_out is NULL if it is the same. */
int fx_record_target(fx_state *state, PyObject *target, PyObject **text_out, PyObject **python_out);

/* str(object) as UTF-8 bytes, a new reference. */
PyObject *fx_text_of(PyObject *object);

extern PyType_Spec fx_graph_spec;
PyObject *fx_graph_new(fx_state *state, fxtap_graph *graph);       /* takes ownership, also when it fails */
const fxtap_graph *fx_graph_of(fx_state *state, PyObject *object); /* borrowed; NULL with TypeError */
PyObject *fx_record_function(PyObject *module, PyObject *args, PyObject *kwargs); /* _core.record() */

#endif
