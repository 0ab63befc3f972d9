/* Misuse of the writer: every error has a reason; nothing leaks or crashes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fxtap/npy.h"
#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"

static int n_released;

static const float value = 1.5f;
static const fxtap_view view = {.data = &value, .dtype = FXTAP_FLOAT32};

static int set_up(void **state)
{
    n_released = 0;
    return ss_set_up(state);
}

static void count_release(void *context)
{
    (void)context;
    n_released++;
}

static void expect_error(fxtap_status status, fxtap_status wanted, const char *words)
{
    assert_int_equal(status, wanted);
    if (strstr(fxtap_error_message(), words) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", fxtap_error_message(), words);
    }
}

static fxtap_submission submission_of(fxtap_slot slot, uint64_t stamp_us)
{
    return (fxtap_submission){.struct_size = sizeof(fxtap_submission),
                              .slot = slot,
                              .stamp_us = stamp_us,
                              .view = view,
                              .release = count_release};
}

/* ---- NULL ---- */

static void test_null(void **state)
{
    (void)state;
    fxtap_dump_options options = ss_options(fixture.root);
    fxtap_dump *opened = NULL;
    fxtap_graph *graph = NULL;
    fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_PLACEHOLDER, .name = "x", .target = "x"};
    fxtap_node node = 0;
    fxtap_slot slot = 0;
    fxtap_call *call = ss_begin(fixture.capture);
    fxtap_submission submission = submission_of(ss_slot(fixture.capture, 0, FXTAP_OUTPUT, "0"), 1);
    const fxtap_status invalid = FXTAP_E_INVALID;
    expect_error(fxtap_dump_open(NULL, &opened), invalid, "options is NULL");
    expect_error(fxtap_dump_open(&options, NULL), invalid, "out is NULL");
    expect_error(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, NULL), invalid, "out is NULL");
    assert_int_equal(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph), FXTAP_OK);
    expect_error(fxtap_graph_add_node(NULL, &desc, &node), invalid, "graph is NULL");
    expect_error(fxtap_graph_add_node(graph, NULL, &node), invalid, "desc is NULL");
    expect_error(fxtap_graph_add_node(graph, &desc, NULL), invalid, "out is NULL");
    desc.name = NULL;
    expect_error(fxtap_graph_add_node(graph, &desc, &node), invalid, "name is NULL");
    expect_error(fxtap_dump_add_graph(NULL, graph, 2, NULL, &fixture.capture), invalid, "dump is NULL");
    expect_error(fxtap_dump_add_graph(fixture.dump, NULL, 2, NULL, &fixture.capture), invalid, "graph is NULL");
    expect_error(fxtap_dump_add_graph(fixture.dump, graph, 2, NULL, NULL), invalid, "out is NULL");
    expect_error(fxtap_capture_slot(NULL, 1, FXTAP_INPUT, "0", NULL, &slot), invalid, "capture is NULL");
    expect_error(fxtap_capture_slot(fixture.capture, 1, FXTAP_INPUT, NULL, NULL, &slot), invalid, "position");
    expect_error(fxtap_capture_slot(fixture.capture, 1, FXTAP_INPUT, "0", NULL, NULL), invalid, "out is NULL");
    expect_error(fxtap_call_begin(NULL, &call), invalid, "capture is NULL");
    expect_error(fxtap_call_begin(fixture.capture, NULL), invalid, "out is NULL");
    expect_error(fxtap_call_begin_step(fixture.capture, 0, NULL), invalid, "out is NULL");
    expect_error(fxtap_call_reserve(NULL, 1, true), invalid, "call is NULL");
    expect_error(fxtap_call_submit(NULL, &submission, NULL), invalid, "call is NULL");
    assert_int_equal(n_released, 1);
    expect_error(fxtap_call_submit(call, NULL, NULL), invalid, "submission is NULL");
    expect_error(fxtap_call_alias(NULL, 0, 1, 1), invalid, "call is NULL");
    expect_error(fxtap_call_submit_small(NULL, 0, 1, &view, NULL, 0), invalid, "call is NULL");
    expect_error(fxtap_call_submit_small(call, 0, 1, NULL, NULL, 0), invalid, "either a view or a text");
    expect_error(fxtap_call_submit_small(call, 0, 1, &view, "both", 4), invalid, "either a view or a text");
    expect_error(fxtap_call_skip(NULL, 0, 1, "None"), invalid, "call is NULL");
    expect_error(fxtap_call_skip(call, 0, 1, NULL), invalid, "what is NULL");
    expect_error(fxtap_call_end(NULL, NULL), invalid, "call is NULL");
    expect_error(fxtap_call_fail(NULL, "why"), invalid, "call is NULL");
    expect_error(fxtap_call_save(NULL, 1, FXTAP_INPUT, "0", 1, &view, NULL), invalid, "call is NULL");
    expect_error(fxtap_call_save(call, 1, FXTAP_INPUT, "0", 1, NULL, NULL), invalid, "view is NULL");
    expect_error(fxtap_call_save(call, 1, FXTAP_INPUT, NULL, 1, &view, NULL), invalid, "position");
    expect_error(fxtap_call_save_copy(NULL, 1, FXTAP_INPUT, "0", 1, &view), invalid, "call is NULL");
    expect_error(fxtap_call_save_copy(call, 99, FXTAP_INPUT, "0", 1, &view), invalid, "no node 99");
    bool has_changed = false;
    fxtap_note note = {.struct_size = sizeof note, .kind = FXTAP_FINDING_UNDECLARED_WRITE, .node = 1, .position = "0"};
    expect_error(fxtap_call_note(NULL, &note), invalid, "call is NULL");
    expect_error(fxtap_call_note(call, NULL), invalid, "note is NULL");
    expect_error(fxtap_call_has_changed(NULL, 1, &view, &has_changed), invalid, "call is NULL");
    expect_error(fxtap_call_has_changed(call, 1, NULL, &has_changed), invalid, "view is NULL");
    expect_error(fxtap_call_has_changed(call, 1, &view, NULL), invalid, "out is NULL");
    note.struct_size = 0;
    expect_error(fxtap_call_note(call, &note), invalid, "not 0");
    assert_int_equal(fxtap_call_stamp(NULL), 0);
    assert_false(fxtap_call_is_pending(NULL, NULL, NULL));
    fxtap_call_settle(NULL, NULL, NULL);
    fxtap_call_release_done(NULL);
    expect_error(fxtap_npy_save(NULL, &view), invalid, "path is NULL");
    expect_error(fxtap_npy_save(tree_path(fixture.root, "x.npy"), NULL), invalid, "view is NULL");
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_graph_free(graph);
}

