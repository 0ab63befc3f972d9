/*
 * wiring.h - which node feeds which input of which node, in one graph or in the graphs of several consecutive calls.
 *
 * Nodes are numbered consecutively over the parts. Any number of threads may read a wiring.
 */
#ifndef FX_PAIR_WIRING_H
#define FX_PAIR_WIRING_H

#include <stdbool.h>
#include <stddef.h>

#include "fxtap/graph.h"

#define FX_MISSING SIZE_MAX

typedef struct fx_wiring fx_wiring;

typedef struct fx_wiring_part { /* one call's graph */
    const fxtap_graph *record;  /* NULL: unknown; its nodes have no inputs */
    size_t n_nodes;
} fx_wiring_part;

/* FXTAP_E_NOMEM. The caller frees *out. */
fxtap_status fx_wiring_create(const fx_wiring_part *parts, size_t n_parts, fx_wiring **out);
void fx_wiring_free(fx_wiring *wiring);
/* False if no part has any edge: the program records no arguments. */
bool fx_wiring_is_known(const fx_wiring *wiring);
/* Adds an edge from a node of an earlier part to the placeholder that takes its result, at position "". */
void fx_wiring_link(fx_wiring *wiring, size_t placeholder, size_t producer);
/* The node that produces INPUT `position` of `node`; false if it is a constant, or unknown. */
bool fx_wiring_producer(const fx_wiring *wiring, size_t node, const char *position, size_t *producer_out);
/* All nodes that feed `node`. */
const size_t *fx_wiring_inputs(const fx_wiring *wiring, size_t node, size_t *n_out);
/* The position of the i-th of them. */
const char *fx_wiring_position(const fx_wiring *wiring, size_t node, size_t i);
size_t fx_wiring_node_count(const fx_wiring *wiring);
bool fx_wiring_is_placeholder(const fx_wiring *wiring, size_t node); /* a graph input, not linked to an earlier call */
bool fx_wiring_is_weight(const fx_wiring *wiring, size_t node); /* a placeholder that requires a gradient, a get_attr */
bool fx_wiring_is_undefined(const fx_wiring *wiring, size_t node); /* uninitialised memory, or a view of it */

#endif
