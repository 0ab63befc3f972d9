/*
 * batch.h - a batch: some groups of a comparison, with their tensors and pairs, that are in memory and judged together.
 */
#ifndef FX_COMPARE_BATCH_H
#define FX_COMPARE_BATCH_H

#include "compare/folder.h"
#include "compare/report.h"
#include "pair/execution.h"

/* The two tensors of a pair: indices in the batch's lists, or FX_MISSING. */
typedef struct fx_sources {
    size_t golden;
    size_t target;
} fx_sources;

/* One node of a group; its pairs are contiguous. Each plain file is a node. */
typedef struct fx_node_pair {
    const fxtap_node_info *golden; /* NULL: missing, or a plain file */
    const fxtap_node_info *target;
    size_t golden_node; /* number in golden's execution; FX_MISSING: none */
    size_t target_node;
    uint32_t evidence; /* bits of fx_evidence */
    bool is_region;    /* one operator is paired with several, or with a different one: only the results correspond */
    size_t first_pair; /* in the batch */
    size_t n_pairs;
} fx_node_pair;

/* One group while it is in a batch. */
typedef struct fx_group_nodes {
    const fx_group_work *group;
    fx_exec_call *golden_calls; /* array of group->n_golden; the tensors are in the batch's lists */
    fx_exec_call *target_calls;
    size_t n_target_nodes;    /* of all calls */
    fx_wiring *golden_wiring; /* NULL until first used, or if there is none; owned */
    fx_wiring *target_wiring;
    bool has_golden_wiring, has_target_wiring; /* fx_group_wiring() has created it, or found that there is none */
    const bool *has_golden_partner;            /* one per node, dumped or not; NULL if nodes pair by position */
    const bool *has_target_partner;
    fx_node_pair *nodes; /* in order of execution */
    size_t n_nodes;
} fx_group_nodes;

typedef struct fx_batch {
    fx_comparison *comparison;
    fx_arena arena; /* everything that lives as long as the batch */
    fxtap_tensor_list *golden;
    fxtap_tensor_list *target;
    fx_group_nodes *groups;
    size_t n_groups;
    size_t groups_capacity;
    fxtap_pair *pairs;
    fx_sources *sources; /* parallel to pairs */
    size_t n_pairs;
    size_t pairs_capacity;
    size_t sources_capacity;
    size_t first_pair; /* number of pairs before these in the report */
} fx_batch;

/* Pairs and judges all groups and finds their origins, batch by batch; leaves to the caller what needs all pairs. */
fxtap_status fx_run_batches(fx_comparison *comparison);

/* For tests: sets the number of pairs at which a batch ends. Returns the previous value. */
size_t fx_batch_limit(size_t n_pairs);

/* NULL for FX_MISSING. */
const fxtap_tensor_info *fx_batch_golden(const fx_batch *batch, size_t i);
const fxtap_tensor_info *fx_batch_target(const fx_batch *batch, size_t i);
/* Appends a zeroed pair; NULL: no memory. Other pairs may move. */
fxtap_pair *fx_batch_add_pair(fx_batch *batch, size_t golden, size_t target);

/* Pairs the nodes of one group and their tensors: appends to the batch's pairs and the report's groups. */
fxtap_status fx_pair_group(fx_batch *batch, fx_group_nodes *group);
/* Marks pairs of undefined values before judging. */
fxtap_status fx_mark_undefined(fx_batch *batch, fx_group_nodes *group);
/* Finds the origins in one judged group. */
fxtap_status fx_find_origins(fx_batch *batch, fx_group_nodes *group);

/* ---- describe_origin.c ---- */

/* The wiring of one side's calls, created on first use; NULL if no call has a record. */
fxtap_status fx_group_wiring(fx_group_nodes *group, bool is_golden, const fx_wiring **out);
/* The schema name of the i-th pair's argument, or its position. */
const char *fx_argument_name(const fx_batch *batch, size_t i);
/* The position on the target side if it differs, as it may for different operators. */
const char *fx_target_position(const fx_batch *batch, const fxtap_pair *pair);
/* Fills the texts of an origin with a known reason; `feeder`: golden's node of the graph input that differs, or
 * FX_MISSING. */
fxtap_status fx_describe_origin(fx_batch *batch, fx_group_nodes *group, const fx_node_pair *node,
                                const fxtap_pair *pair, size_t feeder, fxtap_origin *origin);

/* ---- between.c ---- */

typedef struct fx_between {
    fxtap_buffer words;           /* "_to_copy, _to_copy_1, only in target"; empty: none */
    const fxtap_node_info *first; /* the first of these; NULL: none */
} fx_between;

/*
 * Appends the operators that only one side has and that feed an input of its `node` (position NULL: any input), back to
 * nodes that have a counterpart.
 */
fxtap_status fx_name_between(const fx_group_nodes *group, const fx_wiring *wiring, bool is_golden, size_t node,
                             const char *position, fx_between *out);
/* Copies what was found, if anything, and the location of the first operator into an origin. */
fxtap_status fx_keep_between(fx_arena *arena, const fx_between *between, fxtap_origin *origin);

/* ---- around.c ---- */

typedef struct fx_node_health {
    bool is_judged;
    bool is_bad;
    double rel_l2;
} fx_node_health;

#define FX_AROUND_HOPS 2

/* Golden's graph within FX_AROUND_HOPS of a node; `health` has one entry per node of the wiring. NULL: no memory. */
const fxtap_neighbourhood *fx_neighbourhood(fx_arena *arena, const fx_group_nodes *group, const fx_wiring *wiring,
                                            const fx_node_health *health, size_t node);

/* ---- judge.c, run.c ---- */

typedef struct fx_judge_memory { /* state of one thread that judges pairs */
    fx_arena arena;              /* for what the report keeps */
    fx_folder_cache golden_folder, target_folder;
} fx_judge_memory;

/* Verdict and metrics of the i-th pair. Fails only with FXTAP_E_NOMEM; file errors become a verdict. */
fxtap_status fx_judge(const fx_batch *batch, size_t i, fx_judge_memory *memory);

typedef struct fx_judging fx_judging;
/* Starts threads that judge the batch's pairs. */
fxtap_status fx_judging_begin(fx_batch *batch, fx_judging **out);
/* Takes part in judging or reports progress, waits for the threads, and frees `judging`. */
fxtap_status fx_judging_end(fx_judging *judging);

#endif
