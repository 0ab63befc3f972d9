/*
 * report.h - the contents of a report, and the state that the files of src/compare share while it is made.
 */
#ifndef FX_COMPARE_REPORT_H
#define FX_COMPARE_REPORT_H

#include <stdatomic.h>

#include "compare/wiring.h"
#include "fxtap/compare.h"
#include "util/arena.h"
#include "util/texts.h"

struct fxtap_report {
    fx_arena arena; /* every string and array below */
    const char *golden_path;
    const char *target_path;
    const char
        *explanation;  /* explains one node's pairing; NULL: not requested, or no node with that name was aligned */
    const char *steps; /* describes what was aligned as an iteration; NULL: equal graphs, or no index */
    fxtap_pair *pairs;
    size_t n_pairs;
    size_t pairs_capacity;
    fxtap_group *groups;
    size_t n_groups;
    size_t groups_capacity;
    fxtap_origin *origins;
    size_t *origin_pairs; /* index of each origin's pair, valid until fx_link_origins() */
    size_t n_origins;
    size_t origins_capacity;
    size_t origin_pairs_capacity;
    const char **warnings;
    size_t n_warnings;
    size_t warnings_capacity;
    fxtap_rule *rules; /* the given rules, echoed in every report */
    size_t n_rules;
    size_t n_carried; /* operators whose output differs because an input does */
    uint64_t n_missing;
    uint64_t counts[FXTAP_VERDICT_COUNT];
    uint64_t pairing_counts[FXTAP_PAIR_COUNT];
    size_t first_non_finite; /* index of a pair, or SIZE_MAX */
    bool stopped_early;      /* fail_fast found a difference */
};

#define FX_DETAILED 8       /* origins with a neighbourhood and a histogram; also other pairs with a histogram */
#define FX_AROUND_GROUPS 64 /* number of groups, from the first, whose origins may have a neighbourhood */

typedef struct fx_side {
    fxtap_reader *reader;
    fxtap_tensor_query query;
    const fxtap_step_info **steps; /* those with tensors; NULL: the plain files. Owned */
    size_t n_steps;
} fx_side;

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

typedef struct fx_comparison {
    const fxtap_compare_options *options;
    fxtap_report *report;
    fx_arena arena; /* everything that does not outlive the comparison */
    fx_texts texts; /* interned in the report's arena: most pairs share their texts and shapes */
    fx_side golden;
    fx_side target;
    fx_group_work *groups;
    size_t n_groups;
    size_t groups_capacity;
    const struct fx_map *map;
    fxtap_buffer explanation; /* lines of the report's explanation, appended as groups are aligned */
    size_t n_begun;           /* groups that have been paired */
    size_t n_paired;          /* pairs of these groups */
    size_t n_judged;          /* pairs in finished batches */
    bool found_bad;           /* fail_fast: later pairs are not judged */
    atomic_bool stop;         /* a failure, or cancelled by the progress callback */
} fx_comparison;

/* ---- report.c ---- */

fxtap_report *fx_report_create(void);
fxtap_status fx_report_warn(fxtap_report *report, const char *line);
/* End of the detail of a pair whose file has bytes after its data; such details become warnings. */
#define FX_TRAILING " bytes follow the data"
fxtap_status fx_report_warn_of_trailing(fxtap_report *report);
void fx_report_sort_warnings(fxtap_report *report); /* the order does not depend on threads */
/* `pair` is the index that the origin's pair has, or will have, in the report. */
fxtap_status fx_report_add_origin(fxtap_report *report, const fxtap_origin *origin, size_t pair);
fxtap_status fx_report_add_group(fxtap_report *report, const fxtap_group *group);
/* Resets a pair that was judged after the first difference to its state before judging. */
void fx_pair_forget(fxtap_pair *pair);
/* Counts verdicts and pairings, finds the first non-finite pair. */
void fx_report_tally(fxtap_report *report);
/* The value of a single element. The mean covers only finite elements: it does not exist for a single infinity. */
double fx_only_value(const fxtap_stats *stats);
bool fx_verdict_is_bad(fxtap_verdict verdict); /* the values disagree: different or mismatched */

/* ---- side.c, group.c ---- */

/* Opens both sides, in two threads if they have separate readers. */
fxtap_status fx_sides_open(fx_comparison *comparison, fxtap_reader *golden, fxtap_reader *target);
/* FXTAP_E_NOT_FOUND if the side has nothing of the requested run, rank, graph or step. */
fxtap_status fx_side_check(const fx_comparison *comparison, const fx_side *side);
/* Adds the warnings of the side's reader to the report. */
fxtap_status fx_side_warnings(fx_comparison *comparison, const fx_side *side, const char *which);
void fx_side_close(fx_side *side);
/* Which step of which graph is compared with which: fills comparison->groups. */
fxtap_status fx_pair_groups(fx_comparison *comparison);
/* The signature (0: none yet) of what a call was given, with one more value of this hash. */
uint64_t fx_add_to_signature(uint64_t signature, fxtap_hash128 hash);
/* A signature of each call's weights or, for a backward without weights, of its inputs; 0: unknown. */
fxtap_status fx_sign_calls(const fx_side *side, const fxtap_step_info *const *calls, size_t n, uint64_t *out);
/*
 * Sets, for each of golden's calls, target's call with the same inputs. `partners` (FX_MISSING) and `is_taken` (false)
 * are given as for calls without a partner.
 */
fxtap_status fx_pair_calls(fx_comparison *comparison, const fxtap_step_info *const *golden, size_t n_golden,
                           const fxtap_step_info *const *target, size_t n_target, size_t *partners, bool *is_taken);
/* The same between the ranks of one dump, which is both sides. */
fxtap_status fx_pair_ranks(fx_comparison *comparison);

#endif
