/* Python values: their repr, and their bytes in a dtype. */
#include <math.h>
#include <string.h>

#include "ge/ge.h"
#include "graph/python.h"
#include "util/number.h"

static void value_text(fxtap_buffer *out, const fx_val *value, bool is_source);

static void complex_repr(fxtap_buffer *out, double real, double imag)
{
    char text[FX_NUMBER_BYTES];
    bool whole = real == 0 && !signbit(real);
    size_t length;
    if (!whole) {
        length = fx_double_text(real, text);
        if (length > 2 && memcmp(text + length - 2, ".0", 2) == 0) {
            length -= 2;
        }
        fxtap_buffer_printf(out, "(%.*s", (int)length, text);
    }
    length = fx_double_text(imag, text);
    if (length > 2 && memcmp(text + length - 2, ".0", 2) == 0) {
        length -= 2;
    }
    fxtap_buffer_printf(out, "%s%.*sj%s", !whole && text[0] != '-' ? "+" : "", (int)length, text, whole ? "" : ")");
}

/* Whether Python evaluates the repr of a complex number to the same number. */
static bool reads_back(double real, double imag)
{
    return isfinite(real) && isfinite(imag) && !(real == 0 && signbit(real)) && !(imag == 0 && signbit(imag));
}

static void items_text(fxtap_buffer *out, const fx_val *value, bool is_source)
{
    bool is_tuple = value->kind == FX_VAL_TUPLE;
    fxtap_buffer_text(out, is_tuple ? "(" : "[");
    for (size_t i = 0; i < value->u.list.n; i++) {
        if (i > 0) {
            fxtap_buffer_text(out, ", ");
        }
        value_text(out, &value->u.list.items[i], is_source);
    }
    fxtap_buffer_text(out, is_tuple ? (value->u.list.n == 1 ? ",)" : ")") : "]");
}

/* A string in double quotes, as py writes attribute values; if not plain, as a Python literal. */
static void text_repr(fxtap_buffer *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < 0x20 || bytes[i] >= 0x7f || bytes[i] == '"' || bytes[i] == '\\') {
            fx_python_string(out, bytes, length);
            return;
        }
    }
    fxtap_buffer_text(out, "\"");
    fxtap_buffer_append(out, bytes, length);
    fxtap_buffer_text(out, "\"");
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A tensor's repr, its inf and nan written as float('inf'), float('nan'). */
static void tensor_source(fxtap_buffer *out, const fx_val *value)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fx_tensor_repr(&text, value->u.tensor);
    for (size_t i = 0; i < text.length;) {
        const char *word = text.bytes + i;
        size_t sign = word[0] == '-' ? 1 : 0;
        size_t end = i + sign;
        while (end < text.length && is_letter(text.bytes[end])) {
            end++;
        }
        end += end == i; /* not part of a word or a signed number */
        bool is_number =
            end - i == sign + 3 && (memcmp(word + sign, "inf", 3) == 0 || memcmp(word + sign, "nan", 3) == 0);
        fxtap_buffer_printf(out, is_number ? "float('%.*s')" : "%.*s", (int)(end - i), word);
        i = end;
    }
    if (fxtap_buffer_status(&text) != FXTAP_OK) {
        out->status = fxtap_buffer_status(&text);
    }
    fxtap_buffer_clear(&text);
}

