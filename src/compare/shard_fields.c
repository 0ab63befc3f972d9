/* shard_fields.c - the fields of pairs, groups, origins and rules in a shard, for both reading and writing. */
#include <assert.h>
#include <string.h>

#include "compare/shard.h"

#define N_OF(array) (sizeof(array) / sizeof *(array))

static void u64_fields(fx_codec *c, uint64_t *const *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fx_codec_u64(c, fields[i]);
    }
}

static void double_fields(fx_codec *c, double *const *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fx_codec_double(c, fields[i]);
    }
}

static void stats_fields(fx_codec *c, fxtap_stats *stats)
{
    int dtype = (int)stats->dtype;
    fx_codec_enum(c, &dtype, FXTAP_DTYPE_COUNT);
    stats->dtype = (fxtap_dtype)dtype;
    fx_codec_bool(c, &stats->has_range);
    uint64_t *counts[] = {&stats->count,         &stats->finite_count, &stats->nan_count,      &stats->pos_inf_count,
                          &stats->neg_inf_count, &stats->zero_count,   &stats->subnormal_count};
    u64_fields(c, counts, N_OF(counts));
    double *values[] = {&stats->min,       &stats->max, &stats->abs_max, &stats->mean,
                        &stats->mean_imag, &stats->std, &stats->rms,     &stats->l2_norm};
    double_fields(c, values, N_OF(values));
    fx_codec_i64(c, &stats->min_int);
    fx_codec_i64(c, &stats->max_int);
}

static void both_stats_fields(fx_codec *c, fxtap_pair *pair)
{
    fxtap_stats *room = fx_codec_room(c, 2, sizeof *room);
    if (c->status != FXTAP_OK) {
        return;
    }
    assert(room != NULL || (pair->golden_stats != NULL && pair->target_stats != NULL));
    fxtap_stats golden = room == NULL ? *pair->golden_stats : (fxtap_stats){0};
    fxtap_stats target = room == NULL ? *pair->target_stats : (fxtap_stats){0};
    stats_fields(c, room == NULL ? &golden : &room[0]);
    stats_fields(c, room == NULL ? &target : &room[1]);
    if (room != NULL) {
        pair->golden_stats = &room[0];
        pair->target_stats = &room[1];
    }
}

static void shape_fields(fx_codec *c, int32_t *ndim, const int64_t **shape)
{
    size_t n = *ndim > 0 && *shape != NULL ? (size_t)*ndim : 0;
    int32_t known = *shape == NULL && *ndim > 0 ? 0 : *ndim;
    fx_codec_i32(c, &known);
    fx_codec_count(c, &n, 8);
    int64_t *room = fx_codec_room(c, n, sizeof *room);
    for (size_t i = 0; c->status == FXTAP_OK && i < n; i++) {
        assert(room != NULL || *shape != NULL);
        int64_t extent = room == NULL ? (*shape)[i] : 0;
        fx_codec_i64(c, &extent);
        if (room != NULL) {
            room[i] = extent;
        }
    }
    if (fx_codec_is_writing(c)) {
        return;
    }
    if ((size_t)known != n) {
        fx_codec_fail(c, "invalid shape");
    }
    *ndim = c->status == FXTAP_OK ? known : 0;
    *shape = room;
}

static void worst_fields(fx_codec *c, fxtap_pair *pair)
{
    fx_codec_count(c, &pair->n_worst, 24);
    fxtap_coordinate *room = fx_codec_room(c, pair->n_worst, sizeof *room);
    for (size_t i = 0; c->status == FXTAP_OK && i < pair->n_worst; i++) {
        fxtap_coordinate point = room == NULL ? pair->worst[i] : (fxtap_coordinate){0};
        fx_codec_u64(c, &point.index);
        fx_codec_double(c, &point.golden);
        fx_codec_double(c, &point.target);
        if (room != NULL) {
            room[i] = point;
        }
    }
    if (!fx_codec_is_writing(c)) {
        pair->worst = room;
    }
}

/* The bins of one side: an array of numbers, owned by the report. */
static void number_fields(fx_codec *c, size_t n, const uint64_t **numbers)
{
    uint64_t *room = fx_codec_room(c, n, sizeof *room);
    for (size_t i = 0; c->status == FXTAP_OK && i < n; i++) {
        uint64_t value = room == NULL ? (*numbers)[i] : 0;
        fx_codec_u64(c, &value);
        if (room != NULL) {
            room[i] = value;
        }
    }
    *numbers = room != NULL ? room : *numbers;
}

