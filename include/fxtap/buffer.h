/*
 * fxtap/buffer.h - the growing buffer that printing functions append to.
 *
 * A buffer remembers its first failure (FXTAP_E_NOMEM) and then ignores further text. It belongs to one thread at a
 * time.
 */
#ifndef FXTAP_BUFFER_H
#define FXTAP_BUFFER_H

#include <stddef.h>

#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_buffer {
    char *bytes; /* NUL-terminated; NULL until something is appended; owned */
    size_t length;
    size_t capacity;
    fxtap_status status;
} fxtap_buffer;

FXTAP_API void fxtap_buffer_init(fxtap_buffer *buffer);
FXTAP_API void fxtap_buffer_clear(fxtap_buffer *buffer); /* frees; the buffer is as after init */
FXTAP_API fxtap_status fxtap_buffer_status(const fxtap_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
