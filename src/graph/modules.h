/*
 * modules.h - the tree of modules of a graph, built from the module paths of its nodes.
 *
 * "L['self'].blocks.0.fc" is in "0" of "blocks" of the root; dots in brackets do not separate. Beyond
 * FX_MODULE_DEPTH_MAX levels the rest of the path is one name.
 */
#ifndef FX_GRAPH_MODULES_H
#define FX_GRAPH_MODULES_H

#include "graph/record.h"

#define FX_MODULE_DEPTH_MAX 32

typedef struct fx_module {
    const char *name; /* "fc"; "" for the root. Not NUL-terminated: name_length */
    size_t name_length;
    const char *path; /* the recorded path; its first path_length bytes */
    size_t path_length;
    const char *type;           /* type, from a node directly in it; NULL if there is none */
    uint32_t parent;            /* the root is its own parent */
    uint32_t first_child, next; /* in order of first use; 0: none */
    uint32_t last_child;
} fx_module;

typedef struct fx_modules {
    fx_module *modules; /* 0 is the root */
    size_t n_modules;
    size_t capacity;
    fx_texts paths;    /* the index of a module is the id of its path plus one */
    uint32_t *of_node; /* the module of each node */
} fx_modules;

/* False: out of memory. Clear it in either case. */
bool fx_modules_init(fx_modules *modules, const fxtap_graph *graph);
void fx_modules_clear(fx_modules *modules);

#endif
