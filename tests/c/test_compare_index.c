/*
 * test_compare_index.c - comparing dumps with an index: hashes, graph inputs, calls that follow, memory that runs out.
 */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/batch.h"
#include "support_compare.h"
#include "support_dump.h"
#include "support_graph.h"
#include "support_store.h"
#include "support_tree.h"
#include "util/memory.h"

static fxtap_report *compare(const sides *both, bool read_all)
{
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.read_all = read_all;
    return sc_compare(both->golden, both->target, &options);
}

static void write_small(const char *root, float last)
{
    sd_set_clock(1);
    small_dump small = sd_open(root, FXTAP_DUMP_NPY);
    sd_step(&small, (float[SD_N_VALUES]){1, 2, 3, 4, 5, last}, false);
    sd_close(&small);
}

/* Deleted files show that nothing was read. */
static void equal_hashes_settle_a_pair_unread(void **state)
{
    sides *both = *state;
    write_small(both->golden, 6);
    write_small(both->target, 6);
    fxtap_report *report = compare(both, false);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    const fxtap_pair *pair = sc_find(report, "mul-aten.mul.Scalar.OUTPUT.0");
    assert_true(pair->identical_bits && pair->measured && pair->count == 6 && pair->cosine == 1.0);
    tree_write(pair->target_path, "nothing that could be read", 26);
    fxtap_report_free(report);
    report = compare(both, false);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    fxtap_report_free(report);
    report = compare(both, true);
    assert_int_equal(fxtap_report_count(report, FXTAP_UNREADABLE), 2); /* the next operator's input is the same file */
    fxtap_report_free(report);
}

static void a_differing_input_of_the_graph_is_the_origin(void **state)
{
    sides *both = *state;
    write_small(both->golden, 6);
    write_small(both->target, 7);
    fxtap_report *report = compare(both, false);
    assert_int_equal(fxtap_report_origin_count(report), 1);
    const fxtap_origin *origin = fxtap_report_origin(report, 0);
    assert_int_equal(origin->reason, FXTAP_ORIGIN_INPUT);
    assert_string_equal(origin->input, "arg0_1");
    assert_string_equal(origin->pair->source_file, "model.py");
    assert_int_equal(origin->n_carried, 2);
    assert_false(origin->follows);
    const fxtap_pair *pair = sc_find(report, "sum_1-aten.sum.default.OUTPUT.0");
    assert_true(pair->input_error > 0.0 && pair->growth == pair->rel_l2 / pair->input_error);
    fxtap_report_free(report);
}

