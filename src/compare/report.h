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

typedef struct fx_map fx_map;

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
    const fx_map *map;
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
/* Counts verdicts and pairings, finds the first non-finite pair. */
/* A pair of both sides that was judged beyond the first difference becomes what it would be, had it not been. */
void fx_pair_forget(fxtap_pair *pair);
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
/* The same between the ranks of one dump, which is both sides. */
fxtap_status fx_pair_ranks(fx_comparison *comparison);
/* ---- text_file.c, rules_file.c ---- */

/* A whole file of at most 4 MiB; on success out->bytes is never NULL. */
fxtap_status fx_text_file_read(const char *path, fxtap_buffer *out);
/* What fxtap_rules_load() does with the file's text; `path` is for messages. */
fxtap_status fx_rules_parse(const char *path, const char *text, size_t length, fxtap_rule **out, size_t *n_out);

/* ---- map.c ---- */

fxtap_status fx_map_load(fx_arena *arena, const char *path, const fx_map **out);
/* What that does with the file's text; `path` is for messages. */
fxtap_status fx_map_parse(fx_arena *arena, const char *path, const char *text, size_t length, const fx_map **out);
/* The target-side name that the map gives to a golden name, in `buffer`; the number of its entry from 1, 0 where it gives none. */
size_t fx_map_apply(const fx_map *map, const char *golden_name, char *buffer, size_t buffer_bytes);
/* What that entry stands for is there. One thread pairs. */
void fx_map_note_use(const fx_map *map, size_t entry);
/* Entries that never were of use, or that an earlier one hides, become warnings. */
fxtap_status fx_map_warn(const fx_map *map, const char *path, fxtap_report *report);

/* ---- rules.c ---- */

typedef struct fx_tolerance {
    double rtol, atol, min_cosine, max_abs, max_rel_l2, max_ulp; /* the last four negative: not asked for */
    bool elementwise; /* judge by rtol and atol; false where only metrics were asked for */
} fx_tolerance;

void fx_default_tolerance(fxtap_dtype dtype, double *rtol_out, double *atol_out);
void fx_tolerance_for(const fxtap_rule *rules, size_t n_rules, const fxtap_pair *pair, fx_tolerance *out);
/* The dtype that a pair is judged in: the less precise of the two originals. */
fxtap_dtype fx_judged_dtype(fxtap_dtype golden, fxtap_dtype target);

/* ---- link.c ---- */

/* When all pairs are there: points origins at theirs, in order of execution; with `is_whole` also tells those that began
   in another call. */
fxtap_status fx_link_origins(fxtap_report *report, bool is_whole);
/* The group that a pair lies in. */
const fxtap_group *fx_group_of(const fxtap_report *report, const fxtap_pair *pair);
/* True for a weight that was equal in an earlier step, after which nothing differed either: what changed it was not dumped.
   *step_out is that step. */
bool fx_update_before(const fxtap_report *report, const fxtap_origin *origin, int64_t *step_out);
/*
 * Which pairs get histograms: those of the first origins and the worst others. In a shard (not `is_whole`) any that may
 * be among these when the shards are merged. The caller frees *out, one flag a pair.
 */
fxtap_status fx_choose_details(const fxtap_report *report, bool is_whole, bool **out);
/* Takes away the details that a report of one process would not have. */
void fx_trim_details(fxtap_report *report, const bool *chosen);

/* ---- around.c ---- */

/* Histograms of the chosen pairs, from their files. */
fxtap_status fx_add_histograms(fxtap_report *report, const bool *chosen, uint32_t flags);

#endif
