#include "verify/print.h"

#include <math.h>

#include "report/print.h"
#include "util/error.h"
#include "util/float_mode.h"

const char *fx_verification_verdict(const fxtap_verification *verification)
{
    return fxtap_verification_is_wrong(verification) ? "wrong" : "nothing wrong";
}

const fxtap_verify_result *fx_deciding_result(const fxtap_verification *verification, size_t i_operator)
{
    return &verification->results[verification->operators[i_operator].worst];
}

double fx_misrounded_share(const fxtap_rounding_error *error)
{
    return error->count > 0 ? (double)error->misrounded / (double)error->count : (double)NAN;
}

bool fx_verdict_accuses(fxtap_verify_verdict verdict)
{
    return verdict >= FXTAP_VERIFY_BIASED;
}

fxtap_status fxtap_verification_print(const fxtap_verification *verification, const fxtap_report_options *options,
                                      fxtap_buffer *out)
{
    FX_REQUIRE(verification);
    FX_REQUIRE(out);
    fxtap_status status = fx_check_report_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_float_mode callers = fx_float_mode_begin();
    switch (options->format) {
    case FXTAP_REPORT_TEXT:
        fx_verification_print_text(verification, options, out);
        break;
    case FXTAP_REPORT_JSON:
        fx_verification_print_json(verification, out);
        break;
    case FXTAP_REPORT_CSV:
        fx_verification_print_csv(verification, out);
        break;
    case FXTAP_REPORT_HTML:
        fx_verification_print_html(verification, out);
        break;
    }
    fx_float_mode_end(callers);
    return fxtap_buffer_status(out);
}
