/* page_text.h - lines for a terminal: width, colour, and safe output of text from dumps. */
#ifndef FX_REPORT_PAGE_TEXT_H
#define FX_REPORT_PAGE_TEXT_H

#include "report/print.h"

typedef struct fx_page {
    const fxtap_report *report;
    const fxtap_report_options *options;
    fxtap_buffer *out;
    int32_t width;
} fx_page;

void fx_page_colour(const fx_page *p, const char *code);
/*
 * Text from a dump within `limit` columns: control characters, invalid UTF-8 and bidirectional control marks become
 * "?"; a longer text loses its end, or its beginning with `keep_end`. Returns the columns used.
 */
int32_t fx_page_text(const fx_page *p, const char *text, int32_t limit, bool keep_end);
/* The same on as many lines as needed, broken between words if possible; all but the first are indented by `indent`
   blanks, which reduce the width. */
void fx_page_wrapped(const fx_page *p, const char *text, int32_t indent);
/* The text of a buffer that was filled for the page; "" if it failed, and then the page has failed. */
const char *fx_page_scratch_text(const fx_page *p, const fxtap_buffer *scratch);
/* "  label   ", dim; 10 columns. */
void fx_page_label(const fx_page *p, const char *label);
void fx_page_number(const fx_page *p, double value);
/* Two numbers, with enough digits to distinguish them. */
void fx_page_two_numbers(const fx_page *p, const char *before, double first, const char *between, double second);
/* A number with thousands separated by commas. */
void fx_page_count(const fx_page *p, uint64_t value);
void fx_page_counted(const fx_page *p, uint64_t value, const char *singular, const char *plural);

/* Lines of text, each indented. */
void fx_page_lines(const fx_page *p, const char *lines);

/* ---- print_text_rewritten.c ---- */

void fx_page_rewritten(const fx_page *p);

/* ---- print_text_origin.c ---- */

void fx_page_origins(const fx_page *p);

#endif
