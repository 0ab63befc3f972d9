/* Threads and processes: concurrent calls, sixteen processes that start at once, kills at any moment, forks. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"

/*
 * GCC's ThreadSanitizer ends a forked child that creates threads if its parent had threads. The allocator of
 * AddressSanitizer stays locked in a child if another thread was allocating at the fork, as a thread that was just
 * created is. (test_writer_team.c forks without other threads.)
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_FORK_WITH_THREADS false
#else
#define CAN_FORK_WITH_THREADS true
#endif

/* ---- threads ---- */

typedef struct runner {
    fxtap_capture *capture;
    pthread_t thread;
    int n_calls;
    atomic_int n_failed;
} runner;

enum { N_NODES = 6, N_VALUES = 300, N_CALLS = 12 };

/* cmocka's assertions work only in the main thread: here failures are counted. */
static void *run_calls(void *argument)
{
    runner *self = argument;
    float values[N_VALUES] = {0};
    for (int i = 0; i < self->n_calls; i++) {
        values[0] = (float)(i % 3);
        self->n_failed += ss_run(self->capture, N_NODES, values, N_VALUES, NULL) != FXTAP_OK;
    }
    return NULL;
}

static void run_threads(size_t n_threads, size_t n_captures, uint64_t queue_bytes)
{
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.queue_bytes = queue_bytes;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *captures[4];
    runner runners[4] = {0};
    for (size_t i = 0; i < n_captures; i++) {
        captures[i] = ss_capture(dump, (uint32_t)i + 1, N_NODES);
    }
    for (size_t i = 0; i < n_threads; i++) {
        runners[i].capture = captures[i % n_captures];
        runners[i].n_calls = N_CALLS;
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_calls, &runners[i]), 0);
    }
    for (size_t i = 0; i < n_threads; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].n_failed, 0);
    }
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), n_threads * N_CALLS * N_NODES * 2);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM step"), n_threads * N_CALLS);
    assert_int_equal(ss_int(root, "SELECT count(DISTINCT call) FROM step"), n_threads * N_CALLS);
    assert_int_equal(ss_int(root, "SELECT max(step) FROM step"), N_CALLS * n_threads / n_captures - 1);
    tree_remove(root);
}

static void test_calls_at_once_on_one_graph(void **state)
{
    (void)state;
    run_threads(4, 1, 0);
}

static void test_calls_at_once_on_several_graphs(void **state)
{
    (void)state;
    run_threads(4, 4, 0);
}

static void test_small_queue(void **state)
{
    (void)state;
    run_threads(3, 3, 1000); /* less than one tensor: each is admitted alone */
}

static void test_queue_is_bounded(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.queue_bytes = 100;
    fxtap_dump *dump = ss_open(&options);
    fxtap_call *call = ss_begin(ss_capture(dump, 1, 1));
    assert_int_equal(fxtap_call_reserve(call, 60, false), FXTAP_OK);
    assert_int_equal(fxtap_call_reserve(call, 41, false), FXTAP_E_AGAIN);
    assert_int_equal(fxtap_call_reserve(call, 40, false), FXTAP_OK);
    assert_int_equal(fxtap_call_reserve(call, 1, false), FXTAP_E_AGAIN);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK); /* returns what it did not use */
    call = ss_begin(ss_capture(dump, 2, 1));
    assert_int_equal(fxtap_call_reserve(call, 1000, false), FXTAP_OK); /* alone */
    assert_int_equal(fxtap_call_reserve(call, 1, false), FXTAP_E_AGAIN);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    tree_remove(root);
}

/* ---- processes ---- */

static uint64_t frozen_clock(void)
{
    return UINT64_C(1760670671190258);
}

static int session(const char *root, uint64_t (*clock_us)(void), int n_steps)
{
    fxtap_dump_options options = ss_options(root);
    options.clock_us = clock_us;
    options.n_threads = 1;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    float values[16] = {0};
    int n_failed = 0;
    for (int step = 0; step < n_steps; step++) {
        values[0] = (float)getpid();
        n_failed += ss_run(capture, N_NODES, values, 16, NULL) != FXTAP_OK;
    }
    fxtap_dump_close(dump);
    return n_failed;
}

