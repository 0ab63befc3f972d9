/*
 * serialise.c - writes a graph record as bytes, and reads one from untrusted bytes. serialise.h has the format.
 *
 * One description of each entry serves reading and writing. Entries are read by calling the functions that build a
 * record, which check every handle.
 */
#include "graph/serialise.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "graph/record.h"
#include "util/codec.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct record {
    fx_codec c;
    fxtap_graph *graph; /* writing: not modified */
    fx_arena scratch;   /* reading: arrays of one entry */
} record;

/* ---- fields ---- */

/* A string by its index; NULL for 0 (and on failure, with the status set). */
static void string_field(record *r, const char **string)
{
    const fx_texts *texts = &r->graph->texts;
    uint32_t number = 0;
    if (fx_codec_is_writing(&r->c) && *string != NULL) {
        number = fx_texts_entry_of(*string)->id + 1;
    }
    fx_codec_u32(&r->c, &number);
    if (number > texts->count) {
        fx_codec_fail(&r->c, "no such string");
    }
    if (!fx_codec_is_writing(&r->c)) {
        *string = r->c.status != FXTAP_OK || number == 0 ? NULL : texts->entries[number - 1]->text;
    }
}

static void values_field(record *r, const fxtap_value **values, size_t n)
{
    if (!fx_codec_is_writing(&r->c) && n > r->c.left / 4) {
        fx_codec_fail(&r->c, "truncated");
    }
    fxtap_value *room = fx_codec_room(&r->c, n, sizeof *room);
    for (size_t i = 0; r->c.status == FXTAP_OK && i < n; i++) {
        uint32_t value = room == NULL ? (*values)[i] : 0;
        fx_codec_u32(&r->c, &value);
        if (room != NULL) {
            room[i] = value;
        }
    }
    *values = room != NULL ? room : *values;
}

static void tensor_fields(record *r, fxtap_tensor_meta *meta)
{
    fx_codec *c = &r->c;
    uint8_t dtype = (uint8_t)meta->dtype;
    uint8_t flags = (uint8_t)((meta->requires_grad ? 1u : 0u) | (meta->is_fake ? 2u : 0u) |
                              (meta->strides != NULL ? 4u : 0u) | (meta->bytes != NULL ? 8u : 0u));
    fx_codec_u8(c, &dtype);
    fx_codec_u8(c, &flags);
    meta->dtype = (fxtap_dtype)dtype;
    meta->requires_grad = (flags & 1u) != 0;
    meta->is_fake = (flags & 2u) != 0;
    string_field(r, &meta->device);
    string_field(r, &meta->layout);
    fx_codec_count32(c, &meta->n_dims, 4);
    values_field(r, &meta->shape, meta->n_dims);
    if ((flags & 4u) != 0) {
        values_field(r, &meta->strides, meta->n_dims);
    }
    if ((flags & 8u) != 0) {
        uint64_t n_bytes = meta->n_bytes;
        fx_codec_u64(c, &n_bytes);
        fx_codec_bytes(c, &meta->bytes, n_bytes);
        meta->n_bytes = (size_t)n_bytes;
    }
    if (flags > 15) {
        fx_codec_fail(c, "a tensor with unknown flags");
    }
}

static void text_field(record *r, fx_value_row *row)
{
    string_field(r, &row->as.text);
    if (row->as.text == NULL) {
        fx_codec_fail(&r->c, "a value without text");
    }
}

/* What follows the kind of a value; of a tensor it is `meta`. */
static void value_fields(record *r, fx_value_row *row, fxtap_tensor_meta *meta)
{
    size_t n_items = row->index;
    switch ((fxtap_value_kind)row->kind) {
    case FXTAP_V_NONE:
    case FXTAP_V_ELLIPSIS:
        break;
    case FXTAP_V_BOOL:
        fx_codec_bool(&r->c, &row->flag);
        break;
    case FXTAP_V_INT:
        fx_codec_i64(&r->c, &row->as.integer);
        break;
    case FXTAP_V_FLOAT:
        fx_codec_double(&r->c, &row->number);
        break;
    case FXTAP_V_COMPLEX:
        fx_codec_double(&r->c, &row->number);
        fx_codec_double(&r->c, &row->as.imag);
        break;
    case FXTAP_V_BIGINT:
    case FXTAP_V_STRING:
    case FXTAP_V_BYTES:
    case FXTAP_V_DTYPE:
    case FXTAP_V_DEVICE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
    case FXTAP_V_OTHER:
        text_field(r, row);
        break;
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        text_field(r, row);
        fx_codec_bool(&r->c, &row->flag);
        fx_codec_double(&r->c, &row->number);
        break;
    case FXTAP_V_NODE:
    case FXTAP_V_GRAPH:
        fx_codec_u32(&r->c, &row->index);
        break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        fx_codec_count32(&r->c, &n_items, 4);
        row->index = (uint32_t)n_items;
        values_field(r, &row->as.items, n_items);
        break;
    case FXTAP_V_TENSOR:
        tensor_fields(r, meta);
        break;
    default:
        fx_codec_fail(&r->c, "unknown entry kind");
        break;
    }
}

