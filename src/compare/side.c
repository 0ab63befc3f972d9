/* side.c - the tensors of one side, cut into sets: one step of one graph each. */
#include "compare/report.h"
#include "util/error.h"
#include "util/memory.h"

const fxtap_tensor_info *fx_side_at(const fx_side *side, size_t i)
{
    return i == FX_MISSING ? NULL : fxtap_tensor_list_at(side->list, i);
}

static fxtap_status cut_into_sets(fx_side *side)
{
    size_t capacity = 0, n = fxtap_tensor_list_count(side->list);
    for (size_t i = 0; i < n; i++) {
        const fxtap_step_info *step = fxtap_tensor_list_at(side->list, i)->step;
        if (side->n_sets > 0 && fxtap_tensor_list_at(side->list, side->sets[side->n_sets - 1].first)->step == step) {
            side->sets[side->n_sets - 1].end = i + 1;
            continue;
        }
        if (!fx_grow((void **)&side->sets, &capacity, side->n_sets + 1, sizeof *side->sets)) {
            return FXTAP_E_NOMEM;
        }
        side->sets[side->n_sets++] = (fx_set){i, i + 1};
    }
    return FXTAP_OK;
}

static fxtap_status copy_warnings(fx_comparison *comparison, const fxtap_reader *reader, const char *which)
{
    for (size_t i = 0; i < fxtap_reader_warning_count(reader); i++) {
        const char *line = fx_arena_printf(&comparison->arena, "%s: %s", which, fxtap_reader_warning(reader, i));
        if (line == NULL || fx_report_warn(comparison->report, line) != FXTAP_OK) {
            return FXTAP_E_NOMEM;
        }
    }
    return FXTAP_OK;
}

fxtap_status fx_side_open(fx_comparison *comparison, fx_side *side, fxtap_reader *reader, bool is_golden)
{
    const fxtap_compare_options *options = comparison->options;
    fxtap_tensor_query query = {
        .struct_size = sizeof query,
        .run = is_golden ? options->golden_run : options->target_run,
        .rank = is_golden ? options->golden_rank : options->target_rank,
        .graph = is_golden ? options->golden_graph : options->target_graph,
        .step = is_golden ? options->golden_step : options->target_step,
        .io = -1,
    };
    side->reader = reader;
    fxtap_status status = fxtap_reader_tensors(reader, &query, &side->list);
    if (status == FXTAP_OK) {
        status = cut_into_sets(side);
    }
    if (status == FXTAP_OK) {
        status = copy_warnings(comparison, reader, is_golden ? "golden" : "target");
    }
    return status;
}

void fx_side_close(fx_side *side)
{
    fxtap_tensor_list_free(side->list);
    fx_free(side->sets);
    side->list = NULL;
    side->sets = NULL;
    side->n_sets = 0;
}
