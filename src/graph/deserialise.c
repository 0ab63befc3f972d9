/*
 * deserialise.c - a graph record from bytes that nothing is known about. serialise.h has the form.
 *
 * Entries are replayed through the same functions that build a record, which check every handle; here every length is
 * checked against the bytes that remain before anything of that size is allocated.
 */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "graph/record.h"
#include "graph/serialise.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct cursor {
    const unsigned char *at;
    size_t left;
    fxtap_status status; /* the first failure; every read after it gives zeros */
    fxtap_graph *graph;
    /* room for the arrays of one entry, grown as needed */
    fxtap_value *values;
    size_t values_capacity;
    const char **names;
    size_t names_capacity;
} cursor;

static void fail(cursor *c, const char *what)
{
    if (c->status == FXTAP_OK) {
        c->status = fx_error(FXTAP_E_FORMAT, "graph record: %s", what);
    }
}

static const unsigned char *take(cursor *c, uint64_t n_bytes)
{
    static const unsigned char zeros[8];
    if (c->status != FXTAP_OK || n_bytes > c->left) {
        fail(c, "cut short");
        return n_bytes <= sizeof zeros ? zeros : NULL;
    }
    const unsigned char *bytes = c->at;
    c->at += n_bytes;
    c->left -= (size_t)n_bytes;
    return bytes;
}

static uint64_t decode(const unsigned char *bytes, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = n_bytes; i > 0; i--) {
        value = value << 8 | bytes[i - 1];
    }
    return value;
}

static uint8_t get_u8(cursor *c)
{
    return *take(c, 1);
}

static uint32_t get_u32(cursor *c)
{
    return (uint32_t)decode(take(c, 4), 4);
}

static uint64_t get_u64(cursor *c)
{
    return decode(take(c, 8), 8);
}

