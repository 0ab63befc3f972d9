/* fuzz_verify_shard.c - arbitrary bytes as shards of a verification: merged, printed and serialised without a crash. */
#include <stdlib.h>

#include "fxtap/verify.h"

static void print(const fxtap_verification *verification)
{
    for (int format = FXTAP_REPORT_TEXT; format <= FXTAP_REPORT_HTML; format++) {
        fxtap_report_options options = {.struct_size = sizeof options, .format = (fxtap_report_format)format};
        fxtap_buffer text;
        fxtap_buffer_init(&text);
        if (fxtap_verification_print(verification, &options, &text) != FXTAP_OK &&
            fxtap_buffer_status(&text) != FXTAP_E_NOMEM) {
            abort();
        }
        fxtap_buffer_clear(&text);
    }
}

/* What was merged is a valid shard: it merges again. */
static void serialise_again(const fxtap_verification *verification)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_verification *again = NULL;
    if (fxtap_verification_serialise(verification, &bytes, &n_bytes) == FXTAP_OK) {
        const void *shard = bytes;
        if (fxtap_verification_merge(&shard, &n_bytes, 1, &again) == FXTAP_E_FORMAT) {
            abort();
        }
    }
    fxtap_free(bytes);
    fxtap_verification_free(again);
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
    fxtap_verification *verification = NULL;
    if (data[0] == 0) {
        shards[0] = shards[1];
        n_bytes[0] = n_bytes[1];
    }
    if (fxtap_verification_merge(shards, n_bytes, data[0] == 0 ? 1 : 2, &verification) == FXTAP_OK) {
        print(verification);
        serialise_again(verification);
        fxtap_verification_free(verification);
    }
    return 0;
}
