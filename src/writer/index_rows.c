/* The rows of the index: run, graph, node, slot, value, tensor, step. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/schema.h"
#include "tensor/hash.h"
#include "tensor/undefined.h"
#include "tensor/view.h"
#include "util/memory.h"
#include "util/number.h"
#include "writer/dump.h"
#include "writer/index_rows.h"

/* ---- binding ---- */

/*
 * A statement whose parameters are bound from the first to the last. Texts and blobs are borrowed until it has run.
 * Where it could not be prepared, binding does nothing and running returns why.
 */
typedef struct row {
    fx_index *index;
    sqlite3_stmt *s;
    int at;
    fxtap_status status;
} row;

static row begin_row(fx_index *index, fx_sql which)
{
    row r = {.index = index};
    r.status = fx_index_statement(index, which, &r.s);
    return r;
}

static void put_int(row *r, int64_t value)
{
    sqlite3_bind_int64(r->s, ++r->at, value);
}

static void put_u64(row *r, uint64_t value)
{
    put_int(r, (int64_t)value);
}

static void put_null(row *r)
{
    sqlite3_bind_null(r->s, ++r->at);
}

static void put_text(row *r, const char *text)
{
    sqlite3_bind_text(r->s, ++r->at, text != NULL ? text : "", -1, SQLITE_STATIC);
}

#define PUT_TEXTS(row, ...)                                                                                            \
    put_texts(row, (const char *const[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))

static void put_texts(row *r, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_text(r, texts[i]);
    }
}

static void put_text_or_null(row *r, const char *text)
{
    if (text != NULL) {
        put_text(r, text);
    } else {
        put_null(r);
    }
}

static void put_blob(row *r, const void *bytes, size_t n_bytes)
{
    sqlite3_bind_blob64(r->s, ++r->at, bytes, n_bytes, SQLITE_STATIC);
}

static void put_big_endian(uint64_t value, unsigned char dst[8])
{
    for (int i = 7; i >= 0; i--) {
        dst[i] = (unsigned char)value;
        value >>= 8;
    }
}

/* `bytes` must outlive the row. */
static void put_hash(row *r, fxtap_hash128 hash, unsigned char bytes[16])
{
    put_big_endian(hash.high, bytes);
    put_big_endian(hash.low, bytes + 8);
    put_blob(r, bytes, 16);
}

static fxtap_status run_row(row *r)
{
    return r->status == FXTAP_OK ? fx_index_step(r->index, r->s) : r->status;
}

/* Runs an insert; *id_out is the new row's number. */
static fxtap_status insert_row(row *r, int64_t *id_out)
{
    fxtap_status status = run_row(r);
    if (status == FXTAP_OK) {
        *id_out = sqlite3_last_insert_rowid(r->index->db);
    }
    return status;
}

/* The same where the number is kept from call to call, unless the transaction is rolled back. */
static fxtap_status insert_kept_row(row *r, int64_t *id)
{
    fxtap_status status = r->status == FXTAP_OK ? fx_index_track_row(r->index, id) : r->status;
    return status == FXTAP_OK ? insert_row(r, id) : status;
}

/* ---- run ---- */

fxtap_status fx_rows_run(fxtap_dump *dump)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    row r = begin_row(&dump->index, FX_SQL_RUN);
    put_int(&r, getpid());
    put_text(&r, host);
    put_u64(&r, dump->started_us);
    put_int(&r, dump->world_size);
    put_int(&r, dump->rank);
    PUT_TEXTS(&r, fx_dump_type_name(dump->type), fxtap_version(), dump->versions, dump->command);
    int64_t run = 0;
    fxtap_status status = insert_row(&r, &run);
    atomic_store(&dump->index.run, run);
    return status;
}

void fx_rows_run_end(fxtap_dump *dump)
{
    row r = begin_row(&dump->index, FX_SQL_RUN_END);
    put_u64(&r, fx_dump_now_us(dump));
    put_int(&r, atomic_load(&dump->index.run));
    run_row(&r);
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
    unsigned char keys[2][16];
    row r = begin_row(index, FX_SQL_GRAPH);
    put_int(&r, atomic_load(&index->run));
    put_int(&r, capture->graph_id);
    put_text(&r, kind_name(capture->kind));
    put_hash(&r, capture->strict_key, keys[0]);
    put_hash(&r, capture->structural_key, keys[1]);
    put_int(&r, capture->occurrence);
    put_blob(&r, capture->record, capture->record_bytes);
    return insert_kept_row(&r, &capture->row);
}

/* Why a node has no files; NULL: it has some. */
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
    fxtap_status status = fxtap_graph_node(graph, node, &desc);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_graph_source(graph, node, &file, &line, &function, &code);
    const fx_node_names *names = &capture->nodes[node];
    row r = begin_row(index, FX_SQL_NODE);
    put_int(&r, capture->row);
    put_int(&r, node);
    PUT_TEXTS(&r, desc.name, desc.target, names->stem, file);
    put_int(&r, line);
    PUT_TEXTS(&r, function, code, desc.stack_trace, desc.module_path, desc.module_type);
    put_int(&r, desc.flags);
    put_text_or_null(&r, skip_reason(names));
    return insert_kept_row(&r, &capture->node_rows[node]);
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

