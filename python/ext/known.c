#include "known.h"

#include <string.h>

#define N_INLINE_DIMS 6

static size_t bucket_of(const fx_known *known, const void *address)
{
    uint64_t hash = (uint64_t)(uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 32) & (known->n_buckets - 1);
}

static fx_known_value *find(fx_known *known, PyObject *tensor)
{
    if (known->n_values == 0) {
        return NULL;
    }
    for (size_t b = bucket_of(known, tensor); known->buckets[b] != 0; b = (b + 1) & (known->n_buckets - 1)) {
        fx_known_value *value = &known->values[known->buckets[b] - 1];
        if (value->object == tensor && value->ticket != 0) {
            return value;
        }
    }
    return NULL;
}

static void forget(fx_known_value *value)
{
    if (value->ticket != 0) {
        value->ticket = 0;
        Py_DECREF(value->object); /* may run any code, so the value is made consistent first */
    }
}

fxtap_ticket fx_known_find(fx_known *known, PyObject *tensor)
{
    const fx_known_value *value = find(known, tensor);
    return value == NULL ? 0 : value->ticket;
}

static bool has_same_form(const fx_known_value *value, const fxtap_view *view, fxtap_order order)
{
    return value->order == order && value->ndim == view->ndim && view->ndim <= N_INLINE_DIMS &&
           (view->ndim == 0 || memcmp(value->shape, view->shape, (size_t)view->ndim * sizeof *view->shape) == 0);
}

fxtap_ticket fx_known_find_memory(fx_known *known, const fx_bridged *bridged, bool *same_form_out)
{
    const fxtap_view *view = &bridged->memory;
    uint64_t count;
    fxtap_order order = fxtap_view_order(view);
    if (known->n_values == 0 || order == FXTAP_ORDER_STRIDED || fxtap_view_count(view, &count) != FXTAP_OK ||
        count == 0) {
        return 0;
    }
    for (size_t b = bucket_of(known, view->data); known->buckets[b] != 0; b = (b + 1) & (known->n_buckets - 1)) {
        const fx_known_value *value = &known->values[known->buckets[b] - 1];
        if (value->first == view->data && value->device_key == bridged->device_key &&
            value->order != FXTAP_ORDER_STRIDED && value->count == count && value->dtype == view->dtype &&
            value->flags == view->flags && value->ticket != 0) {
            *same_form_out = has_same_form(value, view, order);
            return value->ticket;
        }
    }
    return 0;
}

static void put(fx_known *known, const void *address, uint32_t index)
{
    size_t b = bucket_of(known, address);
    while (known->buckets[b] != 0) {
        b = (b + 1) & (known->n_buckets - 1);
    }
    known->buckets[b] = index + 1;
    known->n_used++;
}

static void put_value(fx_known *known, uint32_t index)
{
    const fx_known_value *value = &known->values[index];
    put(known, value->object, index);
    if (value->first != NULL && value->order != FXTAP_ORDER_STRIDED) {
        put(known, value->first, index);
    }
}

