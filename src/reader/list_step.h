/*
 * list_step.h - the tensors of a dump, step by step: so that not all of them need be in memory at once.
 *
 * The index stays open from call to call: fx_reader_rest() closes it.
 */
#ifndef FX_READER_LIST_STEP_H
#define FX_READER_LIST_STEP_H

#include "fxtap/reader.h"

/* The steps that a query means and that hold a tensor, in order; the caller frees *out with fx_free(). */
fxtap_status fx_reader_query_steps(fxtap_reader *reader, const fxtap_tensor_query *query, const fxtap_step_info ***out,
                                   size_t *n_out);

/* An empty list; NULL: no memory. */
fxtap_tensor_list *fx_tensor_list_create(void);

/*
 * Appends what the query lets through of one step (NULL: of the files that belong to no step) to `list`. What the reader
 * remembered of the step's folder is dropped.
 */
fxtap_status fx_reader_list_step(fxtap_reader *reader, const fxtap_step_info *step, const fxtap_tensor_query *query,
                                 fxtap_tensor_list *list);

uint32_t fx_reader_flags(const fxtap_reader *reader); /* FXTAP_READ_ */

/* Whether a step's folder was opened, and nothing but that step is meant. */
bool fx_reader_is_one_step(const fxtap_reader *reader);

void fx_reader_rest(fxtap_reader *reader);

#endif
