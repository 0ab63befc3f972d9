/* values.h - tensors from the index (values.c). */
#ifndef FX_READER_VALUES_H
#define FX_READER_VALUES_H

#include "reader/tensors.h"

/* Whether the index has rows for the step; true if the index cannot be read. FXTAP_E_IO, FXTAP_E_NOMEM. */
fxtap_status fx_index_has_tensors(fxtap_reader *reader, const fx_graph *graph, const fx_step *step, bool *out);
/* Appends the tensors of one step that the query selects. */
fxtap_status fx_index_load_tensors(fxtap_reader *reader, fx_graph *graph, const fx_step *step,
                                   const fxtap_tensor_query *query, fxtap_tensor_list *list);

#endif
