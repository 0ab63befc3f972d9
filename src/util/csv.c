#include "util/output.h"

#include <string.h>

#include "util/utf8.h"

/* Copies text; invalid UTF-8 becomes U+FFFD, and characters that control a terminal are escaped ("\u001b"). */
static void append_clean(fxtap_buffer *out, const char *text, size_t length)
{
    for (size_t at = 0, used; at < length; at += used) {
        uint32_t code_point = fx_utf8_decode(text + at, length - at, &used);
        if (used == 0) {
            fxtap_buffer_append(out, "\xEF\xBF\xBD", 3);
            used = 1;
        } else if (fx_utf8_is_shown(code_point) || code_point == '\n' || code_point == '\r' || code_point == '\t') {
            fxtap_buffer_append(out, text + at, used);
        } else {
            fxtap_buffer_printf(out, "\\u%04x", (unsigned)code_point);
        }
    }
}

void fxtap_csv_field(fxtap_buffer *out, const char *value, bool first)
{
    const char *text = value == NULL ? "" : value;
    if (!first) {
        fxtap_buffer_append(out, ",", 1);
    }
    if (strpbrk(text, ",\"\r\n") == NULL) {
        append_clean(out, text, strlen(text));
        return;
    }
    fxtap_buffer_append(out, "\"", 1);
    for (const char *quote = strchr(text, '"'); quote != NULL; quote = strchr(text, '"')) {
        append_clean(out, text, (size_t)(quote - text) + 1);
        fxtap_buffer_append(out, "\"", 1);
        text = quote + 1;
    }
    append_clean(out, text, strlen(text));
    fxtap_buffer_append(out, "\"", 1);
}

void fxtap_csv_end_row(fxtap_buffer *out)
{
    fxtap_buffer_append(out, "\r\n", 2);
}
