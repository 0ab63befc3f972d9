#include "store/texts.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/memory.h"

char *fx_text_copy(fx_arena *arena, const char *text, size_t length)
{
    char *copy = fx_arena_alloc(arena, length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void fx_texts_clear(fx_texts *table)
{
    fx_free(table->entries);
    table->entries = NULL;
    table->capacity = table->count = 0;
}

/* The place of a text: its entry, or the empty one where it would go. The table is never full. */
static fx_texts_entry *place_of(const fx_texts *table, uint64_t hash, const char *text, size_t length)
{
    size_t mask = table->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        fx_texts_entry *entry = &table->entries[i];
        if (entry->text == NULL) {
            return entry;
        }
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0) {
            return entry;
        }
    }
}

static bool grow(fx_texts *table)
{
    fx_texts old = *table;
    size_t capacity = old.capacity > 0 ? old.capacity * 2 : 16;
    fx_texts_entry *entries = fx_calloc(capacity, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    table->entries = entries;
    table->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        const fx_texts_entry *entry = &old.entries[i];
        if (entry->text != NULL) {
            *place_of(table, entry->hash, entry->text, entry->length) = *entry;
        }
    }
    fx_free(old.entries);
    return true;
}

fx_texts_entry *fx_texts_find(const fx_texts *table, const char *text, size_t length)
{
    if (table->count == 0) {
        return NULL;
    }
    fx_texts_entry *entry = place_of(table, XXH3_64bits(text, length), text, length);
    return entry->text != NULL ? entry : NULL;
}

fx_texts_entry *fx_texts_add(fx_texts *table, const char *text, size_t length)
{
    if (table->count >= table->capacity / 2 && !grow(table)) {
        return NULL;
    }
    uint64_t hash = XXH3_64bits(text, length);
    fx_texts_entry *entry = place_of(table, hash, text, length);
    if (entry->text == NULL) {
        const char *copy = fx_text_copy(table->arena, text, length);
        if (copy == NULL) {
            return NULL;
        }
        *entry = (fx_texts_entry){.hash = hash, .text = copy, .length = length};
        table->count++;
    }
    return entry;
}

const char *fx_texts_keep(fx_texts *table, const char *text, size_t length)
{
    fx_texts_entry *entry = fx_texts_add(table, text, length);
    return entry != NULL ? entry->text : NULL;
}