static void start_together(uint64_t (*clock_us)(void))
{
    enum { N_PROCESSES = 16 };
    char *root = tree_create();
    char fresh[PATH_MAX];
    snprintf(fresh, sizeof fresh, "%s/a/b", root);
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < N_PROCESSES; i++) {
        if (fork() == 0) {
            char byte;
            close(gate[1]);
            ssize_t n = read(gate[0], &byte, 1); /* returns when the parent closes its end */
            _exit(n == 0 ? session(fresh, clock_us, 2) : 1);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < N_PROCESSES; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(ss_check(fresh), N_PROCESSES * 2 * N_NODES * 2);
    assert_int_equal(ss_count_names(tree_path(fresh, RANK "/graph_1"), ""), 2);
    assert_int_equal(ss_int(fresh, "SELECT count(*) FROM run WHERE ended_us IS NOT NULL"), N_PROCESSES);
    tree_remove(root);
}

static void test_sixteen_start_together(void **state)
{
    (void)state;
    start_together(NULL);
}

static void test_sixteen_with_one_clock(void **state)
{
    (void)state;
    start_together(frozen_clock);
}

static void wait_us(unsigned microseconds)
{
    struct timespec time = {.tv_sec = microseconds / 1000000, .tv_nsec = 1000L * (long)(microseconds % 1000000)};
    nanosleep(&time, NULL);
}

/* The time that the program takes for one step: with sanitisers it starts slowly. */
static unsigned one_step_us(const char *program)
{
    char *root = tree_create();
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, root, "1", "8", (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    tree_remove(root);
    return (unsigned)((end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
}

/* The name of an incomplete file in a partial folder; NULL: none at the moment. */
static const char *growing_file(const char *graph, size_t n_bytes)
{
    static char found[PATH_MAX];
    const char *result = NULL;
    char pattern[PATH_MAX];
    glob_t files;
    snprintf(pattern, sizeof pattern, "%s/.*.partial/*.npy", graph);
    if (glob(pattern, 0, NULL, &files) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct stat info;
        if (stat(files.gl_pathv[i], &info) == 0 && info.st_size > 0 && (size_t)info.st_size < n_bytes) {
            snprintf(found, sizeof found, "%s", files.gl_pathv[i]);
            result = found;
        }
    }
    globfree(&files);
    return result;
}

/* After a kill at any moment every step is whole and in the index, and the next process continues. */
static void test_kills(void **state)
{
    (void)state;
    const char *program = getenv("FXTAP_TEST_EXAMPLE");
    program = program != NULL ? program : "../examples/example_mlp";
    char *path = realpath(program, NULL);
    if (path == NULL) {
        SKIP("no example program");
    }
    char *root = NULL;
    unsigned random = 1;
    unsigned startup_us = one_step_us(path);
    size_t n_partial = 0;
    for (int turn = 0; turn < 200; turn++) {
        if (turn % 10 == 0) {
            root = tree_create();
        }
        pid_t child = fork();
        if (child == 0) {
            execl(path, path, root, "1000000", "8", (char *)NULL);
            _exit(127);
        }
        random = random * 1664525u + 1013904223u;
        wait_us(startup_us / 2 + (random >> 8) % (startup_us + 10000));
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        if (access(tree_path(root, RANK "/graph_1"), F_OK) == 0) {
            ss_check(root);
            n_partial += ss_count_names(tree_path(root, RANK "/graph_1"), ".partial");
        }
        if (turn % 10 == 9) {
            tree_remove(root);
        }
    }
    assert_true(n_partial > 0);
    free(path);
}

/* One tensor of many bytes, killed while it is being written: MiB from FXTAP_TEST_LARGE (such as 1024), or 64. */
static void test_kill_in_a_large_write(void **state)
{
    (void)state;
    const char *large = getenv("FXTAP_TEST_LARGE");
    size_t n_bytes = (large != NULL ? (size_t)strtoull(large, NULL, 10) : 64) << 20;
    char *root = tree_create();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fxtap_dump_options options = ss_options(root);
        fxtap_capture *capture = ss_capture(ss_open(&options), 1, 1);
        float *values = calloc(1, n_bytes);
        for (int step = 0; values != NULL; step++) {
            values[0] = (float)step;
            ss_run(capture, 1, values, n_bytes / sizeof *values, NULL);
        }
        _exit(1);
    }
    const char *partial = NULL;
    for (int i = 0; i < 20000 && partial == NULL; i++) { /* until a file has begun to grow */
        wait_us(1000);
        partial = growing_file(tree_path(root, RANK "/graph_1"), n_bytes);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_non_null(partial);
    ss_check(root); /* every file of a step is whole and in the index */
    tree_remove(root);
}

static void test_exit_without_close(void **state)
{
    (void)state;
    char *root = tree_create();
    pid_t child = fork();
    if (child == 0) {
        fxtap_dump_options options = ss_options(root);
        fxtap_capture *capture = ss_capture(ss_open(&options), 1, N_NODES);
        float values[16] = {0};
        fxtap_status status = ss_run(capture, N_NODES, values, 16, NULL);
        exit(status == FXTAP_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(ss_check(root), 2 * N_NODES);
    tree_remove(root);
}

/* ---- fork ---- */

static void test_fork_between_calls(void **state)
{
    (void)state;
    if (!CAN_FORK_WITH_THREADS) {
        SKIP("a fork with threads under a sanitiser");
    }
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    float values[16] = {0};
    assert_int_equal(ss_run(capture, N_NODES, values, 16, NULL), FXTAP_OK);
    for (int told = 0; told < 2; told++) { /* with and without notice of the fork */
        pid_t child = fork();
        if (child == 0) {
            if (told) {
                fxtap_dump_after_fork(dump);
            }
            uint64_t step = 0;
            bool failed = ss_run(capture, N_NODES, values, 16, &step) != FXTAP_OK;
            fxtap_dump_close(dump);
            _exit(failed || step != 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_int_equal(ss_run(capture, N_NODES, values, 16, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 4 * 2 * N_NODES);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM run"), 3);
    assert_int_equal(ss_int(root, "SELECT count(DISTINCT pid) FROM run"), 3);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM graph"), 3);
    tree_remove(root);
}

static void count_release(void *context)
{
    ++*(int *)context;
}

/* In the child, a call of the parent only releases its memory, and writes nothing. */
static void test_fork_inside_a_call(void **state)
{
    (void)state;
    if (!CAN_FORK_WITH_THREADS) {
        SKIP("a fork with threads under a sanitiser");
    }
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    const float value = 3;
    int n_released = 0;
    fxtap_ticket ticket = 0;
    fxtap_submission submission = {.struct_size = sizeof submission,
                                   .slot = ss_slot(capture, 0, FXTAP_INPUT, "0"),
                                   .stamp_us = 5,
                                   .view = {.data = &value, .dtype = FXTAP_FLOAT32},
                                   .release = count_release,
                                   .context = &n_released};
    assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_OK);
    fxtap_slot output = ss_slot(capture, 0, FXTAP_OUTPUT, "0");
    pid_t child = fork();
    if (child == 0) {
        bool good = fxtap_call_alias(call, output, 5, ticket) == FXTAP_OK;
        submission.slot = output;
        good = good && fxtap_call_reserve(call, UINT64_MAX, true) == FXTAP_OK;
        good = good && fxtap_call_submit(call, &submission, &ticket) == FXTAP_OK;
        fxtap_call_settle(call, &value, &value + 1);
        good = good && fxtap_call_end(call, NULL) == FXTAP_E_CANCELLED && n_released == 2;
        float values[4] = {0};
        good = good && ss_run(capture, 1, values, 4, NULL) == FXTAP_OK; /* the child's own calls are ordinary */
        fxtap_dump_close(dump);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(fxtap_call_alias(call, output, 5, ticket), FXTAP_OK);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(n_released, 1);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 4);
    tree_remove(root);
}

/* Forks while other threads write: no lock stays held in the child. */
static void test_fork_while_others_write(void **state)
{
    (void)state;
    if (!CAN_FORK_WITH_THREADS) {
        SKIP("a fork with threads under a sanitiser");
    }
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    runner other = {.capture = ss_capture(dump, 1, N_NODES), .n_calls = 100};
    fxtap_capture *capture = ss_capture(dump, 2, N_NODES);
    assert_int_equal(pthread_create(&other.thread, NULL, run_calls, &other), 0);
    for (int turn = 0; turn < 10; turn++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            float values[4] = {0};
            bool failed = ss_run(capture, N_NODES, values, 4, NULL) != FXTAP_OK;
            fxtap_dump_close(dump);
            _exit(failed);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    pthread_join(other.thread, NULL);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), (100 + 10) * 2 * N_NODES);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_at_once_on_one_graph),
        cmocka_unit_test(test_calls_at_once_on_several_graphs),
        cmocka_unit_test(test_small_queue),
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_sixteen_start_together),
        cmocka_unit_test(test_sixteen_with_one_clock),
        cmocka_unit_test(test_exit_without_close),
        cmocka_unit_test(test_fork_between_calls),
        cmocka_unit_test(test_fork_inside_a_call),
        cmocka_unit_test(test_fork_while_others_write),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_kill_in_a_large_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
