#include "tensor/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"scalar", "avx2", "avx512"};

static atomic_int chosen = -1;

fx_cpu_level fx_cpu_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return FX_CPU_AVX512;
    }
    /* Every processor with AVX2 has F16C; the builtin of older compilers cannot test for F16C. */
    if (__builtin_cpu_supports("avx2")) {
        return FX_CPU_AVX2;
    }
#endif
    return FX_CPU_SCALAR;
}

static fx_cpu_level wanted_level(void)
{
    const char *text = getenv("FXTAP_CPU");
    for (int level = FX_CPU_SCALAR; text != NULL && level <= FX_CPU_AVX512; level++) {
        if (strcmp(text, names[level]) == 0) {
            return (fx_cpu_level)level;
        }
    }
    return FX_CPU_AVX512;
}

void fx_cpu_use(fx_cpu_level level)
{
    fx_cpu_level best = fx_cpu_best();
    atomic_store(&chosen, (int)(level < best ? level : best));
}

fx_cpu_level fx_cpu(void)
{
    int level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level < 0) {
        fx_cpu_use(wanted_level()); /* concurrent threads compute the same value */
        level = atomic_load_explicit(&chosen, memory_order_relaxed);
    }
    return (fx_cpu_level)level;
}

const char *fx_cpu_name(fx_cpu_level level)
{
    return names[level];
}
