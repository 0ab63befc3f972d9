/* Failures: full disks, missing folders, failing system calls and allocations. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "util/memory.h"
#include "util/system.h"

#define RANK "worldsize1_global_rank0"

enum { N_NODES = 4 };

/* No partial file or folder has a final name. */
static void expect_sound(const char *root)
{
    if (access(tree_path(root, RANK "/fxtap.db"), F_OK) == 0 &&
        ss_int(root, "SELECT count(*) FROM sqlite_schema WHERE name = 'tensors'") == 1) {
        ss_check(root);
    }
}

static void test_file_in_the_place_of_the_root(void **state)
{
    (void)state;
    char *root = tree_create();
    float value = 1;
    const char *paths[] = {"file", "file/below"};
    tree_write(tree_path(root, "file"), "x", 1);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s", tree_path(root, "%s", paths[i]));
        fxtap_dump_options options = ss_options(path);
        fxtap_dump *dump = ss_open(&options);
        fxtap_capture *capture = ss_capture(dump, 1, 1);
        for (int call = 0; call < 2; call++) {
            assert_int_equal(ss_run(capture, 1, &value, 1, NULL), FXTAP_E_IO);
            assert_int_equal(fxtap_error_errno(), ENOTDIR);
            assert_non_null(strstr(fxtap_error_path(), "/file"));
        }
        fxtap_dump_close(dump);
    }
    tree_remove(root);
}

static void test_root_that_vanishes(void **state)
{
    (void)state;
    char *parent = tree_create();
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/dump", parent);
    fxtap_dump_options options = ss_options(path);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 2);
    size_t n_descriptors = 0;
    for (uint64_t turn = 0; turn < 5; turn++) {
        float values[4] = {0};
        uint64_t step;
        assert_int_equal(ss_run(capture, 2, values, 4, &step), FXTAP_OK);
        assert_int_equal(step, turn);
        assert_int_equal(ss_check(path), 4); /* equal values, but nothing left to link to: written again */
        assert_int_equal(ss_int(path, "SELECT count(*) FROM run"), 1);
        assert_true(turn == 0 || ss_count_descriptors() == n_descriptors);
        n_descriptors = ss_count_descriptors();
        char *gone = strdup(path);
        tree_remove(gone);
    }
    fxtap_dump_close(dump);
    assert_int_equal(access(path, F_OK), -1);
    tree_remove(parent);
}

static void test_step_that_vanishes(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 2);
    float values[4] = {0};
    assert_int_equal(ss_run(capture, 2, values, 4, NULL), FXTAP_OK);
    tree_remove(strdup(tree_path(root, RANK "/graph_1/0")));
    memset(values, 0, sizeof values);
    assert_int_equal(ss_run(capture, 2, values, 4, NULL), FXTAP_OK);
    assert_int_equal(unlink(tree_path(root, RANK "/fxtap.db")), 0); /* the index is created again too */
    memset(values, 0, sizeof values);
    assert_int_equal(ss_run(capture, 2, values, 4, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/1"), ".npy"), 4);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM tensors"), 4);
    assert_int_equal(ss_int(root, "SELECT step FROM step"), 2);
    tree_remove(root);
}

/* ---- no space ---- */

static void test_file_size_limit(void **state)
{
    (void)state;
    char *root = tree_create();
    const size_t n = 3 << 18; /* 3 MiB */
    float *values = calloc(n, sizeof *values);
    struct rlimit before, limit;
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    size_t n_descriptors = ss_count_descriptors();
    fxtap_status status = ss_run(capture, 1, values, n, NULL);
    int error_number = fxtap_error_errno();
    size_t n_descriptors_after = ss_count_descriptors();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, FXTAP_E_IO);
    assert_int_equal(error_number, EFBIG);
    assert_non_null(strstr(fxtap_error_path(), ".npy"));
    assert_true(n_descriptors_after <= n_descriptors + 4); /* the rank's folder and the index */
    uint64_t step;
    assert_int_equal(ss_run(capture, 1, values, n, &step), FXTAP_OK); /* the next call succeeds */
    assert_int_equal(step, 0);
    signal(SIGXFSZ, handler);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 2);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/0.failed-0"), ".npy"), 0);
    free(values);
    tree_remove(root);
}

