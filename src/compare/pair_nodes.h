/* pair_nodes.h - the nodes of one step on either side, while they are being paired. */
#ifndef FX_COMPARE_PAIR_NODES_H
#define FX_COMPARE_PAIR_NODES_H

#include "compare/batch.h"

typedef struct fx_node_entry {
    const fxtap_node_info *info; /* NULL: a plain file */
    const char *name;            /* node name, or a plain file's path */
    const char *target;          /* "" for a plain file */
    size_t first;                /* its tensors in the side's list */
    size_t n_tensors;
    const fxtap_tensor_info *input;  /* its first input whose shape is known; NULL: none */
    const fxtap_tensor_info *output; /* its first result whose shape is known; NULL: none */
    size_t n_alike;                  /* results of that shape: unbind has several */
    bool is_line_known;              /* its line of code occurs on the other side too */
    size_t partner; /* on the other side, or FX_MISSING */
    fxtap_pairing pairing;
    double confidence;
} fx_node_entry;

typedef struct fx_node_list {
    fx_node_entry *items;
    size_t n_items;
} fx_node_list;

/* Runs the passes; each entry's partner, pairing and confidence say the result. */
fxtap_status fx_match_nodes(const fx_map *map, bool same_structure, fx_node_list *golden, fx_node_list *target);

void fx_join_nodes(fx_node_list *golden, size_t g, fx_node_list *target, size_t t, fxtap_pairing pairing,
                   double confidence);

#endif
