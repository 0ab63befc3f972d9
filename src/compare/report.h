/*
 * report.h - the contents of a report, and the state that the files of src/compare share while it is made.
 */
#ifndef FX_COMPARE_REPORT_H
#define FX_COMPARE_REPORT_H

#include <stdatomic.h>

#include "fxtap/compare.h"
#include "pair/groups.h"
#include "pair/map.h"
#include "util/arena.h"
#include "util/output.h"
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
    size_t first_non_finite;          /* index of a pair, or SIZE_MAX */
    struct {                          /* what fxtap_report_verify() found */
        bool is_known, is_rounding;   /* it ran; rounding explains everything that differs */
        uint64_t n_replayed, n_wrong; /* operators */
        const char *first_wrong;      /* node */
    } verified;
    bool stopped_early; /* fail_fast found a difference */
};

#define FX_DETAILED 8       /* origins with a neighbourhood and a histogram; also other pairs with a histogram */
#define FX_AROUND_GROUPS 64 /* number of groups, from the first, whose origins may have a neighbourhood */

typedef struct fx_comparison {
    const fxtap_compare_options *options;
    fxtap_report *report;
    fx_arena arena; /* everything that does not outlive the comparison */
    fx_texts texts; /* interned in the report's arena: most pairs share their texts and shapes */
    fx_side golden;
    fx_side target;
    fx_groups groups;
    const fx_map *map;
    fxtap_buffer explanation; /* lines of the report's explanation, appended as groups are aligned */
    size_t n_begun;           /* groups that have been paired */
    size_t n_paired;          /* pairs of these groups */
    size_t n_judged;          /* pairs in finished batches */
    bool found_bad;           /* fail_fast: later pairs are not judged */
    atomic_bool stop;         /* a failure, or cancelled by the progress callback */
} fx_comparison;

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

#endif
