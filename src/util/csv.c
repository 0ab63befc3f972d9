#include "fxtap/output.h"

#include <string.h>

void fxtap_csv_field(fxtap_buffer *out, const char *value, bool first)
{
    const char *text = value == NULL ? "" : value;
    if (!first) {
        fxtap_buffer_append(out, ",", 1);
    }
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fxtap_buffer_text(out, text);
        return;
    }
    fxtap_buffer_append(out, "\"", 1);
    for (const char *quote = strchr(text, '"'); quote != NULL; quote = strchr(text, '"')) {
        fxtap_buffer_append(out, text, (size_t)(quote - text) + 1);
        fxtap_buffer_append(out, "\"", 1);
        text = quote + 1;
    }
    fxtap_buffer_text(out, text);
    fxtap_buffer_append(out, "\"", 1);
}

void fxtap_csv_end_row(fxtap_buffer *out)
{
    fxtap_buffer_append(out, "\r\n", 2);
}
