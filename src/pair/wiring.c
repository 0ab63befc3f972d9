/*
 * wiring.c - which node feeds which input of which node, from the graph records of one or more calls. Nodes are
 * numbered consecutively over all calls; a result of an earlier call that a later call takes as input is one more edge.
 */
#include <string.h>

#include "fxtap/output.h"
#include "pair/wiring.h"
#include "util/arena.h"
#include "util/memory.h"

typedef struct edge {
    size_t producer;
    const char *position; /* "0", "1.2", "alpha" */
} edge;

typedef struct wired_node {
    size_t first_edge;
    size_t n_edges;
    size_t link;   /* placeholder: the node of an earlier call that computed it; FX_MISSING: none, or unknown */
    size_t base;   /* view: the node whose memory it shares; else the node itself */
    size_t writer; /* the last later node that wrote to its memory; FX_MISSING: none */
    bool is_placeholder;
    bool is_weight;
    bool is_undefined;
} wired_node;

struct fx_wiring {
    fx_arena arena;
    wired_node *nodes;
    size_t n_nodes;
    edge *edges;
    size_t *producers; /* producers of the edges, in the same order */
    size_t n_edges;
    size_t edges_capacity;
    size_t producers_capacity;
    bool is_known;
};

/* `position` is in the wiring's arena. */
static bool add_edge(fx_wiring *wiring, size_t producer, const char *position)
{
    size_t n = wiring->n_edges;
    if (!fx_grow((void **)&wiring->edges, &wiring->edges_capacity, n + 1, sizeof *wiring->edges) ||
        !fx_grow((void **)&wiring->producers, &wiring->producers_capacity, n + 1, sizeof *wiring->producers)) {
        return false;
    }
    wiring->edges[n] = (edge){producer, position};
    wiring->producers[n] = producer;
    wiring->n_edges = n + 1;
    return true;
}

/* An input comes from its node, and from the node that wrote to this memory in between. */
static bool add_producer(fx_wiring *wiring, size_t producer, const char *position)
{
    size_t writer = wiring->nodes[wiring->nodes[producer].base].writer;
    return add_edge(wiring, producer, position) &&
           (writer == FX_MISSING || writer <= producer || add_edge(wiring, writer, position));
}

/*
 * Marks the memory that a node writes to. The record does not say which arguments these are: by torch's convention the
 * first one if the operator's name ends in "_", otherwise any.
 */
static void mark_written(fx_wiring *wiring, const char *target, size_t node)
{
    size_t length = strcspn(target, ".");
    const char *name = target[length] == '.' ? target + length + 1 : target;
    length = strcspn(name, ".");
    bool is_in_place = length > 0 && name[length - 1] == '_';
    for (size_t i = wiring->nodes[node].first_edge; i < wiring->n_edges; i++) {
        const char *position = wiring->edges[i].position;
        if (!is_in_place || strcmp(position, "0") == 0 || strncmp(position, "0.", 2) == 0) {
            wiring->nodes[wiring->nodes[wiring->producers[i]].base].writer = node;
        }
    }
}

typedef struct adding { /* the edges of one node */
    fx_wiring *wiring;
    const fxtap_graph *graph;
    size_t first; /* number of the graph's first node */
    size_t node;
} adding;

/*
 * Adds an edge for every node in `value`. `position` names the argument; list items append ".J", and its length is
 * restored. The record limits the nesting and the total size of values, including argument names.
 */
static bool add_value(const adding *a, fxtap_value value, fxtap_buffer *position)
{
    if (fxtap_value_kind_of(a->graph, value) == FXTAP_V_NODE) {
        size_t producer = a->first + fxtap_value_node(a->graph, value);
        const char *text = producer < a->node ? fx_arena_strdup(&a->wiring->arena, position->bytes) : NULL;
        return producer >= a->node || (text != NULL && add_producer(a->wiring, producer, text));
    }
    size_t n_items, length = position->length;
    const fxtap_value *items = fxtap_value_items(a->graph, value, &n_items);
    for (size_t j = 0; j < n_items; j++) {
        fxtap_buffer_printf(position, ".%zu", j);
        if (fxtap_buffer_status(position) != FXTAP_OK || !add_value(a, items[j], position)) {
            return false;
        }
        position->length = length;
        position->bytes[length] = '\0';
    }
    return true;
}

static bool add_arguments(const adding *a, const fxtap_node_desc *desc)
{
    fxtap_buffer position;
    fxtap_buffer_init(&position);
    bool ok = true;
    for (size_t k = 0; k < desc->n_args && ok; k++) {
        position.length = 0;
        fxtap_buffer_printf(&position, "%zu", k);
        ok = fxtap_buffer_status(&position) == FXTAP_OK && add_value(a, desc->args[k], &position);
    }
    for (size_t k = 0; k < desc->n_kwargs && ok; k++) {
        position.length = 0;
        fxtap_buffer_text(&position, desc->kwarg_names[k]);
        ok = fxtap_buffer_status(&position) == FXTAP_OK && add_value(a, desc->kwarg_values[k], &position);
    }
    fxtap_buffer_clear(&position);
    return ok;
}

static bool requires_grad(const fxtap_graph *graph, fxtap_value meta)
{
    fxtap_tensor_meta tensor = {.struct_size = sizeof tensor};
    return fxtap_value_kind_of(graph, meta) == FXTAP_V_TENSOR && fxtap_value_tensor(graph, meta, &tensor) == FXTAP_OK &&
           tensor.requires_grad;
}

