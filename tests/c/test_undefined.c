/* test_undefined.c - undefined elements, from the writer to the comparison; findings. */
#include "support_cmocka.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/reader.h"
#include "support_compare.h"
#include "support_store.h"
#include "support_tree.h"
#include "tensor/hash.h"
#include "tensor/undefined.h"
#include "util/memory.h"

#define MAYBE FXTAP_UNDEFINED_MAYBE
#define UNWRITTEN FXTAP_UNDEFINED_UNWRITTEN

/* ---- ranges as bytes ---- */

static void ranges_come_back(void **state)
{
    (void)state;
    const fxtap_undefined_range ranges[] = {{0, 1, UNWRITTEN}, {1, 200, MAYBE}, {300, UINT64_C(1) << 40, UNWRITTEN}};
    fxtap_buffer bytes;
    fx_arena arena;
    fxtap_buffer_init(&bytes);
    fx_arena_init(&arena);
    fx_undefined_encode(ranges, 3, &bytes);
    const fxtap_undefined_range *read;
    size_t n;
    uint64_t n_elems = 300 + (UINT64_C(1) << 40);
    assert_int_equal(fx_undefined_decode(bytes.bytes, bytes.length, n_elems, &arena, &read, &n), FXTAP_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_true(read[i].first == ranges[i].first && read[i].count == ranges[i].count &&
                    read[i].kind == ranges[i].kind);
    }
    assert_int_equal(fx_undefined_decode(bytes.bytes, bytes.length, n_elems - 1, &arena, &read, &n), FXTAP_E_FORMAT);
    for (size_t length = 1; length < bytes.length; length++) { /* truncated between two ranges, the rest is valid */
        fxtap_status status = fx_undefined_decode(bytes.bytes, length, n_elems, &arena, &read, &n);
        assert_true(status == FXTAP_E_FORMAT || (status == FXTAP_OK && n < 3));
    }
    fx_arena_clear(&arena);
    fxtap_buffer_clear(&bytes);
}

static void bytes_that_are_no_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {"\x00\x00\x03", 3}, /* no elements */
        {"\x00\x01\x00", 3}, /* without a kind */
        {"\x00\x01\x04", 3}, /* of an unknown kind */
        {"\x00\x0b\x03", 3}, /* beyond the end */
        {"\x0a\x01\x03", 3},
        {"\x00\x05\x03\x05\x01\x03", 6},
        {"\x00\x01", 2},
        {"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x03", 12}, /* more than 64 bits */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01\x03", 13},
        {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x03", 12}, /* the sum wraps */
    };
    fx_arena arena;
    fx_arena_init(&arena);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const fxtap_undefined_range *read;
        size_t n;
        assert_int_equal(fx_undefined_decode(bad[i].bytes, bad[i].length, 10, &arena, &read, &n), FXTAP_E_FORMAT);
    }
    fx_arena_clear(&arena);
}

/* ---- statistics ---- */

static void statistics_are_of_the_others(void **state)
{
    (void)state;
    enum { N = 100000 };
    float *values = malloc(N * sizeof *values), *kept = malloc(N * sizeof *kept);
    fxtap_undefined_range *ranges = malloc(N * sizeof *ranges);
    size_t n_ranges = 0, n_kept = 0;
    assert_true(values != NULL && kept != NULL && ranges != NULL);
    for (size_t i = 0; i < N; i++) {
        bool is_hole = i % 7 == 0 || (i >= 16000 && i < 40000); /* across blocks */
        values[i] = is_hole ? NAN : (float)sin((double)i);
        if (!is_hole) {
            kept[n_kept++] = values[i];
        } else if (n_ranges > 0 && ranges[n_ranges - 1].first + ranges[n_ranges - 1].count == i) {
            ranges[n_ranges - 1].count++;
        } else {
            ranges[n_ranges++] = (fxtap_undefined_range){i, 1, UNWRITTEN};
        }
    }
    const int64_t n_all = N, n_others = (int64_t)n_kept;
    fxtap_view all = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &n_all};
    fxtap_view others = {.data = kept, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &n_others};
    fxtap_stats stats, wanted;
    fxtap_hash128 hash, defined, wanted_hash;
    assert_int_equal(fx_undefined_stats(&all, ranges, n_ranges, &stats, &hash, &defined), FXTAP_OK);
    assert_int_equal(fxtap_stats_compute(&others, &wanted, &wanted_hash), FXTAP_OK);
    assert_int_equal(stats.count, n_kept);
    assert_int_equal(stats.nan_count, 0);
    assert_true(stats.min == wanted.min && stats.max == wanted.max && fabs(stats.mean - wanted.mean) < 1e-15);
    assert_true(fabs(stats.l2_norm / wanted.l2_norm - 1) < 1e-12);
    assert_true(defined.high == wanted_hash.high && defined.low == wanted_hash.low);
    fxtap_hash128 whole = fx_hash_bytes(values, N * sizeof *values);
    assert_true(hash.high == whole.high && hash.low == whole.low);
    free(values);
    free(kept);
    free(ranges);
}

