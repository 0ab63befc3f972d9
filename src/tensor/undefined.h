/*
 * undefined.h - ranges of undefined elements (fxtap_undefined_range): validation, encoding, and statistics without
 * them.
 *
 * Encoding: for each range the distance from the end of the previous range, its length, and its kind, each an unsigned
 * LEB128 number.
 */
#ifndef FX_TENSOR_UNDEFINED_H
#define FX_TENSOR_UNDEFINED_H

#include "fxtap/stats.h"
#include "util/arena.h"
#include "util/output.h"

/* True if the ranges are ascending, disjoint, not empty, of known kinds, and within `n_elems`. */
bool fx_undefined_check(const fxtap_undefined_range *ranges, size_t n_ranges, uint64_t n_elems);

uint64_t fx_undefined_count(const fxtap_undefined_range *ranges, size_t n_ranges);

void fx_undefined_encode(const fxtap_undefined_range *ranges, size_t n_ranges, fxtap_buffer *out);

/* Decodes ranges that pass fx_undefined_check() into the arena. FXTAP_E_FORMAT for any other bytes; FXTAP_E_NOMEM. */
fxtap_status fx_undefined_decode(const void *bytes, size_t n_bytes, uint64_t n_elems, fx_arena *arena,
                                 const fxtap_undefined_range **out, size_t *n_out);

/*
 * As fxtap_stats_compute(), but only over the `count` elements outside the ranges; *hash_out covers all bytes,
 * *defined_hash_out only those of these elements. Same errors.
 */
fxtap_status fx_undefined_stats(const fxtap_view *view, const fxtap_undefined_range *ranges, size_t n_ranges,
                                fxtap_stats *out, fxtap_hash128 *hash_out, fxtap_hash128 *defined_hash_out);

#endif
