/*
 * link.h - final steps once all pairs are judged: origins in order of execution, and which pairs get details.
 */
#ifndef FX_COMPARE_LINK_H
#define FX_COMPARE_LINK_H

#include "fxtap/compare.h"

/* Once all pairs are complete: sorts origins in order of execution and sets their pairs; with `is_whole` also handles
   errors that came from another call. */
fxtap_status fx_link_origins(fxtap_report *report, bool is_whole);
/* The group of a pair. */
const fxtap_group *fx_group_of(const fxtap_report *report, const fxtap_pair *pair);
/* In order of execution: by rank, then by call number; unknown numbers last. Both groups are of the same report. */
int fx_compare_groups(const fxtap_group *a, const fxtap_group *b);
/* True for a weight that was equal in an earlier step, *step_out, if nothing differed after that step: whatever changed
   the weight was not dumped. */
bool fx_update_before(const fxtap_report *report, const fxtap_origin *origin, int64_t *step_out);
/*
 * Which pairs get histograms: those of the first origins, and the worst others. In a shard (not `is_whole`), all that
 * may be among these after merging. The caller frees *out, which has one flag per pair.
 */
fxtap_status fx_choose_details(const fxtap_report *report, bool is_whole, bool **out);
/* Removes details that the report of a single process would not have. */
void fx_trim_details(fxtap_report *report, const bool *chosen);

/* Histograms of the chosen pairs, from their files. */
fxtap_status fx_add_histograms(fxtap_report *report, const bool *chosen, uint32_t flags);

#endif