static void test_options(void **state)
{
    (void)state;
    const struct {
        int32_t world_size, rank, n_threads;
        fxtap_dump_type type;
        const char *words;
    } bad[] = {
        {0, 0, 1, FXTAP_DUMP_NPY, "world_size is 0, it must be at least 1"},
        {2, 2, 1, FXTAP_DUMP_NPY, "rank is 2, with world_size 2 it must be 0 to 1"},
        {2, -1, 1, FXTAP_DUMP_NPY, "rank is -1"},
        {1, 0, -1, FXTAP_DUMP_NPY, "n_threads is -1, it must be 0 to 256"},
        {1, 0, 1, (fxtap_dump_type)0, "dump type 0 is not known"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fxtap_dump_options options = ss_options(fixture.root);
        fxtap_dump *opened = NULL;
        options.world_size = bad[i].world_size;
        options.rank = bad[i].rank;
        options.n_threads = bad[i].n_threads;
        options.type = bad[i].type;
        expect_error(fxtap_dump_open(&options, &opened), FXTAP_E_INVALID, bad[i].words);
        assert_null(opened);
    }
    fxtap_dump *opened = NULL;
    fxtap_dump_options options = ss_options("");
    expect_error(fxtap_dump_open(&options, &opened), FXTAP_E_INVALID, "a dump needs a path");
    options.struct_size = 3;
    expect_error(fxtap_dump_open(&options, &opened), FXTAP_E_INVALID, "not 3");
    fxtap_dump_close(NULL);
}

/* A full disk is reported as an error of writing the index, even if it occurs while reading. */
static void test_no_room_is_a_write(void **state)
{
    (void)state;
    size_t n_failed = 0;
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit <= 128 * 1024; limit += 4096) {
        struct rlimit before, small;
        char *fresh = tree_create();
        fxtap_dump_options options = ss_options(fresh);
        options.type = FXTAP_DUMP_STATS; /* space for the index only */
        fxtap_dump *own = ss_open(&options);
        fxtap_capture *graph = ss_capture(own, 1, 2);
        float values[4] = {0};
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        small = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        fxtap_status status = ss_run(graph, 2, values, 4, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        if (status != FXTAP_OK) {
            expect_error(status, FXTAP_E_IO, "cannot write the index");
            n_failed++;
        }
        fxtap_dump_close(own);
        tree_remove(fresh);
    }
    assert_true(n_failed > 2);
    signal(SIGXFSZ, SIG_DFL);
}

/* ---- submitting ---- */

static void test_submissions(void **state)
{
    (void)state;
    fxtap_slot slot = ss_slot(fixture.capture, 0, FXTAP_OUTPUT, "0");
    fxtap_call *call = ss_begin(fixture.capture);
    fxtap_submission submission = submission_of(slot, 7);
    submission.struct_size = 0;
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "not 0");
    assert_int_equal(n_released, 0); /* an unknown structure is not accessed */
    submission = submission_of(slot, 7);
    submission.original_dtype = (fxtap_dtype)99;
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "original_dtype 99");
    submission = submission_of(slot, 0);
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "0 is not a time stamp");
    submission = submission_of(slot, UINT64_MAX);
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "is not a time stamp");
    submission = submission_of(slot + 100, 7);
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "has no slot");
    submission = submission_of(slot, 7);
    submission.view.dtype = (fxtap_dtype)99;
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "a view has unknown dtype 99");
    assert_int_equal(n_released, 5);
    submission = submission_of(slot, 7);
    assert_int_equal(fxtap_call_submit(call, &submission, NULL), FXTAP_OK);
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_EXISTS, "has a value of stamp 7 already");
    expect_error(fxtap_call_alias(call, slot, 7, 1), FXTAP_E_EXISTS, "has a value of stamp 7 already");
    submission.stamp_us = 6;
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "later stamp");
    expect_error(fxtap_call_submit_small(call, slot, 7, &view, NULL, 0), FXTAP_E_EXISTS, "stamp 7");
    expect_error(fxtap_call_skip(call, slot, 0, "None"), FXTAP_E_INVALID, "0 is not a time stamp");
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(n_released, 8);
    assert_int_equal(ss_check(fixture.root), 1);
}

