/*
 * errors.h - converts a status of the library to a Python exception; adds notes to exceptions of operators.
 */
#ifndef FX_EXT_ERRORS_H
#define FX_EXT_ERRORS_H

#include "fxtap/status.h"
#include "state.h"

/*
 * Raises this thread's last failure and returns NULL: FXTAP_E_IO as the OSError of its errno with the file name,
 * NOMEM MemoryError, INVALID, FORMAT and UNSUPPORTED ValueError, NOT_FOUND LookupError, EXISTS FileExistsError,
 * CANCELLED KeyboardInterrupt if one is pending, else InterruptedError; the others RuntimeError.
 */
PyObject *fx_raise(fxtap_status status);

/* Adds a note to the current exception: the node, its target and its source line. */
void fx_error_note_node(PyObject *node);

/* Clears the current exception and returns it as one line "Type: text". A str, never NULL without an exception. */
PyObject *fx_error_take_line(void);

#endif
