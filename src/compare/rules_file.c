/*
 * rules_file.c - reads rules from a file: a subset of TOML (https://toml.io/en/v1.0.0), only tables `[[rule]]`.
 *
 * Strings (basic and literal, on one line) and decimal numbers; no dotted or quoted keys, no other tables, no arrays.
 * Anything outside the subset is an error that names the line.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compare/report.h"
#include "compare/rules.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/text_file.h"
#include "util/utf8.h"

#define NOT_SET (-1.0)

typedef struct parser {
    const char *path; /* for messages */
    const char *at;
    const char *end;
    size_t line;
    size_t rule_line; /* line of the last [[rule]] */
    fxtap_rule *rules;
    size_t n_rules;
    size_t capacity;
} parser;

typedef struct key_row {
    const char *name;
    size_t offset; /* in fxtap_rule */
    bool is_text;
    double largest;
} key_row;

static const key_row keys[] = {
    {"dtype", offsetof(fxtap_rule, dtype), true, 0},
    {"target", offsetof(fxtap_rule, operator_name), true, 0},
    {"node", offsetof(fxtap_rule, node), true, 0},
    {"rtol", offsetof(fxtap_rule, rtol), false, INFINITY},
    {"atol", offsetof(fxtap_rule, atol), false, INFINITY},
    {"cosine", offsetof(fxtap_rule, min_cosine), false, 1.0},
    {"max_abs", offsetof(fxtap_rule, max_abs), false, INFINITY},
    {"rel_l2", offsetof(fxtap_rule, max_rel_l2), false, INFINITY},
    {"max_ulp", offsetof(fxtap_rule, max_ulp), false, INFINITY},
};

#define N_KEYS (sizeof keys / sizeof keys[0])

void fxtap_rule_init(fxtap_rule *rule)
{
    *rule = (fxtap_rule){.struct_size = sizeof *rule,
                         .rtol = NOT_SET,
                         .atol = NOT_SET,
                         .min_cosine = NOT_SET,
                         .max_abs = NOT_SET,
                         .max_rel_l2 = NOT_SET,
                         .max_ulp = NOT_SET};
}

static const char **text_at(fxtap_rule *rule, const key_row *key)
{
    return (const char **)((char *)rule + key->offset);
}

static double *number_at(fxtap_rule *rule, const key_row *key)
{
    return (double *)((char *)rule + key->offset);
}

static fxtap_status wrong(const parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static fxtap_status wrong(const parser *p, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fx_error_at(FXTAP_E_INVALID, p->path, "line %zu: %s", p->line, text);
}

/* The current character; '\n' also at the end of the text. */
static char peek(const parser *p)
{
    return p->at < p->end ? *p->at : '\n';
}

static void skip_blanks(parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\t') {
        p->at++;
    }
}

/* Only a comment may follow a value or a header. */
static fxtap_status end_line(parser *p)
{
    skip_blanks(p);
    if (peek(p) == '#') {
        while (peek(p) != '\n') {
            p->at++;
        }
    }
    if (peek(p) == '\r' && p->at + 1 < p->end && p->at[1] == '\n') {
        p->at++;
    }
    if (peek(p) != '\n') {
        return wrong(p, "nothing but a comment may follow on the line");
    }
    p->at += p->at < p->end;
    p->line++;
    return FXTAP_OK;
}

