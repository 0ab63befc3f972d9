/* print.h - the output formats of a verification. */
#ifndef FX_VERIFY_PRINT_H
#define FX_VERIFY_PRINT_H

#include "util/output.h"
#include "verify/verification.h"

void fx_verification_print_text(const fxtap_verification *verification, const fxtap_report_options *options,
                                fxtap_buffer *out);
void fx_verification_print_json(const fxtap_verification *verification, fxtap_buffer *out);
void fx_verification_print_csv(const fxtap_verification *verification, fxtap_buffer *out);
void fx_verification_print_html(const fxtap_verification *verification, fxtap_buffer *out);

/* "nothing wrong", "wrong" */
const char *fx_verification_verdict(const fxtap_verification *verification);
/* The result that decides an operator's verdict. */
const fxtap_verify_result *fx_deciding_result(const fxtap_verification *verification, size_t i_operator);
/* Share of the elements that are misrounded (integers: that differ); NaN if nothing was measured. */
double fx_misrounded_share(const fxtap_rounding_error *error);
bool fx_verdict_accuses(fxtap_verify_verdict verdict); /* biased or wrong */

/* ---- json.c ---- */

/* The whole document; without `with_wrong` no operator is in it twice. */
void fx_verification_json_document(fxtap_json *json, const char *key, const fxtap_verification *verification,
                                   bool with_wrong);
/* Verdict, counts and the wrong operators. */
void fx_verification_json_wrong(fxtap_json *json, const char *key, const fxtap_verification *verification);

/* ---- downstream.c ---- */

/* What differs from golden only because of an operator. */
typedef struct fx_downstream {
    uint64_t count;
    size_t first; /* index of a result, if there is one */
} fx_downstream;

/* One for each operator, freed by the caller; those that are not wrong have none. FXTAP_E_NOMEM. */
fxtap_status fx_find_downstream(const fxtap_verification *verification, fx_downstream **out);

#endif
