#include "util/texts.h"

#include <stdbool.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/error.h"
#include "util/memory.h"

void fx_texts_clear(fx_texts *table)
{
    fx_arena *arena = table->arena;
    fx_arena_clear(&table->own);
    fx_free(table->entries);
    fx_free(table->slots);
    *table = (fx_texts){.arena = arena};
}

/* The slot of a text's entry, or the empty slot for it. The table is never full. */
static uint32_t *slot_of(const fx_texts *table, uint64_t hash, const char *text, size_t length)
{
    size_t mask = table->n_slots - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        if (table->slots[i] == 0) {
            return &table->slots[i];
        }
        const fx_texts_entry *entry = table->entries[table->slots[i] - 1];
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0) {
            return &table->slots[i];
        }
    }
}

/* Keeps the table at most half full. */
static bool grow(fx_texts *table)
{
    size_t n_slots = table->n_slots > 0 ? table->n_slots * 2 : 64;
    uint32_t *slots = fx_calloc(n_slots, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    fx_free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    for (size_t id = 0; id < table->count; id++) {
        size_t at = (size_t)table->entries[id]->hash & (n_slots - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (uint32_t)id + 1;
    }
    return true;
}

fx_texts_entry *fx_texts_find(const fx_texts *table, const char *text, size_t length)
{
    if (table->count == 0) {
        return NULL;
    }
    uint32_t number = *slot_of(table, XXH3_64bits(text, length), text, length);
    return number != 0 ? table->entries[number - 1] : NULL;
}

static fx_texts_entry *new_entry(fx_texts *table, uint64_t hash, const char *text, size_t length)
{
    if (length >= UINT32_MAX || table->count >= UINT32_MAX / 2) {
        fx_error(FXTAP_E_INVALID, "a text of %zu bytes is too long", length);
        return NULL;
    }
    fx_texts_entry *entry =
        fx_arena_alloc(table->arena != NULL ? table->arena : &table->own, sizeof *entry + length + 1);
    if (entry == NULL || !fx_grow((void **)&table->entries, &table->capacity, table->count + 1, sizeof entry)) {
        return NULL;
    }
    *entry = (fx_texts_entry){.hash = hash, .id = (uint32_t)table->count, .length = (uint32_t)length};
    memcpy(entry->text, text, length);
    entry->text[length] = '\0';
    table->entries[table->count++] = entry;
    table->n_bytes += length;
    return entry;
}

fx_texts_entry *fx_texts_add(fx_texts *table, const char *text, size_t length)
{
    if (table->count >= table->n_slots / 2 && !grow(table)) {
        return NULL;
    }
    text = length > 0 ? text : "";
    uint64_t hash = XXH3_64bits(text, length);
    uint32_t *slot = slot_of(table, hash, text, length);
    if (*slot != 0) {
        return table->entries[*slot - 1];
    }
    fx_texts_entry *entry = new_entry(table, hash, text, length);
    *slot = entry == NULL ? 0 : entry->id + 1;
    return entry;
}

const char *fx_texts_keep(fx_texts *table, const char *text, size_t length)
{
    fx_texts_entry *entry = fx_texts_add(table, text, length);
    return entry != NULL ? entry->text : NULL;
}

const fx_texts_entry *fx_texts_entry_of(const char *text)
{
    return (const fx_texts_entry *)(const void *)(text - offsetof(fx_texts_entry, text));
}
