/*
 * bridge.h - a torch tensor as a view of its memory, without torch's headers.
 *
 * The fast path uses DLPack's exchange table; if torch has none, `__dlpack__()` of the detached tensor. Properties that
 * DLPack does not have (conj and neg bits, quantisation, layouts, wrappers) are read from the tensor. A tensor in
 * another layout is converted to a readable copy, or skipped with a reason if that is impossible. A strided tensor on
 * another device is described first, so that a value that is known is not copied again, and fetched when it is needed.
 */
#ifndef FX_EXT_BRIDGE_H
#define FX_EXT_BRIDGE_H

#include "fxtap/tensor.h"
#include "state.h"

typedef struct fx_bridged {
    fxtap_view view;                 /* shape, strides and data live as long as `owner` */
    fxtap_view memory;               /* of the tensor's own memory, on any device; data NULL: unknown. Lives as long as
                                        the tensor and this object */
    uint64_t device_key;             /* 0: the host's memory; else differs for each device */
    int64_t *numbers;                /* owned: shape and strides of `memory`, or NULL */
    bool is_away;                    /* on a device, and not fetched: `view` and `owner` are empty */
    PyObject *owner;                 /* owned: the tensor itself, a converted copy, or a capsule of its memory */
    fxtap_dtype original_dtype;      /* if the view is of a converted copy, else FXTAP_DTYPE_NONE */
    const int64_t *original_strides; /* if those of the copy may differ; lives as long as the tensor; else NULL */
    char device[32];                 /* device of the tensor, "" for the CPU */
    char layout[32];                 /* "torch.sparse_coo" if it was converted, "" for strided */
    bool is_copy;                    /* the view is not of the tensor's own memory */
    PyObject *skip;                  /* owned: why there is no view; then all fields above are empty */
} fx_bridged;

/*
 * Takes a view of `tensor` (an instance of torch.Tensor). A strided tensor on the host is not copied. With `guarded`,
 * torch function modes are disabled meanwhile (dispatch modes and autograd always are).
 * Returns 0 with either a view or a reason to skip it; -1 with an exception (only MemoryError and the like).
 */
int fx_bridge_take(fx_state *state, PyObject *tensor, bool guarded, fx_bridged *out);

/*
 * Copies a tensor that is away to the host, as many elements as its memory has. Returns 0 with either a view or a
 * reason to skip it (no memory for the copy); -1 with the device's exception: perhaps that of an operator that ran earlier.
 */
int fx_bridge_fetch(fx_state *state, PyObject *tensor, fx_bridged *bridged);

/* Both of them. */
int fx_bridge_read(fx_state *state, PyObject *tensor, bool guarded, fx_bridged *out);

/* The tensor's dtype, shape and strides; the data of a tensor that is away cannot be read. */
static inline const fxtap_view *fx_bridged_form(const fx_bridged *bridged)
{
    return bridged->is_away ? &bridged->memory : &bridged->view;
}

void fx_bridge_drop(fx_bridged *bridged);

/* The range of memory, on any device, of a tensor's elements; both NULL if it is unknown. */
int fx_bridge_extent(fx_state *state, PyObject *tensor, bool guarded, const void **first_out, const void **end_out);

/* Disables torch's modes, dispatch to Python and autograd until the guard is left. */
typedef struct fx_guard {
    PyObject *entered[3];
} fx_guard;
int fx_guard_enter(fx_state *state, fx_guard *out);
void fx_guard_leave(fx_guard *guard);

#endif
