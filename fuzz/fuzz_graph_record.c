/*
 * fuzz_graph_record.c - records from bytes that nothing is known about, and everything that is done with them.
 *
 * The checksum would stop every change to an input, so the harness writes the right one, and the right length, first:
 * into the whole record; those of its subgraphs stay as they are.
 */
#define XXH_INLINE_ALL
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fxtap/print.h"
#include "graph/serialise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *bytes, size_t size)
{
    uint64_t n_bytes = size - FX_RECORD_HEAD_BYTES;
    uint64_t checksum = XXH3_64bits(bytes + FX_RECORD_HEAD_BYTES, (size_t)n_bytes);
    for (unsigned i = 0; i < 8; i++) {
        bytes[16 + i] = (uint8_t)(n_bytes >> (8 * i));
        bytes[24 + i] = (uint8_t)(checksum >> (8 * i));
    }
}

static void print_all(const fxtap_graph *graph)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    for (int format = FXTAP_PRINT_FX; format <= FXTAP_PRINT_PBTXT; format++) {
        fxtap_print_options options = {.struct_size = sizeof options, .format = (fxtap_print_format)format};
        fxtap_graph_print(graph, &options, &out);
        fxtap_buffer_clear(&out);
        options.optimised = true;
        fxtap_graph_print(graph, &options, &out);
        fxtap_buffer_clear(&out);
    }
    fxtap_summary_options summary = {.struct_size = sizeof summary};
    fxtap_graph_summary(graph, &summary, &out);
    fxtap_buffer_clear(&out);
}

static void use(const fxtap_graph *graph)
{
    fxtap_hash128 key = fxtap_graph_strict_key(graph);
    (void)key;
    key = fxtap_graph_structural_key(graph);
    print_all(graph);
    fxtap_select_options select = {.struct_size = sizeof select, .op = "*a*"};
    fxtap_graph *part = NULL;
    if (fxtap_graph_select(graph, &select, &part) == FXTAP_OK) {
        print_all(part);
        fxtap_graph_free(part);
    }
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_graph *copy = NULL;
    if (fxtap_graph_serialise(graph, &bytes, &n_bytes) != FXTAP_OK ||
        fxtap_graph_deserialise(bytes, n_bytes, &copy) != FXTAP_OK) {
        abort(); /* what was read can be written, and read again */
    }
    fxtap_graph_free(copy);
    fxtap_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data, size);
    fxtap_graph *graph = NULL;
    if (fxtap_graph_deserialise(bytes, size, &graph) != FXTAP_OK && size >= FX_RECORD_HEAD_BYTES) {
        mend(bytes, size);
        graph = NULL;
        fxtap_graph_deserialise(bytes, size, &graph);
    }
    if (graph != NULL) {
        use(graph);
        fxtap_graph_free(graph);
    }
    free(bytes);
    return 0;
}
