/*
 * shard.c - a report as bytes, and shards put together: what several processes compared becomes the report that one
 * would have made.
 *
 * Shard k of n holds groups k, k + n, k + 2n ...; merging deals them out again in that order.
 */
#include <string.h>

#include "compare/codec.h"
#include "compare/report.h"
#include "fxtap/graph.h"
#include "util/error.h"
#include "util/memory.h"

#define MAGIC 0x6872707478663031u /* "fxtprh" and a version, kept when the form changes */
#define PAIR_BYTES_MIN 200

static void stats_fields(fx_codec *c, fxtap_stats *stats)
{
    int dtype = (int)stats->dtype;
    fx_codec_enum(c, &dtype, FXTAP_DTYPE_COUNT);
    stats->dtype = (fxtap_dtype)dtype;
    fx_codec_bool(c, &stats->has_range);
    uint64_t *counts[] = {&stats->count,         &stats->finite_count, &stats->nan_count,      &stats->pos_inf_count,
                          &stats->neg_inf_count, &stats->zero_count,   &stats->subnormal_count};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fx_codec_u64(c, counts[i]);
    }
    double *values[] = {&stats->min,       &stats->max, &stats->abs_max, &stats->mean,
                        &stats->mean_imag, &stats->std, &stats->rms,     &stats->l2_norm};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        fx_codec_double(c, values[i]);
    }
    fx_codec_i64(c, &stats->min_int);
    fx_codec_i64(c, &stats->max_int);
}

static void shape_fields(fx_codec *c, int32_t *ndim, const int64_t **shape)
{
    size_t n = *ndim > 0 && *shape != NULL ? (size_t)*ndim : 0;
    int32_t known = *shape == NULL && *ndim > 0 ? 0 : *ndim;
    fx_codec_i32(c, &known);
    fx_codec_count(c, &n, 8);
    if (!fx_codec_is_writing(c)) {
        int64_t *read = fx_arena_calloc(c->arena, n, sizeof *read);
        if (read == NULL) {
            c->status = FXTAP_E_NOMEM;
            n = 0;
        }
        *ndim = known;
        *shape = read;
        if ((size_t)known != n) {
            fx_codec_fail(c, "a shape that is none");
            *ndim = 0;
        }
    }
    for (size_t i = 0; i < n; i++) {
        int64_t extent = (*shape)[i];
        fx_codec_i64(c, &extent);
        if (!fx_codec_is_writing(c)) {
            ((int64_t *)(uintptr_t)*shape)[i] = extent; /* our own array, a moment ago */
        }
    }
}

static void worst_fields(fx_codec *c, fxtap_pair *pair)
{
    fx_codec_count(c, &pair->n_worst, 24);
    fxtap_coordinate *read = NULL;
    if (!fx_codec_is_writing(c)) {
        read = fx_arena_calloc(c->arena, pair->n_worst, sizeof *read);
        if (read == NULL) {
            c->status = FXTAP_E_NOMEM;
            pair->n_worst = 0;
        }
        pair->worst = read;
    }
    for (size_t i = 0; i < pair->n_worst; i++) {
        fxtap_coordinate point = read == NULL ? pair->worst[i] : (fxtap_coordinate){0};
        fx_codec_u64(c, &point.index);
        fx_codec_double(c, &point.golden);
        fx_codec_double(c, &point.target);
        if (read != NULL) {
            read[i] = point;
        }
    }
}

static void text_fields(fx_codec *c, fxtap_pair *pair)
{
    const char **texts[] = {&pair->name,        &pair->target_name, &pair->node,        &pair->target,
                            &pair->position,    &pair->source_file, &pair->source_code, &pair->module_path,
                            &pair->golden_path, &pair->target_path, &pair->detail};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fx_codec_text(c, texts[i]);
    }
    const char **required[] = {&pair->name,        &pair->node,        &pair->target,      &pair->position,
                               &pair->source_file, &pair->source_code, &pair->module_path, &pair->detail};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        *required[i] = *required[i] == NULL ? "" : *required[i];
    }
}

