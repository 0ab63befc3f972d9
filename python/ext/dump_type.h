/*
 * dump_type.h - the type fxtap._core.Dump: an open dump, shared by programs.
 */
#ifndef FX_EXT_DUMP_TYPE_H
#define FX_EXT_DUMP_TYPE_H

#include "fxtap/dump.h"
#include "state.h"

extern PyType_Spec fx_dump_spec;

/* The open dump of a Dump object; NULL when it is closed. Borrowed. No exception. */
fxtap_dump *fx_dump_handle(PyObject *dump);
bool fx_dump_is_sync(PyObject *dump);
/* The dump's warning, the first time that there is one; else NULL. Borrowed, as long as the dump is open. */
const char *fx_dump_take_warning(PyObject *dump);

/*
 * A call begins: the dump stays open until the call leaves, even if close() is called meanwhile. False when it is
 * closed. *generation_out goes to fx_dump_leave(), which does nothing for calls that began before a fork.
 */
bool fx_dump_enter(PyObject *dump, unsigned int *generation_out);
void fx_dump_leave(PyObject *dump, unsigned int generation);

#endif
