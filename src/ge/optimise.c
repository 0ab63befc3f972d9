/*
 * TorchAir's changes to the graph before compilation: a Pack of inputs becomes one input, an assignment to an input
 * becomes an output, unused inputs are removed, and every operator gets the names and layouts of its inputs and
 * outputs.
 */
#include <string.h>

#include "ge/ge.h"
#include "ge/lower.h"
#include "ge/recipe.h"
#include "util/memory.h"

static bool is_type(const fx_ge_op *op, const char *type)
{
    return strcmp(op->type, type) == 0;
}

static void remove_op(fx_ge_graph *graph, size_t index)
{
    memmove(graph->ops + index, graph->ops + index + 1, (graph->n_ops - index - 1) * sizeof *graph->ops);
    graph->n_ops--;
}

static void replace_input(fx_ge_graph *graph, const fx_ge_op *from, fx_ge_op *to)
{
    for (size_t i = 0; i < graph->n_ops; i++) {
        for (size_t j = 0; j < graph->ops[i]->n_inputs; j++) {
            if (graph->ops[i]->inputs[j].op == from) {
                graph->ops[i]->inputs[j].op = to;
            }
        }
    }
}

/* ---- Pack of inputs -> one input ---- */

static fx_ge_op *add_sizes_input(fx_ge_graph *graph, const fx_ge_op *pack)
{
    fx_lower lower = {.ge = graph};
    int64_t *dims = fx_arena_calloc(&graph->arena, 1, sizeof *dims);
    for (size_t i = 0; i < graph->n_ops; i++) {
        lower.n_data += is_type(graph->ops[i], "Data");
    }
    if (dims == NULL) {
        return NULL;
    }
    dims[0] = (int64_t)pack->n_inputs;
    return fx_lower_add_data(&lower, "Data", FX_GE_INT64, dims, 1, "CPU");
}

static void merge_sizes(fx_ge_graph *graph)
{
    for (size_t i = 0; i < graph->n_ops; i++) {
        fx_ge_op *op = graph->ops[i];
        fx_val nothing = {.kind = FX_VAL_NONE};
        if (!is_type(op, "Pack")) {
            continue;
        }
        if (!fx_ge_is_pack_of_symbols(op)) {
            fx_ge_add_attr(graph, op, "_inputs_all_sym", FX_ATTR_EMPTY, nothing);
            continue;
        }
        fx_ge_op *data = add_sizes_input(graph, op);
        if (data == NULL) {
            return;
        }
        replace_input(graph, op, data);
        remove_op(graph, i--);
    }
}

/* ---- assignments to inputs -> outputs ---- */

static fx_ge_op *find_net_output(const fx_ge_graph *graph)
{
    for (size_t i = graph->n_ops; i-- > 0;) {
        if (is_type(graph->ops[i], "NetOutput")) {
            return graph->ops[i];
        }
    }
    return NULL;
}

static bool has_input(const fx_ge_op *op, fx_ref ref)
{
    for (size_t i = 0; i < op->n_inputs; i++) {
        if (op->inputs[i].op == ref.op && op->inputs[i].output == ref.output) {
            return true;
        }
    }
    return false;
}

static bool append_input(fx_ge_graph *graph, fx_ge_op *op, fx_ref ref, const fx_ge_desc *desc)
{
    size_t n = op->n_inputs;
    fx_ref *inputs = fx_arena_calloc(&graph->arena, n + 1, sizeof *inputs);
    fx_ge_desc *descs = fx_arena_calloc(&graph->arena, n + 1, sizeof *descs);
    if (inputs == NULL || descs == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(inputs, op->inputs, n * sizeof *inputs);
        memcpy(descs, op->input_descs, n * sizeof *descs);
    }
    inputs[n] = ref;
    descs[n] = *desc;
    descs[n].name = fx_arena_printf(&graph->arena, "input%zu", n);
    op->inputs = inputs;
    op->input_descs = descs;
    op->n_inputs = n + 1;
    return descs[n].name != NULL;
}

static void return_assignments(fx_ge_graph *graph)
{
    fx_ge_op *output = find_net_output(graph);
    for (size_t i = 0; output != NULL && i < graph->n_ops; i++) {
        fx_ge_op *op = graph->ops[i];
        if (!is_type(op, "Assign") || op->n_inputs < 2 || op->inputs[0].op == NULL ||
            !is_type(op->inputs[0].op, "Data")) {
            continue;
        }
        fx_ge_desc desc = op->outputs[0];
        const fx_ge_desc *data = &op->inputs[0].op->outputs[0];
        desc.has_shape = true;
        desc.dims = data->dims;
        desc.n_dims = data->n_dims;
        if (!has_input(output, op->inputs[1]) && !append_input(graph, output, op->inputs[1], &desc)) {
            return;
        }
        remove_op(graph, i--);
    }
}

/* ---- unused inputs ---- */

static void mark_read(const fx_ge_graph *graph)
{
    for (size_t i = 0; i < graph->n_ops; i++) {
        for (size_t j = 0; j < graph->ops[i]->n_inputs; j++) {
            if (graph->ops[i]->inputs[j].op != NULL) {
                graph->ops[i]->inputs[j].op->is_read = true;
            }
        }
    }
}

