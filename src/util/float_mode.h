/*
 * float_mode.h - IEEE 754 arithmetic independent of the calling thread's mode: flush to zero (torch.set_flush_denormal,
 * libraries built with -ffast-math), rounding, traps. Threads started in between inherit the IEEE mode.
 *
 *     fx_float_mode callers = fx_float_mode_begin();
 *     ...
 *     fx_float_mode_end(callers);
 *
 * fx_float_mode_end() restores the caller's mode. Pairs may nest. Cheap: the mode is set only if it differs. On x86 the
 * mode of long double (which never flushes) is not touched.
 */
#ifndef FX_UTIL_FLOAT_MODE_H
#define FX_UTIL_FLOAT_MODE_H

#if defined(__SSE2__)

typedef unsigned fx_float_mode; /* MXCSR: six sticky flags, then the modes */

enum { FX_MXCSR_FLAGS = 0x3F, FX_MXCSR_DEFAULT = 0x1F80 };

static inline void fx_float_mode_set(unsigned mode)
{
    /* A compiler barrier: computations are not moved across it. */
    __asm__ volatile("" ::: "memory");
    __builtin_ia32_ldmxcsr(mode);
    __asm__ volatile("" ::: "memory");
}

static inline fx_float_mode fx_float_mode_begin(void)
{
    unsigned callers = __builtin_ia32_stmxcsr();
    if ((callers & ~(unsigned)FX_MXCSR_FLAGS) != FX_MXCSR_DEFAULT) {
        fx_float_mode_set(FX_MXCSR_DEFAULT);
    }
    return callers;
}

static inline void fx_float_mode_end(fx_float_mode callers)
{
    if ((callers & ~(unsigned)FX_MXCSR_FLAGS) != FX_MXCSR_DEFAULT) {
        fx_float_mode_set(callers);
    }
}

#else

#include <fenv.h>

typedef fenv_t fx_float_mode;

static inline fx_float_mode fx_float_mode_begin(void)
{
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    return callers;
}

static inline void fx_float_mode_end(fx_float_mode callers)
{
    fesetenv(&callers);
}

#endif
#endif