static void enum_fields(fx_codec *c, fxtap_pair *pair)
{
    int verdict = (int)pair->verdict, pairing = (int)pair->pairing, io = (int)pair->io;
    int golden_dtype = (int)pair->golden_dtype, target_dtype = (int)pair->target_dtype;
    fx_codec_enum(c, &verdict, FXTAP_VERDICT_COUNT);
    fx_codec_enum(c, &pairing, FXTAP_PAIR_ORDER + 1);
    fx_codec_enum(c, &io, FXTAP_INOUT + 1);
    fx_codec_enum(c, &golden_dtype, FXTAP_DTYPE_COUNT);
    fx_codec_enum(c, &target_dtype, FXTAP_DTYPE_COUNT);
    pair->verdict = (fxtap_verdict)verdict;
    pair->pairing = (fxtap_pairing)pairing;
    pair->io = (fxtap_io)io;
    pair->golden_dtype = (fxtap_dtype)golden_dtype;
    pair->target_dtype = (fxtap_dtype)target_dtype;
}

static void metric_fields(fx_codec *c, fxtap_pair *pair)
{
    fx_codec_bool(c, &pair->measured);
    fx_codec_bool(c, &pair->identical_bits);
    double *values[] = {&pair->rtol,         &pair->atol, &pair->max_abs_err, &pair->max_rel_err,
                        &pair->mean_abs_err, &pair->rmse, &pair->cosine,      &pair->rel_l2,
                        &pair->euclidean,    &pair->within_1e3, &pair->within_5e3, &pair->max_ulp};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        fx_codec_double(c, values[i]);
    }
    uint64_t *counts[] = {&pair->count,          &pair->max_abs_index, &pair->max_rel_index, &pair->mismatched,
                          &pair->nan_mismatched, &pair->inf_mismatched};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fx_codec_u64(c, counts[i]);
    }
    worst_fields(c, pair);
    fx_codec_bool(c, &pair->has_stats);
    if (pair->has_stats) {
        stats_fields(c, &pair->golden_stats);
        stats_fields(c, &pair->target_stats);
    }
}

static void pair_fields(fx_codec *c, fxtap_pair *pair)
{
    text_fields(c, pair);
    enum_fields(c, pair);
    fx_codec_double(c, &pair->confidence);
    fx_codec_i32(c, &pair->rank);
    fx_codec_u32(c, &pair->graph);
    fx_codec_u32(c, &pair->target_graph);
    fx_codec_i64(c, &pair->step);
    fx_codec_i64(c, &pair->target_step);
    fx_codec_size(c, &pair->order);
    fx_codec_i32(c, &pair->source_line);
    shape_fields(c, &pair->ndim, &pair->shape);
    shape_fields(c, &pair->target_ndim, &pair->target_shape);
    metric_fields(c, pair);
}

static void group_fields(fx_codec *c, fxtap_group *group)
{
    int pairing = (int)group->pairing;
    fx_codec_i32(c, &group->rank);
    fx_codec_u32(c, &group->graph);
    fx_codec_u32(c, &group->target_graph);
    fx_codec_i64(c, &group->step);
    fx_codec_i64(c, &group->target_step);
    fx_codec_enum(c, &pairing, FXTAP_PAIR_ORDER + 1);
    group->pairing = (fxtap_pairing)pairing;
    fx_codec_size(c, &group->first_pair);
    fx_codec_size(c, &group->n_pairs);
}

static void origin_fields(fx_codec *c, fxtap_origin *origin, size_t *pair)
{
    int reason = (int)origin->reason;
    fx_codec_enum(c, &reason, FXTAP_ORIGIN_REGION + 1);
    origin->reason = (fxtap_origin_reason)reason;
    fx_codec_size(c, pair);
    fx_codec_double(c, &origin->input_error);
    fx_codec_double(c, &origin->output_error);
    fx_codec_double(c, &origin->growth);
    fx_codec_size(c, &origin->n_carried);
    fx_codec_text(c, &origin->golden_target);
}

static void rule_fields(fx_codec *c, fxtap_rule *rule)
{
    fx_codec_text(c, &rule->dtype);
    fx_codec_text(c, &rule->target);
    fx_codec_text(c, &rule->node);
    double *values[] = {&rule->rtol,    &rule->atol,       &rule->min_cosine,
                        &rule->max_abs, &rule->max_rel_l2, &rule->max_ulp};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        fx_codec_double(c, values[i]);
    }
}

static void head_fields(fx_codec *c, fxtap_report *report)
{
    uint64_t magic = MAGIC;
    fx_codec_u64(c, &magic);
    if (magic != MAGIC) {
        fx_codec_fail(c, "foreign, or of another version");
    }
    fx_codec_text(c, &report->golden_path);
    fx_codec_text(c, &report->target_path);
    report->golden_path = report->golden_path == NULL ? "" : report->golden_path;
    report->target_path = report->target_path == NULL ? "" : report->target_path;
    fx_codec_bool(c, &report->stopped_early);
    fx_codec_size(c, &report->n_carried);
}

