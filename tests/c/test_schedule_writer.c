/*
 * Complete dumps under many schedules: calls of one graph begin, write equal values and end at the same time. Each gets
 * a separate step, all rows and files exist, and equal contents are one file, whichever folder is renamed first.
 */
#include "support_seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "writer/dump.h"

/* Sanitisers are slow, change the schedules, and detect nothing if threads run one at a time. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY 10
#else
#define MANY 60
#endif
#define ENOUGH 300 /* schedules in which the fault must be detected */

enum { N_CALLS = 3, N_VALUES = 32 };

typedef struct world {
    char *root;
    fxtap_dump *dump;
    fxtap_capture *capture;
    fxtap_slot slots[2];
    bool has_move_lock;
    fxtap_status status;
    uint64_t steps[N_CALLS];
} world;

typedef struct caller {
    world *world;
    size_t number;
} caller;

static fxtap_status save(world *w, fxtap_call *call)
{
    static const float values[N_VALUES] = {1.0f, 2.0f};
    const int64_t shape = N_VALUES;
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; status == FXTAP_OK && i < 2; i++) {
        fxtap_submission submission = {.struct_size = sizeof submission,
                                       .slot = w->slots[i],
                                       .stamp_us = fxtap_call_stamp(call),
                                       .view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &shape}};
        status = fxtap_call_submit(call, &submission, NULL);
    }
    return status;
}

static void *run_call(void *argument)
{
    caller *self = argument;
    world *w = self->world;
    fxtap_call *call = NULL;
    fxtap_status status = fxtap_call_begin(w->capture, &call);
    if (status == FXTAP_OK) {
        status = save(w, call);
        fxtap_status ended = fxtap_call_end(call, &w->steps[self->number]);
        status = status == FXTAP_OK ? ended : status;
    }
    w->status = w->status == FXTAP_OK ? status : w->status;
    return NULL;
}

static void run_calls(void *argument)
{
    world *w = argument;
    caller callers[N_CALLS];
    pthread_t threads[N_CALLS];
    for (size_t i = 0; i < N_CALLS; i++) {
        callers[i] = (caller){w, i};
        pthread_create(&threads[i], NULL, run_call, &callers[i]);
    }
    for (size_t i = 0; i < N_CALLS; i++) {
        pthread_join(threads[i], NULL);
    }
    fxtap_dump_close(w->dump);
}

/* In the files of all steps. */
static size_t count_inodes(const world *w)
{
    ino_t seen[2 * N_CALLS];
    size_t n = 0;
    for (size_t step = 0; step < N_CALLS; step++) {
        for (size_t i = 0; i < 2; i++) {
            const char *sql = i == 0 ? "SELECT min(file) FROM tensors WHERE step = %zu"
                                     : "SELECT max(file) FROM tensors WHERE step = %zu";
            char text[128];
            struct stat info;
            snprintf(text, sizeof text, sql, step);
            assert_int_equal(stat(tree_path(w->root, "worldsize1_global_rank0/%s", ss_text(w->root, text)), &info), 0);
            size_t at = 0;
            while (at < n && seen[at] != info.st_ino) {
                at++;
            }
            seen[at] = info.st_ino;
            n += at == n;
        }
    }
    return n;
}

static void expect_steps(const world *w)
{
    bool taken[N_CALLS] = {false};
    for (size_t i = 0; i < N_CALLS; i++) {
        assert_true(w->steps[i] < N_CALLS);
        assert_false(taken[w->steps[i]]);
        taken[w->steps[i]] = true;
    }
}

/* Dumps once with a seed; returns the number of distinct files. */
static size_t dump_once(uint64_t seed, bool has_move_lock)
{
    world w = {.root = tree_create()};
    fxtap_dump_options options = ss_options(w.root);
    options.n_threads = 1 + (int32_t)(seed % 2);
    w.dump = ss_open(&options);
    w.capture = ss_capture(w.dump, 1, 1);
    w.slots[0] = ss_slot(w.capture, 0, FXTAP_INPUT, "0");
    w.slots[1] = ss_slot(w.capture, 0, FXTAP_OUTPUT, "0");
    schedule_ignore(has_move_lock ? NULL : &w.dump->contents.move);
    schedule_outcome outcome = schedule_run(seed, run_calls, &w);
    schedule_ignore(NULL);
    if (outcome.is_stuck || outcome.is_endless || w.status != FXTAP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed,
                 w.status != FXTAP_OK ? fxtap_status_name(w.status) : outcome.blocked);
    }
    expect_steps(&w);
    assert_int_equal(ss_check(w.root), 2 * N_CALLS);
    size_t n_files = count_inodes(&w);
    tree_remove(w.root);
    return n_files;
}

static void test_calls_end_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < MANY; seed++) {
        size_t n_files = dump_once(seed, true);
        if (n_files != 1) {
            fail_msg("seed %llu: equal contents are in %zu files", (unsigned long long)seed, n_files);
        }
    }
}

/* Without waiting, a link made while the folder of its file is renamed would find the file in neither place. */
static void test_move_without_its_lock_is_found(void **state)
{
    (void)state;
    if (MANY < 60) {
        SKIP("few schedules under a sanitiser");
    }
    uint64_t seed = 0;
    while (seed < ENOUGH && dump_once(seed, false) == 1) {
        seed++;
    }
    assert_true(seed < ENOUGH);
    print_message("found by seed %llu\n", (unsigned long long)seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_end_in_any_order),
        cmocka_unit_test(test_move_without_its_lock_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