/* ---- dumps ---- */

typedef struct side {
    float values[6]; /* 2 x 3 */
    fxtap_undefined_range ranges[3];
    size_t n_ranges;
    bool is_column_major;
} side;

static fxtap_status submit_ranges(fxtap_call *call, fxtap_slot slot, const fxtap_view *view,
                                  const fxtap_undefined_range *ranges, size_t n)
{
    fxtap_submission submission = {.struct_size = sizeof submission,
                                   .slot = slot,
                                   .stamp_us = fxtap_call_stamp(call),
                                   .view = *view,
                                   .undefined = ranges,
                                   .n_undefined = n};
    assert_int_equal(fxtap_call_reserve(call, 24, true), FXTAP_OK);
    return fxtap_call_submit(call, &submission, NULL);
}

static void write_side(const char *root, fxtap_dump_type type, const side *from)
{
    static const int64_t shape[] = {2, 3}, columns[] = {1, 2};
    fxtap_dump_options options = ss_options(root);
    options.type = type;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    fxtap_view view = {.data = from->values,
                       .dtype = FXTAP_FLOAT32,
                       .ndim = 2,
                       .shape = shape,
                       .strides = from->is_column_major ? columns : NULL};
    assert_int_equal(submit_ranges(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), &view, from->ranges, from->n_ranges),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
}

/* The one pair of two sides, in separate folders; the caller frees the report. */
static fxtap_report *compare_two(const sides *both, fxtap_dump_type type, const side *golden, const side *target,
                                 const fxtap_pair **pair)
{
    static unsigned number;
    const char *golden_path = tree_path(both->golden, "%u", ++number);
    const char *target_path = tree_path(both->target, "%u", number);
    write_side(golden_path, type, golden);
    write_side(target_path, type, target);
    fxtap_report *report = sc_compare(golden_path, target_path, NULL);
    assert_int_equal(fxtap_report_pair_count(report), 1);
    *pair = fxtap_report_pair(report, 0);
    return report;
}

static void expect(const sides *both, fxtap_dump_type type, const side *golden, const side *target,
                   fxtap_verdict verdict, uint64_t left_out)
{
    const fxtap_pair *pair;
    fxtap_report *report = compare_two(both, type, golden, target, &pair);
    assert_int_equal(pair->verdict, verdict);
    assert_int_equal(pair->undefined_count, left_out);
    fxtap_report_free(report);
}

static void garbage_is_left_out(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 7, 8, 9, 6}, .ranges = {{2, 3, UNWRITTEN}}, .n_ranges = 1};
    side target = golden;
    for (fxtap_dump_type type = FXTAP_DUMP_NPY; type <= FXTAP_DUMP_STATS; type++) {
        target.values[2] = NAN;
        target.values[3] = INFINITY;
        target.values[5] = 6;
        expect(both, type, &golden, &target, FXTAP_SAME, 3);
        expect(both, type, &golden, &golden, FXTAP_SAME, 3); /* equal undefined bytes are not compared either */
        target.values[5] = 60;
        expect(both, type, &golden, &target, FXTAP_DIFFERENT, type == FXTAP_DUMP_NPY ? 3 : 0);
    }
    const fxtap_pair *pair;
    fxtap_report *report = compare_two(both, FXTAP_DUMP_NPY, &golden, &target, &pair);
    assert_int_equal(pair->count, 3);
    assert_int_equal(pair->mismatched, 1);
    assert_true(pair->max_abs_err == 54 && pair->max_abs_index == 5);
    fxtap_report_free(report);
}

