/*
 * buffer.h - an inline fxtap_buffer_append() for printers, which append a few bytes a million times.
 */
#ifndef FX_UTIL_BUFFER_H
#define FX_UTIL_BUFFER_H

#include <string.h>

#include "util/output.h"

static inline void fx_buffer_put(fxtap_buffer *buffer, const void *bytes, size_t length)
{
    if (buffer->status == FXTAP_OK && length < buffer->capacity - buffer->length) {
        if (length > 0) { /* bytes may be NULL if there are none */
            memcpy(buffer->bytes + buffer->length, bytes, length);
        }
        buffer->length += length;
        buffer->bytes[buffer->length] = '\0';
    } else {
        fxtap_buffer_append(buffer, bytes, length);
    }
}

static inline void fx_buffer_put_text(fxtap_buffer *buffer, const char *text)
{
    fx_buffer_put(buffer, text, strlen(text));
}

#endif
