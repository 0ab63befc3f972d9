/*
 * fuzz_index_rows.c - an index that is a valid SQLite file with arbitrary values.
 *
 * Arbitrary bytes are hardly ever an index (see fuzz_index.c). Here the input is a list of edits, which SQLite applies
 * to a valid index of one graph and two steps: set a value in a table, delete or duplicate a row, or drop a table. Then
 * the result is read, checked, and compared with the valid index.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/compare.h"
#include "fxtap/dump.h"
#include "index_use.h"

#define MAX_EDITS 32
#define MAX_TEXT 64
#define OUTPUT_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char good_root[64];
static index_folder bad;
static unsigned char *good_bytes;
static sqlite3_int64 n_good_bytes;

typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

static uint8_t next(cursor *c)
{
    if (c->left == 0) {
        return 0;
    }
    c->left--;
    return *c->at++;
}

/* ---- the valid index ---- */

static fxtap_capture *add_graph(fxtap_dump *dump)
{
    fxtap_graph *graph = NULL;
    fxtap_capture *capture = NULL;
    fxtap_node node = 0;
    fxtap_value ref = 0;
    check(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph) == FXTAP_OK);
    static const char *const names[] = {"x", "sin", "exp", "output"};
    for (int i = 0; i < 4; i++) {
        fxtap_node_desc desc = {.struct_size = sizeof desc, .name = names[i], .args = &ref, .n_args = i > 0};
        desc.op = i == 0 ? FXTAP_OP_PLACEHOLDER : i == 3 ? FXTAP_OP_OUTPUT : FXTAP_OP_CALL_FUNCTION;
        desc.target = i == 1 ? "aten.sin.default" : i == 2 ? "aten.exp.default" : names[i];
        check(fxtap_graph_add_node(graph, &desc, &node) == FXTAP_OK);
        check(fxtap_graph_add_node_ref(graph, node, &ref) == FXTAP_OK);
    }
    check(fxtap_dump_add_graph(dump, graph, 1, NULL, &capture) == FXTAP_OK);
    fxtap_graph_free(graph);
    return capture;
}

static void save_step(fxtap_capture *capture, float scale)
{
    fxtap_call *call = NULL;
    float values[8];
    int64_t shape[] = {2, 4};
    check(fxtap_call_begin(capture, &call) == FXTAP_OK);
    for (fxtap_node node = 1; node <= 2; node++) {
        for (int i = 0; i < 8; i++) {
            values[i] = (float)i * scale + (float)node;
        }
        fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
        check(fxtap_call_save_copy(call, node, FXTAP_OUTPUT, "0", fxtap_call_stamp(call), &view) == FXTAP_OK);
    }
    check(fxtap_call_end(call, NULL) == FXTAP_OK);
}

static void remove_good(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", good_root);
    (void)!system(command);
    sqlite3_free(good_bytes);
}

static void make_good(void)
{
    char path[160];
    make_temporary(good_root, "fuzz_good");
    atexit(remove_good);
    fxtap_dump_options options = {.struct_size = sizeof options, .path = good_root, .world_size = 1, .n_threads = 1};
    options.type = FXTAP_DUMP_NPY;
    options.versions = "{}";
    fxtap_dump *dump = NULL;
    check(fxtap_dump_open(&options, &dump) == FXTAP_OK);
    fxtap_capture *capture = add_graph(dump);
    save_step(capture, 1.0f);
    save_step(capture, 2.0f);
    fxtap_dump_close(dump);
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/" RANK "/fxtap.db", good_root);
    check(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    check(sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK); /* no WAL in memory */
    good_bytes = sqlite3_serialize(db, "main", &n_good_bytes, 0);
    check(good_bytes != NULL);
    sqlite3_close(db);
    make_index_folder(&bad);
}

/* ---- edits ---- */

static void bind_value(sqlite3_stmt *statement, cursor *c)
{
    static const char *const texts[] = {"",          "0",           "../../x",
                                        "graph_1/0", "/etc/passwd", "graph_1/.0-1.partial",
                                        "2,4",       "-1,4",        "99999999999,99999999999",
                                        "2,,4",      "4,1",         "<f4",
                                        "|S9",       "<c16",        "float32",
                                        "bfloat16",  "whole",       "failed",
                                        "npy",       "sin",         "\xff\x80",
                                        "*"};
    uint8_t bytes[MAX_TEXT];
    uint64_t bits = 0;
    size_t n = 0;
    double real;
    uint8_t kind = next(c);
    switch (kind % 6) {
    case 0:
        sqlite3_bind_null(statement, 1);
        break;
    case 1:
        sqlite3_bind_int64(statement, 1, (int8_t)next(c));
        break;
    case 2:
    case 3:
        for (int i = 0; i < 8; i++) {
            bits = bits << 8 | next(c);
        }
        memcpy(&real, &bits, sizeof real);
        kind % 6 == 2 ? sqlite3_bind_int64(statement, 1, (int64_t)bits) : sqlite3_bind_double(statement, 1, real);
        break;
    case 4:
        sqlite3_bind_text(statement, 1, texts[next(c) % (sizeof texts / sizeof *texts)], -1, SQLITE_STATIC);
        break;
    default:
        for (n = next(c) % MAX_TEXT; n > 0 && c->left > 0; n--) {
            bytes[MAX_TEXT - n] = next(c);
        }
        (kind & 64) != 0 ? sqlite3_bind_blob(statement, 1, bytes, MAX_TEXT, SQLITE_TRANSIENT)
                         : sqlite3_bind_text(statement, 1, (char *)bytes, (int)(kind % 32), SQLITE_TRANSIENT);
    }
}

/* Names are read from the schema, so that new tables and columns are edited too. */
static bool pick(sqlite3 *db, const char *sql, const char *argument, unsigned which, char name[64])
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, which);
        if (argument != NULL) {
            sqlite3_bind_text(statement, 2, argument, -1, SQLITE_STATIC);
        }
        if (sqlite3_step(statement) == SQLITE_ROW) {
            snprintf(name, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
            found = true;
        }
    }
    sqlite3_finalize(statement);
    return found;
}