static double get_double(cursor *c)
{
    uint64_t bits = get_u64(c);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool get_bool(cursor *c)
{
    uint8_t value = get_u8(c);
    if (value > 1) {
        fail(c, "a truth value that is none");
    }
    return value != 0;
}

/* A count of things that take at least `least` bytes each. */
static size_t get_count(cursor *c, size_t least)
{
    uint32_t count = get_u32(c);
    if (c->status == FXTAP_OK && count > c->left / least) {
        fail(c, "cut short");
    }
    return c->status == FXTAP_OK ? count : 0;
}

/* A string by its number; NULL for 0 (and on failure, with the status set). */
static const char *get_string(cursor *c)
{
    uint32_t number = get_u32(c);
    if (number > c->graph->texts.count) {
        fail(c, "a string that is not there");
    }
    return c->status != FXTAP_OK || number == 0 ? NULL : c->graph->texts.entries[number - 1]->text;
}

/* A string that must be there; "" on failure. */
static const char *get_text(cursor *c)
{
    const char *text = get_string(c);
    if (text == NULL) {
        fail(c, "a text that is not there");
        return c->graph->texts.entries[0]->text;
    }
    return text;
}

/* `n_values` handles, appended to those that this entry has. The array may move. */
static void get_values(cursor *c, size_t *n_before, size_t n_values)
{
    if (c->status == FXTAP_OK && n_values > c->left / 4) {
        fail(c, "cut short");
    }
    if (c->status != FXTAP_OK) {
        return;
    }
    if (!fx_grow((void **)&c->values, &c->values_capacity, *n_before + n_values, sizeof *c->values)) {
        c->status = FXTAP_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < n_values; i++) {
        c->values[(*n_before)++] = get_u32(c);
    }
}

/* ---- values ---- */

/* What the record's own checks refuse is a fault of the bytes. */
static void check(cursor *c, fxtap_status status)
{
    if (c->status != FXTAP_OK || status == FXTAP_OK) {
        return;
    }
    c->status = status;
    if (status == FXTAP_E_INVALID) {
        char why[256];
        snprintf(why, sizeof why, "%s", fxtap_error_message());
        c->status = fx_error(FXTAP_E_FORMAT, "graph record: %s", why);
    }
}

static void get_tensor(cursor *c, fxtap_value *out)
{
    fxtap_tensor_meta meta = {.struct_size = sizeof meta};
    meta.dtype = (fxtap_dtype)get_u8(c);
    uint8_t flags = get_u8(c);
    meta.requires_grad = (flags & 1u) != 0;
    meta.is_fake = (flags & 2u) != 0;
    meta.device = get_string(c);
    meta.layout = get_string(c);
    meta.n_dims = get_count(c, 4);
    size_t n_values = 0;
    get_values(c, &n_values, meta.n_dims);
    if ((flags & 4u) != 0) {
        get_values(c, &n_values, meta.n_dims);
    }
    if ((flags & 8u) != 0) {
        uint64_t n_bytes = get_u64(c);
        meta.bytes = take(c, n_bytes);
        meta.n_bytes = (size_t)n_bytes;
    }
    if (flags > 15) {
        fail(c, "a tensor with flags that are not known");
    }
    if (c->status == FXTAP_OK) {
        static const fxtap_value none[1] = {0};
        meta.shape = c->values != NULL ? c->values : none;
        meta.strides = (flags & 4u) == 0 ? NULL : meta.shape + meta.n_dims;
        check(c, fxtap_graph_add_tensor(c->graph, &meta, out));
    }
}

static void get_items(cursor *c, fxtap_value_kind kind, fxtap_value *out)
{
    size_t n_items = get_count(c, 4);
    size_t n_values = 0;
    get_values(c, &n_values, n_items);
    if (c->status == FXTAP_OK) {
        check(c, fxtap_graph_add_items(c->graph, kind, c->values, n_items, out));
    }
}

static void get_symbol(cursor *c, fxtap_value_kind kind, fxtap_value *out)
{
    const char *expression = get_text(c);
    bool has_hint = get_bool(c);
    double hint = get_double(c);
    if (strlen(expression) != fx_texts_entry_of(expression)->length) {
        fail(c, "an expression with a NUL");
    }
    if (c->status == FXTAP_OK) {
        check(c, fxtap_graph_add_symbol(c->graph, kind, expression, has_hint ? &hint : NULL, out));
    }
}

static void get_subgraph(cursor *c, fxtap_value *out)
{
    uint32_t index = get_u32(c);
    fxtap_graph *graph = c->graph;
    /* The subgraphs were read first; each becomes the value's own here, in order. */
    if (c->status == FXTAP_OK && index >= graph->n_subgraphs) {
        fail(c, "a subgraph that is not there");
    }
    if (c->status == FXTAP_OK) {
        check(c, fx_graph_add_subgraph_ref(graph, index, out));
    }
}

static void get_value(cursor *c, uint8_t tag)
{
    fxtap_graph *graph = c->graph;
    fxtap_value out;
    fxtap_value_kind kind = (fxtap_value_kind)tag;
    double real;
    const char *text;
    switch (kind) {
    case FXTAP_V_NONE: check(c, fxtap_graph_add_none(graph, &out)); break;
    case FXTAP_V_ELLIPSIS: check(c, fxtap_graph_add_text(graph, kind, "", 0, &out)); break;
    case FXTAP_V_BOOL: check(c, fxtap_graph_add_bool(graph, get_bool(c), &out)); break;
    case FXTAP_V_INT: check(c, fxtap_graph_add_int(graph, (int64_t)get_u64(c), &out)); break;
    case FXTAP_V_FLOAT: check(c, fxtap_graph_add_float(graph, get_double(c), &out)); break;
    case FXTAP_V_COMPLEX:
        real = get_double(c);
        check(c, fxtap_graph_add_complex(graph, real, get_double(c), &out));
        break;
    case FXTAP_V_BIGINT:
    case FXTAP_V_STRING:
    case FXTAP_V_BYTES:
    case FXTAP_V_DTYPE:
    case FXTAP_V_DEVICE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
    case FXTAP_V_OTHER:
        text = get_text(c);
        check(c, fxtap_graph_add_text(graph, kind, text, fx_texts_entry_of(text)->length, &out));
        break;
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL: get_symbol(c, kind, &out); break;
    case FXTAP_V_NODE: check(c, fxtap_graph_add_node_ref(graph, get_u32(c), &out)); break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE: get_items(c, kind, &out); break;
    case FXTAP_V_TENSOR: get_tensor(c, &out); break;
    case FXTAP_V_GRAPH: get_subgraph(c, &out); break;
    default: fail(c, "an entry of an unknown kind"); break;
    }
}

/* ---- nodes ---- */

static void get_name(cursor *c, size_t *n_names)
{
    const char *name = get_string(c);
    if (!fx_grow((void **)&c->names, &c->names_capacity, *n_names + 1, sizeof *c->names)) {
        c->status = c->status == FXTAP_OK ? FXTAP_E_NOMEM : c->status;
        return;
    }
    c->names[(*n_names)++] = name;
}

static void get_node(cursor *c)
{
    static const fxtap_value no_values[1] = {0};
    static const char *const no_names[1] = {NULL};
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    fxtap_node node;
    desc.op = (fxtap_node_op)get_u8(c);
    bool has_names = get_bool(c);
    desc.flags = get_u32(c);
    desc.name = get_string(c);
    desc.target = get_string(c);
    desc.target_python = get_string(c);
    desc.stack_trace = get_string(c);
    desc.module_path = get_string(c);
    desc.module_type = get_string(c);
    desc.meta = get_u32(c);
    size_t n_values = 0;
    size_t n_names = 0;
    desc.n_args = get_count(c, 4);
    get_values(c, &n_values, desc.n_args);
    for (size_t i = 0; c->status == FXTAP_OK && has_names && i < desc.n_args; i++) {
        get_name(c, &n_names);
    }
    desc.n_kwargs = get_count(c, 8);
    for (size_t i = 0; c->status == FXTAP_OK && i < desc.n_kwargs; i++) {
        get_name(c, &n_names);
        get_values(c, &n_values, 1);
    }
    if (c->status != FXTAP_OK) {
        return;
    }
    const fxtap_value *values = c->values != NULL ? c->values : no_values;
    const char *const *names = c->names != NULL ? c->names : no_names;
    desc.args = values;
    desc.arg_names = has_names ? names : NULL;
    desc.kwarg_names = has_names ? names + desc.n_args : names;
    desc.kwarg_values = values + desc.n_args;
    check(c, fxtap_graph_add_node(c->graph, &desc, &node));
}

static void get_entries(cursor *c)
{
    for (;;) {
        uint8_t tag = get_u8(c);
        if (c->status != FXTAP_OK || tag == FX_RECORD_TAG_END) {
            break;
        }
        if (tag == FX_RECORD_TAG_NODE) {
            get_node(c);
        } else {
            get_value(c, tag);
        }
    }
    if (c->status == FXTAP_OK && c->left > 0) {
        fail(c, "bytes after its end");
    }
}

/* ---- the whole ---- */

static void get_strings(cursor *c)
{
    size_t n_strings = get_count(c, 4);
    for (size_t i = 0; c->status == FXTAP_OK && i < n_strings; i++) {
        uint32_t length = get_u32(c);
        const unsigned char *bytes = take(c, length);
        if (c->status != FXTAP_OK) {
            break;
        }
        const fx_texts_entry *string = fx_texts_add(&c->graph->texts, (const char *)bytes, length);
        if (string == NULL) {
            c->status = FXTAP_E_NOMEM;
        } else if (string->id != i) {
            fail(c, "the same string twice");
        }
    }
}

static fxtap_status read_graph(const unsigned char *bytes, size_t n_bytes, unsigned depth, fxtap_graph **out);

static void get_subgraphs(cursor *c, unsigned depth)
{
    size_t n_subgraphs = get_count(c, 8 + FX_RECORD_HEAD_BYTES);
    if (c->status == FXTAP_OK && n_subgraphs > 0 && depth + 1 >= FX_GRAPH_DEPTH_MAX) {
        fail(c, "subgraphs too deep");
    }
    for (size_t i = 0; c->status == FXTAP_OK && i < n_subgraphs; i++) {
        uint64_t length = get_u64(c);
        const unsigned char *bytes = take(c, length);
        fxtap_graph *subgraph = NULL;
        if (c->status == FXTAP_OK) {
            c->status = read_graph(bytes, (size_t)length, depth + 1, &subgraph);
        }
        if (c->status == FXTAP_OK) {
            check(c, fx_graph_own_subgraph(c->graph, subgraph));
            if (c->status != FXTAP_OK) {
                fxtap_graph_free(subgraph);
            }
        }
    }
}

static fxtap_status check_head(const unsigned char *bytes, size_t n_bytes)
{
    if (n_bytes < FX_RECORD_HEAD_BYTES || memcmp(bytes, FX_RECORD_MAGIC, 8) != 0) {
        return fx_error(FXTAP_E_FORMAT, "graph record: the bytes do not begin as one");
    }
    uint64_t version = decode(bytes + 8, 4);
    if (version > FX_RECORD_VERSION) {
        return fx_error(FXTAP_E_UNSUPPORTED, "graph record: version %u, this program reads up to %d", (unsigned)version,
                        FX_RECORD_VERSION);
    }
    size_t body = n_bytes - FX_RECORD_HEAD_BYTES;
    if (version == 0 || decode(bytes + 16, 8) != body) {
        return fx_error(FXTAP_E_FORMAT, "graph record: %zu bytes of body, not as many as it says", body);
    }
    if (decode(bytes + 24, 8) != XXH3_64bits(bytes + FX_RECORD_HEAD_BYTES, body)) {
        return fx_error(FXTAP_E_FORMAT, "graph record: wrong checksum");
    }
    return FXTAP_OK;
}

static fxtap_status read_graph(const unsigned char *bytes, size_t n_bytes, unsigned depth, fxtap_graph **out)
{
    cursor c = {.status = check_head(bytes, n_bytes)};
    if (c.status != FXTAP_OK) {
        return c.status;
    }
    uint32_t kind = (uint32_t)decode(bytes + 12, 4);
    check(&c, fxtap_graph_create(kind > FXTAP_GRAPH_SUBGRAPH ? 0 : (fxtap_graph_kind)kind, &c.graph));
    if (c.status != FXTAP_OK) {
        return c.status;
    }
    c.at = bytes + FX_RECORD_HEAD_BYTES;
    c.left = n_bytes - FX_RECORD_HEAD_BYTES;
    get_strings(&c);
    get_subgraphs(&c, depth);
    if (c.status == FXTAP_OK) {
        get_entries(&c);
    }
    fx_free(c.values);
    fx_free(c.names);
    if (c.status != FXTAP_OK) {
        fxtap_graph_free(c.graph);
        return c.status;
    }
    *out = c.graph;
    return FXTAP_OK;
}

fxtap_status fxtap_graph_deserialise(const void *bytes, size_t n_bytes, fxtap_graph **out)
{
    FX_REQUIRE(out);
    if (n_bytes > 0) {
        FX_REQUIRE(bytes);
    }
    return read_graph(bytes, n_bytes, 0, out);
}
