/*
 * rules.h - rules of tolerance: read from a file, and applied to a pair.
 */
#ifndef FX_COMPARE_RULES_H
#define FX_COMPARE_RULES_H

#include "fxtap/compare.h"

/* Parses the text of a rules file, for fxtap_rules_load(); `path` is for messages. */
fxtap_status fx_rules_parse(const char *path, const char *text, size_t length, fxtap_rule **out, size_t *n_out);

typedef struct fx_tolerance {
    double rtol, atol, min_cosine, max_abs, max_rel_l2, max_ulp; /* the last four: negative if not set */
    bool elementwise; /* judge by rtol and atol; false if only metrics are limited */
} fx_tolerance;

void fx_default_tolerance(fxtap_dtype dtype, double *rtol_out, double *atol_out);
void fx_tolerance_for(const fxtap_rule *rules, size_t n_rules, const fxtap_pair *pair, fx_tolerance *out);
/* The dtype that determines a pair's tolerance: the less precise of the two original dtypes. */
fxtap_dtype fx_judged_dtype(fxtap_dtype golden, fxtap_dtype target);

#endif
