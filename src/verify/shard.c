/* shard.c - serialises a verification, and merges shards into the verification that one process would have made. */
#include <stdlib.h>
#include <string.h>

#include "util/codec.h"
#include "util/error.h"
#include "util/memory.h"
#include "verify/verification.h"

#define MAGIC 0x7672657661746c03u /* and a version */
#define RESULT_BYTES_MIN 64
#define VALUE_BYTES 9

static void error_fields(fx_codec *c, fxtap_rounding_error *error)
{
    uint64_t *const counts[] = {&error->count,         &error->misrounded,      &error->up,       &error->down,
                                &error->unexplained,   &error->outliers,        &error->special,  &error->zero_signs,
                                &error->max_ulp_index, &error->max_ratio_index, &error->distinct, &error->unfaithful};
    double *const numbers[] = {&error->max_ulp, &error->max_ratio, &error->rms_error, &error->rms_allowance,
                               &error->ratio,   &error->bias,      &error->bias_error};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fx_codec_u64(c, counts[i]);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fx_codec_double(c, numbers[i]);
    }
    fx_codec_size(c, &error->n_worst);
    if (error->n_worst > FXTAP_ROUNDING_WORST_MAX) {
        error->n_worst = 0;
        fx_codec_fail(c, "too many worst elements");
    }
    for (size_t i = 0; i < error->n_worst; i++) {
        fx_codec_u64(c, &error->worst[i].index);
        fx_codec_double(c, &error->worst[i].saved);
        fx_codec_double(c, &error->worst[i].reference);
    }
}

static void text_field(fx_codec *c, const char **text)
{
    fx_codec_text(c, text);
    *text = *text == NULL ? "" : *text;
}

static void shape_fields(fx_codec *c, fxtap_verify_place *place)
{
    size_t ndim = (size_t)place->ndim;
    fx_codec_count(c, &ndim, sizeof(int64_t));
    if (ndim > FXTAP_MAX_DIMS) {
        ndim = 0;
        fx_codec_fail(c, "too many dimensions");
    }
    int64_t *shape = fx_codec_room(c, ndim, sizeof *shape);
    place->ndim = (int32_t)ndim;
    for (size_t i = 0; i < ndim; i++) {
        int64_t extent = fx_codec_is_writing(c) ? place->shape[i] : 0;
        fx_codec_i64(c, &extent);
        if (shape != NULL) {
            shape[i] = extent;
        }
    }
    if (!fx_codec_is_writing(c)) {
        place->ndim = shape == NULL ? 0 : place->ndim;
        place->shape = shape;
    }
}

static void value_fields(fx_codec *c, fxtap_verify_value *value)
{
    fx_codec_u64(c, &value->hash);
    fx_codec_bool(c, &value->differs);
}

static void input_fields(fx_codec *c, fxtap_verify_place *place)
{
    fx_codec_count(c, &place->n_inputs, VALUE_BYTES);
    fxtap_verify_value *inputs = fx_codec_room(c, place->n_inputs, sizeof *inputs);
    for (size_t i = 0; i < place->n_inputs && (inputs != NULL || fx_codec_is_writing(c)); i++) {
        fxtap_verify_value value = fx_codec_is_writing(c) ? place->inputs[i] : (fxtap_verify_value){0};
        value_fields(c, &value);
        if (inputs != NULL) {
            inputs[i] = value;
        }
    }
    if (!fx_codec_is_writing(c)) {
        place->n_inputs = inputs == NULL ? 0 : place->n_inputs;
        place->inputs = inputs;
    }
}

static void place_fields(fx_codec *c, fxtap_verify_place *place)
{
    place->struct_size = sizeof *place;
    fx_codec_i32(c, &place->rank);
    fx_codec_u32(c, &place->graph);
    fx_codec_i64(c, &place->step);
    fx_codec_i64(c, &place->call);
    fx_codec_i64(c, &place->order);
    text_field(c, &place->node);
    text_field(c, &place->operator_name);
    text_field(c, &place->slot);
    text_field(c, &place->source_file);
    fx_codec_i32(c, &place->source_line);
    text_field(c, &place->source_function);
    text_field(c, &place->source_code);
    text_field(c, &place->module_path);
    int dtype = (int)place->dtype;
    fx_codec_enum(c, &dtype, FXTAP_DTYPE_COUNT);
    place->dtype = (fxtap_dtype)dtype;
    shape_fields(c, place);
    fx_codec_double(c, &place->distances.golden);
    fx_codec_double(c, &place->distances.target);
    fx_codec_double(c, &place->distances.rounding);
    fx_codec_bool(c, &place->is_alone);
    value_fields(c, &place->value);
    input_fields(c, place);
}

