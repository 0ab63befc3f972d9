/*
 * shard.c - serialises a report, and merges shards: the reports of several processes become the report that a single
 * process would have made.
 *
 * Shard k of n has units k, k + n, k + 2n ..., each of one or more groups; merging takes them in order of their
 * numbers.
 */
#include <string.h>

#include "compare/link.h"
#include "compare/report.h"
#include "compare/shard.h"
#include "fxtap/graph.h"
#include "util/codec.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"

#define MAGIC 0x6872707478663034u /* "fxtprh" and a version */
#define PAIR_BYTES_MIN 200

static void head_fields(fx_codec *c, fxtap_report *report)
{
    fx_codec_magic(c, MAGIC);
    fx_codec_text(c, &report->golden_path);
    fx_codec_text(c, &report->target_path);
    report->golden_path = report->golden_path == NULL ? "" : report->golden_path;
    report->target_path = report->target_path == NULL ? "" : report->target_path;
    fx_codec_text(c, &report->steps);
    fx_codec_text(c, &report->explanation);
    fx_codec_bool(c, &report->stopped_early);
    fx_codec_size(c, &report->n_carried);
}

fxtap_status fxtap_report_serialise(const fxtap_report *report, void **out, size_t *n_bytes_out)
{
    FX_REQUIRE(report);
    FX_REQUIRE(out);
    FX_REQUIRE(n_bytes_out);
    fxtap_report copy = *report; /* the codec needs lvalues; it changes nothing */
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fx_codec c = fx_codec_writer("report shard", &buffer);
    head_fields(&c, &copy);
    fx_codec_count(&c, &copy.n_rules, 1);
    for (size_t i = 0; i < copy.n_rules; i++) {
        fx_rule_fields(&c, &copy.rules[i]);
    }
    fx_codec_count(&c, &copy.n_warnings, 1);
    for (size_t i = 0; i < copy.n_warnings; i++) {
        fx_codec_text(&c, &copy.warnings[i]);
    }
    fx_codec_count(&c, &copy.n_pairs, 1);
    for (size_t i = 0; i < copy.n_pairs; i++) {
        fx_pair_fields(&c, &copy.pairs[i]);
    }
    fx_codec_count(&c, &copy.n_groups, 1);
    for (size_t i = 0; i < copy.n_groups; i++) {
        fx_group_fields(&c, &copy.groups[i]);
    }
    fx_codec_count(&c, &copy.n_origins, 1);
    for (size_t i = 0; i < copy.n_origins; i++) {
        size_t pair = (size_t)(copy.origins[i].pair - copy.pairs);
        fx_origin_fields(&c, &copy.origins[i], &pair);
    }
    return fxtap_buffer_take(&buffer, out, n_bytes_out);
}

/* ---- reading ---- */

static fxtap_status read_rules_and_warnings(fx_codec *c, fxtap_report *report)
{
    fx_codec_count(c, &report->n_rules, 60);
    report->rules = fx_arena_calloc(&report->arena, report->n_rules, sizeof *report->rules);
    if (report->rules == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_rules; i++) {
        fx_rule_fields(c, &report->rules[i]);
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
        fx_pair_fields(c, &report->pairs[i]);
    }
    fx_codec_count(c, &report->n_groups, 48);
    report->groups = fx_calloc(report->n_groups, sizeof *report->groups);
    if (report->groups == NULL) {
        return FXTAP_E_NOMEM;
    }
    size_t n_before = 0;
    for (size_t i = 0; i < report->n_groups && c->status == FXTAP_OK; i++) {
        fxtap_group *group = &report->groups[i];
        fx_group_fields(c, group);
        if (group->first_pair != n_before || group->n_pairs > report->n_pairs - n_before) {
            fx_codec_fail(c, "groups that overlap, or leave pairs out");
            break;
        }
        n_before += group->n_pairs;
    }
    if (n_before != report->n_pairs) {
        fx_codec_fail(c, "pairs outside any group");
    }
    return c->status;
}

