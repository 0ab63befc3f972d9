/* compare.c - one comparison from the readers to the finished report. */
#include "fxtap/compare.h"

#include <string.h>

#include "compare/batch.h"
#include "compare/link.h"
#include "compare/undefined.h"
#include "pair/map.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"
#include "util/number.h"

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

/* Rules of a later version are longer. */
static const fxtap_rule *rule_at(const fxtap_compare_options *options, size_t i)
{
    return (const void *)((const char *)options->rules + i * options->rules->struct_size);
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
        const fxtap_rule *rule = rule_at(options, i);
        if (rule->struct_size < sizeof *rule || rule->struct_size != options->rules->struct_size) {
            return fx_error(FXTAP_E_INVALID, "rule %zu of %zu bytes, expected %zu (see fxtap_rule_init)", i,
                            rule->struct_size, sizeof *rule);
        }
        const char *dtype = rule->dtype;
        if (dtype != NULL && fxtap_dtype_from_name(dtype) == FXTAP_DTYPE_NONE) {
            return fx_error(FXTAP_E_INVALID, "unknown dtype '%s'", dtype);
        }
        if (rule->min_cosine > 1.0) {
            char text[FX_NUMBER_BYTES];
            fx_double_digits(rule->min_cosine, 6, text);
            return fx_error(FXTAP_E_INVALID, "cosine must be between 0 and 1, not %s", text);
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
    report->rules = fx_arena_calloc(&report->arena, options->n_rules + 1, sizeof *report->rules);
    bool copied = report->rules != NULL;
    for (size_t i = 0; i < options->n_rules && copied; i++) {
        fxtap_rule *rule = &report->rules[i];
        *rule = *rule_at(options, i);
        copied = copy_text(&report->arena, rule->dtype, &rule->dtype) &&
                 copy_text(&report->arena, rule->operator_name, &rule->operator_name) &&
                 copy_text(&report->arena, rule->node, &rule->node);
    }
    return copied ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* FXTAP_E_NOT_FOUND, with similar names, if a pattern matches on neither side. */
static fxtap_status check_pattern(const fx_comparison *c, const char *pattern)
{
    if (pattern == NULL ||
        fxtap_reader_check_pattern(c->target.reader, c->options->target_run, pattern, true) != FXTAP_E_NOT_FOUND) {
        return FXTAP_OK;
    }
    return fxtap_reader_check_pattern(c->golden.reader, c->options->golden_run, pattern, true);
}

/* Whether a side has a node of exactly this name. */
static fxtap_status find_name(const fx_side *side, const char *name, bool *found)
{
    fxtap_status status = FXTAP_OK;
    const fxtap_graph_info *before = NULL;
    for (size_t i = 0; i < side->n_steps && status == FXTAP_OK && !*found; i++) {
        const fxtap_graph_info *graph = side->steps[i] == NULL ? NULL : side->steps[i]->graph;
        const fxtap_node_info *const *nodes;
        size_t n = 0;
        if (graph != NULL && graph != before) {
            status = fxtap_reader_nodes(side->reader, graph, &nodes, &n);
        }
        for (size_t k = 0; k < n && status == FXTAP_OK && !*found; k++) {
            *found = strcmp(nodes[k]->name, name) == 0;
        }
        before = graph;
    }
    return status;
}

static fxtap_status check_explained(const fx_comparison *c)
{
    const char *name = c->options->explain;
    bool found = name == NULL;
    fxtap_status status = found ? FXTAP_OK : find_name(&c->golden, name, &found);
    status = status == FXTAP_OK && !found ? find_name(&c->target, name, &found) : status;
    return status != FXTAP_OK || found ? status
                                       : fx_error(FXTAP_E_NOT_FOUND, "no node is called '%s' on either side", name);
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
        status = fx_sides_open(c->options, golden, target, &c->golden, &c->target);
    }
    if (status == FXTAP_OK) {
        status = fx_side_check(c->options, &c->golden);
    }
    if (status == FXTAP_OK) {
        status = fx_side_check(c->options, &c->target);
    }
    if (status == FXTAP_OK && c->golden.n_steps == 0 && c->target.n_steps == 0) {
        status = fx_error_at(FXTAP_E_NOT_FOUND, fxtap_reader_path(golden), "no tensors to compare on either side");
    }
    status = status == FXTAP_OK ? check_pattern(c, c->options->step_of) : status;
    return status == FXTAP_OK ? check_explained(c) : status;
}

static fxtap_status add_details(fx_comparison *c, bool is_whole)
{
    bool *chosen = NULL;
    fxtap_status status = fx_choose_details(c->report, is_whole, &chosen);
    if (status == FXTAP_OK && is_whole) {
        fx_trim_details(c->report, chosen);
    }
    if (status == FXTAP_OK) {
        uint32_t flags = fxtap_reader_flags(c->golden.reader) | fxtap_reader_flags(c->target.reader);
        status = fx_add_histograms(c->report, chosen, flags);
    }
    fx_free(chosen);
    return status;
}

/* Graphs with equal structure are not scored. */
static fxtap_status keep_explanation(fx_comparison *c)
{
    fxtap_buffer *lines = &c->explanation;
    if (c->options->explain == NULL) {
        return FXTAP_OK;
    }
    if (lines->length == 0) {
        fxtap_buffer_printf(lines, "%s was paired by its place, in graphs of equal structure\n", c->options->explain);
    }
    if (fxtap_buffer_status(lines) != FXTAP_OK) {
        return fxtap_buffer_status(lines);
    }
    c->report->explanation = fx_arena_strdup(&c->report->arena, lines->bytes);
    return c->report->explanation == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

/* Adds the warnings of the side's reader to the report. */
static fxtap_status add_warnings(fx_comparison *comparison, const fx_side *side, const char *which)
{
    for (size_t i = 0; i < fxtap_reader_warning_count(side->reader); i++) {
        const char *line = fx_arena_printf(&comparison->arena, "%s: %s", which, fxtap_reader_warning(side->reader, i));
        if (line == NULL || fx_report_warn(comparison->report, line) != FXTAP_OK) {
            return FXTAP_E_NOMEM;
        }
    }
    return FXTAP_OK;
}

static fxtap_status warn_of_map(const fx_comparison *c)
{
    const char **lines = NULL;
    size_t n = 0;
    fxtap_status status =
        c->map == NULL ? FXTAP_OK : fx_map_warnings(c->map, c->options->map_path, &c->report->arena, &lines, &n);
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        status = fx_report_warn(c->report, lines[i]);
    }
    return status;
}

static fxtap_status complete(fx_comparison *c)
{
    bool is_whole = c->options->n_shards == 0;
    fxtap_status status = fx_link_origins(c->report, is_whole);
    status = status == FXTAP_OK ? keep_explanation(c) : status;
    if (status == FXTAP_OK) {
        status = add_details(c, is_whole);
    }
    if (status == FXTAP_OK && is_whole) { /* a shard sees only some of the names that a line may match */
        status = warn_of_map(c);
    }
    if (status == FXTAP_OK) {
        status = add_warnings(c, &c->golden, "golden");
    }
    if (status == FXTAP_OK) {
        status = add_warnings(c, &c->target, "target");
    }
    if (status == FXTAP_OK) {
        status = fx_warn_of_findings(c, &c->golden, "golden");
    }
    if (status == FXTAP_OK) {
        status = fx_warn_of_findings(c, &c->target, "target");
    }
    if (status == FXTAP_OK) {
        status = fx_report_warn_of_trailing(c->report);
    }
    fx_report_sort_warnings(c->report);
    fx_report_tally(c->report);
    return status;
}

/* Comparing nothing is an error, not "same": a pattern that matches on neither side, or no pairs at all. */
static fxtap_status check_pairs(const fx_comparison *c)
{
    const char *pattern = c->options->pattern;
    if (c->report->n_pairs > 0) {
        return FXTAP_OK;
    }
    if (pattern != NULL &&
        fxtap_reader_check_pattern(c->target.reader, c->options->target_run, pattern, false) == FXTAP_E_NOT_FOUND) {
        fxtap_status status = fxtap_reader_check_pattern(c->golden.reader, c->options->golden_run, pattern, false);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return c->options->n_shards > 0 ? FXTAP_OK : fx_error(FXTAP_E_NOT_FOUND, "nothing to compare in the chosen parts");
}

static fxtap_status run(fx_comparison *c, fxtap_status (*pair_up)(fx_groups *), fxtap_report **out)
{
    c->groups = (fx_groups){.arena = &c->arena, .options = c->options, .golden = &c->golden, .target = &c->target};
    fxtap_status status = pair_up(&c->groups);
    if (status == FXTAP_OK && !copy_text(&c->report->arena, c->groups.steps, &c->report->steps)) {
        status = FXTAP_E_NOMEM;
    }
    if (status == FXTAP_OK) {
        status = fx_run_batches(c);
    }
    status = status == FXTAP_OK ? fxtap_reader_left_out(c->golden.reader) : status; /* steps are read by names here */
    status = status == FXTAP_OK ? fxtap_reader_left_out(c->target.reader) : status;
    if (status == FXTAP_OK) {
        status = check_pairs(c);
    }
    if (status == FXTAP_OK) {
        status = complete(c);
    }
    if (status == FXTAP_OK) {
        *out = c->report;
        c->report = NULL;
    }
    return status;
}

static fxtap_status compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                            fxtap_status (*pair_up)(fx_groups *), fxtap_report **out)
{
    fxtap_status status = check_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fx_comparison c = {.options = options};
    fx_arena_init(&c.arena);
    atomic_init(&c.stop, false);
    fxtap_buffer_init(&c.explanation);
    fx_float_mode callers = fx_float_mode_begin(); /* inherited by judging threads */
    status = begin(&c, golden, target);
    if (status == FXTAP_OK) {
        status = run(&c, pair_up, out);
    }
    fx_float_mode_end(callers);
    fx_side_close(&c.golden);
    fx_side_close(&c.target);
    fx_texts_clear(&c.texts);
    fxtap_buffer_clear(&c.explanation);
    fx_free(c.groups.items);
    fx_arena_clear(&c.arena);
    fxtap_report_free(c.report);
    return status;
}

fxtap_status fxtap_compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                           fxtap_report **out)
{
    FX_REQUIRE(golden);
    FX_REQUIRE(target);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    return compare(golden, target, options, fx_pair_groups, out);
}

/* Opens a second reader: a side's index stays open while its rank is read. */
fxtap_status fxtap_compare_ranks(fxtap_reader *reader, const fxtap_compare_options *options, fxtap_report **out)
{
    FX_REQUIRE(reader);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    fxtap_status status = check_options(options);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_compare_options same = *options; /* both sides list the same tensors */
    same.target_run = same.golden_run;
    same.target_rank = same.golden_rank;
    same.target_graph = same.golden_graph;
    same.target_step = same.golden_step;
    fxtap_reader *again = NULL;
    status = fxtap_reader_open(fxtap_reader_path(reader), &again);
    if (status == FXTAP_OK) {
        status = compare(reader, again, &same, fx_pair_ranks, out);
    }
    fxtap_reader_close(again);
    return status;
}
