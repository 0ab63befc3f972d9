/* rows.h - runs, graphs, steps, nodes and slots from the index (rows.c). Errors as of fx_rows_next(). */
#ifndef FX_READER_ROWS_H
#define FX_READER_ROWS_H

#include "reader/index.h"

fxtap_status fx_index_load_runs(fxtap_reader *reader, fx_rank *rank);
fxtap_status fx_index_load_graphs(fxtap_reader *reader, fx_rank *rank);
fxtap_status fx_index_load_steps(fxtap_reader *reader, fx_rank *rank, fx_texts *folders);
fxtap_status fx_index_load_nodes(fxtap_reader *reader, fx_graph *graph);
fxtap_status fx_index_load_slots(fxtap_reader *reader, fx_graph *graph);
fxtap_status fx_index_load_record(fxtap_reader *reader, fx_graph *graph);

#endif