/* Two graphs, the second of which takes the output of the first; `twist` changes the value in between. */
static void write_two_graphs(const char *root, float first, float twist)
{
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *forward = ss_capture(dump, 1, 3), *backward = ss_capture(dump, 2, 4);
    float values[4] = {first, 2, 3, 4};
    assert_int_equal(ss_run(forward, 3, values, 4, NULL), FXTAP_OK);
    values[1] += twist;
    assert_int_equal(ss_run(backward, 4, values, 4, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
}

static void what_an_earlier_call_put_out_is_no_origin(void **state)
{
    sides *both = *state;
    write_two_graphs(both->golden, 1, 0);
    write_two_graphs(both->target, 9, 0);
    fxtap_report *report = compare(both, false);
    assert_int_equal(fxtap_report_group_count(report), 2);
    assert_int_equal(fxtap_report_group(report, 1)->call, 1);
    assert_int_equal(fxtap_report_origin_count(report), 1);
    assert_int_equal(fxtap_report_origin(report, 0)->pair->graph, 1);
    assert_int_equal(fxtap_report_origin(report, 0)->n_carried, 3 + 4);
    fxtap_report_free(report);
}

static void consequences_of_an_error_are_reported(void **state)
{
    sides *both = *state;
    write_two_graphs(both->golden, 1, 0);
    write_two_graphs(both->target, 9, 5);
    fxtap_report *report = compare(both, false);
    assert_int_equal(fxtap_report_origin_count(report), 2);
    assert_false(fxtap_report_origin(report, 0)->follows);
    assert_true(fxtap_report_origin(report, 1)->follows);
    assert_int_equal(fxtap_report_origin(report, 1)->pair->graph, 2);
    fxtap_report_free(report);
}

/* In target `sum_1` reads another value than the output of `mul`, in one of the two files that were links. */
static void change_between(const sides *both)
{
    write_small(both->golden, 6);
    write_small(both->target, 6);
    fxtap_report *report = compare(both, false);
    const char *other = sc_find(report, "mul-aten.mul.Scalar.INPUT.0")->target_path;
    const char *read = sc_find(report, "sum_1-aten.sum.default.INPUT.0")->target_path;
    assert_int_equal(remove(read), 0);
    tree_copy(other, read);
    fxtap_report_free(report);
}

static void what_changed_before_it_was_read_is_an_origin(void **state)
{
    sides *both = *state;
    change_between(both);
    fxtap_report *report = compare(both, true);
    assert_int_equal(fxtap_report_origin_count(report), 1);
    const fxtap_origin *origin = fxtap_report_origin(report, 0);
    assert_int_equal(origin->reason, FXTAP_ORIGIN_BEFORE);
    assert_string_equal(origin->pair->name, "sum_1-aten.sum.default.INPUT.0");
    assert_null(origin->between);
    assert_null(origin->input);
    assert_int_equal(origin->n_carried, 0); /* the sum itself is computed correctly */
    fxtap_report_free(report);
}

/* Operators in sequence, each on its own line and in its own module; each adds one to the previous result. */
static void write_row(const char *root, size_t n, const char *const *names)
{
    fxtap_graph *graph = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value meta = sg_tensor(graph, FXTAP_FLOAT32, "cpu", "4");
    fxtap_node last = sg_node(graph, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, meta);
    for (size_t i = 0; i < n; i++) {
        char stack[128], module[32];
        snprintf(stack, sizeof stack, "  File \"%s.py\", line %zu, in forward\n    x = %s(x)\n", names[i], i, names[i]);
        snprintf(module, sizeof module, "layers.%s", names[i]);
        fxtap_value argument = sg_ref(graph, last);
        fxtap_node_desc desc = {.struct_size = sizeof desc,
                                .op = FXTAP_OP_CALL_FUNCTION,
                                .name = names[i],
                                .target = "aten.relu.default",
                                .args = &argument,
                                .n_args = 1,
                                .meta = meta,
                                .stack_trace = stack,
                                .module_path = module,
                                .module_type = "Layer"};
        last = sg_add(graph, &desc);
    }
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = NULL;
    assert_int_equal(fxtap_dump_add_graph(dump, graph, 1, NULL, &capture), FXTAP_OK);
    fxtap_graph_free(graph);
    assert_int_equal(ss_run(capture, n, (float[]){1, 2, 3, 4}, 4, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
}

static void put_between(const sides *both)
{
    write_row(both->golden, 2, (const char *const[]){"first", "reader"});
    write_row(both->target, 4, (const char *const[]){"first", "cast", "back", "reader"});
}

/* ---- memory ---- */

static fxtap_status print_all(const fxtap_report *report)
{
    fxtap_status status = FXTAP_OK;
    for (int format = FXTAP_REPORT_TEXT; format <= FXTAP_REPORT_HTML && status == FXTAP_OK; format++) {
        fxtap_report_options options = {.struct_size = sizeof options, .format = (fxtap_report_format)format};
        fxtap_buffer text;
        fxtap_buffer_init(&text);
        status = fxtap_report_print(report, &options, &text);
        fxtap_buffer_clear(&text);
    }
    return status;
}

/* *json_out is the merged report as JSON, which the caller frees. */
static fxtap_status everything(const sides *both, bool read_all, char **json_out)
{
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.n_threads = 1;
    options.read_all = read_all;
    options.map_path = tree_path(both->golden, "map");
    fxtap_report *report = NULL, *merged = NULL;
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_status status = sc_try(both->golden, both->target, &options, &report);
    if (status == FXTAP_OK) {
        status = print_all(report);
    }
    if (status == FXTAP_OK) {
        status = fxtap_report_serialise(report, &bytes, &n_bytes);
    }
    if (status == FXTAP_OK) {
        status = fxtap_report_merge((const void *const[]){bytes}, &n_bytes, 1, &merged);
    }
    fxtap_buffer json;
    fxtap_buffer_init(&json);
    if (status == FXTAP_OK) {
        fxtap_report_options as_json = {.struct_size = sizeof as_json, .format = FXTAP_REPORT_JSON};
        status = fxtap_report_print(merged, &as_json, &json);
    }
    *json_out = status == FXTAP_OK ? strdup(json.bytes) : NULL;
    fxtap_buffer_clear(&json);
    fxtap_free(bytes);
    fxtap_report_free(report);
    fxtap_report_free(merged);
    return status;
}

static void fail_each_allocation(const sides *both, bool read_all)
{
    tree_write(tree_path(both->golden, "map"), "none* other*\n", 13);
    char *expected, *json;
    assert_int_equal(everything(both, read_all, &expected), FXTAP_OK);
    long long n = 0;
    for (bool was_reached = true; was_reached; n++) {
        fx_memory_fail_after(n);
        fxtap_status status = everything(both, read_all, &json);
        was_reached = !fx_memory_fail_pending();
        fx_memory_fail_after(-1);
        if (status == FXTAP_OK) { /* optional: a table that only saves memory */
            assert_string_equal(json, expected);
        } else if (status != FXTAP_E_NOMEM) {
            fail_msg("allocation %lld: %s", n, fxtap_error_message());
        }
        free(json);
    }
    free(expected);
    assert_true(n > 200);
}

static void each_allocation_may_fail(void **state)
{
    sides *both = *state;
    size_t usual = fx_batch_limit(1); /* so that there are two batches */
    write_two_graphs(both->golden, 1, 0);
    write_two_graphs(both->target, 9, 5);
    fail_each_allocation(both, false);
    fx_batch_limit(usual);
}

static void each_allocation_may_fail_where_something_came_between(void **state)
{
    change_between(*state);
    fail_each_allocation(*state, true);
}

static void each_allocation_may_fail_where_operators_lie_between(void **state)
{
    put_between(*state);
    fail_each_allocation(*state, false);
}

/* ---- stopping ---- */

static bool refuse(void *context, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    ++*(int *)context;
    return false;
}

static void progress_may_stop_it(void **state)
{
    sides *both = *state;
    write_small(both->golden, 6);
    write_small(both->target, 7);
    int n_calls = 0;
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.progress = refuse;
    options.context = &n_calls;
    fxtap_report *report = NULL;
    assert_int_equal(sc_try(both->golden, both->target, &options, &report), FXTAP_E_CANCELLED);
    assert_null(report);
    assert_int_equal(n_calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDED(equal_hashes_settle_a_pair_unread),
        SIDED(a_differing_input_of_the_graph_is_the_origin),
        SIDED(what_an_earlier_call_put_out_is_no_origin),
        SIDED(consequences_of_an_error_are_reported),
        SIDED(what_changed_before_it_was_read_is_an_origin),
        SIDED(each_allocation_may_fail),
        SIDED(each_allocation_may_fail_where_something_came_between),
        SIDED(each_allocation_may_fail_where_operators_lie_between),
        SIDED(progress_may_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
