/*
 * print.h - graph records as text (fxtap/print.h).
 */
#ifndef FX_EXT_PRINT_H
#define FX_EXT_PRINT_H

#include "state.h"

PyObject *fx_print_graph(PyObject *module, PyObject *args, PyObject *kwargs); /* _core.print_graph() */
PyObject *fx_summarise(PyObject *module, PyObject *args, PyObject *kwargs);   /* _core.summarise() */

#endif