fxtap_status fxtap_report_serialise(const fxtap_report *report, void **out, size_t *n_bytes_out)
{
    fxtap_report copy = *report; /* the fields are visited as lvalues; nothing of it is changed */
    fxtap_buffer buffer;
    fx_codec c;
    fxtap_buffer_init(&buffer);
    fx_codec_write_to(&c, &buffer);
    head_fields(&c, &copy);
    fx_codec_count(&c, &copy.n_rules, 1);
    for (size_t i = 0; i < copy.n_rules; i++) {
        rule_fields(&c, &copy.rules[i]);
    }
    fx_codec_count(&c, &copy.n_warnings, 1);
    for (size_t i = 0; i < copy.n_warnings; i++) {
        fx_codec_text(&c, &copy.warnings[i]);
    }
    fx_codec_count(&c, &copy.n_pairs, 1);
    for (size_t i = 0; i < copy.n_pairs; i++) {
        pair_fields(&c, &copy.pairs[i]);
    }
    fx_codec_count(&c, &copy.n_groups, 1);
    for (size_t i = 0; i < copy.n_groups; i++) {
        group_fields(&c, &copy.groups[i]);
    }
    fx_codec_count(&c, &copy.n_origins, 1);
    for (size_t i = 0; i < copy.n_origins; i++) {
        size_t pair = (size_t)(copy.origins[i].pair - copy.pairs);
        origin_fields(&c, &copy.origins[i], &pair);
    }
    fxtap_status status = fxtap_buffer_status(&buffer);
    if (status != FXTAP_OK) {
        fxtap_buffer_clear(&buffer);
        return status;
    }
    *out = buffer.bytes;
    *n_bytes_out = buffer.length;
    return FXTAP_OK;
}

/* ---- reading ---- */

typedef struct shard {
    fxtap_report *report;
    size_t *origin_pairs; /* index of each origin's pair */
} shard;

static fxtap_status read_rules_and_warnings(fx_codec *c, fxtap_report *report)
{
    fx_codec_count(c, &report->n_rules, 60);
    report->rules = fx_arena_calloc(&report->arena, report->n_rules, sizeof *report->rules);
    if (report->rules == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_rules; i++) {
        rule_fields(c, &report->rules[i]);
    }
    size_t n_warnings = 0;
    fx_codec_count(c, &n_warnings, 4);
    for (size_t i = 0; i < n_warnings && c->status == FXTAP_OK; i++) {
        const char *line = NULL;
        fx_codec_text(c, &line);
        if (line != NULL && fx_report_warn(report, line) != FXTAP_OK) {
            return FXTAP_E_NOMEM;
        }
    }
    return c->status;
}

static fxtap_status read_pairs_and_groups(fx_codec *c, fxtap_report *report)
{
    fx_codec_count(c, &report->n_pairs, PAIR_BYTES_MIN);
    report->pairs = fx_calloc(report->n_pairs, sizeof *report->pairs);
    if (report->pairs == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_pairs; i++) {
        pair_fields(c, &report->pairs[i]);
    }
    fx_codec_count(c, &report->n_groups, 48);
    report->groups = fx_calloc(report->n_groups, sizeof *report->groups);
    if (report->groups == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_groups; i++) {
        fxtap_group *group = &report->groups[i];
        group_fields(c, group);
        if (group->first_pair > report->n_pairs || group->n_pairs > report->n_pairs - group->first_pair) {
            fx_codec_fail(c, "a group of pairs that are not there");
            group->n_pairs = 0;
        }
    }
    return c->status;
}

static fxtap_status read_origins(fx_codec *c, shard *s)
{
    fxtap_report *report = s->report;
    fx_codec_count(c, &report->n_origins, 48);
    report->origins = fx_calloc(report->n_origins, sizeof *report->origins);
    s->origin_pairs = fx_arena_calloc(&report->arena, report->n_origins, sizeof *s->origin_pairs);
    if (report->origins == NULL || s->origin_pairs == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_origins; i++) {
        origin_fields(c, &report->origins[i], &s->origin_pairs[i]);
        if (s->origin_pairs[i] >= report->n_pairs) {
            fx_codec_fail(c, "an origin without a pair");
        }
    }
    return c->status;
}

