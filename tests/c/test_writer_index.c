/* The index while it is written: overwritten, truncated, locked by another process. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "writer/dump.h"

#define INDEX "worldsize1_global_rank0/fxtap.db"
#define GRAPH "worldsize1_global_rank0/graph_1"

static fxtap_status run(fxtap_capture *capture)
{
    float values[4] = {1, 2, 3, 4};
    return ss_run(capture, 1, values, 4, NULL);
}

static fxtap_dump *open_with_a_step(fxtap_capture **capture_out)
{
    fxtap_dump_options options = ss_options(tree_root);
    fxtap_dump *dump = ss_open(&options);
    *capture_out = ss_capture(dump, 1, 1);
    assert_int_equal(run(*capture_out), FXTAP_OK);
    return dump;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void overwrite(const char *path, off_t first, size_t n_bytes)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    char *bytes = calloc(1, n_bytes);
    assert_non_null(bytes);
    memset(bytes, 'x', n_bytes);
    assert_int_equal(pwrite(fd, bytes, n_bytes, first), (ssize_t)n_bytes);
    free(bytes);
    close(fd);
}

/* SQLite trusts its cache, and would write rows that cannot be read again. */
static void test_overwritten_in_place(void **state)
{
    (void)state;
    fxtap_capture *capture;
    fxtap_dump *dump = open_with_a_step(&capture);
    assert_int_equal(run(capture), FXTAP_OK);
    overwrite(tree_path(tree_root, INDEX), 0, 100);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(capture), FXTAP_E_DATABASE);
        assert_non_null(strstr(fxtap_error_message(), INDEX));
    }
    assert_int_equal(unlink(tree_path(tree_root, INDEX)), 0);
    assert_int_equal(run(capture), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_int(tree_root, "SELECT count(*) FROM step WHERE state = 'whole'"), 1);
}

static void test_cut_in_place(void **state)
{
    (void)state;
    fxtap_capture *capture;
    fxtap_dump *dump = open_with_a_step(&capture);
    assert_int_equal(run(capture), FXTAP_OK);
    assert_int_equal(truncate(tree_path(tree_root, INDEX), 10000), 0);
    assert_int_equal(run(capture), FXTAP_E_DATABASE);
    assert_non_null(strstr(fxtap_error_message(), INDEX));
    assert_int_equal(truncate(tree_path(tree_root, INDEX), 0), 0); /* to SQLite, a new database */
    assert_int_equal(run(capture), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_int(tree_root, "SELECT count(*) FROM run"), 1);
}

