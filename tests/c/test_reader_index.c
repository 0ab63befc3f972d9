/* Dumps with an index, written and read by the library. */
#include "support_cmocka.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fxtap/reader.h"
#include "index/schema.h"
#include "support_dump.h"
#include "support_reader.h"
#include "support_tree.h"
#include "util/memory.h"

#define RANK "worldsize1_global_rank0"
#define GRAPH RANK "/graph_1"
#define INDEX RANK "/" FX_INDEX_FILE

static const fxtap_graph_info *first_graph(fxtap_reader *reader)
{
    const fxtap_graph_info *const *graphs;
    size_t n;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n), FXTAP_OK);
    assert_true(n > 0);
    return graphs[0];
}

/* ---- contents ---- */

static void test_graph_run_and_nodes(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_INDEXED);
    assert_true(fxtap_reader_rank(reader, 0)->has_index);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 1);
    const fxtap_run_info *run = fxtap_reader_run(reader, 0, 0);
    assert_int_equal(run->pid, getpid());
    assert_string_equal(run->versions, "torch 2.13.0");
    assert_string_equal(run->command, "python train.py");
    assert_string_equal(run->type, "npy");
    const fxtap_graph_info *graph = first_graph(reader);
    assert_int_equal(graph->run, 1);
    assert_int_equal(graph->kind, FXTAP_GRAPH_INFERENCE);
    assert_true(graph->has_keys);
    assert_int_equal(graph->n_nodes, 5);
    assert_int_equal(graph->n_dumped, 2);
    assert_int_equal(graph->n_steps, 2);
    const fxtap_graph *record;
    assert_int_equal(fxtap_reader_record(reader, graph, &record), FXTAP_OK);
    fxtap_hash128 key = fxtap_graph_strict_key(record);
    assert_true(key.high == graph->strict_key.high && key.low == graph->strict_key.low);
    const fxtap_node_info *const *nodes;
    size_t n;
    assert_int_equal(fxtap_reader_nodes(reader, graph, &nodes, &n), FXTAP_OK);
    assert_int_equal(n, 5);
    assert_string_equal(nodes[1]->name, "mul");
    assert_string_equal(nodes[1]->target, "aten.mul.Scalar");
    assert_string_equal(nodes[1]->source_file, "model.py");
    assert_int_equal(nodes[1]->source_line, 12);
    assert_string_equal(nodes[1]->source_function, "forward");
    assert_string_equal(nodes[1]->source_code, "y = x * 2");
    assert_string_equal(nodes[1]->module_path, "L['self'].layers.0");
    assert_null(nodes[1]->skipped);
    assert_string_equal(nodes[2]->skipped, "non aten target");
    fxtap_reader_close(reader);
}

static void test_tensors(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    static const char *const names[] = {"mul-aten.mul.Scalar.INPUT.0",      "mul-aten.mul.Scalar.INPUT.1",
                                        "mul-aten.mul.Scalar.OUTPUT.0",     "sum_1-aten.sum.default.INPUT.0",
                                        "sum_1-aten.sum.default.INPUT.dim", "sum_1-aten.sum.default.INPUT.mode",
                                        "sum_1-aten.sum.default.OUTPUT.0"};
    assert_int_equal(fxtap_tensor_list_count(list), 14);
    for (size_t i = 0; i < 14; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        assert_string_equal(info->name, names[i % 7]);
        assert_int_equal(info->step->step, i / 7);
        bool has_value = i % 7 != 4;
        assert_true((info->path != NULL) == has_value && (info->skipped == NULL) == has_value);
        assert_true(info->has_meta == has_value && info->has_hash == has_value);
        assert_true(!has_value || access(info->path, R_OK) == 0);
    }
    assert_string_equal(fxtap_tensor_list_at(list, 4)->skipped, "None");
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, 7);
    assert_string_equal(info->arg_name, "self");
    assert_string_equal(info->device, "cpu");
    assert_int_equal(info->dtype, FXTAP_FLOAT32);
    assert_int_equal(info->ndim, 2);
    assert_true(info->shape[0] == 2 && info->shape[1] == 3);
    assert_int_equal(info->bytes, 24);
    assert_true(info->has_stats);
    assert_true(info->stats.min == 2.0 && info->stats.max == 7.0 && info->stats.mean == 4.5);
    info = fxtap_tensor_list_at(list, 1);
    assert_int_equal(info->dtype, FXTAP_FLOAT64);
    assert_int_equal(info->ndim, 0);
    assert_int_equal(fxtap_tensor_list_at(list, 5)->dtype, FXTAP_STRING);
    assert_false(fxtap_tensor_list_at(list, 5)->has_stats);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

