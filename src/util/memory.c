#include "util/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/graph.h"
#include "util/error.h"

static atomic_llong fail_countdown = -1;

void fx_memory_fail_after(long long n)
{
    atomic_store(&fail_countdown, n);
}

bool fx_memory_fail_pending(void)
{
    return atomic_load(&fail_countdown) >= 0;
}

static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) < 0) {
        return false;
    }
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}

static void *checked(void *memory)
{
    if (memory == NULL) {
        fx_error_nomem();
    }
    return memory;
}

void *fx_alloc(size_t n_bytes)
{
    return checked(must_fail() ? NULL : malloc(n_bytes > 0 ? n_bytes : 1));
}

void *fx_calloc(size_t n_items, size_t item_bytes)
{
    if (n_items == 0 || item_bytes == 0) {
        n_items = item_bytes = 1;
    }
    return checked(must_fail() ? NULL : calloc(n_items, item_bytes));
}

void *fx_realloc_array(void *old, size_t n_items, size_t item_bytes)
{
    size_t n_bytes;
    if (!fx_mul_size(n_items, item_bytes, &n_bytes)) {
        return checked(NULL);
    }
    return checked(must_fail() ? NULL : realloc(old, n_bytes > 0 ? n_bytes : 1));
}

char *fx_strdup(const char *text)
{
    return fx_memdup(text, strlen(text) + 1);
}

void *fx_memdup(const void *bytes, size_t n_bytes)
{
    void *copy = fx_alloc(n_bytes);
    if (copy != NULL && n_bytes > 0) {
        memcpy(copy, bytes, n_bytes);
    }
    return copy;
}

void fx_free(void *memory)
{
    free(memory);
}

void fxtap_free(void *memory)
{
    free(memory);
}

bool fx_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (!fx_mul_size(wanted, 2, &wanted)) {
            fx_error_nomem();
            return false;
        }
    }
    void *grown = fx_realloc_array(*items, wanted, item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}
