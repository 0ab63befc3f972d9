#include "index/parse_file_name.h"

#include <string.h>

#define STAMP_DIGITS ((size_t)20)
#define US_PER_SECOND ((uint64_t)1000000)
#define SECONDS_PER_DAY ((uint64_t)86400)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool all_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i])) {
            return false;
        }
    }
    return length > 0;
}

/* Parses a decimal number without sign or leading zeros, at most `max`, and advances *cursor. */
static bool take_number(const char **cursor, uint64_t max, uint64_t *out)
{
    const char *start = *cursor;
    const char *c = start;
    uint64_t value = 0;
    for (; is_digit(*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (c == start || (c - start > 1 && *start == '0')) {
        return false;
    }
    *cursor = c;
    *out = value;
    return true;
}

static bool take_text(const char **cursor, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*cursor, text, length) != 0) {
        return false;
    }
    *cursor += length;
    return true;
}

/* ---- time stamps ---- */

/* Days from 1970-01-01 to a date of the Gregorian calendar, computed in years that begin in March. */
static uint64_t days_of_date(unsigned year, unsigned month, unsigned day)
{
    unsigned y = month > 2 ? year : year - 1;
    unsigned month_from_march = month > 2 ? month - 3 : month + 9;
    uint64_t day_of_year = (153u * month_from_march + 2) / 5 + day - 1;
    uint64_t days = (uint64_t)y * 365 + y / 4 - y / 100 + y / 400 + day_of_year;
    return days - 719468; /* from 0000-03-01 to 1970-01-01 */
}

static unsigned days_of_month(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap ? 1u : 0u);
}

static unsigned number_at(const char *digits, size_t first, size_t n)
{
    unsigned value = 0;
    for (size_t i = first; i < first + n; i++) {
        value = value * 10 + (unsigned)(digits[i] - '0');
    }
    return value;
}

bool fx_stamp_parse(const char *digits, uint64_t *out)
{
    if (!all_digits(digits, STAMP_DIGITS)) {
        return false;
    }
    unsigned year = number_at(digits, 0, 4);
    unsigned month = number_at(digits, 4, 2);
    unsigned day = number_at(digits, 6, 2);
    unsigned hour = number_at(digits, 8, 2);
    unsigned minute = number_at(digits, 10, 2);
    unsigned second = number_at(digits, 12, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month)) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    uint64_t seconds = days_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3600u + minute * 60u + second;
    *out = seconds * US_PER_SECOND + number_at(digits, 14, 6);
    return true;
}

/* ---- files ---- */

const char *fx_io_text(fxtap_io io)
{
    switch (io) {
    case FXTAP_INPUT:
        return "INPUT";
    case FXTAP_OUTPUT:
        return "OUTPUT";
    case FXTAP_INOUT:
        return "INOUT";
    }
    return "";
}

static bool io_from_text(const char *text, size_t length, fxtap_io *out)
{
    for (int io = FXTAP_INPUT; io <= FXTAP_INOUT; io++) {
        const char *name = fx_io_text((fxtap_io)io);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            *out = (fxtap_io)io;
            return true;
        }
    }
    return false;
}

/* The start of the part between dots that ends at `end`. */
static size_t part_start(const char *name, size_t end)
{
    while (end > 0 && name[end - 1] != '.') {
        end--;
    }
    return end;
}

/*
 * Searches from the right: list positions (digits), at most one keyword, then INPUT, OUTPUT or INOUT. The target may
 * therefore contain dots, and even a part ".INPUT.".
 */
static bool find_io(const char *name, size_t end, fx_name *out)
{
    size_t position_end = end;
    bool have_keyword = false;
    while (end > 0) {
        size_t start = part_start(name, end);
        if (start == 0 || start == end) {
            return false;
        }
        bool is_position_read = end != position_end;
        if (is_position_read && io_from_text(name + start, end - start, &out->io)) {
            out->stem_length = start - 1;
            out->position_offset = end + 1;
            out->position_length = position_end - end - 1;
            return out->stem_length > 0;
        }
        if (have_keyword) {
            return false;
        }
        have_keyword = !all_digits(name + start, end - start);
        end = start - 1;
    }
    return false;
}

