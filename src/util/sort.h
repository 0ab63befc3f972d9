/* sort.h - qsort() for what is mostly in order already, as rows that were read in the order of their making. */
#ifndef FX_UTIL_SORT_H
#define FX_UTIL_SORT_H

#include <stddef.h>

/* As qsort(); a look through it first, which is all where the items are in order. Equal ones may change places. */
void fx_sort(void *items, size_t n_items, size_t item_bytes, int (*compare)(const void *, const void *));

#endif
