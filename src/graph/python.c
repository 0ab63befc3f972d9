/* python.c - literals, names and types as Python text. */
#include "graph/python.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/number.h"
#include "util/utf8.h"

/* ---- literals ---- */

/* Approximately what repr() escapes: everything invisible. */
static bool is_invisible(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 || c == 0xfeff ||
           (c >= 0xe000 && c <= 0xf8ff) || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000;
}

/* A surrogate in WTF-8: encoded as UTF-8 would, if it allowed surrogates. */
static uint32_t decode_surrogate(const unsigned char *at, size_t left)
{
    bool is_one = left >= 3 && at[0] == 0xed && at[1] >= 0xa0 && at[1] <= 0xbf && (at[2] & 0xc0) == 0x80;
    return is_one ? 0xd000u | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu) : 0;
}

static void escape(fxtap_buffer *out, uint32_t c)
{
    switch (c) {
    case '\n':
        fxtap_buffer_text(out, "\\n");
        break;
    case '\r':
        fxtap_buffer_text(out, "\\r");
        break;
    case '\t':
        fxtap_buffer_text(out, "\\t");
        break;
    default:
        fxtap_buffer_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
        break;
    }
}

/* Single quotes, unless the text has single and no double quotes. */
static char choose_quote(const char *bytes, size_t length)
{
    bool has_single = memchr(bytes, '\'', length) != NULL;
    return has_single && memchr(bytes, '"', length) == NULL ? '"' : '\'';
}

void fx_python_string(fxtap_buffer *out, const char *bytes, size_t length)
{
    char quote = choose_quote(bytes, length);
    fxtap_buffer_append(out, &quote, 1);
    for (size_t i = 0; i < length;) {
        size_t used;
        uint32_t c = fx_utf8_decode(bytes + i, length - i, &used);
        if (used == 0) {
            c = decode_surrogate((const unsigned char *)bytes + i, length - i);
            used = c != 0 ? 3 : 1;
            escape(out, c != 0 ? c : 0xdc00u | (unsigned char)bytes[i]);
        } else if (c == '\\' || c == (uint32_t)quote) {
            fxtap_buffer_text(out, "\\");
            fxtap_buffer_append(out, bytes + i, 1);
        } else if (is_invisible(c)) {
            escape(out, c);
        } else {
            fxtap_buffer_append(out, bytes + i, used);
        }
        i += used;
    }
    fxtap_buffer_append(out, &quote, 1);
}

void fx_python_bytes(fxtap_buffer *out, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    char quote = length == 0 ? '\'' : choose_quote(bytes, length);
    fxtap_buffer_printf(out, "b%c", quote);
    for (size_t i = 0; i < length; i++) {
        if (at[i] == '\\' || at[i] == (unsigned char)quote) {
            fxtap_buffer_printf(out, "\\%c", at[i]);
        } else if (at[i] < 0x20 || at[i] >= 0x7f) {
            escape(out, at[i]);
        } else {
            fxtap_buffer_append(out, at + i, 1);
        }
    }
    fxtap_buffer_append(out, &quote, 1);
}

