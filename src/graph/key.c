/*
 * key.c - the two keys of a graph: XXH3-128 over a canonical stream of its nodes.
 *
 * The stream consists of tagged items with explicit lengths, so that different graphs have different streams. Addresses
 * of objects in texts (" at 0x7f...") are not hashed.
 */
#define XXH_INLINE_ALL
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "graph/record.h"
#include "graph/symbols.h"
#include "util/error.h"

typedef struct hasher {
    XXH3_state_t *state;
    const fxtap_graph *graph;
    fx_symbols *symbols; /* shared by a graph and its subgraphs */
    bool strict;
    bool failed; /* no memory */
} hasher;

static void put_u64(hasher *h, uint64_t value)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    XXH3_128bits_update(h->state, bytes, sizeof bytes);
}

static void put_bytes(hasher *h, const void *bytes, size_t length)
{
    put_u64(h, length);
    XXH3_128bits_update(h->state, bytes, length);
}

static void put_text(hasher *h, const char *text)
{
    put_bytes(h, text, strlen(text));
}

static void put_double(hasher *h, double value)
{
    uint64_t bits = 0x7ff8000000000000; /* all NaN are equal */
    if (!isnan(value)) {
        memcpy(&bits, &value, sizeof bits);
    }
    put_u64(h, bits);
}

/* Adds a text without the addresses of objects. */
static void put_repr(hasher *h, const char *text)
{
    static const char mark[] = " at 0x";
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(text, mark)) {
        put_bytes(h, text, (size_t)(at - text));
        text = at + sizeof mark - 1;
        text += strspn(text, "0123456789abcdefABCDEF");
    }
    put_text(h, text);
}

/* "npu:3" is an npu. */
static void put_device(hasher *h, const char *device)
{
    put_bytes(h, device, strcspn(device, ":"));
}

static void put_symbol(hasher *h, const char *expression)
{
    const char *canonical = fx_symbols_canonical(h->symbols, expression);
    if (canonical == NULL) {
        h->failed = true;
        return;
    }
    put_text(h, canonical);
}

static void put_graph(hasher *h, const fxtap_graph *graph);

/* ---- the strict key: all of a value ---- */

static void put_value(hasher *h, fxtap_value value);

static void put_tensor(hasher *h, const fxtap_tensor_meta *meta)
{
    put_u64(h, (uint64_t)meta->dtype);
    put_device(h, meta->device);
    put_u64(h, meta->n_dims);
    for (size_t i = 0; i < meta->n_dims; i++) {
        put_value(h, meta->shape[i]);
    }
    put_u64(h, meta->bytes != NULL);
    if (meta->bytes != NULL) {
        put_bytes(h, meta->bytes, meta->n_bytes);
    }
}

