/* Dumps are written and checked against their index: names, links, statistics, steps. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/npy.h"
#include "fxtap/reader.h"
#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"

static uint64_t frozen_clock(void)
{
    return UINT64_C(1760670671190258);
}

static void test_steps_and_links(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 3);
    float values[100] = {0};
    uint64_t step = 9;
    assert_int_equal(ss_run(capture, 3, values, 100, &step), FXTAP_OK);
    assert_int_equal(step, 0);
    memset(values, 0, sizeof values);
    assert_int_equal(ss_run(capture, 3, values, 100, &step), FXTAP_OK);
    assert_int_equal(step, 1);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 12);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM value"), 4);
    assert_int_equal(ss_int(root, "SELECT count(DISTINCT hash) FROM value"), 4);
    assert_int_equal(ss_int(root, "SELECT ended_us > started_us FROM run"), 1);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1"), ""), 2);
    /* Both steps' first inputs are one read-only file with two names. */
    struct stat info, other;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" RANK "/%s", root, ss_text(root, "SELECT file FROM tensors WHERE step = 0"));
    assert_int_equal(stat(path, &info), 0);
    snprintf(path, sizeof path, "%s/" RANK "/%s", root, ss_text(root, "SELECT file FROM tensors WHERE step = 1"));
    assert_int_equal(stat(path, &other), 0);
    assert_int_equal(info.st_ino, other.st_ino);
    assert_int_equal(info.st_mode & 0777, info.st_mode & 0444);
    assert_int_equal(info.st_nlink, 2);
    tree_remove(root);
}

static mode_t mode_of_first(const char *root, int step)
{
    struct stat info;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "SELECT file FROM tensors WHERE step = %d ORDER BY node_order, io", step);
    const char *file = ss_text(root, path);
    snprintf(path, sizeof path, "%s/" RANK "/%s", root, file);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_nlink, step < 2 ? 2 : 1);
    return info.st_mode & 0777;
}

/* If the slot's previous file was linked, the next one is created read-only, which saves a system call. */
static void test_what_was_linked_is_read_only_at_once(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_capture *other = ss_capture(dump, 2, 1);
    for (int step = 0; step < 3; step++) {
        float values[10] = {step == 2};
        assert_int_equal(ss_run(capture, 1, values, 10, NULL), FXTAP_OK);
    }
    float values[10] = {3};
    assert_int_equal(ss_run(other, 1, values, 10, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(mode_of_first(root, 0) & 0222, 0);
    assert_int_equal(mode_of_first(root, 1) & 0222, 0);
    assert_int_equal(mode_of_first(root, 2) & 0222, 0);
    struct stat info;
    char path[PATH_MAX];
    const char *file = ss_text(root, "SELECT file FROM tensors WHERE graph = 2 AND io = 'INPUT'");
    snprintf(path, sizeof path, "%s/" RANK "/%s", root, file);
    assert_int_equal(stat(path, &info), 0);
    assert_int_not_equal(info.st_mode & 0200, 0); /* not known to be linked later */
    tree_remove(root);
}

static void test_nothing_made_before_the_first_tensor(void **state)
{
    (void)state;
    char *parent = tree_create();
    const char *root = tree_path(parent, "a/b");
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    uint64_t step;
    assert_int_equal(fxtap_call_end(ss_begin(capture), &step), FXTAP_OK);
    assert_int_equal(step, 0);
    assert_int_equal(access(tree_path(parent, "a"), F_OK), -1);
    float value = 1;
    assert_int_equal(ss_run(capture, 1, &value, 1, &step), FXTAP_OK);
    assert_int_equal(step, 1); /* the empty call counts as a step */
    assert_int_equal(access(tree_path(parent, "a/b/" RANK "/graph_1/1"), F_OK), 0);
    fxtap_dump_close(dump);
    tree_remove(parent);
}

static void test_no_dedup(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.no_dedup = true;
    fxtap_dump *dump = ss_open(&options);
    float values[10] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 1, 3), 3, values, 10, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 6);
    struct stat info;
    const char *file = ss_text(root, "SELECT file FROM tensors WHERE node = 'n1' AND io = 'INPUT'");
    assert_int_equal(stat(tree_path(root, RANK "/%s", file), &info), 0);
    assert_int_equal(info.st_nlink, 1);
    assert_true((info.st_mode & 0200) != 0);
    tree_remove(root);
}

