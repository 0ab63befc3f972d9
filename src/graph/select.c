/* select.c - makes a part of a graph a separate graph. */
#include <string.h>

#include "fxtap/print.h"
#include "graph/record.h"
#include "util/error.h"
#include "util/glob.h"
#include "util/memory.h"

enum { OUTSIDE = 0, INSIDE = 1, CUT = 2 }; /* CUT: outside, but its result is used inside */

typedef struct selection {
    const fxtap_graph *graph;
    unsigned char *state; /* of each node */
    uint32_t *distance;   /* distance from `around`, plus one; 0: not reached */
    size_t *first_user;   /* of each node, its start in `users`; plus an end entry */
    fxtap_node *users;
    fxtap_node *queue; /* nodes in the order in which they were reached */
    size_t n_queued;
    fxtap_node node;    /* being visited */
    bool *used_outside; /* of each node */
    bool *used;
    /* the copy */
    fxtap_graph *copy;
    fxtap_value *values; /* new handles by old ones; 0: not copied yet */
    fxtap_node *nodes;   /* new numbers by old ones */
    size_t *subgraphs;   /* new numbers by old ones, plus one; 0: not copied yet */
    fxtap_status status;
} selection;

static void clear(selection *s)
{
    fx_free(s->state);
    fx_free(s->distance);
    fx_free(s->first_user);
    fx_free(s->users);
    fx_free(s->queue);
    fx_free(s->used_outside);
    fx_free(s->used);
    fx_free(s->values);
    fx_free(s->nodes);
    fx_free(s->subgraphs);
    fxtap_graph_free(s->copy);
}

static bool allocate(selection *s)
{
    size_t n_nodes = s->graph->n_nodes;
    s->state = fx_calloc(n_nodes, 1);
    s->distance = fx_calloc(n_nodes, sizeof *s->distance);
    s->used_outside = fx_calloc(n_nodes, sizeof(bool));
    s->used = fx_calloc(n_nodes, sizeof(bool));
    s->values = fx_calloc(s->graph->n_values, sizeof *s->values);
    s->nodes = fx_calloc(n_nodes, sizeof *s->nodes);
    s->subgraphs = fx_calloc(s->graph->n_subgraphs, sizeof *s->subgraphs);
    return s->state != NULL && s->distance != NULL && s->used_outside != NULL && s->used != NULL && s->values != NULL &&
           s->nodes != NULL && s->subgraphs != NULL;
}

/* ---- which nodes ---- */

static bool reach(void *context, fxtap_node neighbour)
{
    selection *s = context;
    if (s->distance[neighbour] == 0) {
        s->distance[neighbour] = s->distance[s->node] + 1;
        s->queue[s->n_queued++] = neighbour;
    }
    return true;
}

static bool count_user(void *context, fxtap_node input)
{
    ((selection *)context)->first_user[input]++;
    return true;
}

/* Fills each node's part of `users` from its end, which leaves `first_user` at its start. */
static bool place_user(void *context, fxtap_node input)
{
    selection *s = context;
    s->users[--s->first_user[input]] = s->node;
    return true;
}

static void walk_edges(selection *s, fx_ref_visit visit)
{
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        s->node = (fxtap_node)i;
        fx_graph_node_refs(s->graph, s->node, visit, s);
    }
}

/* Builds the users of each node, since references only lead to inputs. False: out of memory. */
static bool find_users(selection *s)
{
    size_t n = s->graph->n_nodes, total = 0;
    s->first_user = fx_calloc(n + 1, sizeof *s->first_user);
    s->queue = fx_calloc(n, sizeof *s->queue);
    if (s->first_user == NULL || s->queue == NULL) {
        return false;
    }
    walk_edges(s, count_user);
    for (size_t i = 0; i <= n; i++) {
        total += s->first_user[i];
        s->first_user[i] = total;
    }
    s->users = fx_calloc(total, sizeof *s->users);
    if (s->users == NULL) {
        return false;
    }
    walk_edges(s, place_user);
    return true;
}

