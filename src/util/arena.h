/*
 * arena.h - many small allocations that are freed together. Not thread-safe; memory is aligned to 16 bytes.
 */
#ifndef FX_UTIL_ARENA_H
#define FX_UTIL_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fx_arena {
    struct fx_arena_chunk *chunk; /* the chunk in use, linked to the older ones */
    struct fx_arena_chunk *spare; /* empty chunks kept by a reset */
    size_t used;
    bool failed;       /* an allocation has failed since init or reset */
    bool stays_failed; /* set by the owner: after a failure every allocation fails: a long walk checks once */
} fx_arena;

void fx_arena_init(fx_arena *arena);
void fx_arena_clear(fx_arena *arena); /* frees everything; the arena can be used again */
void fx_arena_reset(fx_arena *arena); /* frees every block, and keeps some memory for new ones */

/* All return NULL, with the thread's error set, when out of memory. */
void *fx_arena_alloc(fx_arena *arena, size_t n_bytes); /* uninitialised */
void *fx_arena_calloc(fx_arena *arena, size_t n_items, size_t item_bytes);
void *fx_arena_copy(fx_arena *arena, const void *items, size_t n_items, size_t item_bytes);
void *fx_arena_memdup(fx_arena *arena, const void *bytes, size_t n_bytes);
char *fx_text_copy(fx_arena *arena, const char *text, size_t length); /* NUL-terminated */
char *fx_arena_strdup(fx_arena *arena, const char *text);
char *fx_arena_printf(fx_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Moves all blocks of `from` to `into`; `from` is then empty. */
void fx_arena_adopt(fx_arena *into, fx_arena *from);

#endif
