/*
 * table.h - a map from 128-bit keys (hashes) to small records of fixed size, bounded: when it is full the oldest
 * record is forgotten. Not thread-safe: the owner locks.
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
    size_t limit; /* most records kept */
    void (*forget)(void *context, void *record); /* called for a record that is dropped; may be NULL */
    void *context;
    unsigned char *records; /* a ring once `limit` is reached */
    size_t capacity;
    size_t used;   /* places of the ring that were ever filled */
    size_t oldest; /* the place filled next once used == limit */
    uint32_t *buckets; /* place + 1; 0 is empty; linear probing */
    size_t n_buckets;  /* a power of two */
} fx_table;

void fx_table_init(fx_table *table, size_t record_bytes, size_t limit, void (*forget)(void *, void *), void *context);
/* Forgets everything and frees the memory; the table is as after init. */
void fx_table_clear(fx_table *table);

/* The record of a key, or NULL. */
void *fx_table_find(const fx_table *table, fxtap_hash128 key);
/* A zeroed record for a key that is not there. NULL: no memory. */
void *fx_table_insert(fx_table *table, fxtap_hash128 key);
/* Forgets a record. */
void fx_table_remove(fx_table *table, void *record);

#endif
