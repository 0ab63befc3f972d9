/* record_pool.c - memory that never moves, and interned strings, for graph records. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "graph/record.h"
#include "util/error.h"
#include "util/memory.h"

#define CHUNK_BYTES ((size_t)32 * 1024)

struct fx_chunk {
    fx_chunk *next;
    size_t used;
    size_t size;
    _Alignas(16) unsigned char bytes[];
};

static fx_chunk *add_chunk(fx_pool *pool, size_t size)
{
    size_t n_bytes;
    fx_chunk *chunk = fx_add_size(sizeof *chunk, size, &n_bytes) ? fx_alloc(n_bytes) : NULL;
    if (chunk == NULL) {
        fx_error_nomem();
        return NULL;
    }
    chunk->used = 0;
    chunk->size = size;
    if (pool->chunks != NULL && size > CHUNK_BYTES) {
        chunk->next = pool->chunks->next; /* a large one of its own: the newest goes on being filled */
        pool->chunks->next = chunk;
    } else {
        chunk->next = pool->chunks;
        pool->chunks = chunk;
    }
    return chunk;
}

void *fx_pool_alloc(fx_pool *pool, size_t n_bytes)
{
    size_t size;
    if (!fx_add_size(n_bytes, 15, &size)) {
        fx_error_nomem();
        return NULL;
    }
    size = size < 16 ? 16 : size & ~(size_t)15;
    fx_chunk *chunk = pool->chunks;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        chunk = add_chunk(pool, size > CHUNK_BYTES / 4 ? (size > CHUNK_BYTES ? size : CHUNK_BYTES + 1) : CHUNK_BYTES);
        if (chunk == NULL) {
            return NULL;
        }
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

void *fx_pool_copy(fx_pool *pool, const void *bytes, size_t n_items, size_t item_bytes)
{
    size_t n_bytes;
    if (!fx_mul_size(n_items, item_bytes, &n_bytes)) {
        fx_error_nomem();
        return NULL;
    }
    void *copy = fx_pool_alloc(pool, n_bytes);
    if (copy != NULL && n_bytes > 0) {
        memcpy(copy, bytes, n_bytes);
    }
    return copy;
}

void fx_pool_clear(fx_pool *pool)
{
    for (fx_chunk *chunk = pool->chunks; chunk != NULL;) {
        fx_chunk *next = chunk->next;
        fx_free(chunk);
        chunk = next;
    }
    fx_free(pool->strings);
    fx_free(pool->slots);
    memset(pool, 0, sizeof *pool);
}

const fx_string *fx_string_of(const char *interned)
{
    return (const fx_string *)(const void *)(interned - offsetof(fx_string, bytes));
}

/* The slot that holds the string, or the empty one where it belongs. There is always an empty one. */
static size_t find_slot(const fx_pool *pool, uint64_t hash, const char *bytes, size_t length)
{
    size_t i = (size_t)hash & (pool->n_slots - 1);
    while (pool->slots[i] != 0) {
        const fx_string *string = pool->strings[pool->slots[i] - 1];
        if (string->hash == hash && string->length == length && memcmp(string->bytes, bytes, length) == 0) {
            break;
        }
        i = (i + 1) & (pool->n_slots - 1);
    }
    return i;
}

/* Keeps the table at most half full. */
static bool make_slots(fx_pool *pool)
{
    if ((pool->n_strings + 1) * 2 <= pool->n_slots) {
        return true;
    }
    size_t n_slots = pool->n_slots == 0 ? 256 : pool->n_slots * 2;
    uint32_t *slots = fx_calloc(n_slots, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t id = 0; id < pool->n_strings; id++) {
        size_t i = (size_t)pool->strings[id]->hash & (n_slots - 1);
        while (slots[i] != 0) {
            i = (i + 1) & (n_slots - 1);
        }
        slots[i] = (uint32_t)id + 1;
    }
    fx_free(pool->slots);
    pool->slots = slots;
    pool->n_slots = n_slots;
    return true;
}

static fx_string *new_string(fx_pool *pool, uint64_t hash, const char *bytes, size_t length)
{
    if (length >= UINT32_MAX || pool->n_strings >= UINT32_MAX - 1) {
        fx_error(FXTAP_E_INVALID, "a graph record holds no string of %zu bytes", length);
        return NULL;
    }
    fx_string *string = fx_pool_alloc(pool, sizeof *string + length + 1);
    if (string == NULL) {
        return NULL;
    }
    string->hash = hash;
    string->id = (uint32_t)pool->n_strings;
    string->length = (uint32_t)length;
    if (length > 0) {
        memcpy(string->bytes, bytes, length);
    }
    string->bytes[length] = '\0';
    return string;
}

const char *fx_pool_intern(fx_pool *pool, const char *bytes, size_t length)
{
    if (!make_slots(pool)) {
        return NULL;
    }
    bytes = length > 0 ? bytes : "";
    uint64_t hash = XXH3_64bits(bytes, length);
    size_t slot = find_slot(pool, hash, bytes, length);
    if (pool->slots[slot] != 0) {
        return pool->strings[pool->slots[slot] - 1]->bytes;
    }
    if (!fx_grow((void **)&pool->strings, &pool->strings_capacity, pool->n_strings + 1, sizeof(fx_string *))) {
        return NULL;
    }
    fx_string *string = new_string(pool, hash, bytes, length);
    if (string == NULL) {
        return NULL;
    }
    pool->strings[pool->n_strings++] = string;
    pool->slots[slot] = string->id + 1;
    return string->bytes;
}

const char *fx_pool_find(const fx_pool *pool, const char *bytes, size_t length)
{
    if (pool->n_slots == 0) {
        return NULL;
    }
    size_t slot = find_slot(pool, XXH3_64bits(bytes, length), bytes, length);
    return pool->slots[slot] != 0 ? pool->strings[pool->slots[slot] - 1]->bytes : NULL;
}