/* Breadth first, over the edges in both directions. */
static bool measure(selection *s, fxtap_node around, uint32_t hops)
{
    if (!find_users(s)) {
        return false;
    }
    s->distance[around] = 1;
    s->queue[s->n_queued++] = around;
    for (size_t head = 0; head < s->n_queued && s->distance[s->queue[head]] <= hops; head++) {
        s->node = s->queue[head];
        fx_graph_node_refs(s->graph, s->node, reach, s);
        for (size_t i = s->first_user[s->node]; i < s->first_user[s->node + 1]; i++) {
            reach(s, s->users[i]);
        }
    }
    return true;
}

static bool is_operator(const fxtap_node_desc *desc)
{
    return desc->op == FXTAP_OP_CALL_FUNCTION || desc->op == FXTAP_OP_CALL_METHOD || desc->op == FXTAP_OP_CALL_MODULE;
}

static bool fits(const fxtap_graph *graph, size_t i, const fxtap_select_options *options)
{
    const fxtap_node_desc *desc = &graph->nodes[i].desc;
    if (options->op == NULL && options->module == NULL) {
        return true;
    }
    fx_glob_node node = {.name = desc->name, .target = desc->target, .module_path = desc->module_path};
    const char *function, *code;
    fxtap_graph_source(graph, (fxtap_node)i, &node.source_file, &node.source_line, &function, &code);
    fx_glob_node module = {.module_path = desc->module_path == NULL ? "" : desc->module_path};
    return is_operator(desc) && (options->op == NULL || fx_glob_node_match(options->op, &node)) &&
           (options->module == NULL || fx_glob_node_match(options->module, &module));
}

static bool cut(void *context, fxtap_node input)
{
    selection *s = context;
    if (s->state[input] == OUTSIDE) {
        /* a constant may be inside as well */
        s->state[input] = s->graph->nodes[input].desc.op == FXTAP_OP_GET_ATTR ? INSIDE : CUT;
    }
    s->used[input] = true;
    return true;
}

static bool use_outside(void *context, fxtap_node input)
{
    ((selection *)context)->used_outside[input] = true;
    return true;
}

/* Error for no remaining operator, with a hint. */
static fxtap_status complain(const selection *s, const fxtap_select_options *options)
{
    if (options->around != NULL || (options->op != NULL && options->module != NULL)) {
        return fx_error(FXTAP_E_NOT_FOUND, "no operator matches all conditions");
    }
    const char *pattern = options->module != NULL ? options->module : options->op;
    const char **names = fx_calloc(2 * s->graph->n_nodes + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; names != NULL && i < s->graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &s->graph->nodes[i].desc;
        const char *path = desc->module_path;
        for (const char *rest = path; rest != NULL; rest = fx_glob_after_root(path)) {
            path = rest;
        }
        if (is_operator(desc) && options->module == NULL) {
            names[n++] = desc->name;
            names[n++] = desc->target;
        } else if (is_operator(desc) && path != NULL && path[0] != '\0') {
            names[n++] = path;
        }
    }
    fxtap_buffer hint;
    fxtap_buffer_init(&hint);
    fx_glob_hint(pattern, names, n, &hint);
    fxtap_status status = fx_error(FXTAP_E_NOT_FOUND, "no operator matches \"%s\" in the graph%s", pattern,
                                   hint.length == 0 ? "" : hint.bytes);
    fxtap_buffer_clear(&hint);
    fx_free(names);
    return status;
}

static fxtap_status choose(selection *s, const fxtap_select_options *options)
{
    fxtap_node around = 0;
    if (options->around != NULL) {
        fxtap_status status = fxtap_graph_find_node(s->graph, options->around, &around);
        if (status != FXTAP_OK) {
            return status;
        }
        if (!measure(s, around, options->hops)) {
            return FXTAP_E_NOMEM;
        }
    }
    size_t n_inside = 0;
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &s->graph->nodes[i].desc;
        bool near = options->around == NULL || s->distance[i] != 0;
        s->state[i] = near && desc->op != FXTAP_OP_OUTPUT && fits(s->graph, i, options) ? INSIDE : OUTSIDE;
        n_inside += s->state[i] == INSIDE;
    }
    if (n_inside == 0 && (options->op != NULL || options->module != NULL)) {
        return complain(s, options);
    }
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        fx_graph_node_refs(s->graph, (fxtap_node)i, s->state[i] == INSIDE ? cut : use_outside, s);
    }
    return FXTAP_OK;
}

