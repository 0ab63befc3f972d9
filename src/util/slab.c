#include "util/slab.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void fx_slab_init(fx_slab *slab)
{
    fx_arena_init(&slab->arena);
    slab->failed = false;
}

void fx_slab_clear(fx_slab *slab)
{
    fx_arena_clear(&slab->arena);
    slab->failed = false;
}

void *fx_slab_alloc(fx_slab *slab, size_t n_items, size_t item_bytes)
{
    void *memory = slab->failed ? NULL : fx_arena_calloc(&slab->arena, n_items, item_bytes);
    slab->failed = memory == NULL;
    return memory;
}

char *fx_slab_text(fx_slab *slab, const char *bytes, size_t length)
{
    char *copy = length < SIZE_MAX ? fx_slab_alloc(slab, length + 1, 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, bytes, length);
    }
    return copy;
}

char *fx_slab_printf(fx_slab *slab, const char *format, ...)
{
    char usual[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(usual, sizeof usual, format, arguments);
    char *text = length < 0 ? NULL : fx_slab_alloc(slab, (size_t)length + 1, 1);
    if (text != NULL && (size_t)length < sizeof usual) {
        memcpy(text, usual, (size_t)length + 1);
    } else if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    return text;
}