/* Changes that another program makes through SQLite are not damage, even if the file becomes smaller. */
static void test_vacuumed(void **state)
{
    (void)state;
    fxtap_capture *capture;
    fxtap_dump *dump = open_with_a_step(&capture);
    sqlite3 *other = NULL;
    const char *path = tree_path(tree_root, INDEX);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    const char *grow = "CREATE TABLE mine AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000)"
                       " SELECT randomblob(100) FROM n; PRAGMA wal_checkpoint(TRUNCATE)";
    assert_int_equal(sqlite3_exec(other, grow, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(run(capture), FXTAP_OK);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    const char *shrink = "DROP TABLE mine; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)";
    assert_int_equal(sqlite3_exec(other, shrink, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_size < before.st_size);
    sqlite3_close(other);
    assert_int_equal(run(capture), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_int(tree_root, "SELECT count(*) FROM step"), 3);
    assert_int_equal(ss_int(tree_root, "SELECT count(*) FROM run"), 1);
    ss_check(tree_root);
}

/* The first call that waits in vain waits for a long time; later ones do not, until the index is unlocked. */
static void test_kept_by_another(void **state)
{
    (void)state;
    fxtap_capture *capture;
    fxtap_dump *dump = open_with_a_step(&capture);
    dump->index.busy_ms = 1800;
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(tree_path(tree_root, INDEX), &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t started_ms = now_ms();
    assert_int_equal(run(capture), FXTAP_E_DATABASE);
    assert_non_null(strstr(fxtap_error_message(), "locked"));
    int64_t first_ms = now_ms() - started_ms;
    assert_true(first_ms >= 1700);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(capture), FXTAP_E_DATABASE);
    }
    assert_true(now_ms() - started_ms < 2 * first_ms);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_true(dump->index.was_busy);
    assert_int_equal(run(capture), FXTAP_OK);
    assert_false(dump->index.was_busy);
    fxtap_dump_close(dump);
    ss_check(tree_root);
}

static sqlite3_vfs unlinking_vfs;
static int (*real_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);

static int open_and_unlink(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out)
{
    int code = real_open(vfs, name, file, flags, flags_out);
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
        assert_int_equal(unlink(name), 0);
    }
    return code;
}

/* The index is deleted while it is being opened: the file does not match, and the next step creates a new one. */
static void test_unlinked_while_it_is_opened(void **state)
{
    (void)state;
    fxtap_dump_options options = ss_options(tree_root);
    fxtap_dump *dump = ss_open(&options);
    unlinking_vfs = *sqlite3_vfs_find(NULL);
    real_open = unlinking_vfs.xOpen;
    unlinking_vfs.xOpen = open_and_unlink;
    unlinking_vfs.zName = "unlinking";
    unlinking_vfs.pNext = NULL;
    assert_int_equal(sqlite3_vfs_register(&unlinking_vfs, 1), SQLITE_OK);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    (void)run(capture);
    assert_int_equal(dump->index.inode, 0);
    assert_int_equal(dump->index.device, 0);
    assert_int_equal(sqlite3_vfs_unregister(&unlinking_vfs), SQLITE_OK);
    assert_int_equal(run(capture), FXTAP_OK);
    assert_true(dump->index.inode != 0);
    assert_int_equal(access(tree_path(tree_root, INDEX), F_OK), 0);
    fxtap_dump_close(dump);
}

/* The dump of an earlier run became read-only: the error states this, and not a later failure in SQLite. */
static void test_read_only_tree(void **state)
{
    (void)state;
    if (mount("none", tree_root, "tmpfs", 0, "size=4m") != 0) {
        SKIP("needs root: mounts a file system");
    }
    for (int turn = 0; turn < 2; turn++) {
        fxtap_dump_options options = ss_options(tree_root);
        fxtap_dump *dump = ss_open(&options);
        fxtap_status status = run(ss_capture(dump, 1, 1));
        int number = fxtap_error_errno();
        fxtap_dump_close(dump);
        assert_int_equal(status, turn == 0 ? FXTAP_OK : FXTAP_E_IO);
        if (turn == 0) {
            assert_int_equal(mount("none", tree_root, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=4m"), 0);
        } else {
            assert_int_equal(number, EROFS);
        }
    }
    assert_int_equal(umount(tree_root), 0);
}

/* A call of type "verify" is a step in the index, and has a folder only if it saves something. */
static void test_verification(void **state)
{
    (void)state;
    fxtap_dump_options options = ss_options(tree_root);
    options.type = FXTAP_DUMP_VERIFY;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    const int64_t shape[] = {2};
    const float data[2] = {1, 2};
    const fxtap_view view = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape};
    const fxtap_note note = {.struct_size = sizeof note,
                             .kind = FXTAP_FINDING_UNWRITTEN_READ,
                             .stamp_us = 1,
                             .position = "0",
                             .count = 1,
                             .total = 2};
    for (uint64_t step = 0; step < 4; step++) {
        fxtap_call *call = ss_begin(capture);
        assert_true(fxtap_call_step(call) == step && fxtap_call_number(call) == step);
        if (step == 1 || step == 2) {
            assert_int_equal(fxtap_call_note(call, &note), FXTAP_OK);
        }
        if (step == 2) {
            ss_submit(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, &view);
        }
        assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    }
    fxtap_dump_close(dump);
    assert_string_equal(ss_text(tree_root, "SELECT type FROM run"), "verify");
    assert_int_equal(ss_int(tree_root, "SELECT count(*) FROM step"), 4);
    assert_int_equal(ss_count_names(tree_path(tree_root, GRAPH), ""), 1);
    assert_int_equal(ss_count_names(tree_path(tree_root, GRAPH "/2"), ".npy"), 1);
    assert_int_equal(ss_check(tree_root), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verification, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_overwritten_in_place, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_cut_in_place, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_vacuumed, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_kept_by_another, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_unlinked_while_it_is_opened, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_read_only_tree, tree_make_root, tree_remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
