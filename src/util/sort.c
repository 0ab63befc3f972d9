#include "util/sort.h"

#include <stdlib.h>

void fx_sort(void *items, size_t n_items, size_t item_bytes, int (*compare)(const void *, const void *))
{
    const char *at = items;
    size_t n_sorted = n_items > 0 ? 1 : 0;
    while (n_sorted < n_items && compare(at, at + item_bytes) <= 0) {
        at += item_bytes;
        n_sorted++;
    }
    if (n_sorted < n_items) {
        qsort(items, n_items, item_bytes, compare);
    }
}
