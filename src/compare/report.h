/*
 * report.h - inside a report, and what the files of src/compare share while one is being made.
 */
#ifndef FX_COMPARE_REPORT_H
#define FX_COMPARE_REPORT_H

#include <stdatomic.h>

#include "compare/wiring.h"
#include "fxtap/compare.h"
#include "util/texts.h"
#include "util/arena.h"

struct fxtap_report {
    fx_arena arena; /* every string and array below */
    const char *golden_path;
    const char *target_path;
    const char *explanation; /* of one node's pair; NULL: not asked for, or no node of that name was aligned */
    const char *steps; /* in words, what was aligned as an iteration; NULL: graphs are equal, or without an index */
    fxtap_pair *pairs;
    size_t n_pairs;
    size_t pairs_capacity;
    fxtap_group *groups;
    size_t n_groups;
    size_t groups_capacity;
    fxtap_origin *origins;
    size_t *origin_pairs; /* index of each origin's pair, until fx_link_origins() */
    size_t n_origins;
    size_t origins_capacity;
    size_t origin_pairs_capacity;
    const char **warnings;
    size_t n_warnings;
    size_t warnings_capacity;
    fxtap_rule *rules; /* the given ones, echoed in every report */
    size_t n_rules;
    size_t n_carried; /* operators whose output differs because an input does */
    uint64_t n_missing;
    uint64_t counts[FXTAP_VERDICT_COUNT];
    uint64_t pairing_counts[FXTAP_PAIR_COUNT];
    size_t first_non_finite; /* index of a pair, or SIZE_MAX */
    bool stopped_early;      /* fail_fast found a difference */
};

#define FX_DETAILED 8         /* how many origins get a neighbourhood and a histogram, how many other pairs a histogram */
#define FX_AROUND_GROUPS 64   /* in the first of how many groups origins may have one */

/* A step of a graph that holds tensors; a NULL step: the plain files. */
typedef struct fx_set {
    const fxtap_step_info *step;
} fx_set;

typedef struct fx_side {
    fxtap_reader *reader;
    fxtap_tensor_query query;
    fx_set *sets;
    size_t n_sets;
} fx_side;

/* What is aligned as one: a step of a graph against one of another, or all calls of an iteration against all of another. */
typedef struct fx_group_work {
    const fx_set *const *golden; /* calls in order */
    size_t n_golden;             /* 0: missing */
    const fx_set *const *target;
    size_t n_target;
    size_t number;               /* of the group, whatever the shard */
    int32_t rank;                /* under which the pairs are reported */
    fxtap_pairing pairing;
    bool same_structure;         /* one call of equal structure on either side: nodes pair by place */
    bool is_extra;               /* a graph that the other side did not have to run */
} fx_group_work;

typedef struct fx_comparison {
    const fxtap_compare_options *options;
    fxtap_report *report;
    fx_arena arena; /* what does not outlive the comparison */
    fx_texts texts; /* in the report's arena: most pairs share most of their texts and shapes */
    fx_side golden;
    fx_side target;
    fx_group_work *groups;
    size_t n_groups;
    size_t groups_capacity;
    const struct fx_map *map;
    fxtap_buffer explanation; /* lines of the report's, as groups are aligned */
    size_t n_begun;     /* groups that have been paired */
    size_t n_paired;    /* pairs of them */
    size_t n_judged;    /* of these, in batches that are done */
    bool found_bad;     /* fail_fast: what follows is not judged */
    atomic_bool stop;   /* a failure, or cancelled by the progress callback */
} fx_comparison;

/* ---- report.c ---- */

fxtap_report *fx_report_create(void);
fxtap_status fx_report_warn(fxtap_report *report, const char *line);
/* How the detail of a pair ends where a file has more than its data; such details become warnings. */
#define FX_TRAILING " bytes follow the data"
fxtap_status fx_report_warn_of_trailing(fxtap_report *report);
void fx_report_sort_warnings(fxtap_report *report); /* the same order whoever came upon them first */
/* `pair` is the index that the origin's pair has, or will have, in the report. */
fxtap_status fx_report_add_origin(fxtap_report *report, const fxtap_origin *origin, size_t pair);
fxtap_status fx_report_add_group(fxtap_report *report, const fxtap_group *group);
/* A pair of both sides that was judged beyond the first difference becomes what it would be, had it not been. */
void fx_pair_forget(fxtap_pair *pair);
/* Counts verdicts and pairings, finds the first non-finite pair. */
void fx_report_tally(fxtap_report *report);
/* The value of a single element. The mean is over finite elements: of an infinity alone, there is none. */
double fx_only_value(const fxtap_stats *stats);
bool fx_verdict_is_bad(fxtap_verdict verdict); /* the values disagree: different or mismatched */

/* ---- side.c, group.c ---- */

/* Both sides, each by a thread of its own where they have readers of their own. */
fxtap_status fx_sides_open(fx_comparison *comparison, fxtap_reader *golden, fxtap_reader *target);
/* FXTAP_E_NOT_FOUND where a run, rank, graph or step was asked for of which there is nothing. */
fxtap_status fx_side_check(const fx_comparison *comparison, const fx_side *side);
/* What the side's reader could not read as it should becomes warnings of the report. */
fxtap_status fx_side_warnings(fx_comparison *comparison, const fx_side *side, const char *which);
void fx_side_close(fx_side *side);
/* Which step of which graph is compared with which: fills comparison->groups. */
fxtap_status fx_pair_groups(fx_comparison *comparison);
/* What each call was given (its weights, or, of a backward without any, its inputs), as one number; 0: not known. */
fxtap_status fx_sign_calls(const fx_side *side, const fx_set *const *calls, size_t n, uint64_t *out);
/* Which of target's calls was given what each of golden's was, FX_MISSING: none; `is_taken` (zeroed) marks target's. */
fxtap_status fx_pair_calls(fx_comparison *comparison, const fx_set *const *golden, size_t n_golden,
                           const fx_set *const *target, size_t n_target, size_t *partners, bool *is_taken);
/* The same between the ranks of one dump, which is both sides. */
fxtap_status fx_pair_ranks(fx_comparison *comparison);

#endif
