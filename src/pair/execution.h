/*
 * execution.h - one side of an alignment: some calls in order, the nodes of their graphs with consecutive numbers, the
 * tensors of each node in the side's list, and the wiring within a call and from call to call.
 *
 * An execution borrows the list's tensors and is invalid once the list grows. The reader owns names and infos.
 */
#ifndef FX_PAIR_EXECUTION_H
#define FX_PAIR_EXECUTION_H

#include <string.h>

#include "fxtap/reader.h"
#include "pair/wiring.h"
#include "util/arena.h"

/* Evidence that two nodes are a pair, and evidence against it. */
typedef enum fx_evidence {
    FX_EV_STRUCTURE = 1u << 0, /* the same position in graphs of equal structure */
    FX_EV_MAP = 1u << 1,       /* the given map */
    FX_EV_VALUE = 1u << 2,     /* equal hashes of values that are not trivial */
    FX_EV_NEAR = 1u << 3,      /* statistics that only the same quantity can have */
    FX_EV_STRANGER = 1u << 4,  /* against: statistics of a different quantity */
    FX_EV_OPERATOR = 1u << 5,  /* the same operator */
    FX_EV_FAMILY = 1u << 6,    /* another form of it */
    FX_EV_MODULE = 1u << 7,    /* the same module path, ignoring wrappers of the model */
    FX_EV_LINE = 1u << 8,      /* the same line text, in a function of the same name */
    FX_EV_SHAPE = 1u << 9,
    FX_EV_INPUTS = 1u << 10,        /* an input is paired accordingly */
    FX_EV_USERS = 1u << 11,         /* two paired operators read both values at the same position */
    FX_EV_INPUT_AGAINST = 1u << 12, /* against: an input is paired with another node */
    FX_EV_USER_AGAINST = 1u << 13,
    FX_EV_LITERALS = 1u << 14, /* equal numbers in the code */
    FX_EV_NAME = 1u << 15,     /* the same name, if nothing better is recorded */
    FX_EV_ORDER = 1u << 16,    /* the same position between neighbours that are pairs */
    FX_EV_ROUGH = 1u << 17,    /* statistics that the same quantity may have in two precisions */
    FX_EV_RESULT = 1u << 18,   /* the same position in what the programs return */
} fx_evidence;

typedef struct fx_exec_node {
    const fxtap_node_info *info; /* NULL: plain file */
    const char *name;            /* node name, or a plain file's path */
    const char *operator_name;   /* "" for a plain file */
    size_t call;                 /* index of its call */
    size_t first_tensor;         /* index of its first tensor in the side's list */
    size_t n_tensors;            /* 0: not dumped */
    size_t partner;              /* on the other side, or FX_MISSING */
    uint32_t evidence;           /* bits of fx_evidence; 0: alone */
    int32_t score;
    size_t source; /* itself, or the node whose value it passes on unchanged; set by fx_align() */
} fx_exec_node;

typedef struct fx_exec_call {
    const fxtap_step_info *step;   /* NULL: plain files */
    const fxtap_graph_info *graph; /* NULL: plain files */
    const fxtap_graph *record;     /* NULL: none */
    size_t first_tensor, end_tensor;
    size_t first_node, n_nodes;
    size_t forward; /* index of the call whose inputs this backward call returns gradients of; FX_MISSING: unknown */
} fx_exec_call;

typedef struct fx_execution {
    const fxtap_tensor_list *list;
    fx_exec_call *calls;
    size_t n_calls;
    size_t n_backwards; /* of these */
    fx_exec_node *nodes;
    size_t n_nodes;
    fx_wiring *wiring; /* NULL if no graph records its edges, or if not loaded; owned */
} fx_execution;

/*
 * The execution of calls whose `step` and tensors are given. All arrays live in `arena`. With `with_wiring`, every node
 * of every graph is described, records are loaded and calls are linked by the values passed between them; without it,
 * only nodes that have tensors are described. FXTAP_E_NOMEM, or the reader's error. The caller frees the wiring.
 */
fxtap_status fx_execution_open(fx_execution *execution, fx_arena *arena, fxtap_reader *reader,
                               const fxtap_tensor_list *list, fx_exec_call *calls, size_t n_calls, bool with_wiring);

/* Only the wiring, for calls whose nodes have been numbered. *out is NULL if no call has a record. */
fxtap_status fx_calls_wire(const fx_exec_call *calls, size_t n_calls, fx_wiring **out);

/* The value of a node: its first result with a known shape; for a getitem, the item. NULL: unknown. */
const fxtap_tensor_info *fx_execution_value(const fx_execution *execution, size_t node);

/* Which result of which node a getitem takes; false if `node` is not a getitem, or its index is not a number. */
bool fx_execution_item(const fx_execution *execution, size_t node, size_t *producer_out, size_t *index_out);

/* True if, by the record, the argument of `node` at `position` is a number, a string or a list of these in the code. */
bool fx_call_is_literal(const fx_exec_call *call, size_t node, const char *position);

/* True if equality with another value is weak evidence: few elements, or many equal ones. */
bool fx_tensor_is_trivial(const fxtap_tensor_info *tensor);

static inline const fxtap_tensor_info *fx_exec_tensor(const fx_execution *execution, size_t i)
{
    return fxtap_tensor_list_at(execution->list, i);
}

static inline bool fx_same_hash(fxtap_hash128 a, fxtap_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* Whether two graphs have the same structure and kind; an unknown kind matches any. */
static inline bool fx_same_structure(const fxtap_graph_info *a, const fxtap_graph_info *b)
{
    return a != NULL && b != NULL && a->has_keys && b->has_keys &&
           (a->kind == 0 || b->kind == 0 || a->kind == b->kind) && fx_same_hash(a->structural_key, b->structural_key);
}

static inline bool fx_same_shape(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

#endif
