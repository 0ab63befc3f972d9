#include "tensor/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fxtap/npy.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/utf8.h"

#define HEADER_BYTES 256

static uint32_t code_point_at(const unsigned char *bytes, bool big_endian)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        value = value << 8 | bytes[big_endian ? i : 3 - i];
    }
    return value;
}

char *fx_text_from_ucs4(const void *bytes, size_t n, bool big_endian)
{
    const unsigned char *from = bytes;
    while (n > 0 && code_point_at(from + (n - 1) * 4, big_endian) == 0) {
        n--;
    }
    char *text = fx_realloc_array(NULL, n + 1, 4);
    if (text == NULL) {
        return NULL;
    }
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        length += fx_utf8_encode(code_point_at(from + i * 4, big_endian), text + length);
    }
    text[length] = '\0';
    return text;
}

fxtap_status fx_text_to_npy(const char *text, size_t length, void **out, size_t *n_bytes_out, size_t *header_bytes_out)
{
    size_t n = fx_utf8_count(text, length);
    size_t width = n > 0 ? n : 1;
    char descr[32];
    char header[HEADER_BYTES];
    size_t header_bytes;
    snprintf(descr, sizeof descr, "<U%zu", width);
    fxtap_status status = fxtap_npy_header(descr, false, 0, NULL, header, sizeof header, &header_bytes);
    if (status != FXTAP_OK) {
        return status;
    }
    /* header_bytes is a multiple of 64, so the whole is counted in code points. */
    char *image = fx_realloc_array(NULL, header_bytes / 4 + width, 4);
    if (image == NULL) {
        return FXTAP_E_NOMEM;
    }
    memcpy(image, header, header_bytes);
    memset(image + header_bytes, 0, 4);
    fx_utf8_to_ucs4(text, length, (uint32_t *)(void *)(image + header_bytes));
    *out = image;
    *n_bytes_out = header_bytes + width * 4;
    *header_bytes_out = header_bytes;
    return FXTAP_OK;
}
