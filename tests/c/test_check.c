/* fxtap_reader_check: all damage is reported, valid dumps have no problems, origins come first. */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/reader.h"
#include "support_dump.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"
#define GRAPH RANK "/graph_1"

typedef struct checked {
    fxtap_reader *reader;
    fxtap_check *check;
} checked;

static checked check_path(const char *path, bool read_data)
{
    checked result = {0};
    assert_int_equal(fxtap_reader_open(path, &result.reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_check(result.reader, read_data, NULL, NULL, &result.check), FXTAP_OK);
    return result;
}

static void done(checked *result)
{
    fxtap_check_free(result->check);
    fxtap_reader_close(result->reader);
}

static const fxtap_problem *only_problem(const checked *result)
{
    assert_int_equal(fxtap_check_problem_count(result->check), 1);
    return fxtap_check_problem(result->check, 0);
}

static void expect(const char *path, bool read_data, fxtap_problem_kind kind, const char *detail)
{
    checked result = check_path(path, read_data);
    const fxtap_problem *problem = only_problem(&result);
    assert_int_equal(problem->kind, kind);
    assert_non_null(strstr(problem->detail, detail));
    assert_memory_equal(problem->path, tree_root, strlen(tree_root));
    done(&result);
}

/* The path of a file of step 0 whose name contains `part`. */
static const char *file_of(const char *part)
{
    static char path[4096];
    char command[4200];
    snprintf(command, sizeof command, "ls '%s/" GRAPH "/0/'*'%s'*", tree_root, part);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(path, sizeof path, pipe));
    pclose(pipe);
    path[strlen(path) - 1] = '\0';
    return path;
}

static void separate(const char *path) /* breaks the hard links and makes the file writable */
{
    char command[9000];
    snprintf(command, sizeof command, "cp '%s' '%s.copy' && rm -f '%s' && mv '%s.copy' '%s' && chmod u+w '%s'", path,
             path, path, path, path, path);
    assert_int_equal(system(command), 0);
}

static void test_sound_dumps(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 3);
    for (int read_data = 0; read_data < 2; read_data++) {
        checked result = check_path(tree_root, read_data != 0);
        assert_int_equal(fxtap_check_problem_count(result.check), 0);
        assert_int_equal(fxtap_check_file_count(result.check), 18);
        assert_null(fxtap_check_problem(result.check, 0));
        done(&result);
    }
    sd_write(tree_root, 1000, 1); /* as if a second run had dumped into the first run's folder */
    checked result = check_path(tree_root, true);
    assert_int_equal(fxtap_check_problem_count(result.check), 0);
    assert_int_equal(fxtap_check_file_count(result.check), 24);
    done(&result);
    result = check_path(tree_path(tree_root, GRAPH "/0"), true);
    assert_int_equal(fxtap_check_problem_count(result.check), 0);
    done(&result);
}

static void test_missing(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    assert_int_equal(unlink(file_of("mul.Scalar.INPUT.0")), 0);
    expect(tree_root, false, FXTAP_PROBLEM_MISSING_FILE, "but missing");
}

static void test_cut_at_any_byte(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    const char *path = file_of("mul.Scalar.INPUT.0");
    separate(path);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    for (off_t length = info.st_size - 1; length >= 0; length -= length > 12 ? 7 : 1) {
        assert_int_equal(truncate(path, length), 0);
        expect(tree_root, false, FXTAP_PROBLEM_BAD_FILE, "");
    }
}

static void test_foreign_and_trailing(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    const char *path = file_of("mul.Scalar.INPUT.0");
    separate(path);
    FILE *file = fopen(path, "ab");
    fputs("more", file);
    fclose(file);
    expect(tree_root, true, FXTAP_PROBLEM_TRAILING, "4 bytes follow");
    tree_write(path, "\0\0\0\0\0\0\0\0\0\0 zeros where the magic was", 36);
    expect(tree_root, true, FXTAP_PROBLEM_BAD_FILE, "");
}

