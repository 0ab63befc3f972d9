/*
 * index_rows.h - the rows of the index. All functions are called with index.lock held.
 */
#ifndef FX_WRITER_INDEX_ROWS_H
#define FX_WRITER_INDEX_ROWS_H

#include "writer/call.h"
#include "writer/index.h"

fxtap_status fx_rows_run(fxtap_dump *dump);
void fx_rows_run_end(fxtap_dump *dump);
/* Inserts the graph's rows unless they exist. *step_id_out is the id of the call's step. */
fxtap_status fx_rows_begin_step(fxtap_call *call, int64_t *step_id_out);
fxtap_status fx_rows_entry(fxtap_call *call, int64_t step_id, const fx_call_entry *entry);
fxtap_status fx_rows_step(fxtap_call *call, int64_t step_id, uint64_t step, const char *folder, const char *reason);
/* The call's findings. */
fxtap_status fx_rows_notes(fxtap_call *call, int64_t step_id);
/* Corrects the step's rows after its files got other stamps: `given_us[i]` is the stamp in the row of entry i. */
fxtap_status fx_rows_restamp(fxtap_call *call, int64_t step_id, const uint64_t *given_us);
/* Forgets all row numbers: the database is a new one. */
void fx_rows_forget(fxtap_dump *dump);

#endif
