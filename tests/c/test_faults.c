/*
 * Each call to the system fails once, in a whole dump, in reading one and in comparing two; SQLite's calls are among
 * them. What does not fail then gives what it gives otherwise, or says in a warning what is missing. A sample of the
 * calls; all of them with FXTAP_LONG_TESTS set. Locks that fail: test_writer_locks.c.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fxtap/compare.h"
#include "fxtap/reader.h"
#include "support_cmocka.h"
#include "support_compare.h"
#include "support_dump.h"
#include "support_store.h"
#include "support_tree.h"

enum { N_NODES = 3, N_VALUES = 5, N_STEPS = 2, SAMPLE = 7 };

/* ---- the system's calls, replaced for the library and SQLite ---- */

static atomic_long countdown; /* calls until the one that fails; 0: none fails */
static int fault_errno;

static bool is_due(void)
{
    long left = atomic_load(&countdown);
    while (left > 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
    }
    if (left == 1) {
        errno = fault_errno;
    }
    return left == 1;
}

#define EXPORTED __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REPLACE(type, name, parameters, arguments, failed)                                                             \
    EXPORTED type name parameters                                                                                      \
    {                                                                                                                  \
        return is_due() ? (failed) : REAL(name) arguments;                                                             \
    }

REPLACE(ssize_t, read, (int fd, void *bytes, size_t n), (fd, bytes, n), -1)
REPLACE(ssize_t, pread64, (int fd, void *bytes, size_t n, off64_t at), (fd, bytes, n, at), -1)
REPLACE(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n), -1)
REPLACE(ssize_t, pwrite64, (int fd, const void *bytes, size_t n, off64_t at), (fd, bytes, n, at), -1)
REPLACE(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), -1)
REPLACE(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, off64_t offset),
        (at, n, prot, flags, fd, offset), MAP_FAILED)
REPLACE(int, fstat64, (int fd, struct stat64 *info), (fd, info), -1)
REPLACE(int, stat64, (const char *path, struct stat64 *info), (path, info), -1)
REPLACE(int, lstat64, (const char *path, struct stat64 *info), (path, info), -1)
REPLACE(int, fstatat64, (int folder, const char *path, struct stat64 *info, int flags), (folder, path, info, flags), -1)
REPLACE(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), -1)
REPLACE(int, linkat, (int from_fd, const char *from, int to_fd, const char *to, int flags),
        (from_fd, from, to_fd, to, flags), -1)
REPLACE(int, renameat, (int from_fd, const char *from, int to_fd, const char *to), (from_fd, from, to_fd, to), -1)
REPLACE(int, renameat2, (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
        (from_fd, from, to_fd, to, flags), -1)
REPLACE(int, unlink, (const char *path), (path), -1)
REPLACE(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1)
REPLACE(int, ftruncate64, (int fd, off64_t n), (fd, n), -1)
REPLACE(DIR *, opendir, (const char *path), (path), NULL)
REPLACE(struct dirent64 *, readdir64, (DIR * folder), (folder), NULL)
REPLACE(int, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags), -1)

EXPORTED int close(int fd) /* a descriptor is gone even if closing it fails */
{
    int result = REAL(close)(fd);
    return is_due() ? -1 : result;
}

#define MODE_OF(last)                                                                                                  \
    va_list list;                                                                                                      \
    va_start(list, last);                                                                                              \
    mode_t mode = (last & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;                                                    \
    va_end(list)

EXPORTED int open64(const char *path, int flags, ...)
{
    MODE_OF(flags);
    return is_due() ? -1 : REAL(open64)(path, flags, mode);
}

EXPORTED int openat64(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags);
    return is_due() ? -1 : REAL(openat64)(folder, path, flags, mode);
}

/* ---- each call in turn ---- */

static fxtap_status status;
static long call_to_fail;
static size_t n_open;

/* Called by an attempt when all is prepared. */
static void arm(void)
{
    n_open = ss_count_descriptors();
    atomic_store(&countdown, call_to_fail);
}

/* Runs `attempt` with the n-th call failing, for each n until none fails. */
static void fail_each_call(void (*attempt)(void), void (*expect)(void), long least)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EMFILE};
    long stride = getenv("FXTAP_LONG_TESTS") != NULL ? 1 : SAMPLE;
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        bool was_reached = true;
        fault_errno = errors[i];
        for (call_to_fail = 1 + (long)i; was_reached; call_to_fail += stride) {
            attempt();
            was_reached = atomic_exchange(&countdown, 0) == 0;
            expect();
        }
        assert_true(call_to_fail > least);
        print_message("%s: %ld of %ld calls\n", strerror(errors[i]), call_to_fail / stride, call_to_fail);
    }
    call_to_fail = 0;
}

/* The error is the system's, and names something. */
static void expect_clear_error(void)
{
    if (status != FXTAP_E_IO && status != FXTAP_E_NOMEM && status != FXTAP_E_DATABASE) {
        fail_msg("%s: %s", fxtap_status_name(status), fxtap_error_message());
    }
    assert_true(status != FXTAP_E_IO || fxtap_error_errno() != 0);
    assert_true(strlen(fxtap_error_message()) > 0);
}