bool fx_name_parse(const char *name, size_t length, fx_name *out)
{
    const size_t tail = 1 + STAMP_DIGITS + 4; /* .TS.npy */
    if (length <= tail || memchr(name, '\0', length) != NULL || memchr(name, '/', length) != NULL) {
        return false;
    }
    size_t end = length - tail;
    fx_name parsed = {.name_length = end};
    if (name[end] != '.' || memcmp(name + length - 4, ".npy", 4) != 0 ||
        !fx_stamp_parse(name + end + 1, &parsed.stamp_us) || !find_io(name, end, &parsed)) {
        return false;
    }
    const char *dash = memchr(name, '-', parsed.stem_length);
    parsed.node_length = dash != NULL ? (size_t)(dash - name) : parsed.stem_length;
    parsed.target_offset = dash != NULL ? parsed.node_length + 1 : parsed.stem_length;
    parsed.target_length = parsed.stem_length - parsed.target_offset;
    if (parsed.node_length == 0) {
        return false;
    }
    *out = parsed;
    return true;
}

/* ---- folders ---- */

bool fx_rank_folder_parse(const char *name, int32_t *world_size_out, int32_t *rank_out)
{
    uint64_t world_size, rank;
    if (!take_text(&name, "worldsize") || !take_number(&name, INT32_MAX, &world_size) ||
        !take_text(&name, "_global_rank") || !take_number(&name, INT32_MAX, &rank) || *name != '\0') {
        return false;
    }
    *world_size_out = (int32_t)world_size;
    *rank_out = (int32_t)rank;
    return true;
}

bool fx_graph_folder_parse(const char *name, uint32_t *graph_out)
{
    uint64_t graph;
    if (!take_text(&name, "graph_") || !take_number(&name, UINT32_MAX, &graph) || *name != '\0') {
        return false;
    }
    *graph_out = (uint32_t)graph;
    return true;
}

bool fx_step_folder_parse(const char *name, fxtap_step_state *state_out, int64_t *number_out)
{
    uint64_t number, other;
    bool is_hidden = take_text(&name, ".");
    if (!take_number(&name, INT64_MAX, &number)) {
        return false;
    }
    fxtap_step_state state = FXTAP_STEP_WHOLE;
    if (is_hidden) {
        state = FXTAP_STEP_PARTIAL;
        while (take_text(&name, "-")) {
            if (!take_number(&name, INT64_MAX, &other)) {
                return false;
            }
        }
        if (!take_text(&name, ".partial")) {
            return false;
        }
    } else if (take_text(&name, ".failed-")) {
        state = FXTAP_STEP_FAILED;
        if (!take_number(&name, INT64_MAX, &other)) {
            return false;
        }
    }
    if (*name != '\0') {
        return false;
    }
    *state_out = state;
    *number_out = (int64_t)number;
    return true;
}

/* ---- order ---- */

/* Compares the numbers at both cursors, of any length and without leading zeros, and advances the cursors. */
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0') {
        (*a)++;
    }
    while (**b == '0') {
        (*b)++;
    }
    const char *first_a = *a, *first_b = *b;
    while (is_digit(**a)) {
        (*a)++;
    }
    while (is_digit(**b)) {
        (*b)++;
    }
    size_t length_a = (size_t)(*a - first_a), length_b = (size_t)(*b - first_b);
    if (length_a != length_b) {
        return length_a < length_b ? -1 : 1;
    }
    return memcmp(first_a, first_b, length_a);
}

int fx_natural_compare(const char *a, const char *b)
{
    const char *whole_a = a, *whole_b = b;
    while (*a != '\0' && *b != '\0') {
        if (is_digit(*a) && is_digit(*b)) {
            int order = compare_numbers(&a, &b);
            if (order != 0) {
                return order;
            }
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    if (*a != *b) {
        return *a == '\0' ? -1 : 1;
    }
    return strcmp(whole_a, whole_b); /* "01" and "1" are different names */
}

int fx_position_compare(const char *a, const char *b)
{
    bool is_keyword_a = !is_digit(*a), is_keyword_b = !is_digit(*b);
    if (is_keyword_a != is_keyword_b) {
        return is_keyword_a ? 1 : -1;
    }
    return fx_natural_compare(a, b);
}
