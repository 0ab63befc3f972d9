/*
 * text.h - text on a terminal: character set, width, and safe printing of names.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dtype.h"
#include "util/output.h"

/* Call once, first: sets up the locale's character set, colours and the width. */
void text_setup(void);

#define WIDTH_UNLIMITED ((size_t)1 << 20)

/* Columns of stdout: the terminal's, else $COLUMNS, else WIDTH_UNLIMITED, so that a pipe gets full lines. */
size_t text_width(void);
bool text_is_utf8(void);
/* The ellipsis, one column wide. */
const char *text_elision(void);
bool text_is_terminal(void);
bool text_has_colours(void);

typedef enum text_style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_BAD, STYLE_WARN, STYLE_GOOD } text_style;

/* The bytes that begin and end a style on stdout; "" without colours. */
const char *text_begin(text_style style);
const char *text_end(text_style style);

/* Appends text with everything escaped that this terminal cannot print: \n, \x1b, \u202e. */
void text_append(fxtap_buffer *out, const char *text);
void text_append_styled(fxtap_buffer *out, text_style style, const char *text);

typedef enum text_keeps { KEEPS_HEAD, KEEPS_TAIL } text_keeps;

/*
 * Appends text as text_append_styled() does, truncated so that it ends at least `reserved` columns before the end of
 * the line: code keeps its start, a path its end. It is not truncated if almost nothing would be left.
 */
void text_append_fitted(fxtap_buffer *out, text_style style, const char *text, text_keeps keeps, size_t reserved);

/* The width in columns of cleaned text; of any text after cleaning. */
size_t text_columns(const char *clean, size_t length);
size_t text_columns_cleaned(const char *text);

/* The width of the buffer's last line, without styles. */
size_t text_columns_of_line(const fxtap_buffer *out);

/* Length of the longest prefix (suffix) of cleaned text that fits a number of columns. */
size_t text_head(const char *clean, size_t length, size_t columns);
size_t text_tail(const char *clean, size_t length, size_t columns);

/* "1,234,567"; "1.5 MB" */
void text_append_count(fxtap_buffer *out, uint64_t count);
void text_append_bytes(fxtap_buffer *out, uint64_t n_bytes);
/* At most `digits` significant digits: "0.1235", "-1.2e-05", "nan". */
void text_append_number(fxtap_buffer *out, double value, int digits);
/* As in torch's graphs: "f32[2, 3]". */
void text_append_type(fxtap_buffer *out, fxtap_dtype dtype, const int64_t *shape, int32_t ndim);
/* "file.py:12": only the last part of the path. "" without a path. */
void text_append_source(fxtap_buffer *out, const char *file, int32_t line);

#endif
