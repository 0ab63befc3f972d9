/* Step numbers: in the order in which calls begin, or given by the caller; and numbers that failed calls return. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "writer/steps.h"

#define GRAPH "worldsize1_global_rank0/graph_1"
#define STATES                                                                                                         \
    "SELECT group_concat(step || ' ' || state, ',') FROM (SELECT step, state FROM step ORDER BY step, state DESC)"

/* A call that has written `value`. */
static fxtap_call *written(fxtap_call *call, const float *value)
{
    ss_floats(call, ss_slot(fixture.capture, 0, FXTAP_OUTPUT, "0"), fxtap_call_stamp(call), value, 1);
    return call;
}

static fxtap_call *numbered(uint64_t step)
{
    fxtap_call *call = NULL;
    assert_int_equal(fxtap_call_begin_step(fixture.capture, step, &call), FXTAP_OK);
    return call;
}

static uint64_t end(fxtap_call *call)
{
    uint64_t step = UINT64_MAX;
    assert_int_equal(fxtap_call_end(call, &step), FXTAP_OK);
    return step;
}

static void expect_failed_folders(size_t n)
{
    assert_int_equal(ss_count_names(tree_path(fixture.root, GRAPH), ".failed-"), n);
    assert_int_equal(ss_count_names(tree_path(fixture.root, GRAPH), ".partial"), 0);
}

/* ---- the numbers themselves, against a table of flags ---- */

enum { N_NUMBERS = 24 };

static uint64_t next_of(const bool *taken)
{
    uint64_t next = N_NUMBERS;
    while (next > 0 && !taken[next - 1]) {
        next--;
    }
    return next;
}

static void test_numbers(void **state)
{
    (void)state;
    fx_steps steps = {0};
    bool taken[N_NUMBERS] = {false};
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        uint64_t step = (random >> 16) % N_NUMBERS;
        if (taken[step] && (random >> 8) % 2 == 0) {
            fx_steps_give_back(&steps, step);
            taken[step] = false;
        } else {
            assert_int_equal(fx_steps_take(&steps, step), taken[step] ? FXTAP_E_EXISTS : FXTAP_OK);
            taken[step] = true;
        }
        assert_int_equal(fx_steps_next(&steps), next_of(taken));
    }
    assert_int_equal(fx_steps_take(&steps, FX_STEP_LAST), FXTAP_OK);
    assert_int_equal(fx_steps_take(&steps, FX_STEP_LAST + 1), FXTAP_E_INVALID);
    assert_int_equal(fx_steps_take(&steps, fx_steps_next(&steps)), FXTAP_E_INVALID);
    fx_steps_clear(&steps);
}

/* ---- calls ---- */

static void test_order_of_beginning(void **state)
{
    (void)state;
    const float values[] = {10, 11, 12};
    fxtap_call *calls[3];
    for (size_t i = 0; i < 3; i++) {
        calls[i] = written(ss_begin(fixture.capture), &values[i]);
    }
    assert_int_equal(end(calls[2]), 2);
    assert_int_equal(end(calls[0]), 0);
    assert_int_equal(end(calls[1]), 1);
    assert_string_equal(ss_text(fixture.root,
                                "SELECT group_concat(step || ' ' || max, ',') FROM (SELECT step, max FROM tensors"
                                " ORDER BY step)"),
                        "0 10.0,1 11.0,2 12.0");
    assert_int_equal(ss_check(fixture.root), 3);
}

static void test_a_failed_call_gives_its_number_back(void **state)
{
    (void)state;
    const float values[] = {0, 1, 2, 3};
    assert_int_equal(end(written(ss_begin(fixture.capture), &values[0])), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fxtap_call_fail(written(ss_begin(fixture.capture), &values[1]), "why"), FXTAP_OK);
    }
    assert_int_equal(end(written(ss_begin(fixture.capture), &values[2])), 1);
    assert_string_equal(ss_text(fixture.root, STATES), "0 whole,1 whole,1 failed,1 failed");
    expect_failed_folders(2);
}

/* A later call has begun: it keeps its number, and the failed call's number is skipped. */
static void test_a_call_that_fails_among_others(void **state)
{
    (void)state;
    const float values[] = {0, 1, 2, 3};
    fxtap_call *first = written(ss_begin(fixture.capture), &values[0]);
    fxtap_call *second = written(ss_begin(fixture.capture), &values[1]);
    assert_int_equal(fxtap_call_fail(first, "why"), FXTAP_OK);
    fxtap_call *third = written(ss_begin(fixture.capture), &values[2]);
    assert_int_equal(end(second), 1);
    assert_int_equal(end(third), 2);
    assert_string_equal(ss_text(fixture.root, STATES), "0 failed,1 whole,2 whole");
    assert_int_equal(end(written(numbered(0), &values[3])), 0); /* it can be requested */
    assert_string_equal(ss_text(fixture.root, STATES), "0 whole,0 failed,1 whole,2 whole");
    expect_failed_folders(1);
}

