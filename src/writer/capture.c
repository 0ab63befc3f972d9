/* A graph of a dump: its record, the stems of its nodes, its slots. */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/memory.h"
#include "writer/dump.h"

typedef struct slot_place {
    fxtap_hash128 key;
    fxtap_slot slot;
} slot_place;

#define MAX_SLOTS ((size_t)FX_SLOT_FIRST_BLOCK * ((1u << 24) - 1))

/* Blocks hold 64, 128, 256 ... slots, so that a slot never moves. */
static void find_block(fxtap_slot slot, unsigned *block_out, size_t *place_out)
{
    size_t n = (size_t)slot / FX_SLOT_FIRST_BLOCK + 1;
    unsigned block = 63u - (unsigned)__builtin_clzll(n);
    *block_out = block;
    *place_out = slot - FX_SLOT_FIRST_BLOCK * (((size_t)1 << block) - 1);
}

fx_capture_slot *fx_capture_slot_at(const fxtap_capture *capture, fxtap_slot slot)
{
    if (slot >= atomic_load_explicit(&capture->n_slots, memory_order_acquire)) {
        return NULL;
    }
    unsigned block;
    size_t place;
    find_block(slot, &block, &place);
    return &capture->blocks[block][place];
}

void fx_capture_free(fxtap_capture *capture)
{
    if (capture == NULL) {
        return;
    }
    for (size_t i = 0; capture->nodes != NULL && i < capture->n_nodes; i++) {
        fx_free(capture->nodes[i].stem);
        fx_free(capture->nodes[i].skip_reason);
    }
    for (unsigned i = 0; i < FX_SLOT_BLOCKS; i++) {
        fx_free(capture->blocks[i]);
    }
    fx_table_clear(&capture->slot_places);
    fx_table_clear(&capture->prefixes);
    fx_steps_clear(&capture->steps);
    fx_arena_clear(&capture->arena);
    fx_free(capture->nodes);
    fx_free(capture->node_rows);
    fxtap_free(capture->record);
    fx_free(capture);
}

/* ---- stems ---- */

