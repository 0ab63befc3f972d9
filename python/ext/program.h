/*
 * program.h - a torch.fx graph compiled for the run loop: an array of instructions, one for each node except
 * placeholders. A call does not change the program and owns all state that it needs, so any number of threads may call
 * a program concurrently.
 */
#ifndef FX_EXT_PROGRAM_H
#define FX_EXT_PROGRAM_H

#include "fxtap/dump.h"
#include "state.h"
#include "template.h"

typedef enum fx_action {
    FX_CALL = 1,  /* callable(*args, **kwargs) */
    FX_GETITEM,   /* args[0][args[1]], without the tuple */
    FX_METHOD,    /* getattr(args[0], callable)(*args[1:], **kwargs) */
    FX_MODULE,    /* calls the submodule at the path `callable` */
    FX_ATTRIBUTE, /* reads the module's attribute at the path `callable` */
    FX_RETURN
} fx_action;

/* The effect of a node on the memory of its arguments. */
typedef enum fx_effect {
    FX_PURE = 0,
    FX_MUTATES, /* changes the arguments that its schema declares: `mutated` */
    FX_UNKNOWN  /* may change anything: a Python function, or an operator that reallocates a storage */
} fx_effect;

/* An argument that the schema mutates. */
typedef struct fx_mutated {
    Py_ssize_t position; /* in args; -1 for a keyword */
    PyObject *keyword;   /* owned */
} fx_mutated;

struct fx_node_plan;

typedef struct fx_instruction {
    fx_action action;
    uint32_t slot;      /* slot of the result: the node's index in the graph */
    PyObject *callable; /* see fx_action; a path is a tuple of names */
    PyObject *node;     /* torch.fx.Node, for messages */
    fx_template *args;
    size_t n_args;
    PyObject *kwarg_names; /* tuple, or NULL if there are none */
    fx_template *kwargs;
    const uint32_t *dead; /* slots that are last used here; in the program's pool */
    size_t n_dead;
    bool is_undefined;       /* the result, or part of it, is uninitialised memory */
    bool is_copy;            /* aten.copy_: the result should be the bits of the second argument */
    Py_ssize_t non_blocking; /* position of the schema's argument of this name plus one; 0: it has none */
    fx_effect effect;
    fx_mutated *mutated;
    size_t n_mutated;
    PyObject *argument_names;  /* tuple, for an operator that is not torch's own, whose schema is not trusted;
                                 else NULL */
    struct fx_node_plan *plan; /* the values to save; NULL if the node is not dumped */
} fx_instruction;

typedef struct fx_placeholder {
    uint32_t slot;
    bool is_used;
    PyObject *fallback; /* default value, or NULL */
} fx_placeholder;

typedef struct fx_program {
    PyObject_HEAD PyObject *dict;
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
    struct fx_plan *plan; /* NULL if no node is dumped */
} fx_program;

/* Compiles the graph of `module` into a zeroed program. 0, or -1 with an exception; then call fx_program_clear(). */
int fx_program_compile(fx_program *program, PyObject *module);
void fx_program_clear(fx_program *program);
int fx_program_traverse_parts(fx_program *program, visitproc visit, void *arg);

/* The run loop. Empties the list `arguments`. Returns a new reference, or NULL with an exception. */
PyObject *fx_program_run(fx_program *program, PyObject *arguments);

/* Runs one instruction on its resolved arguments; `kwargs` may be NULL. */
PyObject *fx_program_invoke(fx_program *program, const fx_instruction *instruction, PyObject *args, PyObject *kwargs);

extern PyType_Spec fx_program_spec;

#endif
