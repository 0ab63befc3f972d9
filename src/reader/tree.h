/* tree.h - the graphs and steps of a rank, from the index and the folders (tree.c). */
#ifndef FX_READER_TREE_H
#define FX_READER_TREE_H

#include "reader/reader.h"

/* Loads the graphs and steps. */
fxtap_status fx_rank_load(fxtap_reader *reader, fx_rank *rank);
void fx_rank_clear(fx_rank *rank);
fxtap_status fx_graph_create(fxtap_reader *reader, fx_rank *rank, uint32_t number, fx_graph **out);
fxtap_status fx_graph_add_step(fxtap_reader *reader, fx_graph *graph, const fx_step *step);
/* Loads the nodes, and the files of steps that are not in the index. */
fxtap_status fx_graph_load_nodes(fxtap_reader *reader, fx_graph *graph);
/* Sets the nodes' order and the array of nodes from the linked list. */
fxtap_status fx_graph_number_nodes(fxtap_reader *reader, fx_graph *graph);
/* The run that 0 selects; 0 if there are none. */
int64_t fx_rank_latest_run(const fxtap_reader *reader, const fx_rank *rank);

#endif