static void test_statistics_alone(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.type = FXTAP_DUMP_STATS;
    fxtap_dump *dump = ss_open(&options);
    float values[10] = {0};
    assert_int_equal(ss_run(ss_capture(dump, 1, 2), 2, values, 10, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM tensors WHERE file IS NULL"), 4);
    assert_int_equal(ss_int(root, "SELECT max(max) FROM value"), 2);
    assert_int_equal(ss_count_names(tree_path(root, RANK), ""), 1); /* fxtap.db */
    tree_remove(root);
}

static fxtap_status submit_same(fxtap_call *call, fxtap_slot slot, const fxtap_view *view, fxtap_ticket ticket)
{
    const fxtap_submission submission = {
        .struct_size = sizeof submission, .slot = slot, .stamp_us = 1, .view = *view, .same_bytes_as = ticket};
    return fxtap_call_submit(call, &submission, NULL);
}

static void test_views(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {2, 3}, turned[] = {3, 2}, turned_strides[] = {1, 3}, flat[] = {6}, every_other[] = {3};
    const int64_t two[] = {2};
    fxtap_view whole = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
    fxtap_view transposed = {
        .data = data, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = turned, .strides = turned_strides};
    fxtap_view line = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = flat};
    fxtap_view strided = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = every_other, .strides = two};
    fxtap_ticket ticket = ss_submit(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, &whole);
    assert_int_equal(submit_same(call, ss_slot(capture, 0, FXTAP_INPUT, "1"), &transposed, ticket), FXTAP_OK);
    assert_int_equal(submit_same(call, ss_slot(capture, 0, FXTAP_INPUT, "2"), &line, ticket), FXTAP_OK);
    assert_int_equal(submit_same(call, ss_slot(capture, 0, FXTAP_INPUT, "3"), &whole, ticket), FXTAP_OK);
    ss_submit(call, ss_slot(capture, 0, FXTAP_INPUT, "4"), 1, &strided);
    fxtap_view wrong = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = every_other};
    assert_int_equal(submit_same(call, ss_slot(capture, 0, FXTAP_INPUT, "5"), &wrong, ticket), FXTAP_E_INVALID);
    assert_int_equal(submit_same(call, ss_slot(capture, 0, FXTAP_INPUT, "5"), &whole, 99), FXTAP_E_INVALID);
    assert_int_equal(fxtap_call_alias(call, ss_slot(capture, 0, FXTAP_INPUT, "5"), 1, 99), FXTAP_E_INVALID);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 5);
    assert_string_equal(ss_text(root, "SELECT shape || ' ' || fortran FROM value v JOIN tensor t ON v.id = t.value_id"
                                      " JOIN slot s ON s.id = slot_id WHERE s.position = '1'"),
                        "3,2 1");
    assert_string_equal(ss_text(root, "SELECT shape || ' ' || strides || ' ' || bytes FROM tensors WHERE position ="
                                      " '4'"),
                        "3 2 12");
    assert_int_equal(ss_int(root, "SELECT count(*) FROM tensors WHERE file IS NOT NULL"), 5);
    tree_remove(root);
}