/* Removes forgotten values, and makes room for twice the remaining ones. */
static int rebuild(fx_known *known)
{
    size_t n = 0;
    for (size_t i = 0; i < known->n_values; i++) {
        if (known->values[i].ticket != 0) {
            known->values[n++] = known->values[i];
        }
    }
    known->n_values = n;
    size_t n_buckets = 256;
    while (n_buckets < n * 8) {
        n_buckets *= 2;
    }
    uint32_t *buckets = PyMem_Calloc(n_buckets, sizeof *buckets);
    if (buckets == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyMem_Free(known->buckets);
    known->buckets = buckets;
    known->n_buckets = n_buckets;
    known->n_used = 0;
    for (size_t i = 0; i < n; i++) {
        put_value(known, (uint32_t)i);
    }
    return 0;
}

static int make_room(fx_known *known)
{
    if (known->n_used + 2 > known->n_buckets / 2 && rebuild(known) < 0) {
        return -1;
    }
    if (known->n_values == known->capacity) {
        size_t capacity = known->capacity == 0 ? 64 : known->capacity * 2;
        fx_known_value *values = PyMem_Realloc(known->values, capacity * sizeof *values);
        if (values == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        known->values = values;
        known->capacity = capacity;
    }
    return 0;
}

static void describe(fx_known_value *value, const fx_bridged *bridged)
{
    const fxtap_view *view = &bridged->memory;
    if (view->data == NULL || fxtap_view_count(view, &value->count) != FXTAP_OK || value->count == 0) {
        value->order = FXTAP_ORDER_STRIDED;
        return;
    }
    fxtap_view_extent(view, &value->first, &value->end);
    value->device_key = bridged->device_key;
    value->order = fxtap_view_order(view);
    value->dtype = view->dtype;
    value->flags = view->flags;
    value->ndim = view->ndim;
    if (view->ndim > 0 && view->ndim <= N_INLINE_DIMS) {
        memcpy(value->shape, view->shape, (size_t)view->ndim * sizeof *view->shape);
    }
}

int fx_known_add(fx_known *known, PyObject *tensor, const fx_bridged *bridged, fxtap_ticket ticket)
{
    if (ticket == 0) {
        return 0;
    }
    if (make_room(known) < 0) {
        return -1;
    }
    fx_known_value *value = &known->values[known->n_values];
    memset(value, 0, sizeof *value);
    value->ticket = ticket;
    value->object = Py_NewRef(tensor);
    describe(value, bridged);
    put_value(known, (uint32_t)known->n_values++);
    return 0;
}

void fx_known_forget(fx_known *known, PyObject *tensor, const void *first, const void *end)
{
    for (size_t i = 0; i < known->n_values; i++) {
        fx_known_value *value = &known->values[i];
        bool overlaps =
            (const char *)value->first < (const char *)end && (const char *)first < (const char *)value->end;
        if (value->object == tensor || value->first == NULL || overlaps) {
            forget(value);
        }
    }
}

/* While a job holds the memory, torch keeps the tensor object alive: it is checked again later. */
static void add_dropped(fx_known *known, const fx_known_value *value)
{
    if (known->n_dropped == known->dropped_capacity) {
        size_t capacity = known->dropped_capacity < 64 ? 64 : 2 * known->dropped_capacity;
        PyObject **grown = PyMem_Realloc(known->dropped, capacity * sizeof *grown);
        if (grown == NULL) {
            return; /* out of memory: the value is kept until the call ends */
        }
        known->dropped = grown;
        known->dropped_capacity = capacity;
    }
    known->dropped[known->n_dropped++] = value->object;
}

void fx_known_sweep(fx_known *known)
{
    size_t n = known->n_dropped, n_kept = 0;
    known->n_dropped = 0;
    for (size_t i = 0; i < n; i++) {
        fx_known_value *value = find(known, known->dropped[i]);
        if (value != NULL && Py_REFCNT(value->object) > 1) {
            known->dropped[n_kept++] = value->object;
        } else if (value != NULL) {
            forget(value);
        }
    }
    known->n_dropped = n_kept;
}

/* A tensor that only its container (or slot) and `known` reference. */
static void drop_tensor(fx_known *known, PyObject *tensor)
{
    fx_known_value *value = find(known, tensor);
    if (value == NULL) {
        return;
    }
    if (Py_REFCNT(tensor) <= 2) {
        forget(value);
    } else {
        add_dropped(known, value);
    }
}

void fx_known_drop(fx_known *known, PyObject *value)
{
    if (known->n_values == 0) {
        return;
    }
    bool is_list = PyList_Check(value);
    if (!is_list && !PyTuple_Check(value)) {
        drop_tensor(known, value);
        return;
    }
    if (Py_REFCNT(value) > 1) {
        return; /* the list has other owners */
    }
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(value) : PyTuple_Size(value)); i++) {
        PyObject *item = is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i);
        if (item != NULL) {
            fx_known_drop(known, item);
        }
    }
}

void fx_known_clear(fx_known *known)
{
    fx_known_value *values = known->values;
    size_t n_values = known->n_values;
    PyMem_Free(known->buckets);
    PyMem_Free(known->dropped);
    memset(known, 0, sizeof *known); /* code that runs when a tensor is freed finds an empty table */
    for (size_t i = 0; i < n_values; i++) {
        forget(&values[i]);
    }
    PyMem_Free(values);
}