/* `n` names, each followed by a value if `values` is not NULL. */
static void names_field(record *r, const char *const **names, const fxtap_value **values, size_t n)
{
    const char **names_read = fx_codec_room(&r->c, n, sizeof *names_read);
    fxtap_value *values_read = values == NULL ? NULL : fx_codec_room(&r->c, n, sizeof *values_read);
    for (size_t i = 0; r->c.status == FXTAP_OK && i < n; i++) {
        const char *name = names_read == NULL ? (*names)[i] : NULL;
        string_field(r, &name);
        uint32_t value = values == NULL || values_read != NULL ? 0 : (*values)[i];
        if (values != NULL) {
            fx_codec_u32(&r->c, &value);
        }
        if (names_read != NULL) {
            names_read[i] = name;
        }
        if (values_read != NULL) {
            values_read[i] = value;
        }
    }
    if (!fx_codec_is_writing(&r->c)) {
        *names = names_read;
    }
    if (values_read != NULL) {
        *values = values_read;
    }
}

static void node_fields(record *r, fxtap_node_desc *desc)
{
    fx_codec *c = &r->c;
    uint8_t op = (uint8_t)desc->op;
    bool has_names = desc->arg_names != NULL;
    fx_codec_u8(c, &op);
    desc->op = (fxtap_node_op)op;
    fx_codec_bool(c, &has_names);
    fx_codec_u32(c, &desc->flags);
    const char **strings[] = {&desc->name,        &desc->target,      &desc->target_python,
                              &desc->stack_trace, &desc->module_path, &desc->module_type};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        string_field(r, strings[i]);
    }
    fx_codec_u32(c, &desc->meta);
    fx_codec_count32(c, &desc->n_args, 4);
    values_field(r, &desc->args, desc->n_args);
    if (has_names) {
        names_field(r, &desc->arg_names, NULL, desc->n_args);
    }
    fx_codec_count32(c, &desc->n_kwargs, 8);
    names_field(r, &desc->kwarg_names, &desc->kwarg_values, desc->n_kwargs);
}

/* ---- writing ---- */

static void write_values(record *r, size_t *first, size_t end)
{
    for (; *first < end; (*first)++) {
        fx_value_row row = r->graph->values[*first];
        fxtap_tensor_meta meta = {0};
        if (row.kind == FXTAP_V_TENSOR) {
            meta = r->graph->tensors[row.index];
        }
        fx_codec_u8(&r->c, &row.kind);
        value_fields(r, &row, &meta);
    }
}

static void write_entries(record *r)
{
    uint8_t tag = FX_RECORD_TAG_NODE;
    size_t value = 1;
    for (size_t i = 0; i < r->graph->n_nodes; i++) {
        write_values(r, &value, r->graph->nodes[i].n_values);
        fxtap_node_desc desc = r->graph->nodes[i].desc;
        fx_codec_u8(&r->c, &tag);
        node_fields(r, &desc);
    }
    write_values(r, &value, r->graph->n_values);
    tag = FX_RECORD_TAG_END;
    fx_codec_u8(&r->c, &tag);
}

static void write_strings(fxtap_buffer *out, const fx_texts *texts)
{
    unsigned char number[4];
    fx_encode_number(number, texts->count, 4);
    fxtap_buffer_append(out, number, 4);
    for (size_t i = 0; i < texts->count; i++) {
        fx_encode_number(number, texts->entries[i]->length, 4);
        fxtap_buffer_append(out, number, 4);
        fxtap_buffer_append(out, texts->entries[i]->text, texts->entries[i]->length);
    }
}