void fx_python_float(fxtap_buffer *out, double value)
{
    if (isfinite(value)) {
        fxtap_buffer_double(out, value);
    } else {
        fxtap_buffer_printf(out, "float('%s')", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
}

void fx_python_complex(fxtap_buffer *out, double real, double imag)
{
    fxtap_buffer_text(out, "complex(");
    fx_python_float(out, real);
    fxtap_buffer_text(out, ", ");
    fx_python_float(out, imag);
    fxtap_buffer_text(out, ")");
}

void fx_python_bigint(fxtap_buffer *out, const char *digits)
{
    const size_t chunk = 4000;
    bool negative = digits[0] == '-';
    digits += negative;
    size_t length = strlen(digits);
    if (length <= chunk) {
        digits += strspn(digits, "0"); /* Python does not allow leading zeros */
        fxtap_buffer_printf(out, "%s%s", negative ? "-" : "", *digits == '\0' ? "0" : digits);
        return;
    }
    /* a sum of chunks, each times a power of ten */
    fxtap_buffer_text(out, negative ? "-(" : "(");
    for (size_t at = 0; at < length;) {
        size_t n = (length - at) % chunk == 0 ? chunk : (length - at) % chunk;
        size_t zeros = 0;
        while (zeros + 1 < n && digits[at + zeros] == '0') {
            zeros++;
        }
        fxtap_buffer_text(out, at == 0 ? "" : " + ");
        fxtap_buffer_append(out, digits + at + zeros, n - zeros);
        at += n;
        if (at < length) {
            fxtap_buffer_printf(out, " * 10**%zu", length - at);
        }
    }
    fxtap_buffer_text(out, ")");
}

void fx_base64(fxtap_buffer *out, const void *data, size_t n_bytes)
{
    const unsigned char *bytes = data;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n_bytes; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16 | (i + 1 < n_bytes ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (i + 2 < n_bytes ? bytes[i + 2] : 0u);
        char text[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        if (i + 2 >= n_bytes) {
            text[3] = '=';
        }
        if (i + 1 >= n_bytes) {
            text[2] = '=';
        }
        fxtap_buffer_append(out, text, sizeof text);
    }
}

/* ---- names ---- */

static bool is_keyword(const char *name, size_t length)
{
    static const char keywords[] =
        " False None True and as assert async await break class continue def del elif else except finally for from "
        "global if import in is lambda nonlocal not or pass raise return try while with yield __debug__ ";
    char padded[16];
    if (length + 3 > sizeof padded) {
        return false;
    }
    padded[0] = ' ';
    memcpy(padded + 1, name, length);
    memcpy(padded + 1 + length, " ", 2);
    return strstr(keywords, padded) != NULL;
}

static bool is_word(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return length > 0;
}

bool fx_python_is_identifier(const char *name, size_t length)
{
    return is_word(name, length) && !is_keyword(name, length);
}

bool fx_python_is_dotted(const char *name)
{
    for (;;) {
        size_t length = strcspn(name, ".");
        if (!fx_python_is_identifier(name, length)) {
            return false;
        }
        if (name[length] == '\0') {
            return true;
        }
        name += length + 1;
    }
}

static bool reserve(fx_names *names, const char *name, size_t length)
{
    return fx_texts_keep(&names->reserved, name, length) != NULL;
}

static bool reserve_roots(fx_names *names, const fxtap_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &graph->nodes[i].desc;
        const char *target = desc->target_python != NULL ? desc->target_python : desc->target;
        if (desc->op == FXTAP_OP_CALL_FUNCTION && !reserve(names, target, strcspn(target, "."))) {
            return false;
        }
    }
    return true;
}

/* The letters, digits and "_" of the name, and the unique index of the node. */
static const char *replacement(fx_names *names, const fxtap_graph *graph, size_t node)
{
    const char *name = graph->nodes[node].desc.name;
    size_t length = strlen(name);
    char *text = fx_arena_alloc(&names->arena, length + 64);
    if (text == NULL) {
        return NULL;
    }
    size_t end = 0;
    text[end++] = '_';
    for (size_t i = 0; i < length; i++) {
        text[end++] = is_word(name + i, 1) || (name[i] >= '0' && name[i] <= '9') ? name[i] : '_';
    }
    char number[24];
    fxtap_node other;
    size_t digits = 0;
    for (size_t rest = node; digits == 0 || rest > 0; rest /= 10) {
        number[digits++] = (char)('0' + rest % 10);
    }
    memcpy(text + end, "__", 2);
    end += 2;
    while (digits > 0) {
        text[end++] = number[--digits];
    }
    text[end] = '\0';
    for (int i = 0; i < 30 && fxtap_graph_find_node(graph, text, &other) == FXTAP_OK; i++) {
        memcpy(text + end++, "_", 2);
    }
    return text;
}

bool fx_names_init(fx_names *names, const fxtap_graph *graph, const char *const *reserved)
{
    memset(names, 0, sizeof *names);
    fx_arena_init(&names->arena);
    names->names = fx_calloc(graph->n_nodes, sizeof *names->names);
    bool ok = names->names != NULL && reserve_roots(names, graph);
    for (size_t i = 0; ok && reserved[i] != NULL; i++) {
        ok = reserve(names, reserved[i], strlen(reserved[i]));
    }
    for (size_t i = 0; ok && i < graph->n_nodes; i++) {
        const char *name = graph->nodes[i].desc.name;
        size_t length = strlen(name);
        bool is_free = fx_python_is_identifier(name, length) && strncmp(name, FX_GRAPH_PREFIX, 7) != 0 &&
                       fx_texts_find(&names->reserved, name, length) == NULL;
        names->names[i] = is_free ? name : replacement(names, graph, i);
        ok = names->names[i] != NULL;
    }
    return ok;
}

void fx_names_clear(fx_names *names)
{
    fx_arena_clear(&names->arena);
    fx_texts_clear(&names->reserved);
    fx_free(names->names);
    memset(names, 0, sizeof *names);
}

/* ---- for people ---- */

void fx_plain_text(fxtap_buffer *out, const char *text, size_t limit)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        if (i >= limit) {
            fxtap_buffer_text(out, "...");
            break;
        }
        size_t used;
        uint32_t c = fx_utf8_decode(text + i, length - i, &used);
        if (used == 0 || is_invisible(c)) {
            for (size_t j = 0; j < (used == 0 ? 1 : used); j++) {
                fxtap_buffer_printf(out, "\\x%02x", (unsigned char)text[i + j]);
            }
        } else {
            fxtap_buffer_append(out, text + i, used);
        }
        i += used == 0 ? 1 : used;
    }
}