static fxtap_status insert_slot(fx_index *index, fxtap_call *call, fx_capture_slot *slot)
{
    row r = begin_row(index, FX_SQL_SLOT);
    put_int(&r, call->capture->node_rows[slot->node]);
    put_int(&r, slot->io);
    PUT_TEXTS(&r, slot->position, slot->arg_name, slot->prefix);
    return insert_kept_row(&r, &slot->row);
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
        status = fx_index_statement(index, FX_SQL_LAST_STEP, &s);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    /* The transaction holds the write lock: no other process takes the number. */
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

/* "2,3"; returns the text's length. */
static size_t numbers_text(const int64_t *numbers, int32_t n, char dst[NUMBERS_BYTES])
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

static void put_real(row *r, double value)
{
    if (isnan(value)) {
        put_null(r);
    } else {
        sqlite3_bind_double(r->s, ++r->at, value);
    }
}

/* An integer; text where SQLite's 64 signed bits do not hold it. */
static void put_unsigned(row *r, uint64_t value)
{
    if (value <= INT64_MAX) {
        put_u64(r, value);
        return;
    }
    char text[FX_NUMBER_BYTES];
    fx_u64_text(value, text);
    sqlite3_bind_text(r->s, ++r->at, text, -1, SQLITE_TRANSIENT);
}

static void put_limit(row *r, const fxtap_stats *stats, int64_t integer, double real)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(stats->dtype);
    if (!stats->has_range) {
        put_null(r);
    } else if (class == FXTAP_CLASS_INT) {
        put_int(r, integer);
    } else if (class == FXTAP_CLASS_UINT || class == FXTAP_CLASS_BOOL) {
        put_unsigned(r, (uint64_t)integer);
    } else {
        put_real(r, real);
    }
}

static void put_stats(row *r, const fxtap_stats *stats)
{
    put_u64(r, stats->count);
    put_u64(r, stats->finite_count);
    put_u64(r, stats->nan_count);
    put_u64(r, stats->pos_inf_count);
    put_u64(r, stats->neg_inf_count);
    put_u64(r, stats->zero_count);
    put_u64(r, stats->subnormal_count);
    put_limit(r, stats, stats->min_int, stats->min);
    put_limit(r, stats, stats->max_int, stats->max);
    const double numbers[] = {stats->abs_max, stats->mean, stats->mean_imag, stats->std, stats->rms, stats->l2_norm};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put_real(r, stats->dtype == FXTAP_STRING ? NAN : numbers[i]);
    }
}

static const int64_t *original_strides(const fx_value *value)
{
    return value->original_strides != NULL ? value->original_strides : value->view.strides;
}

