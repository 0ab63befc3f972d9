/* passes.h - private to fx_lower_passes(): the state of the AOT graph while the lowered record is built. */
#ifndef FX_GE_PASSES_H
#define FX_GE_PASSES_H

#include "ge/lower.h"

typedef struct fx_passes {
    const fxtap_graph *from;
    fxtap_graph *to;
    size_t n;
    fxtap_node *stands_for; /* of a removed node, its replacement; else itself */
    fxtap_node *root;       /* the node whose memory a node has */
    fxtap_node *node_map;   /* of each node, its index in `to` */
    fxtap_node *size_map;   /* of a symbolic input, the aten.sym_size in `to`; FX_NO_NODE: it stays an input */
    bool *is_root_of_output;
    bool *is_used;
    fx_recipe_list recipes;
    fx_arena arena;
} fx_passes;

#define FX_NO_NODE UINT32_MAX

fxtap_status fx_passes_get(const fx_passes *p, fxtap_node node, fxtap_node_desc *out);
/* lower_noops.c: the removed nodes and their replacements. */
void fx_find_noops(fx_passes *p);

#endif