static void histogram_fields(fx_codec *c, fxtap_pair *pair)
{
    bool has_some = pair->histograms != NULL;
    fx_codec_bool(c, &has_some);
    fxtap_histograms *room = has_some ? fx_codec_room(c, 1, sizeof *room) : NULL;
    if (!has_some || c->status != FXTAP_OK) {
        return;
    }
    assert(room != NULL || pair->histograms != NULL);
    fxtap_histograms histograms = room == NULL ? *pair->histograms : (fxtap_histograms){0};
    fx_codec_double(c, &histograms.low);
    fx_codec_double(c, &histograms.high);
    fx_codec_count(c, &histograms.n_bins, 16);
    number_fields(c, histograms.n_bins, &histograms.golden);
    number_fields(c, histograms.n_bins, &histograms.target);
    if (room != NULL) {
        *room = histograms;
        pair->histograms = room;
    }
}

static void neighbour_fields(fx_codec *c, fxtap_neighbour *node)
{
    fx_codec_text(c, &node->node);
    fx_codec_text(c, &node->operator_name);
    node->node = node->node == NULL ? "" : node->node;
    node->operator_name = node->operator_name == NULL ? "" : node->operator_name;
    fx_codec_i32(c, &node->depth);
    fx_codec_bool(c, &node->is_judged);
    fx_codec_bool(c, &node->is_bad);
    fx_codec_double(c, &node->rel_l2);
}

static void edge_fields(fx_codec *c, fxtap_neighbourhood *around)
{
    uint32_t *room = fx_codec_room(c, 2 * around->n_edges, sizeof *room);
    for (size_t i = 0; c->status == FXTAP_OK && i < 2 * around->n_edges; i++) {
        uint32_t end = room == NULL ? around->edges[i] : 0;
        fx_codec_u32(c, &end);
        if (end >= around->n_nodes) {
            fx_codec_fail(c, "an edge of a missing node");
            end = 0;
        }
        if (room != NULL) {
            room[i] = end;
        }
    }
    around->edges = room != NULL ? room : around->edges;
}

static void around_fields(fx_codec *c, fxtap_origin *origin)
{
    bool has_one = origin->around != NULL;
    fx_codec_bool(c, &has_one);
    fxtap_neighbourhood *room = has_one ? fx_codec_room(c, 1, sizeof *room) : NULL;
    if (!has_one || c->status != FXTAP_OK) {
        return;
    }
    assert(room != NULL || origin->around != NULL);
    fxtap_neighbourhood around = room == NULL ? *origin->around : (fxtap_neighbourhood){0};
    fx_codec_count(c, &around.n_nodes, 22);
    fx_codec_count(c, &around.n_edges, 8);
    fxtap_neighbour *nodes = fx_codec_room(c, around.n_nodes, sizeof *nodes);
    for (size_t i = 0; c->status == FXTAP_OK && i < around.n_nodes; i++) {
        fxtap_neighbour node = nodes == NULL ? around.nodes[i] : (fxtap_neighbour){0};
        neighbour_fields(c, &node);
        if (nodes != NULL) {
            nodes[i] = node;
        }
    }
    edge_fields(c, &around);
    if (room != NULL) {
        around.nodes = nodes;
        *room = around;
        origin->around = room;
    }
}

static void text_fields(fx_codec *c, fxtap_pair *pair)
{
    const char **texts[] = {&pair->name,        &pair->target_name, &pair->node,        &pair->operator_name,
                            &pair->position,    &pair->source_file, &pair->source_code, &pair->module_path,
                            &pair->golden_path, &pair->target_path, &pair->detail};
    for (size_t i = 0; i < N_OF(texts); i++) {
        fx_codec_text(c, texts[i]);
    }
    const char **required[] = {&pair->name,        &pair->node,        &pair->operator_name, &pair->position,
                               &pair->source_file, &pair->source_code, &pair->module_path,   &pair->detail};
    for (size_t i = 0; i < N_OF(required); i++) {
        *required[i] = *required[i] == NULL ? "" : *required[i];
    }
}