/* Most values have the default, at its own address. */
static fxtap_hash128 text_key(const char *text, const char *by_default)
{
    if (text == by_default) {
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
 * A key of all columns: equal files may come from tensors that differ in dtype, strides, device or undefined elements.
 */
static fxtap_hash128 row_key(const fx_value *value)
{
    struct {
        fxtap_hash128 key, layout, device;
        int64_t dtype;
        int64_t strides[FXTAP_MAX_DIMS];
    } parts;
    parts.key = value->key;
    parts.layout = text_key(value->layout, FX_DEFAULT_LAYOUT);
    parts.device = text_key(value->device, FX_DEFAULT_DEVICE);
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

/* Texts that a row borrows. */
typedef struct row_texts {
    char descr[32];
    char shape[NUMBERS_BYTES];
    char strides[NUMBERS_BYTES];
    unsigned char hash[16];
} row_texts;

static void put_numbers(row *r, const int64_t *numbers, int32_t n, char text[NUMBERS_BYTES])
{
    sqlite3_bind_text(r->s, ++r->at, text, (int)numbers_text(numbers, n, text), SQLITE_STATIC);
}

static void put_layout(row *r, const fx_value *value, row_texts *texts)
{
    int64_t numbers[FXTAP_MAX_DIMS];
    int32_t ndim = value->view.ndim;
    fx_value_descr(value, texts->descr);
    PUT_TEXTS(r, fxtap_dtype_name(value->original_dtype), texts->descr);
    put_int(r, value->order == FXTAP_ORDER_FORTRAN);
    if (ndim > 0) {
        fx_view_saved_shape(&value->view, numbers);
    }
    put_numbers(r, numbers, ndim, texts->shape);
    const int64_t *strides = original_strides(value);
    if (strides == NULL) {
        fx_contiguous_strides(ndim, value->view.shape, false, numbers);
        strides = numbers;
    }
    put_numbers(r, strides, ndim, texts->strides);
    PUT_TEXTS(r, value->layout, value->device);
}

static fxtap_status insert_undefined(fx_index *index, const fx_value *value, int64_t value_id)
{
    unsigned char hash[16];
    fxtap_buffer ranges;
    fxtap_buffer_init(&ranges);
    fx_undefined_encode(value->undefined, value->n_undefined, &ranges);
    fxtap_status status = fxtap_buffer_status(&ranges);
    if (status == FXTAP_OK) {
        status = fx_index_make_table(index, FX_INDEX_UNDEFINED);
    }
    if (status == FXTAP_OK) {
        row r = begin_row(index, FX_SQL_UNDEFINED);
        put_int(&r, value_id);
        put_u64(&r, fx_undefined_count(value->undefined, value->n_undefined));
        put_blob(&r, ranges.bytes, ranges.length);
        put_hash(&r, value->defined_hash, hash);
        status = run_row(&r);
    }
    fxtap_buffer_clear(&ranges);
    return status;
}

static fxtap_status insert_value(fx_index *index, const fx_value *value, int64_t *id_out)
{
    row_texts texts;
    row r = begin_row(index, FX_SQL_VALUE);
    put_layout(&r, value, &texts);
    put_u64(&r, value->saved_bytes);
    put_hash(&r, value->hash, texts.hash);
    put_stats(&r, &value->stats);
    fxtap_status status = insert_row(&r, id_out);
    return status == FXTAP_OK && value->n_undefined > 0 ? insert_undefined(index, value, *id_out) : status;
}

static fxtap_status find_or_insert_value(fx_index *index, fx_value *value, int64_t *id_out)
{
    fxtap_status status = FXTAP_OK;
    if (value->transaction != index->transaction) { /* else another name of it was inserted before */
        fxtap_hash128 key = row_key(value);
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
    }
    *id_out = value->row;
    return status;
}

/* ---- tensors and steps ---- */

static fxtap_status insert_tensor(fx_index *index, int64_t step_id, const fx_call_entry *entry, int64_t value_id)
{
    row r = begin_row(index, FX_SQL_TENSOR);
    put_int(&r, step_id);
    put_int(&r, entry->slot->row);
    put_u64(&r, entry->stamp_us);
    if (value_id != 0) {
        put_int(&r, value_id);
    } else {
        put_null(&r);
    }
    put_text_or_null(&r, entry->skipped);
    return run_row(&r);
}

fxtap_status fx_rows_entry(fxtap_call *call, int64_t step_id, const fx_call_entry *entry)
{
    fx_index *index = &call->dump->index;
    fxtap_status status = FXTAP_OK;
    int64_t value_id = 0;
    if (entry->slot->row == 0) {
        status = insert_slot(index, call, fx_capture_slot_at(call->capture, entry->slot_number));
    }
    if (status == FXTAP_OK && entry->job != NULL) {
        status = find_or_insert_value(index, entry->job->value, &value_id);
    }
    return status == FXTAP_OK ? insert_tensor(index, step_id, entry, value_id) : status;
}

fxtap_status fx_rows_step(fxtap_call *call, int64_t step_id, uint64_t step, const char *folder, const char *reason)
{
    row r = begin_row(&call->dump->index, FX_SQL_STEP);
    put_int(&r, step_id);
    put_int(&r, call->capture->row);
    put_u64(&r, step);
    put_u64(&r, call->number);
    PUT_TEXTS(&r, reason == NULL ? "whole" : "failed", folder, call->partial);
    put_u64(&r, call->started_us);
    put_u64(&r, fx_dump_now_us(call->dump));
    put_text(&r, reason);
    return run_row(&r);
}

static fxtap_status insert_note(fxtap_call *call, int64_t step_id, const fxtap_note *note)
{
    row r = begin_row(&call->dump->index, FX_SQL_FINDING);
    put_int(&r, step_id);
    put_int(&r, call->capture->node_rows[note->node]);
    put_u64(&r, note->stamp_us);
    put_int(&r, note->kind);
    PUT_TEXTS(&r, note->position, note->arg_name);
    put_u64(&r, note->count);
    put_u64(&r, note->total);
    return run_row(&r);
}

fxtap_status fx_rows_notes(fxtap_call *call, int64_t step_id)
{
    fxtap_status status = FXTAP_OK;
    if (call->notes != NULL) {
        status = fx_index_make_table(&call->dump->index, FX_INDEX_FINDING);
    }
    for (const fx_call_note *at = call->notes; at != NULL && status == FXTAP_OK; at = at->next) {
        status = insert_note(call, step_id, &at->note);
    }
    return status;
}

static fxtap_status delete_tensor(fx_index *index, int64_t step_id, int64_t slot_id, uint64_t stamp_us)
{
    row r = begin_row(index, FX_SQL_RESTAMP);
    put_int(&r, step_id);
    put_int(&r, slot_id);
    put_u64(&r, stamp_us);
    return run_row(&r);
}

fxtap_status fx_rows_restamp(fxtap_call *call, int64_t step_id, const uint64_t *given_us)
{
    fx_index *index = &call->dump->index;
    fxtap_status status = fx_index_begin(index);
    /* All deletions first: the new stamp of one run of a node may be the old stamp of another. */
    for (size_t i = 0; status == FXTAP_OK && i < call->n_entries; i++) {
        const fx_call_entry *entry = &call->entries[i];
        if (entry->stamp_us != given_us[i]) {
            status = delete_tensor(index, step_id, entry->slot->row, given_us[i]);
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