/* Appends a whole record to the buffer. Depth: at most FX_GRAPH_DEPTH_MAX. */
static void write_graph(fxtap_buffer *out, const fxtap_graph *graph)
{
    record r = {.c = fx_codec_writer("graph record", out), .graph = (fxtap_graph *)(uintptr_t)graph};
    unsigned char head[FX_RECORD_HEAD_BYTES] = FX_RECORD_MAGIC;
    size_t start = out->length;
    fx_encode_number(head + 8, FX_RECORD_VERSION, 4);
    fx_encode_number(head + 12, graph->kind, 4);
    fxtap_buffer_append(out, head, sizeof head);
    write_strings(out, &graph->texts);
    size_t n_subgraphs = graph->n_subgraphs;
    fx_codec_count32(&r.c, &n_subgraphs, 1);
    for (size_t i = 0; i < n_subgraphs; i++) {
        size_t at = out->length;
        fxtap_buffer_append(out, head, 8);
        write_graph(out, graph->subgraphs[i]);
        if (fxtap_buffer_status(out) == FXTAP_OK) {
            fx_encode_number((unsigned char *)out->bytes + at, out->length - at - 8, 8);
        }
    }
    write_entries(&r);
    if (fxtap_buffer_status(out) == FXTAP_OK) {
        unsigned char *bytes = (unsigned char *)out->bytes + start;
        size_t n_bytes = out->length - start - sizeof head;
        fx_encode_number(bytes + 16, n_bytes, 8);
        fx_encode_number(bytes + 24, XXH3_64bits(bytes + sizeof head, n_bytes), 8);
    }
}

fxtap_status fxtap_graph_serialise(const fxtap_graph *graph, void **out, size_t *n_bytes_out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    FX_REQUIRE(n_bytes_out);
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    write_graph(&buffer, graph);
    return fxtap_buffer_take(&buffer, out, n_bytes_out);
}

/* ---- reading ---- */

/* A failed check of the record means that the bytes are invalid. */
static void check(record *r, fxtap_status status)
{
    if (r->c.status != FXTAP_OK || status == FXTAP_OK) {
        return;
    }
    r->c.status = status;
    if (status == FXTAP_E_INVALID) {
        char why[256];
        snprintf(why, sizeof why, "%s", fxtap_error_message());
        r->c.status = FXTAP_OK;
        fx_codec_fail(&r->c, why);
    }
}

static fxtap_status add_symbol(fxtap_graph *graph, const fx_value_row *row, fxtap_value *out)
{
    if (strlen(row->as.text) != fx_texts_entry_of(row->as.text)->length) {
        return fx_error(FXTAP_E_INVALID, "an expression with a NUL");
    }
    return fxtap_graph_add_symbol(graph, row->kind, row->as.text, row->flag ? &row->number : NULL, out);
}

static fxtap_status add_value(fxtap_graph *graph, const fx_value_row *row, const fxtap_tensor_meta *meta)
{
    fxtap_value out;
    switch ((fxtap_value_kind)row->kind) {
    case FXTAP_V_NONE:
        return fxtap_graph_add_none(graph, &out);
    case FXTAP_V_ELLIPSIS:
        return fxtap_graph_add_text(graph, FXTAP_V_ELLIPSIS, "", 0, &out);
    case FXTAP_V_BOOL:
        return fxtap_graph_add_bool(graph, row->flag, &out);
    case FXTAP_V_INT:
        return fxtap_graph_add_int(graph, row->as.integer, &out);
    case FXTAP_V_FLOAT:
        return fxtap_graph_add_float(graph, row->number, &out);
    case FXTAP_V_COMPLEX:
        return fxtap_graph_add_complex(graph, row->number, row->as.imag, &out);
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        return add_symbol(graph, row, &out);
    case FXTAP_V_NODE:
        return fxtap_graph_add_node_ref(graph, row->index, &out);
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        return fxtap_graph_add_items(graph, row->kind, row->as.items, row->index, &out);
    case FXTAP_V_TENSOR:
        return fxtap_graph_add_tensor(graph, meta, &out);
    case FXTAP_V_GRAPH:
        if (row->index >= graph->n_subgraphs) { /* they were read first */
            return fx_error(FXTAP_E_INVALID, "no such subgraph");
        }
        return fx_graph_add_subgraph_ref(graph, row->index, &out);
    default:
        return fxtap_graph_add_text(graph, row->kind, row->as.text, fx_texts_entry_of(row->as.text)->length, &out);
    }
}

static void read_entry(record *r, uint8_t tag)
{
    fx_arena_reset(&r->scratch);
    if (tag == FX_RECORD_TAG_NODE) {
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        fxtap_node node;
        node_fields(r, &desc);
        if (r->c.status == FXTAP_OK) {
            check(r, fxtap_graph_add_node(r->graph, &desc, &node));
        }
        return;
    }
    fx_value_row row = {.kind = tag};
    fxtap_tensor_meta meta = {.struct_size = sizeof meta};
    value_fields(r, &row, &meta);
    if (r->c.status == FXTAP_OK) {
        check(r, add_value(r->graph, &row, &meta));
    }
}

