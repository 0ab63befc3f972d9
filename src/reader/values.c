/* values.c - the tensors of one step from the index, by one query, with rows in the order of slots. */
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "index/file_names.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "reader/rows.h"
#include "reader/tensors.h"
#include "reader/values.h"
#include "tensor/undefined.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/number.h"

enum column {
    C_SLOT,
    C_VALUE,
    C_STAMP,
    C_SKIPPED,
    C_DTYPE,
    C_DESCR,
    C_FORTRAN,
    C_SHAPE,
    C_STRIDES,
    C_LAYOUT,
    C_DEVICE,
    C_BYTES,
    C_HASH,
    C_COUNT,
    C_FINITE,
    C_NAN,
    C_POS_INF,
    C_NEG_INF,
    C_ZERO,
    C_SUBNORMAL,
    C_MIN,
    C_MAX,
    C_ABS_MAX,
    C_MEAN,
    C_MEAN_IMAG,
    C_STD,
    C_RMS,
    C_L2,
    C_UNDEFINED,
    C_DEFINED_HASH
};

#define TENSOR_COLUMNS                                                                                                 \
    "SELECT t.slot_id, v.id, t.stamp_us, t.skipped, v.dtype, v.descr, v.fortran, v.shape, v.strides, v.layout,"        \
    " v.device, v.bytes, v.hash, v.count, v.finite_count, v.nan_count, v.pos_inf_count, v.neg_inf_count,"              \
    " v.zero_count, v.subnormal_count, v.min, v.max, v.abs_max, v.mean, v.mean_imag, v.std, v.rms, v.l2_norm,"
#define TENSOR_TABLES " FROM tensor t LEFT JOIN value v ON v.id = t.value_id"
#define TENSOR_ROWS " WHERE t.step_id = ?1 ORDER BY t.slot_id, t.stamp_us"

static const char tensors_sql[] = TENSOR_COLUMNS " NULL, NULL" TENSOR_TABLES TENSOR_ROWS;
/* If some values have undefined elements. */
static const char undefined_sql[] =
    TENSOR_COLUMNS " u.ranges, u.hash" TENSOR_TABLES " LEFT JOIN undefined u ON u.value_id = v.id" TENSOR_ROWS;

typedef struct tensor_context {
    fxtap_reader *reader;
    fx_graph *graph;
    const fx_step *step;
    const fxtap_tensor_query *query;
    fxtap_tensor_list *list;
    size_t next_slot; /* slots and rows are both in ascending order */
    size_t n_lost;    /* rows that belong to no slot */
} tensor_context;

/* ---- shapes ---- */

/* Parses decimal integers separated by commas; false for anything else, or for more than FXTAP_MAX_DIMS of them. */
static bool parse_extents(const char *text, int64_t extents[FXTAP_MAX_DIMS], int32_t *ndim_out)
{
    int32_t ndim = 0;
    while (*text != '\0') {
        int64_t extent;
        size_t n = fx_read_i64(text, &extent);
        if (n == 0 || ndim == FXTAP_MAX_DIMS) {
            return false;
        }
        extents[ndim++] = extent;
        text += n;
        if ((*text != ',' && *text != '\0') || (*text == ',' && text[1] == '\0')) {
            return false;
        }
        text += *text == ',';
    }
    *ndim_out = ndim;
    return true;
}

/* Each distinct text is parsed once per list. NULL with *failed_out false if the text is not a valid shape. */
static const fx_shape *shape_of(fxtap_tensor_list *list, const char *text, bool *failed_out)
{
    fx_texts_entry *entry = fx_texts_add(&list->shapes, text, strlen(text));
    *failed_out = entry == NULL;
    if (entry == NULL || entry->value != NULL) {
        return entry != NULL ? entry->value : NULL;
    }
    int64_t extents[FXTAP_MAX_DIMS];
    int32_t ndim;
    if (!parse_extents(text, extents, &ndim)) {
        return NULL;
    }
    fx_shape *shape = fx_arena_calloc(&list->arena, 1, sizeof *shape + (size_t)ndim * sizeof *extents);
    if (shape == NULL) {
        *failed_out = true;
        return NULL;
    }
    shape->ndim = ndim;
    memcpy(shape->extents, extents, (size_t)ndim * sizeof *extents);
    entry->value = shape;
    return shape;
}

static const char *column_text(fx_rows *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows->statement, column);
    return text != NULL ? text : "";
}