static void test_numbers_text_and_nothing(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    int64_t number = -7;
    uint64_t big = UINT64_MAX;
    fxtap_view view = {.data = &number, .dtype = FXTAP_INT64};
    fxtap_view unsigned_view = {.data = &big, .dtype = FXTAP_UINT64};
    const int64_t none[] = {0};
    fxtap_view empty = {.dtype = FXTAP_FLOAT64, .ndim = 1, .shape = none};
    assert_int_equal(fxtap_call_submit_small(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, &view, NULL, 0), FXTAP_OK);
    number = 0; /* already copied */
    assert_int_equal(fxtap_call_submit_small(call, ss_slot(capture, 0, FXTAP_INPUT, "1"), 1, NULL, "h\xc3\xa9", 3),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_submit_small(call, ss_slot(capture, 0, FXTAP_INPUT, "2"), 1, NULL, "", 0), FXTAP_OK);
    assert_int_equal(fxtap_call_submit_small(call, ss_slot(capture, 0, FXTAP_INPUT, "3"), 1, &empty, NULL, 0),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_submit_small(call, ss_slot(capture, 0, FXTAP_INPUT, "4"), 1, &unsigned_view, NULL, 0),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_skip(call, ss_slot(capture, 0, FXTAP_INPUT, "5"), 1, "None"), FXTAP_OK);
    assert_int_equal(fxtap_call_skip(call, 12345, 1, "None"), FXTAP_E_INVALID);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 5);
    assert_int_equal(ss_int(root, "SELECT min FROM tensors WHERE position = '0'"), -7);
    assert_string_equal(ss_text(root, "SELECT max FROM tensors WHERE position = '4'"), "18446744073709551615");
    assert_string_equal(ss_text(root, "SELECT skipped FROM tensors WHERE position = '5'"), "None");
    assert_string_equal(ss_text(root, "SELECT group_concat(descr, ' ') FROM value"), "<i8 <U2 <U1 <f8 <u8");
    const char *file = ss_text(root, "SELECT file FROM tensors WHERE position = '1'");
    fxtap_npy *npy;
    const char *text;
    assert_int_equal(fxtap_npy_open(tree_path(root, RANK "/%s", file), &npy), FXTAP_OK);
    assert_int_equal(fxtap_npy_text(npy, &text), FXTAP_OK);
    assert_string_equal(text, "h\xc3\xa9");
    fxtap_npy_close(npy);
    tree_remove(root);
}

/* Equal contents with a different dtype, device or strides: one file, but one row of the index each. */
static void test_rows_of_equal_files(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    const float data[2] = {1, 2};
    const int64_t shape[] = {2}, apart[] = {7};
    const char *positions[] = {"0", "1", "2", "3"};
    for (size_t i = 0; i < 4; i++) {
        fxtap_submission submission = {.struct_size = sizeof submission,
                                       .slot = ss_slot(capture, 0, FXTAP_INPUT, positions[i]),
                                       .stamp_us = 1,
                                       .view = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape},
                                       .original_dtype = i == 1 ? FXTAP_QINT8 : FXTAP_DTYPE_NONE,
                                       .original_layout = i == 1 ? "torch.sparse_coo" : NULL,
                                       .device = i == 2 ? "npu:0" : NULL,
                                       .original_strides = i == 3 ? apart : NULL};
        fxtap_ticket ticket;
        assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_OK);
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 4);
    assert_string_equal(ss_text(root, "SELECT group_concat(dtype || ' ' || layout || ' ' || device || ' ' || strides)"
                                      " FROM value"),
                        "float32 torch.strided cpu 1,qint8 torch.sparse_coo cpu 1,float32 torch.strided npu:0 1,"
                        "float32 torch.strided cpu 7");
    struct stat info;
    const char *file = ss_text(root, "SELECT file FROM tensors LIMIT 1");
    assert_int_equal(stat(tree_path(root, RANK "/%s", file), &info), 0);
    assert_int_equal(info.st_nlink, 4);
    tree_remove(root);
}

