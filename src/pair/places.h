/* places.h - which tensor of golden is compared with which tensor of target, once their nodes are aligned. */
#ifndef FX_PAIR_PLACES_H
#define FX_PAIR_PLACES_H

#include "pair/execution.h"
#include "pair/map.h"

typedef struct fx_places {
    size_t *golden; /* for each golden tensor, its partner in target's list, or FX_MISSING */
    size_t *target;
    size_t first_golden; /* index in the list of the tensor that golden[0] describes */
    size_t first_target;
    size_t *counterparts; /* for each golden node, target's node that computes its result, or FX_MISSING */
} fx_places;

/* Whether golden's node and its partner call the same operator, so that their arguments have the same positions. */
bool fx_is_one_call(const fx_execution *golden, size_t g, const fx_execution *target);

/*
 * The map has precedence. Results of paired nodes pair. Inputs pair by position if the operators are the same (for
 * commutative operators, in the order that the wiring gives), by argument name if the map paired the operators and both
 * have that argument, else by their producers. Everything is in `arena`. FXTAP_E_NOMEM.
 */
fxtap_status fx_places_create(fx_arena *arena, const fx_map *map, const fx_execution *golden,
                              const fx_execution *target, fx_places *out);

#endif
