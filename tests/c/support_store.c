#include "support_store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "fxtap/npy.h"
#include "fxtap/stats.h"
#include "support_cmocka.h"
#include "support_graph.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"

fxtap_dump_options ss_options(const char *root)
{
    return (fxtap_dump_options){.struct_size = sizeof(fxtap_dump_options),
                                .path = root,
                                .world_size = 1,
                                .type = FXTAP_DUMP_NPY,
                                .n_threads = 2,
                                .versions = "test"};
}

static void expect_ok(fxtap_status status)
{
    if (status != FXTAP_OK) {
        fail_msg("%s: %s", fxtap_status_name(status), fxtap_error_message());
    }
}

fxtap_dump *ss_open(const fxtap_dump_options *options)
{
    fxtap_dump *dump = NULL;
    expect_ok(fxtap_dump_open(options, &dump));
    return dump;
}

struct ss_fixture fixture;

int ss_set_up(void **state)
{
    (void)state;
    fixture.root = tree_create();
    fxtap_dump_options options = ss_options(fixture.root);
    fixture.dump = ss_open(&options);
    fixture.capture = ss_capture(fixture.dump, 1, 2);
    return 0;
}

int ss_tear_down(void **state)
{
    (void)state;
    fxtap_dump_close(fixture.dump);
    tree_remove(fixture.root);
    return 0;
}

fxtap_capture *ss_named(fxtap_dump *dump, uint32_t graph_id, size_t n, const char *const *names)
{
    fxtap_graph *graph = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value meta = sg_tensor(graph, FXTAP_FLOAT32, "cpu", "4");
    fxtap_node last = sg_node(graph, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, meta);
    for (size_t i = 0; i < n; i++) {
        fxtap_value argument = sg_ref(graph, last);
        last = sg_node(graph, FXTAP_OP_CALL_FUNCTION, names[i], "aten.relu.default", 1, &argument, meta);
    }
    fxtap_value result = sg_ref(graph, last);
    sg_node(graph, FXTAP_OP_OUTPUT, "output", "output", 1, &result, 0);
    fxtap_capture *capture = NULL;
    expect_ok(fxtap_dump_add_graph(dump, graph, graph_id, NULL, &capture));
    fxtap_graph_free(graph);
    return capture;
}

fxtap_capture *ss_capture(fxtap_dump *dump, uint32_t graph_id, size_t n)
{
    char(*texts)[32] = calloc(n, sizeof *texts);
    const char **names = calloc(n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof texts[i], "n%zu", i);
        names[i] = texts[i];
    }
    fxtap_capture *capture = ss_named(dump, graph_id, n, names);
    free(names);
    free(texts);
    return capture;
}

fxtap_call *ss_begin(fxtap_capture *capture)
{
    fxtap_call *call = NULL;
    expect_ok(fxtap_call_begin(capture, &call));
    return call;
}

fxtap_slot ss_slot(fxtap_capture *capture, size_t i, fxtap_io io, const char *position)
{
    fxtap_slot slot = 0;
    expect_ok(fxtap_capture_slot(capture, (fxtap_node)(i + 1), io, position, "self", &slot));
    return slot;
}

fxtap_ticket ss_submit(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const fxtap_view *view)
{
    uint64_t n_bytes = 0;
    fxtap_ticket ticket = 0;
    fxtap_submission submission = {.struct_size = sizeof submission, .slot = slot, .stamp_us = stamp_us, .view = *view};
    expect_ok(fxtap_view_saved_bytes(view, &n_bytes));
    expect_ok(fxtap_call_reserve(call, n_bytes, true));
    expect_ok(fxtap_call_submit(call, &submission, &ticket));
    return ticket;
}

fxtap_ticket ss_floats(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const float *values, size_t n)
{
    int64_t shape = (int64_t)n;
    fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &shape};
    return ss_submit(call, slot, stamp_us, &view);
}

fxtap_status ss_run(fxtap_capture *capture, size_t n, float *values, size_t n_values, uint64_t *step_out)
{
    fxtap_call *call = ss_begin(capture);
    uint64_t stamp = fxtap_call_stamp(call);
    fxtap_ticket ticket = ss_floats(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), stamp, values, n_values);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            stamp = fxtap_call_stamp(call);
            fxtap_slot slot = ss_slot(capture, i, FXTAP_INPUT, "0");
            expect_ok(fxtap_call_alias(call, slot, stamp, ticket));
        }
        fxtap_call_settle(call, values, values + n_values);
        for (size_t j = 0; j < n_values; j++) {
            values[j] += 1.0f;
        }
        ticket = ss_floats(call, ss_slot(capture, i, FXTAP_OUTPUT, "0"), stamp, values, n_values);
        if (ticket == 0) { /* the end of a failed call fails too */
            break;
        }
    }
    return fxtap_call_end(call, step_out);
}

/* ---- the index ---- */

static sqlite3 *open_index(const char *root)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(tree_path(root, RANK "/fxtap.db"), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    return db;
}