static void drop_unread(fx_ge_graph *graph)
{
    int64_t index = 0;
    size_t n = 0;
    mark_read(graph);
    for (size_t i = 0; i < graph->n_ops; i++) {
        fx_ge_op *op = graph->ops[i];
        bool is_data = is_type(op, "Data");
        if (is_data && op->is_read) {
            op->attrs[0].value = fx_val_int(index++);
        }
        if (!is_data || op->is_read) {
            graph->ops[n++] = op;
        }
    }
    graph->n_ops = n;
}

/* ---- names, dtypes, layouts ---- */

static bool add_names(fx_ge_graph *graph, fx_ge_op *op, const char *key, const char *index, const fx_ge_desc *descs,
                      size_t n)
{
    fx_val names = {.kind = FX_VAL_LIST}, indices = {.kind = FX_VAL_LIST};
    names.u.list.items = fx_arena_calloc(&graph->arena, n + 1, sizeof(fx_val));
    indices.u.list.items = fx_arena_calloc(&graph->arena, n + 1, sizeof(fx_val));
    if (names.u.list.items == NULL || indices.u.list.items == NULL) {
        return false;
    }
    names.u.list.n = indices.u.list.n = n;
    for (size_t i = 0; i < n; i++) {
        names.u.list.items[i] = fx_val_text(descs[i].name);
        indices.u.list.items[i] = fx_val_int((int64_t)i);
    }
    return fx_ge_add_attr(graph, op, key, FX_ATTR_PLAIN_LIST, names) &&
           fx_ge_add_attr(graph, op, index, FX_ATTR_PLAIN_LIST, indices);
}

static void settle(fx_ge_desc *descs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (descs[i].is_unfed) {
            continue;
        }
        if (descs[i].dtype == FX_GE_UNDEFINED) {
            descs[i].dtype = FX_GE_FLOAT;
        }
        descs[i].layout = "ND";
    }
}

static void set_layouts(fx_ge_graph *graph, const fx_ge_op *op, const char *name, fx_ge_desc *descs, size_t n)
{
    const fx_ge_attr *attr = fx_ge_find_attr(op, name);
    size_t half = attr == NULL ? 0 : attr->value.u.list.n / 2;
    for (size_t i = 0; i < half; i++) {
        const fx_val *format = &attr->value.u.list.items[i], *place = &attr->value.u.list.items[half + i];
        if (place->u.i < 0 || (size_t)place->u.i >= n) {
            continue;
        }
        const char *text = fx_text_copy(&graph->arena, format->u.text.bytes, format->u.text.length);
        if (text != NULL) {
            descs[place->u.i].layout = text;
        }
    }
}

static void add_graph_attrs(fx_ge_graph *graph)
{
    const fx_ge_op *output = find_net_output(graph);
    size_t n = output == NULL ? 0 : output->n_inputs, n_data = 0, place = 0;
    fx_val dtypes = {.kind = FX_VAL_LIST}, places = {.kind = FX_VAL_LIST};
    for (size_t i = 0; i < graph->n_ops; i++) {
        n_data += is_type(graph->ops[i], "Data");
    }
    dtypes.u.list.items = fx_arena_calloc(&graph->arena, n + 1, sizeof(fx_val));
    places.u.list.items = fx_arena_calloc(&graph->arena, n_data + 1, sizeof(fx_val));
    if (dtypes.u.list.items == NULL || places.u.list.items == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        dtypes.u.list.items[i] = fx_val_int(output->input_descs[i].dtype);
    }
    for (size_t i = 0; i < graph->n_ops; i++) {
        if (is_type(graph->ops[i], "Data")) {
            places.u.list.items[place++] = fx_val_int(strcmp(graph->ops[i]->outputs[0].place, "NPU") == 0);
        }
    }
    dtypes.u.list.n = n;
    places.u.list.n = n_data;
    fx_ge_add_graph_attr(graph, "_output_dtypes", FX_ATTR_PLAIN_LIST, dtypes);
    fx_ge_add_graph_attr(graph, "_input_placements", FX_ATTR_PLAIN_LIST, places);
    fx_ge_add_graph_attr(graph, "_executor_type", FX_ATTR_INT, fx_val_int(0));
}

fxtap_status fx_ge_optimise(fx_ge_graph *graph)
{
    bool is_body = graph->path != NULL; /* its inputs and outputs are referred to by index: they stay */
    for (size_t i = 0; i < graph->n_bodies; i++) {
        if (graph->bodies[i].graph != NULL && fx_ge_optimise(graph->bodies[i].graph) != FXTAP_OK) {
            return FXTAP_E_NOMEM;
        }
    }
    if (!is_body) {
        merge_sizes(graph);
        drop_unread(graph);
        return_assignments(graph);
    }
    for (size_t i = 0; i < graph->n_ops && !graph->arena.failed; i++) {
        fx_ge_op *op = graph->ops[i];
        size_t n_descs = is_type(op, "Data") ? 1 : op->n_inputs;
        settle(op->input_descs, n_descs);
        settle(op->outputs, op->n_outputs);
        set_layouts(graph, op, "input_layout_info", op->input_descs, n_descs);
        set_layouts(graph, op, "output_layout_info", op->outputs, op->n_outputs);
        if (!add_names(graph, op, "_input_name_key", "_input_name_value", op->input_descs, n_descs) ||
            !add_names(graph, op, "_output_name_key", "_output_name_value", op->outputs, op->n_outputs)) {
            break;
        }
    }
    if (!is_body) {
        add_graph_attrs(graph);
    }
    return fx_ge_graph_status(graph);
}
