/*
 * rules.h - rules of tolerance: read from a file, and applied to a pair.
 */
#ifndef FX_COMPARE_RULES_H
#define FX_COMPARE_RULES_H

#include "fxtap/compare.h"

/* A whole file of at most 4 MiB; on success out->bytes is never NULL. */
fxtap_status fx_text_file_read(const char *path, fxtap_buffer *out);
/* What fxtap_rules_load() does with the file's text; `path` is for messages. */
fxtap_status fx_rules_parse(const char *path, const char *text, size_t length, fxtap_rule **out, size_t *n_out);

typedef struct fx_tolerance {
    double rtol, atol, min_cosine, max_abs, max_rel_l2, max_ulp; /* the last four negative: not asked for */
    bool elementwise; /* judge by rtol and atol; false where only metrics were asked for */
} fx_tolerance;

void fx_default_tolerance(fxtap_dtype dtype, double *rtol_out, double *atol_out);
void fx_tolerance_for(const fxtap_rule *rules, size_t n_rules, const fxtap_pair *pair, fx_tolerance *out);
/* The dtype that a pair is judged in: the less precise of the two originals. */
fxtap_dtype fx_judged_dtype(fxtap_dtype golden, fxtap_dtype target);

#endif
