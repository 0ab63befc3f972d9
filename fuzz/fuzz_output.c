/* fuzz_output.c - arbitrary bytes as a glob pattern with its text, a JSON string, a CSV field and a number. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/output.h"
#include "util/utf8.h"

#define MAX_INPUT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const char *bytes, size_t size)
{
    fxtap_buffer out;
    fxtap_json json;
    fxtap_buffer_init(&out);
    fxtap_json_init(&json, &out, false);
    fxtap_json_string_n(&json, NULL, bytes, size);
    if (fxtap_buffer_status(&out) != FXTAP_OK || !fx_utf8_is_valid(out.bytes, out.length)) {
        abort();
    }
    for (size_t i = 1; i + 1 < out.length; i++) { /* no unescaped quote or control character */
        if ((unsigned char)out.bytes[i] < 0x20 || out.bytes[i] == '"') {
            abort();
        }
        i += out.bytes[i] == '\\';
    }
    fxtap_buffer_clear(&out);
}

static void check_number(const char *bytes)
{
    double value;
    memcpy(&value, bytes, sizeof value);
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_buffer_double(&out, value);
    double back = strtod(out.bytes, NULL);
    if (!isnan(value) && memcmp(&back, &value, sizeof value) != 0) {
        abort();
    }
    fxtap_buffer_digits(&out, value, bytes[0]);
    fxtap_buffer_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(double) || size > MAX_INPUT) {
        return 0;
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    check_number(text);
    check_json(text, size);
    char *middle = memchr(text, '\0', size);
    fxtap_glob_match(text, middle != NULL ? middle + 1 : text);
    if (!fxtap_glob_match("*", text)) {
        abort();
    }
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_csv_field(&out, text, true);
    fxtap_buffer_clear(&out);
    free(text);
    return 0;
}
