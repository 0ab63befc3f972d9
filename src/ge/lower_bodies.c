/* Bodies of cond, while_loop, map: each is a separate GE graph, named by the operator; in py a function. */
#include <string.h>

#include "ge/lower.h"
#include "util/buffer.h"

/* The value that a get_attr node holds. */
static fxtap_value attribute_value(const fxtap_node_desc *desc)
{
    return desc->n_args > 0 ? desc->args[0] : desc->meta;
}

static bool is_body(const fx_lower *lower, fxtap_value value)
{
    return value != 0 && fxtap_value_kind_of(lower->graph, value) == FXTAP_V_GRAPH;
}

/* Positions and names: that of the first get_attr node of a subgraph, else "graph_0" by its index. */
bool fx_lower_find_bodies(fx_lower *lower)
{
    fx_ge_graph *ge = lower->ge;
    size_t n = fxtap_graph_subgraph_count(lower->graph);
    if (n == 0) {
        return true;
    }
    ge->bodies = fx_arena_calloc(&ge->arena, n, sizeof *ge->bodies);
    if (ge->bodies == NULL) {
        return false;
    }
    ge->n_bodies = n;
    for (fxtap_node i = 0; i < fxtap_graph_node_count(lower->graph); i++) {
        fxtap_node_desc desc = {.struct_size = sizeof desc};
        if (fxtap_graph_node(lower->graph, i, &desc) != FXTAP_OK || desc.op != FXTAP_OP_GET_ATTR ||
            !is_body(lower, attribute_value(&desc))) {
            continue;
        }
        fx_ge_body *body = &ge->bodies[fxtap_value_subgraph(lower->graph, attribute_value(&desc))];
        body->name = body->name != NULL ? body->name : desc.name;
    }
    for (size_t i = 0; i < n; i++) {
        fx_ge_body *body = &ge->bodies[i];
        const char *name = body->name != NULL ? body->name : fx_arena_printf(&ge->arena, "graph_%zu", i);
        body->name = name;
        body->path = ge->path == NULL || name == NULL ? name : fx_arena_printf(&ge->arena, "%s/%s", ge->path, name);
    }
    return !ge->arena.failed;
}

/* The text of a body, indented by four more spaces; continued lines of constants too, which are in brackets. */
static void append_indented(fxtap_buffer *out, const fxtap_buffer *text)
{
    for (size_t at = 0; at < text->length;) {
        const char *line = text->bytes + at, *end = memchr(line, '\n', text->length - at);
        size_t length = end == NULL ? text->length - at : (size_t)(end - line) + 1;
        if (line[0] != '\n') {
            fx_buffer_put(out, "    ", 4);
        }
        fx_buffer_put(out, line, length);
        at += length;
    }
}

static void append_function(fx_lower *lower, fx_ge_body *body)
{
    fxtap_buffer *py = &lower->ge->py;
    body->is_in_py = true;
    body->py_start = py->length;
    fxtap_buffer_text(py, "def ");
    fx_ge_function(py, body->name);
    fxtap_buffer_text(py, "():\n");
    append_indented(py, &body->graph->py);
    fxtap_buffer_text(py, "\n");
}

fx_val fx_lower_body(fx_lower *lower, fxtap_value value)
{
    fx_val out = {.kind = FX_VAL_NONE};
    size_t index = fxtap_value_subgraph(lower->graph, value);
    if (index >= lower->ge->n_bodies) {
        return out;
    }
    fx_ge_body *body = &lower->ge->bodies[index];
    if (body->graph == NULL) { /* depth: at most FX_GRAPH_DEPTH_MAX */
        const fxtap_graph *graph = fxtap_graph_subgraph(lower->graph, index);
        fxtap_status status = fx_lower_record(graph, lower->ge->with_py, body->path, &body->graph);
        if (status != FXTAP_OK) {
            lower->status = status;
            return out;
        }
    }
    fx_lower_charge(lower, body->graph->walked);
    if (lower->status != FXTAP_OK) {
        return out;
    }
    if (lower->ge->with_py && !body->is_in_py) {
        append_function(lower, body);
    }
    out.kind = FX_VAL_GRAPH;
    out.u.body = body;
    return out;
}

void fx_take_back_bodies(fx_ge_graph *graph)
{
    for (size_t i = 0; i < graph->n_bodies; i++) {
        graph->bodies[i].is_in_py &= graph->bodies[i].py_start < graph->py.length;
    }
}

fx_val fx_lower_attribute(fx_lower *lower)
{
    fxtap_value held = attribute_value(&lower->desc);
    return is_body(lower, held) ? fx_lower_body(lower, held) : fx_lower_value(lower, lower->desc.meta);
}
