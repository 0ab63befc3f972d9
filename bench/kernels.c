/*
 * kernels.c - GB/s of each kernel on one core, per level, compared with a plain read of the same bytes.
 *
 * Build: cmake -DFXTAP_BENCH=ON, target bench_kernels. Run: bench_kernels [MIB [REPEATS [LEVEL [DTYPE]]]]. Bytes are
 * those read (both inputs of a difference); the best repeat counts. Small sizes measure the kernels, large ones the
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensor/cpu.h"
#include "tensor/difference.h"
#include "tensor/hash.h"
#include "tensor/stats.h"

static size_t n_bytes = (size_t)8 << 20;
static int n_repeats = 7;
static unsigned char *left;
static unsigned char *right;
static volatile uint64_t sink;

static const char *only_level;
static const char *only_dtype;

static bool is_wanted(const char *only, const char *name)
{
    return only == NULL || strcmp(only, name) == 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* excludes other load of the machine */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report(const char *what, const char *dtype, double bytes, void (*run)(fxtap_dtype), fxtap_dtype argument)
{
    double best = 1e9;
    for (int i = 0; i < n_repeats; i++) {
        double start = now();
        run(argument);
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    printf("%-8s %-22s %-10s %8.2f GB/s\n", fx_cpu_name(fx_cpu()), what, dtype, bytes / best * 1e-9);
}

static void run_read(fxtap_dtype dtype)
{
    (void)dtype;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < n_bytes; i += 64) {
        uint64_t a[8], b[8];
        memcpy(a, left + i, 64);
        memcpy(b, right + i, 64);
        for (int k = 0; k < 8; k++) {
            sum[k] += a[k] + b[k];
        }
    }
    sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

static void run_hash(fxtap_dtype dtype)
{
    (void)dtype;
    sink = fx_hash_bytes(left, n_bytes).low;
}

static void run_stats(fxtap_dtype dtype)
{
    fxtap_stats stats;
    fx_stats_saved(dtype, left, n_bytes / fxtap_dtype_size(dtype), &stats, NULL);
    sink = stats.count;
}

static void run_both(fxtap_dtype dtype)
{
    fxtap_stats stats;
    fxtap_hash128 hash;
    fx_stats_saved(dtype, left, n_bytes / fxtap_dtype_size(dtype), &stats, &hash);
    sink = hash.low;
}

static void run_view(fxtap_dtype dtype)
{
    fxtap_stats stats;
    fxtap_hash128 hash;
    int64_t shape[1] = {(int64_t)(n_bytes / fxtap_dtype_size(dtype))};
    fxtap_view view = {.data = left, .dtype = dtype, .ndim = 1, .shape = shape};
    sink = (uint64_t)fxtap_stats_compute(&view, &stats, &hash);
}

static fxtap_dtype judged;

static void run_difference(fxtap_dtype dtype)
{
    fx_difference_options options = {.rtol = 1e-3, .atol = 1e-5, .judged = judged, .n_worst = 5};
    fx_difference_result result;
    int64_t shape[1] = {(int64_t)(n_bytes / fxtap_dtype_size(dtype))};
    fxtap_view b = {.data = left, .dtype = dtype, .ndim = 1, .shape = shape};
    fxtap_view a = {.data = right, .dtype = dtype, .ndim = 1, .shape = shape};
    fx_difference_compute(&b, &a, &options, &result);
    sink = result.mismatched;
}

static void fill(unsigned char *bytes, fxtap_dtype dtype)
{
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < n_bytes / fxtap_dtype_size(dtype); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(random >> 11) * 0x1p-53 - 0.5;
        float single = (float)unit;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        uint16_t half = (uint16_t)((bits >> 16 & 0x8000u) | ((0x2000u + (uint32_t)(random >> 50)) & 0x3bffu));
        uint16_t brain = (uint16_t)(bits >> 16);
        uint64_t integer = random >> 33;
        const void *from = dtype == FXTAP_FLOAT64    ? (const void *)&unit
                           : dtype == FXTAP_FLOAT32  ? (const void *)&single
                           : dtype == FXTAP_FLOAT16  ? (const void *)&half
                           : dtype == FXTAP_BFLOAT16 ? (const void *)&brain
                                                     : (const void *)&integer;
        if (dtype == FXTAP_COMPLEX64) {
            memcpy(bytes + 8 * i, &single, 4);
            memcpy(bytes + 8 * i + 4, &single, 4);
        } else {
            memcpy(bytes + i * fxtap_dtype_size(dtype), from, fxtap_dtype_size(dtype));
        }
    }
}

/* The same bytes with the lowest bits of every element changed. */
static void perturb(fxtap_dtype dtype)
{
    size_t size = fxtap_dtype_size(dtype);
    memcpy(right, left, n_bytes);
    for (size_t i = 0; i < n_bytes / size; i++) {
        right[i * size] ^= (unsigned char)(i * 2654435761u >> 16) & 7;
    }
}