/* ---- values ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static fxtap_status read_code_point(parser *p, size_t n_digits, fxtap_buffer *out)
{
    char digits[9] = "", bytes[4];
    uint32_t code = 0;
    for (size_t i = 0; i < n_digits; i++) {
        if (!is_hex(peek(p))) {
            return wrong(p, "\\u needs four hexadecimal digits, \\U eight");
        }
        char c = digits[i] = *p->at++;
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return wrong(p, "invalid code point %s", digits);
    }
    fxtap_buffer_append(out, bytes, fx_utf8_encode(code, bytes));
    return FXTAP_OK;
}

static fxtap_status read_escape(parser *p, fxtap_buffer *out)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    char c = peek(p);
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (known != NULL) {
        p->at++;
        fxtap_buffer_append(out, to + (known - from), 1);
        return FXTAP_OK;
    }
    if (c == 'u' || c == 'U') {
        p->at++;
        return read_code_point(p, c == 'u' ? 4 : 8, out);
    }
    return wrong(p, "invalid escape in a string");
}

static fxtap_status read_characters(parser *p, char quote, fxtap_buffer *out)
{
    fxtap_status status = FXTAP_OK;
    while (status == FXTAP_OK && peek(p) != quote) {
        char c = peek(p);
        if (c == '\n') {
            return wrong(p, "unterminated string: no closing %c", quote);
        }
        p->at++;
        if (c == '\\' && quote == '"') {
            status = read_escape(p, out);
        } else if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7f) {
            return wrong(p, "a control character in a string");
        } else {
            fxtap_buffer_append(out, &c, 1);
        }
    }
    p->at += status == FXTAP_OK;
    return status;
}

static fxtap_status read_text(parser *p, const key_row *key, const char **out)
{
    char quote = peek(p);
    if (quote != '"' && quote != '\'') {
        return wrong(p, "%s takes a string in quotes", key->name);
    }
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_buffer_append(&text, "", 0);
    p->at++;
    fxtap_status status = read_characters(p, quote, &text);
    if (status == FXTAP_OK) {
        status = fxtap_buffer_status(&text);
    }
    if (status == FXTAP_OK && text.length == 0) {
        status = wrong(p, "%s is empty", key->name);
    }
    if (status == FXTAP_OK && key->offset == offsetof(fxtap_rule, dtype) &&
        fxtap_dtype_from_name(text.bytes) == FXTAP_DTYPE_NONE) {
        status = wrong(p, "unknown dtype '%s'", text.bytes);
    }
    if (status == FXTAP_OK) {
        *out = fx_strdup(text.bytes);
        status = *out == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    }
    fxtap_buffer_clear(&text);
    return status;
}

/* TOML's decimal integers and floats: digits, single underscores between digits, one point with digits around it. */
static bool is_decimal(const char *text)
{
    const char *c = text + (*text == '+' || *text == '-');
    bool seen_point = false, seen_exponent = false;
    if (c[0] == '0' && ((c[1] >= '0' && c[1] <= '9') || c[1] == '_')) {
        return false;
    }
    for (char before = '.'; *c != '\0'; before = *c++) {
        bool digit_before = before >= '0' && before <= '9', digit_after = c[1] >= '0' && c[1] <= '9';
        if (*c == '_' || *c == '.') {
            bool allowed = digit_before && digit_after && !(*c == '.' && (seen_point || seen_exponent));
            seen_point |= *c == '.';
            if (!allowed) {
                return false;
            }
        } else if (*c == 'e' || *c == 'E') {
            bool is_signed = c[1] == '+' || c[1] == '-';
            if (seen_exponent || !digit_before || !(digit_after || (is_signed && c[2] >= '0' && c[2] <= '9'))) {
                return false;
            }
            seen_exponent = true;
            c += is_signed;
        } else if (*c < '0' || *c > '9') {
            return false;
        }
    }
    return c > text && c[-1] >= '0' && c[-1] <= '9';
}

/* The value of a decimal that is_decimal() accepts. */
static double decimal_value(const char *text)
{
    char plain[64];
    size_t n = 0;
    double value = 0;
    for (text += *text == '+'; *text != '\0'; text++) {
        if (*text != '_') {
            plain[n++] = *text;
        }
    }
    plain[n] = '\0';
    fx_read_double(plain, &value);
    return value;
}

static fxtap_status read_number(parser *p, const key_row *key, double *out)
{
    char text[64];
    size_t length = 0;
    while (length < sizeof text - 1 && strchr(" \t\r\n#", peek(p)) == NULL) {
        text[length++] = *p->at++;
    }
    text[length] = '\0';
    if (!is_decimal(text)) {
        return wrong(p, "%s takes a decimal number", key->name);
    }
    double value = decimal_value(text);
    if (!(value >= 0.0 && value <= key->largest) || !isfinite(value)) {
        return wrong(p, isinf(key->largest) ? "%s cannot be %s" : "%s must be between 0 and 1, not %s", key->name,
                     text);
    }
    *out = value;
    return FXTAP_OK;
}

/* ---- lines ---- */

static bool sets_something(const fxtap_rule *rule)
{
    return rule->rtol >= 0 || rule->atol >= 0 || rule->min_cosine >= 0 || rule->max_abs >= 0 || rule->max_rel_l2 >= 0 ||
           rule->max_ulp >= 0;
}

