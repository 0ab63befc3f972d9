/* undefined.h - undefined elements of a pair, and findings of capture. */
#ifndef FX_COMPARE_UNDEFINED_H
#define FX_COMPARE_UNDEFINED_H

#include "compare/report.h"

/* Whether a side has undefined elements. */
bool fx_has_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);
/* Whether the undefined elements are the same on both sides. */
bool fx_same_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target);

/*
 * Whether the undefined elements are the same on both sides, and all other elements of the equally shaped arrays have
 * the same bytes. Files are needed for elements that may or may not have been written.
 */
bool fx_undefined_settles(const fxtap_tensor_info *golden, const fxtap_tensor_info *target, bool has_files);

/* Which elements are left out, in the order of fx_difference_run(). */
typedef struct fx_undefined_mask {
    uint8_t *bits; /* one byte per element; 0: judged */
    uint64_t n_elems;
    uint64_t n_left_out;
} fx_undefined_mask;

/* For two arrays of equal shape. FXTAP_E_NOMEM. */
fxtap_status fx_undefined_mask_create(const fxtap_tensor_info *golden, const fxtap_tensor_info *target,
                                      const fxtap_view *golden_view, const fxtap_view *target_view,
                                      fx_undefined_mask *out);
void fx_undefined_mask_clear(fx_undefined_mask *mask);
/* The next range of judged elements after [*first, *first + *count), which starts as 0, 0; false: none left. */
bool fx_undefined_mask_next(const fx_undefined_mask *mask, uint64_t *first, uint64_t *count);

/* Adds the findings of capture about a side's operators to the report's warnings, each line once. */
fxtap_status fx_warn_of_findings(fx_comparison *comparison, const fx_side *side, const char *which);

#endif
