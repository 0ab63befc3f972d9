#include "command.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/status.h"
#include "text.h"

/* Messages may contain names from files, so control characters are escaped. */
static void say(const char *format, va_list arguments)
{
    char line[4096];
    fxtap_buffer clean;
    fxtap_buffer_init(&clean);
    if (vsnprintf(line, sizeof line, format, arguments) >= 0) {
        text_append(&clean, line);
    }
    fputs(fxtap_buffer_status(&clean) == FXTAP_OK && clean.bytes != NULL ? clean.bytes : "", stderr);
    fxtap_buffer_clear(&clean);
}

int report_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fxtap: ", stderr);
    say(format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_TROUBLE;
}

int report_library_error(void)
{
    return report_error("%s", fxtap_error_message());
}

int usage_error(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fxtap %s: ", name);
    say(format, arguments);
    fprintf(stderr, " (see fxtap %s --help)\n", name);
    va_end(arguments);
    return EXIT_TROUBLE;
}

void *must_realloc(void *memory, size_t n_items, size_t item_bytes)
{
    void *grown = reallocarray(memory, n_items > 0 ? n_items : 1, item_bytes);
    if (grown == NULL) {
        report_error("out of memory");
        exit(EXIT_TROUBLE);
    }
    return grown;
}

bool parse_int64(const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool is_number = end != text && *end == '\0' && errno == 0 && strspn(text, "+-0123456789") == strlen(text);
    if (!is_number || value < low || value > high) {
        return false;
    }
    *out = value;
    return true;
}

bool parse_amount(const char *text, double *out)
{
    /* The program sets only LC_CTYPE, so strtod always reads a decimal point. */
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0.0 || strpbrk(text, " \t\nxXpP") != NULL) {
        return false;
    }
    *out = value;
    return true;
}

bool parse_pair(const char *text, int64_t low, int64_t high, int64_t *first_out, int64_t *second_out)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL) {
        if (!parse_int64(text, low, high, first_out)) {
            return false;
        }
        *second_out = *first_out;
        return true;
    }
    char first[32];
    size_t length = (size_t)(colon - text);
    if (length >= sizeof first) {
        return false;
    }
    memcpy(first, text, length);
    first[length] = '\0';
    return parse_int64(first, low, high, first_out) && parse_int64(colon + 1, low, high, second_out);
}
