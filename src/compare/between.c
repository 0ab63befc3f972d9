/*
 * between.c - operators that feed an input and that only one side has: an added cast, a mutation, a decomposed
 * operator. They have no counterpart to compare with, so an error in them first shows where their results are read.
 */
#include <inttypes.h>
#include <string.h>

#include "compare/batch.h"
#include "util/memory.h"

#define SHOWN_NODES 4

typedef struct walk { /* a walk from an input back through one side's graph, to nodes that have a counterpart */
    const fx_group_nodes *group;
    const fx_wiring *wiring;
    bool is_golden;
    const fxtap_node_info **nodes; /* by order; NULL: not dumped */
    bool *is_paired;               /* its values are compared */
    const bool *has_partner; /* a node of the other side corresponds, even if it was not dumped there; NULL: unknown */
    bool *is_wanted;         /* reached from the input */
    size_t n;
} walk;

static bool begin(walk *c)
{
    c->n = fx_wiring_node_count(c->wiring);
    c->nodes = fx_calloc(c->n, sizeof *c->nodes);
    c->is_paired = fx_calloc(c->n, sizeof *c->is_paired);
    c->is_wanted = fx_calloc(c->n, sizeof *c->is_wanted);
    if (c->nodes == NULL || c->is_paired == NULL || c->is_wanted == NULL) {
        return false;
    }
    for (size_t i = 0; i < c->group->n_nodes; i++) {
        const fx_node_pair *pair = &c->group->nodes[i];
        size_t at = c->is_golden ? pair->golden_node : pair->target_node;
        if (at < c->n) {
            c->nodes[at] = c->is_golden ? pair->golden : pair->target;
            c->is_paired[at] = pair->golden_node != FX_MISSING && pair->target_node != FX_MISSING;
        }
    }
    return true;
}

static void end(walk *c)
{
    fx_free(c->nodes);
    fx_free(c->is_paired);
    fx_free(c->is_wanted);
}

/* Producers precede their consumers, so one backward pass reaches all. */
static void walk_from(walk *c, size_t node, const char *position)
{
    size_t start, n_inputs;
    if (position != NULL && fx_wiring_producer(c->wiring, node, position, &start)) {
        c->is_wanted[start] = true;
    } else if (position == NULL) {
        const size_t *inputs = fx_wiring_inputs(c->wiring, node, &n_inputs);
        for (size_t k = 0; k < n_inputs; k++) {
            c->is_wanted[inputs[k]] = true;
        }
    }
    for (size_t i = node; i-- > 0;) {
        const size_t *inputs = fx_wiring_inputs(c->wiring, i, &n_inputs);
        for (size_t k = 0; k < n_inputs && c->is_wanted[i] && !c->is_paired[i]; k++) {
            c->is_wanted[inputs[k]] = true;
        }
    }
}

static void name_nodes(const walk *c, fx_between *between)
{
    fxtap_buffer *out = &between->words;
    size_t n_found = 0, before = out->length;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->is_wanted[i] || c->is_paired[i] || c->nodes[i] == NULL ||
            (c->has_partner != NULL && c->has_partner[i])) {
            continue;
        }
        between->first = between->first == NULL ? c->nodes[i] : between->first;
        if (++n_found <= SHOWN_NODES) {
            fxtap_buffer_printf(out, "%s%s", out->length > before ? ", " : before > 0 ? "; " : "", c->nodes[i]->name);
        }
    }
    if (n_found > SHOWN_NODES) {
        fxtap_buffer_printf(out, " and %zu more", n_found - SHOWN_NODES);
    }
    if (n_found > 0) {
        fxtap_buffer_printf(out, ", only in %s", c->is_golden ? "golden" : "target");
    }
}

fxtap_status fx_name_between(const fx_group_nodes *group, const fx_wiring *wiring, bool is_golden, size_t node,
                             const char *position, fx_between *out)
{
    walk c = {.group = group,
              .wiring = wiring,
              .is_golden = is_golden,
              .has_partner = is_golden ? group->has_golden_partner : group->has_target_partner};
    bool done = begin(&c);
    if (done) {
        walk_from(&c, node, position);
        name_nodes(&c, out);
    }
    end(&c);
    return done ? fxtap_buffer_status(&out->words) : FXTAP_E_NOMEM;
}

static bool keep_text(fx_arena *arena, const char *text, const char **out)
{
    *out = text[0] == '\0' ? NULL : fx_arena_strdup(arena, text);
    return text[0] == '\0' || *out != NULL;
}

fxtap_status fx_keep_between(fx_arena *arena, const fx_between *between, fxtap_origin *origin)
{
    const fxtap_node_info *first = between->first;
    if (first == NULL) {
        return FXTAP_OK;
    }
    bool is_kept = keep_text(arena, between->words.bytes, &origin->between) &&
                   keep_text(arena, first->source_code, &origin->between_code) &&
                   keep_text(arena, first->module_path, &origin->between_module);
    if (is_kept && first->source_file[0] != '\0') {
        origin->between_source = fx_arena_printf(arena, "%s:%" PRId32, first->source_file, first->source_line);
        is_kept = origin->between_source != NULL;
    }
    return is_kept ? FXTAP_OK : FXTAP_E_NOMEM;
}