static fxtap_status make_stem(const fxtap_node_desc *desc, const char *suffix, char **out)
{
    char stem[FX_STEM_MAX + 1];
    fxtap_status status = fx_name_stem(desc->name, desc->target, suffix, stem);
    if (status == FXTAP_OK) {
        *out = fx_strdup(stem);
        status = *out != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    return status;
}

static fxtap_hash128 folded_key(const char *name)
{
    char folded[FX_NAME_MAX + 1];
    fx_name_fold(name, folded);
    XXH128_hash_t hash = XXH3_128bits(folded, strlen(folded));
    return (fxtap_hash128){hash.high64, hash.low64};
}

/* Adds a name to those taken; *is_new_out: neither it nor one that differs in case only was there. FXTAP_E_NOMEM. */
static fxtap_status take_name(fx_table *taken, const char *name, bool *is_new_out)
{
    fxtap_hash128 key = folded_key(name);
    *is_new_out = fx_table_find(taken, key) == NULL;
    return !*is_new_out || fx_table_insert(taken, key) != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* The suffix that makes the n-th candidate for a name unique; NULL for the first. */
static const char *suffix_text(unsigned n, size_t number, char dst[48])
{
    snprintf(dst, 48, n == 1 ? "%zu" : "%zu-%u", number, n);
    return n == 0 ? NULL : dst;
}

/* Gives a node a stem that no earlier node has. */
static fxtap_status name_node(fxtap_capture *capture, fx_table *taken, const fxtap_node_desc *desc, size_t node)
{
    char **stem = &capture->nodes[node].stem;
    bool is_new = false;
    fxtap_status status = FXTAP_OK;
    for (unsigned n = 0; status == FXTAP_OK && !is_new; n++) {
        char suffix[48];
        fx_free(*stem);
        *stem = NULL;
        status = make_stem(desc, suffix_text(n, node, suffix), stem);
        if (status == FXTAP_OK) {
            status = take_name(taken, *stem, &is_new);
        }
    }
    return status;
}

static fxtap_status add_node(fxtap_capture *capture, fx_table *taken, const fxtap_graph *graph, fxtap_node node,
                             const char *skip_reason)
{
    fx_node_names *names = &capture->nodes[node];
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    fxtap_status status = fxtap_graph_node(graph, node, &desc);
    if (status == FXTAP_OK) {
        status = name_node(capture, taken, &desc, node);
    }
    names->is_operator =
        desc.op == FXTAP_OP_CALL_FUNCTION || desc.op == FXTAP_OP_CALL_METHOD || desc.op == FXTAP_OP_CALL_MODULE;
    if (status == FXTAP_OK && skip_reason != NULL) {
        names->skip_reason = fx_strdup(skip_reason);
        status = names->skip_reason != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    return status;
}

static fxtap_status add_nodes(fxtap_capture *capture, const fxtap_graph *graph, const char *const *skip_reasons)
{
    capture->n_nodes = fxtap_graph_node_count(graph);
    capture->nodes = fx_calloc(capture->n_nodes, sizeof *capture->nodes);
    capture->node_rows = fx_calloc(capture->n_nodes, sizeof *capture->node_rows);
    if (capture->nodes == NULL || capture->node_rows == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_table taken;
    fx_table_init(&taken, sizeof(fxtap_hash128), UINT32_MAX - 1, NULL, NULL);
    fxtap_status status = FXTAP_OK;
    size_t n_operators = 0, n_skipped = 0;
    for (size_t i = 0; status == FXTAP_OK && i < capture->n_nodes; i++) {
        const char *reason = skip_reasons != NULL ? skip_reasons[i] : NULL;
        status = add_node(capture, &taken, graph, (fxtap_node)i, reason);
        n_operators += capture->nodes[i].is_operator;
        n_skipped += capture->nodes[i].is_operator && reason != NULL;
    }
    capture->is_skipped = n_operators > 0 && n_skipped == n_operators;
    fx_table_clear(&taken);
    return status;
}

static fxtap_status new_capture(fxtap_dump *dump, const fxtap_graph *graph, uint32_t graph_id,
                                const char *const *skip_reasons, fxtap_capture **out)
{
    fxtap_capture *capture = fx_calloc(1, sizeof *capture);
    if (capture == NULL) {
        return FXTAP_E_NOMEM;
    }
    capture->dump = dump;
    capture->graph_id = graph_id;
    capture->kind = fxtap_graph_kind_of(graph);
    fx_arena_init(&capture->arena);
    fx_table_init(&capture->slot_places, sizeof(slot_place), UINT32_MAX - 1, NULL, NULL);
    fx_table_init(&capture->prefixes, sizeof(fxtap_hash128), UINT32_MAX - 1, NULL, NULL);
    fxtap_status status = fxtap_graph_serialise(graph, &capture->record, &capture->record_bytes);
    if (status == FXTAP_OK) {
        capture->strict_key = fxtap_graph_strict_key(graph);
        capture->structural_key = fxtap_graph_structural_key(graph);
        status = add_nodes(capture, graph, skip_reasons);
    }
    if (status != FXTAP_OK) {
        fx_capture_free(capture);
        return status;
    }
    *out = capture;
    return FXTAP_OK;
}

fxtap_status fxtap_dump_add_graph(fxtap_dump *dump, const fxtap_graph *graph, uint32_t graph_id,
                                  const char *const *skip_reasons, fxtap_capture **out)
{
    FX_REQUIRE(dump);
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    if (graph_id == 0) {
        return fx_error(FXTAP_E_INVALID, "graph_id is 0, it must be at least 1");
    }
    fxtap_capture *capture;
    fxtap_status status = new_capture(dump, graph, graph_id, skip_reasons, &capture);
    if (status != FXTAP_OK) {
        return status;
    }
    pthread_mutex_lock(&dump->lock);
    for (const fxtap_capture *other = dump->captures; other != NULL; other = other->next) {
        if (other->graph_id == graph_id) {
            status = fx_error(FXTAP_E_INVALID, "graph %u is registered already", graph_id);
        }
        capture->occurrence +=
            other->strict_key.high == capture->strict_key.high && other->strict_key.low == capture->strict_key.low;
    }
    if (status == FXTAP_OK) {
        capture->next = dump->captures;
        dump->captures = capture;
    }
    pthread_mutex_unlock(&dump->lock);
    if (status != FXTAP_OK) {
        fx_capture_free(capture);
        return status;
    }
    *out = capture;
    return FXTAP_OK;
}

/* ---- slots ---- */

static fxtap_hash128 place_key(fxtap_node node, fxtap_io io, const char *position)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(position, strlen(position), (XXH64_hash_t)node * 4 + (XXH64_hash_t)io);
    return (fxtap_hash128){hash.high64, hash.low64};
}

/* Gives a slot a prefix that no earlier slot has. */
static fxtap_status name_slot(fxtap_capture *capture, fx_capture_slot *slot, fxtap_slot number)
{
    char prefix[FX_PREFIX_MAX + 1];
    size_t length = 0;
    bool is_new = false;
    for (unsigned n = 0; !is_new; n++) {
        char suffix[48];
        const char *stem = capture->nodes[slot->node].stem;
        fx_name_prefix(stem, slot->io, slot->position, suffix_text(n, number, suffix), prefix, &length);
        if (take_name(&capture->prefixes, prefix, &is_new) != FXTAP_OK) {
            return FXTAP_E_NOMEM;
        }
    }
    slot->prefix_length = (uint16_t)length;
    slot->prefix = fx_arena_memdup(&capture->arena, prefix, length + 1);
    return slot->prefix != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

static fxtap_status fill_slot(fxtap_capture *capture, fx_capture_slot *slot, fxtap_slot number, fxtap_node node,
                              fxtap_io io, const char *position, const char *arg_name)
{
    slot->node = node;
    slot->io = io;
    slot->position = fx_arena_strdup(&capture->arena, position);
    slot->arg_name = fx_arena_strdup(&capture->arena, arg_name != NULL ? arg_name : "");
    if (slot->position == NULL || slot->arg_name == NULL) {
        return FXTAP_E_NOMEM;
    }
    capture->nodes[node].has_slots = true;
    return name_slot(capture, slot, number);
}

/* dump->lock is held. */
static fxtap_status add_slot(fxtap_capture *capture, fxtap_node node, fxtap_io io, const char *position,
                             const char *arg_name, fxtap_slot *out)
{
    fxtap_slot number = atomic_load(&capture->n_slots);
    unsigned block;
    size_t place;
    find_block(number, &block, &place);
    if (number >= MAX_SLOTS || block >= FX_SLOT_BLOCKS) {
        return fx_error(FXTAP_E_INVALID, "graph %u has too many slots", capture->graph_id);
    }
    if (capture->blocks[block] == NULL) {
        capture->blocks[block] = fx_calloc((size_t)FX_SLOT_FIRST_BLOCK << block, sizeof(fx_capture_slot));
        if (capture->blocks[block] == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    fx_capture_slot *slot = &capture->blocks[block][place];
    memset(slot, 0, sizeof *slot);
    fxtap_status status = fill_slot(capture, slot, number, node, io, position, arg_name);
    slot_place *record =
        status == FXTAP_OK ? fx_table_insert(&capture->slot_places, place_key(node, io, position)) : NULL;
    if (record == NULL) {
        return FXTAP_E_NOMEM;
    }
    record->slot = number;
    atomic_store_explicit(&capture->n_slots, number + 1, memory_order_release);
    *out = number;
    return FXTAP_OK;
}

fxtap_status fxtap_capture_slot(fxtap_capture *capture, fxtap_node node, fxtap_io io, const char *position,
                                const char *arg_name, fxtap_slot *out)
{
    FX_REQUIRE(capture);
    FX_REQUIRE(out);
    if (node >= capture->n_nodes) {
        return fx_error(FXTAP_E_INVALID, "graph %u has no node %u", capture->graph_id, node);
    }
    if ((int)io < FXTAP_INPUT || io > FXTAP_INOUT || position == NULL || position[0] == '\0') {
        return fx_error(FXTAP_E_INVALID, "a slot needs FXTAP_INPUT, FXTAP_OUTPUT or FXTAP_INOUT, and a position");
    }
    fxtap_status status = FXTAP_OK;
    pthread_mutex_lock(&capture->dump->lock);
    const slot_place *found = fx_table_find(&capture->slot_places, place_key(node, io, position));
    if (found != NULL) {
        *out = found->slot;
    } else {
        status = add_slot(capture, node, io, position, arg_name, out);
    }
    pthread_mutex_unlock(&capture->dump->lock);
    return status;
}