static void test_frozen_clock(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.clock_us = frozen_clock;
    for (int run = 0; run < 3; run++) { /* each of them starts with step 0 */
        fxtap_dump *dump = ss_open(&options);
        fxtap_capture *capture = ss_capture(dump, 1, 2);
        for (int step = 0; step < 2; step++) {
            float values[4] = {(float)(10 * run + step)};
            assert_int_equal(ss_run(capture, 2, values, 4, NULL), FXTAP_OK);
        }
        fxtap_dump_close(dump);
        assert_int_equal(ss_check(root), 8 * ((size_t)run + 1));
    }
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1"), ""), 2);
    assert_int_equal(ss_int(root, "SELECT count(DISTINCT file) FROM tensors"), 24);
    /* The second node's stamp follows the first one's, and stamps of a run follow those of the previous run. */
    assert_int_equal(ss_int(root, "SELECT max(stamp_us) - min(stamp_us) FROM tensor"), 3);
    /* All files of one execution of a node share its stamp, including later ones. */
    assert_int_equal(ss_int(root, "SELECT max(n) FROM (SELECT count(DISTINCT stamp_us) AS n FROM tensors"
                                  " GROUP BY run, step, node)"),
                     1);
    tree_remove(root);
}

/* Within one clock tick each execution has its own stamp, shared by its input and output. */
static void test_a_node_that_runs_twice(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.clock_us = frozen_clock;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    const float values[] = {1, 2, 3, 4};
    for (size_t i = 0; i < 2; i++) {
        uint64_t stamp = fxtap_call_stamp(call);
        ss_floats(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), stamp, values + 2 * i, 1);
        ss_floats(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), stamp, values + 2 * i + 1, 1);
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 4);
    assert_string_equal(ss_text(root, "SELECT group_concat((stamp_us % 1000) || ' ' || max, ',') FROM (SELECT * FROM"
                                      " tensors ORDER BY stamp_us, io)"),
                        "258 1.0,258 2.0,259 3.0,259 4.0");
    tree_remove(root);
}

static void test_hard_names(void **state)
{
    (void)state;
    char long_name[301], other[301], accents[301];
    memset(long_name, 'n', 300);
    long_name[300] = '\0';
    memcpy(other, long_name, sizeof other);
    other[280] = 'm';
    for (size_t i = 0; i < 150; i++) {
        memcpy(accents + 2 * i, "\xc3\xa9", 3);
    }
    const char *const names[] = {long_name, other, accents, "../x/y", "..\\x", "Upper", "upper", ".hidden", "a\nb"};
    const size_t n = COUNT_OF(names);
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_named(dump, 1, n, names);
    fxtap_call *call = ss_begin(capture);
    float values[16];
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)i;
        ss_floats(call, ss_slot(capture, i, FXTAP_INPUT, "0"), 5, values + i, 1);
        ss_floats(call, ss_slot(capture, i, FXTAP_INPUT, "a/b"), 5, values + i, 1);
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 2 * n);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/0"), ".npy"), 2 * n);
    assert_int_equal(ss_count_names(root, ""), 1);
    assert_string_equal(ss_text(root, "SELECT node FROM tensors WHERE max = 1"), other);
    assert_string_equal(ss_text(root, "SELECT node FROM tensors WHERE max = 3"), "../x/y");
    assert_string_equal(ss_text(root, "SELECT position FROM tensors WHERE max = 3 AND position <> '0'"), "a/b");
    tree_remove(root);
}

static void test_path_that_is_too_long(void **state)
{
    (void)state;
    char *root = tree_create();
    char path[PATH_MAX];
    size_t length = (size_t)snprintf(path, sizeof path, "%s", root);
    while (length < 3900) { /* space for the folders but not for the files */
        length += (size_t)snprintf(path + length, sizeof path - length, "/%0100d", 0);
    }
    length += (size_t)snprintf(path + length, sizeof path - length, "/%0*d", (int)(4020 - length), 0);
    fxtap_dump_options options = ss_options(path);
    fxtap_dump *dump = ss_open(&options);
    float value = 1;
    assert_int_equal(ss_run(ss_capture(dump, 1, 1), 1, &value, 1, NULL), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), ENAMETOOLONG);
    fxtap_dump_close(dump);
    tree_remove(root);
}

