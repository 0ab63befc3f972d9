#include "fxtap/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

void fxtap_buffer_init(fxtap_buffer *buffer)
{
    *buffer = (fxtap_buffer){.bytes = NULL};
}

void fxtap_buffer_clear(fxtap_buffer *buffer)
{
    fx_free(buffer->bytes);
    fxtap_buffer_init(buffer);
}

fxtap_status fxtap_buffer_status(const fxtap_buffer *buffer)
{
    return buffer->status;
}

/* Room for `length` more bytes and the NUL after them. */
static bool reserve(fxtap_buffer *buffer, size_t length)
{
    size_t needed;
    if (buffer->status != FXTAP_OK) {
        return false;
    }
    if (!fx_add_size(buffer->length, length, &needed) || !fx_add_size(needed, 1, &needed)) {
        buffer->status = fx_error_nomem();
        return false;
    }
    void *bytes = buffer->bytes;
    if (!fx_grow(&bytes, &buffer->capacity, needed, 1)) {
        buffer->status = FXTAP_E_NOMEM;
        return false;
    }
    buffer->bytes = bytes;
    return true;
}

void fxtap_buffer_append(fxtap_buffer *buffer, const void *bytes, size_t length)
{
    if (!reserve(buffer, length)) {
        return;
    }
    if (length > 0) {
        memcpy(buffer->bytes + buffer->length, bytes, length);
    }
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

void fxtap_buffer_text(fxtap_buffer *buffer, const char *text)
{
    fxtap_buffer_append(buffer, text, strlen(text));
}

static void printf_failed(fxtap_buffer *buffer, const char *format)
{
    if (buffer->status == FXTAP_OK) {
        buffer->status = fx_error(FXTAP_E_INVALID, "text of format '%s' cannot be formed", format);
    }
}

/* Into the room that there is; a second time where that was too small. */
void fxtap_buffer_printf(fxtap_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    if (reserve(buffer, 64)) {
        size_t room = buffer->capacity - buffer->length;
        int length = vsnprintf(buffer->bytes + buffer->length, room, format, arguments);
        if (length < 0) {
            printf_failed(buffer, format);
        } else if ((size_t)length < room) {
            buffer->length += (size_t)length;
        } else if (reserve(buffer, (size_t)length)) {
            vsnprintf(buffer->bytes + buffer->length, (size_t)length + 1, format, again);
            buffer->length += (size_t)length;
        }
        if (buffer->status != FXTAP_OK) {
            buffer->bytes[buffer->length] = '\0'; /* not half of the text */
        }
    }
    va_end(again);
    va_end(arguments);
}
