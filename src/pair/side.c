/* side.c - the steps of one side. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "pair/side.h"
#include "util/error.h"
#include "util/memory.h"

static fxtap_status list_steps(fx_side *side)
{
    const fxtap_step_info **steps = NULL;
    size_t n_steps = 0;
    fxtap_status status = fxtap_reader_query_steps(side->reader, &side->query, &steps, &n_steps);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_origin_kind kind = fxtap_reader_kind(side->reader);
    size_t n_plain = kind == FXTAP_READ_PLAIN || kind == FXTAP_READ_FILE; /* such a side is never empty */
    side->steps = fx_realloc_array(steps, n_steps + 1, sizeof *steps);
    if (side->steps == NULL) {
        fx_free(steps);
        return FXTAP_E_NOMEM;
    }
    side->steps[n_steps] = NULL;
    side->n_steps = n_steps + n_plain;
    return FXTAP_OK;
}

static fxtap_status open_side(const fxtap_compare_options *options, fx_side *side, fxtap_reader *reader, bool is_golden)
{
    side->query = (fxtap_tensor_query){
        .struct_size = sizeof side->query,
        .run = is_golden ? options->golden_run : options->target_run,
        .rank = is_golden ? options->golden_rank : options->target_rank,
        .graph = is_golden ? options->golden_graph : options->target_graph,
        .step = is_golden ? options->golden_step : options->target_step,
        .io = -1,
    };
    side->reader = reader;
    return list_steps(side);
}

static int64_t rank_of(const fx_side *side, const fxtap_step_info *step)
{
    return fxtap_reader_rank(side->reader, step->graph->rank_i)->rank;
}

/* ": there are steps 0 to 2": what exists instead of the last part of the request; empty if unknown. */
static void describe_available(const fx_side *side, char *out, size_t n_bytes)
{
    static const char *const names[] = {"step", "graph", "rank", "run"};
    fxtap_tensor_query query = side->query;
    int64_t *parts[] = {&query.step, &query.graph, &query.rank, &query.run};
    out[0] = '\0';
    for (int part = 0; part < 4 && out[0] == '\0'; part++) {
        const fxtap_step_info **steps = NULL;
        size_t n = 0;
        bool is_given = part < 3 ? *parts[part] >= 0 : query.run > 0;
        *parts[part] = -1;
        if (!is_given || fxtap_reader_query_steps(side->reader, &query, &steps, &n) != FXTAP_OK) {
            continue;
        }
        int64_t first = INT64_MAX, last = -1;
        for (size_t i = 0; i < n; i++) {
            int64_t value = part == 0   ? steps[i]->step
                            : part == 1 ? (int64_t)steps[i]->graph->graph
                            : part == 2 ? rank_of(side, steps[i])
                                        : steps[i]->graph->run;
            first = value < first ? value : first;
            last = value > last ? value : last;
        }
        fx_free(steps);
        if (n > 0 && first == last) {
            snprintf(out, n_bytes, ": there is %s %" PRId64, names[part], first);
        } else if (n > 0) {
            snprintf(out, n_bytes, ": there are %ss %" PRId64 " to %" PRId64, names[part], first, last);
        }
    }
}

fxtap_status fx_side_check(const fxtap_compare_options *options, const fx_side *side)
{
    const fxtap_tensor_query *query = &side->query;
    fxtap_status status = fxtap_reader_left_out(side->reader);
    if (status != FXTAP_OK) {
        return status; /* what could not be read is not missing */
    }
    const struct {
        const char *name;
        int64_t value;
        bool is_given;
    } parts[] = {{"run", query->run, query->run > 0},
                 {"rank", query->rank, query->rank >= 0},
                 {"graph", query->graph, query->graph >= 0},
                 {"step", query->step, query->step >= 0}};
    char text[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && side->n_steps == 0; i++) {
        if (parts[i].is_given) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %" PRId64, used > 0 ? ", " : "",
                                     parts[i].name, parts[i].value);
        }
    }
    char pair[128] = ""; /* the user may have meant two numbers as a range */
    if (query->step >= 0 && options->golden_step != options->target_step) {
        snprintf(pair, sizeof pair, " (golden's step %" PRId64 " was to be compared with target's step %" PRId64 ")",
                 options->golden_step, options->target_step);
    }
    if (used == 0) {
        return FXTAP_OK;
    }
    char there[64];
    describe_available(side, there, sizeof there);
    return fx_error_at(FXTAP_E_NOT_FOUND, fxtap_reader_path(side->reader), "no tensors of %s%s%s", text, there, pair);
}

typedef struct opening {
    const fxtap_compare_options *options;
    fxtap_reader *reader;
    fx_side *side;
    fxtap_status status;
    fx_error_copy error;
} opening;

static void *open_target(void *argument)
{
    opening *o = argument;
    o->status = open_side(o->options, o->side, o->reader, false);
    fx_error_save(o->status, &o->error);
    return NULL;
}

fxtap_status fx_sides_open(const fxtap_compare_options *options, fxtap_reader *golden, fxtap_reader *target,
                           fx_side *golden_out, fx_side *target_out)
{
    pthread_t thread;
    opening other = {.options = options, .reader = target, .side = target_out};
    bool is_split =
        golden != target && options->n_threads != 1 && pthread_create(&thread, NULL, open_target, &other) == 0;
    fxtap_status status = open_side(options, golden_out, golden, true);
    if (is_split) {
        pthread_join(thread, NULL);
    } else if (status == FXTAP_OK) {
        open_target(&other);
    }
    return status == FXTAP_OK ? fx_error_restore(&other.error) : status;
}

void fx_side_close(fx_side *side)
{
    if (side->reader != NULL) {
        fxtap_reader_release(side->reader);
    }
    fx_free(side->steps);
    side->steps = NULL;
    side->n_steps = 0;
}
