/*
 * plan.h - what a program's calls leave in a dump: the graph's place in it, and for each dumped node the slots of
 * its inputs and outputs, made once.
 */
#ifndef FX_EXT_PLAN_H
#define FX_EXT_PLAN_H

#include "program.h"

typedef struct fx_plan_options {
    PyObject *record; /* each None or what its name says; borrowed */
    PyObject *dump;
    PyObject *skip;
    PyObject *log;
    unsigned int graph_id;
    const char *on_error;
} fx_plan_options;

typedef struct fx_plan fx_plan;

/* Registers the program's graph with the dump and sets program->plan; leaves it NULL where nothing is dumped. */
int fx_plan_create(fx_program *program, const fx_plan_options *options);
void fx_plan_free(fx_plan *plan);
int fx_plan_traverse(fx_plan *plan, visitproc visit, void *arg);

/* Whether the next call is dumped. NULL is allowed. */
bool fx_plan_is_on(const fx_plan *plan);

#endif