static void value_text(fxtap_buffer *out, const fx_val *value, bool is_source)
{
    switch (value->kind) {
    case FX_VAL_NONE:
        fxtap_buffer_text(out, "None");
        break;
    case FX_VAL_BOOL:
        fxtap_buffer_text(out, value->u.b ? "True" : "False");
        break;
    case FX_VAL_INT:
    case FX_VAL_DTYPE:
        fxtap_buffer_printf(out, "%lld", (long long)value->u.i);
        break;
    case FX_VAL_FLOAT:
        if (is_source) {
            fx_python_float(out, value->u.f);
        } else {
            fxtap_buffer_double(out, value->u.f);
        }
        break;
    case FX_VAL_COMPLEX:
        if (is_source && !reads_back(value->u.c.real, value->u.c.imag)) {
            fx_python_complex(out, value->u.c.real, value->u.c.imag);
        } else {
            complex_repr(out, value->u.c.real, value->u.c.imag);
        }
        break;
    case FX_VAL_TEXT:
        text_repr(out, value->u.text.bytes, value->u.text.length);
        break;
    case FX_VAL_LIST:
    case FX_VAL_TUPLE:
        items_text(out, value, is_source);
        break;
    case FX_VAL_TENSOR:
        if (is_source) {
            tensor_source(out, value);
        } else {
            fx_tensor_repr(out, value->u.tensor);
        }
        break;
    case FX_VAL_REF:
        fx_ge_ref_text(out, value->u.ref);
        break;
    case FX_VAL_GRAPH:
        fx_ge_function(out, value->u.body->name);
        break;
    }
}

void fx_val_repr(fxtap_buffer *out, const fx_val *value)
{
    value_text(out, value, false);
}

void fx_val_source(fxtap_buffer *out, const fx_val *value)
{
    value_text(out, value, true);
}

/* ---- bytes ---- */

static uint16_t half_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { /* values from 65520 on round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) { /* subnormal: count in units of 2^-24 */
        float scaled = fabsf(value) * 16777216.0f;
        return (uint16_t)(sign | (uint16_t)lrintf(scaled));
    }
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (uint16_t)((rounded - 0x38000000u) >> 13));
}

static uint16_t bfloat16_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) {
        return 0x7fc0u;
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static void put(uint8_t *out, uint64_t bits, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        out[i] = (uint8_t)(bits >> (8 * i));
    }
}

static void put_float(uint8_t *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(out, bits, 4);
}

static void put_double(uint8_t *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(out, bits, 8);
}

/* A float as an integer, without undefined behaviour: 0 if it does not fit. */
static int64_t whole_of(double value)
{
    return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value : 0;
}

static bool encode_number(double real, double imag, int64_t whole, int dtype, uint8_t *out)
{
    switch (dtype) {
    case FX_GE_FLOAT:
        put_float(out, (float)real);
        return true;
    case FX_GE_FLOAT16:
        put(out, half_bits((float)real), 2);
        return true;
    case FX_GE_BF16:
        put(out, bfloat16_bits((float)real), 2);
        return true;
    case FX_GE_DOUBLE:
        put_double(out, real);
        return true;
    case FX_GE_COMPLEX64:
        put_float(out, (float)real);
        put_float(out + 4, (float)imag);
        return true;
    case 17:
        put_double(out, real);
        put_double(out + 8, imag);
        return true;
    case FX_GE_BOOL:
        out[0] = real != 0 || imag != 0 || whole != 0;
        return true;
    default:
        if (fx_ge_dtype_bytes(dtype) == 0 || dtype >= 18) {
            return false;
        }
        put(out, (uint64_t)whole, fx_ge_dtype_bytes(dtype));
        return true;
    }
}

bool fx_val_encode(const fx_val *value, int dtype, uint8_t *out)
{
    switch (value->kind) {
    case FX_VAL_BOOL:
        return encode_number(value->u.b, 0, value->u.b, dtype, out);
    case FX_VAL_INT:
    case FX_VAL_DTYPE:
        return encode_number((double)value->u.i, 0, value->u.i, dtype, out);
    case FX_VAL_FLOAT:
        return encode_number(value->u.f, 0, whole_of(value->u.f), dtype, out);
    case FX_VAL_COMPLEX:
        return encode_number(value->u.c.real, value->u.c.imag, whole_of(value->u.c.real), dtype, out);
    case FX_VAL_LIST:
    case FX_VAL_TUPLE:
        for (size_t i = 0; i < value->u.list.n; i++) {
            if (value->u.list.items[i].kind == FX_VAL_LIST ||
                !fx_val_encode(&value->u.list.items[i], dtype, out + i * fx_ge_dtype_bytes(dtype))) {
                return false;
            }
        }
        return true;
    default:
        return false;
    }
}
