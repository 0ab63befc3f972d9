/* verify_type.h - the type fxtap._core.Verification (fxtap/verify.h). */
#ifndef FX_EXT_VERIFY_TYPE_H
#define FX_EXT_VERIFY_TYPE_H

#include "fxtap/verify.h"
#include "state.h"

extern PyType_Spec fx_verification_spec;

/* merge_verifications(shards) -> Verification, from the bytes of Verification.serialise(). */
PyObject *fx_merge_verifications_function(PyObject *module, PyObject *shards);

/* Borrows the handle of a Verification; NULL with an exception if `object` is not one, or another thread uses it. */
fxtap_verification *fx_verification_of(PyObject *module, PyObject *object);

#endif