/* ---- copying ---- */

static void keep(selection *s, fxtap_status status)
{
    if (s->status == FXTAP_OK) {
        s->status = status;
    }
}

static fxtap_value copy_value(selection *s, fxtap_value value);

/* The copies of `n_values` values in memory that the caller frees; NULL for none (and on failure). */
static fxtap_value *copy_values(selection *s, const fxtap_value *values, size_t n_values)
{
    if (values == NULL) {
        return NULL;
    }
    fxtap_value *copies = fx_calloc(n_values, sizeof *copies);
    if (copies == NULL) {
        keep(s, FXTAP_E_NOMEM);
        return NULL;
    }
    for (size_t i = 0; s->status == FXTAP_OK && i < n_values; i++) {
        copies[i] = copy_value(s, values[i]);
    }
    return copies;
}

static void copy_tensor(selection *s, const fxtap_tensor_meta *meta, fxtap_value *out)
{
    fxtap_tensor_meta copy = *meta;
    fxtap_value *shape = copy_values(s, meta->shape, meta->n_dims);
    fxtap_value *strides = copy_values(s, meta->strides, meta->n_dims);
    copy.shape = shape;
    copy.strides = strides;
    if (s->status == FXTAP_OK) {
        keep(s, fxtap_graph_add_tensor(s->copy, &copy, out));
    }
    fx_free(shape);
    fx_free(strides);
}

static void copy_subgraph(selection *s, uint32_t index)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_graph *copy = NULL;
    keep(s, fxtap_graph_serialise(s->graph->subgraphs[index], &bytes, &n_bytes));
    if (s->status == FXTAP_OK) {
        keep(s, fxtap_graph_deserialise(bytes, n_bytes, &copy));
    }
    if (s->status == FXTAP_OK) {
        keep(s, fx_graph_own_subgraph(s->copy, copy));
        s->subgraphs[index] = s->copy->n_subgraphs;
        if (s->status != FXTAP_OK) {
            fxtap_graph_free(copy);
        }
    }
    fxtap_free(bytes);
}

/* A subgraph is copied once, however often it is named. */
static void copy_graph(selection *s, uint32_t index, fxtap_value *out)
{
    if (s->subgraphs[index] == 0) {
        copy_subgraph(s, index);
    }
    if (s->status == FXTAP_OK) {
        keep(s, fx_graph_add_subgraph_ref(s->copy, s->subgraphs[index] - 1, out));
    }
}

static fxtap_status copy_plain(selection *s, fxtap_value value, const fx_value_row *row, fxtap_value *out)
{
    fxtap_value_kind kind = (fxtap_value_kind)row->kind;
    size_t length;
    const char *text = fxtap_value_text(s->graph, value, &length);
    switch (kind) {
    case FXTAP_V_NONE:
        return fxtap_graph_add_none(s->copy, out);
    case FXTAP_V_BOOL:
        return fxtap_graph_add_bool(s->copy, row->flag, out);
    case FXTAP_V_INT:
        return fxtap_graph_add_int(s->copy, row->as.integer, out);
    case FXTAP_V_FLOAT:
        return fxtap_graph_add_float(s->copy, row->number, out);
    case FXTAP_V_COMPLEX:
        return fxtap_graph_add_complex(s->copy, row->number, row->as.imag, out);
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL:
        return fxtap_graph_add_symbol(s->copy, kind, text, row->flag ? &row->number : NULL, out);
    case FXTAP_V_NODE:
        return fxtap_graph_add_node_ref(s->copy, s->nodes[row->index], out);
    default:
        return fxtap_graph_add_text(s->copy, kind, text, length, out);
    }
}

static fxtap_value copy_value(selection *s, fxtap_value value)
{
    const fx_value_row *row = fx_graph_value(s->graph, value);
    fxtap_value *copy = &s->values[value];
    if (row->kind == 0 || *copy != 0) {
        return *copy;
    }
    if (row->kind == FXTAP_V_TENSOR) {
        copy_tensor(s, &s->graph->tensors[row->index], copy);
    } else if (row->kind == FXTAP_V_GRAPH) {
        copy_graph(s, row->index, copy);
    } else if (row->kind >= FXTAP_V_LIST && row->kind <= FXTAP_V_SLICE) {
        fxtap_value *items = copy_values(s, row->as.items, row->index);
        if (s->status == FXTAP_OK) {
            keep(s, fxtap_graph_add_items(s->copy, (fxtap_value_kind)row->kind, items, row->index, copy));
        }
        fx_free(items);
    } else {
        keep(s, copy_plain(s, value, row, copy));
    }
    return *copy;
}

