/*
 * undefined.h - memory that was never written: connects the run loop to fxtap.undefined.Memory, which tracks its state.
 *
 * Memory is not called before the first operator that returns uninitialised memory, nor while no such memory is left.
 */
#ifndef FX_EXT_UNDEFINED_H
#define FX_EXT_UNDEFINED_H

#include "program.h"
#include "submit.h"

void fx_undefined_begin_call(struct fx_capture *capture);

/*
 * Called before an operator runs. *out is for fx_undefined_after(); NULL if the operator does not involve such memory.
 * Returns 0, or -1 with an exception.
 */
int fx_undefined_before(struct fx_capture *capture, const fx_instruction *instruction, PyObject *args, PyObject *kwargs,
                        PyObject **out);

/* Called when the operator has returned. Takes over `pending`; records reads of such memory in the index. */
int fx_undefined_after(struct fx_capture *capture, const fx_instruction *instruction, PyObject *pending,
                       PyObject *result);

/*
 * The undefined elements of a tensor, in file order; the caller frees *out with PyMem_Free().
 * Returns 0, or -1 with an exception.
 */
int fx_undefined_ranges(struct fx_capture *capture, PyObject *tensor, const fxtap_view *view,
                        fxtap_undefined_range **out, size_t *n_out);

#endif
