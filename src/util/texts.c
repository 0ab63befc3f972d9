#include "util/texts.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/error.h"
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
    fx_arena *arena = table->arena;
    fx_free(table->entries);
    fx_free(table->places);
    *table = (fx_texts){.arena = arena};
}

/* The place of a text: of its entry, or the empty one where it would go. The table is never full. */
static uint32_t *place_of(const fx_texts *table, uint64_t hash, const char *text, size_t length)
{
    size_t mask = table->n_places - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t number = table->places[i];
        if (number == 0) {
            return &table->places[i];
        }
        const fx_texts_entry *entry = &table->entries[number - 1];
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0) {
            return &table->places[i];
        }
    }
}

/* Small places beside the entries: a large table touches little memory when it grows. */
static bool grow(fx_texts *table)
{
    size_t n_places = table->n_places > 0 ? table->n_places * 2 : 16;
    if (table->count >= UINT32_MAX / 2) {
        fx_error_nomem();
        return false;
    }
    uint32_t *places = fx_calloc(n_places, sizeof *places);
    if (places == NULL) {
        return false;
    }
    fx_free(table->places);
    table->places = places;
    table->n_places = n_places;
    for (size_t i = 0; i < table->count; i++) {
        size_t at = (size_t)table->entries[i].hash & (n_places - 1);
        while (places[at] != 0) {
            at = (at + 1) & (n_places - 1);
        }
        places[at] = (uint32_t)(i + 1);
    }
    return true;
}

fx_texts_entry *fx_texts_find(const fx_texts *table, const char *text, size_t length)
{
    if (table->count == 0) {
        return NULL;
    }
    uint32_t number = *place_of(table, XXH3_64bits(text, length), text, length);
    return number != 0 ? &table->entries[number - 1] : NULL;
}

fx_texts_entry *fx_texts_add(fx_texts *table, const char *text, size_t length)
{
    if (table->count >= table->n_places / 2 && !grow(table)) {
        return NULL;
    }
    uint64_t hash = XXH3_64bits(text, length);
    uint32_t *place = place_of(table, hash, text, length);
    if (*place == 0) {
        void *entries = table->entries;
        const char *copy = fx_text_copy(table->arena, text, length);
        if (copy == NULL || !fx_grow(&entries, &table->capacity, table->count + 1, sizeof *table->entries)) {
            return NULL;
        }
        table->entries = entries;
        table->entries[table->count++] = (fx_texts_entry){.hash = hash, .text = copy, .length = length};
        *place = (uint32_t)table->count;
    }
    return &table->entries[*place - 1];
}

const char *fx_texts_keep(fx_texts *table, const char *text, size_t length)
{
    fx_texts_entry *entry = fx_texts_add(table, text, length);
    return entry != NULL ? entry->text : NULL;
}
