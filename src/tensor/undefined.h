/*
 * undefined.h - ranges of elements that hold nothing (fxtap_undefined_range): checked, as bytes, and left out of
 * statistics.
 *
 * As bytes: for each range the elements between the end of the one before and its first, their number, and its kind,
 * each an unsigned LEB128 number.
 */
#ifndef FX_TENSOR_UNDEFINED_H
#define FX_TENSOR_UNDEFINED_H

#include "fxtap/output.h"
#include "fxtap/stats.h"
#include "util/arena.h"

/* Whether they ascend, do not overlap, are not empty, of kinds that are known, and lie within `n_elems`. */
bool fx_undefined_check(const fxtap_undefined_range *ranges, size_t n_ranges, uint64_t n_elems);

uint64_t fx_undefined_count(const fxtap_undefined_range *ranges, size_t n_ranges);

void fx_undefined_encode(const fxtap_undefined_range *ranges, size_t n_ranges, fxtap_buffer *out);

/* Ranges that fx_undefined_check() accepts, in the arena. FXTAP_E_FORMAT for any other bytes; FXTAP_E_NOMEM. */
fxtap_status fx_undefined_decode(const void *bytes, size_t n_bytes, uint64_t n_elems, fx_arena *arena,
                                 const fxtap_undefined_range **out, size_t *n_out);

/*
 * What fxtap_stats_compute() gives, but of the elements outside of the ranges, whose number is `count`; *hash_out is of
 * all bytes, *defined_hash_out of those of these elements. Errors as there.
 */
fxtap_status fx_undefined_stats(const fxtap_view *view, const fxtap_undefined_range *ranges, size_t n_ranges,
                                fxtap_stats *out, fxtap_hash128 *hash_out, fxtap_hash128 *defined_hash_out);

#endif
