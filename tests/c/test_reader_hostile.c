/*
 * Damaged, foreign or hostile indexes: a warning and reading by file names, never a crash or a path outside the dump.
 */
#include "support_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/reader.h"
#include "index/schema.h"
#include "support_dump.h"
#include "support_reader.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"
#define INDEX RANK "/" FX_INDEX_FILE

static void assert_read_by_names(size_t n_tensors)
{
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(sr_count(reader, NULL), n_tensors);
    assert_true(fxtap_reader_warning_count(reader) >= 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), FX_INDEX_FILE));
    fxtap_reader_close(reader);
}

static void test_an_index_that_is_none(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    const char *index = tree_path(tree_root, INDEX);
    static char zeros[5000];
    tree_write(index, "no database", 11);
    assert_read_by_names(6);
    tree_write(index, zeros, sizeof zeros);
    assert_read_by_names(6);
    memcpy(zeros, "SQLite format 3", 16);
    tree_write(index, zeros, sizeof zeros);
    assert_read_by_names(6);
    tree_write(index, "", 0);
    assert_read_by_names(6);
    assert_int_equal(unlink(index), 0);
    assert_int_equal(mkdir(index, 0777), 0);
    assert_read_by_names(6);
    assert_int_equal(rmdir(index), 0);
    assert_int_equal(symlink("/etc/passwd", index), 0);
    assert_read_by_names(6);
}

static void test_another_database(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "PRAGMA application_id = 0",
        "DROP TABLE slot",
        "ALTER TABLE value RENAME COLUMN rms TO other",
        "ALTER TABLE node ADD COLUMN more AS (hex(zeroblob(100000000)))",
        "ALTER TABLE tensor RENAME TO tensor2; CREATE VIEW tensor AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL"
        " SELECT x + 1 FROM c) SELECT x AS step_id, x AS slot_id, x AS stamp_us, x AS value_id, NULL AS skipped FROM c",
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        sd_write(tree_root, 0, 1);
        sr_sql(tree_path(tree_root, INDEX), damages[i]);
        assert_read_by_names(6);
        tree_remove(tree_root);
        tree_root = tree_create();
    }
}

static void test_an_index_of_a_later_version(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    sr_sql(tree_path(tree_root, INDEX), "PRAGMA user_version = 1000");
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open(tree_root, &reader), FXTAP_E_UNSUPPORTED);
    assert_non_null(strstr(fxtap_error_message(), "index version 1000 is not supported"));
    assert_null(reader);
}

static void test_one_of_two_indexes_of_a_later_version(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    char *moved = strdup(tree_path(tree_root, "worldsize2_global_rank1"));
    assert_int_equal(rename(tree_path(tree_root, RANK), moved), 0);
    free(moved);
    sr_sql(tree_path(tree_root, "worldsize2_global_rank1/" FX_INDEX_FILE), "PRAGMA user_version = 1000");
    sd_write(tree_root, 0, 1);
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(sr_count(reader, NULL), 7 + 6); /* the index also lists tensors without a file */
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), "index version 1000 is not supported"));
    assert_true(fxtap_reader_rank(reader, 0)->has_index && !fxtap_reader_rank(reader, 1)->has_index);
    fxtap_reader_close(reader);
}

static void test_hostile_rows(void **state)
{
    (void)state;
    static const char *const attacks[] = {
        "UPDATE step SET folder = '../../../../etc'",
        "UPDATE step SET folder = 'graph_1/../../..'",
        "UPDATE step SET folder = 'graph_1/0/..'",
        "UPDATE step SET folder = 'graph_2/0'",
        "UPDATE step SET folder = '/etc'",
        "UPDATE step SET partial = '../x'",
        "UPDATE slot SET prefix = '../../../x.'",
        "UPDATE slot SET prefix = '.'",
        "UPDATE slot SET prefix = hex(zeroblob(5000)) || '.'",
        "UPDATE slot SET io = 99",
        "UPDATE slot SET node_id = -5",
        "UPDATE value SET shape = '9223372036854775807,9223372036854775807'",
        "UPDATE value SET shape = '-1'",
        "UPDATE value SET shape = '1,,2'",
        "UPDATE value SET shape = hex(zeroblob(100000))",
        "UPDATE value SET dtype = 'float99'",
        "UPDATE value SET bytes = -1",
        "UPDATE value SET hash = x'00', descr = '<q99'",
        "UPDATE value SET min = 'x', max = zeroblob(100), mean = 'y'",
        "UPDATE node SET stack = zeroblob(1000000), name = '', target = x'00ff', position = 9223372036854775807",
        "UPDATE graph SET graph = 99999999999, kind = 5, strict_key = 'x'",
        "UPDATE tensor SET stamp_us = -1",
        "UPDATE tensor SET value_id = 424242, skipped = NULL",
        "UPDATE step SET step = -9, call = -9",
        "DELETE FROM node",
        "DELETE FROM graph",
        "DELETE FROM slot",
    };
    for (size_t i = 0; i < COUNT_OF(attacks); i++) {
        sd_write(tree_root, 0, 1);
        sr_sql(tree_path(tree_root, INDEX), attacks[i]);
        fxtap_reader *reader = sr_open(tree_root);
        fxtap_tensor_query query = sr_query_all();
        query.with_incomplete = true;
        query.run = -1;
        fxtap_tensor_list *list = sr_list(reader, &query);
        for (size_t j = 0; j < fxtap_tensor_list_count(list); j++) {
            const fxtap_tensor_info *info = fxtap_tensor_list_at(list, j);
            (void)fxtap_tensor_load_stats(list, j);
            assert_non_null(info->name);
            if (info->path != NULL) {
                assert_memory_equal(info->path, tree_root, strlen(tree_root));
                assert_null(strstr(info->path, ".."));
            }
        }
        fxtap_tensor_list_free(list);
        fxtap_check *check = NULL;
        assert_int_equal(fxtap_reader_check(reader, true, NULL, NULL, &check), FXTAP_OK);
        fxtap_check_free(check);
        fxtap_reader_close(reader);
        tree_remove(tree_root);
        tree_root = tree_create();
    }
}

/* Each byte region overwritten in turn: nothing may crash, hang or leak. */
static void test_damaged_pages(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    const char *index = tree_path(tree_root, INDEX);
    FILE *file = fopen(index, "rb");
    assert_non_null(file);
    static unsigned char whole[1 << 18], damaged[1 << 18];
    size_t n_bytes = fread(whole, 1, sizeof whole, file);
    fclose(file);
    uint32_t random_state = 1;
    for (unsigned round = 0; round < 120; round++) {
        memcpy(damaged, whole, n_bytes);
        for (unsigned i = 0; i < 40; i++) {
            random_state = random_state * 1664525u + 1013904223u;
            damaged[112 + (random_state >> 8) % (n_bytes - 112)] = (unsigned char)random_state;
        }
        tree_write(index, damaged, round % 4 == 0 ? n_bytes - n_bytes / 3 : n_bytes);
        fxtap_reader *reader = NULL;
        fxtap_status status = fxtap_reader_open(tree_root, &reader);
        assert_int_equal(status, FXTAP_OK);
        fxtap_check *check = NULL;
        assert_int_equal(fxtap_reader_check(reader, false, NULL, NULL, &check), FXTAP_OK);
        fxtap_check_free(check);
        sr_count(reader, NULL);
        fxtap_reader_close(reader);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make_root, tree_remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_index_that_is_none),
        TEST(test_another_database),
        TEST(test_an_index_of_a_later_version),
        TEST(test_one_of_two_indexes_of_a_later_version),
        TEST(test_hostile_rows),
        TEST(test_damaged_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
