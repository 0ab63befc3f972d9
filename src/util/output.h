/*
 * output.h - text for people and for programs: appending to a buffer, JSON, CSV, numbers, glob patterns. Shared by the
 * library, the program and the extension; not part of the public API.
 *
 * Numbers are formatted independent of the locale, in the shortest form that reads back to the same value. JSON is
 * strict (RFC 8259): NaN and infinities become null, each byte that is not UTF-8 becomes U+FFFD. Append functions
 * return nothing; fxtap_buffer_status() reports the first failure.
 */
#ifndef FX_UTIL_OUTPUT_H
#define FX_UTIL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/buffer.h"

void fxtap_buffer_append(fxtap_buffer *buffer, const void *bytes, size_t length);
void fxtap_buffer_text(fxtap_buffer *buffer, const char *text);
/* No %f, %e, %g: they depend on the locale. Use the next two functions. */
void fxtap_buffer_printf(fxtap_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Moves the bytes to *out, which the caller frees with fxtap_free(). After a failure, clears them and returns it. */
fxtap_status fxtap_buffer_take(fxtap_buffer *buffer, void **out, size_t *n_bytes_out);

/* Shortest text that reads back to the same double: "0.1", "1e-05", "inf", "nan", "-0.0" - as Python's repr. */
void fxtap_buffer_double(fxtap_buffer *buffer, double value);
/* At most `n_digits` (1 to 17) significant digits, for people: "0.123", "1e-07", "-0", "inf" - as Python's %g. */
void fxtap_buffer_digits(fxtap_buffer *buffer, double value, int n_digits);

/* JSON. The writer adds commas and nesting; each value inside an object has a key, any other NULL. */
typedef struct fxtap_json {
    fxtap_buffer *out;  /* borrowed */
    uint64_t has_items; /* one bit per level; more than 63 levels is FXTAP_E_INVALID in the buffer */
    unsigned depth;
    bool pretty;   /* two-space indentation */
    bool for_html; /* "<", ">" and "&" as \u003c ...: no text ends the enclosing script element; initially false */
} fxtap_json;

void fxtap_json_init(fxtap_json *json, fxtap_buffer *out, bool pretty);
void fxtap_json_begin_object(fxtap_json *json, const char *key);
void fxtap_json_end_object(fxtap_json *json);
void fxtap_json_begin_array(fxtap_json *json, const char *key);
void fxtap_json_end_array(fxtap_json *json);
void fxtap_json_null(fxtap_json *json, const char *key);
void fxtap_json_bool(fxtap_json *json, const char *key, bool value);
void fxtap_json_int(fxtap_json *json, const char *key, int64_t value);
void fxtap_json_uint(fxtap_json *json, const char *key, uint64_t value);
void fxtap_json_double(fxtap_json *json, const char *key, double value);      /* NaN, Inf: null */
void fxtap_json_string(fxtap_json *json, const char *key, const char *value); /* NULL: null */
void fxtap_json_string_n(fxtap_json *json, const char *key, const char *value, size_t length);

/*
 * JSON strings and CSV fields are valid UTF-8 without terminal control sequences: invalid bytes become U+FFFD, control
 * and bidirectional characters are escaped (in CSV, which has no escapes, written as \u001b; tabs and newlines stay).
 */

/* One CSV field (RFC 4180, quoted only if necessary), preceded by a comma unless `first`. */
void fxtap_csv_field(fxtap_buffer *out, const char *value, bool first);
void fxtap_csv_end_row(fxtap_buffer *out); /* CR LF */

/* Shell-style pattern: `*`, `?`, `[a-z]`, `[!a-z]`, backslash quotes; `*` matches anything, including `.` and `/`. */
bool fxtap_glob_match(const char *pattern, const char *text);

/* The name most similar to what was typed, or NULL if none is similar. */
const char *fxtap_nearest_name(const char *typed, const char *const *names, size_t n_names);

#endif