/* Longer than the 512 bytes that SQLite accepts. */
static void test_long_path_that_is_not_too_long(void **state)
{
    (void)state;
    char *root = tree_create();
    char path[PATH_MAX];
    size_t length = (size_t)snprintf(path, sizeof path, "%s", root);
    while (length < 3000) {
        length += (size_t)snprintf(path + length, sizeof path - length, "/%0100d", 0);
    }
    fxtap_dump_options options = ss_options(path);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    size_t n_descriptors = ss_count_descriptors();
    float value = 1;
    assert_int_equal(ss_run(capture, 1, &value, 1, NULL), FXTAP_OK);
    assert_int_equal(ss_run(capture, 1, &value, 1, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_count_descriptors(), n_descriptors);
    assert_int_equal(ss_count_names(tree_path(path, RANK "/graph_1/1"), ".npy"), 2);
    assert_int_equal(ss_count_names(tree_path(path, RANK), "fxtap.db"), 1);
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open(path, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 1); /* the index has the full name */
    fxtap_reader_close(reader);
    assert_int_equal(ss_count_descriptors(), n_descriptors);
    tree_remove(root);
}

static void test_links_in_the_path(void **state)
{
    (void)state;
    char *root = tree_create();
    float value = 1;
    /* A root that is a symbolic link is followed, since the user gave it. */
    tree_mkdir(tree_path(root, "real"));
    assert_int_equal(symlink("real", tree_path(root, "link")), 0);
    fxtap_dump_options options = ss_options(tree_path(root, "link"));
    fxtap_dump *dump = ss_open(&options);
    assert_string_equal(fxtap_dump_rank_path(dump), tree_path(root, "real/" RANK));
    fxtap_dump_close(dump);
    /* ".." is resolved once, at open. */
    options = ss_options(tree_path(root, "link/not/there/../../new"));
    dump = ss_open(&options);
    assert_string_equal(fxtap_dump_rank_path(dump), tree_path(root, "real/new/" RANK));
    fxtap_dump_close(dump);
    /* Folders of the dump that are symbolic links are rejected. */
    const char *places[] = {RANK, RANK "/graph_1", RANK "/graph_1/0", RANK "/fxtap.db"};
    tree_mkdir(tree_path(root, "elsewhere"));
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const char *dump_root = tree_path(root, "d%zu", i);
        char link[PATH_MAX];
        snprintf(link, sizeof link, "%s/%s", dump_root, places[i]);
        *strrchr(link, '/') = '\0';
        tree_mkdir(link);
        snprintf(link, sizeof link, "%s/%s", dump_root, places[i]);
        assert_int_equal(symlink(tree_path(root, "elsewhere"), link), 0);
        options = ss_options(dump_root);
        dump = ss_open(&options);
        assert_int_equal(ss_run(ss_capture(dump, 1, 1), 1, &value, 1, NULL), FXTAP_E_IO);
        assert_true(fxtap_error_errno() == ELOOP || fxtap_error_errno() == ENOTDIR);
        fxtap_dump_close(dump);
    }
    assert_int_equal(ss_count_names(tree_path(root, "elsewhere"), ""), 0);
    tree_remove(root);
}

static void test_failed_calls_are_kept(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 2);
    float values[4] = {0};
    for (int i = 0; i < 2; i++) {
        fxtap_call *call = ss_begin(capture);
        ss_floats(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), fxtap_call_stamp(call), values, 4);
        assert_int_equal(fxtap_call_fail(call, "RuntimeError: boom"), FXTAP_OK);
    }
    uint64_t step = 9;
    assert_int_equal(ss_run(capture, 2, values, 4, &step), FXTAP_OK);
    assert_int_equal(step, 0);
    fxtap_dump_close(dump);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/0.failed-0"), ".npy"), 1);
    assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/0.failed-1"), ".npy"), 1);
    assert_int_equal(ss_check(root), 4);
    assert_string_equal(
        ss_text(root, "SELECT reason || ' ' || folder FROM step WHERE state = 'failed' ORDER BY id DESC"),
        "RuntimeError: boom graph_1/0.failed-1");
    assert_int_equal(ss_int(root, "SELECT count(*) FROM tensors WHERE state = 'failed'"), 2);
    tree_remove(root);
}

