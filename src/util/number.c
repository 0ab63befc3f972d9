#include "util/number.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/float_mode.h"
#include "util/output.h"

#define MAX_DIGITS 17

/* digits[0].digits[1..] * 10^exponent */
typedef struct decimal {
    char digits[MAX_DIGITS + 1];
    int n_digits;
    int exponent;
} decimal;

/* ---- reading ---- */

static locale_t c_locale;

/* static in glibc: no allocation, so it cannot fail */
static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale != (locale_t)0);
}

static locale_t plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return c_locale;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

size_t fx_read_u64(const char *text, uint64_t *out)
{
    size_t n = count_digits(text);
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return 0;
        }
    }
    if (n > 0) {
        *out = value;
    }
    return n;
}

size_t fx_read_i64(const char *text, int64_t *out)
{
    bool negative = text[0] == '-';
    uint64_t value;
    size_t n = fx_read_u64(text + negative, &value);
    if (n == 0 || value > (uint64_t)INT64_MAX + negative) {
        return 0;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return n + negative;
}

/* Length of digits, a point and digits, and an exponent; at least one digit precedes the exponent. */
static size_t decimal_length(const char *text)
{
    size_t n = text[0] == '-', n_digits = count_digits(text + n);
    n += n_digits;
    if (text[n] == '.') {
        size_t n_after = count_digits(text + n + 1);
        n_digits += n_after;
        n += 1 + n_after;
    }
    if (n_digits > 0 && (text[n] == 'e' || text[n] == 'E')) {
        size_t sign = text[n + 1] == '-' || text[n + 1] == '+', n_exponent = count_digits(text + n + 1 + sign);
        n += n_exponent > 0 ? 1 + sign + n_exponent : 0;
    }
    return n_digits > 0 ? n : 0;
}

size_t fx_read_double(const char *text, double *out)
{
    char copy[128]; /* strtod would read hexadecimal digits after "0x" */
    size_t n = decimal_length(text);
    if (n > 0 && n < sizeof copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
        text = copy;
    }
    if (n > 0) {
        *out = strtod_l(text, NULL, plain_locale());
    }
    return n;
}

/* ---- writing ---- */

/* `value` (finite, not negative) correctly rounded to `n_digits`. */
static void round_to(double value, int n_digits, decimal *out)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
    const char *c = text;
    out->n_digits = 0;
    for (; *c != 'e'; c++) { /* the bytes between the digits are the locale's decimal point */
        if (*c >= '0' && *c <= '9') {
            out->digits[out->n_digits++] = *c;
        }
    }
    out->digits[out->n_digits] = '\0';
    int64_t exponent = 0;
    fx_read_i64(c + 1 + (c[1] == '+'), &exponent);
    out->exponent = (int)exponent;
}

size_t fx_double_format(double value, char conversion, int n_decimals, char *out, size_t capacity)
{
    char text[512]; /* the largest double has 309 digits before its point */
    int length = snprintf(text, sizeof text, conversion == 'e' ? "%.*e" : "%.*f", n_decimals, value);
    size_t n = 0;
    bool after_point = false;
    for (int i = 0; i < length && (size_t)i < sizeof text - 1 && n + 1 < capacity; i++) {
        bool is_plain = strchr("0123456789+-einfa", text[i]) != NULL;
        if (is_plain || !after_point) { /* the locale's decimal point may have several bytes */
            out[n++] = is_plain ? text[i] : '.';
        }
        after_point |= !is_plain;
    }
    out[n] = '\0';
    return n;
}

/* The digits as an integer with an exponent: text without a decimal point reads the same in any locale. */
static void integer_text(const decimal *number, char out[64])
{
    snprintf(out, 64, "%se%d", number->digits, number->exponent - (number->n_digits - 1));
}

static bool reads_back(const decimal *number, double value, bool single)
{
    char text[64];
    integer_text(number, text);
    locale_t plain = plain_locale();
    return single ? strtof_l(text, NULL, plain) == (float)value : strtod_l(text, NULL, plain) == value;
}