/* Equal to the steps' lists; none for an output, an input without a file, or another node's position. */
static void test_hashes_of_an_input(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    fxtap_reader *reader = sr_open(tree_root);
    const fxtap_step_info *const *steps;
    const fxtap_node_info *const *nodes;
    size_t n;
    assert_int_equal(fxtap_reader_steps(reader, first_graph(reader), &steps, &n), FXTAP_OK);
    assert_int_equal(n, 2);
    assert_int_equal(fxtap_reader_nodes(reader, first_graph(reader), &nodes, &n), FXTAP_OK);
    fxtap_hash128 hashes[2], none[2] = {{0, 0}, {0, 0}};
    assert_int_equal(fxtap_reader_input_hashes(reader, nodes[1], "0", steps, 2, hashes), FXTAP_OK);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    for (size_t i = 0; i < 2; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, 7 * i);
        assert_memory_equal(&hashes[i], &info->hash, sizeof info->hash);
    }
    assert_memory_not_equal(&hashes[0], &hashes[1], sizeof hashes[0]);
    fxtap_tensor_list_free(list);
    static const struct {
        size_t node;
        const char *position;
    } others[] = {{1, "2"}, {1, "dim"}, {0, "0"}};
    for (size_t i = 0; i < 3; i++) {
        memset(hashes, 1, sizeof hashes);
        assert_int_equal(fxtap_reader_input_hashes(reader, nodes[others[i].node], others[i].position, steps, 2, hashes),
                         FXTAP_OK);
        assert_memory_equal(hashes, none, sizeof none);
    }
    fxtap_reader_close(reader);
}

/* The index and the file agree about each tensor. */
static void test_index_agrees_with_files(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    fxtap_reader *indexed = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(indexed, NULL);
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        if (info->path == NULL) {
            continue;
        }
        fxtap_reader *single = sr_open(info->path);
        fxtap_tensor_list *own = sr_list(single, NULL);
        const fxtap_tensor_info *file = fxtap_tensor_list_at(own, 0);
        fxtap_status expected = info->dtype == FXTAP_STRING ? FXTAP_E_UNSUPPORTED : FXTAP_OK;
        assert_int_equal(fxtap_tensor_load_stats(own, 0), expected);
        assert_int_equal(file->dtype, info->dtype);
        assert_int_equal(file->bytes, info->bytes);
        assert_int_equal(file->ndim, info->ndim);
        assert_true(expected != FXTAP_OK || memcmp(&file->hash, &info->hash, sizeof file->hash) == 0);
        assert_true(expected != FXTAP_OK || file->stats.l2_norm == info->stats.l2_norm);
        fxtap_tensor_list_free(own);
        fxtap_reader_close(single);
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(indexed);
}

static void test_several_runs(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 3);
    sd_write(tree_root, 1000, 1);
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 2);
    fxtap_tensor_query query = sr_query_all();
    static const struct {
        int64_t run;
        size_t n_tensors, n_graphs;
    } cases[] = {{0, 7, 1}, {1, 21, 1}, {2, 7, 1}, {3, 0, 0}, {-1, 28, 2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const fxtap_graph_info *const *graphs;
        size_t n;
        query.run = cases[i].run;
        assert_int_equal(sr_count(reader, &query), cases[i].n_tensors);
        assert_int_equal(fxtap_reader_graphs(reader, query.run, &graphs, &n), FXTAP_OK);
        assert_int_equal(n, cases[i].n_graphs);
    }
    fxtap_reader_close(reader);
    /* A step that only the earlier run has belongs to that run when it is opened separately. */
    query.run = 0;
    reader = sr_open(tree_path(tree_root, GRAPH "/2"));
    assert_int_equal(sr_count(reader, &query), 7);
    assert_int_equal(first_graph(reader)->run, 1);
    fxtap_reader_close(reader);
    reader = sr_open(tree_path(tree_root, GRAPH "/0"));
    assert_int_equal(sr_count(reader, &query), 7);
    assert_int_equal(first_graph(reader)->run, 2);
    fxtap_reader_close(reader);
}

