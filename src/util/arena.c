#include "util/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define ALIGNMENT ((size_t)16)
#ifdef __SANITIZE_ADDRESS__
static const size_t max_spare = 0; /* lets a sanitiser see the use of a freed block */
#else
static const size_t max_spare = 64;
#endif

struct fx_arena_chunk {
    struct fx_arena_chunk *older;
    size_t capacity;
};

#define HEADER_BYTES ((sizeof(struct fx_arena_chunk) + ALIGNMENT - 1) & ~(ALIGNMENT - 1))

void fx_arena_init(fx_arena *arena)
{
    *arena = (fx_arena){0};
}

static void *fail(fx_arena *arena)
{
    arena->failed = true;
    return NULL;
}

static void free_chunks(struct fx_arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct fx_arena_chunk *older = chunk->older;
        fx_free(chunk);
        chunk = older;
    }
}

void fx_arena_clear(fx_arena *arena)
{
    free_chunks(arena->chunk);
    free_chunks(arena->spare);
    fx_arena_init(arena);
}

void fx_arena_reset(fx_arena *arena)
{
    struct fx_arena_chunk *chunk = arena->chunk;
    struct fx_arena_chunk *spare = NULL;
    size_t n_spare = 0;
    free_chunks(arena->spare);
    while (chunk != NULL) {
        struct fx_arena_chunk *older = chunk->older;
        if (chunk->capacity == CHUNK_BYTES && n_spare < max_spare) {
            chunk->older = spare;
            spare = chunk;
            n_spare++;
        } else {
            fx_free(chunk);
        }
        chunk = older;
    }
    *arena = (fx_arena){.spare = spare, .stays_failed = arena->stays_failed};
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

/* A large block gets its own chunk behind the one in use, so that the free room of that one is not lost. */
static void *alloc_large(fx_arena *arena, size_t n_bytes)
{
    struct fx_arena_chunk *chunk = new_chunk(n_bytes);
    if (chunk == NULL) {
        return fail(arena);
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
    if (n_bytes > SIZE_MAX - ALIGNMENT || (arena->failed && arena->stays_failed)) {
        fx_error_nomem();
        return fail(arena);
    }
    n_bytes = (n_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (n_bytes > CHUNK_BYTES / 4) {
        return alloc_large(arena, n_bytes);
    }
    if (arena->chunk == NULL || arena->chunk->capacity < arena->used ||
        arena->chunk->capacity - arena->used < n_bytes) {
        struct fx_arena_chunk *chunk = arena->spare;
        if (chunk != NULL) {
            arena->spare = chunk->older;
        } else if ((chunk = new_chunk(CHUNK_BYTES)) == NULL) {
            return fail(arena);
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
        return fail(arena);
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

void *fx_arena_copy(fx_arena *arena, const void *items, size_t n_items, size_t item_bytes)
{
    size_t n_bytes;
    if (!fx_mul_size(n_items, item_bytes, &n_bytes)) {
        fx_error_nomem();
        return fail(arena);
    }
    return fx_arena_memdup(arena, items, n_bytes);
}

char *fx_text_copy(fx_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? fx_arena_alloc(arena, length + 1) : fail(arena);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *fx_arena_strdup(fx_arena *arena, const char *text)
{
    return fx_arena_memdup(arena, text, strlen(text) + 1);
}

char *fx_arena_printf(fx_arena *arena, const char *format, ...)
{
    char fixed[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(fixed, sizeof fixed, format, arguments);
    char *text = NULL;
    if (length < 0) {
        fx_error(FXTAP_E_INVALID, "text cannot be formatted");
        arena->failed = true;
    } else if ((size_t)length < sizeof fixed) {
        text = fx_text_copy(arena, fixed, (size_t)length);
    } else if ((text = fx_arena_alloc(arena, (size_t)length + 1)) != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    return text;
}

void fx_arena_adopt(fx_arena *into, fx_arena *from)
{
    if (into->chunk == NULL) {
        free_chunks(into->spare);
        *into = *from;
    } else {
        struct fx_arena_chunk *last = into->chunk;
        while (last->older != NULL) {
            last = last->older;
        }
        last->older = from->chunk;
        free_chunks(from->spare);
    }
    fx_arena_init(from);
}