static fxtap_status read_origins(fx_codec *c, fxtap_report *report)
{
    fx_codec_count(c, &report->n_origins, 48);
    report->origins = fx_calloc(report->n_origins, sizeof *report->origins);
    report->origin_pairs = fx_calloc(report->n_origins, sizeof *report->origin_pairs);
    if (report->origins == NULL || report->origin_pairs == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < report->n_origins; i++) {
        fx_origin_fields(c, &report->origins[i], &report->origin_pairs[i]);
        if (report->origin_pairs[i] >= report->n_pairs) {
            fx_codec_fail(c, "an origin without a pair");
        }
    }
    return c->status;
}

static fxtap_status read_shard(const void *bytes, size_t n_bytes, fxtap_report **out)
{
    fxtap_report *report = *out = fx_report_create();
    if (report == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_codec c = fx_codec_reader("report shard", bytes, n_bytes, &report->arena);
    head_fields(&c, report);
    fxtap_status status = c.status;
    if (status == FXTAP_OK) {
        status = read_rules_and_warnings(&c, report);
    }
    if (status == FXTAP_OK) {
        status = read_pairs_and_groups(&c, report);
    }
    if (status == FXTAP_OK) {
        status = read_origins(&c, report);
    }
    if (status == FXTAP_OK && c.left > 0) {
        fx_codec_fail(&c, "bytes follow the end");
        status = c.status;
    }
    return status;
}

/* ---- merging ---- */

typedef struct source { /* a shard, and the new indices of its groups' pairs */
    const fxtap_report *report;
    size_t *moved;  /* the new index of each group's first pair */
    size_t n_taken; /* groups appended so far */
} source;

static fxtap_status append_group(fxtap_report *into, source *from, size_t g)
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
    from->moved[g] = n;
    group.first_pair = n;
    return fx_report_add_group(into, &group);
}

/* The group of a shard's pair. It always exists: groups cover all pairs, and some are empty. */
static size_t group_with(const fxtap_report *report, size_t pair)
{
    size_t low = 0, high = report->n_groups;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(report->groups[middle].first_pair <= pair ? &low : &high) = middle;
    }
    return low;
}

static fxtap_status append_origins(fxtap_report *into, const source *from)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < from->report->n_origins && status == FXTAP_OK; i++) {
        size_t pair = from->report->origin_pairs[i], g = group_with(from->report, pair);
        size_t moved = from->moved[g] + (pair - from->report->groups[g].first_pair);
        status = fx_report_add_origin(into, &from->report->origins[i], moved);
    }
    return status;
}

static fxtap_status merge_heads(fxtap_report *into, fxtap_report *const *shards, size_t n_shards)
{
    into->golden_path = shards[0]->golden_path;
    into->target_path = shards[0]->target_path;
    into->steps = shards[0]->steps;
    into->explanation = shards[0]->explanation;
    into->rules = shards[0]->rules;
    into->n_rules = shards[0]->n_rules;
    fx_texts known = {.arena = &into->arena};
    fxtap_status status = FXTAP_OK;
    for (size_t s = 0; s < n_shards; s++) {
        const fxtap_report *report = shards[s];
        into->stopped_early |= report->stopped_early;
        into->n_carried += report->n_carried;
        for (size_t i = 0; i < report->n_warnings && status == FXTAP_OK; i++) {
            size_t n_known = known.count;
            if (fx_texts_add(&known, report->warnings[i], strlen(report->warnings[i])) == NULL) {
                status = FXTAP_E_NOMEM;
            } else if (known.count > n_known) {
                status = fx_report_warn(into, report->warnings[i]);
            }
        }
    }
    fx_texts_clear(&known);
    return status;
}

/* Each shard stopped at its own first difference: drops what a single process would not have judged. */
static void stop_at_first(fxtap_report *into, fxtap_report *const *shards, size_t n_shards)
{
    size_t first = 0, group = 0, n_kept = 0;
    while (first < into->n_pairs && !fx_verdict_is_bad(into->pairs[first].verdict)) {
        first++;
    }
    if (!into->stopped_early || first == into->n_pairs) {
        return;
    }
    for (size_t i = first + 1; i < into->n_pairs; i++) {
        fx_pair_forget(&into->pairs[i]);
    }
    for (size_t i = 0; i < into->n_origins; i++) {
        if (into->origin_pairs[i] <= first) {
            into->origins[n_kept] = into->origins[i];
            into->origin_pairs[n_kept++] = into->origin_pairs[i];
        }
    }
    into->n_origins = n_kept;
    while (group + 1 < into->n_groups && into->groups[group + 1].first_pair <= first) {
        group++;
    }
    into->n_carried = shards[into->groups[group].unit % n_shards]->n_carried; /* of the shard that has the group */
}

