/*
 * plan.h - what the calls of a program dump: the graph in the dump, and for each dumped node the places of its inputs
 * and outputs, created once.
 *
 * Places are added while calls run (the length of a list is known only then), with the GIL held; a place never moves.
 */
#ifndef FX_EXT_PLAN_H
#define FX_EXT_PLAN_H

#include "fxtap/dump.h"
#include "program.h"
#include "small.h"

typedef struct fx_place {
    fxtap_slot slot;
    bool has_slot;
    char *position;             /* "0", "1.2", "alpha"; "" for the root of the outputs */
    char *arg_name;             /* from the schema, or NULL */
    struct fx_place **children; /* elements of a list; NULL if never seen */
    size_t n_children;
    fx_small *constant; /* the value in every call; NULL if it varies or is not a number */
} fx_place;

typedef struct fx_node_plan {
    fxtap_node node;
    bool is_async;    /* its result is not ready when it returns */
    bool is_wait;     /* waits for such a result */
    fx_place *inputs; /* args, then kwargs */
    size_t n_inputs;
    fx_place outputs; /* a root: its children are the outputs */
    fx_place *inouts; /* one for each mutated argument */
    size_t n_inouts;
} fx_node_plan;

typedef struct fx_plan {
    PyObject *dump;         /* a Dump */
    PyObject *log;          /* called with each log line, or None */
    PyObject *verifier;     /* judges each run of a node, only wrong ones are dumped; or None */
    fxtap_capture *capture; /* owned by the dump */
    bool is_sync;
    bool warns;      /* on_error="warn" */
    bool is_stopped; /* has warned */
    fx_node_plan *nodes;
    size_t n_nodes;
    bool *has_warned; /* by node index: a warning about its effect on memory has been logged */
} fx_plan;

typedef struct fx_plan_options {
    PyObject *record; /* each None or the named object; borrowed */
    PyObject *dump;
    PyObject *skip;
    PyObject *log;
    PyObject *verifier;
    unsigned int graph_id;
    const char *on_error;
} fx_plan_options;

/* Registers the program's graph with the dump and sets program->plan; leaves it NULL if nothing is dumped. */
int fx_plan_create(fx_program *program, const fx_plan_options *options);
void fx_plan_free(fx_plan *plan);
int fx_plan_traverse(fx_plan *plan, visitproc visit, void *arg);

/* Whether the next call is dumped. NULL is allowed. */
bool fx_plan_is_on(const fx_plan *plan);

/* Element `index` of a list at `place`, created on first use; NULL with MemoryError. */
fx_place *fx_place_child(fx_place *place, size_t index);

#endif