static void copy_node(selection *s, fxtap_node node)
{
    fxtap_node_desc desc = s->graph->nodes[node].desc;
    if (s->state[node] == CUT) {
        desc.op = FXTAP_OP_PLACEHOLDER;
        desc.target = desc.name;
        desc.target_python = NULL;
        desc.n_args = desc.n_kwargs = 0;
        desc.flags = 0;
    }
    desc.meta = copy_value(s, desc.meta);
    fxtap_value *args = copy_values(s, desc.args, desc.n_args);
    fxtap_value *kwarg_values = copy_values(s, desc.kwarg_values, desc.n_kwargs);
    desc.args = args;
    desc.kwarg_values = kwarg_values;
    if (s->status == FXTAP_OK) {
        keep(s, fxtap_graph_add_node(s->copy, &desc, &s->nodes[node]));
    }
    fx_free(args);
    fx_free(kwarg_values);
}

static void copy_nodes(selection *s, bool inputs)
{
    for (size_t i = 0; s->status == FXTAP_OK && i < s->graph->n_nodes; i++) {
        bool is_input = s->state[i] == CUT || s->graph->nodes[i].desc.op == FXTAP_OP_PLACEHOLDER;
        if (s->state[i] != OUTSIDE && is_input == inputs) {
            copy_node(s, (fxtap_node)i);
        }
    }
}

/* The results used outside or nowhere, as the tuple that the part returns. */
static void add_output(selection *s)
{
    size_t n_items = 0;
    fxtap_value *items = fx_calloc(s->graph->n_nodes, sizeof *items);
    for (size_t i = 0; items != NULL && s->status == FXTAP_OK && i < s->graph->n_nodes; i++) {
        if (s->state[i] == INSIDE && is_operator(&s->graph->nodes[i].desc) && (s->used_outside[i] || !s->used[i])) {
            keep(s, fxtap_graph_add_node_ref(s->copy, s->nodes[i], &items[n_items++]));
        }
    }
    fxtap_value tuple = 0;
    keep(s, items == NULL ? FXTAP_E_NOMEM : FXTAP_OK);
    if (s->status == FXTAP_OK) {
        keep(s, fxtap_graph_add_items(s->copy, FXTAP_V_TUPLE, items, n_items, &tuple));
    }
    fx_free(items);
    fxtap_node node;
    bool taken = s->status == FXTAP_OK && fxtap_graph_find_node(s->copy, "output", &node) == FXTAP_OK;
    fxtap_node_desc desc = {.struct_size = sizeof desc,
                            .op = FXTAP_OP_OUTPUT,
                            .name = taken ? "output (of this part)" : "output",
                            .target = "output",
                            .args = &tuple,
                            .n_args = 1};
    if (s->status == FXTAP_OK) {
        keep(s, fxtap_graph_add_node(s->copy, &desc, &node));
    }
}

fxtap_status fxtap_graph_select(const fxtap_graph *graph, const fxtap_select_options *options, fxtap_graph **out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    if (options->struct_size != sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "unknown struct_size %zu", options->struct_size);
    }
    selection s = {.graph = graph};
    if (!allocate(&s)) {
        clear(&s);
        return FXTAP_E_NOMEM;
    }
    keep(&s, choose(&s, options));
    if (s.status == FXTAP_OK) {
        keep(&s, fxtap_graph_create(graph->kind, &s.copy));
    }
    if (s.status == FXTAP_OK) {
        copy_nodes(&s, true);
        copy_nodes(&s, false);
    }
    if (s.status == FXTAP_OK) {
        add_output(&s);
    }
    fxtap_status status = s.status;
    if (status == FXTAP_OK) {
        *out = s.copy;
        s.copy = NULL;
    }
    clear(&s);
    return status;
}
