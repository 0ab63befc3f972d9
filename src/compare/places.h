/* places.h - which tensor of golden is held against which of target, once their nodes are aligned. */
#ifndef FX_COMPARE_PLACES_H
#define FX_COMPARE_PLACES_H

#include "compare/execution.h"
#include "compare/map.h"

typedef struct fx_places {
    size_t *golden;       /* of each golden tensor, its partner in target's list; FX_MISSING: alone */
    size_t *target;
    size_t first_golden;  /* index in the list of the tensor that golden[0] is about */
    size_t first_target;
    size_t *counterparts; /* of each golden node: target's node that yields its result; FX_MISSING: none */
} fx_places;

/* Whether golden's node and its partner call one operator, so that their arguments stand in the same places. */
bool fx_is_one_call(const fx_execution *golden, size_t g, const fx_execution *target);

/*
 * What the map says comes first. Results of paired nodes pair; inputs do by place where the operator is one (in the order that
 * the wiring says, where it does not count), of operators that the map made a pair by the argument's name where both have it;
 * else by what feeds them. All in `arena`. FXTAP_E_NOMEM.
 */
fxtap_status fx_places_create(fx_arena *arena, const fx_map *map, const fx_execution *golden, const fx_execution *target,
                              fx_places *out);

#endif
