/*
 * program.h - a torch.fx graph compiled for the run loop: an array of instructions, one for each node that does
 * something. A program never changes while it is called, and everything a call needs belongs to that call: any number
 * of threads may be inside one program.
 */
#ifndef FX_EXT_PROGRAM_H
#define FX_EXT_PROGRAM_H

#include "fxtap/dump.h"
#include "state.h"
#include "template.h"

typedef enum fx_action {
    FX_CALL = 1, /* callable(*args, **kwargs) */
    FX_GETITEM,  /* args[0][args[1]], without the tuple */
    FX_METHOD,   /* getattr(args[0], callable)(*args[1:], **kwargs) */
    FX_MODULE,   /* the submodule at the path `callable`, called */
    FX_ATTRIBUTE, /* the attribute of the module at the path `callable` */
    FX_RETURN
} fx_action;

/* What a node may do to its arguments' memory. */
typedef enum fx_effect {
    FX_PURE = 0,
    FX_MUTATES, /* what its schema says: `mutated` */
    FX_UNKNOWN  /* a Python function, or what moves a storage: anything */
} fx_effect;

/* An argument that the schema mutates. */
typedef struct fx_mutated {
    Py_ssize_t position; /* in args; -1 for a keyword */
    PyObject *keyword;   /* owned */
} fx_mutated;

struct fx_node_plan;

typedef struct fx_instruction {
    fx_action action;
    uint32_t slot;      /* where the result goes: the node's number in the graph */
    PyObject *callable; /* see fx_action; a path is a tuple of names */
    PyObject *node;     /* torch.fx.Node, for messages */
    fx_template *args;
    size_t n_args;
    PyObject *kwarg_names; /* tuple, or NULL when there are none */
    fx_template *kwargs;
    const uint32_t *dead; /* slots whose last use this is; in the program's pool */
    size_t n_dead;
    bool is_undefined; /* what it returns, or part of it, is memory as it was found */
    fx_effect effect;
    fx_mutated *mutated;
    size_t n_mutated;
    PyObject *argument_names; /* tuple, of an operator that is not torch's own: what its schema says is not relied on;
                                 else NULL */
    struct fx_node_plan *plan; /* what is saved of it; NULL when it is not dumped */
} fx_instruction;

typedef struct fx_placeholder {
    uint32_t slot;
    bool is_used;
    PyObject *fallback; /* default value, or NULL */
} fx_placeholder;

typedef struct fx_program {
    PyObject_HEAD
    PyObject *dict;
    PyObject *weak_references;
    fx_state *state; /* lives as long as the type */
    PyObject *module;
    uint32_t n_slots;
    fx_placeholder *placeholders;
    size_t n_placeholders;
    size_t n_required;
    fx_instruction *instructions;
    size_t n_instructions;
    uint32_t *dead_pool;
    struct fx_plan *plan; /* NULL when no node is dumped */
} fx_program;

/* Compiles `module`'s graph into a zeroed program. 0, or -1 with an exception; fx_program_clear() frees the rest. */
int fx_program_compile(fx_program *program, PyObject *module);
void fx_program_clear(fx_program *program);
int fx_program_traverse_parts(fx_program *program, visitproc visit, void *arg);

/* The run loop. `arguments` is a list and is emptied. A new reference, or NULL with an exception. */
PyObject *fx_program_run(fx_program *program, PyObject *arguments);

/* Runs one instruction on its resolved arguments; `kwargs` may be NULL. */
PyObject *fx_program_invoke(fx_program *program, const fx_instruction *instruction, PyObject *args, PyObject *kwargs);

extern PyType_Spec fx_program_spec;

#endif
