/* print.c - the table of formats, and those of the lowered graph: py, txt, pbtxt. */
#include <string.h>

#include "ge/ge.h"
#include "ge/lower.h"
#include "graph/print.h"
#include "util/error.h"

static fxtap_status lower(const fxtap_graph *graph, const fxtap_print_options *options, bool with_py,
                          fx_ge_graph **out)
{
    fx_ge_graph *ge = NULL;
    fxtap_status status = fx_lower_graph(graph, with_py, &ge);
    if (status == FXTAP_OK && options->optimised)
        status = fx_ge_optimise(ge);
    if (status != FXTAP_OK) {
        fx_ge_graph_free(ge);
        return status;
    }
    *out = ge;
    return FXTAP_OK;
}

static fxtap_status print_py(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, true, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_py(ge, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}

static fxtap_status print_txt(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, false, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_txt(ge, options->title == NULL ? "graph_1" : options->title, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}

static fxtap_status print_pbtxt(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, false, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_pbtxt(ge, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}

typedef struct print_format {
    fxtap_print_format format;
    const char *name;
    fx_print_function print;
} print_format;

static const print_format formats[] = {
    {FXTAP_PRINT_FX, "fx", fx_print_fx},
    {FXTAP_PRINT_JSON, "json", fx_print_json},
    {FXTAP_PRINT_DOT, "dot", fx_print_dot},
    {FXTAP_PRINT_PY, "py", print_py},
    {FXTAP_PRINT_TXT, "txt", print_txt},
    {FXTAP_PRINT_PBTXT, "pbtxt", print_pbtxt},
    {FXTAP_PRINT_HTML, "html", fx_print_html},
};

#define N_FORMATS (sizeof formats / sizeof *formats)

fxtap_status fxtap_print_format_from_name(const char *name, fxtap_print_format *out)
{
    FX_REQUIRE(name);
    FX_REQUIRE(out);
    char names[128] = "";
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            *out = formats[i].format;
            return FXTAP_OK;
        }
        strcat(strcat(names, i == 0 ? "" : ", "), formats[i].name);
    }
    return fx_error(FXTAP_E_INVALID, "%s: no format of a graph: those are %s", name, names);
}

fxtap_status fxtap_graph_print(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    if (options->struct_size != sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "struct_size %zu is not known", options->struct_size);
    }
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (formats[i].format == options->format) {
            fxtap_status status = formats[i].print(graph, options, out);
            return status != FXTAP_OK ? status : fxtap_buffer_status(out);
        }
    }
    return fx_error(FXTAP_E_INVALID, "graph format %d is not known", (int)options->format);
}
