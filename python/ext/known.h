/*
 * known.h - the values that one call has submitted already, so that one value is written once.
 *
 * A value is known by its tensor object and, where it is dense, by its memory: another tensor over the very same bytes
 * (a view, a detached copy) is the same value under another shape. A value is forgotten when the run loop drops its
 * tensor, or when its memory is about to change. Until then it holds the tensor, so that no address is used again.
 * (Weak references would say as much, but each is one more object for the garbage collector to walk.)
 */
#ifndef FX_EXT_KNOWN_H
#define FX_EXT_KNOWN_H

#include "bridge.h"
#include "fxtap/dump.h"

typedef struct fx_known_value {
    fxtap_ticket ticket; /* 0: forgotten */
    PyObject *object;    /* the tensor, owned; only an address when forgotten */
    const void *first;   /* the memory its elements lie in; NULL: not known */
    const void *end;
    fxtap_dtype dtype;
    uint32_t flags;
    fxtap_order order;
    uint64_t count;
    int32_t ndim;
    int64_t shape[6];    /* where ndim is 6 or less */
} fx_known_value;

typedef struct fx_known {
    fx_known_value *values;
    size_t n_values;
    size_t capacity;
    uint32_t *buckets;   /* index of a value plus one; each value is there by object and by memory */
    size_t n_buckets;    /* a power of two */
    size_t n_used;
    PyObject **lingering; /* tensors that the loop has dropped while a pending job still held them; addresses alone */
    size_t n_lingering;
    size_t lingering_capacity;
} fx_known;

/* The ticket of this very tensor; 0 where it is not known. */
fxtap_ticket fx_known_find(fx_known *known, PyObject *tensor);

/*
 * The ticket of a value over the same dense bytes, or 0. *same_form_out: with the same shape and
 * order, so that even the file is the same.
 */
fxtap_ticket fx_known_find_memory(fx_known *known, const fxtap_view *view, bool *same_form_out);

/* Remembers a submitted tensor. 0, or -1 with MemoryError. */
int fx_known_add(fx_known *known, PyObject *tensor, const fx_bridged *bridged, fxtap_ticket ticket);

/* Forgets the tensor and all values that lie in [first, end) or of which it is not known where they lie. */
void fx_known_forget(fx_known *known, PyObject *tensor, const void *first, const void *end);

/* The run loop drops a value: forgets the tensors in it that nobody else holds, or will when they are swept. */
void fx_known_drop(fx_known *known, PyObject *value);
/* To be called when pending jobs have let tensors go: forgets those that were dropped and that nobody holds any more. */
void fx_known_sweep(fx_known *known);
void fx_known_clear(fx_known *known);

#endif