/* The disk becomes full while files are written, while the index is written, and while folders are created. */
static void test_full_disk(void **state)
{
    (void)state;
    char *root = tree_create();
    if (mount("none", root, "tmpfs", 0, "size=1m") != 0) {
        tree_remove(root);
        SKIP("needs root: mounts a file system");
    }
    fxtap_dump_options options = ss_options(root);
    float values[1000] = {0};
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    int n_failed = 0;
    for (int turn = 0; turn < 100; turn++) {
        values[0] = (float)(1000 * turn);
        fxtap_status status = ss_run(capture, N_NODES, values, COUNT_OF(values), NULL);
        if (status != FXTAP_OK) {
            assert_int_equal(status, FXTAP_E_IO);
            assert_int_equal(fxtap_error_errno(), ENOSPC);
            n_failed++;
        }
    }
    assert_true(n_failed > 10);
    fxtap_dump_close(dump);
    expect_sound(root);
    assert_int_equal(umount(root), 0);
    tree_remove(root);
}

static void test_read_only_folder(void **state)
{
    (void)state;
    char *root = tree_create();
    if (mount("none", root, "tmpfs", 0, "size=1m") != 0) {
        tree_remove(root);
        SKIP("needs root: mounts a file system");
    }
    assert_int_equal(mount("none", root, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m"), 0);
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    float value = 0;
    assert_int_equal(ss_run(ss_capture(dump, 1, 1), 1, &value, 1, NULL), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), EROFS);
    fxtap_dump_close(dump);
    assert_int_equal(umount(root), 0);
    tree_remove(root);
}

/* The index's path is taken: the error names it, and the existing file is not changed. */
static void test_index_that_is_no_file(void **state)
{
    (void)state;
    const fxtap_status expected[] = {FXTAP_E_FORMAT, FXTAP_E_FORMAT, FXTAP_E_IO, FXTAP_E_IO};
    for (size_t kind = 0; kind < COUNT_OF(expected); kind++) {
        char *root = tree_create();
        char index[PATH_MAX];
        assert_int_equal(mkdir(tree_path(root, RANK), 0777), 0);
        snprintf(index, sizeof index, "%s", tree_path(root, RANK "/fxtap.db"));
        int made = kind == 0   ? mkfifo(index, 0666)
                   : kind == 1 ? mknod(index, S_IFSOCK | 0666, 0)
                   : kind == 2 ? mkdir(index, 0777)
                               : symlink("elsewhere", index);
        assert_int_equal(made, 0);
        fxtap_dump_options options = ss_options(root);
        fxtap_dump *dump = ss_open(&options);
        float value = 0;
        assert_int_equal(ss_run(ss_capture(dump, 1, 1), 1, &value, 1, NULL), expected[kind]);
        assert_non_null(strstr(fxtap_error_message(), "fxtap.db"));
        fxtap_dump_close(dump);
        struct stat info;
        assert_int_equal(lstat(index, &info), 0);
        assert_false(S_ISREG(info.st_mode));
        tree_remove(root);
    }
}

static void test_few_descriptors(void **state)
{
    (void)state;
    char *root = tree_create();
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    fxtap_dump_options options = ss_options(root);
    options.n_threads = 8;
    fxtap_dump *dump = ss_open(&options);
    float values[50] = {0};
    for (uint32_t graph = 1; graph <= 20; graph++) {
        fxtap_capture *capture = ss_capture(dump, graph, 20);
        for (int step = 0; step < 3; step++) {
            assert_int_equal(ss_run(capture, 20, values, 50, NULL), FXTAP_OK);
        }
    }
    fxtap_dump_close(dump);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(ss_check(root), 20 * 3 * 40);
    tree_remove(root);
}

/* ---- each system call in turn ---- */

static atomic_long countdown;
static int fault_errno;

static bool is_due(void)
{
    return atomic_fetch_sub(&countdown, 1) == 1;
}

#define FAULT                                                                                                          \
    if (is_due()) {                                                                                                    \
        errno = fault_errno;                                                                                           \
        return -1;                                                                                                     \
    }

static fx_system_calls real;

static int faulty_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
    FAULT
    return real.openat(dir_fd, path, flags, mode);
}

