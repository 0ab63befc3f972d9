#include "report/print.h"

#include <inttypes.h>
#include <string.h>

#include "util/error.h"
#include "util/float_mode.h"

const char *fxtap_origin_reason_name(fxtap_origin_reason reason)
{
    switch (reason) {
    case FXTAP_ORIGIN_OPERATOR:
        return "operator";
    case FXTAP_ORIGIN_INPUT:
        return "graph input";
    case FXTAP_ORIGIN_WEIGHT:
        return "weight";
    case FXTAP_ORIGIN_RANDOM:
        return "random";
    case FXTAP_ORIGIN_REGION:
        return "region";
    case FXTAP_ORIGIN_DRIFT:
        return "drift";
    case FXTAP_ORIGIN_BEFORE:
        return "before";
    case FXTAP_ORIGIN_ROUNDING:
        return "rounding";
    }
    return "unknown";
}

const char *fx_origin_reason_text(fxtap_origin_reason reason)
{
    switch (reason) {
    case FXTAP_ORIGIN_OPERATOR:
        return "its inputs agree, its output does not";
    case FXTAP_ORIGIN_INPUT:
        return "an input of the whole graph differs already";
    case FXTAP_ORIGIN_WEIGHT:
        return "a weight differs already";
    case FXTAP_ORIGIN_RANDOM:
        return "it draws random numbers, and drew others: seeds differ";
    case FXTAP_ORIGIN_REGION:
        return "not all of its inputs could be compared: it began here or just above";
    case FXTAP_ORIGIN_DRIFT:
        return "small errors came in with its inputs, and left the tolerance here";
    case FXTAP_ORIGIN_BEFORE:
        return "an input of it differs already, though nothing before it was found to";
    case FXTAP_ORIGIN_ROUNDING:
        return "rounding: it does what golden's does, with the inputs that it got";
    }
    return "";
}

const char *fx_io_name(fxtap_io io)
{
    return io == FXTAP_INPUT ? "INPUT" : io == FXTAP_OUTPUT ? "OUTPUT" : "INOUT";
}

void fx_print_shape(fxtap_buffer *out, int32_t ndim, const int64_t *shape, const char *separator)
{
    if (ndim > 0 && shape == NULL) {
        fxtap_buffer_text(out, "?");
        return;
    }
    for (int32_t i = 0; i < ndim; i++) {
        fxtap_buffer_printf(out, "%s%" PRId64, i > 0 ? separator : "", shape[i]);
    }
}

void fx_print_coordinates(fxtap_buffer *out, uint64_t index, int32_t ndim, const int64_t *shape)
{
    uint64_t indices[FXTAP_MAX_DIMS];
    if (shape == NULL || ndim > FXTAP_MAX_DIMS) {
        return;
    }
    for (int32_t i = ndim - 1; i >= 0; i--) {
        uint64_t extent = shape[i] > 0 ? (uint64_t)shape[i] : 1;
        indices[i] = index % extent;
        index /= extent;
    }
    for (int32_t i = 0; i < ndim; i++) {
        fxtap_buffer_printf(out, "%s%" PRIu64, i > 0 ? ", " : "", indices[i]);
    }
}

fxtap_status fx_check_report_options(const fxtap_report_options *options)
{
    FX_REQUIRE(options);
    if (options->struct_size < sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "report options of %zu bytes, expected %zu", options->struct_size,
                        sizeof *options);
    }
    if (options->format < FXTAP_REPORT_TEXT || options->format > FXTAP_REPORT_HTML) {
        return fx_error(FXTAP_E_INVALID, "report format %d is not known", (int)options->format);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_report_print(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out)
{
    FX_REQUIRE(report);
    FX_REQUIRE(out);
    fxtap_status status = fx_check_report_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_float_mode callers = fx_float_mode_begin();
    switch (options->format) {
    case FXTAP_REPORT_TEXT:
        fx_report_print_text(report, options, out);
        break;
    case FXTAP_REPORT_JSON:
        fx_report_print_json(report, NULL, out);
        break;
    case FXTAP_REPORT_CSV:
        fx_report_print_csv(report, out);
        break;
    case FXTAP_REPORT_HTML:
        fx_report_print_html(report, NULL, out);
        break;
    }
    fx_float_mode_end(callers);
    return fxtap_buffer_status(out);
}