static void test_changed_contents(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    const char *path = file_of("mul.Scalar.INPUT.0");
    separate(path);
    FILE *file = fopen(path, "r+b");
    fseek(file, -1, SEEK_END);
    fputc(0x42, file);
    fclose(file);
    checked result = check_path(tree_root, false);
    assert_int_equal(fxtap_check_problem_count(result.check), 0);
    done(&result);
    expect(tree_root, true, FXTAP_PROBLEM_HASH, "differ from what was written");
    assert_int_equal(unlink(path), 0);
    static const float other[] = {1, 2, 3};
    tree_write_floats(path, other, 3);
    expect(tree_root, false, FXTAP_PROBLEM_BAD_FILE, "the file has float32 3, the index has float32 2x3");
}

/* A file that was changed through one of its names is reported under all of them. */
static void test_hard_links(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    const char *path = file_of("mul.Scalar.OUTPUT.0");
    assert_int_equal(chmod(path, 0600), 0);
    FILE *file = fopen(path, "r+b");
    fseek(file, -1, SEEK_END);
    fputc(0x42, file);
    fclose(file);
    checked result = check_path(tree_root, true);
    assert_int_equal(fxtap_check_problem_count(result.check), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fxtap_check_problem(result.check, i)->kind, FXTAP_PROBLEM_HASH);
    }
    done(&result);
}

static void test_unindexed(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    static const float values[] = {1};
    static const char *const places[] = {GRAPH "/0/other.npy", GRAPH "/other.npy", RANK "/other.npy",
                                         GRAPH "/0/mul-aten.mul.Scalar.INPUT.9.20260101000000000001.npy"};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const char *path = tree_path(tree_root, "%s", places[i]);
        tree_write_floats(path, values, 1);
        expect(tree_root, true, FXTAP_PROBLEM_UNINDEXED, "not in the index");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(symlink("/etc", tree_path(tree_root, GRAPH "/7")), 0);
    expect(tree_root, true, FXTAP_PROBLEM_BAD_FILE, "symbolic link");
}

static void test_steps(void **state)
{
    (void)state;
    static const float values[SD_N_VALUES] = {1, 2, 3, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_NPY);
    sd_step(&small, values, false);
    sd_step(&small, values, true);
    sd_close(&small);
    tree_copy(tree_path(tree_root, GRAPH "/0"), tree_path(tree_root, GRAPH "/.9-1.partial"));
    tree_copy(tree_path(tree_root, GRAPH "/0"), tree_path(tree_root, GRAPH "/5"));
    checked result = check_path(tree_root, true);
    static const fxtap_problem_kind kinds[] = {FXTAP_PROBLEM_FAILED_STEP, FXTAP_PROBLEM_UNINDEXED,
                                               FXTAP_PROBLEM_PARTIAL_STEP};
    assert_int_equal(fxtap_check_problem_count(result.check), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fxtap_check_problem(result.check, i)->kind, kinds[i]);
    }
    assert_string_equal(fxtap_check_problem(result.check, 0)->detail, "RuntimeError: boom");
    done(&result);
}

static void test_index_alone(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    tree_write(tree_path(tree_root, RANK "/fxtap.db"), "not one", 7);
    checked result = check_path(tree_root, true);
    assert_int_equal(fxtap_check_problem_count(result.check), 1);
    assert_int_equal(fxtap_check_problem(result.check, 0)->kind, FXTAP_PROBLEM_INDEX);
    done(&result);
}

static void expect_non_finite(const checked *result)
{
    /* Step 0 has an infinity in its input; step 1 produces one from finite values. */
    static const struct {
        const char *name;
        int64_t step;
        bool is_origin;
    } expected[] = {
        {"mul-aten.mul.Scalar.OUTPUT.0", 1, true},     {"mul-aten.mul.Scalar.INPUT.0", 0, false},
        {"mul-aten.mul.Scalar.OUTPUT.0", 0, false},    {"sum_1-aten.sum.default.INPUT.0", 0, false},
        {"sum_1-aten.sum.default.OUTPUT.0", 0, false}, {"sum_1-aten.sum.default.INPUT.0", 1, false},
        {"sum_1-aten.sum.default.OUTPUT.0", 1, false},
    };
    assert_int_equal(fxtap_check_problem_count(result->check), COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const fxtap_problem *problem = fxtap_check_problem(result->check, i);
        assert_int_equal(problem->kind, FXTAP_PROBLEM_NON_FINITE);
        assert_string_equal(problem->tensor->name, expected[i].name);
        assert_int_equal(problem->tensor->step->step, expected[i].step);
        assert_int_equal(problem->is_origin, expected[i].is_origin);
    }
    assert_string_equal(fxtap_check_problem(result->check, 0)->detail, "1 +Inf among 6");
}

