/* The rows of the index: run, graph, node, slot, value, tensor, step. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/schema.h"
#include "writer/writer.h"
#include "tensor/hash.h"
#include "tensor/undefined.h"
#include "tensor/view.h"
#include "util/memory.h"
#include "util/number.h"

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text != NULL ? text : "", -1, SQLITE_STATIC);
}

/* Text that must outlive a reset: rows are stepped at once, so borrowed memory is enough; NULL stays NULL. */
static void bind_text_or_null(sqlite3_stmt *statement, int at, const char *text)
{
    if (text == NULL) {
        sqlite3_bind_null(statement, at);
    } else {
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
    }
}

static void put_big_endian(uint64_t value, unsigned char dst[8])
{
    for (int i = 7; i >= 0; i--) {
        dst[i] = (unsigned char)value;
        value >>= 8;
    }
}

/* `bytes` must outlive the step. */
static void bind_hash(sqlite3_stmt *statement, int at, fxtap_hash128 hash, unsigned char bytes[16])
{
    put_big_endian(hash.high, bytes);
    put_big_endian(hash.low, bytes + 8);
    sqlite3_bind_blob(statement, at, bytes, 16, SQLITE_STATIC);
}

/* Steps an insert; the new row's number. */
static fxtap_status insert(fx_index *index, sqlite3_stmt *statement, int64_t *row_out)
{
    fxtap_status status = fx_index_step(index, statement);
    if (status == FXTAP_OK) {
        *row_out = sqlite3_last_insert_rowid(index->db);
    }
    return status;
}

/* The same where the number is kept from call to call, as long as the transaction is not undone. */
static fxtap_status insert_kept(fx_index *index, sqlite3_stmt *statement, int64_t *row)
{
    fxtap_status status = fx_index_fresh(index, row);
    return status == FXTAP_OK ? insert(index, statement, row) : status;
}

/* ---- run ---- */

