/*
 * bridge_parts.h - what bridge.c, dlpack.c and device.c share.
 */
#ifndef FX_EXT_BRIDGE_PARTS_H
#define FX_EXT_BRIDGE_PARTS_H

#include "bridge.h"
#include "dlpack.h"

/* Sets the reason for which a tensor is not read. 0, or -1 with MemoryError. */
int fx_skip(fx_bridged *out, const char *reason);

/* Converts torch's exception to the reason; MemoryError and non-Exceptions such as Ctrl-C stay raised (-1). */
int fx_skip_exception(fx_bridged *out);

/* str() of an attribute, cut to n bytes; the truth of one; that of a method without arguments. -1 with an exception. */
int fx_copy_text(PyObject *object, const char *attribute, char *out, size_t n);
int fx_is_true(PyObject *tensor, const char *attribute);
int fx_call_predicate(PyObject *tensor, PyCFunction function, const char *name);

/* Adds the neg and conj bits of a tensor to a view of it. 0, or -1 with an exception. */
int fx_set_flags(fx_state *state, PyObject *tensor, fxtap_view *view);

/* DLPack's description: whether the host can read it, its dtype, a view of it. */
bool fx_on_host(const fx_dlpack_tensor *dl);
fxtap_dtype fx_dlpack_dtype(const fx_dlpack_tensor *dl);
fxtap_view fx_dlpack_view(const fx_dlpack_tensor *dl, fxtap_dtype dtype);

/* The view of a strided tensor on the host: 1 taken, 0 not such a tensor, -1 with torch's exception. */
int fx_take_strided(fx_state *state, PyObject *tensor, fx_bridged *out);

/* Describes a strided tensor in a device's memory: 1 done, 0 not such a tensor, -1 with an exception. */
int fx_locate(fx_state *state, PyObject *tensor, fx_bridged *out);

#endif
