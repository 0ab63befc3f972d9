/* print.c - the table of formats, and the formats of the lowered graph: py, txt, pbtxt. */
#include <string.h>

#include "ge/ge.h"
#include "ge/lower.h"
#include "graph/print.h"
#include "util/error.h"

static const char py_head[] = "# -*- coding: utf-8 -*-\n"
                              "from torch import tensor\n"
                              "from torchair._ge_concrete_graph import ge_apis as ge\n"
                              "from torchair.ge._ge_graph import get_default_ge_graph\n\n";

static fxtap_status print_lowered(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge = NULL;
    fxtap_status status = fx_lower_graph(graph, options->format == FXTAP_PRINT_PY, &ge);
    if (status == FXTAP_OK && options->optimised) {
        status = fx_ge_optimise(ge);
    }
    if (status == FXTAP_OK && options->format == FXTAP_PRINT_PY) {
        fxtap_buffer_text(out, py_head);
        fxtap_buffer_append(out, ge->py.bytes, ge->py.length); /* written while the graph was built */
    } else if (status == FXTAP_OK && options->format == FXTAP_PRINT_TXT) {
        fx_ge_print_txt(ge, options->title == NULL ? "graph_1" : options->title, out);
    } else if (status == FXTAP_OK) {
        fx_ge_print_pbtxt(ge, out);
    }
    fx_ge_graph_free(ge);
    return status;
}

typedef struct print_format {
    fxtap_print_format format;
    const char *name;
    fx_print_function print;
} print_format;

static const print_format formats[] = {
    {FXTAP_PRINT_FX, "fx", fx_print_fx},       {FXTAP_PRINT_JSON, "json", fx_print_json},
    {FXTAP_PRINT_DOT, "dot", fx_print_dot},    {FXTAP_PRINT_PY, "py", print_lowered},
    {FXTAP_PRINT_TXT, "txt", print_lowered},   {FXTAP_PRINT_PBTXT, "pbtxt", print_lowered},
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
    return fx_error(FXTAP_E_INVALID, "%s: unknown graph format, expected one of %s", name, names);
}

fxtap_status fxtap_graph_print(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    if (options->struct_size != sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "unknown struct_size %zu", options->struct_size);
    }
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (formats[i].format == options->format) {
            fxtap_status status = formats[i].print(graph, options, out);
            return status != FXTAP_OK ? status : fxtap_buffer_status(out);
        }
    }
    return fx_error(FXTAP_E_INVALID, "unknown graph format %d", (int)options->format);
}
