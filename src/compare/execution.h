/*
 * execution.h - one side of what is aligned: some calls in order, the nodes of their graphs numbered through, the
 * tensors that each has in the side's list, and what feeds what, within a call and from call to call.
 *
 * An execution borrows the list's tensors: it is used before the list grows again. Names and infos are the reader's.
 */
#ifndef FX_COMPARE_EXECUTION_H
#define FX_COMPARE_EXECUTION_H

#include <string.h>

#include "compare/report.h"

/* Why two nodes are a pair: what speaks for it, and what speaks against it. */
typedef enum fx_evidence {
    FX_EV_STRUCTURE = 1u << 0,    /* the same place in graphs of equal structure */
    FX_EV_MAP = 1u << 1,          /* the given map */
    FX_EV_VALUE = 1u << 2,        /* equal hashes of values that are not trivial */
    FX_EV_NEAR = 1u << 3,         /* statistics that only the same quantity has */
    FX_EV_STRANGER = 1u << 4,     /* against: statistics of other quantities */
    FX_EV_OPERATOR = 1u << 5,     /* the same operator */
    FX_EV_FAMILY = 1u << 6,       /* another form of it */
    FX_EV_MODULE = 1u << 7,       /* the same module path, but for what wraps the model */
    FX_EV_LINE = 1u << 8,         /* the same text of the line, in a function of the same name */
    FX_EV_SHAPE = 1u << 9,
    FX_EV_INPUTS = 1u << 10,      /* an input that is paired */
    FX_EV_USERS = 1u << 11,       /* a paired operator reads both at the same place */
    FX_EV_INPUT_AGAINST = 1u << 12, /* against: an input is paired elsewhere */
    FX_EV_USER_AGAINST = 1u << 13,
    FX_EV_LITERALS = 1u << 14,    /* equal numbers in the code */
    FX_EV_NAME = 1u << 15,        /* the same name, where nothing better is recorded */
    FX_EV_ORDER = 1u << 16,       /* the same place between neighbours that are pairs */
    FX_EV_ROUGH = 1u << 17,       /* statistics that one quantity may have in two precisions */
    FX_EV_RESULT = 1u << 18,      /* the same place of what the programs return */
} fx_evidence;

typedef struct fx_exec_node {
    const fxtap_node_info *info; /* NULL: a plain file */
    const char *name;            /* node name, or a plain file's path */
    const char *target;          /* "" for a plain file */
    size_t call;                 /* index of its call */
    size_t first_tensor;         /* its tensors in the side's list */
    size_t n_tensors;            /* 0: not dumped */
    size_t partner;              /* on the other side, or FX_MISSING */
    uint32_t evidence;           /* bits of fx_evidence; 0: alone */
    int32_t score;
    size_t source;               /* itself, or the node whose value it only passes on; set by fx_align() */
} fx_exec_node;

typedef struct fx_exec_call {
    const fx_set *set;
    const fxtap_graph_info *graph; /* NULL: plain files */
    const fxtap_graph *record;     /* NULL: none */
    size_t first_tensor, end_tensor;
    size_t first_node, n_nodes;
} fx_exec_call;

typedef struct fx_execution {
    const fxtap_tensor_list *list;
    fx_exec_call *calls;
    size_t n_calls;
    size_t n_backwards; /* of these */
    fx_exec_node *nodes;
    size_t n_nodes;
    fx_wiring *wiring; /* NULL where no graph says what feeds what, or it is not loaded; owned */
} fx_execution;

/*
 * The execution of calls whose `set` and tensors are given. All arrays live in `arena`. With `with_wiring`, every node
 * of every graph is described, records are loaded and calls are linked by the values that they hand on; without, only
 * nodes that have tensors are. FXTAP_E_NOMEM, and what the reader says. The caller clears it in any case.
 */
fxtap_status fx_execution_open(fx_execution *execution, fx_arena *arena, fxtap_reader *reader,
                               const fxtap_tensor_list *list, fx_exec_call *calls, size_t n_calls, bool with_wiring);
void fx_execution_clear(fx_execution *execution);

/* The wiring alone, of calls whose nodes are laid out already. NULL in *out where no record tells. */
fxtap_status fx_calls_wire(const fx_exec_call *calls, size_t n_calls, fx_wiring **out);

/* What a node yields: its first result whose shape is known; of a getitem, the item. NULL: not known. */
const fxtap_tensor_info *fx_execution_value(const fx_execution *execution, size_t node);

/* Which result of which node a getitem takes; false where `node` is none, or its index is not a number. */
bool fx_execution_item(const fx_execution *execution, size_t node, size_t *producer_out, size_t *index_out);

/* True where the record says that a number, a text or a list of such stands at `position` in the code of `node`. */
bool fx_call_is_literal(const fx_exec_call *call, size_t node, const char *position);

/* A value of many equal elements, or of few, says little by being equal to another. */
bool fx_tensor_is_trivial(const fxtap_tensor_info *tensor);

static inline const fxtap_tensor_info *fx_exec_tensor(const fx_execution *execution, size_t i)
{
    return fxtap_tensor_list_at(execution->list, i);
}

static inline bool fx_same_hash(fxtap_hash128 a, fxtap_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* Whether two graphs compute the same by the same operators; of one whose kind is not known, that does not count. */
static inline bool fx_same_structure(const fxtap_graph_info *a, const fxtap_graph_info *b)
{
    return a != NULL && b != NULL && a->has_keys && b->has_keys && (a->kind == 0 || b->kind == 0 || a->kind == b->kind) &&
           fx_same_hash(a->structural_key, b->structural_key);
}

static inline bool fx_same_shape(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

#endif
