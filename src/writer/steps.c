#include "writer/steps.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

void fx_steps_clear(fx_steps *steps)
{
    fx_free(steps->ranges);
    memset(steps, 0, sizeof *steps);
}

uint64_t fx_steps_next(const fx_steps *steps)
{
    return steps->n_ranges > 0 ? steps->ranges[steps->n_ranges - 1].end : 0;
}

/* The first range that ends after `step`; n_ranges: none. Usually the last one, or none. */
static size_t find(const fx_steps *steps, uint64_t step)
{
    size_t i = steps->n_ranges;
    while (i > 0 && steps->ranges[i - 1].end > step) {
        i--;
    }
    return i;
}

static bool insert(fx_steps *steps, size_t at, fx_step_range range)
{
    void *grown = steps->ranges;
    bool has_room = fx_grow(&grown, &steps->capacity, steps->n_ranges + 1, sizeof *steps->ranges);
    steps->ranges = grown;
    if (has_room) {
        memmove(&steps->ranges[at + 1], &steps->ranges[at], (steps->n_ranges - at) * sizeof range);
        steps->ranges[at] = range;
        steps->n_ranges++;
    }
    return has_room;
}

static void remove_range(fx_steps *steps, size_t at)
{
    steps->n_ranges--;
    memmove(&steps->ranges[at], &steps->ranges[at + 1], (steps->n_ranges - at) * sizeof *steps->ranges);
}

fxtap_status fx_steps_take(fx_steps *steps, uint64_t step)
{
    if (step > FX_STEP_LAST) {
        return fx_error(FXTAP_E_INVALID, "step %" PRIu64 ": the last one is %" PRIu64, step, FX_STEP_LAST);
    }
    size_t i = find(steps, step);
    bool has_next = i < steps->n_ranges;
    if (has_next && steps->ranges[i].first <= step) {
        return fx_error(FXTAP_E_EXISTS, "step %" PRIu64 " is taken by another call", step);
    }
    bool joins_before = i > 0 && steps->ranges[i - 1].end == step;
    bool joins_next = has_next && steps->ranges[i].first == step + 1;
    if (joins_before && joins_next) {
        steps->ranges[i - 1].end = steps->ranges[i].end;
        remove_range(steps, i);
    } else if (joins_before) {
        steps->ranges[i - 1].end++;
    } else if (joins_next) {
        steps->ranges[i].first--;
    } else if (!insert(steps, i, (fx_step_range){step, step + 1})) {
        return FXTAP_E_NOMEM;
    }
    return FXTAP_OK;
}

void fx_steps_give_back(fx_steps *steps, uint64_t step)
{
    size_t i = find(steps, step);
    assert(i < steps->n_ranges && steps->ranges[i].first <= step);
    fx_step_range *range = &steps->ranges[i];
    bool is_first = range->first == step, is_last = range->end == step + 1;
    if (is_first && is_last) {
        remove_range(steps, i);
    } else if (is_last) {
        range->end--;
    } else if (is_first) {
        range->first++;
    } else if (insert(steps, i + 1, (fx_step_range){step + 1, range->end})) {
        steps->ranges[i].end = step;
    }
}
