/*
 * fxtap/output.h - text for people and for programs: a growing buffer, JSON, CSV, numbers, glob patterns.
 *
 * Numbers are formatted independent of the locale, in the shortest form that reads back to the same value. JSON is
 * strict (RFC 8259): NaN and infinities become null, text that is not UTF-8 has each bad byte replaced by U+FFFD.
 * A buffer remembers its first failure (FXTAP_E_NOMEM): append calls return nothing, fxtap_buffer_status() tells.
 * Thread rule: a buffer belongs to one thread at a time.
 */
#ifndef FXTAP_OUTPUT_H
#define FXTAP_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_buffer {
    char *bytes; /* always NUL-terminated once something was appended; owned */
    size_t length;
    size_t capacity;
    fxtap_status status;
} fxtap_buffer;

FXTAP_API void fxtap_buffer_init(fxtap_buffer *buffer);
FXTAP_API void fxtap_buffer_clear(fxtap_buffer *buffer); /* frees; the buffer is as after init */
FXTAP_API fxtap_status fxtap_buffer_status(const fxtap_buffer *buffer);
FXTAP_API void fxtap_buffer_append(fxtap_buffer *buffer, const void *bytes, size_t length);
FXTAP_API void fxtap_buffer_text(fxtap_buffer *buffer, const char *text);
/* No %f, %e, %g: they follow the locale. Use the three functions below. */
FXTAP_API void fxtap_buffer_printf(fxtap_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Shortest text that reads back to the same double: "0.1", "1e-05", "inf", "nan", "-0.0" - as Python's repr. */
FXTAP_API void fxtap_buffer_double(fxtap_buffer *buffer, double value);
/* At most `n_digits` (1 to 17) significant digits, for people: "0.123", "1e-07", "-0", "inf" - as Python's %g. */
FXTAP_API void fxtap_buffer_digits(fxtap_buffer *buffer, double value, int n_digits);

/* JSON. Commas and nesting are kept by the writer; a key is given before each value inside an object, else NULL. */
typedef struct fxtap_json {
    fxtap_buffer *out;  /* borrowed */
    uint64_t has_items; /* one bit a level; 63 levels at most, more is FXTAP_E_INVALID in the buffer */
    unsigned depth;
    bool pretty;   /* two-space indentation */
    bool for_html; /* "<", ">" and "&" as \u003c ...: no text ends the script element that it stands in; false at first
                    */
} fxtap_json;

FXTAP_API void fxtap_json_init(fxtap_json *json, fxtap_buffer *out, bool pretty);
FXTAP_API void fxtap_json_begin_object(fxtap_json *json, const char *key);
FXTAP_API void fxtap_json_end_object(fxtap_json *json);
FXTAP_API void fxtap_json_begin_array(fxtap_json *json, const char *key);
FXTAP_API void fxtap_json_end_array(fxtap_json *json);
FXTAP_API void fxtap_json_null(fxtap_json *json, const char *key);
FXTAP_API void fxtap_json_bool(fxtap_json *json, const char *key, bool value);
FXTAP_API void fxtap_json_int(fxtap_json *json, const char *key, int64_t value);
FXTAP_API void fxtap_json_uint(fxtap_json *json, const char *key, uint64_t value);
FXTAP_API void fxtap_json_double(fxtap_json *json, const char *key, double value);      /* NaN, Inf: null */
FXTAP_API void fxtap_json_string(fxtap_json *json, const char *key, const char *value); /* NULL: null */
FXTAP_API void fxtap_json_string_n(fxtap_json *json, const char *key, const char *value, size_t length);

/*
 * JSON strings and CSV fields are valid UTF-8 and hold nothing that steers a terminal: bad bytes become U+FFFD, control
 * and direction characters are escaped (in CSV, which has no escapes, spelled out as \u001b; tabs and line ends stay).
 */

/* One CSV field (RFC 4180: quoted only where it must be); `first` is false where a comma goes before it. */
FXTAP_API void fxtap_csv_field(fxtap_buffer *out, const char *value, bool first);
FXTAP_API void fxtap_csv_end_row(fxtap_buffer *out); /* CR LF */

/* Shell-style pattern: `*`, `?`, `[a-z]`, `[!a-z]`, backslash quotes; `*` matches anything, `.` and `/` too. */
FXTAP_API bool fxtap_glob_match(const char *pattern, const char *text);

/* The nearest of some names to what was typed, or NULL where none is near. */
FXTAP_API const char *fxtap_nearest_name(const char *typed, const char *const *names, size_t n_names);

#ifdef __cplusplus
}
#endif
#endif
