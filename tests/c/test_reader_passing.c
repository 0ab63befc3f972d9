/*
 * Temporary errors (locks, devices, memory, descriptors) are reported, and the reader still knows its index afterwards.
 */
#include "support_cmocka.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "fxtap/reader.h"
#include "index/schema.h"
#include "support_dump.h"
#include "support_reader.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"
#define INDEX RANK "/" FX_INDEX_FILE

/* ---- an SQLite VFS whose n-th read fails ---- */

static sqlite3_vfs failing_vfs;
static const sqlite3_io_methods *real_methods;
static sqlite3_io_methods failing_methods;
static int (*real_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static long long reads_left = -1; /* negative: none fails */
static bool keeps_failing;
static int failure;

static int read_or_fail(sqlite3_file *file, void *bytes, int n_bytes, sqlite3_int64 offset)
{
    if (reads_left == 0) {
        reads_left -= !keeps_failing;
        errno = EIO;
        return failure;
    }
    reads_left -= reads_left > 0;
    return real_methods->xRead(file, bytes, n_bytes, offset);
}

static int open_to_fail(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out)
{
    int code = real_open(vfs, name, file, flags, flags_out);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0) {
        real_methods = file->pMethods;
        failing_methods = *real_methods;
        failing_methods.xRead = read_or_fail;
        failing_methods.iVersion = 2; /* xRead is used instead of a mapping */
        file->pMethods = &failing_methods;
    }
    return code;
}

static int install(void **state)
{
    (void)state;
    failing_vfs = *sqlite3_vfs_find(NULL);
    real_open = failing_vfs.xOpen;
    failing_vfs.xOpen = open_to_fail;
    failing_vfs.zName = "failing";
    failing_vfs.pNext = NULL;
    return sqlite3_vfs_register(&failing_vfs, 1);
}

static int uninstall(void **state)
{
    (void)state;
    return sqlite3_vfs_unregister(&failing_vfs);
}

/* ---- reading everything ---- */

/* Reads graphs, records, nodes and tensors; returns the first status that is not OK. */
static fxtap_status read_all(fxtap_reader *reader, size_t *n_tensors_out)
{
    const fxtap_graph_info *const *graphs;
    const fxtap_node_info *const *nodes;
    const fxtap_graph *record;
    fxtap_tensor_list *list = NULL;
    fxtap_tensor_query query = sr_query_all();
    size_t n_graphs = 0, n_nodes;
    fxtap_status status = fxtap_reader_graphs(reader, 0, &graphs, &n_graphs);
    if (status == FXTAP_OK) {
        assert_int_equal(n_graphs, 1);
        status = fxtap_reader_record(reader, graphs[0], &record);
    }
    if (status == FXTAP_OK) {
        status = fxtap_reader_nodes(reader, graphs[0], &nodes, &n_nodes);
    }
    if (status == FXTAP_OK) {
        assert_int_equal(n_nodes, 5);
        status = fxtap_reader_tensors(reader, &query, &list);
    }
    *n_tensors_out = list == NULL ? 0 : fxtap_tensor_list_count(list);
    for (size_t i = 0; i < *n_tensors_out; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        assert_true(info->skipped != NULL || info->has_hash || info->saved_dtype == FXTAP_STRING); /* from the index */
    }
    fxtap_tensor_list_free(list);
    return status;
}

static void assert_reads(fxtap_reader *reader, size_t n_expected)
{
    size_t n_tensors;
    assert_int_equal(read_all(reader, &n_tensors), FXTAP_OK);
    assert_int_equal(n_tensors, n_expected);
    assert_true(fxtap_reader_rank(reader, 0)->has_index);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 1);
    for (size_t i = 0; i < fxtap_reader_warning_count(reader); i++) {
        assert_null(strstr(fxtap_reader_warning(reader, i), "by names"));
    }
}

static size_t count_tensors(void)
{
    size_t n_tensors;
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(read_all(reader, &n_tensors), FXTAP_OK);
    fxtap_reader_close(reader);
    return n_tensors;
}

/* Each read of the index fails once, in turn; the call returns `expected`, and the next one succeeds. */
static void check_failing_reads(int code, fxtap_status expected, int expected_errno)
{
    size_t n_expected = count_tensors(), n_tensors;
    unsigned n_failures = 0;
    failure = code;
    for (long long n = 0;; n++) {
        assert_true(n < 10000);
        fxtap_reader *reader = sr_open(tree_root);
        reads_left = n;
        fxtap_status status = read_all(reader, &n_tensors);
        bool has_failed = reads_left < 0;
        reads_left = -1;
        if (has_failed) {
            assert_true(status == FXTAP_OK ||
                        status == expected); /* SQLite reports some of them as damage, which is retried */
            assert_true(status == FXTAP_OK || fxtap_error_errno() == expected_errno);
            n_failures += status != FXTAP_OK;
        }
        assert_reads(reader, n_expected);
        fxtap_reader_close(reader);
        if (!has_failed) {
            break;
        }
    }
    assert_true(n_failures > 5);
}

