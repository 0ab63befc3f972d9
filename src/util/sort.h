/* sort.h - qsort() for items that are usually sorted already, such as rows in order of creation. */
#ifndef FX_UTIL_SORT_H
#define FX_UTIL_SORT_H

#include <stddef.h>

/* As qsort(), but first checks whether the items are sorted. Not stable. */
void fx_sort(void *items, size_t n_items, size_t item_bytes, int (*compare)(const void *, const void *));

#endif
