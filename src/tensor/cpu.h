/*
 * cpu.h - which vector code runs: the widest that this processor has, or what FXTAP_CPU says.
 */
#ifndef FX_TENSOR_CPU_H
#define FX_TENSOR_CPU_H

typedef enum fx_cpu_level {
    FX_CPU_SCALAR = 0, /* portable C */
    FX_CPU_AVX2 = 1,   /* AVX2 and F16C */
    FX_CPU_AVX512 = 2  /* AVX-512 F, BW, DQ, VL */
} fx_cpu_level;

/*
 * The level in use: the environment's FXTAP_CPU=scalar|avx2|avx512 as far as the processor has it, else the best.
 * Read once per process, safe from any thread.
 */
fx_cpu_level fx_cpu(void);

/* The best level that this processor and this build have, whatever the environment says. */
fx_cpu_level fx_cpu_best(void);

/* "scalar", "avx2", "avx512". */
const char *fx_cpu_name(fx_cpu_level level);

/* Tests and benchmarks: use `level` from now on, or the best below it that there is. Process-wide. */
void fx_cpu_use(fx_cpu_level level);

#endif
