/*
 * table.h - a bounded map from 128-bit keys (hashes) to small records of fixed size: when it is full, the oldest record
 * is removed. Not thread-safe: the owner locks.
 *
 * A record begins with its key (fxtap_hash128). Pointers to records are valid until the next insert.
 */
#ifndef FX_UTIL_TABLE_H
#define FX_UTIL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "fxtap/stats.h"

typedef struct fx_table {
    size_t record_bytes;
    size_t limit;                                /* maximum number of records */
    void (*forget)(void *context, void *record); /* called for a removed record; may be NULL */
    void *context;
    unsigned char *records; /* becomes a ring at `limit` */
    size_t capacity;
    size_t used;       /* ring places in use */
    size_t oldest;     /* next place to fill once used == limit */
    uint32_t *buckets; /* place + 1; 0 is empty; linear probing */
    size_t n_buckets;  /* a power of two */
} fx_table;

void fx_table_init(fx_table *table, size_t record_bytes, size_t limit, void (*forget)(void *, void *), void *context);
/* Removes all records and frees the memory; the table can be used again. */
void fx_table_clear(fx_table *table);

/* The record of a key, or NULL. */
void *fx_table_find(const fx_table *table, fxtap_hash128 key);
/* Adds a zeroed record for a new key. NULL: out of memory. */
void *fx_table_insert(fx_table *table, fxtap_hash128 key);
/* Removes a record. */
void fx_table_remove(fx_table *table, void *record);

#endif