static void test_sync_has_each_file_at_once(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.sync = true;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 2);
    fxtap_call *call = ss_begin(capture);
    const float values[4] = {1, 2, 3, 4};
    const char *partial = tree_path(root, RANK "/graph_1/.0-1.partial");
    fxtap_ticket ticket = ss_floats(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, values, 4);
    assert_int_equal(ss_count_names(partial, ".npy"), 1);
    assert_int_equal(fxtap_call_alias(call, ss_slot(capture, 0, FXTAP_OUTPUT, "0"), 1, ticket), FXTAP_OK);
    assert_int_equal(ss_count_names(partial, ".npy"), 2);
    assert_false(fxtap_call_is_pending(call, values, values + 4));
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 2);
    tree_remove(root);
}

/* A file of an earlier step that was modified is not linked to. */
static void test_edited_files_are_not_linked(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    const float values[4] = {1, 2, 3, 4};
    for (int step = 0; step < 2; step++) {
        fxtap_call *call = ss_begin(capture);
        ss_floats(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), fxtap_call_stamp(call), values, 4);
        assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
        if (step == 0) {
            const char *file = ss_text(root, "SELECT file FROM tensors");
            usleep(20000); /* time stamps of files have a resolution of some milliseconds */
            FILE *edited = fopen(tree_path(root, RANK "/%s", file), "r+b");
            assert_non_null(edited);
            assert_int_equal(fseek(edited, -4, SEEK_END), 0);
            assert_int_equal(fwrite("edit", 1, 4, edited), 4);
            fclose(edited);
            assert_int_equal(unlink(tree_path(root, RANK "/%s", file)), 0);
            FILE *made = fopen(tree_path(root, RANK "/%s", file), "wb");
            assert_non_null(made);
            fclose(made);
        }
    }
    fxtap_dump_close(dump);
    struct stat info;
    const char *file = ss_text(root, "SELECT file FROM tensors WHERE step = 1");
    assert_int_equal(stat(tree_path(root, RANK "/%s", file), &info), 0);
    assert_int_equal(info.st_size, 128 + 16);
    assert_int_equal(info.st_nlink, 1);
    tree_remove(root);
}

static void count_release(void *context)
{
    ++*(int *)context;
}

static void test_releases(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    const float value = 1;
    int n_released = 0;
    const int64_t bad_shape[] = {-1};
    fxtap_submission submission = {.struct_size = sizeof submission,
                                   .slot = ss_slot(capture, 0, FXTAP_INPUT, "0"),
                                   .view = {.data = &value, .dtype = FXTAP_FLOAT32},
                                   .release = count_release,
                                   .context = &n_released};
    fxtap_ticket ticket;
    for (uint64_t i = 0; i < 100; i++) {
        submission.stamp_us = i + 1;
        assert_int_equal(fxtap_call_reserve(call, 4, true), FXTAP_OK);
        assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_OK);
    }
    submission.view.ndim = 1;
    submission.view.shape = bad_shape;
    int before = n_released;
    assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_E_INVALID);
    assert_true(n_released > before);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    assert_int_equal(n_released, 101);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 100);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_and_links),
        cmocka_unit_test(test_what_was_linked_is_read_only_at_once),
        cmocka_unit_test(test_nothing_made_before_the_first_tensor),
        cmocka_unit_test(test_no_dedup),
        cmocka_unit_test(test_statistics_alone),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_numbers_text_and_nothing),
        cmocka_unit_test(test_rows_of_equal_files),
        cmocka_unit_test(test_frozen_clock),
        cmocka_unit_test(test_a_node_that_runs_twice),
        cmocka_unit_test(test_hard_names),
        cmocka_unit_test(test_path_that_is_too_long),
        cmocka_unit_test(test_long_path_that_is_not_too_long),
        cmocka_unit_test(test_links_in_the_path),
        cmocka_unit_test(test_failed_calls_are_kept),
        cmocka_unit_test(test_sync_has_each_file_at_once),
        cmocka_unit_test(test_edited_files_are_not_linked),
        cmocka_unit_test(test_releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
