#include "util/table.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "util/memory.h"

#define FIRST_CAPACITY 64

void fx_table_init(fx_table *table, size_t record_bytes, size_t limit, void (*forget)(void *, void *), void *context)
{
    assert(record_bytes >= sizeof(fxtap_hash128) && limit > 0 && limit < UINT32_MAX);
    memset(table, 0, sizeof *table);
    table->record_bytes = record_bytes;
    table->limit = limit;
    table->forget = forget;
    table->context = context;
}

static void *record_at(const fx_table *table, size_t place)
{
    return table->records + place * table->record_bytes;
}

static fxtap_hash128 key_of(const void *record)
{
    fxtap_hash128 key;
    memcpy(&key, record, sizeof key);
    return key;
}

static size_t home_of(const fx_table *table, fxtap_hash128 key)
{
    return (size_t)key.low & (table->n_buckets - 1);
}

static size_t find_bucket(const fx_table *table, fxtap_hash128 key)
{
    size_t at = home_of(table, key);
    while (table->buckets[at] != 0) {
        fxtap_hash128 other = key_of(record_at(table, table->buckets[at] - 1));
        if (other.low == key.low && other.high == key.high) {
            break;
        }
        at = (at + 1) & (table->n_buckets - 1);
    }
    return at;
}

void *fx_table_find(const fx_table *table, fxtap_hash128 key)
{
    if (table->n_buckets == 0) {
        return NULL;
    }
    size_t at = find_bucket(table, key);
    return table->buckets[at] != 0 ? record_at(table, table->buckets[at] - 1) : NULL;
}

/* Closes the gap at `at`: entries after it move up if they may, so that no probe stops too early. */
static void empty_bucket(fx_table *table, size_t at)
{
    size_t mask = table->n_buckets - 1;
    size_t next = (at + 1) & mask;
    while (table->buckets[next] != 0) {
        size_t home = home_of(table, key_of(record_at(table, table->buckets[next] - 1)));
        if (((next - home) & mask) >= ((next - at) & mask)) {
            table->buckets[at] = table->buckets[next];
            at = next;
        }
        next = (next + 1) & mask;
    }
    table->buckets[at] = 0;
}

/* A removed record keeps its place in the ring, but no bucket refers to it. */
static bool is_live(const fx_table *table, size_t place)
{
    size_t at = find_bucket(table, key_of(record_at(table, place)));
    return table->buckets[at] == place + 1;
}

void fx_table_remove(fx_table *table, void *record)
{
    size_t at = find_bucket(table, key_of(record));
    assert(table->buckets[at] != 0 && record_at(table, table->buckets[at] - 1) == record);
    if (table->forget != NULL) {
        table->forget(table->context, record);
    }
    empty_bucket(table, at);
}

static bool grow_buckets(fx_table *table, size_t n_buckets)
{
    uint32_t *old = table->buckets;
    size_t n_old = table->n_buckets;
    uint32_t *grown = fx_calloc(n_buckets, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    table->buckets = grown;
    table->n_buckets = n_buckets;
    for (size_t i = 0; i < n_old; i++) {
        if (old[i] != 0) {
            grown[find_bucket(table, key_of(record_at(table, old[i] - 1)))] = old[i];
        }
    }
    fx_free(old);
    return true;
}

static bool grow(fx_table *table)
{
    size_t wanted = table->capacity == 0 ? FIRST_CAPACITY : table->capacity * 2;
    wanted = wanted < table->limit ? wanted : table->limit;
    size_t n_buckets = table->n_buckets == 0 ? FIRST_CAPACITY * 2 : table->n_buckets;
    while (n_buckets < wanted * 2) {
        n_buckets *= 2;
    }
    if (n_buckets != table->n_buckets && !grow_buckets(table, n_buckets)) {
        return false;
    }
    unsigned char *records = fx_realloc_array(table->records, wanted, table->record_bytes);
    if (records == NULL) {
        return false;
    }
    table->records = records;
    table->capacity = wanted;
    return true;
}

void *fx_table_insert(fx_table *table, fxtap_hash128 key)
{
    if (table->used == table->capacity && table->used < table->limit && !grow(table)) {
        return NULL;
    }
    size_t place = table->used;
    if (table->used < table->limit) {
        table->used++;
    } else {
        place = table->oldest;
        table->oldest = (table->oldest + 1) % table->limit;
        if (is_live(table, place)) {
            fx_table_remove(table, record_at(table, place));
        }
    }
    unsigned char *record = record_at(table, place);
    memset(record, 0, table->record_bytes);
    memcpy(record, &key, sizeof key);
    size_t at = find_bucket(table, key);
    assert(table->buckets[at] == 0);
    table->buckets[at] = (uint32_t)(place + 1);
    return record;
}

void fx_table_clear(fx_table *table)
{
    for (size_t place = 0; place < table->used; place++) {
        if (table->forget != NULL && is_live(table, place)) {
            table->forget(table->context, record_at(table, place));
        }
    }
    fx_free(table->records);
    fx_free(table->buckets);
    fx_table_init(table, table->record_bytes, table->limit, table->forget, table->context);
}
