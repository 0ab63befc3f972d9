/*
 * memory.h - allocation with checked sizes. Every allocation of the library goes through here, so that a test can
 * make the n-th one fail (fx_memory_fail_after). All return NULL with the thread's error set to FXTAP_E_NOMEM.
 */
#ifndef FX_UTIL_MEMORY_H
#define FX_UTIL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *fx_alloc(size_t n_bytes);                     /* uninitialised; returns a unique pointer for 0 bytes */
void *fx_calloc(size_t n_items, size_t item_bytes); /* zeroed, overflow-checked */
void *fx_realloc_array(void *old, size_t n_items, size_t item_bytes); /* on failure `old` is still valid */
char *fx_strdup(const char *text);
void *fx_memdup(const void *bytes, size_t n_bytes);
void fx_free(void *memory);

/* Makes room for at least `needed` items by doubling; updates *items and *capacity. False: out of memory. */
bool fx_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes);

/* a * b, a + b and a - b; false on overflow. */
#define FX_CHECKED(operation, name, type)                                                                              \
    static inline bool fx_##operation##_##name(type a, type b, type *out)                                              \
    {                                                                                                                  \
        return !__builtin_##operation##_overflow(a, b, out);                                                           \
    }
FX_CHECKED(mul, size, size_t)
FX_CHECKED(add, size, size_t)
FX_CHECKED(mul, u64, uint64_t)
FX_CHECKED(mul, i64, int64_t)
FX_CHECKED(add, i64, int64_t)
FX_CHECKED(sub, i64, int64_t)
#undef FX_CHECKED

/* Tests only: the allocation after the next `n` fails, once; a negative `n` disables this. Process-wide. */
void fx_memory_fail_after(long long n);
/* True while the requested failure has not happened yet. */
bool fx_memory_fail_pending(void);

#endif