static sqlite3_stmt *query(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    return statement;
}

int64_t ss_int(const char *root, const char *sql)
{
    sqlite3 *db = open_index(root);
    sqlite3_stmt *statement = query(db, sql);
    int64_t found = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

const char *ss_text(const char *root, const char *sql)
{
    static char text[4096];
    sqlite3 *db = open_index(root);
    sqlite3_stmt *statement = query(db, sql);
    text[0] = '\0';
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL) {
        snprintf(text, sizeof text, "%s", (const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return text;
}

/* ---- checking ---- */

static void check_file(const char *path, const char *shape, const char *hash)
{
    fxtap_npy *npy = NULL;
    if (fxtap_npy_open(path, &npy) != FXTAP_OK) {
        fail_msg("%s", fxtap_error_message());
    }
    const fxtap_view *view = fxtap_npy_view(npy);
    char text[1024] = "";
    for (int32_t i = 0; i < view->ndim; i++) {
        char number[32];
        snprintf(number, sizeof number, i == 0 ? "%lld" : ",%lld", (long long)view->shape[i]);
        strcat(text, number);
    }
    assert_string_equal(text, shape);
    assert_int_equal(fxtap_npy_trailing_bytes(npy), 0);
    if (view->dtype != FXTAP_STRING) {
        fxtap_stats stats;
        fxtap_hash128 found;
        expect_ok(fxtap_stats_compute(view, &stats, &found));
        snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)found.high, (unsigned long long)found.low);
        assert_string_equal(text, hash);
    }
    fxtap_npy_close(npy);
}

static bool is_step_name(const char *name)
{
    return name[0] != '\0' && strspn(name, "0123456789") == strlen(name);
}

/* Each file in a folder has a row. */
static size_t check_folder(sqlite3 *db, const char *rank, const char *graph, const char *step)
{
    char relative[512];
    snprintf(relative, sizeof relative, "%s/%s", graph, step);
    DIR *folder = opendir(tree_path(rank, "%s", relative));
    assert_non_null(folder);
    sqlite3_stmt *statement = query(db, "SELECT 1 FROM found WHERE file = ?1");
    size_t n = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        const char *path = tree_path(relative, "%s", entry->d_name);
        sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) != SQLITE_ROW) {
            fail_msg("%s is not in the index", path);
        }
        sqlite3_reset(statement);
        n++;
    }
    sqlite3_finalize(statement);
    closedir(folder);
    return n;
}

static size_t check_graph(sqlite3 *db, const char *rank, const char *graph)
{
    size_t n = 0;
    DIR *folder = opendir(tree_path(rank, "%s", graph));
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (is_step_name(entry->d_name)) {
            n += check_folder(db, rank, graph, entry->d_name);
        }
    }
    closedir(folder);
    return n;
}

/* Each row of a step that was renamed into place has its file. */
static void check_rows(sqlite3 *db, const char *rank)
{
    sqlite3_stmt *rows = query(db, "SELECT t.file, t.shape, t.hash, s.partial FROM tensors t JOIN step s"
                                   " ON s.call = t.call AND s.state = t.state JOIN graph g ON g.id = s.graph_id AND"
                                   " g.run_id = t.run AND g.graph = t.graph WHERE t.file IS NOT NULL");
    while (sqlite3_step(rows) == SQLITE_ROW) {
        struct stat info;
        bool is_partial = stat(tree_path(rank, "%s", (const char *)sqlite3_column_text(rows, 3)), &info) == 0;
        const char *path = tree_path(rank, "%s", (const char *)sqlite3_column_text(rows, 0));
        if (!is_partial || stat(path, &info) == 0) {
            check_file(path, (const char *)sqlite3_column_text(rows, 1), (const char *)sqlite3_column_text(rows, 2));
        }
    }
    sqlite3_finalize(rows);
}

size_t ss_check(const char *root)
{
    char *rank = strdup(tree_path(root, RANK));
    assert_non_null(rank);
    size_t n = 0;
    sqlite3 *db = open_index(root);
    assert_int_equal(sqlite3_exec(db,
                                  "CREATE TEMP TABLE found AS SELECT file FROM tensors WHERE file IS NOT NULL;"
                                  "CREATE INDEX temp.by_file ON found(file)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    check_rows(db, rank);
    DIR *folder = opendir(rank);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strncmp(entry->d_name, "graph_", 6) == 0) {
            n += check_graph(db, rank, entry->d_name);
        }
    }
    closedir(folder);
    sqlite3_close(db);
    free(rank);
    return n;
}

size_t ss_count_names(const char *folder, const char *substring)
{
    DIR *open = opendir(folder);
    size_t n = 0;
    if (open == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        bool is_self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        n += !is_self && strstr(entry->d_name, substring) != NULL;
    }
    closedir(open);
    return n;
}

size_t ss_count_descriptors(void)
{
    return ss_count_names("/proc/self/fd", "");
}
