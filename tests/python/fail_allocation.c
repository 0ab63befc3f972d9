/*
 * Preloaded into Python: makes the n-th allocation (from 0) by code between two addresses, those of a library, fail.
 * Everything else is glibc's allocator.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static uintptr_t first, last;
static atomic_long countdown = -1;

/* A negative `n` disables it; returns whether a requested failure has not occurred yet. */
int fail_allocation(uintptr_t from, uintptr_t to, long n)
{
    int pending = atomic_exchange(&countdown, n) >= 0;
    first = from;
    last = to;
    return pending;
}

static int must_fail(void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    return atomic_load(&countdown) >= 0 && address >= first && address < last && atomic_fetch_sub(&countdown, 1) == 0;
}

void *malloc(size_t n_bytes)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(n_bytes);
}

void *calloc(size_t n_items, size_t item_bytes)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(n_items, item_bytes);
}

void *realloc(void *old, size_t n_bytes)
{
    return must_fail(__builtin_return_address(0)) ? NULL : __libc_realloc(old, n_bytes);
}