static void one_side_is_enough(void **state)
{
    const sides *both = *state;
    const side zeros = {.values = {1, 2, 0, 0, 5, 6}};
    const side empty = {.values = {1, 2, 7, 8, 5, 6}, .ranges = {{2, 2, UNWRITTEN}}, .n_ranges = 1};
    expect(both, FXTAP_DUMP_NPY, &zeros, &empty, FXTAP_SAME, 2);
    expect(both, FXTAP_DUMP_NPY, &empty, &zeros, FXTAP_SAME, 2);
    expect(both, FXTAP_DUMP_STATS, &zeros, &empty, FXTAP_UNDEFINED, 2);
}

static void what_may_have_been_written_counts_where_it_agrees(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 0, 8, 5, 6}, .ranges = {{2, 2, MAYBE}}, .n_ranges = 1};
    side target = golden;
    target.values[3] = 9; /* unknown on both sides: not judged; element 2 agrees */
    expect(both, FXTAP_DUMP_NPY, &golden, &target, FXTAP_SAME, 1);
    target.n_ranges = 0; /* written by target, but not by golden */
    expect(both, FXTAP_DUMP_NPY, &golden, &target, FXTAP_DIFFERENT, 0);
    target = golden;
    target.values[3] = 9;
    expect(both, FXTAP_DUMP_STATS, &golden, &target, FXTAP_SAME, 2);
}

static void nothing_but_garbage_is_not_judged(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 3, 4, 5, 6}, .ranges = {{0, 6, UNWRITTEN}}, .n_ranges = 1};
    side target = golden;
    target.values[0] = NAN;
    expect(both, FXTAP_DUMP_NPY, &golden, &target, FXTAP_UNDEFINED, 6);
    expect(both, FXTAP_DUMP_STATS, &golden, &target, FXTAP_UNDEFINED, 6);
}

/*
 * Ranges are in the file's order: element [1, 0] is the second of a column-major file, the fourth of a row-major one.
 */
static void orders_of_the_files(void **state)
{
    const sides *both = *state;
    const side rows = {.values = {1, 2, 3, 40, 5, 6}, .ranges = {{3, 1, UNWRITTEN}}, .n_ranges = 1};
    const side columns = {
        .values = {1, 99, 2, 5, 3, 6}, .ranges = {{1, 1, UNWRITTEN}}, .n_ranges = 1, .is_column_major = true};
    side other = columns;
    other.values[1] = -7;
    expect(both, FXTAP_DUMP_NPY, &rows, &columns, FXTAP_SAME, 1);
    expect(both, FXTAP_DUMP_NPY, &columns, &rows, FXTAP_SAME, 1);
    expect(both, FXTAP_DUMP_NPY, &columns, &other, FXTAP_SAME, 1);
    other.values[4] = 30; /* [0, 2] */
    const fxtap_pair *pair;
    fxtap_report *report = compare_two(both, FXTAP_DUMP_NPY, &columns, &other, &pair);
    assert_int_equal(pair->verdict, FXTAP_DIFFERENT);
    assert_int_equal(pair->max_abs_index, 2);
    fxtap_report_free(report);
}

static void other_garbage_is_another_value(void **state)
{
    const sides *both = *state;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t shape = 6;
    const fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &shape};
    const fxtap_undefined_range some = {0, 2, UNWRITTEN}, others = {2, 2, UNWRITTEN}, bad = {4, 3, UNWRITTEN};
    fxtap_dump_options options = ss_options(both->golden);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 3);
    fxtap_call *call = ss_begin(capture);
    assert_int_equal(submit_ranges(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), &view, &some, 1), FXTAP_OK);
    assert_int_equal(submit_ranges(call, ss_slot(capture, 1, FXTAP_OUTPUT, "0"), &view, &others, 1), FXTAP_OK);
    assert_int_equal(submit_ranges(call, ss_slot(capture, 2, FXTAP_OUTPUT, "0"), &view, NULL, 0), FXTAP_OK);
    assert_int_equal(submit_ranges(call, ss_slot(capture, 2, FXTAP_OUTPUT, "1"), &view, &bad, 1), FXTAP_E_INVALID);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(both->golden), 3); /* one file with three names */
    assert_int_equal(ss_int(both->golden, "SELECT count(*) FROM value"), 3);
    assert_int_equal(ss_int(both->golden, "SELECT sum(count) FROM undefined"), 4);
    assert_int_equal(ss_int(both->golden, "SELECT count(DISTINCT hash) FROM value"), 1);
}

/* ---- an index with wrong data ---- */

