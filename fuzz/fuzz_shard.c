/* fuzz_shard.c - arbitrary bytes as shards of a report: merged and printed without a crash. */
#include <stdlib.h>

#include "fxtap/compare.h"

static void print(const fxtap_report *report)
{
    for (int format = FXTAP_REPORT_TEXT; format <= FXTAP_REPORT_HTML; format++) {
        fxtap_report_options options = {.struct_size = sizeof options, .format = (fxtap_report_format)format};
        fxtap_buffer text;
        fxtap_buffer_init(&text);
        if (fxtap_report_print(report, &options, &text) != FXTAP_OK && fxtap_buffer_status(&text) != FXTAP_E_NOMEM) {
            abort();
        }
        fxtap_buffer_clear(&text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte is the position at which the input is split into two shards (0: one shard). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t left = (size - 1) * data[0] / 256;
    const void *shards[] = {data + 1, data + 1 + left};
    size_t n_bytes[] = {left, size - 1 - left};
    fxtap_report *report = NULL;
    if (data[0] == 0) {
        shards[0] = shards[1];
        n_bytes[0] = n_bytes[1];
    }
    if (fxtap_report_merge(shards, n_bytes, data[0] == 0 ? 1 : 2, &report) == FXTAP_OK) {
        print(report);
        fxtap_report_free(report);
    }
    return 0;
}
