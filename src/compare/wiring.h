/*
 * wiring.h - which node feeds which place of which node: one graph, or the graphs of several calls one after the other.
 *
 * Nodes are numbered through the parts in order. A wiring may be read by any number of threads.
 */
#ifndef FX_COMPARE_WIRING_H
#define FX_COMPARE_WIRING_H

#include <stdbool.h>
#include <stddef.h>

#include "fxtap/graph.h"

#define FX_MISSING SIZE_MAX

typedef struct fx_wiring fx_wiring;

typedef struct fx_wiring_part { /* one call's graph */
    const fxtap_graph *record;  /* NULL: not known; its nodes are fed by nothing */
    size_t n_nodes;
} fx_wiring_part;

/* FXTAP_E_NOMEM. The caller frees *out. */
fxtap_status fx_wiring_create(const fx_wiring_part *parts, size_t n_parts, fx_wiring **out);
void fx_wiring_free(fx_wiring *wiring);
/* False where no node of any part is fed by another: a program that records no arguments. */
bool fx_wiring_is_known(const fx_wiring *wiring);
/* A placeholder takes what a node of an earlier part yields: it is fed by that, at the position "". */
void fx_wiring_link(fx_wiring *wiring, size_t placeholder, size_t producer);
/* The node that yields what stands in INPUT `position` of `node`; false where it is a constant, or not known. */
bool fx_wiring_producer(const fx_wiring *wiring, size_t node, const char *position, size_t *producer_out);
/* All nodes that feed `node`. */
const size_t *fx_wiring_inputs(const fx_wiring *wiring, size_t node, size_t *n_out);
/* The place in which the i-th of them stands. */
const char *fx_wiring_position(const fx_wiring *wiring, size_t node, size_t i);
size_t fx_wiring_node_count(const fx_wiring *wiring);
bool fx_wiring_is_placeholder(const fx_wiring *wiring, size_t node); /* an input of a graph that no earlier call put out */
bool fx_wiring_is_weight(const fx_wiring *wiring, size_t node); /* a placeholder that requires a gradient, a get_attr */
bool fx_wiring_is_undefined(const fx_wiring *wiring, size_t node); /* uninitialised memory, or a view of it */

#endif