static int faulty_mkdirat(int dir_fd, const char *path, mode_t mode)
{
    FAULT
    return real.mkdirat(dir_fd, path, mode);
}

static ssize_t faulty_writev(int fd, const struct iovec *parts, int n_parts)
{
    FAULT
    return real.writev(fd, parts, n_parts);
}

static int faulty_linkat(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags)
{
    FAULT
    return real.linkat(old_fd, old_path, new_fd, new_path, flags);
}

static int faulty_rename(int old_fd, const char *old_path, int new_fd, const char *new_path, int no_replace)
{
    FAULT
    return real.rename(old_fd, old_path, new_fd, new_path, no_replace);
}

static int faulty_close(int fd)
{
    real.close(fd);
    FAULT
    return 0;
}

static void install_faults(void)
{
    real = fx_system;
    fx_system =
        (fx_system_calls){faulty_openat, faulty_mkdirat, faulty_writev, faulty_linkat, faulty_rename, faulty_close};
}

/* The n-th call fails, for each n until none does: one clear error, or none (links are optional). */
static void test_each_system_call_fails(void **state)
{
    (void)state;
    fault_errno = ENOSPC;
    install_faults();
    bool reached_the_end = false;
    for (long n = 1; n < 200 && !reached_the_end; n++) {
        char *root = tree_create();
        fxtap_dump_options options = ss_options(root);
        size_t n_descriptors = ss_count_descriptors();
        fxtap_dump *dump = ss_open(&options);
        fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
        float values[10] = {0};
        atomic_store(&countdown, n);
        for (int step = 0; step < 2; step++) {
            fxtap_status status = ss_run(capture, N_NODES, values, 10, NULL);
            if (status != FXTAP_OK) {
                assert_int_equal(status, FXTAP_E_IO);
                assert_int_equal(fxtap_error_errno(), ENOSPC);
                assert_non_null(strstr(fxtap_error_path(), root));
            }
        }
        reached_the_end = atomic_load(&countdown) > 0;
        atomic_store(&countdown, 0);
        assert_int_equal(ss_run(capture, N_NODES, values, 10, NULL), FXTAP_OK);
        fxtap_dump_close(dump);
        assert_int_equal(ss_count_descriptors(), n_descriptors);
        expect_sound(root);
        tree_remove(root);
    }
    fx_system_reset();
    assert_true(reached_the_end);
}

/* ---- file systems without links or RENAME_NOREPLACE ---- */

static int linkat_errno;

static int refusing_linkat(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags)
{
    (void)old_fd, (void)old_path, (void)new_fd, (void)new_path, (void)flags;
    errno = linkat_errno;
    return -1;
}

static int rename_without_noreplace(int old_fd, const char *old_path, int new_fd, const char *new_path, int no_replace)
{
    if (no_replace) {
        errno = EINVAL;
        return -1;
    }
    return renameat(old_fd, old_path, new_fd, new_path);
}

static uint64_t frozen_clock(void)
{
    return UINT64_C(1760670671190258);
}

/* Without links each name is a copy, even for values whose memory was released; without NOREPLACE nothing is lost. */
static void test_poor_file_systems(void **state)
{
    (void)state;
    const int errors[] = {EPERM, EXDEV, EMLINK, 0};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        char *root = tree_create();
        linkat_errno = errors[i];
        if (errors[i] != 0) {
            fx_system.linkat = refusing_linkat;
        }
        fx_system.rename = rename_without_noreplace;
        fxtap_dump_options options = ss_options(root);
        options.clock_us = frozen_clock;
        for (int run = 0; run < 2; run++) {
            fxtap_dump *dump = ss_open(&options);
            fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
            float values[10] = {0};
            assert_int_equal(ss_run(capture, N_NODES, values, 10, NULL), FXTAP_OK);
            assert_int_equal(ss_run(capture, N_NODES, values, 10, NULL), FXTAP_OK);
            fxtap_dump_close(dump);
        }
        fx_system_reset();
        assert_int_equal(ss_check(root), 2 * 2 * 2 * N_NODES);
        tree_remove(root);
    }
}

