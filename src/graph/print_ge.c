/* The formats of the lowered graph: py, txt, pbtxt. */
#include "graph/ge.h"
#include "graph/lower.h"
#include "graph/print.h"

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

fxtap_status fx_print_py(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, true, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_py(ge, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}

fxtap_status fx_print_txt(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, false, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_txt(ge, options->title == NULL ? "graph_1" : options->title, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}

fxtap_status fx_print_pbtxt(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out)
{
    fx_ge_graph *ge;
    fxtap_status status = lower(graph, options, false, &ge);
    if (status != FXTAP_OK)
        return status;
    fx_ge_print_pbtxt(ge, out);
    fx_ge_graph_free(ge);
    return FXTAP_OK;
}