static void enum_fields(fx_codec *c, fxtap_pair *pair)
{
    int verdict = (int)pair->verdict, pairing = (int)pair->pairing, io = (int)pair->io;
    int golden_dtype = (int)pair->golden_dtype, target_dtype = (int)pair->target_dtype;
    fx_codec_enum(c, &verdict, FXTAP_VERDICT_COUNT);
    fx_codec_enum(c, &pairing, FXTAP_PAIR_COUNT);
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
    double *values[] = {&pair->rtol,       &pair->atol,    &pair->max_abs_err, &pair->max_rel_err, &pair->mean_abs_err,
                        &pair->rmse,       &pair->cosine,  &pair->rel_l2,      &pair->euclidean,   &pair->within_1e3,
                        &pair->within_5e3, &pair->max_ulp, &pair->input_error, &pair->growth};
    double_fields(c, values, N_OF(values));
    uint64_t *counts[] = {&pair->count,          &pair->max_abs_index,  &pair->max_rel_index,  &pair->mismatched,
                          &pair->nan_mismatched, &pair->inf_mismatched, &pair->undefined_count};
    u64_fields(c, counts, N_OF(counts));
    worst_fields(c, pair);
    fx_codec_bool(c, &pair->has_hashes);
    if (pair->has_hashes) {
        uint64_t *halves[] = {&pair->golden_hash.high, &pair->golden_hash.low, &pair->target_hash.high,
                              &pair->target_hash.low};
        u64_fields(c, halves, N_OF(halves));
    }
    bool has_stats = pair->golden_stats != NULL;
    fx_codec_bool(c, &has_stats);
    if (has_stats) {
        both_stats_fields(c, pair);
    }
    histogram_fields(c, pair);
}

void fx_pair_fields(fx_codec *c, fxtap_pair *pair)
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
    fx_codec_u32(c, &pair->evidence);
    fx_codec_u32(c, &pair->n_golden_operators);
    fx_codec_u32(c, &pair->n_target_operators);
    fx_codec_bool(c, &pair->is_literal);
    fx_codec_bool(c, &pair->is_missing);
    fx_codec_bool(c, &pair->golden_recorded);
    fx_codec_bool(c, &pair->target_recorded);
    metric_fields(c, pair);
}

void fx_group_fields(fx_codec *c, fxtap_group *group)
{
    int pairing = (int)group->pairing;
    fx_codec_i32(c, &group->rank);
    fx_codec_u32(c, &group->graph);
    fx_codec_u32(c, &group->target_graph);
    fx_codec_i64(c, &group->step);
    fx_codec_i64(c, &group->target_step);
    fx_codec_enum(c, &pairing, FXTAP_PAIR_COUNT);
    group->pairing = (fxtap_pairing)pairing;
    fx_codec_u64(c, &group->unit);
    fx_codec_i64(c, &group->call);
    fx_codec_size(c, &group->first_pair);
    fx_codec_size(c, &group->n_pairs);
}

void fx_origin_fields(fx_codec *c, fxtap_origin *origin, size_t *pair)
{
    int reason = (int)origin->reason;
    fx_codec_enum(c, &reason, FXTAP_ORIGIN_ROUNDING + 1);
    origin->reason = (fxtap_origin_reason)reason;
    fx_codec_size(c, pair);
    fx_codec_double(c, &origin->input_error);
    fx_codec_double(c, &origin->output_error);
    fx_codec_double(c, &origin->growth);
    fx_codec_size(c, &origin->n_carried);
    fx_codec_text(c, &origin->other_operator);
    fx_codec_text(c, &origin->literal);
    fx_codec_text(c, &origin->between);
    fx_codec_text(c, &origin->between_source);
    fx_codec_text(c, &origin->between_code);
    fx_codec_text(c, &origin->between_module);
    fx_codec_text(c, &origin->other_source);
    fx_codec_text(c, &origin->other_code);
    fx_codec_text(c, &origin->input);
    fx_codec_bool(c, &origin->follows);
    around_fields(c, origin);
}

void fx_rule_fields(fx_codec *c, fxtap_rule *rule)
{
    fx_codec_text(c, &rule->dtype);
    fx_codec_text(c, &rule->operator_name);
    fx_codec_text(c, &rule->node);
    double *values[] = {&rule->rtol, &rule->atol, &rule->min_cosine, &rule->max_abs, &rule->max_rel_l2, &rule->max_ulp};
    double_fields(c, values, N_OF(values));
}
