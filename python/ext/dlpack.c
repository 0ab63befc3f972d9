/* dlpack.c - views of strided tensors on the host, by the exchange table or a capsule. */
#include <string.h>

#include "bridge_parts.h"

bool fx_on_host(const fx_dlpack_tensor *dl)
{
    return dl->device_type == FX_DLPACK_CPU || dl->device_type == FX_DLPACK_CUDA_HOST ||
           dl->device_type == FX_DLPACK_ROCM_HOST;
}

static bool is_empty(const fx_dlpack_tensor *dl)
{
    for (int32_t i = 0; i < dl->ndim; i++) {
        if (dl->shape[i] == 0) {
            return true;
        }
    }
    return false;
}

fxtap_dtype fx_dlpack_dtype(const fx_dlpack_tensor *dl)
{
    if (dl->code == 17 && dl->bits == 4 && dl->lanes == 2) {
        return FXTAP_FLOAT4_E2M1FN_X2; /* two values per element */
    }
    return fxtap_dtype_from_dlpack(dl->code, dl->bits, dl->lanes);
}

fxtap_view fx_dlpack_view(const fx_dlpack_tensor *dl, fxtap_dtype dtype)
{
    return (fxtap_view){.data = dl->data == NULL ? NULL : (const char *)dl->data + dl->byte_offset,
                        .dtype = dtype,
                        .ndim = dl->ndim,
                        .shape = dl->shape,
                        .strides = dl->strides};
}

int fx_call_predicate(PyObject *tensor, PyCFunction function, const char *name)
{
    PyObject *answer = function != NULL ? function(tensor, NULL) : PyObject_CallMethod(tensor, name, NULL);
    if (answer == NULL) {
        return -1;
    }
    int is_true = answer == Py_True;
    Py_DECREF(answer);
    return is_true;
}

/* Any numeric tensor can have the neg bit (integers by aten._neg_view); only complex tensors have the conj bit. */
int fx_set_flags(fx_state *state, PyObject *tensor, fxtap_view *view)
{
    fxtap_dtype_class kind = fxtap_dtype_class_of(view->dtype);
    int is_neg = fx_call_predicate(tensor, state->is_neg, "is_neg");
    int is_conj = kind == FXTAP_CLASS_COMPLEX && is_neg >= 0 ? fx_call_predicate(tensor, state->is_conj, "is_conj") : 0;
    if (is_neg < 0 || is_conj < 0) {
        return -1;
    }
    view->flags |= (is_neg ? FXTAP_VIEW_NEG : 0u) | (is_conj ? FXTAP_VIEW_CONJ : 0u);
    return 0;
}

/* The dtype of a tensor that `__dlpack__()` rejects, and that is read as bytes; NONE: another one, or an exception. */
static fxtap_dtype dtype_as_bytes(PyObject *tensor)
{
    char name[48];
    bool is_narrow = fx_copy_text(tensor, "dtype", name, sizeof name) == 0 &&
                     (strstr(name, "float8") != NULL || strstr(name, "float4") != NULL);
    return is_narrow ? fxtap_dtype_from_name(name) : FXTAP_DTYPE_NONE;
}

/* A capsule of the memory from `__dlpack__()`, which rejects tensors that require grad or have conj or neg bits. */
static PyObject *fallback_capsule(fx_state *state, PyObject *tensor, uint32_t flags, bool as_bytes)
{
    PyObject *plain = PyObject_CallMethod(tensor, "detach", NULL);
    PyObject *next;
    if (plain != NULL && (flags & FXTAP_VIEW_CONJ) != 0) {
        next = PyObject_CallFunctionObjArgs(state->conj, plain, NULL);
        Py_DECREF(plain);
        plain = next;
    }
    if (plain != NULL && (flags & FXTAP_VIEW_NEG) != 0) {
        next = PyObject_CallFunctionObjArgs(state->neg_view, plain, NULL);
        Py_DECREF(plain);
        plain = next;
    }
    if (plain != NULL && as_bytes) {
        next = PyObject_CallMethod(plain, "view", "O", state->uint8);
        Py_DECREF(plain);
        plain = next;
    }
    PyObject *capsule = plain == NULL ? NULL : PyObject_CallMethod(plain, "__dlpack__", NULL);
    Py_XDECREF(plain);
    return capsule;
}

static const fx_dlpack_tensor *capsule_tensor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        fx_dlpack_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed != NULL && managed->version.major == FX_DLPACK_MAJOR) {
            return &managed->tensor;
        }
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        fx_dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (managed != NULL) {
            return &managed->tensor;
        }
    }
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_BufferError, "unknown DLPack capsule");
    }
    return NULL;
}

static int take_fallback(fx_state *state, PyObject *tensor, fx_bridged *out, fx_dlpack_tensor *dl,
                         fxtap_dtype *dtype_out)
{
    int is_neg = fx_call_predicate(tensor, state->is_neg, "is_neg");
    int is_conj = is_neg < 0 ? -1 : fx_call_predicate(tensor, state->is_conj, "is_conj");
    if (is_conj < 0) {
        return -1;
    }
    uint32_t flags = (is_neg ? FXTAP_VIEW_NEG : 0u) | (is_conj ? FXTAP_VIEW_CONJ : 0u);
    fxtap_dtype narrow = dtype_as_bytes(tensor);
    bool as_bytes = narrow != FXTAP_DTYPE_NONE;
    PyObject *capsule = PyErr_Occurred() ? NULL : fallback_capsule(state, tensor, flags, as_bytes);
    const fx_dlpack_tensor *found = capsule == NULL ? NULL : capsule_tensor(capsule);
    if (found == NULL) {
        Py_XDECREF(capsule);
        return -1;
    }
    *dl = *found;
    *dtype_out = as_bytes ? narrow : fx_dlpack_dtype(dl);
    out->owner = capsule; /* not consumed: its destructor releases the memory */
    return 0;
}

int fx_take_strided(fx_state *state, PyObject *tensor, fx_bridged *out)
{
    fx_dlpack_tensor dl;
    fxtap_dtype dtype;
    if (state->exchange != NULL && !state->force_fallback) {
        if (state->exchange->dltensor_from_py_object_no_sync(tensor, &dl) != 0) {
            return -1;
        }
        out->owner = Py_NewRef(tensor);
        dtype = fx_dlpack_dtype(&dl);
    } else if (take_fallback(state, tensor, out, &dl, &dtype) < 0) {
        return -1;
    }
    bool has_memory = dl.data != NULL || is_empty(&dl);
    if (!fx_on_host(&dl) || !has_memory || dtype == FXTAP_DTYPE_NONE || dl.ndim > FXTAP_MAX_DIMS) {
        Py_CLEAR(out->owner);
        return 0;
    }
    out->view = fx_dlpack_view(&dl, dtype);
    if (fx_set_flags(state, tensor, &out->view) < 0) {
        Py_CLEAR(out->owner);
        return -1;
    }
    out->memory = out->view;
    return 1;
}
