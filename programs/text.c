#include "text.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

static struct {
    size_t width;
    bool is_utf8;
    bool is_terminal;
    bool has_colours;
} setup = {.width = WIDTH_UNLIMITED};

static size_t columns_from_environment(void)
{
    const char *text = getenv("COLUMNS");
    char *end;
    unsigned long columns = text != NULL ? strtoul(text, &end, 10) : 0;
    return columns >= 20 && columns < WIDTH_UNLIMITED && *end == '\0' ? (size_t)columns : 0;
}

void text_setup(void)
{
    setlocale(LC_CTYPE, "");
    setup.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setup.is_terminal = isatty(STDOUT_FILENO) == 1;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    setup.has_colours = setup.is_terminal && (no_colour == NULL || no_colour[0] == '\0') &&
                        (terminal == NULL || strcmp(terminal, "dumb") != 0);
    struct winsize size = {0};
    if (setup.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) {
        setup.width = size.ws_col;
    } else if (columns_from_environment() > 0) {
        setup.width = columns_from_environment();
    } else if (setup.is_terminal) {
        setup.width = 80;
    }
}

size_t text_width(void)
{
    return setup.width;
}

bool text_is_utf8(void)
{
    return setup.is_utf8;
}

const char *text_elision(void)
{
    return setup.is_utf8 ? "\xe2\x80\xa6" : "~";
}

bool text_has_colours(void)
{
    return setup.has_colours;
}

bool text_is_terminal(void)
{
    return setup.is_terminal;
}

const char *text_begin(text_style style)
{
    static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[1;31m", "\033[33m", "\033[32m"};
    return setup.has_colours ? codes[style] : "";
}

const char *text_end(text_style style)
{
    return setup.has_colours && style != STYLE_PLAIN ? "\033[0m" : "";
}

/* ---- cleaning ---- */

/* Bidirectional and zero-width marks, which could make a name look like another. */
static bool is_deceptive(wint_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           c == 0x061c || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

static void append_escaped_byte(fxtap_buffer *out, unsigned char byte)
{
    switch (byte) {
    case '\n':
        fxtap_buffer_text(out, "\\n");
        break;
    case '\t':
        fxtap_buffer_text(out, "\\t");
        break;
    case '\r':
        fxtap_buffer_text(out, "\\r");
        break;
    default:
        fxtap_buffer_printf(out, "\\x%02x", byte);
    }
}

/* Appends one non-ASCII character; returns its length. */
static size_t append_wide(fxtap_buffer *out, const char *text, size_t length, mbstate_t *state)
{
    wchar_t wide = 0;
    size_t used = setup.is_utf8 ? mbrtowc(&wide, text, length, state) : (size_t)-1;
    if (used == 0 || used > length) {
        *state = (mbstate_t){0};
        append_escaped_byte(out, (unsigned char)*text);
        return 1;
    }
    if (!iswprint((wint_t)wide) || wcwidth(wide) < 0 || is_deceptive((wint_t)wide)) {
        fxtap_buffer_printf(out, "\\u%04x", (unsigned)wide);
    } else {
        fxtap_buffer_append(out, text, used);
    }
    return used;
}

void text_append(fxtap_buffer *out, const char *text)
{
    mbstate_t state = {0};
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        size_t plain = i;
        while (plain < length && text[plain] >= 0x20 && text[plain] < 0x7f) {
            plain++;
        }
        fxtap_buffer_append(out, text + i, plain - i);
        i = plain;
        if (i < length && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)) {
            append_escaped_byte(out, (unsigned char)text[i++]);
        } else if (i < length) {
            i += append_wide(out, text + i, length - i, &state);
        }
    }
}

void text_append_styled(fxtap_buffer *out, text_style style, const char *text)
{
    fxtap_buffer_text(out, text_begin(style));
    text_append(out, text);
    fxtap_buffer_text(out, text_end(style));
}

/* ---- width ---- */

/* The length of the character at `text`, and its columns in *columns_out. Cleaned text has no invalid ones. */
static size_t measure(const char *text, size_t length, size_t *columns_out)
{
    wchar_t wide;
    mbstate_t state = {0};
    *columns_out = 1;
    if ((unsigned char)*text < 0x80) {
        return 1;
    }
    size_t used = mbrtowc(&wide, text, length, &state);
    if (used == 0 || used > length) {
        return 1;
    }
    int columns = wcwidth(wide);
    *columns_out = columns > 0 ? (size_t)columns : 0;
    return used;
}

size_t text_head(const char *clean, size_t length, size_t columns)
{
    size_t i = 0, taken = 0;
    while (i < length) {
        size_t wide;
        size_t used = measure(clean + i, length - i, &wide);
        if (taken + wide > columns) {
            break;
        }
        taken += wide;
        i += used;
    }
    return i;
}

size_t text_columns(const char *clean, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length;) {
        size_t wide;
        i += measure(clean + i, length - i, &wide);
        columns += wide;
    }
    return columns;
}

size_t text_tail(const char *clean, size_t length, size_t columns)
{
    size_t start = length, taken = 0;
    while (start > 0) {
        size_t before = start - 1, wide;
        while (before > 0 && ((unsigned char)clean[before] & 0xc0) == 0x80) {
            before--;
        }
        measure(clean + before, start - before, &wide);
        if (taken + wide > columns) {
            break;
        }
        taken += wide;
        start = before;
    }
    return length - start;
}

size_t text_columns_cleaned(const char *text)
{
    fxtap_buffer clean;
    fxtap_buffer_init(&clean);
    text_append(&clean, text);
    size_t columns = clean.length > 0 ? text_columns(clean.bytes, clean.length) : 0;
    fxtap_buffer_clear(&clean);
    return columns;
}

size_t text_columns_of_line(const fxtap_buffer *out)
{
    size_t start = out->length, columns = 0;
    while (start > 0 && out->bytes[start - 1] != '\n') {
        start--;
    }
    for (size_t i = start; i < out->length;) {
        const char *escape = memchr(out->bytes + i, '\033', out->length - i);
        size_t end = escape != NULL ? (size_t)(escape - out->bytes) : out->length;
        columns += text_columns(out->bytes + i, end - i);
        while (end < out->length && out->bytes[end] != 'm') {
            end++;
        }
        i = end + (end < out->length);
    }
    return columns;
}

#define LEAST_FITTED 10

void text_append_fitted(fxtap_buffer *out, text_style style, const char *text, text_keeps keeps, size_t reserved)
{
    fxtap_buffer clean;
    fxtap_buffer_init(&clean);
    text_append(&clean, text);
    size_t taken = text_columns_of_line(out) + reserved;
    bool has_room = taken + LEAST_FITTED <= setup.width;
    fxtap_buffer_text(out, text_begin(style));
    if (clean.length == 0 || !has_room || text_columns(clean.bytes, clean.length) <= setup.width - taken) {
        fxtap_buffer_append(out, clean.bytes, clean.length);
    } else if (keeps == KEEPS_HEAD) {
        fxtap_buffer_append(out, clean.bytes, text_head(clean.bytes, clean.length, setup.width - taken - 1));
        fxtap_buffer_text(out, text_elision());
    } else {
        size_t tail = text_tail(clean.bytes, clean.length, setup.width - taken - 1);
        fxtap_buffer_text(out, text_elision());
        fxtap_buffer_append(out, clean.bytes + clean.length - tail, tail);
    }
    fxtap_buffer_text(out, text_end(style));
    fxtap_buffer_clear(&clean);
}

/* ---- numbers and types ---- */

void text_append_count(fxtap_buffer *out, uint64_t count)
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            fxtap_buffer_text(out, ",");
        }
        fxtap_buffer_append(out, digits + i, 1);
    }
}