fxtap_status fx_rows_run(fxtap_dump *dump)
{
    fx_index *index = &dump->index;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    sqlite3_stmt *s = NULL;
    fxtap_status status = fx_index_statement(
        index, FX_SQL_RUN,
        "INSERT INTO run(pid, host, started_us, world_size, rank, type, fxtap, versions, command)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, getpid());
    bind_text(s, 2, host);
    sqlite3_bind_int64(s, 3, (int64_t)dump->started_us);
    sqlite3_bind_int(s, 4, dump->world_size);
    sqlite3_bind_int(s, 5, dump->rank);
    bind_text(s, 6, dump->type == FXTAP_DUMP_STATS ? "stats" : "npy");
    bind_text(s, 7, fxtap_version());
    bind_text(s, 8, dump->versions);
    bind_text(s, 9, dump->command);
    int64_t run = 0;
    status = insert(index, s, &run);
    atomic_store(&index->run, run);
    return status;
}

void fx_rows_run_end(fxtap_dump *dump)
{
    fx_index *index = &dump->index;
    sqlite3_stmt *s = NULL;
    if (fx_index_statement(index, FX_SQL_RUN_END, "UPDATE run SET ended_us = ?1 WHERE id = ?2", &s) == FXTAP_OK) {
        sqlite3_bind_int64(s, 1, (int64_t)fx_dump_now_us(dump));
        sqlite3_bind_int64(s, 2, atomic_load(&index->run));
        fx_index_step(index, s);
    }
}

void fx_rows_forget(fxtap_dump *dump)
{
    pthread_mutex_lock(&dump->lock);
    for (fxtap_capture *capture = dump->captures; capture != NULL; capture = capture->next) {
        capture->row = 0;
        memset(capture->node_rows, 0, capture->n_nodes * sizeof *capture->node_rows);
        unsigned n_slots = atomic_load(&capture->n_slots);
        for (unsigned i = 0; i < n_slots; i++) {
            fx_capture_slot_at(capture, i)->row = 0;
        }
    }
    pthread_mutex_unlock(&dump->lock);
}

/* ---- graph and nodes ---- */

static const char *kind_name(fxtap_graph_kind kind)
{
    switch (kind) {
    case FXTAP_GRAPH_INFERENCE:
        return "inference";
    case FXTAP_GRAPH_FORWARD:
        return "forward";
    case FXTAP_GRAPH_BACKWARD:
        return "backward";
    case FXTAP_GRAPH_SUBGRAPH:
        return "subgraph";
    }
    return "inference";
}

static fxtap_status insert_graph(fx_index *index, fxtap_capture *capture)
{
    sqlite3_stmt *s = NULL;
    unsigned char keys[2][16];
    fxtap_status status = fx_index_statement(
        index, FX_SQL_GRAPH,
        "INSERT INTO graph(run_id, graph, kind, strict_key, structural_key, occurrence, record)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, atomic_load(&index->run));
    sqlite3_bind_int64(s, 2, capture->graph_id);
    bind_text(s, 3, kind_name(capture->kind));
    bind_hash(s, 4, capture->strict_key, keys[0]);
    bind_hash(s, 5, capture->structural_key, keys[1]);
    sqlite3_bind_int64(s, 6, capture->occurrence);
    sqlite3_bind_blob64(s, 7, capture->record, capture->record_bytes, SQLITE_STATIC);
    return insert_kept(index, s, &capture->row);
}

/* Why a node has no files; NULL: it has. */
static const char *skip_reason(const fx_node_names *names)
{
    if (names->skip_reason != NULL) {
        return names->skip_reason;
    }
    return names->is_operator || names->has_slots ? NULL : "not an operator";
}

static fxtap_status insert_node(fx_index *index, fxtap_capture *capture, const fxtap_graph *graph, fxtap_node node)
{
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    const char *file, *function, *code;
    int32_t line;
    sqlite3_stmt *s = NULL;
    fxtap_status status = fxtap_graph_node(graph, node, &desc);
    if (status == FXTAP_OK) {
        status = fx_index_statement(
            index, FX_SQL_NODE,
            "INSERT INTO node(graph_id, position, name, target, stem, source_file, source_line, source_function,"
            " source_code, stack, module_path, module_type, flags, skipped)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)", &s);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_graph_source(graph, node, &file, &line, &function, &code);
    const fx_node_names *names = &capture->nodes[node];
    sqlite3_bind_int64(s, 1, capture->row);
    sqlite3_bind_int64(s, 2, node);
    bind_text(s, 3, desc.name);
    bind_text(s, 4, desc.target);
    bind_text(s, 5, names->stem);
    bind_text(s, 6, file);
    sqlite3_bind_int(s, 7, line);
    bind_text(s, 8, function);
    bind_text(s, 9, code);
    bind_text(s, 10, desc.stack_trace);
    bind_text(s, 11, desc.module_path);
    bind_text(s, 12, desc.module_type);
    sqlite3_bind_int64(s, 13, desc.flags);
    bind_text_or_null(s, 14, skip_reason(names));
    return insert_kept(index, s, &capture->node_rows[node]);
}

static fxtap_status insert_graph_and_nodes(fx_index *index, fxtap_capture *capture)
{
    fxtap_graph *graph = NULL;
    fxtap_status status = fxtap_graph_deserialise(capture->record, capture->record_bytes, &graph);
    if (status == FXTAP_OK) {
        status = insert_graph(index, capture);
    }
    for (size_t node = 0; status == FXTAP_OK && node < capture->n_nodes; node++) {
        status = insert_node(index, capture, graph, (fxtap_node)node);
    }
    fxtap_graph_free(graph);
    return status;
}

static fxtap_status insert_slot(fx_index *index, fxtap_call *call, fx_slot *slot)
{
    sqlite3_stmt *s = NULL;
    fxtap_status status = fx_index_statement(index, FX_SQL_SLOT,
                                             "INSERT INTO slot(node_id, io, position, arg_name, prefix)"
                                             " VALUES(?1, ?2, ?3, ?4, ?5)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, call->capture->node_rows[slot->node]);
    sqlite3_bind_int(s, 2, (int)slot->io);
    bind_text(s, 3, slot->position);
    bind_text(s, 4, slot->arg_name);
    bind_text(s, 5, slot->prefix);
    return insert_kept(index, s, &slot->row);
}

fxtap_status fx_rows_begin_step(fxtap_call *call, int64_t *step_id_out)
{
    fx_index *index = &call->dump->index;
    fxtap_status status = FXTAP_OK;
    sqlite3_stmt *s = NULL;
    if (call->capture->row == 0) {
        status = insert_graph_and_nodes(index, call->capture);
    }
    if (status == FXTAP_OK) {
        status = fx_index_statement(index, FX_SQL_LAST_STEP, "SELECT coalesce(max(id), 0) FROM step", &s);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    /* The transaction holds the write lock: the number stays free. */
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        *step_id_out = sqlite3_column_int64(s, 0) + 1;
    } else {
        status = fx_index_error(index, code, "read the index");
    }
    sqlite3_reset(s);
    return status;
}

/* ---- values ---- */

#define NUMBERS_BYTES (FXTAP_MAX_DIMS * 21 + FX_NUMBER_BYTES)

/* "2,3"; the text's length. */
static size_t put_numbers(const int64_t *numbers, int32_t n, char dst[NUMBERS_BYTES])
{
    size_t used = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i > 0) {
            dst[used++] = ',';
        }
        used += fx_i64_text(numbers[i], dst + used);
    }
    return used;
}

static void bind_number(sqlite3_stmt *s, int at, double value)
{
    if (isnan(value)) {
        sqlite3_bind_null(s, at);
    } else {
        sqlite3_bind_double(s, at, value);
    }
}

/* An integer; text where SQLite's 64 signed bits do not hold it. */
static void bind_unsigned(sqlite3_stmt *s, int at, uint64_t value)
{
    if (value <= INT64_MAX) {
        sqlite3_bind_int64(s, at, (int64_t)value);
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_limit(sqlite3_stmt *s, int at, const fxtap_stats *stats, int64_t integer, double real)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(stats->dtype);
    if (!stats->has_range) {
        sqlite3_bind_null(s, at);
    } else if (class == FXTAP_CLASS_INT) {
        sqlite3_bind_int64(s, at, integer);
    } else if (class == FXTAP_CLASS_UINT || class == FXTAP_CLASS_BOOL) {
        bind_unsigned(s, at, (uint64_t)integer);
    } else {
        bind_number(s, at, real);
    }
}

static void bind_stats(sqlite3_stmt *s, int at, const fxtap_stats *stats)
{
    sqlite3_bind_int64(s, at, (int64_t)stats->count);
    sqlite3_bind_int64(s, at + 1, (int64_t)stats->finite_count);
    sqlite3_bind_int64(s, at + 2, (int64_t)stats->nan_count);
    sqlite3_bind_int64(s, at + 3, (int64_t)stats->pos_inf_count);
    sqlite3_bind_int64(s, at + 4, (int64_t)stats->neg_inf_count);
    sqlite3_bind_int64(s, at + 5, (int64_t)stats->zero_count);
    sqlite3_bind_int64(s, at + 6, (int64_t)stats->subnormal_count);
    bind_limit(s, at + 7, stats, stats->min_int, stats->min);
    bind_limit(s, at + 8, stats, stats->max_int, stats->max);
    const double numbers[] = {stats->abs_max, stats->mean, stats->mean_imag, stats->std, stats->rms, stats->l2_norm};
    for (int i = 0; i < (int)(sizeof numbers / sizeof numbers[0]); i++) {
        bind_number(s, at + 9 + i, stats->dtype == FXTAP_STRING ? NAN : numbers[i]);
    }
}

static const int64_t *original_strides(const fx_value *value)
{
    return value->original_strides != NULL ? value->original_strides : value->view.strides;
}

/* Nearly all have the usual text, at the same place. */
static fxtap_hash128 text_key(const char *text, const char *usual)
{
    if (text == usual) {
        return (fxtap_hash128){0, 0};
    }
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    return (fxtap_hash128){hash.high64, hash.low64};
}

static fxtap_hash128 undefined_key(const fx_value *value)
{
    fx_hasher hasher;
    fx_hasher_init(&hasher);
    for (size_t i = 0; i < value->n_undefined; i++) {
        const fxtap_undefined_range *range = &value->undefined[i];
        const uint64_t numbers[] = {range->first, range->count, (uint64_t)range->kind};
        fx_hasher_update(&hasher, numbers, sizeof numbers);
    }
    return fx_hasher_finish(&hasher);
}

/*
 * All that makes a row: equal files may come from tensors of different dtype, strides or device, or with other elements
 * that are undefined.
 */
static fxtap_hash128 row_key(const fx_value *value)
{
    struct {
        fxtap_hash128 key, layout, device;
        int64_t dtype;
        int64_t strides[FXTAP_MAX_DIMS];
    } parts;
    parts.key = value->key;
    parts.layout = text_key(value->layout, FX_USUAL_LAYOUT);
    parts.device = text_key(value->device, FX_USUAL_DEVICE);
    parts.dtype = (int64_t)value->original_dtype;
    size_t stride_bytes = 0;
    if (original_strides(value) != NULL) {
        stride_bytes = (size_t)value->view.ndim * sizeof(int64_t);
        memcpy(parts.strides, original_strides(value), stride_bytes);
    }
    if (value->n_undefined > 0) {
        fxtap_hash128 undefined = undefined_key(value);
        parts.layout.high ^= undefined.high;
        parts.layout.low ^= undefined.low;
    }
    XXH128_hash_t hash = XXH3_128bits(&parts, offsetof(__typeof__(parts), strides) + stride_bytes);
    return (fxtap_hash128){hash.high64, hash.low64};
}

/* Text that a row's statement borrows until it has been stepped. */
typedef struct row_texts {
    char descr[32];
    char shape[NUMBERS_BYTES];
    char strides[NUMBERS_BYTES];
    unsigned char hash[16];
} row_texts;

static void bind_layout(sqlite3_stmt *s, const fx_value *value, row_texts *texts)
{
    int64_t numbers[FXTAP_MAX_DIMS];
    fx_value_descr(value, texts->descr);
    sqlite3_bind_text(s, 1, fxtap_dtype_name(value->original_dtype), -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, texts->descr, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, value->order == FXTAP_ORDER_FORTRAN);
    if (value->view.ndim > 0) {
        fx_view_saved_shape(&value->view, numbers);
    }
    sqlite3_bind_text(s, 4, texts->shape, (int)put_numbers(numbers, value->view.ndim, texts->shape), SQLITE_STATIC);
    const int64_t *strides = original_strides(value);
    if (strides == NULL) {
        fx_contiguous_strides(value->view.ndim, value->view.shape, false, numbers);
        strides = numbers;
    }
    sqlite3_bind_text(s, 5, texts->strides, (int)put_numbers(strides, value->view.ndim, texts->strides), SQLITE_STATIC);
    bind_text(s, 6, value->layout);
    bind_text(s, 7, value->device);
}

static fxtap_status insert_undefined(fx_index *index, const fx_value *value, int64_t row)
{
    sqlite3_stmt *s = NULL;
    unsigned char hash[16];
    fxtap_buffer ranges;
    fxtap_buffer_init(&ranges);
    fx_undefined_encode(value->undefined, value->n_undefined, &ranges);
    fxtap_status status = fxtap_buffer_status(&ranges);
    if (status == FXTAP_OK) {
        status = fx_index_make_table(index, FX_INDEX_UNDEFINED);
    }
    if (status == FXTAP_OK) {
        status = fx_index_statement(index, FX_SQL_UNDEFINED,
                                    "INSERT INTO undefined(value_id, count, ranges, hash) VALUES(?1, ?2, ?3, ?4)", &s);
    }
    if (status == FXTAP_OK) {
        sqlite3_bind_int64(s, 1, row);
        sqlite3_bind_int64(s, 2, (int64_t)fx_undefined_count(value->undefined, value->n_undefined));
        sqlite3_bind_blob64(s, 3, ranges.bytes, ranges.length, SQLITE_STATIC);
        bind_hash(s, 4, value->defined_hash, hash);
        status = fx_index_step(index, s);
    }
    fxtap_buffer_clear(&ranges);
    return status;
}

static fxtap_status insert_value(fx_index *index, const fx_value *value, int64_t *row_out)
{
    row_texts texts;
    sqlite3_stmt *s = NULL;
    fxtap_status status = fx_index_statement(
        index, FX_SQL_VALUE,
        "INSERT INTO value(dtype, descr, fortran, shape, strides, layout, device, bytes, hash, count,"
        " finite_count, nan_count, pos_inf_count, neg_inf_count, zero_count, subnormal_count, min, max, abs_max,"
        " mean, mean_imag, std, rms, l2_norm) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
        " ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    bind_layout(s, value, &texts);
    sqlite3_bind_int64(s, 8, (int64_t)value->saved_bytes);
    bind_hash(s, 9, value->hash, texts.hash);
    bind_stats(s, 10, &value->stats);
    status = insert(index, s, row_out);
    return status == FXTAP_OK && value->n_undefined > 0 ? insert_undefined(index, value, *row_out) : status;
}

static fxtap_status value_row(fx_index *index, fx_value *value, int64_t *row_out)
{
    if (value->transaction == index->transaction) { /* another name of it has asked already */
        *row_out = value->row;
        return FXTAP_OK;
    }
    fxtap_hash128 key = row_key(value);
    fxtap_status status = FXTAP_OK;
    value->row = fx_index_find_value(index, key);
    if (value->row == 0) {
        status = insert_value(index, value, &value->row);
        if (status == FXTAP_OK) {
            fx_index_remember_value(index, key, value->row);
        }
    }
    if (status == FXTAP_OK) {
        value->transaction = index->transaction;
    }
    *row_out = value->row;
    return status;
}

/* ---- tensors and steps ---- */

static fxtap_status tensor_row(fx_index *index, int64_t step_id, const fx_entry *entry, int64_t value)
{
    sqlite3_stmt *s = NULL;
    fxtap_status status =
        fx_index_statement(index, FX_SQL_TENSOR,
                           "INSERT OR REPLACE INTO tensor(step_id, slot_id, stamp_us, value_id, skipped)"
                           " VALUES(?1, ?2, ?3, ?4, ?5)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, step_id);
    sqlite3_bind_int64(s, 2, entry->slot->row);
    sqlite3_bind_int64(s, 3, (int64_t)entry->stamp_us);
    if (value != 0) {
        sqlite3_bind_int64(s, 4, value);
    } else {
        sqlite3_bind_null(s, 4);
    }
    bind_text_or_null(s, 5, entry->skipped);
    return fx_index_step(index, s);
}

fxtap_status fx_rows_entry(fxtap_call *call, int64_t step_id, const fx_entry *entry)
{
    fx_index *index = &call->dump->index;
    fxtap_status status = FXTAP_OK;
    int64_t value = 0;
    if (entry->slot->row == 0) {
        status = insert_slot(index, call, fx_capture_slot_at(call->capture, entry->slot_number));
    }
    if (status == FXTAP_OK && entry->job != NULL) {
        status = value_row(index, entry->job->value, &value);
    }
    return status == FXTAP_OK ? tensor_row(index, step_id, entry, value) : status;
}

fxtap_status fx_rows_step(fxtap_call *call, int64_t step_id, uint64_t step, const char *folder, const char *reason)
{
    fx_index *index = &call->dump->index;
    sqlite3_stmt *s = NULL;
    fxtap_status status = fx_index_statement(
        index, FX_SQL_STEP,
        "INSERT OR REPLACE INTO step(id, graph_id, step, call, state, folder, partial, started_us, ended_us, reason)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, step_id);
    sqlite3_bind_int64(s, 2, call->capture->row);
    sqlite3_bind_int64(s, 3, (int64_t)step);
    sqlite3_bind_int64(s, 4, (int64_t)call->number);
    bind_text(s, 5, reason == NULL ? "whole" : "failed");
    bind_text(s, 6, folder);
    bind_text(s, 7, call->partial);
    sqlite3_bind_int64(s, 8, (int64_t)call->started_us);
    sqlite3_bind_int64(s, 9, (int64_t)fx_dump_now_us(call->dump));
    bind_text(s, 10, reason);
    return fx_index_step(index, s);
}

static fxtap_status delete_row(fx_index *index, int64_t step_id, int64_t slot, uint64_t stamp_us)
{
    sqlite3_stmt *s = NULL;
    fxtap_status status = fx_index_statement(
        index, FX_SQL_RESTAMP, "DELETE FROM tensor WHERE step_id = ?1 AND slot_id = ?2 AND stamp_us = ?3", &s);
    if (status != FXTAP_OK) {
        return status;
    }
    sqlite3_bind_int64(s, 1, step_id);
    sqlite3_bind_int64(s, 2, slot);
    sqlite3_bind_int64(s, 3, (int64_t)stamp_us);
    return fx_index_step(index, s);
}

fxtap_status fx_rows_restamp(fxtap_call *call, int64_t step_id, const uint64_t *given_us)
{
    fx_index *index = &call->dump->index;
    fxtap_status status = fx_index_begin(index);
    /* All out first: one run's new stamp may be another's old one. */
    for (size_t i = 0; status == FXTAP_OK && i < call->n_entries; i++) {
        const fx_entry *entry = &call->entries[i];
        if (entry->stamp_us != given_us[i]) {
            status = delete_row(index, step_id, entry->slot->row, given_us[i]);
        }
    }
    for (size_t i = 0; status == FXTAP_OK && i < call->n_entries; i++) {
        if (call->entries[i].stamp_us != given_us[i]) {
            status = fx_rows_entry(call, step_id, &call->entries[i]);
        }
    }
    if (status == FXTAP_OK) {
        status = fx_index_commit(index);
    }
    if (status != FXTAP_OK) {
        fx_index_rollback(index);
    }
    return status;
}
