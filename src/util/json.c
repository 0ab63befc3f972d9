#include "util/output.h"

#include <math.h>
#include <string.h>

#include "util/buffer.h"
#include "util/error.h"
#include "util/number.h"
#include "util/utf8.h"

#define MAX_DEPTH 63 /* level 0 is the document; has_items has a bit for each level */

void fxtap_json_init(fxtap_json *json, fxtap_buffer *out, bool pretty)
{
    *json = (fxtap_json){.out = out, .pretty = pretty};
}

/* The escape of a byte that JSON does not allow unescaped. */
static void escape(fxtap_buffer *out, unsigned char c)
{
    static const char letters[][3] = {['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
                                      ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"};
    if (c < sizeof letters / sizeof letters[0] && letters[c][0] != '\0') {
        fx_buffer_put(out, letters[c], 2);
    } else {
        fxtap_buffer_printf(out, "\\u%04x", (unsigned)c);
    }
}

enum { PLAIN = 1, PLAIN_OUTSIDE_HTML = 2 };

static const unsigned char kind_of[256] = {
    [' ' ... '!'] = PLAIN,      ['#' ... '%'] = PLAIN, ['\'' ... ';'] = PLAIN,     ['='] = PLAIN,
    ['?' ... '['] = PLAIN,      [']' ... '~'] = PLAIN, ['&'] = PLAIN_OUTSIDE_HTML, ['<'] = PLAIN_OUTSIDE_HTML,
    ['>'] = PLAIN_OUTSIDE_HTML,
};

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Sets the top bit of a zero byte; above it, other top bits may be set too. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE(1)) & ~word & EACH_BYTE(0x80);
}

/* Length of the prefix that needs no escape: eight bytes at a time, then one by one. */
static size_t plain_length(const char *text, size_t length)
{
    size_t n = 0;
    for (uint64_t word; n + sizeof word <= length; n += sizeof word) {
        memcpy(&word, text + n, sizeof word);
        uint64_t below_blank = (word - EACH_BYTE(0x20)) & ~word & EACH_BYTE(0x80);
        uint64_t special =
            zero_bytes(word ^ EACH_BYTE('"')) | zero_bytes(word ^ EACH_BYTE('\\')) | zero_bytes(word ^ EACH_BYTE(0x7F));
        if ((below_blank | special | (word & EACH_BYTE(0x80))) != 0) {
            break;
        }
    }
    while (n < length && kind_of[(unsigned char)text[n]] != 0) {
        n++;
    }
    return n;
}

static size_t plain_length_for_html(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && kind_of[(unsigned char)text[n]] == PLAIN) {
        n++;
    }
    return n;
}

static void quoted(fxtap_buffer *out, const char *text, size_t length, bool for_html)
{
    fx_buffer_put(out, "\"", 1);
    size_t at = 0;
    while (at < length) {
        size_t n_plain =
            for_html ? plain_length_for_html(text + at, length - at) : plain_length(text + at, length - at);
        size_t end = at + n_plain;
        fx_buffer_put(out, text + at, end - at);
        at = end;
        if (at == length) {
            break;
        }
        size_t used;
        uint32_t code_point = fx_utf8_decode(text + at, length - at, &used);
        if (used == 0) {
            fx_buffer_put(out, "\xEF\xBF\xBD", 3); /* U+FFFD */
            at++;
        } else if (code_point < 0x80) {
            escape(out, (unsigned char)text[at++]);
        } else {
            if (fx_utf8_is_shown(code_point)) {
                fx_buffer_put(out, text + at, used);
            } else {
                fxtap_buffer_printf(out, "\\u%04x", (unsigned)code_point);
            }
            at += used;
        }
    }
    fx_buffer_put(out, "\"", 1);
}

static void indent(fxtap_json *json)
{
    if (json->pretty) {
        fx_buffer_put(json->out, "\n", 1);
        for (unsigned i = 0; i < json->depth; i++) {
            fx_buffer_put(json->out, "  ", 2);
        }
    }
}

/* Writes the comma, the indentation and the key before a value. */
static void prefix(fxtap_json *json, const char *key)
{
    uint64_t level = UINT64_C(1) << json->depth;
    if ((json->has_items & level) != 0) {
        fx_buffer_put(json->out, ",", 1);
    }
    json->has_items |= level;
    if (json->depth > 0) {
        indent(json);
    }
    if (key != NULL) {
        quoted(json->out, key, strlen(key), json->for_html);
        fx_buffer_put(json->out, ": ", json->pretty ? 2 : 1);
    }
}

static void begin(fxtap_json *json, const char *key, const char *bracket)
{
    prefix(json, key);
    fx_buffer_put(json->out, bracket, 1);
    if (json->depth == MAX_DEPTH) {
        if (json->out->status == FXTAP_OK) {
            json->out->status = fx_error(FXTAP_E_INVALID, "json is nested more than %d levels deep", MAX_DEPTH);
        }
        return;
    }
    json->depth++;
    json->has_items &= ~(UINT64_C(1) << json->depth);
}

static void end(fxtap_json *json, const char *bracket)
{
    if (json->depth == 0 || json->out->status != FXTAP_OK) {
        return;
    }
    bool had_items = (json->has_items >> json->depth & 1) != 0;
    json->depth--;
    if (had_items) {
        indent(json);
    }
    fx_buffer_put(json->out, bracket, 1);
}

void fxtap_json_begin_object(fxtap_json *json, const char *key)
{
    begin(json, key, "{");
}

void fxtap_json_end_object(fxtap_json *json)
{
    end(json, "}");
}

void fxtap_json_begin_array(fxtap_json *json, const char *key)
{
    begin(json, key, "[");
}

void fxtap_json_end_array(fxtap_json *json)
{
    end(json, "]");
}

void fxtap_json_null(fxtap_json *json, const char *key)
{
    prefix(json, key);
    fxtap_buffer_text(json->out, "null");
}

void fxtap_json_bool(fxtap_json *json, const char *key, bool value)
{
    prefix(json, key);
    fxtap_buffer_text(json->out, value ? "true" : "false");
}

void fxtap_json_int(fxtap_json *json, const char *key, int64_t value)
{
    prefix(json, key);
    char text[FX_NUMBER_BYTES];
    fx_buffer_put(json->out, text, fx_i64_text(value, text));
}

void fxtap_json_uint(fxtap_json *json, const char *key, uint64_t value)
{
    prefix(json, key);
    char text[FX_NUMBER_BYTES];
    fx_buffer_put(json->out, text, fx_u64_text(value, text));
}

void fxtap_json_double(fxtap_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        fxtap_json_null(json, key);
        return;
    }
    prefix(json, key);
    fxtap_buffer_double(json->out, value);
}

void fxtap_json_string(fxtap_json *json, const char *key, const char *value)
{
    if (value == NULL) {
        fxtap_json_null(json, key);
        return;
    }
    fxtap_json_string_n(json, key, value, strlen(value));
}

void fxtap_json_string_n(fxtap_json *json, const char *key, const char *value, size_t length)
{
    prefix(json, key);
    quoted(json->out, value, length, json->for_html);
}