/* The i-th node of a graph whose first is `first`. */
static bool add_node(fx_wiring *wiring, const fxtap_graph *graph, size_t first, size_t i)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    wired_node *node = &wiring->nodes[first + i];
    const adding a = {wiring, graph, first, first + i};
    *node = (wired_node){.first_edge = wiring->n_edges, .link = FX_MISSING, .base = first + i, .writer = FX_MISSING};
    if (graph == NULL || fxtap_graph_node(graph, (fxtap_node)i, &desc) != FXTAP_OK) {
        return true; /* not in the record: a node without inputs */
    }
    if (!add_arguments(&a, &desc)) {
        return false;
    }
    node->n_edges = wiring->n_edges - node->first_edge;
    node->is_placeholder = desc.op == FXTAP_OP_PLACEHOLDER || desc.op == FXTAP_OP_GET_ATTR;
    node->is_weight = desc.op == FXTAP_OP_GET_ATTR || (desc.flags & FXTAP_NODE_WEIGHT) != 0 ||
                      (node->is_placeholder && requires_grad(graph, desc.meta));
    /* values with masks of undefined elements are judged by their masks */
    node->is_undefined = (desc.flags & FXTAP_NODE_UNDEFINED) != 0 && (desc.flags & FXTAP_NODE_TRACKED) == 0;
    if ((desc.flags & FXTAP_NODE_MUTATES) != 0) {
        mark_written(wiring, desc.target, first + i);
    }
    if ((desc.flags & FXTAP_NODE_VIEW) != 0 && node->n_edges > 0) {
        node->base = wiring->nodes[wiring->producers[node->first_edge]].base;
        node->is_undefined |= wiring->nodes[wiring->producers[node->first_edge]].is_undefined;
    }
    return true;
}

/* A record in which no node has an argument, as other programs may write, says nothing about edges. */
static bool has_edges(const fx_wiring *wiring, const fx_wiring_part *part, size_t first)
{
    for (size_t i = 0; i < part->n_nodes; i++) {
        if (wiring->nodes[first + i].n_edges > 0) {
            return true;
        }
    }
    return false;
}

fxtap_status fx_wiring_create(const fx_wiring_part *parts, size_t n_parts, fx_wiring **out)
{
    *out = NULL;
    fx_wiring *wiring = fx_calloc(1, sizeof *wiring);
    if (wiring == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_arena_init(&wiring->arena);
    for (size_t p = 0; p < n_parts; p++) {
        wiring->n_nodes += parts[p].n_nodes;
    }
    wiring->nodes = fx_calloc(wiring->n_nodes, sizeof *wiring->nodes);
    bool done = wiring->nodes != NULL;
    for (size_t p = 0, first = 0; p < n_parts && done; first += parts[p++].n_nodes) {
        for (size_t i = 0; i < parts[p].n_nodes && done; i++) {
            done = add_node(wiring, parts[p].record, first, i);
        }
        wiring->is_known |= done && has_edges(wiring, &parts[p], first);
    }
    if (!done) {
        fx_wiring_free(wiring);
        return FXTAP_E_NOMEM;
    }
    *out = wiring;
    return FXTAP_OK;
}

bool fx_wiring_is_known(const fx_wiring *wiring)
{
    return wiring->is_known;
}

void fx_wiring_link(fx_wiring *wiring, size_t placeholder, size_t producer)
{
    wiring->nodes[placeholder].link = producer;
}

void fx_wiring_free(fx_wiring *wiring)
{
    if (wiring == NULL) {
        return;
    }
    fx_arena_clear(&wiring->arena);
    fx_free(wiring->nodes);
    fx_free(wiring->edges);
    fx_free(wiring->producers);
    fx_free(wiring);
}

bool fx_wiring_producer(const fx_wiring *wiring, size_t node, const char *position, size_t *producer_out)
{
    for (size_t i = 0; node < wiring->n_nodes && i < wiring->nodes[node].n_edges; i++) {
        const edge *candidate = &wiring->edges[wiring->nodes[node].first_edge + i];
        if (strcmp(candidate->position, position) == 0) {
            *producer_out = candidate->producer;
            return true;
        }
    }
    return false;
}

const size_t *fx_wiring_inputs(const fx_wiring *wiring, size_t node, size_t *n_out)
{
    if (node >= wiring->n_nodes) {
        *n_out = 0;
        return NULL;
    }
    if (wiring->nodes[node].link != FX_MISSING) {
        *n_out = 1;
        return &wiring->nodes[node].link;
    }
    *n_out = wiring->nodes[node].n_edges;
    return wiring->producers == NULL ? NULL : wiring->producers + wiring->nodes[node].first_edge;
}

const char *fx_wiring_position(const fx_wiring *wiring, size_t node, size_t i)
{
    return wiring->nodes[node].link != FX_MISSING ? "" : wiring->edges[wiring->nodes[node].first_edge + i].position;
}

size_t fx_wiring_node_count(const fx_wiring *wiring)
{
    return wiring->n_nodes;
}

bool fx_wiring_is_placeholder(const fx_wiring *wiring, size_t node)
{
    return node < wiring->n_nodes && wiring->nodes[node].is_placeholder && wiring->nodes[node].link == FX_MISSING;
}

bool fx_wiring_is_weight(const fx_wiring *wiring, size_t node)
{
    return node < wiring->n_nodes && wiring->nodes[node].is_weight;
}

bool fx_wiring_is_undefined(const fx_wiring *wiring, size_t node)
{
    return node < wiring->n_nodes && wiring->nodes[node].is_undefined;
}