/* As deep as FX_VALUE_DEPTH_MAX and FX_GRAPH_DEPTH_MAX allow. */
static void put_value(hasher *h, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(h->graph, value);
    put_u64(h, row->kind);
    switch (row->kind) {
    case FXTAP_V_BOOL:
        put_u64(h, row->flag);
        break;
    case FXTAP_V_INT:
        put_u64(h, (uint64_t)row->as.integer);
        break;
    case FXTAP_V_FLOAT:
        put_double(h, row->number);
        break;
    case FXTAP_V_COMPLEX:
        put_double(h, row->number);
        put_double(h, row->as.imag);
        break;
    case FXTAP_V_BIGINT:
    case FXTAP_V_STRING:
    case FXTAP_V_BYTES:
    case FXTAP_V_DTYPE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
        put_bytes(h, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_DEVICE:
        put_device(h, row->as.text);
        break;
    case FXTAP_V_OTHER:
        put_repr(h, row->as.text);
        break;
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        put_symbol(h, row->as.text);
        break;
    case FXTAP_V_NODE:
        put_u64(h, row->index);
        break;
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE:
        put_u64(h, row->index);
        for (uint32_t i = 0; i < row->index; i++) {
            put_value(h, row->as.items[i]);
        }
        break;
    case FXTAP_V_TENSOR:
        put_tensor(h, &h->graph->tensors[row->index]);
        break;
    case FXTAP_V_GRAPH:
        put_graph(h, fxtap_graph_subgraph(h->graph, row->index));
        break;
    default:
        break; /* None, ...: the kind is sufficient */
    }
}

/* ---- the structural key: positions of nodes and graphs ---- */

typedef struct place {
    uint64_t at[FX_VALUE_DEPTH_MAX + 2];
    size_t depth;
} place;

static void put_wire(hasher *h, const place *where, uint64_t kind)
{
    put_u64(h, kind);
    put_u64(h, where->depth);
    for (size_t i = 0; i < where->depth; i++) {
        put_u64(h, where->at[i]);
    }
}

/* Adds every node that a value refers to, with its path; constants are ignored. */
static void put_wires(hasher *h, fxtap_value value, place *where)
{
    const fx_value_row *row = fx_graph_value(h->graph, value);
    if (row->kind == FXTAP_V_NODE) {
        put_wire(h, where, FXTAP_V_NODE);
        put_u64(h, row->index);
    } else if (row->kind == FXTAP_V_GRAPH) {
        put_wire(h, where, FXTAP_V_GRAPH);
        put_graph(h, fxtap_graph_subgraph(h->graph, row->index));
    } else if (row->kind >= FXTAP_V_LIST && row->kind <= FXTAP_V_SLICE) {
        where->depth++;
        for (uint32_t i = 0; i < row->index; i++) {
            where->at[where->depth - 1] = i;
            put_wires(h, row->as.items[i], where);
        }
        where->depth--;
    }
}

static void put_argument(hasher *h, uint64_t position, const char *name, fxtap_value value)
{
    if (h->strict) {
        put_text(h, name);
        put_value(h, value);
        return;
    }
    place where = {.at = {position, XXH3_64bits(name, strlen(name))}, .depth = 2};
    put_wires(h, value, &where);
}

/* ---- nodes ---- */

/* Adds the target, unless it is a name chosen by the tracer. */
static void put_target(hasher *h, const fxtap_node_desc *desc)
{
    put_u64(h, (uint64_t)desc->op);
    bool is_name = desc->op == FXTAP_OP_PLACEHOLDER || desc->op == FXTAP_OP_GET_ATTR || desc->op == FXTAP_OP_OUTPUT;
    put_repr(h, is_name ? "" : desc->target);
}

static void put_node(hasher *h, const fxtap_node_desc *desc)
{
    put_target(h, desc);
    if (h->strict) {
        put_u64(h, desc->n_args);
        put_u64(h, desc->n_kwargs);
        put_value(h, desc->meta);
    } else if (fx_graph_value(h->graph, desc->meta)->kind == FXTAP_V_GRAPH) {
        put_wires(h, desc->meta, &(place){.depth = 0}); /* a get_attr of a subgraph */
    }
    for (size_t i = 0; i < desc->n_args; i++) {
        put_argument(h, i, "", desc->args[i]);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        put_argument(h, UINT64_MAX, desc->kwarg_names[i], desc->kwarg_values[i]);
    }
}

static void put_graph(hasher *h, const fxtap_graph *graph)
{
    const fxtap_graph *outer = h->graph;
    h->graph = graph;
    put_u64(h, graph->n_nodes);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        put_node(h, &graph->nodes[i].desc);
    }
    h->graph = outer;
}

/* ---- numbering the symbols ---- */

static bool see_value(fx_symbols *symbols, const fxtap_graph *graph, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    if (row->kind >= FXTAP_V_SYMINT && row->kind <= FXTAP_V_SYMBOOL) {
        return !fx_is_symbol(row->as.text, fx_texts_entry_of(row->as.text)->length) ||
               fx_symbols_see(symbols, row->as.text);
    }
    const fxtap_value *items = row->as.items;
    size_t n_items = row->index;
    if (row->kind == FXTAP_V_TENSOR) {
        items = graph->tensors[row->index].shape;
        n_items = graph->tensors[row->index].n_dims;
    } else if (row->kind < FXTAP_V_LIST || row->kind > FXTAP_V_SLICE) {
        return true;
    }
    for (size_t i = 0; i < n_items; i++) {
        if (!see_value(symbols, graph, items[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Numbers symbols outside expressions first, those of placeholders before others: within an expression the order of
 * symbols depends on their names.
 */
static bool see_symbols(fx_symbols *symbols, const fxtap_graph *graph)
{
    bool ok = true;
    for (int placeholders = 1; placeholders >= 0; placeholders--) {
        for (size_t i = 0; ok && i < graph->n_nodes; i++) {
            const fxtap_node_desc *desc = &graph->nodes[i].desc;
            if ((desc->op == FXTAP_OP_PLACEHOLDER) == (placeholders == 1)) {
                ok = see_value(symbols, graph, desc->meta);
            }
        }
    }
    return ok;
}

static fxtap_hash128 key_of(const fxtap_graph *graph, bool strict)
{
    fxtap_hash128 key = {0, 0};
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    fx_symbols symbols;
    fx_symbols_init(&symbols);
    hasher h = {.state = &state, .symbols = &symbols, .strict = strict};
    h.failed = strict && !see_symbols(&symbols, graph);
    if (!h.failed) {
        put_text(&h, strict ? "fxtap strict 1" : "fxtap structural 1");
        put_graph(&h, graph);
    }
    if (!h.failed) {
        XXH128_hash_t hash = XXH3_128bits_digest(&state);
        key = (fxtap_hash128){hash.high64, hash.low64};
    }
    fx_symbols_clear(&symbols);
    return key;
}

fxtap_hash128 fxtap_graph_strict_key(const fxtap_graph *graph)
{
    return key_of(graph, true);
}

fxtap_hash128 fxtap_graph_structural_key(const fxtap_graph *graph)
{
    return key_of(graph, false);
}
