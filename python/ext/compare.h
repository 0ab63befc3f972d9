/*
 * compare.h - comparing dumps (fxtap/compare.h): the functions of fxtap._core, and the type Report.
 */
#ifndef FX_EXT_COMPARE_H
#define FX_EXT_COMPARE_H

#include "fxtap/compare.h"
#include "state.h"

extern PyType_Spec fx_report_spec;

/* compare(golden, target, *, ...) and compare_ranks(dump, *, ...) -> Report; see _core.pyi. */
PyObject *fx_compare_function(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *fx_compare_ranks_function(PyObject *module, PyObject *args, PyObject *kwargs);
/* load_rules(path) -> list of tuples (dtype, target, node, rtol, atol, cosine, max_abs, rel_l2, max_ulp). */
PyObject *fx_load_rules_function(PyObject *module, PyObject *path);
/* merge_reports(shards) -> Report, from the bytes of Report.serialise(). */
PyObject *fx_merge_reports_function(PyObject *module, PyObject *shards);

/* verify_report(report, verification) -> bool: whether rounding explains all that differs; see _core.pyi. */
PyObject *fx_verify_report_function(PyObject *module, PyObject *args);

/* Borrows the bytes of all shards; false with an exception if one is not a bytes object. */
bool fx_list_shards(PyObject *tuple, const void **bytes, size_t *n_bytes);

/* Creates a Report object. Takes ownership of `report`, also on failure. */
PyObject *fx_report_new(fx_state *state, fxtap_report *report);

#endif
