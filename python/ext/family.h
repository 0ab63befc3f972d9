/*
 * family.h - unique graph numbers for a process and its forked children. Numbers are allocated in blocks, which are
 * marked in shared memory.
 */
#ifndef FX_EXT_FAMILY_H
#define FX_EXT_FAMILY_H

#include "state.h"

#define FX_FAMILY_BLOCKS UINT32_C(4294967) /* of 1000 numbers each: covers 32 bits */

/* Creates the shared memory. 0, or -1 with an exception. */
int fx_family_start(void);
/* claim_block(first): claims the first free block from `first` on; wraps around. */
PyObject *fx_claim_block(PyObject *module, PyObject *first);

#endif
