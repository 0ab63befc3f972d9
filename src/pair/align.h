/*
 * align.h - which node of one execution is compared with which node of the other.
 *
 * All nodes are aligned, dumped or not. Pairs are scored by evidence (see fx_evidence): equal or near values, operator,
 * module, line, shape and, above all, wiring. The pairs with the highest score are made first; each changes the scores
 * of its producers and consumers. Nodes left over between pairs are paired in order if the evidence permits it.
 */
#ifndef FX_PAIR_ALIGN_H
#define FX_PAIR_ALIGN_H

#include "pair/map.h"
#include "pair/traits.h"

typedef struct fx_alignment_options {
    const fx_map *map;         /* NULL: none */
    const char *explain;       /* name of a node whose pairing is explained; NULL: none */
    fxtap_buffer *explanation; /* lines are appended */
} fx_alignment_options;

/* Sets partner, evidence and score of all nodes. FXTAP_E_NOMEM. */
fxtap_status fx_align(const fx_alignment_options *options, fx_execution *golden, fx_execution *target);

/* Explains the pairing of the nodes with that name, and lists the next best candidates. */
void fx_explain(const fx_traits sides[2], const char *name, fxtap_buffer *out);

/* Aligns two calls of graphs with equal structure (or two single files): by position. */
void fx_align_by_place(fx_execution *golden, const fx_exec_call *golden_call, fx_execution *target,
                       const fx_exec_call *target_call);

/* Aligns by position the corresponding calls of graphs with equal structure. False: no memory. */
bool fx_align_calls(fx_arena *arena, fx_execution *golden, fx_execution *target);

/* Pairs what the alignment left over. False: no memory. */
bool fx_join_leftovers(fx_arena *arena, const fx_traits traits[2], fx_execution *golden, fx_execution *target);

void fx_join(fx_execution *golden, size_t g, fx_execution *target, size_t t, uint32_t evidence, int32_t score);

/* Current evidence for and against a pair. The score is FX_NO_SCORE if the nodes cannot be a pair. */
typedef struct fx_weighing {
    uint32_t evidence;
    int32_t score;
    uint32_t n_inputs;  /* inputs that are paired with each other */
    uint32_t n_against; /* inputs and readers that are paired with other nodes */
} fx_weighing;

#define FX_NO_SCORE (-1000)

fx_weighing fx_weigh(const fx_traits *golden, size_t g, const fx_traits *target, size_t t);

/*
 * How many of the first results of two graphs correspond: after what the model returns, a training graph returns what
 * its backward needs, and another program may save a different number of tensors.
 */
size_t fx_count_results(const fx_traits *golden, size_t g, const fx_traits *target, size_t t);

/*
 * The position at which target's output node returns what golden's returns at `position`, usually the same. A backward
 * graph returns the gradients of the inputs of its forward graph: the counterparts of these tell, in another order too.
 * NULL: unknown.
 */
#define FX_POSITION_BYTES 64
const char *fx_result_position(const fx_traits *golden, size_t g, const fx_traits *target, size_t t,
                               const char *position, char room[FX_POSITION_BYTES]);

/* Whether value or wiring supports a pair; two different operators need more support. */
bool fx_is_supported(uint32_t evidence);
/* Whether a pair reads the wrong value but otherwise corresponds: this is the fault to report, so the pair is kept. */
bool fx_is_misreading(uint32_t evidence);
/* Confidence of a pair, from 0 to 1; and whether its evidence is reliable enough for other decisions. */
double fx_confidence(uint32_t evidence, int32_t score);
bool fx_is_confirmed(uint32_t evidence);

#endif
