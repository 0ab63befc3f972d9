/*
 * fuzz_graph_record.c - reads records from arbitrary bytes, and calls every function on them.
 *
 * The checksum would reject every mutation, so the harness first sets the checksum and the length of the whole record;
 * those of subgraphs are not changed.
 */
#define XXH_INLINE_ALL
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/serialise.h"
#include "graph_use.h"

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
        use_graph(graph, (unsigned)size % 4);
        fxtap_graph_free(graph);
    }
    free(bytes);
    return 0;
}