/* The next decimal up, of the same number of digits. */
static void step_up(decimal *number)
{
    int i = number->n_digits - 1;
    while (i >= 0 && number->digits[i] == '9') {
        number->digits[i--] = '0';
    }
    if (i >= 0) {
        number->digits[i]++;
    } else {
        number->digits[0] = '1';
        number->exponent++;
    }
}

static void strip_zeros(decimal *number)
{
    while (number->n_digits > 1 && number->digits[number->n_digits - 1] == '0') {
        number->digits[--number->n_digits] = '\0';
    }
}

static bool is_power_of_two(double value)
{
    int exponent;
    return frexp(value, &exponent) == 0.5;
}

/*
 * The fewest digits that read back. DIG digits round-trip for normal numbers, so a shorter form appears as trailing
 * zeros; subnormals have less precision and are tried from one digit on. Below a power of two numbers are twice as
 * dense: the nearest decimal may fail to read back where the next higher one does not.
 */
static void shortest(double value, bool single, decimal *out)
{
    bool subnormal = value < (single ? (double)FLT_MIN : DBL_MIN);
    int first = subnormal ? 1 : (single ? FLT_DIG : DBL_DIG);
    int last = single ? 9 : MAX_DIGITS;
    bool lopsided = is_power_of_two(value);
    for (int n = first; n <= last; n++) {
        round_to(value, n, out);
        if (reads_back(out, value, single)) {
            break;
        }
        decimal up = *out;
        step_up(&up);
        if (lopsided && n < last && reads_back(&up, value, single)) {
            *out = up;
            break;
        }
    }
    strip_zeros(out);
}

static size_t put(char *out, size_t at, const char *bytes, size_t length)
{
    memcpy(out + at, bytes, length);
    return at + length;
}

static size_t put_zeros(char *out, size_t at, int n)
{
    memset(out + at, '0', n > 0 ? (size_t)n : 0);
    return n > 0 ? at + (size_t)n : at;
}

static size_t layout_fixed(const decimal *number, bool always_point, char *out, size_t at)
{
    size_t n = (size_t)number->n_digits;
    if (number->exponent < 0) {
        at = put(out, at, "0.", 2);
        at = put_zeros(out, at, -number->exponent - 1);
        return put(out, at, number->digits, n);
    }
    size_t n_whole = (size_t)number->exponent + 1;
    if (n > n_whole) {
        at = put(out, at, number->digits, n_whole);
        at = put(out, at, ".", 1);
        return put(out, at, number->digits + n_whole, n - n_whole);
    }
    at = put(out, at, number->digits, n);
    at = put_zeros(out, at, (int)(n_whole - n));
    return always_point ? put(out, at, ".0", 2) : at;
}

static size_t layout_exponent(const decimal *number, char *out, size_t at)
{
    at = put(out, at, number->digits, 1);
    if (number->n_digits > 1) {
        at = put(out, at, ".", 1);
        at = put(out, at, number->digits + 1, (size_t)number->n_digits - 1);
    }
    return at + (size_t)snprintf(out + at, FX_NUMBER_BYTES - at, "e%c%02d", number->exponent < 0 ? '-' : '+',
                                 abs(number->exponent));
}

/* Writes NaN, infinities and zeros; returns 0 for any other value. */
static size_t special_text(double value, const char *zero, char *out)
{
    const char *text = NULL;
    if (isnan(value)) {
        text = "nan";
    } else if (isinf(value)) {
        text = value < 0 ? "-inf" : "inf";
    } else if (value == 0) {
        text = signbit(value) ? zero : zero + 1;
    }
    return text == NULL ? 0 : (size_t)snprintf(out, FX_NUMBER_BYTES, "%s", text);
}

static size_t repr(double value, bool single, char out[FX_NUMBER_BYTES])
{
    size_t at = special_text(value, "-0.0", out);
    if (at > 0) {
        return at;
    }
    if (fabs(value) < 1e6 && value == (double)(int)value) {
        return (size_t)snprintf(out, FX_NUMBER_BYTES, "%d.0", (int)value);
    }
    decimal number;
    shortest(fabs(value), single, &number);
    if (value < 0) {
        at = put(out, at, "-", 1);
    }
    if (number.exponent < -4 || number.exponent >= 16) {
        at = layout_exponent(&number, out, at);
    } else {
        at = layout_fixed(&number, true, out, at);
    }
    out[at] = '\0';
    return at;
}