static fxtap_status end_rule(const parser *p)
{
    if (p->n_rules > 0 && !sets_something(&p->rules[p->n_rules - 1])) {
        return fx_error_at(FXTAP_E_INVALID, p->path, "line %zu: a rule without a tolerance", p->rule_line);
    }
    return FXTAP_OK;
}

static fxtap_status begin_rule(parser *p)
{
    static const char header[] = "[[rule]]";
    size_t length = sizeof header - 1;
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, header, length) != 0) {
        return wrong(p, "only tables called [[rule]] are known");
    }
    fxtap_status status = end_rule(p);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!fx_grow((void **)&p->rules, &p->capacity, p->n_rules + 1, sizeof *p->rules)) {
        return FXTAP_E_NOMEM;
    }
    fxtap_rule_init(&p->rules[p->n_rules++]);
    p->rule_line = p->line;
    p->at += length;
    return end_line(p);
}

static const key_row *find_key(const char *name, size_t length)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strlen(keys[i].name) == length && memcmp(keys[i].name, name, length) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static bool is_key_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static fxtap_status read_pair(parser *p)
{
    const char *name = p->at;
    while (is_key_character(peek(p))) {
        p->at++;
    }
    int length = p->at - name > 40 ? 40 : (int)(p->at - name);
    const key_row *key = find_key(name, (size_t)(p->at - name));
    if (length == 0) {
        return wrong(p, "expected [[rule]] or KEY = VALUE");
    }
    if (key == NULL) {
        return wrong(p, "unknown key '%.*s'", length, name);
    }
    if (p->n_rules == 0) {
        return wrong(p, "%s precedes the first [[rule]]", key->name);
    }
    fxtap_rule *rule = &p->rules[p->n_rules - 1];
    if (key->is_text ? *text_at(rule, key) != NULL : *number_at(rule, key) >= 0.0) {
        return wrong(p, "%s is given twice", key->name);
    }
    skip_blanks(p);
    if (peek(p) != '=') {
        return wrong(p, "expected = after %s", key->name);
    }
    p->at++;
    skip_blanks(p);
    fxtap_status status =
        key->is_text ? read_text(p, key, text_at(rule, key)) : read_number(p, key, number_at(rule, key));
    return status != FXTAP_OK ? status : end_line(p);
}

static fxtap_status read_lines(parser *p)
{
    fxtap_status status = FXTAP_OK;
    while (p->at < p->end && status == FXTAP_OK) {
        skip_blanks(p);
        if (strchr("#\r\n", peek(p)) != NULL && peek(p) != '\0') {
            status = end_line(p);
        } else {
            status = peek(p) == '[' ? begin_rule(p) : read_pair(p);
        }
    }
    return status == FXTAP_OK ? end_rule(p) : status;
}

fxtap_status fx_rules_parse(const char *path, const char *text, size_t length, fxtap_rule **out, size_t *n_out)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    parser p = {.path = path, .at = text, .end = text + length, .line = 1};
    if (!fx_utf8_is_valid(text, length)) {
        return fx_error_at(FXTAP_E_INVALID, path, "not UTF-8 text");
    }
    if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        p.at += 3;
    }
    fxtap_status status = read_lines(&p);
    if (status != FXTAP_OK) {
        fxtap_rules_free(p.rules, p.n_rules);
        return status;
    }
    *out = p.rules;
    *n_out = p.n_rules;
    return FXTAP_OK;
}

fxtap_status fxtap_rules_load(const char *path, fxtap_rule **out, size_t *n_out)
{
    FX_REQUIRE(path);
    FX_REQUIRE(out);
    FX_REQUIRE(n_out);
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_status status = fx_text_file_read(path, &text);
    if (status == FXTAP_OK) {
        status = fx_rules_parse(path, text.bytes, text.length, out, n_out);
    }
    fxtap_buffer_clear(&text);
    return status;
}

void fxtap_rules_free(fxtap_rule *rules, size_t n_rules)
{
    for (size_t i = 0; i < n_rules; i++) {
        for (size_t k = 0; k < N_KEYS; k++) {
            if (keys[k].is_text) {
                fx_free((void *)(uintptr_t)*text_at(&rules[i], &keys[k]));
            }
        }
    }
    fx_free(rules);
}
