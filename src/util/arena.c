#include "util/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define ALIGNMENT ((size_t)16)

struct fx_arena_chunk {
    struct fx_arena_chunk *older;
    size_t capacity;
};

#define HEADER_BYTES ((sizeof(struct fx_arena_chunk) + ALIGNMENT - 1) & ~(ALIGNMENT - 1))

void fx_arena_init(fx_arena *arena)
{
    arena->chunk = NULL;
    arena->used = 0;
}

void fx_arena_clear(fx_arena *arena)
{
    while (arena->chunk != NULL) {
        struct fx_arena_chunk *older = arena->chunk->older;
        fx_free(arena->chunk);
        arena->chunk = older;
    }
    arena->used = 0;
}

static struct fx_arena_chunk *new_chunk(size_t capacity)
{
    size_t n_bytes;
    if (!fx_add_size(capacity, HEADER_BYTES, &n_bytes)) {
        fx_error_nomem();
        return NULL;
    }
    struct fx_arena_chunk *chunk = fx_alloc(n_bytes);
    if (chunk != NULL) {
        chunk->capacity = capacity;
        chunk->older = NULL;
    }
    return chunk;
}

/* A large block gets a chunk of its own behind the one in use, whose free room is not lost. */
static void *alloc_large(fx_arena *arena, size_t n_bytes)
{
    struct fx_arena_chunk *chunk = new_chunk(n_bytes);
    if (chunk == NULL) {
        return NULL;
    }
    if (arena->chunk == NULL) {
        arena->chunk = chunk;
        arena->used = n_bytes;
    } else {
        chunk->older = arena->chunk->older;
        arena->chunk->older = chunk;
    }
    return (char *)chunk + HEADER_BYTES;
}

void *fx_arena_alloc(fx_arena *arena, size_t n_bytes)
{
    if (n_bytes > SIZE_MAX - ALIGNMENT) {
        fx_error_nomem();
        return NULL;
    }
    n_bytes = (n_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (n_bytes > CHUNK_BYTES / 4) {
        return alloc_large(arena, n_bytes);
    }
    if (arena->chunk == NULL || arena->chunk->capacity < arena->used || arena->chunk->capacity - arena->used < n_bytes) {
        struct fx_arena_chunk *chunk = new_chunk(CHUNK_BYTES);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->older = arena->chunk;
        arena->chunk = chunk;
        arena->used = 0;
    }
    void *block = (char *)arena->chunk + HEADER_BYTES + arena->used;
    arena->used += n_bytes;
    return block;
}

void *fx_arena_calloc(fx_arena *arena, size_t n_items, size_t item_bytes)
{
    size_t n_bytes;
    if (!fx_mul_size(n_items, item_bytes, &n_bytes)) {
        fx_error_nomem();
        return NULL;
    }
    void *block = fx_arena_alloc(arena, n_bytes);
    if (block != NULL) {
        memset(block, 0, n_bytes);
    }
    return block;
}

void *fx_arena_memdup(fx_arena *arena, const void *bytes, size_t n_bytes)
{
    void *copy = fx_arena_alloc(arena, n_bytes);
    if (copy != NULL && n_bytes > 0) {
        memcpy(copy, bytes, n_bytes);
    }
    return copy;
}

char *fx_arena_strdup(fx_arena *arena, const char *text)
{
    return fx_arena_memdup(arena, text, strlen(text) + 1);
}

char *fx_arena_printf(fx_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fx_error(FXTAP_E_INVALID, "text cannot be formatted");
        return NULL;
    }
    char *text = fx_arena_alloc(arena, (size_t)length + 1);
    if (text != NULL) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

void fx_arena_adopt(fx_arena *into, fx_arena *from)
{
    if (into->chunk == NULL) {
        *into = *from;
    } else if (from->chunk != NULL) {
        struct fx_arena_chunk *last = into->chunk;
        while (last->older != NULL) {
            last = last->older;
        }
        last->older = from->chunk;
    }
    fx_arena_init(from);
}