static void type_of_tensor(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_tensor_meta *meta)
{
    fxtap_buffer_printf(out, "%s[", fxtap_dtype_name(meta->dtype));
    for (size_t i = 0; i < meta->n_dims; i++) {
        fxtap_buffer_text(out, i == 0 ? "" : ", ");
        fx_type_text(out, graph, meta->shape[i]);
    }
    fxtap_buffer_text(out, "] ");
    fx_plain_text(out, meta->device, 64);
}

/* Depth: at most FX_VALUE_DEPTH_MAX. */
void fx_type_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value meta)
{
    const fx_value_row *row = fx_graph_value(graph, meta);
    switch (row->kind) {
    case 0:
        break;
    case FXTAP_V_TENSOR:
        type_of_tensor(out, graph, &graph->tensors[row->index]);
        break;
    case FXTAP_V_NONE:
        fxtap_buffer_text(out, "None");
        break;
    case FXTAP_V_BOOL:
        fxtap_buffer_text(out, row->flag ? "True" : "False");
        break;
    case FXTAP_V_INT:
        fxtap_buffer_printf(out, "%lld", (long long)row->as.integer);
        break;
    case FXTAP_V_FLOAT:
        fxtap_buffer_double(out, row->number);
        break;
    case FXTAP_V_COMPLEX:
        fx_python_complex(out, row->number, row->as.imag);
        break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        fxtap_buffer_text(out, row->kind == FXTAP_V_LIST ? "[" : "(");
        for (uint32_t i = 0; i < row->index; i++) {
            fxtap_buffer_text(out, i == 0 ? "" : ", ");
            fx_type_text(out, graph, row->as.items[i]);
        }
        fxtap_buffer_text(out, row->kind == FXTAP_V_LIST ? "]" : ")");
        break;
    case FXTAP_V_NODE:
        fx_plain_text(out, graph->nodes[row->index].desc.name, 256);
        break;
    case FXTAP_V_GRAPH:
        fxtap_buffer_printf(out, "graph of %zu nodes", graph->subgraphs[row->index]->n_nodes);
        break;
    case FXTAP_V_ELLIPSIS:
        fxtap_buffer_text(out, "...");
        break;
    default:
        fx_plain_text(out, row->as.text, 256);
        break;
    }
}
