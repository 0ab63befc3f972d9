/*
 * graph_use.h - uses a graph in every way and checks its invariants; for the harnesses that create graphs.
 */
#ifndef FUZZ_GRAPH_USE_H
#define FUZZ_GRAPH_USE_H

#include <stdlib.h>
#include <string.h>

#include "fxtap/print.h"
#include "graph/record.h"

/* Bytes of text allowed for each unit of weight of a graph; more is a fault. */
#define BYTES_A_WEIGHT 1024

static inline void use_text(const fxtap_graph *graph, fxtap_buffer *out)
{
    if (out->length > BYTES_A_WEIGHT * fx_graph_weight_max(graph)) {
        abort();
    }
    fxtap_buffer_clear(out);
}

static inline void print_graph(const fxtap_graph *graph)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    for (int format = FXTAP_PRINT_FX; format <= FXTAP_PRINT_PBTXT; format++) {
        fxtap_print_options options = {.struct_size = sizeof options, .format = (fxtap_print_format)format};
        fxtap_graph_print(graph, &options, &out);
        use_text(graph, &out);
        options.optimised = true;
        fxtap_graph_print(graph, &options, &out);
        use_text(graph, &out);
    }
    fxtap_summary_options summary = {.struct_size = sizeof summary};
    fxtap_graph_summary(graph, &summary, &out);
    use_text(graph, &out);
}

static inline void print_selected(const fxtap_graph *graph, const fxtap_select_options *select)
{
    fxtap_graph *part = NULL;
    if (fxtap_graph_select(graph, select, &part) == FXTAP_OK) {
        print_graph(part);
        fxtap_graph_free(part);
    }
}

static inline void use_graph(const fxtap_graph *graph, unsigned hops)
{
    fxtap_hash128 strict = fxtap_graph_strict_key(graph), structural = fxtap_graph_structural_key(graph);
    print_graph(graph);
    print_selected(graph, &(fxtap_select_options){.struct_size = sizeof(fxtap_select_options), .op = "*a*"});
    if (fxtap_graph_node_count(graph) > 0) {
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        fxtap_node middle = (fxtap_node)(fxtap_graph_node_count(graph) / 2);
        if (fxtap_graph_node(graph, middle, &desc) != FXTAP_OK) {
            abort();
        }
        print_selected(graph, &(fxtap_select_options){
                                  .struct_size = sizeof(fxtap_select_options), .around = desc.name, .hops = hops});
    }
    void *bytes = NULL, *again = NULL;
    size_t n_bytes = 0, n_again = 0;
    fxtap_graph *copy = NULL;
    if (fxtap_graph_serialise(graph, &bytes, &n_bytes) != FXTAP_OK ||
        fxtap_graph_deserialise(bytes, n_bytes, &copy) != FXTAP_OK ||
        fxtap_graph_serialise(copy, &again, &n_again) != FXTAP_OK) {
        abort(); /* a graph that was built can be serialised and read back */
    }
    fxtap_hash128 strict_copy = fxtap_graph_strict_key(copy), structural_copy = fxtap_graph_structural_key(copy);
    if (n_again != n_bytes || memcmp(bytes, again, n_bytes) != 0 || memcmp(&strict, &strict_copy, sizeof strict) != 0 ||
        memcmp(&structural, &structural_copy, sizeof structural) != 0) {
        abort();
    }
    fxtap_graph_free(copy);
    fxtap_free(bytes);
    fxtap_free(again);
}

#endif