/* Volatile: the value is not used before the mode is set. */
size_t fx_double_text(double value, char out[FX_NUMBER_BYTES])
{
    volatile double given = value;
    fx_float_mode callers = fx_float_mode_begin();
    size_t length = repr(given, false, out);
    fx_float_mode_end(callers);
    return length;
}

size_t fx_float_text(float value, char out[FX_NUMBER_BYTES])
{
    volatile float given = value;
    fx_float_mode callers = fx_float_mode_begin();
    size_t length = repr((double)given, true, out);
    fx_float_mode_end(callers);
    return length;
}

enum { MAX_FAST_DIGITS = 9 };

/*
 * A fast round_to() for few digits of numbers of moderate size. Scaling by an exact power of ten has one rounding, with
 * an error below 1e-6, so only values that close to the midpoint of two decimals (or to a power of ten) need printf.
 * Returns false for those.
 */
static bool round_fast(double value, int n_digits, decimal *out)
{
    static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n_digits > MAX_FAST_DIGITS || !(value >= 1e-12 && value <= 1e22)) {
        return false;
    }
    int exponent = (int)floor(log10(value));
    int shift = n_digits - 1 - exponent;
    double scaled = shift >= 0 ? value * POWERS[shift] : value / POWERS[-shift];
    double whole = floor(scaled), rest = scaled - whole;
    uint64_t digits = (uint64_t)whole + (rest > 0.5);
    if (fabs(rest - 0.5) < 1e-6 || digits < (uint64_t)POWERS[n_digits - 1] || digits >= (uint64_t)POWERS[n_digits]) {
        return false;
    }
    out->n_digits = n_digits;
    out->exponent = exponent;
    out->digits[n_digits] = '\0';
    for (int i = n_digits; i-- > 0; digits /= 10) {
        out->digits[i] = (char)('0' + digits % 10);
    }
    return true;
}

static size_t digits_text(double value, int n_digits, char *out)
{
    size_t at = special_text(value, "-0", out);
    if (at > 0) {
        return at;
    }
    int n = n_digits < 1 ? 1 : (n_digits > MAX_DIGITS ? MAX_DIGITS : n_digits);
    decimal number;
    if (!round_fast(fabs(value), n, &number)) {
        round_to(fabs(value), n, &number);
    }
    strip_zeros(&number);
    if (value < 0) {
        at = put(out, at, "-", 1);
    }
    if (number.exponent < -4 || number.exponent >= n) {
        at = layout_exponent(&number, out, at);
    } else {
        at = layout_fixed(&number, false, out, at);
    }
    out[at] = '\0';
    return at;
}

size_t fx_double_digits(double value, int n_digits, char out[FX_NUMBER_BYTES])
{
    volatile double given = value;
    fx_float_mode callers = fx_float_mode_begin();
    size_t length = digits_text(given, n_digits, out);
    fx_float_mode_end(callers);
    return length;
}

void fxtap_buffer_double(fxtap_buffer *buffer, double value)
{
    char text[FX_NUMBER_BYTES];
    fxtap_buffer_append(buffer, text, fx_double_text(value, text));
}

void fxtap_buffer_digits(fxtap_buffer *buffer, double value, int n_digits)
{
    char text[FX_NUMBER_BYTES];
    fxtap_buffer_append(buffer, text, fx_double_digits(value, n_digits, text));
}

static size_t put_u64(uint64_t value, char *out)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (size_t i = 0; i < n; i++) {
        out[i] = digits[n - 1 - i];
    }
    out[n] = '\0';
    return n;
}

size_t fx_u64_text(uint64_t value, char out[FX_NUMBER_BYTES])
{
    return put_u64(value, out);
}

size_t fx_i64_text(int64_t value, char out[FX_NUMBER_BYTES])
{
    if (value >= 0) {
        return put_u64((uint64_t)value, out);
    }
    out[0] = '-';
    return 1 + put_u64(0 - (uint64_t)value, out + 1);
}
