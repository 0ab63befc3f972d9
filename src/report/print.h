/* print.h - the output formats of a report. */
#ifndef FX_REPORT_PRINT_H
#define FX_REPORT_PRINT_H

#include "compare/report.h"

void fx_report_print_text(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out);
void fx_report_print_json(const fxtap_report *report, fxtap_buffer *out);
void fx_report_print_csv(const fxtap_report *report, fxtap_buffer *out);
void fx_report_print_html(const fxtap_report *report, fxtap_buffer *out);

/* FXTAP_E_INVALID if the options are of an older library, or their format is not known. */
fxtap_status fx_check_report_options(const fxtap_report_options *options);
/* One line of text: "its inputs agree, its output does not" */
const char *fx_origin_reason_text(fxtap_origin_reason reason);
/* "INPUT", "OUTPUT", "INOUT" */
const char *fx_io_name(fxtap_io io);
/* "2,3,4"; "" for 0-d; "?" if unknown. */
void fx_print_shape(fxtap_buffer *out, int32_t ndim, const int64_t *shape, const char *separator);
/* The coordinates of a flat row-major index: "0, 2, 1". */
void fx_print_coordinates(fxtap_buffer *out, uint64_t index, int32_t ndim, const int64_t *shape);

#endif
