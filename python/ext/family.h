/*
 * family.h - what a process and its forked children must not have in common: graph numbers. They are handed out in
 * blocks, which are marked in memory that all of them share.
 */
#ifndef FX_EXT_FAMILY_H
#define FX_EXT_FAMILY_H

#include "state.h"

#define FX_FAMILY_BLOCKS UINT32_C(4294967) /* of 1000 numbers: as many as 32 bits have */

/* Makes the shared memory. 0, or -1 with an exception. */
int fx_family_start(void);
/* claim_block(first): the first block from `first` on that no process of the family has; wraps around. */
PyObject *fx_claim_block(PyObject *module, PyObject *first);

#endif
