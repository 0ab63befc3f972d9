/* A file system without locks: the index is written and read without them, and nothing waits. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fxtap/reader.h"
#include "reader/index.h"
#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "writer/dump.h"

#define INDEX "worldsize1_global_rank0/fxtap.db"

enum { N_NODES = 3, N_VALUES = 5 };

/* ---- fcntl() replaced, for SQLite too ---- */

static atomic_int lock_error; /* 0: locks work */

static int control(int (*real)(int, int, ...), int fd, int command, void *argument)
{
    bool is_lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (is_lock && atomic_load(&lock_error) != 0) {
        errno = atomic_load(&lock_error);
        return -1;
    }
    return real(fd, command, argument);
}

__attribute__((visibility("default"))) int fcntl64(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return control((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64"), fd, command, argument);
}

static char *root;

static int set_up(void **state)
{
    (void)state;
    root = tree_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    atomic_store(&lock_error, 0);
    tree_remove(root);
    return 0;
}

static void run(fxtap_capture *capture)
{
    float values[N_VALUES] = {0};
    if (ss_run(capture, N_NODES, values, N_VALUES, NULL) != FXTAP_OK) {
        fail_msg("%s", fxtap_error_message());
    }
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The reader opens the dump at once, without a warning. */
static void expect_read(size_t n_runs, size_t n_steps)
{
    int64_t began_ms = now_ms();
    fxtap_reader *reader = NULL;
    fxtap_tensor_list *list = NULL;
    fxtap_tensor_query query = {.struct_size = sizeof query, .run = -1, .rank = -1, .graph = -1, .step = -1, .io = -1};
    assert_int_equal(fxtap_reader_open(root, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_run_count(reader, 0), n_runs);
    assert_int_equal(fxtap_reader_tensors(reader, &query, &list), FXTAP_OK);
    assert_int_equal(fxtap_tensor_list_count(list), n_steps * N_NODES * 2);
    assert_int_equal(fxtap_reader_warning_count(reader), 0);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
    assert_true(now_ms() - began_ms < 1000);
}

static void test_fresh_dump(void **state)
{
    (void)state;
    const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EPERM, EACCES, EIO};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        int64_t began_ms = now_ms();
        atomic_store(&lock_error, errors[i]);
        fxtap_dump_options options = ss_options(root);
        fxtap_dump *dump = ss_open(&options);
        fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
        assert_null(fxtap_dump_warning(dump));
        run(capture);
        const char *warning = fxtap_dump_warning(dump);
        assert_non_null(warning);
        assert_non_null(strstr(warning, INDEX ": the file system has no locks"));
        run(capture);
        assert_ptr_equal(fxtap_dump_warning(dump), warning);
        fxtap_dump_close(dump);
        assert_true(now_ms() - began_ms < 5000);
        expect_read(i + 1, 2 * (i + 1));
    }
    assert_int_equal(ss_count_names(tree_path(root, "worldsize1_global_rank0"), "fxtap.db"), 1);
    atomic_store(&lock_error, 0);
    ss_check(root);
}

/* Also while it is being written, with its journal present. */
static void test_read_while_it_runs(void **state)
{
    (void)state;
    atomic_store(&lock_error, ENOLCK);
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    run(capture);
    expect_read(1, 1);
    run(capture);
    expect_read(1, 2);
    fxtap_dump_close(dump);
}

/* An earlier run wrote the index with locks, and left its log behind. */
static void test_index_with_a_log(void **state)
{
    (void)state;
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *first = ss_open(&options);
    run(ss_capture(first, 1, N_NODES));
    atomic_store(&lock_error, ENOLCK);
    fxtap_dump *second = ss_open(&options);
    run(ss_capture(second, 2, N_NODES));
    fxtap_dump_close(second);
    expect_read(2, 2);
    fxtap_dump_close(first);
    expect_read(2, 2);
    atomic_store(&lock_error, 0);
    ss_check(root);
}

/* A child writes one step into the dump and tells so by a byte; it exits without closing it when `done` is closed. */
static pid_t write_in_a_child(const int *ready, const int *done)
{
    pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        close(done[1]);
        fxtap_dump_options options = ss_options(root);
        run(ss_capture(ss_open(&options), 1, N_NODES));
        bool ok = write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 0;
        _exit(ok ? 0 : 1);
    }
    return child;
}

/* Calls `meanwhile` when the child has written, while it is alive or after its end. */
static void beside_a_child(bool is_alive, void (*meanwhile)(void))
{
    int ready[2], done[2], result = -1;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t child = write_in_a_child(ready, done);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    if (is_alive) {
        meanwhile();
    }
    close(done[1]);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    if (!is_alive) {
        meanwhile();
    }
    close(done[0]);
    close(ready[0]);
    close(ready[1]);
}

/* A reader holds the index open, with a log that another process left or keeps, when this process begins to write. */
static void expect_write_beside_reader(void)
{
    assert_int_equal(access(tree_path(root, INDEX "-wal"), F_OK), 0);
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open(root, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 1);
    assert_int_equal(fx_index_use(reader, reader->ranks[0]), FXTAP_OK);
    int64_t began_ms = now_ms();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    run(ss_capture(dump, 2, N_NODES));
    assert_true(now_ms() - began_ms < 2000);
    fxtap_dump_close(dump);
    assert_int_equal(fx_index_use(reader, reader->ranks[0]), FXTAP_OK);
    assert_int_equal(fxtap_reader_warning_count(reader), 0);
    fxtap_reader_close(reader);
    expect_read(2, 2);
    ss_check(root);
}

static void test_log_that_a_reader_has_open(void **state)
{
    (void)state;
    beside_a_child(false, expect_write_beside_reader);
}

/* As in a dump that was copied without the log's map. */
static void without_map(void)
{
    assert_int_equal(unlink(tree_path(root, INDEX "-shm")), 0);
    expect_write_beside_reader();
}

static void test_log_without_map_that_a_reader_has_open(void **state)
{
    (void)state;
    beside_a_child(false, without_map);
}

static void test_log_of_a_process_that_runs(void **state)
{
    (void)state;
    beside_a_child(true, expect_write_beside_reader);
}

/* Locks disappear while a dump is open: the run continues. */
static void expect_going_on(bool has_journal)
{
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    run(capture);
    if (has_journal) { /* as on network file systems */
        assert_int_equal(sqlite3_exec(dump->index.db, "PRAGMA journal_mode=TRUNCATE", NULL, NULL, NULL), SQLITE_OK);
        dump->index.has_journal = true;
    }
    int64_t began_ms = now_ms();
    atomic_store(&lock_error, ENOLCK);
    run(capture);
    run(capture);
    assert_true(now_ms() - began_ms < (has_journal ? 2000 : 20000));
    assert_non_null(fxtap_dump_warning(dump));
    fxtap_dump_close(dump);
    expect_read(1, 3);
    atomic_store(&lock_error, 0);
    ss_check(root);
}

static void test_locks_that_go_away(void **state)
{
    (void)state;
    expect_going_on(true);
}

static void test_locks_that_go_away_with_a_log(void **state)
{
    (void)state;
    expect_going_on(false);
}

/* A failed write is reported at once, as the system's error. */
static void test_index_that_cannot_be_written(void **state)
{
    (void)state;
    atomic_store(&lock_error, ENOLCK);
    int64_t began_ms = now_ms();
    assert_int_equal(mkdir(tree_path(root, "worldsize1_global_rank0"), 0777), 0);
    assert_int_equal(mkdir(tree_path(root, INDEX), 0777), 0);
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    float values[N_VALUES] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 1, N_NODES), N_NODES, values, N_VALUES, NULL), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), EISDIR);
    fxtap_dump_close(dump);
    assert_true(now_ms() - began_ms < 2000);
}

/* A long path, opened through a descriptor. */
static void test_long_path(void **state)
{
    (void)state;
    char *first = root;
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    char *deep = strdup(tree_path(tree_path(tree_path(root, "%s", name), "%s", name), "%s", name));
    root = deep;
    atomic_store(&lock_error, ENOLCK);
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    run(ss_capture(dump, 1, N_NODES));
    fxtap_dump_close(dump);
    expect_read(1, 1);
    root = first;
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fresh_dump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_read_while_it_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_index_with_a_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_that_a_reader_has_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_without_map_that_a_reader_has_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_log_of_a_process_that_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_locks_that_go_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_locks_that_go_away_with_a_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_index_that_cannot_be_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_path, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
