/* undefined.h - elements of a pair that hold nothing, and findings of capture. */
#ifndef FX_COMPARE_UNDEFINED_H
#define FX_COMPARE_UNDEFINED_H

#include "compare/report.h"

/* Whether a side knows of elements that hold nothing. */
bool fx_has_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);
/* Whether they are the same on both sides. */
bool fx_same_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);

/*
 * Whether they are the same on both sides, and the others, of arrays of equal shape, the same bytes. Files tell more of
 * elements of which it is not known whether they were written.
 */
bool fx_undefined_settles(const fxtap_tensor_info *golden, const fxtap_tensor_info *target, bool has_files);

/* Which elements are left out, in the order in which fx_difference_run() takes them. */
typedef struct fx_undefined_mask {
    uint8_t *bits; /* an element each; 0: judged */
    uint64_t n_elems;
    uint64_t n_left_out;
} fx_undefined_mask;

/* Of two arrays of equal shape. FXTAP_E_NOMEM. */
fxtap_status fx_undefined_mask_create(const fxtap_tensor_info *golden, const fxtap_tensor_info *target,
                                      const fxtap_view *golden_view, const fxtap_view *target_view,
                                      fx_undefined_mask *out);
void fx_undefined_mask_clear(fx_undefined_mask *mask);
/* The next range of elements that are judged after [*first, *first + *count), 0 and 0 at first; false: none is left. */
bool fx_undefined_mask_next(const fx_undefined_mask *mask, uint64_t *first, uint64_t *count);

/* What capture found wrong with operators of a side becomes warnings of the report, each line once. */
fxtap_status fx_warn_of_findings(fx_comparison *comparison, const fx_side *side, const char *which);

#endif