void text_append_bytes(fxtap_buffer *out, uint64_t n_bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)n_bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000.0;
        unit++;
    }
    fxtap_buffer_printf(out, unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void text_append_number(fxtap_buffer *out, double value, int digits)
{
    if (isnan(value)) {
        fxtap_buffer_text(out, "nan");
    } else {
        fxtap_buffer_printf(out, "%.*g", digits, value);
    }
}

static const char *short_dtype(fxtap_dtype dtype)
{
    static const char *const names[FXTAP_DTYPE_COUNT] = {
        [FXTAP_BOOL] = "b8",     [FXTAP_UINT8] = "u8",      [FXTAP_UINT16] = "u16",    [FXTAP_UINT32] = "u32",
        [FXTAP_UINT64] = "u64",  [FXTAP_INT8] = "i8",       [FXTAP_INT16] = "i16",     [FXTAP_INT32] = "i32",
        [FXTAP_INT64] = "i64",   [FXTAP_FLOAT16] = "f16",   [FXTAP_BFLOAT16] = "bf16", [FXTAP_FLOAT32] = "f32",
        [FXTAP_FLOAT64] = "f64", [FXTAP_COMPLEX32] = "c32", [FXTAP_COMPLEX64] = "c64", [FXTAP_COMPLEX128] = "c128",
        [FXTAP_STRING] = "str",
    };
    return names[dtype] != NULL ? names[dtype] : fxtap_dtype_name(dtype);
}

void text_append_type(fxtap_buffer *out, fxtap_dtype dtype, const int64_t *shape, int32_t ndim)
{
    fxtap_buffer_printf(out, "%s[", short_dtype(dtype));
    for (int32_t i = 0; i < ndim; i++) {
        fxtap_buffer_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
    }
    fxtap_buffer_text(out, "]");
}

void text_append_source(fxtap_buffer *out, const char *file, int32_t line)
{
    const char *slash = strrchr(file, '/');
    if (file[0] != '\0') {
        text_append(out, slash != NULL ? slash + 1 : file);
        fxtap_buffer_printf(out, ":%d", line);
    }
}
