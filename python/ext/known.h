/*
 * known.h - the values that a call has already submitted, so that each value is written once.
 *
 * A value is found by its tensor object and, if it is dense, by its memory: another tensor over exactly the same bytes
 * (a view, a detached copy) is the same value with another shape. A value is forgotten when the run loop drops its
 * tensor, or before its memory changes. Until then it owns a reference to the tensor, so that no address is reused.
 * (Weak references would do, but each is one more object for the garbage collector.)
 */
#ifndef FX_EXT_KNOWN_H
#define FX_EXT_KNOWN_H

#include "bridge.h"
#include "fxtap/dump.h"

typedef struct fx_known_value {
    fxtap_ticket ticket; /* 0: forgotten */
    PyObject *object;    /* the tensor, owned; just an address once forgotten */
    const void *first;   /* the memory of its elements, on any device; NULL: unknown */
    const void *end;
    uint64_t device_key;
    fxtap_dtype dtype;
    uint32_t flags;
    fxtap_order order;
    uint64_t count;
    int32_t ndim;
    int64_t shape[6]; /* if ndim is 6 or less */
} fx_known_value;

typedef struct fx_known {
    fx_known_value *values;
    size_t n_values;
    size_t capacity;
    uint32_t *buckets; /* index of a value plus one; each value is entered by object and by memory */
    size_t n_buckets;  /* a power of two */
    size_t n_used;
    PyObject **dropped; /* tensors dropped by the loop while a pending job holds them; only addresses */
    size_t n_dropped;
    size_t dropped_capacity;
} fx_known;

/* The ticket of this tensor object; 0 if unknown. */
fxtap_ticket fx_known_find(fx_known *known, PyObject *tensor);

/*
 * The ticket of a value over the same dense bytes, or 0. *same_form_out: shape and order are equal too, and thus the
 * file.
 */
fxtap_ticket fx_known_find_memory(fx_known *known, const fx_bridged *bridged, bool *same_form_out);

/* Adds a submitted tensor. Returns 0, or -1 with MemoryError. */
int fx_known_add(fx_known *known, PyObject *tensor, const fx_bridged *bridged, fxtap_ticket ticket);

/* Forgets the tensor and all values in [first, end) or with unknown memory. */
void fx_known_forget(fx_known *known, PyObject *tensor, const void *first, const void *end);

/* The run loop drops a value: forgets its tensors that have no other owner, at once or in a later sweep. */
void fx_known_drop(fx_known *known, PyObject *value);
/* Call when pending jobs have released tensors: forgets dropped tensors that have no owner any more. */
void fx_known_sweep(fx_known *known);
void fx_known_clear(fx_known *known);

#endif
