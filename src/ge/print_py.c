/* The py form: its header; the body was written while the graph was built. */
#include "ge/ge.h"

void fx_ge_print_py(const fx_ge_graph *graph, fxtap_buffer *out)
{
    fxtap_buffer_text(out, "# -*- coding: utf-8 -*-\n"
                           "from torch import tensor\n"
                           "from torchair._ge_concrete_graph import ge_apis as ge\n"
                           "from torchair.ge._ge_graph import get_default_ge_graph\n\n");
    if (graph->py.length > 0) {
        fxtap_buffer_append(out, graph->py.bytes, graph->py.length);
    }
}