/* ---- writing ---- */

static void write_dump(void)
{
    tree_root = tree_create();
    arm();
    fxtap_dump_options options = ss_options(tree_root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    status = FXTAP_OK;
    for (int step = 0; step < N_STEPS && status == FXTAP_OK; step++) {
        float values[N_VALUES] = {(float)step};
        status = ss_run(capture, N_NODES, values, N_VALUES, NULL);
    }
    fxtap_dump_close(dump);
}

/* What ended well is there; what failed has left nothing partial under a final name, and the dump can be written to. */
static void expect_dump(void)
{
    if (status != FXTAP_OK) {
        expect_clear_error();
    }
    assert_int_equal(ss_count_descriptors(), n_open);
    size_t n_steps = ss_count_names(tree_path(tree_root, "worldsize1_global_rank0/graph_1"), "");
    if (status == FXTAP_OK) {
        assert_int_equal(n_steps, N_STEPS);
        assert_int_equal(ss_check(tree_root), N_STEPS * N_NODES * 2);
    }
    fxtap_dump_options options = ss_options(tree_root);
    fxtap_dump *dump = ss_open(&options);
    float values[N_VALUES] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 2, N_NODES), N_NODES, values, N_VALUES, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_true(ss_check(tree_root) >= N_NODES * 2);
    tree_remove(tree_root);
}

static void test_writing(void **state)
{
    (void)state;
    fail_each_call(write_dump, expect_dump, 100);
}

/* ---- reading ---- */

static sides both;
static uint64_t n_warnings; /* and files that the report calls unreadable */
static fxtap_buffer found, expected;

static void describe(const fxtap_tensor_list *list)
{
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        fxtap_buffer_printf(&found, "%s %s %d\n", info->node != NULL ? info->node->name : "", info->position,
                            (int)info->io);
    }
}

/* All tensors by name, and the bytes of each file. */
static void read_dump(void)
{
    fxtap_reader *reader = NULL;
    fxtap_tensor_list *list = NULL;
    fxtap_tensor_query query = {.struct_size = sizeof query, .run = -1, .rank = -1, .graph = -1, .step = -1, .io = -1};
    fxtap_buffer_clear(&found);
    n_warnings = 0;
    arm();
    status = fxtap_reader_open(both.golden, &reader);
    if (status == FXTAP_OK) {
        status = fxtap_reader_tensors(reader, &query, &list);
    }
    for (size_t i = 0; status == FXTAP_OK && i < fxtap_tensor_list_count(list); i++) {
        fxtap_npy *npy = NULL;
        const char *path = fxtap_tensor_list_at(list, i)->path;
        status = path == NULL ? FXTAP_OK : fxtap_npy_open(path, &npy);
        if (npy != NULL) {
            const fxtap_view *view = fxtap_npy_view(npy);
            fxtap_buffer_append(&found, view->data, fxtap_dtype_size(view->dtype));
            fxtap_npy_close(npy);
        }
    }
    if (status == FXTAP_OK) {
        describe(list);
        n_warnings = fxtap_reader_warning_count(reader);
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void expect_same(void)
{
    assert_int_equal(ss_count_descriptors(), n_open);
    if (status != FXTAP_OK) {
        expect_clear_error();
    } else if (n_warnings == 0) {
        assert_int_equal(found.length, expected.length);
        assert_memory_equal(found.bytes, expected.bytes, expected.length);
    }
}

/* `attempt` without a fault gives what is expected of it with one. */
static void expect_always_the_same(void (*attempt)(void), long least)
{
    fxtap_buffer_init(&found);
    attempt();
    assert_int_equal(status, FXTAP_OK);
    assert_int_equal(n_warnings, 0);
    expected = found;
    fxtap_buffer_init(&found);
    fail_each_call(attempt, expect_same, least);
    fxtap_buffer_clear(&found);
    fxtap_buffer_clear(&expected);
}

static void test_reading(void **state)
{
    both = *(sides *)*state;
    sd_write(both.golden, 0, 2);
    expect_always_the_same(read_dump, 50);
}

/* ---- comparing ---- */

static void compare_dumps(void)
{
    fxtap_report *report = NULL;
    fxtap_compare_options options;
    fxtap_report_options as_json = {.struct_size = sizeof as_json, .format = FXTAP_REPORT_JSON};
    fxtap_compare_options_init(&options);
    options.n_threads = 1;
    options.read_all = true;
    fxtap_buffer_clear(&found);
    n_warnings = 0;
    arm();
    status = sc_try(both.golden, both.target, &options, &report);
    if (status == FXTAP_OK) {
        n_warnings = fxtap_report_warning_count(report) + fxtap_report_count(report, FXTAP_UNREADABLE);
        status = fxtap_report_print(report, &as_json, &found);
    }
    fxtap_report_free(report);
}

static void test_comparing(void **state)
{
    both = *(sides *)*state;
    sd_write(both.golden, 0, 2);
    sd_write(both.target, 10, 3);
    expect_always_the_same(compare_dumps, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing),
        SIDED(test_reading),
        SIDED(test_comparing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
