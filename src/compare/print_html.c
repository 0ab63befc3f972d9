/* print_html.c - the report as one page. */
#include "compare/print.h"

void fx_report_print_html(const fxtap_report *report, fxtap_buffer *out)
{
    (void)report;
    out->status = FXTAP_E_UNSUPPORTED;
}