static ssize_t short_writev(int fd, const struct iovec *parts, int n_parts)
{
    (void)n_parts;
    static atomic_uint turn;
    if (atomic_fetch_add(&turn, 1) % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t n = parts[0].iov_len < 7 ? parts[0].iov_len : 7;
    return write(fd, parts[0].iov_base, n);
}

static void test_short_writes(void **state)
{
    (void)state;
    char *root = tree_create();
    fx_system.writev = short_writev;
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    float values[1000] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 1, N_NODES), N_NODES, values, 1000, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    fx_system_reset();
    assert_int_equal(ss_check(root), 2 * N_NODES);
    tree_remove(root);
}

/* ---- each allocation in turn ---- */

static fxtap_status whole_session(const char *root, fxtap_graph *graph)
{
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = NULL;
    fxtap_capture *capture = NULL;
    fxtap_call *call = NULL;
    fxtap_slot slots[3] = {0};
    fxtap_ticket ticket = 0;
    const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t shape[] = {2, 2}, strides[] = {4, 2};
    options.n_threads = 1;
    fxtap_status status = fxtap_dump_open(&options, &dump);
    if (status == FXTAP_OK) {
        status = fxtap_dump_add_graph(dump, graph, 1, NULL, &capture);
    }
    for (size_t i = 0; status == FXTAP_OK && i < COUNT_OF(slots); i++) {
        const char *positions[] = {"0", "1", "2"};
        status = fxtap_capture_slot(capture, 1, FXTAP_INPUT, positions[i], "x", &slots[i]);
    }
    if (status == FXTAP_OK) {
        status = fxtap_call_begin(capture, &call);
    }
    if (status == FXTAP_OK) {
        fxtap_submission submission = {
            .struct_size = sizeof submission,
            .slot = slots[0],
            .stamp_us = 1,
            .view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = strides}};
        assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_OK);
        assert_int_equal(fxtap_call_alias(call, slots[1], 1, ticket), FXTAP_OK);
        assert_int_equal(fxtap_call_submit_small(call, slots[2], 1, NULL, "text", 4), FXTAP_OK);
        status = fxtap_call_end(call, NULL);
    }
    fxtap_dump_close(dump);
    return status;
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    fxtap_graph *graph = NULL;
    fxtap_node node;
    assert_int_equal(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph), FXTAP_OK);
    fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_PLACEHOLDER, .name = "x", .target = "x"};
    assert_int_equal(fxtap_graph_add_node(graph, &desc, &node), FXTAP_OK);
    desc = (fxtap_node_desc){
        .struct_size = sizeof desc, .op = FXTAP_OP_CALL_FUNCTION, .name = "relu", .target = "aten.relu.default"};
    assert_int_equal(fxtap_graph_add_node(graph, &desc, &node), FXTAP_OK);
    int n_failed = 0;
    size_t n_descriptors = ss_count_descriptors();
    for (long long n = 0; n < 1000; n++) {
        char *root = tree_create();
        fx_memory_fail_after(n);
        fxtap_status status = whole_session(root, graph);
        bool reached_the_end = fx_memory_fail_pending();
        fx_memory_fail_after(-1);
        assert_true(status == FXTAP_OK || status == FXTAP_E_NOMEM);
        assert_int_equal(ss_count_descriptors(), n_descriptors);
        expect_sound(root);
        tree_remove(root);
        if (reached_the_end) {
            assert_int_equal(status, FXTAP_OK);
            break;
        }
        n_failed += status != FXTAP_OK;
    }
    assert_true(n_failed > 20);
    fxtap_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_in_the_place_of_the_root),
        cmocka_unit_test(test_root_that_vanishes),
        cmocka_unit_test(test_step_that_vanishes),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_read_only_folder),
        cmocka_unit_test(test_index_that_is_no_file),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_each_system_call_fails),
        cmocka_unit_test(test_poor_file_systems),
        cmocka_unit_test(test_short_writes),
        cmocka_unit_test(test_each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