static void test_text_that_is_not_utf8(void **state)
{
    (void)state;
    const char *const bad[] = {"\xff\xfe", "caf\xe9", "\xc3", "\xed\xa0\x80", "\xc0\x80"};
    fxtap_slot slot = ss_slot(fixture.capture, 0, FXTAP_INPUT, "1");
    fxtap_call *call = ss_begin(fixture.capture);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_error(fxtap_call_submit_small(call, slot, i + 1, NULL, bad[i], strlen(bad[i])), FXTAP_E_INVALID,
                     "UTF-8");
    }
    assert_int_equal(fxtap_call_submit_small(call, slot, 9, NULL, "caf\xc3\xa9", 5), FXTAP_OK);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(ss_check(fixture.root), 1);
}

/* A submit without a reservation still waits for space: the queue's limit holds. */
static void test_submit_without_reserve(void **state)
{
    (void)state;
    enum { N = 64, N_BYTES = N * sizeof(float) };
    static const float values[N];
    const int64_t shape = N;
    fxtap_dump_options options = ss_options(fixture.root);
    options.queue_bytes = N_BYTES;
    fxtap_dump *small = ss_open(&options);
    fxtap_capture *own = ss_capture(small, 1, 1);
    fxtap_slot slot = ss_slot(own, 0, FXTAP_OUTPUT, "0");
    fxtap_call *call = ss_begin(own);
    fxtap_call *other = ss_begin(own);
    fxtap_submission submission = submission_of(slot, 0);
    submission.view = (fxtap_view){.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &shape};
    for (size_t i = 1; i <= 100; i++) {
        submission.stamp_us = i;
        assert_int_equal(fxtap_call_reserve(call, i % 2 * 3, true), FXTAP_OK); /* none, or too few */
        assert_int_equal(fxtap_call_submit(call, &submission, NULL), FXTAP_OK);
        if (fxtap_call_reserve(other, 1, false) == FXTAP_OK) {
            assert_int_equal(fxtap_call_end(other, NULL), FXTAP_OK); /* only after the job is finished */
            other = ss_begin(own);
        }
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(fxtap_call_end(other, NULL), FXTAP_OK);
    assert_int_equal(n_released, 100);
    fxtap_dump_close(small);
}

/* A ticket adds another name without reading the data; NULL reads it each time. */
static void test_save(void **state)
{
    (void)state;
    float values[] = {1, 2, 3};
    const int64_t shape = 3;
    const fxtap_view whole = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &shape};
    fxtap_ticket ticket = 0;
    fxtap_call *call = ss_begin(fixture.capture);
    uint64_t stamp = fxtap_call_stamp(call);
    assert_int_equal(fxtap_call_save(call, 1, FXTAP_OUTPUT, "0", stamp, &whole, &ticket), FXTAP_OK);
    assert_true(ticket != 0);
    stamp = fxtap_call_stamp(call);
    assert_int_equal(fxtap_call_save(call, 2, FXTAP_INPUT, "0", stamp, &whole, &ticket), FXTAP_OK);
    double number = 0.5;
    const fxtap_view small = {.data = &number, .dtype = FXTAP_FLOAT64};
    assert_int_equal(fxtap_call_save_copy(call, 2, FXTAP_INPUT, "1", stamp, &small), FXTAP_OK);
    number = 7;
    fxtap_call_settle(call, values, values + 3);
    values[0] = 9;
    assert_int_equal(fxtap_call_save(call, 2, FXTAP_OUTPUT, "0", stamp, &whole, NULL), FXTAP_OK);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_string_equal(ss_text(fixture.root,
                                "SELECT group_concat(node || ' ' || io || ' ' || max, ',') FROM (SELECT * FROM"
                                " tensors ORDER BY node, io, position)"),
                        "n0 OUTPUT 3.0,n1 INPUT 3.0,n1 INPUT 0.5,n1 OUTPUT 9.0");
    assert_int_equal(ss_check(fixture.root), 4);
}

