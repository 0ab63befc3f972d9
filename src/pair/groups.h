/* groups.h - which calls of one side are compared with which calls of the other. */
#ifndef FX_PAIR_GROUPS_H
#define FX_PAIR_GROUPS_H

#include "pair/side.h"
#include "util/arena.h"

/* A unit of alignment: one step of a graph and one of another, or all calls of an iteration and all of another. */
typedef struct fx_group_work {
    const fxtap_step_info *const *golden; /* calls in order */
    size_t n_golden;                      /* 0: missing */
    const fxtap_step_info *const *target;
    size_t n_target;
    size_t number; /* of the group, independent of sharding */
    int32_t rank;  /* rank number of the reported pairs */
    fxtap_pairing pairing;
    bool same_structure; /* one call on each side, with equal structure: nodes pair by position */
    bool is_extra;       /* a graph that the other side did not have to run */
} fx_group_work;

typedef struct fx_groups {
    fx_arena *arena; /* borrowed, as the options and the sides are */
    const fxtap_compare_options *options;
    const fx_side *golden, *target;
    fx_group_work *items; /* freed by the caller, with fx_free() */
    size_t n_items, capacity;
    const char *steps; /* describes what was aligned as an iteration; NULL: equal graphs, or no index */
} fx_groups;

/* Lists the groups of two dumps. */
fxtap_status fx_pair_groups(fx_groups *groups);
/* Lists the groups of a dump's first rank with each other rank; both sides have the same steps. */
fxtap_status fx_pair_ranks(fx_groups *groups);

#endif