static void result_fields(fx_codec *c, fxtap_verify_result *result)
{
    place_fields(c, &result->place);
    int verdict = (int)result->verdict;
    fx_codec_enum(c, &verdict, FXTAP_VERIFY_COUNT);
    result->verdict = (fxtap_verify_verdict)verdict;
    text_field(c, &result->reason);
    fx_codec_bool(c, &result->is_measured);
    fx_codec_bool(c, &result->has_third);
    if (result->is_measured) {
        error_fields(c, &result->error);
    }
    if (result->has_third) {
        error_fields(c, &result->third);
    }
}

static void head_fields(fx_codec *c, fxtap_verification *verification)
{
    fx_codec_magic(c, MAGIC);
    fx_codec_text(c, &verification->golden);
    text_field(c, &verification->target);
}

fxtap_status fxtap_verification_serialise(const fxtap_verification *verification, void **out, size_t *n_bytes_out)
{
    FX_REQUIRE(verification);
    FX_REQUIRE(out);
    FX_REQUIRE(n_bytes_out);
    fxtap_verification copy = *verification; /* the codec needs lvalues; it changes nothing */
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fx_codec c = fx_codec_writer("verification shard", &buffer);
    head_fields(&c, &copy);
    fx_codec_count(&c, &copy.n_results, 1);
    for (size_t i = 0; i < copy.n_results; i++) {
        fxtap_verify_result result = copy.results[i];
        result_fields(&c, &result);
    }
    return fxtap_buffer_take(&buffer, out, n_bytes_out);
}

/* ---- merging ---- */

typedef struct entry {
    fxtap_verify_result result;
    size_t number; /* in order of the shards: results of one operator keep their order */
} entry;

typedef struct entries {
    entry *items;
    size_t count, capacity;
} entries;

static fxtap_status read_shard(fxtap_verification *into, const void *bytes, size_t n_bytes, entries *all)
{
    fxtap_verification head = {0};
    fx_codec c = fx_codec_reader("verification shard", bytes, n_bytes, &into->arena);
    head_fields(&c, &head);
    size_t n_results = 0;
    fx_codec_count(&c, &n_results, RESULT_BYTES_MIN);
    if (c.status != FXTAP_OK) {
        return c.status;
    }
    if (into->target == NULL) {
        into->golden = head.golden;
        into->target = head.target;
    }
    if (!fx_grow((void **)&all->items, &all->capacity, all->count + n_results, sizeof *all->items)) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n_results && c.status == FXTAP_OK; i++) {
        entry *at = &all->items[all->count];
        *at = (entry){.number = all->count};
        result_fields(&c, &at->result);
        all->count++;
    }
    if (c.status == FXTAP_OK && c.left > 0) {
        fx_codec_fail(&c, "bytes follow the end");
    }
    return c.status;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int in_order(const void *left, const void *right)
{
    const entry *e = left, *f = right;
    const fxtap_verify_place *a = &e->result.place, *b = &f->result.place;
    const int64_t keys[][2] = {{a->rank, b->rank},   {a->call, b->call},   {a->step, b->step},
                               {a->graph, b->graph}, {a->order, b->order}, {(int64_t)e->number, (int64_t)f->number}};
    int result = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && result == 0; i++) {
        result = compare_numbers(keys[i][0], keys[i][1]);
    }
    return result;
}

static fxtap_status merge(fxtap_verification *into, const void *const *shards, const size_t *n_bytes, size_t n_shards,
                          entries *all)
{
    fxtap_status status = FXTAP_OK;
    for (size_t s = 0; s < n_shards && status == FXTAP_OK; s++) {
        status = read_shard(into, shards[s], n_bytes[s], all);
    }
    if (status == FXTAP_OK && all->count > 1) {
        qsort(all->items, all->count, sizeof *all->items, in_order);
    }
    for (size_t i = 0; i < all->count && status == FXTAP_OK; i++) {
        status = fx_verification_append(into, &all->items[i].result);
    }
    return status;
}

fxtap_status fxtap_verification_merge(const void *const *shards, const size_t *n_bytes, size_t n_shards,
                                      fxtap_verification **out)
{
    FX_REQUIRE(shards);
    FX_REQUIRE(n_bytes);
    FX_REQUIRE(out);
    if (n_shards == 0) {
        return fx_error(FXTAP_E_INVALID, "no shards to merge");
    }
    fxtap_verification *into = NULL;
    fxtap_status status = fxtap_verification_create(NULL, "", &into);
    if (status != FXTAP_OK) {
        return status;
    }
    into->target = NULL; /* the first shard's */
    entries all = {0};
    status = merge(into, shards, n_bytes, n_shards, &all);
    fx_free(all.items);
    if (status != FXTAP_OK) {
        fxtap_verification_free(into);
        return status;
    }
    *out = into;
    return FXTAP_OK;
}
