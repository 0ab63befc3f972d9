/*
 * reader.h - the types fxtap._core.Reader, Tensors and Values: a dump (fxtap/reader.h) as plain Python values.
 */
#ifndef FX_EXT_READER_H
#define FX_EXT_READER_H

#include "fxtap/reader.h"
#include "state.h"

extern PyType_Spec fx_reader_spec;
extern PyType_Spec fx_tensors_spec;
extern PyType_Spec fx_values_spec;

/* A Tensors object over a list, which it takes over, also when it fails; `reader` is the Reader object of it. */
PyObject *fx_tensors_new(fx_state *state, PyObject *reader, fxtap_tensor_list *list);
/* A Values object over an open file, which it takes over, also when it fails. */
PyObject *fx_values_new(fx_state *state, fxtap_npy *npy);
/* The C reader of a Reader object. */
fxtap_reader *fx_reader_of(PyObject *self);

/* Text of a dump: UTF-8, other bytes as surrogates; None for NULL. */
PyObject *fx_tell_text(const char *text);
/* A path of a dump, as os.fsdecode(); None for NULL. */
PyObject *fx_tell_path(const char *path);
PyObject *fx_tell_integers(const int64_t *values, int32_t n);
/* A key as 32 hexadecimal digits. */
PyObject *fx_tell_hash(fxtap_hash128 hash);
/* Puts `value`, which it takes over, under a key. 0, or -1 with an exception (also when value is NULL). */
int fx_tell_put(PyObject *dict, const char *key, PyObject *value);

#endif