static fxtap_dtype dtype_from_descr(const char *descr)
{
    if (descr[0] == '<' && descr[1] == 'U') {
        return FXTAP_STRING;
    }
    for (int dtype = FXTAP_BOOL; dtype < FXTAP_DTYPE_COUNT; dtype++) {
        const char *own = fxtap_dtype_descr((fxtap_dtype)dtype);
        if (own != NULL && strcmp(own, descr) == 0) {
            return (fxtap_dtype)dtype;
        }
    }
    return FXTAP_DTYPE_NONE;
}

/* Whether shape and dtype give the size in the row; if not, the row's metadata is not used. */
static bool is_consistent(const fxtap_tensor_info *info)
{
    uint64_t n_bytes = fxtap_dtype_size(info->saved_dtype);
    bool is_empty = false;
    for (int32_t i = 0; i < info->ndim; i++) {
        if (info->shape[i] < 0) {
            return false;
        }
        is_empty |= info->shape[i] == 0;
    }
    for (int32_t i = 0; i < info->ndim && !is_empty; i++) {
        if (!fx_mul_u64(n_bytes, (uint64_t)info->shape[i], &n_bytes)) {
            return false;
        }
    }
    return info->saved_dtype == FXTAP_STRING || info->bytes == (is_empty ? 0 : n_bytes);
}

static fxtap_status fill_meta(tensor_context *at, fx_rows *rows, fxtap_tensor_info *info)
{
    bool no_memory;
    const fx_shape *shape = shape_of(at->list, column_text(rows, C_SHAPE), &no_memory);
    if (no_memory) {
        return FXTAP_E_NOMEM;
    }
    const fx_shape *strides = shape_of(at->list, column_text(rows, C_STRIDES), &no_memory);
    info->layout = fx_rows_text(rows, C_LAYOUT);
    info->device = fx_rows_text(rows, C_DEVICE);
    if (no_memory || info->layout == NULL || info->device == NULL) {
        return FXTAP_E_NOMEM;
    }
    info->dtype = fxtap_dtype_from_name(column_text(rows, C_DTYPE));
    info->saved_dtype = dtype_from_descr(column_text(rows, C_DESCR));
    info->fortran_order = fx_rows_int(rows, C_FORTRAN) != 0;
    info->bytes = (uint64_t)fx_rows_int(rows, C_BYTES);
    if (info->saved_dtype == FXTAP_STRING && info->dtype == FXTAP_DTYPE_NONE) {
        info->dtype = FXTAP_STRING;
    }
    if (shape != NULL) {
        info->ndim = shape->ndim;
        info->shape = shape->extents;
        info->strides = strides != NULL && strides->ndim == shape->ndim ? strides->extents : NULL;
    }
    info->has_meta = shape != NULL && info->dtype != FXTAP_DTYPE_NONE && info->saved_dtype != FXTAP_DTYPE_NONE &&
                     is_consistent(info);
    return FXTAP_OK;
}

/* ---- statistics ---- */

static double real_or_nan(fx_rows *rows, int column)
{
    return fx_rows_is_null(rows, column) ? NAN : sqlite3_column_double(rows->statement, column);
}

/* Integers are stored as INTEGER, or as text above 2^63-1; floats as REAL. */
static void fill_bound(fx_rows *rows, int column, double *real_out, int64_t *integer_out)
{
    switch (sqlite3_column_type(rows->statement, column)) {
    case SQLITE_INTEGER:
        *integer_out = fx_rows_int(rows, column);
        *real_out = (double)*integer_out;
        break;
    case SQLITE_TEXT: {
        uint64_t value = 0;
        fx_read_u64(column_text(rows, column), &value);
        *integer_out = (int64_t)value;
        *real_out = (double)value;
        break;
    }
    default:
        *real_out = sqlite3_column_double(rows->statement, column);
    }
}

static void fill_stats(fx_rows *rows, fxtap_tensor_info *info)
{
    fxtap_stats *stats = &info->stats;
    stats->dtype = info->dtype;
    stats->count = (uint64_t)fx_rows_int(rows, C_COUNT);
    stats->finite_count = (uint64_t)fx_rows_int(rows, C_FINITE);
    stats->nan_count = (uint64_t)fx_rows_int(rows, C_NAN);
    stats->pos_inf_count = (uint64_t)fx_rows_int(rows, C_POS_INF);
    stats->neg_inf_count = (uint64_t)fx_rows_int(rows, C_NEG_INF);
    stats->zero_count = (uint64_t)fx_rows_int(rows, C_ZERO);
    stats->subnormal_count = (uint64_t)fx_rows_int(rows, C_SUBNORMAL);
    stats->has_range = !fx_rows_is_null(rows, C_MIN) && !fx_rows_is_null(rows, C_MAX);
    if (stats->has_range) {
        fill_bound(rows, C_MIN, &stats->min, &stats->min_int);
        fill_bound(rows, C_MAX, &stats->max, &stats->max_int);
    }
    bool has_some = stats->count > stats->nan_count; /* older indexes have 0 if there is no maximum */
    stats->abs_max = has_some ? real_or_nan(rows, C_ABS_MAX) : NAN;
    stats->mean = real_or_nan(rows, C_MEAN);
    stats->mean_imag = real_or_nan(rows, C_MEAN_IMAG);
    stats->std = real_or_nan(rows, C_STD);
    stats->rms = real_or_nan(rows, C_RMS);
    stats->l2_norm = real_or_nan(rows, C_L2);
    info->has_stats = info->has_meta && info->dtype != FXTAP_STRING;
    info->has_hash = sqlite3_column_bytes(rows->statement, C_HASH) == 16;
    info->hash = fx_rows_hash(rows, C_HASH);
}

