/*
 * cpu.h - selects the vector code: the widest that this processor supports, or the level in FXTAP_CPU.
 */
#ifndef FX_TENSOR_CPU_H
#define FX_TENSOR_CPU_H

typedef enum fx_cpu_level {
    FX_CPU_SCALAR = 0, /* portable C */
    FX_CPU_AVX2 = 1,   /* AVX2 and F16C */
    FX_CPU_AVX512 = 2  /* AVX-512 F, BW, DQ, VL */
} fx_cpu_level;

/*
 * The level in use: the environment's FXTAP_CPU=scalar|avx2|avx512 if the processor supports it, else the best one.
 * Read once per process; safe from any thread.
 */
fx_cpu_level fx_cpu(void);

/* The best level of this processor and this build, regardless of the environment. */
fx_cpu_level fx_cpu_best(void);

/* "scalar", "avx2", "avx512". */
const char *fx_cpu_name(fx_cpu_level level);

/* Tests and benchmarks: sets the level, or the best supported one below it. Process-wide. */
void fx_cpu_use(fx_cpu_level level);

#endif
