/*
 * align.h - which node of one execution is compared with which of the other.
 *
 * Every node takes part, dumped or not. Evidence is weighed (see fx_evidence): equal or near values, operator, module,
 * line, shape and, above all, wiring. The surest pairs are made first; each tells something about its neighbours, up and down
 * the wiring, which are weighed anew. What is left between pairs is paired in order where evidence allows it.
 */
#ifndef FX_COMPARE_ALIGN_H
#define FX_COMPARE_ALIGN_H

#include "compare/map.h"
#include "compare/traits.h"

typedef struct fx_alignment_options {
    const fx_map *map;         /* NULL: none */
    const char *explain;       /* name of a node whose pair is explained; NULL: none */
    fxtap_buffer *explanation; /* lines are appended */
} fx_alignment_options;

/* Fills partner, evidence and score of all nodes. FXTAP_E_NOMEM. */
fxtap_status fx_align(const fx_alignment_options *options, fx_execution *golden, fx_execution *target);

/* Why the nodes of that name have the counterpart that they have, and which others were close. */
void fx_explain(const fx_traits sides[2], const char *name, fxtap_buffer *out);

/* The same for a call of one graph each, of equal structure (or two single files): by place. */
void fx_align_by_place(fx_execution *golden, const fx_exec_call *golden_call, fx_execution *target,
                       const fx_exec_call *target_call);

/* Calls of graphs of equal structure that may stand against each other pair by place. False: no memory. */
bool fx_align_calls(fx_arena *arena, fx_execution *golden, fx_execution *target);

void fx_join(fx_execution *golden, size_t g, fx_execution *target, size_t t, uint32_t evidence, int32_t score);

/* What speaks for a pair and against it, as things stand. The score of no pair at all is FX_NO_SCORE. */
typedef struct fx_weighing {
    uint32_t evidence;
    int32_t score;
    uint32_t n_inputs;  /* that are paired with each other */
    uint32_t n_against; /* inputs and readers that are paired elsewhere */
} fx_weighing;

#define FX_NO_SCORE (-1000)

fx_weighing fx_weigh(const fx_traits *golden, size_t g, const fx_traits *target, size_t t);

/*
 * How many of the first results of two graphs correspond: behind what the model returns, a graph of training gives back what
 * its backward will need, which another program may keep in other numbers.
 */
size_t fx_count_results(const fx_traits *golden, size_t g, const fx_traits *target, size_t t);

/* Whether value or wiring speak for a pair; of two operators that are not one, more is asked. */
bool fx_is_supported(uint32_t evidence);
/* What reads the wrong value stands in its place all the same: that is the fault, and no reason to lose the pair. */
bool fx_is_misreading(uint32_t evidence);
/* How sure a pair is, from 0 to 1, and whether anything may rest on it. */
double fx_confidence(uint32_t evidence, int32_t score);
bool fx_is_confirmed(uint32_t evidence);

#endif