static void test_device_errors(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    check_failing_reads(SQLITE_IOERR_READ, FXTAP_E_IO, EIO);
    check_failing_reads(SQLITE_IOERR_CORRUPTFS, FXTAP_E_IO, EIO); /* SQLite's code for EIO on a read */
}

static void test_no_memory(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    check_failing_reads(SQLITE_IOERR_NOMEM, FXTAP_E_NOMEM, 0);
}

/* A damaged index is still replaced by reading file names. */
static void test_damage_is_no_passing_error(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    failure = SQLITE_CORRUPT;
    keeps_failing = true;
    fxtap_reader *reader = sr_open(tree_root);
    reads_left = 1;
    const fxtap_graph_info *const *graphs;
    size_t n_graphs;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n_graphs), FXTAP_OK);
    reads_left = -1;
    keeps_failing = false;
    assert_false(fxtap_reader_rank(reader, 0)->has_index);
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), "reading by file names instead"));
    fxtap_reader_close(reader);
}

/* During a transaction that has locked the index but not changed it. */
static sqlite3 *lock_index(const char *mode)
{
    sqlite3 *other = NULL;
    char sql[200];
    snprintf(sql, sizeof sql,
             "PRAGMA journal_mode=%s; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE;"
             " UPDATE run SET pid = pid + 1",
             mode);
    assert_int_equal(sqlite3_open(tree_path(tree_root, INDEX), &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, sql, NULL, NULL, NULL), SQLITE_OK);
    return other;
}

/* A lock that is held for longer than the reader waits. */
static void test_locked(void **state)
{
    (void)state;
    static const char *const modes[] = {"WAL", "DELETE"};
    sd_write(tree_root, 0, 2);
    size_t n_expected = count_tensors(), n_tensors;
    for (size_t i = 0; i < 2; i++) {
        fxtap_reader *reader = sr_open(tree_root);
        sqlite3 *other = lock_index(modes[i]);
        assert_int_equal(read_all(reader, &n_tensors), FXTAP_E_IO);
        assert_int_equal(fxtap_error_errno(), EBUSY);
        assert_int_equal(fxtap_reader_run_count(reader, 0), 0);
        assert_non_null(strstr(fxtap_reader_warning(reader, 0), "cannot read the index"));
        assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        assert_reads(reader, n_expected);
        fxtap_reader_close(reader);
    }
}

static void test_no_descriptors(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    size_t n_expected = count_tensors(), n_tensors;
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    fxtap_reader *reader = sr_open(tree_root), *other = NULL;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    fxtap_status reading = read_all(reader, &n_tensors);
    int reading_errno = fxtap_error_errno();
    fxtap_status opening = fxtap_reader_open(tree_root, &other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(reading, FXTAP_E_IO);
    assert_int_equal(reading_errno, EMFILE);
    assert_int_equal(opening, FXTAP_E_IO);
    assert_reads(reader, n_expected);
    fxtap_reader_close(reader);
}

/* Two graphs with one id: the second record does not replace the first. */
static void test_two_records_of_one_graph(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    sr_sql(tree_path(tree_root, INDEX),
           "PRAGMA foreign_keys=OFF; CREATE TABLE other AS SELECT * FROM graph; DROP TABLE graph;"
           " CREATE TABLE graph AS SELECT * FROM other UNION ALL SELECT * FROM other; DROP TABLE other;");
    fxtap_reader *reader = sr_open(tree_root);
    const fxtap_graph_info *const *graphs;
    const fxtap_graph *record = NULL;
    size_t n_graphs;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n_graphs), FXTAP_OK);
    assert_int_equal(n_graphs, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fxtap_reader_record(reader, graphs[0], &record), FXTAP_E_DATABASE);
        assert_non_null(strstr(fxtap_error_message(), "two records"));
    }
    fxtap_reader_close(reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make_root, tree_remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_device_errors), TEST(test_no_memory),      TEST(test_damage_is_no_passing_error),
        TEST(test_locked),        TEST(test_no_descriptors), TEST(test_two_records_of_one_graph),
    };
    return cmocka_run_group_tests(tests, install, uninstall);
}
