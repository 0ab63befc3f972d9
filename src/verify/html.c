/* html.c - a verification as a self-contained page: page.html with the JSON of the operators inserted. */
#include "report/print.h"
#include "verify/print.h"

extern const char fx_verify_page[];

void fx_verification_print_html(const fxtap_verification *verification, fxtap_buffer *out)
{
    const char *rest = fx_page_begin(out, fx_verify_page);
    fxtap_json json;
    fxtap_json_init(&json, out, false);
    json.for_html = true; /* no name from a dump can end the element */
    fx_verification_json_document(&json, NULL, verification, false);
    fx_page_end(out, rest);
}