static fxtap_status trim(fxtap_report *report)
{
    bool *chosen = NULL;
    fxtap_status status = fx_choose_details(report, true, &chosen);
    if (status == FXTAP_OK) {
        fx_trim_details(report, chosen);
    }
    fx_free(chosen);
    return status;
}

/* The shard whose next group has the lowest unit; SIZE_MAX: no groups are left. */
static size_t next_source(const source *sources, size_t n_sources)
{
    size_t best = SIZE_MAX;
    for (size_t s = 0; s < n_sources; s++) {
        const fxtap_report *report = sources[s].report;
        size_t next = sources[s].n_taken;
        if (next < report->n_groups &&
            (best == SIZE_MAX ||
             report->groups[next].unit < sources[best].report->groups[sources[best].n_taken].unit)) {
            best = s;
        }
    }
    return best;
}

/* Appends all groups in the order of their units. */
static fxtap_status deal(fxtap_report *into, source *sources, size_t n_sources)
{
    fxtap_status status = FXTAP_OK;
    for (size_t s; status == FXTAP_OK && (s = next_source(sources, n_sources)) != SIZE_MAX;) {
        status = append_group(into, &sources[s], sources[s].n_taken++);
    }
    for (size_t s = 0; s < n_sources && status == FXTAP_OK; s++) {
        status = append_origins(into, &sources[s]);
    }
    return status;
}

static fxtap_status append_all(fxtap_report *into, fxtap_report *const *shards, size_t n_shards)
{
    source *sources = fx_calloc(n_shards, sizeof *sources);
    fxtap_status status = sources == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    for (size_t s = 0; s < n_shards && status == FXTAP_OK; s++) {
        sources[s].report = shards[s];
        sources[s].moved = fx_calloc(shards[s]->n_groups, sizeof *sources[s].moved);
        status = sources[s].moved == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    }
    if (status == FXTAP_OK) {
        status = deal(into, sources, n_shards);
    }
    for (size_t s = 0; s < n_shards && sources != NULL; s++) {
        fx_free(sources[s].moved);
    }
    fx_free(sources);
    return status;
}

static fxtap_status merge(fxtap_report *into, fxtap_report *const *shards, size_t n_shards)
{
    fxtap_status status = merge_heads(into, shards, n_shards);
    if (status == FXTAP_OK) {
        status = append_all(into, shards, n_shards);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    for (size_t s = 0; s < n_shards; s++) {
        fx_arena_adopt(&into->arena, &shards[s]->arena);
    }
    stop_at_first(into, shards, n_shards);
    fx_report_sort_warnings(into);
    fx_report_tally(into);
    status = fx_link_origins(into, true);
    return status == FXTAP_OK ? trim(into) : status;
}

fxtap_status fxtap_report_merge(const void *const *shards, const size_t *n_bytes, size_t n_shards, fxtap_report **out)
{
    FX_REQUIRE(shards);
    FX_REQUIRE(n_bytes);
    FX_REQUIRE(out);
    if (n_shards == 0) {
        return fx_error(FXTAP_E_INVALID, "no shards to merge");
    }
    fxtap_report **read = fx_calloc(n_shards, sizeof *read);
    fxtap_report *into = fx_report_create();
    fxtap_status status = read == NULL || into == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
    fx_float_mode callers = fx_float_mode_begin();
    for (size_t s = 0; s < n_shards && status == FXTAP_OK; s++) {
        status = read_shard(shards[s], n_bytes[s], &read[s]);
    }
    if (status == FXTAP_OK) {
        status = merge(into, read, n_shards);
    }
    fx_float_mode_end(callers);
    for (size_t s = 0; s < n_shards && read != NULL; s++) {
        fxtap_report_free(read[s]);
    }
    fx_free(read);
    if (status == FXTAP_OK) {
        *out = into;
    } else {
        fxtap_report_free(into);
    }
    return status;
}
