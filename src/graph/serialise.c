/* serialise.c - a graph record as bytes. serialise.h has the form. */
#include "graph/serialise.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "graph/record.h"
#include "util/error.h"
#include "util/memory.h"

typedef struct writer {
    unsigned char *bytes;
    size_t length;
    size_t capacity;
    bool failed; /* no memory: everything after it does nothing */
} writer;

static void put(writer *w, const void *bytes, size_t n_bytes)
{
    size_t end;
    if (w->failed || !fx_add_size(w->length, n_bytes, &end) ||
        !fx_grow((void **)&w->bytes, &w->capacity, end, 1)) {
        w->failed = true;
        return;
    }
    if (n_bytes > 0) {
        memcpy(w->bytes + w->length, bytes, n_bytes);
    }
    w->length = end;
}

static void put_u8(writer *w, unsigned value)
{
    unsigned char byte = (unsigned char)value;
    put(w, &byte, 1);
}

static void encode(unsigned char *bytes, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
}

static void put_u32(writer *w, uint32_t value)
{
    unsigned char bytes[4];
    encode(bytes, value, sizeof bytes);
    put(w, bytes, sizeof bytes);
}

static void put_u64(writer *w, uint64_t value)
{
    unsigned char bytes[8];
    encode(bytes, value, sizeof bytes);
    put(w, bytes, sizeof bytes);
}

static void put_double(writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(w, bits);
}

/* The number of an interned string, 0 for NULL. */
static void put_string(writer *w, const char *interned)
{
    put_u32(w, interned == NULL ? 0 : fx_texts_entry_of(interned)->id + 1);
}

static void put_values(writer *w, const fxtap_value *values, size_t n_values)
{
    for (size_t i = 0; i < n_values; i++) {
        put_u32(w, values[i]);
    }
}

static void put_tensor(writer *w, const fxtap_tensor_meta *meta)
{
    put_u8(w, (unsigned)meta->dtype);
    put_u8(w, (meta->requires_grad ? 1u : 0u) | (meta->is_fake ? 2u : 0u) | (meta->strides != NULL ? 4u : 0u) |
                  (meta->bytes != NULL ? 8u : 0u));
    put_string(w, meta->device);
    put_string(w, meta->layout);
    put_u32(w, (uint32_t)meta->n_dims);
    put_values(w, meta->shape, meta->n_dims);
    if (meta->strides != NULL) {
        put_values(w, meta->strides, meta->n_dims);
    }
    if (meta->bytes != NULL) {
        put_u64(w, meta->n_bytes);
        put(w, meta->bytes, meta->n_bytes);
    }
}

static void put_value(writer *w, const fxtap_graph *graph, const fx_value_row *row)
{
    put_u8(w, row->kind);
    switch ((fxtap_value_kind)row->kind) {
    case FXTAP_V_NONE:
    case FXTAP_V_ELLIPSIS: break;
    case FXTAP_V_BOOL: put_u8(w, row->flag); break;
    case FXTAP_V_INT: put_u64(w, (uint64_t)row->as.integer); break;
    case FXTAP_V_FLOAT: put_double(w, row->number); break;
    case FXTAP_V_COMPLEX:
        put_double(w, row->number);
        put_double(w, row->as.imag);
        break;
    case FXTAP_V_BIGINT:
    case FXTAP_V_STRING:
    case FXTAP_V_BYTES:
    case FXTAP_V_DTYPE:
    case FXTAP_V_DEVICE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
    case FXTAP_V_OTHER: put_string(w, row->as.text); break;
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        put_string(w, row->as.text);
        put_u8(w, row->flag);
        put_double(w, row->number);
        break;
    case FXTAP_V_NODE:
    case FXTAP_V_GRAPH: put_u32(w, row->index); break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        put_u32(w, row->index);
        put_values(w, row->as.items, row->index);
        break;
    case FXTAP_V_TENSOR: put_tensor(w, &graph->tensors[row->index]); break;
    }
}

static void put_node(writer *w, const fxtap_node_desc *desc)
{
    put_u8(w, FX_RECORD_TAG_NODE);
    put_u8(w, (unsigned)desc->op);
    put_u8(w, desc->arg_names != NULL);
    put_u32(w, desc->flags);
    put_string(w, desc->name);
    put_string(w, desc->target);
    put_string(w, desc->target_python);
    put_string(w, desc->stack_trace);
    put_string(w, desc->module_path);
    put_string(w, desc->module_type);
    put_u32(w, desc->meta);
    put_u32(w, (uint32_t)desc->n_args);
    put_values(w, desc->args, desc->n_args);
    for (size_t i = 0; desc->arg_names != NULL && i < desc->n_args; i++) {
        put_string(w, desc->arg_names[i]);
    }
    put_u32(w, (uint32_t)desc->n_kwargs);
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        put_string(w, desc->kwarg_names[i]);
        put_u32(w, desc->kwarg_values[i]);
    }
}

static void put_strings(writer *w, const fx_texts *texts)
{
    put_u32(w, (uint32_t)texts->count);
    for (size_t i = 0; i < texts->count; i++) {
        put_u32(w, texts->entries[i]->length);
        put(w, texts->entries[i]->text, texts->entries[i]->length);
    }
}

static void put_entries(writer *w, const fxtap_graph *graph)
{
    size_t value = 1;
    for (size_t node = 0; node < graph->n_nodes; node++) {
        for (; value < graph->nodes[node].n_values; value++) {
            put_value(w, graph, &graph->values[value]);
        }
        put_node(w, &graph->nodes[node].desc);
    }
    for (; value < graph->n_values; value++) {
        put_value(w, graph, &graph->values[value]);
    }
    put_u8(w, FX_RECORD_TAG_END);
}

/* A whole record at the writer's end. As deep as FX_GRAPH_DEPTH_MAX. */
static void put_graph(writer *w, const fxtap_graph *graph)
{
    size_t start = w->length;
    put(w, FX_RECORD_MAGIC, 8);
    put_u32(w, FX_RECORD_VERSION);
    put_u32(w, (uint32_t)graph->kind);
    put_u64(w, 0); /* both known at the end */
    put_u64(w, 0);
    put_strings(w, &graph->texts);
    put_u32(w, (uint32_t)graph->n_subgraphs);
    for (size_t i = 0; i < graph->n_subgraphs; i++) {
        size_t at = w->length;
        put_u64(w, 0);
        put_graph(w, graph->subgraphs[i]);
        if (!w->failed) {
            encode(w->bytes + at, w->length - at - 8, 8);
        }
    }
    put_entries(w, graph);
    if (!w->failed) {
        size_t n_bytes = w->length - start - FX_RECORD_HEAD_BYTES;
        encode(w->bytes + start + 16, n_bytes, 8);
        encode(w->bytes + start + 24, XXH3_64bits(w->bytes + start + FX_RECORD_HEAD_BYTES, n_bytes), 8);
    }
}

fxtap_status fxtap_graph_serialise(const fxtap_graph *graph, void **out, size_t *n_bytes_out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    FX_REQUIRE(n_bytes_out);
    writer w = {0};
    put_graph(&w, graph);
    if (w.failed) {
        fx_free(w.bytes);
        return fx_error_nomem();
    }
    *out = w.bytes;
    *n_bytes_out = w.length;
    return FXTAP_OK;
}