static void read_entries(record *r)
{
    while (r->c.status == FXTAP_OK) {
        uint8_t tag = 0;
        fx_codec_u8(&r->c, &tag);
        if (tag == FX_RECORD_TAG_END) {
            break;
        }
        if (r->c.status == FXTAP_OK) {
            read_entry(r, tag);
        }
    }
    if (r->c.left > 0) {
        fx_codec_fail(&r->c, "trailing bytes");
    }
}

static void read_strings(record *r)
{
    size_t n_strings = 0;
    fx_codec_count32(&r->c, &n_strings, 4);
    for (size_t i = 0; r->c.status == FXTAP_OK && i < n_strings; i++) {
        uint32_t length = 0;
        const void *bytes = NULL;
        fx_codec_u32(&r->c, &length);
        fx_codec_bytes(&r->c, &bytes, length);
        if (bytes == NULL) {
            break;
        }
        const fx_texts_entry *string = fx_texts_add(&r->graph->texts, bytes, length);
        if (string == NULL) {
            r->c.status = FXTAP_E_NOMEM;
        } else if (string->id != i) {
            fx_codec_fail(&r->c, "duplicate string");
        }
    }
}

static fxtap_status read_graph(const unsigned char *bytes, size_t n_bytes, unsigned depth, fxtap_graph **out);

static void read_subgraphs(record *r, unsigned depth)
{
    size_t n_subgraphs = 0;
    fx_codec_count32(&r->c, &n_subgraphs, 8 + FX_RECORD_HEAD_BYTES);
    if (n_subgraphs > 0 && depth + 1 >= FX_GRAPH_DEPTH_MAX) {
        fx_codec_fail(&r->c, "subgraphs too deep");
    }
    for (size_t i = 0; r->c.status == FXTAP_OK && i < n_subgraphs; i++) {
        uint64_t length = 0;
        const void *bytes = NULL;
        fxtap_graph *subgraph = NULL;
        fx_codec_u64(&r->c, &length);
        fx_codec_bytes(&r->c, &bytes, length);
        if (bytes != NULL) {
            r->c.status = read_graph(bytes, (size_t)length, depth + 1, &subgraph);
        }
        if (r->c.status == FXTAP_OK) {
            check(r, fx_graph_own_subgraph(r->graph, subgraph));
            if (r->c.status != FXTAP_OK) {
                fxtap_graph_free(subgraph);
            }
        }
    }
}

static fxtap_status check_head(const unsigned char *bytes, size_t n_bytes)
{
    if (n_bytes < FX_RECORD_HEAD_BYTES || memcmp(bytes, FX_RECORD_MAGIC, 8) != 0) {
        return fx_error(FXTAP_E_FORMAT, "not a graph record: wrong magic number");
    }
    uint64_t version = fx_decode_number(bytes + 8, 4);
    if (version > FX_RECORD_VERSION) {
        return fx_error(FXTAP_E_UNSUPPORTED, "graph record: version %u, this program reads up to %d", (unsigned)version,
                        FX_RECORD_VERSION);
    }
    size_t body = n_bytes - FX_RECORD_HEAD_BYTES;
    if (version == 0 || fx_decode_number(bytes + 16, 8) != body) {
        return fx_error(FXTAP_E_FORMAT, "graph record: the body has %zu bytes, not the length in its header", body);
    }
    if (fx_decode_number(bytes + 24, 8) != XXH3_64bits(bytes + FX_RECORD_HEAD_BYTES, body)) {
        return fx_error(FXTAP_E_FORMAT, "graph record: wrong checksum");
    }
    return FXTAP_OK;
}

static fxtap_status read_graph(const unsigned char *bytes, size_t n_bytes, unsigned depth, fxtap_graph **out)
{
    fxtap_status status = check_head(bytes, n_bytes);
    if (status != FXTAP_OK) {
        return status;
    }
    record r = {.graph = NULL};
    r.c = fx_codec_reader("graph record", bytes + FX_RECORD_HEAD_BYTES, n_bytes - FX_RECORD_HEAD_BYTES, &r.scratch);
    uint64_t kind = fx_decode_number(bytes + 12, 4);
    check(&r, fxtap_graph_create(kind > FXTAP_GRAPH_SUBGRAPH ? 0 : (fxtap_graph_kind)kind, &r.graph));
    if (r.c.status == FXTAP_OK) {
        read_strings(&r);
        read_subgraphs(&r, depth);
        read_entries(&r);
    }
    fx_arena_clear(&r.scratch);
    if (r.c.status != FXTAP_OK) {
        fxtap_graph_free(r.graph);
        return r.c.status;
    }
    *out = r.graph;
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
