/*
 * texts.h - a table of interned texts: equal texts share one copy, whose address never changes. Not thread-safe.
 *
 * A zeroed struct is an empty table that owns its memory; if `arena` is set, texts are allocated there.
 */
#ifndef FX_UTIL_TEXTS_H
#define FX_UTIL_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

typedef struct fx_texts_entry {
    uint64_t hash;
    void *value; /* for the caller; NULL in a new entry */
    uint32_t id; /* order of insertion, from 0 */
    uint32_t length;
    char text[]; /* NUL-terminated; aligned to 8 bytes */
} fx_texts_entry;

typedef struct fx_texts {
    fx_arena *arena; /* borrowed; NULL: `own` */
    fx_arena own;
    fx_texts_entry **entries; /* by id */
    size_t count, capacity;
    uint64_t n_bytes; /* of all texts together */
    uint32_t *slots;  /* a hash table of ids + 1; 0: empty */
    size_t n_slots;   /* a power of two, or 0 */
} fx_texts;

void fx_texts_clear(fx_texts *table); /* texts in a borrowed arena stay there */
fx_texts_entry *fx_texts_find(const fx_texts *table, const char *text, size_t length);
/* The entry of a text, added if new. NULL: FXTAP_E_NOMEM or (4 GiB and more) FXTAP_E_INVALID. */
fx_texts_entry *fx_texts_add(fx_texts *table, const char *text, size_t length);
/* The table's own copy of a text. NULL: as fx_texts_add(). */
const char *fx_texts_keep(fx_texts *table, const char *text, size_t length);
/* The entry of a table's own copy. */
const fx_texts_entry *fx_texts_entry_of(const char *text);

#endif
