#include "tensor/text.h"

#include <stdint.h>

#include "util/memory.h"
#include "util/utf8.h"

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
