/*
 * source.c - the frame of a stack trace in which a node was created.
 *
 * The text has Python's format, outermost frame first:
 *     File "/home/me/model.py", line 12, in forward
 *       return self.fc(x) + 1
 *              ~~~~~~~~~~~^~~
 * A file name may contain quotes, so a frame's head is parsed from its end: the last `", line N` of the line.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/record.h"

static fx_span trim(fx_span span)
{
    while (span.length > 0 && strchr(" \t\r", span.bytes[0]) != NULL) {
        span.bytes++;
        span.length--;
    }
    while (span.length > 0 && strchr(" \t\r", span.bytes[span.length - 1]) != NULL) {
        span.length--;
    }
    return span;
}

/* Cuts the next line off *rest; false at the end. */
static bool next_line(const char **rest, fx_span *line)
{
    if (**rest == '\0') {
        return false;
    }
    const char *end = strchr(*rest, '\n');
    size_t length = end == NULL ? strlen(*rest) : (size_t)(end - *rest);
    *line = (fx_span){*rest, length};
    *rest += length + (end != NULL);
    return true;
}

static bool starts_with(fx_span span, const char *prefix)
{
    size_t length = strlen(prefix);
    return span.length >= length && memcmp(span.bytes, prefix, length) == 0;
}

/* Reads `N` or `N, in FUNCTION` up to the end of the line. */
static bool read_line_and_function(fx_span text, fx_frame *out)
{
    int64_t line = 0;
    size_t i = 0;
    while (i < text.length && text.bytes[i] >= '0' && text.bytes[i] <= '9') {
        line = line * 10 + (text.bytes[i] - '0');
        if (line > INT32_MAX) {
            return false;
        }
        i++;
    }
    fx_span rest = {text.bytes + i, text.length - i};
    if (i == 0 || (rest.length > 0 && !starts_with(rest, ", in "))) {
        return false;
    }
    out->line = (int32_t)line;
    out->function = rest.length > 0 ? (fx_span){rest.bytes + 5, rest.length - 5} : (fx_span){"", 0};
    return true;
}

static bool read_head(fx_span line, fx_frame *out)
{
    static const char mark[] = "\", line ";
    const size_t mark_length = sizeof mark - 1;
    line = trim(line);
    if (!starts_with(line, "File \"")) {
        return false;
    }
    for (size_t i = line.length; i > 6; i--) {
        size_t at = i - 1;
        if (line.length - at <= mark_length || memcmp(line.bytes + at, mark, mark_length) != 0) {
            continue;
        }
        if (read_line_and_function((fx_span){line.bytes + at + mark_length, line.length - at - mark_length}, out)) {
            out->file = (fx_span){line.bytes + 6, at - 6};
            out->code = (fx_span){"", 0};
            return true;
        }
    }
    return false;
}

/* A line that only marks a part of the code above. */
static bool is_marker(fx_span line)
{
    for (size_t i = 0; i < line.length; i++) {
        if (strchr(" ~^", line.bytes[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* "<string>", "<eval_with_key>.3", "<frozen runpy>": code without a file. */
static bool is_real_file(fx_span file)
{
    return file.length > 0 && file.bytes[0] != '<';
}

bool fx_trace_innermost(const char *trace, fx_frame *out)
{
    bool found = false;
    fx_frame current = {0};
    fx_span line;
    bool in_frame = false; /* the next line may be the code of `current` */
    while (next_line(&trace, &line)) {
        if (read_head(line, &current)) {
            in_frame = !found || is_real_file(current.file) || !is_real_file(out->file);
            if (in_frame) {
                *out = current;
                found = true;
            }
        } else if (in_frame && out->code.length == 0 && !is_marker(line)) {
            out->code = trim(line);
        }
    }
    return found;
}