/* ---- rows ---- */

static const fx_slot *slot_of(tensor_context *at, int64_t id)
{
    const fx_graph *graph = at->graph;
    while (at->next_slot < graph->n_slots && graph->slots[at->next_slot].id < id) {
        at->next_slot++;
    }
    bool is_there = at->next_slot < graph->n_slots && graph->slots[at->next_slot].id == id;
    return is_there ? &graph->slots[at->next_slot] : NULL;
}

/* While a step is being moved, each file is in one of the two folders. */
static const char *folder_of(const fx_step *step, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    if (step->final == NULL) {
        return step->info.folder;
    }
    int n = snprintf(path, sizeof path, "%s/%s", step->final, name);
    bool is_moved = n > 0 && (size_t)n < sizeof path && lstat(path, &info) == 0;
    return is_moved ? step->final : step->info.folder;
}

static fxtap_status fill_path(tensor_context *at, const fx_slot *slot, fxtap_tensor_info *info)
{
    static const char tail[] = "00000000000000000000.npy";
    char name[NAME_MAX + sizeof tail];
    memcpy(name, slot->prefix, slot->prefix_length);
    memcpy(name + slot->prefix_length, tail, sizeof tail);
    fx_name_stamp(info->stamp_us, name + slot->prefix_length);
    info->path = fx_tensor_list_path(at->list, folder_of(at->step, name), name, strlen(name));
    return info->path != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* Invalid ranges are ignored: then all elements count. */
static fxtap_status fill_undefined(tensor_context *at, fx_rows *rows, fxtap_tensor_info *info)
{
    if (fx_rows_is_null(rows, C_UNDEFINED) || !info->has_meta || info->dtype == FXTAP_STRING) {
        return FXTAP_OK;
    }
    const void *bytes = sqlite3_column_blob(rows->statement, C_UNDEFINED);
    size_t n_bytes = (size_t)sqlite3_column_bytes(rows->statement, C_UNDEFINED);
    uint64_t n_elems = info->bytes / fxtap_dtype_size(info->saved_dtype);
    fxtap_status status =
        fx_undefined_decode(bytes, n_bytes, n_elems, &at->list->arena, &info->undefined, &info->n_undefined);
    if (status == FXTAP_E_FORMAT) {
        return fx_reader_warn(at->reader, "%s: %s", at->graph->rank->info.path, fxtap_error_message());
    }
    info->undefined_count = fx_undefined_count(info->undefined, info->n_undefined);
    info->defined_hash = fx_rows_hash(rows, C_DEFINED_HASH);
    return status;
}

static fxtap_status fill_row(tensor_context *at, fx_rows *rows, const fx_slot *slot, fx_tensor *tensor)
{
    fxtap_tensor_info *info = &tensor->info;
    tensor->order = slot->order;
    info->step = &at->step->info;
    info->node = &slot->node->info;
    info->io = slot->io;
    info->position = slot->position;
    info->arg_name = slot->arg_name;
    info->name = slot->name;
    info->stamp_us = (uint64_t)fx_rows_int(rows, C_STAMP);
    if (fx_rows_is_null(rows, C_VALUE)) {
        info->skipped = fx_rows_text(rows, C_SKIPPED);
        return info->skipped != NULL ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    fxtap_status status = fill_meta(at, rows, info);
    if (status != FXTAP_OK) {
        return status;
    }
    fill_stats(rows, info);
    status = fill_undefined(at, rows, info);
    if (status != FXTAP_OK) {
        return status;
    }
    return at->step->info.folder[0] != '\0' && !at->step->is_link ? fill_path(at, slot, info) : FXTAP_OK;
}

static fxtap_status take_tensor(tensor_context *at, fx_rows *rows)
{
    const fx_slot *slot = slot_of(at, fx_rows_int(rows, C_SLOT));
    if (slot == NULL) {
        at->n_lost++;
        return FXTAP_OK;
    }
    if (!fx_query_has(at->query, &slot->node->info, slot->name, slot->io)) {
        return FXTAP_OK;
    }
    fx_tensor *tensor = fx_tensor_list_add(at->list);
    return tensor != NULL ? fill_row(at, rows, slot, tensor) : FXTAP_E_NOMEM;
}

fxtap_status fx_index_load_tensors(fxtap_reader *reader, fx_graph *graph, const fx_step *step,
                                   const fxtap_tensor_query *query, fxtap_tensor_list *list)
{
    tensor_context context = {.reader = reader, .graph = graph, .step = step, .query = query, .list = list};
    fx_rows rows = {0};
    fxtap_status status = fx_index_use(reader, graph->rank);
    if (status == FXTAP_OK) {
        const char *sql = reader->has_undefined ? undefined_sql : tensors_sql;
        status = fx_rows_begin(reader, graph->rank, sql, &step->id, &rows);
    }
    bool more = status == FXTAP_OK;
    while (status == FXTAP_OK && more) {
        status = fx_rows_next(&rows, &more);
        if (status == FXTAP_OK && more) {
            status = take_tensor(&context, &rows);
        }
    }
    fx_rows_end(&rows);
    if (status == FXTAP_OK && context.n_lost > 0) {
        status = fx_reader_warn(reader, "%s: %zu index rows refer to no slot of the graph", step->info.folder,
                                context.n_lost);
    }
    return status;
}

fxtap_status fx_index_has_tensors(fxtap_reader *reader, const fx_graph *graph, const fx_step *step, bool *out)
{
    fx_rows rows = {0};
    fxtap_status status =
        fx_rows_begin(reader, graph->rank, "SELECT 1 FROM tensor WHERE step_id = ? LIMIT 1", &step->id, &rows);
    if (status == FXTAP_OK) {
        status = fx_rows_next(&rows, out);
    }
    fx_rows_end(&rows);
    if (status == FXTAP_E_DATABASE) {
        *out = true; /* reported and handled when the rows are read */
        return FXTAP_OK;
    }
    return status;
}

/* ---- hashes ---- */

static const fx_slot *find_input(const fx_graph *graph, const fxtap_node_info *node, const char *position)
{
    for (size_t i = 0; i < graph->n_slots; i++) {
        const fx_slot *slot = &graph->slots[i];
        if (&slot->node->info == node && slot->io == FXTAP_INPUT && strcmp(slot->position, position) == 0) {
            return slot;
        }
    }
    return NULL;
}

static fxtap_status take_hashes(fxtap_reader *reader, const fx_graph *graph, const fx_slot *slot,
                                const fxtap_step_info *const *steps, size_t n, fxtap_hash128 *out)
{
    static const char sql[] = "SELECT v.hash FROM tensor t JOIN value v ON v.id = t.value_id"
                              " WHERE t.step_id = ?1 AND t.slot_id = ?2 ORDER BY t.stamp_us LIMIT 1";
    fx_rows rows = {0};
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        const int64_t parameters[] = {((const fx_step *)steps[i])->id, slot->id};
        bool has_row = false;
        if (rows.statement == NULL) {
            status = fx_rows_begin(reader, graph->rank, sql, parameters, &rows);
        } else {
            fx_rows_restart(&rows, parameters);
        }
        status = status == FXTAP_OK ? fx_rows_next(&rows, &has_row) : status;
        if (has_row) {
            out[i] = fx_rows_hash(&rows, 0);
        }
    }
    fx_rows_end(&rows);
    return status;
}

fxtap_status fxtap_reader_input_hashes(fxtap_reader *reader, const fxtap_node_info *node, const char *position,
                                       const fxtap_step_info *const *steps, size_t n, fxtap_hash128 *out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(node);
    FX_REQUIRE(position);
    FX_REQUIRE(steps);
    FX_REQUIRE(out);
    memset(out, 0, n * sizeof *out);
    fx_graph *graph = n == 0 ? NULL : (fx_graph *)steps[0]->graph;
    if (graph == NULL || graph->id == 0) {
        return FXTAP_OK;
    }
    fxtap_status status = fx_index_load_slots(reader, graph);
    const fx_slot *slot = status == FXTAP_OK ? find_input(graph, node, position) : NULL;
    if (slot != NULL) {
        status = take_hashes(reader, graph, slot, steps, n, out);
    }
    return status == FXTAP_E_DATABASE ? FXTAP_OK : status; /* listing the steps reports it */
}
