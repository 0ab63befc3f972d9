/*
 * bridge.h - a torch tensor as a view of its memory, without torch's headers.
 *
 * The fast way is DLPack's exchange table; where torch has none, `__dlpack__()` of the detached tensor. What DLPack
 * does not tell (conj and neg bits, quantisation, layouts, wrappers) is asked of the tensor. A tensor that lies
 * elsewhere or otherwise is brought into a form that can be read; one that cannot is skipped with a reason.
 */
#ifndef FX_EXT_BRIDGE_H
#define FX_EXT_BRIDGE_H

#include "fxtap/tensor.h"
#include "state.h"

typedef struct fx_bridged {
    fxtap_view view;            /* shape, strides and data live as long as `owner` */
    PyObject *owner;            /* owned: the tensor itself, a converted copy, or a capsule of its memory */
    fxtap_dtype original_dtype; /* where the view holds a converted copy, else FXTAP_DTYPE_NONE */
    const int64_t *original_strides; /* where the copy lies otherwise; lives as long as the tensor; else NULL */
    char device[32];            /* where the tensor lives, "" for the CPU */
    char layout[32];            /* "torch.sparse_coo" where it was converted, "" for strided */
    bool is_copy;               /* the view is of other memory than the tensor's */
    PyObject *skip;             /* owned: why there is no view; then all of the above is empty */
} fx_bridged;

/*
 * Takes a view of `tensor` (an instance of torch.Tensor). Nothing is copied where it is strided on the host. With
 * `guarded`, no torch function mode sees the questions asked (dispatch modes and autograd never do).
 * 0 with either a view or a reason to skip it; -1 with an exception (only MemoryError and the like).
 */
int fx_bridge_take(fx_state *state, PyObject *tensor, bool guarded, fx_bridged *out);
void fx_bridge_drop(fx_bridged *bridged);

/* The host memory that a tensor's elements lie in; both NULL where it has none that a view could be of. */
int fx_bridge_extent(fx_state *state, PyObject *tensor, bool guarded, const void **first_out, const void **end_out);

/* Switches torch's modes, dispatch to Python and autograd off until the guard is left. */
typedef struct fx_guard {
    PyObject *entered[3];
} fx_guard;
int fx_guard_enter(fx_state *state, fx_guard *out);
void fx_guard_leave(fx_guard *guard);

#endif
