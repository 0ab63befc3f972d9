/*
 * undefined.h - memory that was never written: between the run loop and fxtap.undefined.Memory, which knows its state.
 *
 * Nothing is asked and nothing kept until an operator that returns memory as it was found has run, and nothing is asked
 * where no such memory is left.
 */
#ifndef FX_EXT_UNDEFINED_H
#define FX_EXT_UNDEFINED_H

#include "program.h"
#include "submit.h"

void fx_undefined_begin_call(struct fx_capture *capture);

/*
 * Before an operator runs: *out is what fx_undefined_after() takes, NULL where it has nothing to do with such memory.
 * 0, or -1 with an exception.
 */
int fx_undefined_before(struct fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                        PyObject **out);

/* When it has returned: takes `pending` over. What it read of such memory is noted in the index. */
int fx_undefined_after(struct fx_capture *capture, const fx_instruction *instruction, PyObject *pending,
                       PyObject *result);

/*
 * The elements of a tensor that hold nothing, in the order of its file; the caller frees *out with PyMem_Free().
 * 0, or -1 with an exception.
 */
int fx_undefined_ranges(struct fx_capture *capture, PyObject *tensor, const fxtap_view *view,
                        fxtap_undefined_range **out, size_t *n_out);

#endif
