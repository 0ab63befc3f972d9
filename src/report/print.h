/* print.h - the output formats of a report. */
#ifndef FX_REPORT_PRINT_H
#define FX_REPORT_PRINT_H

#include "compare/report.h"

/* Members that are written at the end of the report's object. */
typedef struct fx_report_more {
    void (*write)(fxtap_json *json, const void *context);
    const void *context;
} fx_report_more;

void fx_report_print_text(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out);
/* The two parts of the text: its first line, and the rest (nothing if `quiet`). */
void fx_report_print_headline(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out);
void fx_report_print_details(const fxtap_report *report, const fxtap_report_options *options, fxtap_buffer *out);
/* `more` may be NULL. */
void fx_report_print_json(const fxtap_report *report, const fx_report_more *more, fxtap_buffer *out);
void fx_report_print_csv(const fxtap_report *report, fxtap_buffer *out);
void fx_report_print_html(const fxtap_report *report, const fx_report_more *more, fxtap_buffer *out);

/* Writes a page, with the style and the script of all reports, up to its data; returns the rest for fx_page_end(). */
const char *fx_page_begin(fxtap_buffer *out, const char *text_of_page);
void fx_page_end(fxtap_buffer *out, const char *rest);

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
