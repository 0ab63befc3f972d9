/* passes.h - inside fx_lower_passes(): what is known of the AOT graph while the lowered record is made. */
#ifndef FX_GE_PASSES_H
#define FX_GE_PASSES_H

#include "ge/lower.h"

typedef struct fx_passes {
    const fxtap_graph *from;
    fxtap_graph *to;
    size_t n;
    fxtap_node *stands_for; /* a node that is gone: the one that stands for it; else itself */
    fxtap_node *root;       /* the node whose memory a node has */
    fxtap_node *node_map;   /* of each node, its number in `to` */
    fxtap_node *size_map;   /* of a symbolic input, the aten.sym_size in `to`; FX_NO_NODE: it stays an input */
    bool *is_root_of_output;
    bool *is_used;
    fx_recipe_list recipes;
    fx_arena arena;
} fx_passes;

#define FX_NO_NODE UINT32_MAX

fxtap_status fx_passes_get(const fx_passes *p, fxtap_node node, fxtap_node_desc *out);
/* lower_noops.c: which nodes are removed, and what replaces them. */
void fx_find_noops(fx_passes *p);

#endif