static void edit(sqlite3 *db, cursor *c)
{
    char table[64], column[64], sql[512];
    uint8_t what = next(c), row = next(c);
    sqlite3_stmt *statement = NULL;
    if (!pick(db,
              "SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1 OFFSET ?1 %"
              " (SELECT count(*) FROM sqlite_schema WHERE type = 'table')",
              NULL, next(c), table) ||
        !pick(db,
              "SELECT name FROM pragma_table_info(?2) LIMIT 1 OFFSET ?1 %"
              " (SELECT count(*) FROM pragma_table_info(?2))",
              table, next(c), column)) {
        return;
    }
    bool keyed = strcmp(table, "tensor") != 0; /* WITHOUT ROWID */
    if (what == 0xff) {
        snprintf(sql, sizeof sql, "DROP TABLE %s", table);
    } else if (what >= 0xf0) {
        snprintf(sql, sizeof sql,
                 keyed ? "DELETE FROM %s WHERE rowid = 1 + %u %% 4" : "DELETE FROM %s WHERE slot_id = %u", table, row);
    } else if (!keyed || what >= 0xc0) {
        snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = ?1", table, column);
    } else {
        snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = ?1 WHERE rowid = 1 + %u %% 4", table, column, row);
    }
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        if (strchr(sql, '?') != NULL) {
            bind_value(statement, c);
        }
        sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
}

static void write_edited(cursor *c)
{
    sqlite3 *db = NULL;
    sqlite3_int64 n_bytes = 0;
    check(sqlite3_open(":memory:", &db) == SQLITE_OK);
    unsigned char *copy = sqlite3_malloc64((sqlite3_uint64)n_good_bytes);
    check(copy != NULL);
    memcpy(copy, good_bytes, (size_t)n_good_bytes);
    check(sqlite3_deserialize(db, "main", copy, n_good_bytes, n_good_bytes,
                              SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK);
    for (int i = 0; i < MAX_EDITS && c->left > 0; i++) {
        edit(db, c);
    }
    unsigned char *bytes = sqlite3_serialize(db, "main", &n_bytes, 0);
    check(bytes != NULL);
    write_index(&bad, bytes, (size_t)n_bytes);
    sqlite3_free(bytes);
    sqlite3_close(db);
}

static void compare(fxtap_reader *reader)
{
    fxtap_reader *good = NULL;
    fxtap_report *report = NULL;
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.n_threads = 1;
    check(fxtap_reader_open(good_root, &good) == FXTAP_OK);
    if (fxtap_compare(good, reader, &options, &report) == FXTAP_OK) {
        fxtap_report_options how = {.struct_size = sizeof how, .format = FXTAP_REPORT_JSON};
        fxtap_buffer text;
        fxtap_buffer_init(&text);
        check(fxtap_report_print(report, &how, &text) == FXTAP_OK && text.length < OUTPUT_MAX);
        fxtap_buffer_clear(&text);
        fxtap_report_free(report);
    }
    fxtap_reader_close(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cursor c = {data, size};
    fxtap_reader *reader = NULL;
    if (good_root[0] == '\0') {
        make_good();
    }
    write_edited(&c);
    if (fxtap_reader_open(bad.root, &reader) != FXTAP_OK) {
        return 0;
    }
    use_reader(reader, &bad);
    compare(reader);
    fxtap_reader_close(reader);
    return 0;
}
