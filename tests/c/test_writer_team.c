/* A team of the caller's threads runs the queued jobs instead of workers. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "util/system.h"

#ifdef __SANITIZE_THREAD__ /* it ends a forked child of a threaded process */
#define CAN_FORK_WITH_THREADS false
#else
#define CAN_FORK_WITH_THREADS true
#endif

#define N_HELPERS 2

enum { N_NODES = 6 };

static atomic_int n_runs;
static int team_size;

typedef struct task {
    void (*work)(void *);
    void *argument;
} task;

static void *run_task(void *argument)
{
    task *self = argument;
    self->work(self->argument);
    return NULL;
}

static int size(void)
{
    return team_size;
}

static void run(void (*work)(void *), void *argument)
{
    pthread_t threads[N_HELPERS];
    task self = {work, argument};
    n_runs++;
    for (size_t i = 0; i < N_HELPERS; i++) {
        if (pthread_create(&threads[i], NULL, run_task, &self) != 0) {
            abort();
        }
    }
    work(argument);
    for (size_t i = 0; i < N_HELPERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static const fxtap_team team = {size, run};

static size_t count_threads(void)
{
    size_t n = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        n += entry->d_name[0] != '.';
    }
    closedir(folder);
    return n;
}

/* A dump whose team uses `n_used` processors. */
static fxtap_dump *open_with_team(const char *root, unsigned n_used, int32_t n_threads)
{
    fxtap_dump_options options = ss_options(root);
    options.n_threads = n_threads;
    options.team = &team;
    team_size = (int)n_used;
    n_runs = 0;
    return ss_open(&options);
}

/* A call whose values are all still queued when it ends, unless a worker has run them. */
static fxtap_call *begin_full(fxtap_capture *capture)
{
    static float values[N_NODES][10];
    fxtap_call *call = ss_begin(capture);
    for (size_t i = 0; i < N_NODES; i++) {
        values[i][0] = (float)i;
        ss_floats(call, ss_slot(capture, i, FXTAP_OUTPUT, "0"), 1, values[i], 10);
    }
    return call;
}

static void test_team_ends_a_call(void **state)
{
    (void)state;
    char *root = tree_create();
    size_t n_before = count_threads();
    fxtap_dump *dump = open_with_team(root, fx_processor_count() + 1, 0);
    fxtap_call *call = begin_full(ss_capture(dump, 1, N_NODES));
    assert_int_equal(count_threads(), n_before); /* the team uses all processors */
    assert_int_equal(n_runs, 0);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(n_runs, 1);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), N_NODES);
    tree_remove(root);
}

static void test_team_runs_a_full_queue(void **state)
{
    (void)state;
    char *root = tree_create();
    const size_t n_values = (size_t)6 << 18; /* 6 MiB */
    float *values = calloc(N_NODES * n_values, sizeof *values);
    assert_non_null(values);
    fxtap_dump *dump = open_with_team(root, fx_processor_count(), 0);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    fxtap_call *call = ss_begin(capture);
    for (size_t i = 0; i < N_NODES; i++) {
        values[i * n_values] = (float)i;
        ss_floats(call, ss_slot(capture, i, FXTAP_OUTPUT, "0"), 1, &values[i * n_values], n_values);
    }
    assert_true(n_runs >= 1); /* 36 MiB exceed the limit of queued bytes */
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), N_NODES);
    free(values);
    tree_remove(root);
}

static void test_free_processors_get_workers(void **state)
{
    (void)state;
    if (fx_processor_count() < 2) {
        SKIP("needs two processors");
    }
    char *root = tree_create();
    size_t n_before = count_threads();
    fxtap_dump *dump = open_with_team(root, 1, 0);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    fxtap_call *call = ss_begin(capture);
    float value = 1;
    ss_floats(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), 1, &value, 1);
    assert_true(count_threads() > n_before);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(n_runs, 0); /* a team of one does not run jobs */
    tree_remove(root);
}

static void test_asked_workers_need_no_team(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump *dump = open_with_team(root, fx_processor_count(), 2);
    float values[100] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 1, N_NODES), N_NODES, values, 100, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(n_runs, 0);
    tree_remove(root);
}

static void *run_calls(void *argument)
{
    float values[300] = {0};
    for (int i = 0; i < 8; i++) {
        values[0] = (float)(i % 3);
        if (ss_run(argument, N_NODES, values, 300, NULL) != FXTAP_OK) {
            abort();
        }
    }
    return NULL;
}

static void test_several_callers_with_teams(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump *dump = open_with_team(root, fx_processor_count(), 0);
    pthread_t threads[3];
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_calls, ss_capture(dump, i + 1, N_NODES)), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 3 * 8 * N_NODES * 2);
    tree_remove(root);
}

static void test_forked_child_has_no_team(void **state)
{
    (void)state;
    if (!CAN_FORK_WITH_THREADS) {
        SKIP("a fork with threads under a sanitiser");
    }
    char *root = tree_create();
    fxtap_dump *dump = open_with_team(root, fx_processor_count(), 0);
    fxtap_capture *capture = ss_capture(dump, 1, N_NODES);
    assert_int_equal(fxtap_call_end(begin_full(capture), NULL), FXTAP_OK);
    assert_int_equal(n_runs, 1);
    n_runs = 0;
    pid_t child = fork();
    if (child == 0) {
        bool is_written = fxtap_call_end(begin_full(capture), NULL) == FXTAP_OK;
        _exit(is_written && n_runs == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    fxtap_dump_close(dump);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_team_ends_a_call),
        cmocka_unit_test(test_team_runs_a_full_queue),
        cmocka_unit_test(test_free_processors_get_workers),
        cmocka_unit_test(test_asked_workers_need_no_team),
        cmocka_unit_test(test_several_callers_with_teams),
        cmocka_unit_test(test_forked_child_has_no_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