static void bench_difference(void)
{
    static const fxtap_dtype dtypes[] = {FXTAP_FLOAT32, FXTAP_BFLOAT16, FXTAP_FLOAT16, FXTAP_FLOAT64,
                                         FXTAP_INT32,   FXTAP_INT64,    FXTAP_UINT8,   FXTAP_COMPLEX64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        fxtap_dtype saved = dtypes[i] == FXTAP_BFLOAT16 ? FXTAP_FLOAT32 : dtypes[i];
        judged = dtypes[i];
        if (!is_wanted(only_dtype, fxtap_dtype_name(judged))) {
            continue;
        }
        fill(left, saved);
        perturb(saved);
        report("difference", fxtap_dtype_name(judged), 2.0 * (double)n_bytes, run_difference, saved);
        if (i == 0) {
            memcpy(left + n_bytes / 2, "\377\377\377\177", 4); /* one NaN */
            for (size_t k = 0; k < n_bytes / 4; k += 1000) {
                memcpy(left + 4 * k, "\0\0\200\177", 4);
            }
            report("difference, with Inf", "float32", 2.0 * (double)n_bytes, run_difference, saved);
            memcpy(right, left, n_bytes);
            report("difference, equal", "float32", 2.0 * (double)n_bytes, run_difference, saved);
        }
    }
}

static void run_small_differences(void)
{
    static const size_t lengths[] = {1, 64, 1024};
    judged = FXTAP_FLOAT32;
    fill(left, FXTAP_FLOAT32);
    perturb(FXTAP_FLOAT32);
    size_t whole = n_bytes;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        n_bytes = 4 * lengths[k];
        double start = now();
        for (int i = 0; i < 20000; i++) {
            run_difference(FXTAP_FLOAT32);
        }
        printf("%-8s difference of %4zu float32 %12.0f ns\n", fx_cpu_name(fx_cpu()), lengths[k],
               (now() - start) * 1e9 / 20000);
    }
    n_bytes = whole;
}

static void run_small(void)
{
    static const size_t lengths[] = {1, 4, 16, 64, 256, 1024};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        fxtap_stats stats;
        fxtap_hash128 hash;
        int64_t shape[1] = {(int64_t)lengths[k]};
        fxtap_view view = {.data = left, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape};
        double start = now();
        for (int i = 0; i < 20000; i++) {
            fxtap_stats_compute(&view, &stats, &hash);
        }
        printf("%-8s stats + hash of %4zu float32 %8.0f ns\n", fx_cpu_name(fx_cpu()), lengths[k],
               (now() - start) * 1e9 / 20000);
    }
}

int main(int argc, char **argv)
{
    static const fxtap_dtype dtypes[] = {FXTAP_FLOAT32, FXTAP_FLOAT16, FXTAP_FLOAT64, FXTAP_BOOL,      FXTAP_UINT8,
                                         FXTAP_INT8,    FXTAP_INT32,   FXTAP_INT64,   FXTAP_COMPLEX64, FXTAP_BFLOAT16};
    n_bytes = (argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 8) << 20;
    n_repeats = argc > 2 ? atoi(argv[2]) : 7;
    only_level = argc > 3 ? argv[3] : NULL;
    only_dtype = argc > 4 ? argv[4] : NULL;
    left = malloc(n_bytes);
    right = malloc(n_bytes);
    if (left == NULL || right == NULL) {
        return 1;
    }
    memset(left, 0, n_bytes);
    memset(right, 0, n_bytes);
    for (int level = FX_CPU_SCALAR; level <= (int)fx_cpu_best(); level++) {
        if (!is_wanted(only_level, fx_cpu_name((fx_cpu_level)level))) {
            continue;
        }
        fx_cpu_use((fx_cpu_level)level);
        report("read both", "", 2.0 * (double)n_bytes, run_read, FXTAP_FLOAT32);
        report("hash", "", (double)n_bytes, run_hash, FXTAP_FLOAT32);
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            const char *name = fxtap_dtype_name(dtypes[i]);
            if (!is_wanted(only_dtype, name)) {
                continue;
            }
            fill(left, dtypes[i]);
            if (dtypes[i] != FXTAP_BFLOAT16) {
                report("stats", name, (double)n_bytes, run_stats, dtypes[i]);
                report("stats + hash", name, (double)n_bytes, run_both, dtypes[i]);
            } else {
                report("view: stats + hash", name, (double)n_bytes, run_view, dtypes[i]);
            }
        }
        fill(left, FXTAP_FLOAT32);
        run_small();
        bench_difference();
        run_small_differences();
    }
    free(left);
    free(right);
    return 0;
}
