/* explain.c - explains as text why two nodes are a pair, and lists the next best candidates. */
#include <string.h>

#include "pair/align.h"

#define SHOWN_OTHERS 3

const char *fxtap_evidence_name(size_t i)
{
    static const char *const names[] = {
        "structure",      "map",
        "value",          "near value",
        "another value",  "operator",
        "family",         "module",
        "line",           "shape",
        "inputs",         "readers",
        "inputs against", "readers against",
        "literals",       "name",
        "order",          "roughly near value",
        "result",
    };
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

typedef struct rival {
    size_t node;
    fx_weighing found;
} rival;

static const fx_exec_node *node_at(const fx_traits *traits, size_t i)
{
    return &traits->execution->nodes[i];
}

static void add_node(fxtap_buffer *out, const fx_traits *traits, size_t i)
{
    const fx_exec_call *call = &traits->execution->calls[node_at(traits, i)->call];
    fxtap_buffer_printf(out, "%s", node_at(traits, i)->name);
    if (call->graph != NULL) {
        fxtap_buffer_printf(out, " (graph %u, step %lld)", (unsigned)call->graph->graph, (long long)call->step->step);
    }
}

static bool is_against(size_t bit)
{
    return (1u << bit & (FX_EV_STRANGER | FX_EV_INPUT_AGAINST | FX_EV_USER_AGAINST)) != 0;
}

static void add_evidence(fxtap_buffer *out, uint32_t evidence, bool against)
{
    size_t n = 0;
    for (size_t i = 0; fxtap_evidence_name(i) != NULL; i++) {
        if ((evidence >> i & 1u) != 0 && is_against(i) == against) {
            const char *before = n > 0 ? ", " : against ? "; against: " : "";
            fxtap_buffer_printf(out, "%s%s", before, fxtap_evidence_name(i));
            n++;
        }
    }
}

static void add_weighing(fxtap_buffer *out, uint32_t evidence, int32_t score)
{
    fxtap_buffer_printf(out, ": score %d, ", (int)score);
    add_evidence(out, evidence, false);
    add_evidence(out, evidence, true);
    fxtap_buffer_text(out, "\n");
}

/* The best candidates on the other side, except `partner`. */
static size_t find_rivals(const fx_traits sides[2], bool is_golden, size_t node, size_t partner,
                          rival out[SHOWN_OTHERS])
{
    const fx_traits *other = &sides[is_golden];
    size_t n = 0;
    for (size_t i = 0; i < other->execution->n_nodes; i++) {
        fx_weighing found =
            is_golden ? fx_weigh(&sides[0], node, &sides[1], i) : fx_weigh(&sides[0], i, &sides[1], node);
        size_t at = n;
        while (at > 0 && out[at - 1].found.score < found.score) {
            at--;
        }
        if (i == partner || found.score <= 0 || at == SHOWN_OTHERS) {
            continue;
        }
        n += n < SHOWN_OTHERS;
        memmove(&out[at + 1], &out[at], (n - 1 - at) * sizeof *out);
        out[at] = (rival){i, found};
    }
    return n;
}

static void explain_node(const fx_traits sides[2], bool is_golden, size_t node, fxtap_buffer *out)
{
    const fx_traits *own = &sides[!is_golden], *other = &sides[is_golden];
    const fx_exec_node *at = node_at(own, node);
    fxtap_buffer_text(out, is_golden ? "golden " : "target ");
    add_node(out, own, node);
    if (at->partner == FX_MISSING) {
        fxtap_buffer_text(out, " has no counterpart\n");
    } else {
        fxtap_buffer_text(out, " and ");
        add_node(out, other, at->partner);
        add_weighing(out, at->evidence, at->score);
    }
    rival rivals[SHOWN_OTHERS];
    size_t n = find_rivals(sides, is_golden, node, at->partner, rivals);
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_text(out, "  or ");
        add_node(out, other, rivals[i].node);
        size_t taken = node_at(other, rivals[i].node)->partner;
        if (taken != FX_MISSING) {
            fxtap_buffer_text(out, ", the counterpart of ");
            add_node(out, own, taken);
        }
        add_weighing(out, rivals[i].found.evidence, rivals[i].found.score);
    }
}

/* Whether this is the node with that name, or a getitem of it: each of several results has its own counterpart. */
static bool is_meant(const fx_execution *execution, size_t i, const char *name)
{
    size_t producer, index;
    const char *own = execution->nodes[i].name;
    if (own != NULL && strcmp(own, name) == 0) {
        return true;
    }
    return fx_execution_item(execution, i, &producer, &index) && strcmp(execution->nodes[producer].name, name) == 0;
}

void fx_explain(const fx_traits sides[2], const char *name, fxtap_buffer *out)
{
    for (int side = 0; side < 2; side++) {
        const fx_execution *execution = sides[side].execution;
        for (size_t i = 0; i < execution->n_nodes; i++) {
            size_t partner = execution->nodes[i].partner;
            bool is_listed = side == 1 && partner != FX_MISSING && strcmp(node_at(&sides[0], partner)->name, name) == 0;
            if (is_meant(execution, i, name) && !is_listed) {
                explain_node(sides, side == 0, i, out);
            }
        }
    }
}
