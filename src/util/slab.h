/*
 * slab.h - an arena that remembers a failure: after the first one every allocation gives NULL and `failed` is true, so
 * that a walk over a graph need not ask at each step. The thread's error is FXTAP_E_NOMEM.
 */
#ifndef FX_UTIL_SLAB_H
#define FX_UTIL_SLAB_H

#include <stdbool.h>
#include <stddef.h>

#include "util/arena.h"

typedef struct fx_slab {
    fx_arena arena;
    bool failed;
} fx_slab;

void fx_slab_init(fx_slab *slab);
void fx_slab_clear(fx_slab *slab);
void *fx_slab_alloc(fx_slab *slab, size_t n_items, size_t item_bytes); /* zeroed */
char *fx_slab_text(fx_slab *slab, const char *bytes, size_t length);   /* a NUL-terminated copy */
char *fx_slab_printf(fx_slab *slab, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
