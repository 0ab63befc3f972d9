/*
 * texts.h - a table of texts in an arena: each is kept once. Not thread-safe.
 */
#ifndef FX_UTIL_TEXTS_H
#define FX_UTIL_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

/* A NUL-terminated copy of `length` bytes; NULL: no memory. */
char *fx_text_copy(fx_arena *arena, const char *text, size_t length);

typedef struct fx_texts_entry {
    uint64_t hash;
    const char *text; /* in the arena, NUL-terminated */
    size_t length;
    void *value; /* the user's; NULL when new */
} fx_texts_entry;

/* A zeroed struct with its arena set is an empty table. */
typedef struct fx_texts {
    fx_arena *arena;
    fx_texts_entry *entries; /* in the order in which they came */
    size_t count, capacity;
    uint32_t *places; /* a hash table of entries by their number from 1; 0: empty */
    size_t n_places;  /* a power of two, or 0 */
} fx_texts;

void fx_texts_clear(fx_texts *table); /* the texts stay in the arena */
fx_texts_entry *fx_texts_find(const fx_texts *table, const char *text, size_t length);
/* The entry of a text, made when it is not there; valid until the next add. NULL: no memory. */
fx_texts_entry *fx_texts_add(fx_texts *table, const char *text, size_t length);
/* The table's own copy of a text. NULL: no memory. */
const char *fx_texts_keep(fx_texts *table, const char *text, size_t length);

#endif
