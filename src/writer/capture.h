/*
 * capture.h - one graph of a dump: its record, the stems of its nodes, its slots.
 */
#ifndef FX_WRITER_CAPTURE_H
#define FX_WRITER_CAPTURE_H

#include <stdatomic.h>

#include "fxtap/dump.h"
#include "fxtap/stats.h"
#include "util/arena.h"
#include "util/table.h"
#include "writer/steps.h"

/* One place of one node. It never moves. */
typedef struct fx_capture_slot {
    fxtap_node node;
    fxtap_io io;
    uint16_t prefix_length;
    const char *prefix; /* "add_1-aten.add.Tensor.INPUT.0." */
    const char *position;
    const char *arg_name;
    atomic_bool was_linked; /* a file of this slot got a second name: the next one probably will, too */
    int64_t row;            /* in the index; 0: not inserted yet. index.lock */
} fx_capture_slot;

typedef struct fx_node_names {
    char *stem;
    char *skip_reason;
    bool is_operator;
    bool has_slots;
} fx_node_names;

#define FX_SLOT_BLOCKS 26
#define FX_SLOT_FIRST_BLOCK 64 /* each block is twice as long as the one before it */

struct fxtap_capture {
    fxtap_capture *next;
    fxtap_dump *dump;
    uint32_t graph_id;
    uint32_t occurrence;
    fxtap_graph_kind kind;
    fxtap_hash128 strict_key;
    fxtap_hash128 structural_key;
    void *record;
    size_t record_bytes;
    fx_node_names *nodes;
    size_t n_nodes;
    bool is_skipped; /* it has operators, and none of them is dumped */
    fx_capture_slot *blocks[FX_SLOT_BLOCKS];
    atomic_uint n_slots;
    fx_table slot_places; /* key of (node, io, position) -> number. dump->lock */
    fx_table prefixes;    /* case-folded, of all slots. dump->lock */
    fx_arena arena;       /* dump->lock */
    fx_steps steps;       /* dump->lock */
    int64_t row;          /* index.lock */
    int64_t *node_rows;   /* index.lock */
};

/* NULL: no such slot. */
fx_capture_slot *fx_capture_slot_at(const fxtap_capture *capture, fxtap_slot slot);
void fx_capture_free(fxtap_capture *capture);

#endif
