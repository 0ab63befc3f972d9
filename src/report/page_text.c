#include "report/page_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/number.h"
#include "util/utf8.h"

void fx_page_colour(const fx_page *p, const char *code)
{
    if (p->options->colour) {
        fxtap_buffer_printf(p->out, "\033[%sm", code);
    }
}

typedef struct range {
    uint32_t first, last;
} range;

static bool is_in(const range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* Columns of a code point (Unicode's East Asian Width, by large blocks); -1 if it must not be sent to a terminal. */
static int32_t columns_of(uint32_t code)
{
    static const range harmful[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    static const range none[] = {
        {0x300, 0x36f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}};
    static const range wide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xa960, 0xa97c},
                                 {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe30, 0xfe6f},  {0xff00, 0xff60},
                                 {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    if (is_in(harmful, sizeof harmful / sizeof harmful[0], code)) {
        return -1;
    }
    if (is_in(none, sizeof none / sizeof none[0], code)) {
        return 0;
    }
    return is_in(wide, sizeof wide / sizeof wide[0], code) ? 2 : 1;
}

/* One character as it is shown: its bytes, or "?" as a replacement. */
typedef struct shown {
    const char *bytes;
    size_t n_bytes;
    int32_t columns;
} shown;

static shown next_shown(const fx_page *p, const char **at, size_t *left)
{
    size_t used;
    uint32_t code = fx_utf8_decode(*at, *left, &used);
    int32_t columns = used == 0 ? -1 : columns_of(code);
    shown character = {*at, used, columns};
    if (columns < 0 || (p->options->ascii && code > 0x7e)) {
        character = (shown){"?", 1, 1};
    }
    used = used == 0 ? 1 : used;
    *at += used;
    *left -= used;
    return character;
}

static int32_t whole_width(const fx_page *p, const char *text)
{
    size_t left = strlen(text);
    int32_t width = 0;
    while (left > 0) {
        width += next_shown(p, &text, &left).columns;
    }
    return width;
}

int32_t fx_page_text(const fx_page *p, const char *text, int32_t limit, bool keep_end)
{
    size_t left = strlen(text);
    limit = limit < 8 ? 8 : limit;
    int32_t width = whole_width(p, text), used = 0;
    bool is_cut = width > limit;
    int32_t to_skip = is_cut && keep_end ? width - (limit - 3) : 0, room = is_cut ? limit - 3 : limit;
    while (left > 0 && to_skip > 0) {
        to_skip -= next_shown(p, &text, &left).columns;
    }
    if (is_cut && keep_end) {
        fxtap_buffer_text(p->out, "...");
    }
    while (left > 0) {
        shown character = next_shown(p, &text, &left);
        if (used + character.columns > room) {
            break;
        }
        fxtap_buffer_append(p->out, character.bytes, character.n_bytes);
        used += character.columns;
    }
    if (is_cut && !keep_end) {
        fxtap_buffer_text(p->out, "...");
    }
    return is_cut ? used + 3 : used;
}

/* Bytes of a line of at most `room` columns: a longer text is broken at the last blank, unless that is far back. */
static size_t line_bytes(const fx_page *p, const char *text, int32_t room)
{
    const char *at = text, *blank = NULL;
    size_t left = strlen(text);
    int32_t used = 0, blank_at = 0;
    while (left > 0) {
        const char *before = at;
        bool is_blank = *at == ' ';
        int32_t columns = next_shown(p, &at, &left).columns;
        if (used + columns > room) {
            bool is_near = blank != NULL && blank_at >= room / 2;
            return (size_t)((is_near ? blank : before) - text);
        }
        if (is_blank) {
            blank = at;
            blank_at = used;
        }
        used += columns;
    }
    return (size_t)(at - text);
}

void fx_page_wrapped(const fx_page *p, const char *text, int32_t indent)
{
    int32_t room = p->width - indent < 16 ? 16 : p->width - indent;
    while (*text != '\0') {
        size_t n = line_bytes(p, text, room), left = n;
        const char *at = text;
        while (left > 0) {
            shown character = next_shown(p, &at, &left);
            if (!(left == 0 && *character.bytes == ' ')) {
                fxtap_buffer_append(p->out, character.bytes, character.n_bytes);
            }
        }
        text += n;
        if (*text != '\0') {
            fxtap_buffer_printf(p->out, "\n%*s", (int)indent, "");
        }
    }
}

const char *fx_page_scratch_text(const fx_page *p, const fxtap_buffer *scratch)
{
    if (fxtap_buffer_status(scratch) != FXTAP_OK) {
        p->out->status = scratch->status;
        return "";
    }
    return scratch->length > 0 ? scratch->bytes : "";
}

void fx_page_label(const fx_page *p, const char *label)
{
    fx_page_colour(p, "2");
    fxtap_buffer_printf(p->out, "  %-8s", label);
    fx_page_colour(p, "0");
}

static int digits_for(double value)
{
    bool is_plain = value == 0.0 || (fabs(value) >= 1e-3 && fabs(value) < 1e6) || !isfinite(value);
    return is_plain ? 4 : 3;
}

void fx_page_number(const fx_page *p, double value)
{
    fxtap_buffer_digits(p->out, value, digits_for(value));
}

void fx_page_two_numbers(const fx_page *p, const char *before, double first, const char *between, double second)
{
    char a[FX_NUMBER_BYTES], b[FX_NUMBER_BYTES];
    int digits = digits_for(first) > digits_for(second) ? digits_for(first) : digits_for(second);
    do {
        fx_double_digits(first, digits, a);
        fx_double_digits(second, digits, b);
    } while (strcmp(a, b) == 0 && first != second && digits++ < 17);
    fxtap_buffer_printf(p->out, "%s%s%s%s", before, a, between, b);
}

void fx_page_count(const fx_page *p, uint64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_append(p->out, digits + i, 1);
        if ((n - 1 - i) % 3 == 0 && i + 1 < n) {
            fxtap_buffer_text(p->out, ",");
        }
    }
}

void fx_page_counted(const fx_page *p, uint64_t value, const char *singular, const char *plural)
{
    fx_page_count(p, value);
    fxtap_buffer_printf(p->out, " %s", value == 1 ? singular : plural);
}

void fx_page_lines(const fx_page *p, const char *lines)
{
    for (size_t length; *lines != '\0'; lines += length + (lines[length] != '\0')) {
        char line[1024];
        length = strcspn(lines, "\n");
        size_t n = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, lines, n);
        line[n] = '\0';
        fxtap_buffer_text(p->out, "        ");
        fx_page_wrapped(p, line, 12);
        fxtap_buffer_text(p->out, "\n");
    }
}