static void test_a_run_without_graphs_is_not_the_latest(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    sr_sql(tree_path(tree_root, INDEX), "INSERT INTO run SELECT 7, pid, host, started_us + 9, NULL, world_size, rank,"
                                        " type, fxtap, versions, command FROM run");
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 2);
    assert_int_equal(sr_count(reader, NULL), 7);
    fxtap_reader_close(reader);
}

static void test_failed_steps(void **state)
{
    (void)state;
    static const float values[SD_N_VALUES] = {1, 2, 3, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_NPY);
    sd_step(&small, values, false);
    sd_step(&small, values, true);
    sd_close(&small);
    fxtap_reader *reader = sr_open(tree_root);
    const fxtap_graph_info *graph = first_graph(reader);
    const fxtap_step_info *const *steps;
    size_t n;
    assert_int_equal(graph->n_steps, 1);
    assert_int_equal(fxtap_reader_steps(reader, graph, &steps, &n), FXTAP_OK);
    assert_int_equal(n, 2);
    assert_int_equal(steps[1]->state, FXTAP_STEP_FAILED);
    assert_string_equal(steps[1]->reason, "RuntimeError: boom");
    assert_int_equal(access(steps[1]->folder, R_OK), 0);
    fxtap_tensor_query query = sr_query_all();
    assert_int_equal(sr_count(reader, &query), 7);
    query.with_incomplete = true;
    assert_int_equal(sr_count(reader, &query), 14);
    fxtap_reader_close(reader);
}

static void test_statistics_alone(void **state)
{
    (void)state;
    static const float values[SD_N_VALUES] = {1, 2, 3, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_STATS);
    sd_step(&small, values, false);
    sd_close(&small);
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 7);
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, 0);
    assert_null(info->path);
    assert_true(info->has_stats && info->stats.max == 6.0);
    assert_int_equal(fxtap_tensor_load_stats(list, 0), FXTAP_OK);
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_tensor_open(list, 0, &npy), FXTAP_E_NOT_FOUND);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_a_step_that_was_being_moved(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    sr_sql(tree_path(tree_root, INDEX), "UPDATE step SET partial = 'graph_1/.1-1.partial' WHERE step = 1");
    assert_int_equal(rename(tree_path(tree_root, GRAPH "/1"), tree_path(tree_root, GRAPH "/.1-1.partial")), 0);
    tree_mkdir(tree_path(tree_root, GRAPH "/1"));
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_query query = sr_query_all();
    assert_int_equal(sr_count(reader, &query), 7);
    query.with_incomplete = true;
    fxtap_tensor_list *list = sr_list(reader, &query);
    const char *path = fxtap_tensor_list_at(list, 7)->path;
    assert_int_equal(fxtap_tensor_list_at(list, 7)->step->state, FXTAP_STEP_PARTIAL);
    assert_non_null(strstr(path, ".1-1.partial/"));
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(rename(path, tree_path(tree_root, GRAPH "/1/%s", strrchr(path, '/') + 1)), 0);
    fxtap_tensor_list_free(list);
    list = sr_list(reader, &query); /* partly moved */
    for (size_t i = 7; i < 14; i++) {
        path = fxtap_tensor_list_at(list, i)->path;
        assert_true(path == NULL || access(path, R_OK) == 0);
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_folders_that_the_index_does_not_have(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 2);
    sr_sql(tree_path(tree_root, INDEX), "DELETE FROM tensor WHERE step_id = 2; DELETE FROM step WHERE id = 2");
    assert_int_equal(rename(tree_path(tree_root, GRAPH "/1"), tree_path(tree_root, GRAPH "/.1-1.partial")), 0);
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_query query = sr_query_all();
    query.with_incomplete = true;
    fxtap_tensor_list *list = sr_list(reader, &query);
    assert_int_equal(fxtap_tensor_list_count(list), 7 + 6); /* None has no file */
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, 7);
    assert_int_equal(info->step->state, FXTAP_STEP_PARTIAL);
    assert_string_equal(info->node->source_file, "model.py"); /* the node from the index */
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

/* ---- places ---- */

static void snapshot(char *names, size_t capacity)
{
    char command[600];
    snprintf(command, sizeof command,
             "(cd '%s' && find . -printf '%%P %%s %%T@\\n' && find . -type f -exec md5sum {} +) | sort", tree_root);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(names, 1, capacity - 1, pipe);
    names[n] = '\0';
    pclose(pipe);
}

static void test_reading_leaves_nothing_behind(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    static char before[20000], after[20000];
    snapshot(before, sizeof before);
    fxtap_reader *reader = sr_open(tree_root);
    sr_count(reader, NULL);
    fxtap_reader_close(reader);
    snapshot(after, sizeof after);
    assert_string_equal(before, after);
}

static void test_reads_while_it_is_written(void **state)
{
    (void)state;
    static const float values[SD_N_VALUES] = {1, 2, 3, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_NPY);
    for (size_t i = 1; i < 4; i++) {
        sd_step(&small, values, false);
        fxtap_reader *reader = sr_open(tree_root);
        assert_int_equal(sr_count(reader, NULL), 7 * i);
        assert_int_equal(fxtap_reader_warning_count(reader), 0);
        fxtap_reader_close(reader);
    }
    /* A copy of the database file alone is a valid index. */
    char *copy = tree_create();
    tree_copy(tree_path(tree_root, RANK), copy);
    unlink(tree_path(copy, INDEX "-wal"));
    unlink(tree_path(copy, INDEX "-shm"));
    fxtap_reader *reader = sr_open(copy);
    assert_int_equal(sr_count(reader, NULL), 21);
    fxtap_reader_close(reader);
    tree_remove(copy);
    sd_close(&small);
}

static void test_names_that_mean_something_in_a_uri(void **state)
{
    (void)state;
    const char *odd = tree_path(tree_root, "a%%20b?mode=rw#c \xff");
    tree_mkdir(odd);
    sd_write(odd, 0, 1);
    fxtap_reader *reader = sr_open(odd);
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_INDEXED);
    assert_int_equal(sr_count(reader, NULL), 7);
    fxtap_reader_close(reader);
}

