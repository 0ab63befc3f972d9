/* compare.c - one comparison from the readers to the finished report. */
#include "fxtap/compare.h"

#include <string.h>

#include "compare/report.h"
#include "util/error.h"
#include "util/memory.h"

void fxtap_compare_options_init(fxtap_compare_options *options)
{
    *options = (fxtap_compare_options){
        .struct_size = sizeof *options,
        .golden_rank = -1,
        .target_rank = -1,
        .golden_graph = -1,
        .target_graph = -1,
        .golden_step = -1,
        .target_step = -1,
        .n_worst = 5,
    };
}

static fxtap_status check_options(const fxtap_compare_options *options)
{
    if (options->struct_size < sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "compare options of %zu bytes, expected %zu", options->struct_size,
                        sizeof *options);
    }
    if (options->n_shards > 0 && options->shard >= options->n_shards) {
        return fx_error(FXTAP_E_INVALID, "shard %u of %u", options->shard, options->n_shards);
    }
    for (size_t i = 0; i < options->n_rules; i++) {
        const char *dtype = options->rules[i].dtype;
        if (dtype != NULL && fxtap_dtype_from_name(dtype) == FXTAP_DTYPE_NONE) {
            return fx_error(FXTAP_E_INVALID, "no dtype is called '%s'", dtype);
        }
    }
    return FXTAP_OK;
}

static bool copy_text(fx_arena *arena, const char *text, const char **out)
{
    *out = text == NULL ? NULL : fx_arena_strdup(arena, text);
    return text == NULL || *out != NULL;
}

static fxtap_status copy_rules(fxtap_report *report, const fxtap_compare_options *options)
{
    report->n_rules = options->n_rules;
    report->rules = fx_arena_memdup(&report->arena, options->rules, options->n_rules * sizeof *options->rules);
    bool copied = report->rules != NULL;
    for (size_t i = 0; i < options->n_rules && copied; i++) {
        fxtap_rule *rule = &report->rules[i];
        copied = copy_text(&report->arena, rule->dtype, &rule->dtype) &&
                 copy_text(&report->arena, rule->target, &rule->target) &&
                 copy_text(&report->arena, rule->node, &rule->node);
    }
    return copied ? FXTAP_OK : FXTAP_E_NOMEM;
}

static fxtap_status begin(fx_comparison *c, fxtap_reader *golden, fxtap_reader *target)
{
    c->report = fx_report_create();
    if (c->report == NULL) {
        return FXTAP_E_NOMEM;
    }
    c->texts.arena = &c->report->arena;
    if (!copy_text(&c->report->arena, fxtap_reader_path(golden), &c->report->golden_path) ||
        !copy_text(&c->report->arena, fxtap_reader_path(target), &c->report->target_path)) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = copy_rules(c->report, c->options);
    if (status == FXTAP_OK && c->options->map_path != NULL) {
        status = fx_map_load(&c->arena, c->options->map_path, &c->map);
    }
    if (status == FXTAP_OK) {
        status = fx_side_open(c, &c->golden, golden, true);
    }
    if (status == FXTAP_OK) {
        status = fx_side_open(c, &c->target, target, false);
    }
    if (status == FXTAP_OK && c->golden.n_sets == 0 && c->target.n_sets == 0) {
        status = fx_error_at(FXTAP_E_NOT_FOUND, fxtap_reader_path(golden), "no tensors to compare on either side");
    }
    return status;
}

static bool in_shard(const fxtap_compare_options *options, size_t group)
{
    return options->n_shards == 0 || group % options->n_shards == options->shard;
}

/* Room for the pairs at once: an array this large should not be doubled and copied. */
static fxtap_status reserve_pairs(fx_comparison *c)
{
    size_t n_golden = fxtap_tensor_list_count(c->golden.list), n_target = fxtap_tensor_list_count(c->target.list);
    size_t n = (n_golden > n_target ? n_golden : n_target) / (c->options->n_shards > 0 ? c->options->n_shards : 1);
    bool reserved = fx_grow((void **)&c->report->pairs, &c->report->pairs_capacity, n, sizeof *c->report->pairs) &&
                    fx_grow((void **)&c->sources, &c->sources_capacity, n, sizeof *c->sources);
    return reserved ? FXTAP_OK : FXTAP_E_NOMEM;
}

static fxtap_status pair_all(fx_comparison *c)
{
    fxtap_status status = reserve_pairs(c);
    for (size_t i = 0; i < c->n_groups && status == FXTAP_OK; i++) {
        if (!in_shard(c->options, i)) {
            continue;
        }
        status = fx_pair_nodes(c, &c->groups[i]);
        if (status == FXTAP_OK) {
            status = fx_mark_undefined(c, &c->groups[i]);
        }
    }
    return status;
}

static fxtap_status find_origins(fx_comparison *c)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < c->n_groups && status == FXTAP_OK; i++) {
        if (in_shard(c->options, i)) {
            status = fx_find_origins(c, &c->groups[i]);
        }
    }
    return status;
}

static fxtap_status run(fx_comparison *c, fxtap_status (*pair_up)(fx_comparison *), fxtap_report **out)
{
    fxtap_status status = pair_up(c);
    if (status == FXTAP_OK) {
        status = pair_all(c);
    }
    if (status == FXTAP_OK) {
        status = fx_judge_all(c);
    }
    if (status == FXTAP_OK) {
        status = find_origins(c);
    }
    if (status == FXTAP_OK) {
        status = fx_link_origins(c->report, c->options->n_shards == 0);
    }
    if (status == FXTAP_OK) {
        fx_trim_details(c->report);
        status = fx_add_histograms(c);
    }
    if (status == FXTAP_OK) {
        fx_report_tally(c->report);
        *out = c->report;
        c->report = NULL;
    }
    return status;
}

static fxtap_status compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                            fxtap_status (*pair_up)(fx_comparison *), fxtap_report **out)
{
    fxtap_status status = check_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_comparison c = {.options = options};
    fx_arena_init(&c.arena);
    atomic_init(&c.stop, false);
    status = begin(&c, golden, target);
    if (status == FXTAP_OK) {
        status = run(&c, pair_up, out);
    }
    fx_side_close(&c.golden);
    fx_side_close(&c.target);
    fx_texts_clear(&c.texts);
    fx_free(c.groups);
    fx_free(c.sources);
    fx_arena_clear(&c.arena);
    fxtap_report_free(c.report);
    return status;
}

fxtap_status fxtap_compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                           fxtap_report **out)
{
    return compare(golden, target, options, fx_pair_groups, out);
}

fxtap_status fxtap_compare_ranks(fxtap_reader *reader, const fxtap_compare_options *options, fxtap_report **out)
{
    fxtap_status status = check_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_compare_options same = *options; /* both sides list the same tensors */
    same.target_run = same.golden_run;
    same.target_rank = same.golden_rank;
    same.target_graph = same.golden_graph;
    same.target_step = same.golden_step;
    return compare(reader, reader, &same, fx_pair_ranks, out);
}
