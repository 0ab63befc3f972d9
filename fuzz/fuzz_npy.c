/* fuzz_npy.c - arbitrary bytes as an .npy file: opened, and if that succeeds, gathered, counted and read as text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/npy.h"
#include "fxtap/stats.h"

#define MAX_BYTES ((uint64_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gathers all elements, and the second half again: the results agree. */
static void gather(const fxtap_view *view)
{
    uint64_t count;
    uint64_t n_bytes;
    if (fxtap_view_count(view, &count) != FXTAP_OK || fxtap_view_saved_bytes(view, &n_bytes) != FXTAP_OK ||
        n_bytes > MAX_BYTES) {
        abort(); /* the file is at least as long as its data */
    }
    char *whole = malloc(n_bytes + 1);
    char *half = malloc(n_bytes + 1);
    if (whole == NULL || half == NULL || fxtap_view_gather(view, 0, count, whole) != FXTAP_OK) {
        abort();
    }
    uint64_t first = count / 2;
    size_t item = count > 0 ? n_bytes / count : 0;
    if (fxtap_view_gather(view, first, count - first, half) != FXTAP_OK ||
        memcmp(whole + first * item, half, (count - first) * item) != 0) {
        abort();
    }
    free(whole);
    free(half);
}

static void summarise(const fxtap_view *view)
{
    fxtap_stats stats;
    fxtap_hash128 hash;
    uint64_t count;
    uint64_t bins[4] = {0};
    if (fxtap_stats_compute(view, &stats, &hash) == FXTAP_OK) {
        if (fxtap_view_count(view, &count) != FXTAP_OK || stats.count != count) {
            abort();
        }
        if (fxtap_stats_histogram(view, -1, 1, 4, bins) == FXTAP_OK &&
            bins[0] + bins[1] + bins[2] + bins[3] > stats.finite_count) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fxtap_npy *npy;
    const char *text;
    if (fxtap_npy_open_bytes("input", data, size, &npy) != FXTAP_OK) {
        return 0;
    }
    const fxtap_view *view = fxtap_npy_view(npy);
    if (view->dtype != FXTAP_STRING) {
        gather(view);
        summarise(view);
    }
    if (fxtap_npy_text(npy, &text) == FXTAP_OK && strlen(text) > size) {
        abort(); /* UTF-8 is never longer than UCS-4 */
    }
    fxtap_npy_close(npy);
    return 0;
}