/*
 * Opens another connection of this process, with a transaction that is only in the log, and never closes it, as if
 * killed.
 */
static void leave_a_log(const char *path)
{
    sqlite3 *writer;
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    sqlite3_db_config(writer, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int keep = 1;
    assert_int_equal(sqlite3_exec(writer,
                                  "PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL;"
                                  " UPDATE node SET module_path = 'in the log'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_file_control(writer, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    assert_int_equal(sqlite3_close(writer), SQLITE_OK);
    assert_int_equal(access(tree_path(tree_root, INDEX "-wal"), F_OK), 0);
}

static void expect_log_is_read(size_t n_warnings)
{
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(sr_count(reader, NULL), 7);
    const fxtap_node_info *const *nodes;
    size_t n_nodes;
    assert_int_equal(fxtap_reader_nodes(reader, first_graph(reader), &nodes, &n_nodes), FXTAP_OK);
    assert_string_equal(nodes[0]->module_path, n_warnings == 0 ? "in the log" : "");
    assert_int_equal(fxtap_reader_warning_count(reader), n_warnings);
    fxtap_reader_close(reader);
}

/* The index of a killed process is read with its log, with or without shared memory, and is not changed. */
static void test_reading_a_log_changes_nothing(void **state)
{
    (void)state;
    static char before[20000], after[20000];
    sd_write(tree_root, 0, 1);
    leave_a_log(tree_path(tree_root, INDEX));
    for (int with_map = 1; with_map >= 0; with_map--) {
        if (!with_map) {
            unlink(tree_path(tree_root, INDEX "-shm"));
        }
        snapshot(before, sizeof before);
        expect_log_is_read(0);
        snapshot(after, sizeof after);
        assert_string_equal(before, after);
    }
}

/* A connection that committed without a checkpoint leaves no reader slot. */
static void test_a_log_of_a_process_that_is_alive(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    int ready[2], done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *writer;
        char byte = 0;
        bool ok = sqlite3_open(tree_path(tree_root, INDEX), &writer) == SQLITE_OK &&
                  sqlite3_exec(writer,
                               "PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL;"
                               " UPDATE node SET module_path = 'in the log'",
                               NULL, NULL, NULL) == SQLITE_OK;
        ok = write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1 && ok;
        _exit(ok ? 0 : 1);
    }
    char byte = 0;
    int result;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    expect_log_is_read(0);
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

/* Whether another process finds the index locked. */
static bool is_locked(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return result != 0;
}

/* Closing any descriptor of a file releases all locks that the process has on it. */
static void test_a_writer_of_this_process_keeps_its_locks(void **state)
{
    (void)state;
    static const float values[SD_N_VALUES] = {1, 2, 3, 4, 5, 6};
    sd_set_clock(0);
    small_dump small = sd_open(tree_root, FXTAP_DUMP_NPY);
    sd_step(&small, values, false);
    assert_true(is_locked(tree_path(tree_root, INDEX)));
    fxtap_reader *reader = sr_open(tree_root);
    assert_true(is_locked(tree_path(tree_root, INDEX)));
    assert_int_equal(sr_count(reader, NULL), 7);
    assert_true(is_locked(tree_path(tree_root, INDEX)));
    fxtap_reader_close(reader);
    assert_true(is_locked(tree_path(tree_root, INDEX)));
    sd_close(&small);
}

/* Nodes that are out of order, with those of a second graph between them, as another program may write them. */
static void test_rows_in_any_order(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    sd_write(tree_root, 1, 1);
    static const char *const orders[] = {"id", "1000 - id", "(id * 7) % 11 + 100"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        char sql[400];
        snprintf(sql, sizeof sql,
                 "CREATE TEMP TABLE moved AS SELECT id, %s AS new FROM node;"
                 " UPDATE node SET id = -(SELECT new FROM moved m WHERE m.id = node.id);"
                 " UPDATE slot SET node_id = (SELECT new FROM moved m WHERE m.id = node_id);"
                 " UPDATE node SET id = -id",
                 orders[i]);
        sr_sql(tree_path(tree_root, INDEX), sql);
        fxtap_reader *reader = sr_open(tree_root);
        fxtap_tensor_query query = sr_query_all();
        query.run = -1;
        fxtap_tensor_list *list = sr_list(reader, &query);
        assert_int_equal(fxtap_tensor_list_count(list), 14);
        const fxtap_node_info *const *nodes;
        size_t n_nodes;
        assert_int_equal(fxtap_reader_nodes(reader, first_graph(reader), &nodes, &n_nodes), FXTAP_OK);
        assert_int_equal(first_graph(reader)->n_nodes, n_nodes);
        for (size_t k = 0; k < 7; k++) {
            const fxtap_tensor_info *x = fxtap_tensor_list_at(list, k), *y = fxtap_tensor_list_at(list, k + 7);
            assert_string_equal(x->name, y->name);
            assert_true(k == 0 || x->node->order >= fxtap_tensor_list_at(list, k - 1)->node->order);
        }
        assert_string_equal(nodes[0]->name, "arg0_1");
        assert_int_equal(fxtap_reader_warning_count(reader), 0);
        fxtap_tensor_list_free(list);
        fxtap_reader_close(reader);
    }
}

static fxtap_status open_list_and_check(void)
{
    fxtap_reader *reader = NULL;
    fxtap_tensor_list *list = NULL;
    fxtap_check *check = NULL;
    fxtap_tensor_query query = sr_query_all();
    fxtap_status status = fxtap_reader_open(tree_root, &reader);
    if (status == FXTAP_OK) {
        status = fxtap_reader_tensors(reader, &query, &list);
    }
    if (status == FXTAP_OK) {
        status = fxtap_reader_check(reader, true, NULL, NULL, &check);
    }
    if (status == FXTAP_OK) {
        assert_int_equal(fxtap_check_problem_count(check), 0);
    }
    fxtap_check_free(check);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    sd_write(tree_root, 0, 1);
    fxtap_status status = FXTAP_E_NOMEM;
    for (long long n = 0; status == FXTAP_E_NOMEM; n++) {
        assert_true(n < 100000);
        fx_memory_fail_after(n);
        status = open_list_and_check();
        fx_memory_fail_after(-1);
    }
    assert_int_equal(status, FXTAP_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make_root, tree_remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_graph_run_and_nodes),
        TEST(test_tensors),
        TEST(test_hashes_of_an_input),
        TEST(test_index_agrees_with_files),
        TEST(test_several_runs),
        TEST(test_a_run_without_graphs_is_not_the_latest),
        TEST(test_failed_steps),
        TEST(test_statistics_alone),
        TEST(test_a_step_that_was_being_moved),
        TEST(test_folders_that_the_index_does_not_have),
        TEST(test_reading_leaves_nothing_behind),
        TEST(test_reads_while_it_is_written),
        TEST(test_names_that_mean_something_in_a_uri),
        TEST(test_reading_a_log_changes_nothing),
        TEST(test_a_log_of_a_process_that_is_alive),
        TEST(test_a_writer_of_this_process_keeps_its_locks),
        TEST(test_rows_in_any_order),
        TEST(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
