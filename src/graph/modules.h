/*
 * modules.h - the tree of modules that a graph's nodes lie in, from their module paths.
 *
 * "L['self'].blocks.0.fc" lies in "0" of "blocks" of the root; dots in brackets do not part. Deeper than
 * FX_MODULE_DEPTH_MAX, the rest is one name.
 */
#ifndef FX_GRAPH_MODULES_H
#define FX_GRAPH_MODULES_H

#include "graph/record.h"

#define FX_MODULE_DEPTH_MAX 32

typedef struct fx_module {
    const char *name; /* "fc"; "" for the root. Not NUL-terminated: name_length */
    size_t name_length;
    const char *path; /* as recorded, up to here: path_length bytes */
    size_t path_length;
    const char *type; /* of a node right in it; NULL where none is */
    uint32_t parent;  /* the root's is itself */
    uint32_t first_child, next; /* in order of first sight; 0: none */
    uint32_t last_child;
} fx_module;

typedef struct fx_modules {
    fx_module *modules; /* 0 is the root */
    size_t n_modules;
    size_t capacity;
    fx_texts paths;     /* a module's number is its path's and one */
    uint32_t *of_node; /* the module of each node */
} fx_modules;

/* False: no memory. Clear it either way. */
bool fx_modules_init(fx_modules *modules, const fxtap_graph *graph);
void fx_modules_clear(fx_modules *modules);

#endif