/* ---- calls and their dump ---- */

static void test_dump_closed_before_the_call_ends(void **state)
{
    (void)state;
    fxtap_slot slot = ss_slot(fixture.capture, 0, FXTAP_OUTPUT, "0");
    fxtap_call *call = ss_begin(fixture.capture);
    fxtap_call *empty = ss_begin(fixture.capture);
    size_t n_descriptors = ss_count_descriptors();
    fxtap_submission submission = submission_of(slot, fxtap_call_stamp(call));
    assert_int_equal(fxtap_call_submit(call, &submission, NULL), FXTAP_OK);
    assert_int_equal(fxtap_call_reserve(empty, 100, true), FXTAP_OK);
    fxtap_dump_close(fixture.dump);
    fixture.dump = NULL;
    assert_int_equal(n_released, 1);
    assert_true(ss_count_descriptors() <= n_descriptors);
    assert_int_equal(fxtap_call_stamp(call), 0);
    assert_false(fxtap_call_is_pending(call, &value, &value + 1));
    fxtap_call_settle(call, &value, &value + 1);
    fxtap_call_release_done(call);
    expect_error(fxtap_call_reserve(call, 1, true), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_submit(call, &submission, NULL), FXTAP_E_INVALID, "closed");
    assert_int_equal(n_released, 2);
    expect_error(fxtap_call_alias(call, slot, 9, 1), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_submit_small(call, slot, 9, &view, NULL, 0), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_skip(call, slot, 9, "None"), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_save(call, 1, FXTAP_INPUT, "0", 9, &view, NULL), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_save_copy(call, 1, FXTAP_INPUT, "0", 9, &view), FXTAP_E_INVALID, "closed");
    expect_error(fxtap_call_end(call, NULL), FXTAP_E_CANCELLED, "closed before");
    expect_error(fxtap_call_fail(empty, "why"), FXTAP_E_CANCELLED, "closed before");
    assert_string_equal(ss_text(fixture.root, "SELECT state || ' ' || reason FROM step"),
                        "failed the dump was closed before the call ended");
    assert_int_equal(ss_count_names(tree_path(fixture.root, "worldsize1_global_rank0/graph_1"), "0.failed-0"), 1);
    assert_int_equal(ss_count_names(tree_path(fixture.root, "worldsize1_global_rank0/graph_1"), ""), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_null, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_options, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_no_room_is_a_write, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_submissions, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_text_that_is_not_utf8, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_submit_without_reserve, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_save, set_up, ss_tear_down),
        cmocka_unit_test_setup_teardown(test_dump_closed_before_the_call_ends, set_up, ss_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
