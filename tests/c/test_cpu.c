/*
 * test_cpu.c - the choice of vector code: what FXTAP_CPU asks for, never more than the processor has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tensor/cpu.h"

/* The level that a fresh process takes with this environment: it is read once, so each case has its own process. */
static int level_with(const char *value)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (value != NULL) {
            setenv("FXTAP_CPU", value, 1);
        } else {
            unsetenv("FXTAP_CPU");
        }
        int first = (int)fx_cpu();
        setenv("FXTAP_CPU", "scalar", 1); /* too late */
        _exit(first == (int)fx_cpu() ? first : 99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int at_most(int wanted)
{
    int best = (int)fx_cpu_best();
    return wanted < best ? wanted : best;
}

static void environment_chooses(void **state)
{
    (void)state;
    assert_int_equal(level_with("scalar"), FX_CPU_SCALAR);
    assert_int_equal(level_with("avx2"), at_most(FX_CPU_AVX2));
    assert_int_equal(level_with("avx512"), at_most(FX_CPU_AVX512));
    assert_int_equal(level_with(NULL), (int)fx_cpu_best());
    assert_int_equal(level_with("sse9"), (int)fx_cpu_best());
    assert_int_equal(level_with(""), (int)fx_cpu_best());
}

static void use_is_bounded(void **state)
{
    (void)state;
    fx_cpu_use(FX_CPU_AVX512);
    assert_int_equal((int)fx_cpu(), at_most(FX_CPU_AVX512));
    fx_cpu_use(FX_CPU_SCALAR);
    assert_int_equal((int)fx_cpu(), FX_CPU_SCALAR);
    assert_string_equal(fx_cpu_name(FX_CPU_AVX2), "avx2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_chooses),
        cmocka_unit_test(use_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