static fxtap_status read_shard(const void *bytes, size_t n_bytes, shard *out)
{
    out->report = fx_report_create();
    if (out->report == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_codec c;
    fx_codec_read_from(&c, bytes, n_bytes, &out->report->arena);
    head_fields(&c, out->report);
    fxtap_status status = c.status;
    if (status == FXTAP_OK) {
        status = read_rules_and_warnings(&c, out->report);
    }
    if (status == FXTAP_OK) {
        status = read_pairs_and_groups(&c, out->report);
    }
    if (status == FXTAP_OK) {
        status = read_origins(&c, out);
    }
    if (status == FXTAP_OK && c.left > 0) {
        fx_codec_fail(&c, "bytes follow the end");
        status = c.status;
    }
    return status;
}

/* ---- merging ---- */

static fxtap_status append_group(fxtap_report *into, const shard *from, size_t g)
{
    fxtap_group group = from->report->groups[g];
    size_t n = into->n_pairs;
    if (!fx_grow((void **)&into->pairs, &into->pairs_capacity, n + group.n_pairs, sizeof *into->pairs)) {
        return FXTAP_E_NOMEM;
    }
    if (group.n_pairs > 0) {
        memcpy(into->pairs + n, from->report->pairs + group.first_pair, group.n_pairs * sizeof *into->pairs);
    }
    into->n_pairs += group.n_pairs;
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < from->report->n_origins && status == FXTAP_OK; i++) {
        size_t pair = from->origin_pairs[i];
        if (pair >= group.first_pair && pair < group.first_pair + group.n_pairs) {
            fxtap_origin origin = from->report->origins[i];
            origin.pair = (const fxtap_pair *)(n + (pair - group.first_pair)); /* an index until all are there */
            status = fx_report_add_origin(into, &origin);
        }
    }
    group.first_pair = n;
    return status == FXTAP_OK ? fx_report_add_group(into, &group) : status;
}

static bool is_known_warning(const fxtap_report *report, const char *line)
{
    for (size_t i = 0; i < report->n_warnings; i++) {
        if (strcmp(report->warnings[i], line) == 0) {
            return true;
        }
    }
    return false;
}

static fxtap_status merge_heads(fxtap_report *into, const shard *shards, size_t n_shards)
{
    into->golden_path = shards[0].report->golden_path;
    into->target_path = shards[0].report->target_path;
    into->rules = shards[0].report->rules;
    into->n_rules = shards[0].report->n_rules;
    fxtap_status status = FXTAP_OK;
    for (size_t s = 0; s < n_shards; s++) {
        const fxtap_report *report = shards[s].report;
        into->stopped_early |= report->stopped_early;
        into->n_carried += report->n_carried;
        for (size_t i = 0; i < report->n_warnings && status == FXTAP_OK; i++) {
            if (!is_known_warning(into, report->warnings[i])) {
                status = fx_report_warn(into, report->warnings[i]);
            }
        }
    }
    return status;
}

static fxtap_status merge(fxtap_report *into, const shard *shards, size_t n_shards)
{
    fxtap_status status = merge_heads(into, shards, n_shards);
    size_t n_dealt = 1;
    for (size_t round = 0; n_dealt > 0 && status == FXTAP_OK; round++) {
        n_dealt = 0;
        for (size_t s = 0; s < n_shards && status == FXTAP_OK; s++) {
            if (round < shards[s].report->n_groups) {
                status = append_group(into, &shards[s], round);
                n_dealt++;
            }
        }
    }
    if (status != FXTAP_OK) {
        return status;
    }
    for (size_t i = 0; i < into->n_origins; i++) {
        into->origins[i].pair = into->pairs + (size_t)into->origins[i].pair;
    }
    for (size_t s = 0; s < n_shards; s++) {
        fx_arena_adopt(&into->arena, &shards[s].report->arena);
    }
    fx_report_tally(into);
    return FXTAP_OK;
}

fxtap_status fxtap_report_merge(const void *const *shards, const size_t *n_bytes, size_t n_shards, fxtap_report **out)
{
    if (n_shards == 0) {
        return fx_error(FXTAP_E_INVALID, "no shards to merge");
    }
    shard *read = fx_calloc(n_shards, sizeof *read);
    fxtap_report *into = fx_report_create();
    fxtap_status status = read == NULL || into == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (size_t s = 0; s < n_shards && status == FXTAP_OK; s++) {
        status = read_shard(shards[s], n_bytes[s], &read[s]);
    }
    if (status == FXTAP_OK) {
        status = merge(into, read, n_shards);
    }
    for (size_t s = 0; s < n_shards && read != NULL; s++) {
        fxtap_report_free(read[s].report);
    }
    fx_free(read);
    if (status == FXTAP_OK) {
        *out = into;
    } else {
        fxtap_report_free(into);
    }
    return status;
}
