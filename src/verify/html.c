/*
 * html.c - a verification as a self-contained page: page.html with the style of a comparison's page and the JSON of the
 * operators inserted. `<`, `>` and `&` in the data are escaped, so that no name from a dump can end its element.
 */
#include <string.h>

#include "verify/print.h"

extern const char fx_compare_page[];
extern const char fx_verify_page[];

#define STYLE_END "</style>"

/* Writes the page up to `mark` and returns what follows the mark. */
static const char *write_until(fxtap_buffer *out, const char *page, const char *mark)
{
    const char *at = strstr(page, mark);
    fxtap_buffer_append(out, page, (size_t)(at - page));
    return at + strlen(mark);
}

void fx_verification_print_html(const fxtap_verification *verification, fxtap_buffer *out)
{
    const char *style = strstr(fx_compare_page, "<style>"), *end = strstr(style, STYLE_END) + strlen(STYLE_END);
    const char *rest = write_until(out, fx_verify_page, "@STYLE@");
    fxtap_buffer_append(out, style, (size_t)(end - style));
    rest = write_until(out, rest, "@DATA@");
    fxtap_json json;
    fxtap_json_init(&json, out, false);
    json.for_html = true;
    fx_verification_json_document(&json, verification, false);
    fxtap_buffer_text(out, rest);
}