static void change_index(const char *root, const char *sql)
{
    char path[512];
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/worldsize1_global_rank0/fxtap.db", root);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void ranges_that_are_none_hide_nothing(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 7, 8, 5, 6}, .ranges = {{2, 2, UNWRITTEN}}, .n_ranges = 1};
    side target = golden;
    target.values[2] = 70;
    write_side(both->golden, FXTAP_DUMP_NPY, &golden);
    write_side(both->target, FXTAP_DUMP_NPY, &target);
    change_index(both->golden, "UPDATE undefined SET ranges = x'0063'");
    change_index(both->target, "UPDATE undefined SET ranges = x'006303'");
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_DIFFERENT);
    assert_int_equal(fxtap_report_warning_count(report), 2);
    fxtap_report_free(report);
}

static void a_view_in_the_place_of_the_table_is_not_asked(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 7, 8, 5, 6}, .ranges = {{2, 2, UNWRITTEN}}, .n_ranges = 1};
    write_side(both->golden, FXTAP_DUMP_NPY, &golden);
    change_index(both->golden, "DROP TABLE undefined; CREATE VIEW undefined AS SELECT 1 AS value_id, 1 AS count,"
                               " x'000603' AS ranges, x'' AS hash FROM value");
    fxtap_reader *reader;
    fxtap_tensor_list *list;
    fxtap_tensor_query query = {.struct_size = sizeof query, .rank = -1, .graph = -1, .step = -1, .io = -1};
    assert_int_equal(fxtap_reader_open(both->golden, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_tensors(reader, &query, &list), FXTAP_OK);
    assert_int_equal(fxtap_tensor_list_count(list), 1);
    assert_int_equal(fxtap_tensor_list_at(list, 0)->undefined_count, 0);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

/* ---- findings ---- */

static fxtap_note note_of(fxtap_finding_kind kind, const char *position)
{
    return (fxtap_note){.struct_size = sizeof(fxtap_note),
                        .kind = kind,
                        .node = 1,
                        .stamp_us = 1,
                        .position = position,
                        .arg_name = "x",
                        .count = 2,
                        .total = 6};
}

static void write_findings(const char *root, unsigned n_steps)
{
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 2);
    const float values[2] = {1, 2};
    for (unsigned step = 0; step < n_steps; step++) {
        fxtap_call *call = ss_begin(capture);
        ss_floats(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), fxtap_call_stamp(call), values, 2);
        fxtap_note note = note_of(FXTAP_FINDING_UNWRITTEN_READ, "0");
        assert_int_equal(fxtap_call_note(call, &note), FXTAP_OK);
        note = note_of(FXTAP_FINDING_UNDECLARED_WRITE, "1.2");
        assert_int_equal(fxtap_call_note(call, &note), FXTAP_OK);
        note.node = 99;
        assert_int_equal(fxtap_call_note(call, &note), FXTAP_E_INVALID);
        note = note_of((fxtap_finding_kind)3, "0");
        assert_int_equal(fxtap_call_note(call, &note), FXTAP_E_INVALID);
        note = note_of(FXTAP_FINDING_UNWRITTEN_READ, NULL);
        assert_int_equal(fxtap_call_note(call, &note), FXTAP_E_INVALID);
        assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    }
    fxtap_dump_close(dump);
}

