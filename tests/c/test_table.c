/* The hash table against a plain array of the expected records. */
#include <stdbool.h>
#include <string.h>

#include "support_cmocka.h"
#include "util/table.h"

typedef struct item {
    fxtap_hash128 key;
    uint64_t value;
} item;

static fxtap_hash128 key_of(uint64_t n, uint64_t spread)
{
    return (fxtap_hash128){.high = n, .low = n % spread}; /* few distinct buckets: long probes */
}

static void count_forgotten(void *context, void *record)
{
    (void)record;
    ++*(size_t *)context;
}

static void test_forgets_the_oldest(void **state)
{
    (void)state;
    size_t n_forgotten = 0;
    fx_table table;
    fx_table_init(&table, sizeof(item), 100, count_forgotten, &n_forgotten);
    for (uint64_t i = 0; i < 1000; i++) {
        item *made = fx_table_insert(&table, key_of(i, 7));
        assert_non_null(made);
        made->value = i;
        for (uint64_t j = 0; j <= i; j++) {
            const item *found = fx_table_find(&table, key_of(j, 7));
            assert_true((found != NULL) == (j + 100 > i));
            assert_true(found == NULL || found->value == j);
        }
    }
    assert_int_equal(n_forgotten, 900);
    fx_table_clear(&table);
    assert_int_equal(n_forgotten, 1000);
    assert_null(fx_table_find(&table, key_of(999, 7)));
}

static void test_removes(void **state)
{
    (void)state;
    size_t n_forgotten = 0;
    bool there[400] = {false};
    fx_table table;
    fx_table_init(&table, sizeof(item), 1000, count_forgotten, &n_forgotten);
    uint32_t random = 1;
    for (int turn = 0; turn < 3000; turn++) {
        random = random * 1664525u + 1013904223u;
        size_t n = (random >> 8) % 400;
        item *found = fx_table_find(&table, key_of(n, 31));
        assert_true((found != NULL) == there[n]);
        if (found != NULL) {
            fx_table_remove(&table, found);
        } else {
            found = fx_table_insert(&table, key_of(n, 31));
            found->value = n;
        }
        there[n] = !there[n];
        if (turn % 100 == 0) { /* some were removed when the ring wrapped */
            for (size_t i = 0; i < 400; i++) {
                const item *is = fx_table_find(&table, key_of(i, 31));
                assert_true(is == NULL || is->value == i);
            }
        }
        if (turn > 900) {
            fx_table_clear(&table);
            memset(there, 0, sizeof there);
            turn += 300;
        }
    }
    fx_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forgets_the_oldest), cmocka_unit_test(test_removes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
