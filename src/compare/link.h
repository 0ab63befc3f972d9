/*
 * link.h - what is known once all pairs are judged: origins in order of execution, and which pairs get details.
 */
#ifndef FX_COMPARE_LINK_H
#define FX_COMPARE_LINK_H

#include "fxtap/compare.h"

/* When all pairs are there: points origins at theirs, in order of execution; with `is_whole` also tells those that began
   in another call. */
fxtap_status fx_link_origins(fxtap_report *report, bool is_whole);
/* The group that a pair lies in. */
const fxtap_group *fx_group_of(const fxtap_report *report, const fxtap_pair *pair);
/* In order of execution: by rank, then by the number of the call; unknown numbers come last. Both are of one report. */
int fx_compare_groups(const fxtap_group *a, const fxtap_group *b);
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

/* Histograms of the chosen pairs, from their files. */
fxtap_status fx_add_histograms(fxtap_report *report, const bool *chosen, uint32_t flags);

#endif
