/* names.h - steps that are not in the index, read by their file names (names.c). */
#ifndef FX_READER_NAMES_H
#define FX_READER_NAMES_H

#include "reader/reader.h"

/* Reads the names in a step's folder and adds the nodes that the graph does not have yet. */
fxtap_status fx_step_read_files(fxtap_reader *reader, fx_graph *graph, fx_step *step);
/* Frees the files; fx_step_read_files() reads them again. */
void fx_step_drop_files(fx_step *step);

#endif
