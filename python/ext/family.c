#include "family.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define N_WORDS ((FX_FAMILY_BLOCKS + 31) / 32)

/* One bit per block, shared with all processes forked later; 512 KiB, of which few pages are ever used. */
static _Atomic(uint32_t) *taken;

int fx_family_start(void)
{
    if (taken == NULL) {
        void *memory = mmap(NULL, N_WORDS * sizeof *taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        taken = memory;
    }
    return 0;
}

static bool take(uint32_t block)
{
    uint32_t bit = UINT32_C(1) << block % 32;
    return (atomic_fetch_or(&taken[block / 32], bit) & bit) == 0;
}

PyObject *fx_claim_block(PyObject *module, PyObject *first)
{
    (void)module;
    unsigned long block = PyLong_AsUnsignedLong(first);
    if (PyErr_Occurred()) {
        return NULL;
    }
    for (uint32_t i = 0; i < FX_FAMILY_BLOCKS; i++) {
        uint32_t candidate = (uint32_t)((block + i) % FX_FAMILY_BLOCKS);
        if (take(candidate)) {
            return PyLong_FromUnsignedLong(candidate);
        }
    }
    PyErr_SetString(PyExc_OverflowError, "out of graph numbers");
    return NULL;
}
