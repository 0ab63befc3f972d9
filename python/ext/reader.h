/*
 * reader.h - the types fxtap._core.Reader, Tensors and Values: a dump (fxtap/reader.h) as Python values.
 */
#ifndef FX_EXT_READER_H
#define FX_EXT_READER_H

#include "fxtap/reader.h"
#include "state.h"

extern PyType_Spec fx_reader_spec;
extern PyType_Spec fx_tensors_spec;
extern PyType_Spec fx_values_spec;

/* Creates a Tensors object. Takes ownership of `list`, also on failure; `reader` is the Reader object of the list. */
PyObject *fx_tensors_new(fx_state *state, PyObject *reader, fxtap_tensor_list *list);
/* Creates a Values object. Takes ownership of `npy`, also on failure. */
PyObject *fx_values_new(fx_state *state, fxtap_npy *npy);
/* The C reader of a Reader object. */
fxtap_reader *fx_reader_of(PyObject *self);

/* Converts text of a dump: UTF-8, other bytes as surrogates; None for NULL. */
PyObject *fx_py_text(const char *text);
/* Converts a path of a dump, like os.fsdecode(); None for NULL. */
PyObject *fx_py_path(const char *path);
PyObject *fx_py_integers(const int64_t *values, int32_t n);
/* Converts a hash to 32 hexadecimal digits. */
PyObject *fx_py_hash(fxtap_hash128 hash);
/* Sets dict[key]. Takes over `value`, which may be NULL with an exception. Returns 0, or -1 with an exception. */
int fx_dict_put(PyObject *dict, const char *key, PyObject *value);
/* Creates a list of item(items, i) for i < n. */
typedef PyObject *(*fx_item_function)(const void *items, size_t i);
PyObject *fx_py_list(size_t n, fx_item_function item, const void *items);

#endif