static void findings_are_read_and_checked(void **state)
{
    const sides *both = *state;
    write_findings(both->golden, 3);
    fxtap_reader *reader;
    fxtap_finding *findings;
    fxtap_check *check;
    size_t n;
    fxtap_tensor_query query = {.struct_size = sizeof query, .rank = -1, .graph = -1, .step = -1, .io = -1};
    assert_int_equal(fxtap_reader_open(both->golden, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_findings(reader, &query, &findings, &n), FXTAP_OK);
    assert_int_equal(n, 6);
    assert_int_equal(findings[0].kind, FXTAP_FINDING_UNWRITTEN_READ);
    assert_int_equal(findings[3].kind, FXTAP_FINDING_UNDECLARED_WRITE);
    assert_int_equal(findings[5].step->step, 2);
    assert_string_equal(findings[1].position, "1.2");
    assert_string_equal(findings[1].node->name, "n0");
    fxtap_free(findings);
    query.step = 1;
    assert_int_equal(fxtap_reader_findings(reader, &query, &findings, &n), FXTAP_OK);
    assert_int_equal(n, 2);
    fxtap_free(findings);
    assert_int_equal(fxtap_reader_check(reader, true, NULL, NULL, &check), FXTAP_OK);
    assert_int_equal(fxtap_check_problem_count(check), 6);
    const fxtap_problem *problem = fxtap_check_problem(check, 0);
    assert_int_equal(problem->kind, FXTAP_PROBLEM_UNWRITTEN_READ);
    assert_string_equal(problem->node->name, "n0");
    assert_string_equal(problem->detail, "reads memory that was never written: 2 of 6 elements of its argument x");
    fxtap_check_free(check);
    fxtap_reader_close(reader);
}

static void a_report_warns_of_each_once(void **state)
{
    const sides *both = *state;
    write_findings(both->golden, 3);
    write_findings(both->target, 3);
    fxtap_report *report = sc_compare(both->golden, both->target, NULL);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    assert_int_equal(fxtap_report_warning_count(report), 4);
    assert_non_null(strstr(fxtap_report_warning(report, 0), "golden: n0 (aten.relu.default) reads memory"));
    fxtap_report_free(report);
}

static void most_dumps_have_no_findings(void **state)
{
    const sides *both = *state;
    const side plain = {.values = {1, 2, 3, 4, 5, 6}};
    write_side(both->golden, FXTAP_DUMP_NPY, &plain);
    assert_int_equal(ss_int(both->golden, "SELECT count(*) FROM sqlite_schema WHERE name IN ('finding', 'undefined')"),
                     0);
    assert_int_equal(ss_int(both->golden, "PRAGMA user_version"), 1);
}

/* ---- memory that changes during the dump ---- */

static void a_changed_value_is_reported(void **state)
{
    const sides *both = *state;
    static const int64_t shape[] = {3, 2}, turned[] = {1, 3};
    float values[6] = {1, 2, 3, 4, 5, 6};
    fxtap_dump_options options = ss_options(both->golden);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    fxtap_view views[] = {{.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape},
                          {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape, .strides = turned}};
    for (size_t i = 0; i < 2; i++) {
        bool has_changed = true;
        values[4] = 5;
        fxtap_ticket ticket =
            ss_submit(call, ss_slot(capture, 0, FXTAP_INPUT, i == 0 ? "0" : "1"), fxtap_call_stamp(call), &views[i]);
        assert_int_equal(fxtap_call_has_changed(call, ticket, &views[i], &has_changed), FXTAP_OK);
        assert_false(has_changed);
        values[4] = 50;
        assert_int_equal(fxtap_call_has_changed(call, ticket, &views[i], &has_changed), FXTAP_OK);
        assert_true(has_changed);
        views[i].ndim = 1;
        assert_int_equal(fxtap_call_has_changed(call, ticket, &views[i], &has_changed), FXTAP_E_INVALID);
        assert_int_equal(fxtap_call_has_changed(call, 99, &views[i], &has_changed), FXTAP_E_INVALID);
        views[i].ndim = 2;
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
}

/* ---- failing allocations ---- */

static void each_failing_allocation_is_reported(void **state)
{
    const sides *both = *state;
    const side golden = {.values = {1, 2, 7, 8, 9, 6}, .ranges = {{2, 3, MAYBE}}, .n_ranges = 1};
    side target = golden;
    target.values[2] = NAN;
    write_side(both->golden, FXTAP_DUMP_NPY, &golden);
    write_side(both->target, FXTAP_DUMP_NPY, &target);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    for (long long n = 0;; n++) {
        fxtap_report *report = NULL;
        fx_memory_fail_after(n);
        fxtap_status status = sc_try(both->golden, both->target, &options, &report);
        bool is_over = fx_memory_fail_pending();
        fx_memory_fail_after(-1);
        assert_true(status == FXTAP_OK || status == FXTAP_E_NOMEM);
        fxtap_report_free(report);
        if (is_over) {
            assert_int_equal(status, FXTAP_OK);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_come_back),
        cmocka_unit_test(bytes_that_are_no_ranges),
        cmocka_unit_test(statistics_are_of_the_others),
        SIDED(garbage_is_left_out),
        SIDED(one_side_is_enough),
        SIDED(what_may_have_been_written_counts_where_it_agrees),
        SIDED(nothing_but_garbage_is_not_judged),
        SIDED(orders_of_the_files),
        SIDED(other_garbage_is_another_value),
        SIDED(ranges_that_are_none_hide_nothing),
        SIDED(a_view_in_the_place_of_the_table_is_not_asked),
        SIDED(findings_are_read_and_checked),
        SIDED(a_report_warns_of_each_once),
        SIDED(most_dumps_have_no_findings),
        SIDED(a_changed_value_is_reported),
        SIDED(each_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