static void test_all_fail(void **state)
{
    (void)state;
    const float value = 1;
    fxtap_call *first = written(ss_begin(fixture.capture), &value);
    fxtap_call *second = written(ss_begin(fixture.capture), &value);
    assert_int_equal(fxtap_call_fail(first, NULL), FXTAP_OK);
    assert_int_equal(fxtap_call_fail(second, NULL), FXTAP_OK);
    assert_string_equal(ss_text(fixture.root, STATES), "0 failed,1 failed");
    assert_int_equal(end(written(ss_begin(fixture.capture), &value)), 0);
}

static void test_given_numbers(void **state)
{
    (void)state;
    const float values[] = {0, 1, 2, 3};
    fxtap_call *seven = written(numbered(7), &values[0]);
    fxtap_call *three = written(numbered(3), &values[1]);
    fxtap_call *next = written(ss_begin(fixture.capture), &values[2]);
    fxtap_call *taken = NULL;
    assert_int_equal(fxtap_call_begin_step(fixture.capture, 7, &taken), FXTAP_E_EXISTS);
    assert_non_null(strstr(fxtap_error_message(), "step 7 is taken"));
    assert_null(taken);
    assert_int_equal(end(seven), 7);
    assert_int_equal(fxtap_call_begin_step(fixture.capture, 7, &taken), FXTAP_E_EXISTS);
    assert_int_equal(fxtap_call_begin_step(fixture.capture, UINT64_MAX, &taken), FXTAP_E_INVALID);
    assert_int_equal(end(three), 3);
    assert_int_equal(end(next), 8);
    assert_int_equal(end(ss_begin(fixture.capture)), 9); /* empty, but a step nevertheless */
    assert_string_equal(ss_text(fixture.root, STATES), "3 whole,7 whole,8 whole");
    assert_int_equal(ss_check(fixture.root), 3);
}

/* A number of an earlier run is free: both runs' files share the folder. */
static void test_given_numbers_of_an_earlier_run(void **state)
{
    (void)state;
    const float values[] = {4, 5};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(end(written(numbered(5), &values[i])), 5);
        fxtap_dump_close(fixture.dump);
        fxtap_dump_options options = ss_options(fixture.root);
        fixture.dump = ss_open(&options);
        fixture.capture = ss_capture(fixture.dump, 1, 1);
    }
    assert_int_equal(ss_count_names(tree_path(fixture.root, GRAPH "/5"), ".npy"), 2);
    assert_int_equal(ss_check(fixture.root), 2);
}

/* ---- a server: any free thread takes a request; steps have the requests' numbers ---- */

enum { N_THREADS = 4, N_REQUESTS = 40 };

static atomic_int next_request;

static void *serve(void *argument)
{
    (void)argument;
    for (;;) {
        int request = atomic_fetch_add(&next_request, 1);
        if (request >= N_REQUESTS) {
            return NULL;
        }
        float value = (float)request;
        fxtap_call *call = NULL;
        if (fxtap_call_begin_step(fixture.capture, (uint64_t)request, &call) != FXTAP_OK) {
            abort();
        }
        ss_floats(call, ss_slot(fixture.capture, 0, FXTAP_OUTPUT, "0"), fxtap_call_stamp(call), &value, 1);
        bool fails = request % 10 == 3;
        if ((fails ? fxtap_call_fail(call, "cancelled") : fxtap_call_end(call, NULL)) != FXTAP_OK) {
            abort();
        }
    }
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    atomic_store(&next_request, 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, serve, NULL), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(ss_int(fixture.root, "SELECT count(*) FROM tensors WHERE max = step AND state = 'whole'"), 36);
    assert_int_equal(ss_int(fixture.root, "SELECT count(*) FROM tensors WHERE max = step AND state = 'failed'"), 4);
    assert_int_equal(ss_check(fixture.root), 36);
    expect_failed_folders(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test_setup_teardown(test_order_of_beginning, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_a_failed_call_gives_its_number_back, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_a_call_that_fails_among_others, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_all_fail, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_given_numbers, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_given_numbers_of_an_earlier_run, ss_set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_threads, ss_set_up, ss_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