static void test_non_finite_values(void **state)
{
    (void)state;
    static const float enters[SD_N_VALUES] = {1, 2, (float)INFINITY, 4, 5, 6};
    static const float overflows[SD_N_VALUES] = {1, 2, 3e38f, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_NPY);
    sd_step(&small, enters, false);
    sd_step(&small, overflows, false);
    sd_close(&small);
    for (int read_data = 0; read_data < 2; read_data++) {
        checked result = check_path(tree_root, read_data != 0);
        expect_non_finite(&result);
        done(&result);
    }
    assert_int_equal(unlink(tree_path(tree_root, RANK "/fxtap.db")),
                     0); /* the same from the files, without the index */
    checked result = check_path(tree_root, true);
    expect_non_finite(&result);
    done(&result);
    result = check_path(tree_root, false);
    assert_int_equal(fxtap_check_problem_count(result.check), 0);
    done(&result);
}

static void test_plain_files(void **state)
{
    (void)state;
    static const float values[] = {1, (float)NAN};
    tree_write_floats(tree_path(tree_root, "plain/a.npy"), values, 1);
    tree_write_floats(tree_path(tree_root, "plain/b.npy"), values, 2);
    tree_write(tree_path(tree_root, "plain/c.npy"), "x", 1);
    checked result = check_path(tree_path(tree_root, "plain"), true);
    assert_int_equal(fxtap_check_file_count(result.check), 3);
    assert_int_equal(fxtap_check_problem_count(result.check), 2);
    assert_int_equal(fxtap_check_problem(result.check, 0)->kind, FXTAP_PROBLEM_BAD_FILE);
    assert_int_equal(fxtap_check_problem(result.check, 1)->kind, FXTAP_PROBLEM_NON_FINITE);
    assert_false(fxtap_check_problem(result.check, 1)->is_origin);
    done(&result);
}

typedef struct progress_log {
    uint64_t last;
    uint64_t total;
    uint64_t stop_at;
} progress_log;

static bool log_progress(void *context, uint64_t done_files, uint64_t total)
{
    progress_log *log = context;
    assert_true(done_files >= log->last && done_files <= total);
    log->last = done_files;
    log->total = total;
    return done_files < log->stop_at;
}

static void test_progress_and_stop(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 3);
    fxtap_reader *reader = NULL;
    fxtap_check *check = NULL;
    assert_int_equal(fxtap_reader_open(tree_root, &reader), FXTAP_OK);
    progress_log log = {.stop_at = UINT64_MAX};
    assert_int_equal(fxtap_reader_check(reader, true, log_progress, &log, &check), FXTAP_OK);
    assert_int_equal(log.last, 18);
    assert_int_equal(log.total, 18);
    fxtap_check_free(check);
    check = NULL;
    log = (progress_log){.stop_at = 1};
    assert_int_equal(fxtap_reader_check(reader, true, log_progress, &log, &check), FXTAP_E_CANCELLED);
    assert_null(check);
    fxtap_check_free(NULL);
    fxtap_reader_close(reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make_root, tree_remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sound_dumps),      TEST(test_missing),
        TEST(test_cut_at_any_byte),  TEST(test_foreign_and_trailing),
        TEST(test_changed_contents), TEST(test_hard_links),
        TEST(test_unindexed),        TEST(test_steps),
        TEST(test_index_alone),      TEST(test_non_finite_values),
        TEST(test_plain_files),      TEST(test_progress_and_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
