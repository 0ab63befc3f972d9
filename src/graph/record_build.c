/* record_build.c - adding values and nodes to a graph record. A call that fails leaves the record as it was. */
#include <math.h>
#include <string.h>

#include "graph/record.h"
#include "util/error.h"
#include "util/memory.h"

static fxtap_status add_row(fxtap_graph *graph, const fx_value_row *row, fxtap_value *out)
{
    if (graph->n_values >= UINT32_MAX) {
        return fx_error(FXTAP_E_INVALID, "too many values for a graph record");
    }
    if (!fx_grow((void **)&graph->values, &graph->values_capacity, graph->n_values + 1, sizeof *graph->values)) {
        return FXTAP_E_NOMEM;
    }
    graph->values[graph->n_values] = *row;
    *out = (fxtap_value)graph->n_values++;
    return FXTAP_OK;
}

static bool is_value(const fxtap_graph *graph, fxtap_value value)
{
    return value != 0 && value < graph->n_values;
}

static size_t length_of(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

/* The cost of a walk over a text, in units of one value. */
static uint64_t text_weight(uint64_t length)
{
    return length / 64;
}

/* All that a record holds, each once: rows, items, constants, texts. */
static uint64_t size_of(const fxtap_graph *graph)
{
    return FX_SIZE_MIN + graph->size + graph->n_values + graph->n_nodes + text_weight(graph->texts.n_bytes);
}

uint64_t fx_graph_weight_max(const fxtap_graph *graph)
{
    uint64_t most = size_of(graph) * FX_SIZE_WEIGHT_MAX;
    return most < FX_GRAPH_WEIGHT_MAX ? most : FX_GRAPH_WEIGHT_MAX;
}

fxtap_status fxtap_graph_add_none(fxtap_graph *graph, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    return add_row(graph, &(fx_value_row){.kind = FXTAP_V_NONE, .weight = 1}, out);
}

fxtap_status fxtap_graph_add_bool(fxtap_graph *graph, bool value, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    return add_row(graph, &(fx_value_row){.kind = FXTAP_V_BOOL, .weight = 1, .flag = value}, out);
}

fxtap_status fxtap_graph_add_int(fxtap_graph *graph, int64_t value, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    return add_row(graph, &(fx_value_row){.kind = FXTAP_V_INT, .weight = 1, .as.integer = value}, out);
}

fxtap_status fxtap_graph_add_float(fxtap_graph *graph, double value, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    return add_row(graph, &(fx_value_row){.kind = FXTAP_V_FLOAT, .weight = 1, .number = value}, out);
}

fxtap_status fxtap_graph_add_complex(fxtap_graph *graph, double real, double imag, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    return add_row(graph, &(fx_value_row){.kind = FXTAP_V_COMPLEX, .weight = 1, .number = real, .as.imag = imag}, out);
}

static fxtap_status add_text_row(fxtap_graph *graph, fx_value_row row, const char *bytes, size_t length,
                                 fxtap_value *out)
{
    uint64_t weight = 1 + text_weight(length);
    if (weight > FX_VALUE_WEIGHT_MAX) {
        return fx_error(FXTAP_E_INVALID, "a text of %zu bytes is too long for a graph record", length);
    }
    row.weight = (uint32_t)weight;
    row.as.text = fx_texts_keep(&graph->texts, bytes, length);
    return row.as.text == NULL ? FXTAP_E_NOMEM : add_row(graph, &row, out);
}

/* A decimal integer, as int() prints it. */
static bool is_decimal(const char *bytes, size_t length)
{
    size_t i = length > 0 && bytes[0] == '-';
    if (i == length) {
        return false;
    }
    for (; i < length; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') {
            return false;
        }
    }
    return true;
}

fxtap_status fxtap_graph_add_text(fxtap_graph *graph, fxtap_value_kind kind, const char *bytes, size_t length,
                                  fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    switch (kind) {
    case FXTAP_V_ELLIPSIS:
        return add_row(graph, &(fx_value_row){.kind = FXTAP_V_ELLIPSIS, .weight = 1}, out);
    case FXTAP_V_BIGINT:
        if (bytes == NULL || !is_decimal(bytes, length)) {
            return fx_error(FXTAP_E_INVALID, "the text of a big integer is not a decimal number");
        }
        break;
    case FXTAP_V_STRING:
    case FXTAP_V_BYTES:
    case FXTAP_V_DTYPE:
    case FXTAP_V_DEVICE:
    case FXTAP_V_LAYOUT:
    case FXTAP_V_MEMORY_FORMAT:
    case FXTAP_V_OTHER:
        break;
    default:
        return fx_error(FXTAP_E_INVALID, "a value of kind %d is not made from text", (int)kind);
    }
    if (bytes == NULL && length > 0) {
        return fx_error(FXTAP_E_INVALID, "a text of %zu bytes with NULL bytes", length);
    }
    return add_text_row(graph, (fx_value_row){.kind = (uint8_t)kind}, bytes, length, out);
}

fxtap_status fxtap_graph_add_symbol(fxtap_graph *graph, fxtap_value_kind kind, const char *expression,
                                    const double *hint, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(expression);
    FX_REQUIRE(out);
    if (kind < FXTAP_V_SYMINT || kind > FXTAP_V_SYMBOOL || expression == NULL) {
        return fx_error(FXTAP_E_INVALID, "a value of kind %d is not a symbol", (int)kind);
    }
    fx_value_row row = {.kind = (uint8_t)kind, .flag = hint != NULL, .number = hint != NULL ? *hint : 0};
    return add_text_row(graph, row, expression, strlen(expression), out);
}

fxtap_status fxtap_graph_add_node_ref(fxtap_graph *graph, fxtap_node node, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    if (node >= graph->n_nodes) {
        return fx_error(FXTAP_E_INVALID, "no node %u in a graph of %zu", (unsigned)node, graph->n_nodes);
    }
    const fxtap_node_desc *desc = &graph->nodes[node].desc;
    fx_value_row row = {.kind = FXTAP_V_NODE, .index = node};
    row.weight = (uint32_t)(1 + text_weight(fx_texts_entry_of(desc->name)->length));
    row.entered = fx_graph_value(graph, desc->meta)->entered;
    if (desc->op == FXTAP_OP_GET_ATTR && desc->n_args > 0) {
        row.entered += fx_graph_value(graph, desc->args[0])->entered; /* both are bounded by the weight of the node */
    }
    return add_row(graph, &row, out);
}

/* The cost of a walk over several values. */
typedef struct cost {
    uint64_t weight;
    uint64_t entered;
    uint32_t depth;
} cost;

/* Adds the costs of `items` to *sum and takes the largest depth; FXTAP_E_INVALID for an invalid handle. */
static fxtap_status weigh(const fxtap_graph *graph, const fxtap_value *items, size_t n_items, cost *sum)
{
    for (size_t i = 0; i < n_items; i++) {
        if (!is_value(graph, items[i])) {
            return fx_error(FXTAP_E_INVALID, "no value %u in a record of %zu", (unsigned)items[i], graph->n_values - 1);
        }
        const fx_value_row *row = &graph->values[items[i]];
        sum->weight += row->weight;
        sum->entered += row->entered;
        sum->depth = row->depth > sum->depth ? row->depth : sum->depth;
    }
    return FXTAP_OK;
}

fxtap_status fxtap_graph_add_items(fxtap_graph *graph, fxtap_value_kind kind, const fxtap_value *items, size_t n_items,
                                   fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(out);
    if (n_items > 0) {
        FX_REQUIRE(items);
    }
    if (kind < FXTAP_V_LIST || kind > FXTAP_V_SLICE || n_items > FX_VALUE_WEIGHT_MAX) {
        return fx_error(FXTAP_E_INVALID, "a value of kind %d cannot hold %zu items", (int)kind, n_items);
    }
    if ((kind == FXTAP_V_SLICE && n_items != 3) || (kind == FXTAP_V_DICT && n_items % 2 != 0)) {
        return fx_error(FXTAP_E_INVALID, "%zu items do not make a %s", n_items,
                        kind == FXTAP_V_DICT ? "dictionary" : "slice");
    }
    cost sum = {.weight = 1};
    fxtap_status status = weigh(graph, items, n_items, &sum);
    if (status != FXTAP_OK) {
        return status;
    }
    if (sum.weight > FX_VALUE_WEIGHT_MAX || sum.entered > FX_GRAPH_WEIGHT_MAX || sum.depth + 1 > FX_VALUE_DEPTH_MAX) {
        return fx_error(FXTAP_E_INVALID, "a value too large for a graph record (%u levels)", (unsigned)sum.depth + 1);
    }
    fxtap_value *copy = fx_arena_copy(&graph->texts.own, items, n_items, sizeof *items);
    if (copy == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_value_row row = {.kind = (uint8_t)kind, .depth = (uint8_t)(sum.depth + 1), .weight = (uint32_t)sum.weight};
    row.index = (uint32_t)n_items;
    row.entered = (uint32_t)sum.entered;
    row.as.items = copy;
    status = add_row(graph, &row, out);
    graph->size += status == FXTAP_OK ? n_items : 0;
    return status;
}

/* Copies a struct of a caller that may be built against an older header. */
static fxtap_status take_struct(void *copy, size_t copy_bytes, const void *from, size_t struct_size, size_t least)
{
    if (struct_size < least || struct_size > copy_bytes) {
        return fx_error(FXTAP_E_INVALID, "unknown struct_size %zu", struct_size);
    }
    memset(copy, 0, copy_bytes);
    memcpy(copy, from, struct_size);
    memcpy(copy, &copy_bytes, sizeof copy_bytes);
    return FXTAP_OK;
}

static fxtap_status check_dims(const fxtap_graph *graph, const fxtap_value *dims, size_t n_dims, uint64_t *weight)
{
    cost sum = {.weight = *weight};
    fxtap_status status = weigh(graph, dims, n_dims, &sum);
    *weight = sum.weight;
    for (size_t i = 0; status == FXTAP_OK && i < n_dims; i++) {
        uint8_t kind = graph->values[dims[i]].kind;
        if (kind != FXTAP_V_INT && kind != FXTAP_V_SYMINT) {
            status = fx_error(FXTAP_E_INVALID, "dimension %zu is not an integer", i);
        }
    }
    return status;
}

static fxtap_status check_tensor(const fxtap_graph *graph, const fxtap_tensor_meta *meta, uint64_t *weight)
{
    if ((unsigned)meta->dtype >= FXTAP_DTYPE_COUNT) {
        return fx_error(FXTAP_E_INVALID, "dtype %d of a tensor is not known", (int)meta->dtype);
    }
    if (meta->n_dims > FX_VALUE_WEIGHT_MAX || (meta->n_dims > 0 && meta->shape == NULL) ||
        (meta->bytes == NULL && meta->n_bytes > 0)) {
        return fx_error(FXTAP_E_INVALID, "a tensor of %zu dimensions without a shape", meta->n_dims);
    }
    *weight =
        1 + text_weight(meta->n_bytes) + text_weight(length_of(meta->device)) + text_weight(length_of(meta->layout));
    fxtap_status status = check_dims(graph, meta->shape, meta->n_dims, weight);
    if (status == FXTAP_OK && meta->strides != NULL) {
        status = check_dims(graph, meta->strides, meta->n_dims, weight);
    }
    if (status == FXTAP_OK && *weight > FX_VALUE_WEIGHT_MAX) {
        status = fx_error(FXTAP_E_INVALID, "a tensor too large for a graph record: %zu bytes", meta->n_bytes);
    }
    return status;
}

/* Interns a text, which may be NULL; false: out of memory. */
static bool intern(fxtap_graph *graph, const char **text)
{
    if (*text != NULL) {
        *text = fx_texts_keep(&graph->texts, *text, strlen(*text));
        return *text != NULL;
    }
    return true;
}

/* Copies an array, which may be NULL, to the arena; false: out of memory. */
static bool copy_array(fxtap_graph *graph, const fxtap_value **items, size_t n_items)
{
    if (*items != NULL) {
        *items = fx_arena_copy(&graph->texts.own, *items, n_items, sizeof **items);
        return *items != NULL;
    }
    return true;
}

fxtap_status fxtap_graph_add_tensor(fxtap_graph *graph, const fxtap_tensor_meta *meta, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(meta);
    FX_REQUIRE(out);
    fxtap_tensor_meta copy = {0};
    uint64_t weight = 0;
    fxtap_status status = take_struct(&copy, sizeof copy, meta, meta->struct_size, sizeof copy);
    if (status == FXTAP_OK) {
        status = check_tensor(graph, &copy, &weight);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    if (copy.device == NULL) {
        copy.device = "cpu";
    }
    if (copy.bytes != NULL) {
        copy.bytes = fx_arena_copy(&graph->texts.own, copy.bytes, copy.n_bytes, 1);
    }
    if ((meta->bytes != NULL && copy.bytes == NULL) || !intern(graph, &copy.device) || !intern(graph, &copy.layout) ||
        !copy_array(graph, &copy.shape, copy.n_dims) || !copy_array(graph, &copy.strides, copy.n_dims) ||
        !fx_grow((void **)&graph->tensors, &graph->tensors_capacity, graph->n_tensors + 1, sizeof *graph->tensors)) {
        return FXTAP_E_NOMEM;
    }
    fx_value_row row = {.kind = FXTAP_V_TENSOR, .depth = 1, .weight = (uint32_t)weight};
    row.index = (uint32_t)graph->n_tensors;
    status = add_row(graph, &row, out);
    if (status == FXTAP_OK) {
        graph->tensors[graph->n_tensors++] = copy;
        graph->size += 2 * copy.n_dims + text_weight(copy.n_bytes);
    }
    return status;
}

fxtap_status fx_graph_own_subgraph(fxtap_graph *graph, fxtap_graph *subgraph)
{
    if (subgraph == NULL || subgraph == graph || subgraph->depth + 1 > FX_GRAPH_DEPTH_MAX) {
        return fx_error(FXTAP_E_INVALID, "not a subgraph that a graph record can hold");
    }
    uint64_t weight = graph->weight + subgraph->weight;
    if (weight > FX_GRAPH_WEIGHT_MAX) {
        return fx_error(FXTAP_E_INVALID, "a subgraph too large for a graph record");
    }
    if (!fx_grow((void **)&graph->subgraphs, &graph->subgraphs_capacity, graph->n_subgraphs + 1,
                 sizeof(fxtap_graph *))) {
        return FXTAP_E_NOMEM;
    }
    graph->subgraphs[graph->n_subgraphs++] = subgraph;
    graph->weight = weight;
    graph->size += size_of(subgraph);
    graph->depth = subgraph->depth + 1 > graph->depth ? subgraph->depth + 1 : graph->depth;
    return FXTAP_OK;
}

static fxtap_status add_graph_row(fxtap_graph *graph, const fxtap_graph *subgraph, size_t index, fxtap_value *out)
{
    fx_value_row row = {.kind = FXTAP_V_GRAPH, .weight = 1, .index = (uint32_t)index};
    row.entered = (uint32_t)(subgraph->weight + subgraph->entered); /* each at most FX_GRAPH_WEIGHT_MAX */
    return add_row(graph, &row, out);
}

fxtap_status fx_graph_add_subgraph_ref(fxtap_graph *graph, size_t index, fxtap_value *out)
{
    return add_graph_row(graph, graph->subgraphs[index], index, out);
}

fxtap_status fxtap_graph_add_subgraph(fxtap_graph *graph, fxtap_graph *subgraph, fxtap_value *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(subgraph);
    FX_REQUIRE(out);
    fxtap_value value = 0;
    if (subgraph == NULL) {
        return fx_error(FXTAP_E_INVALID, "not a subgraph that a graph record can hold");
    }
    fxtap_status status = add_graph_row(graph, subgraph, graph->n_subgraphs, &value);
    if (status != FXTAP_OK) {
        return status;
    }
    status = fx_graph_own_subgraph(graph, subgraph);
    if (status != FXTAP_OK) {
        graph->n_values--; /* the reference, which is not used yet */
        return status;
    }
    *out = value;
    return FXTAP_OK;
}

/* ---- nodes ---- */

static fxtap_status check_node(const fxtap_graph *graph, const fxtap_node_desc *desc, cost *sum)
{
    if (desc->op < FXTAP_OP_PLACEHOLDER || desc->op > FXTAP_OP_CALL_METHOD) {
        return fx_error(FXTAP_E_INVALID, "node op %d is not known", (int)desc->op);
    }
    FX_REQUIRE(desc->name);
    FX_REQUIRE(desc->target);
    if (desc->name[0] == '\0') {
        return fx_error(FXTAP_E_INVALID, "a node needs a name");
    }
    if ((desc->n_args > 0 && desc->args == NULL) || desc->n_args > FX_VALUE_WEIGHT_MAX ||
        (desc->n_kwargs > 0 && (desc->kwarg_names == NULL || desc->kwarg_values == NULL)) ||
        desc->n_kwargs > FX_VALUE_WEIGHT_MAX) {
        return fx_error(FXTAP_E_INVALID, "%s: arguments without values", desc->name);
    }
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        if (desc->kwarg_names[i] == NULL) {
            return fx_error(FXTAP_E_INVALID, "%s: keyword argument %zu has no name", desc->name, i);
        }
    }
    fxtap_status status = weigh(graph, desc->args, desc->n_args, sum);
    if (status == FXTAP_OK) {
        status = weigh(graph, desc->kwarg_values, desc->n_kwargs, sum);
    }
    if (status == FXTAP_OK && desc->meta != 0) {
        status = weigh(graph, &desc->meta, 1, sum);
    }
    return status;
}

/*
 * Texts shared by many nodes are stored once, but every walk over the nodes writes them again; the name of a keyword
 * argument precedes every place in the argument. Stops once the limit is exceeded.
 */
static uint64_t node_text_weight(const fxtap_graph *graph, const fxtap_node_desc *desc)
{
    uint64_t length = length_of(desc->name) + length_of(desc->target) + length_of(desc->target_python) +
                      length_of(desc->stack_trace) / 16 + length_of(desc->module_path) + length_of(desc->module_type);
    uint64_t weight = 1;
    for (size_t i = 0; desc->arg_names != NULL && i < desc->n_args && weight <= FX_GRAPH_WEIGHT_MAX; i++) {
        weight += text_weight(length_of(desc->arg_names[i]));
    }
    for (size_t i = 0; i < desc->n_kwargs && weight <= FX_GRAPH_WEIGHT_MAX; i++) {
        length += length_of(desc->kwarg_names[i]);
        weight += text_weight(length_of(desc->kwarg_names[i])) * fx_graph_value(graph, desc->kwarg_values[i])->weight;
    }
    return weight + text_weight(length);
}

static bool copy_names(fxtap_graph *graph, const char *const **names, size_t n_names)
{
    if (*names == NULL) {
        return true;
    }
    const char **copy = fx_arena_copy(&graph->texts.own, *names, n_names, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n_names; i++) {
        if (!intern(graph, &copy[i])) {
            return false;
        }
    }
    *names = copy;
    return copy != NULL;
}

static bool find_source(fxtap_graph *graph, const char *trace, fx_source *out)
{
    fx_frame frame = {0};
    if (trace != NULL && trace == graph->source_trace) {
        *out = graph->source;
        return true;
    }
    if (trace != NULL) {
        fx_trace_innermost(trace, &frame);
    }
    fx_texts *texts = &graph->texts;
    out->line = frame.line;
    out->file = fx_texts_keep(texts, frame.file.bytes, frame.file.length);
    out->function = out->file == NULL ? NULL : fx_texts_keep(texts, frame.function.bytes, frame.function.length);
    out->code = out->function == NULL ? NULL : fx_texts_keep(texts, frame.code.bytes, frame.code.length);
    if (out->code == NULL) {
        return false;
    }
    graph->source = *out;
    graph->source_trace = trace;
    return true;
}

/* Copies the node to the memory of the record. */
static bool copy_node(fxtap_graph *graph, fx_node_row *row)
{
    fxtap_node_desc *desc = &row->desc;
    return intern(graph, &desc->name) && intern(graph, &desc->target) && intern(graph, &desc->target_python) &&
           intern(graph, &desc->stack_trace) && intern(graph, &desc->module_path) &&
           intern(graph, &desc->module_type) && copy_array(graph, &desc->args, desc->n_args) &&
           copy_names(graph, &desc->arg_names, desc->n_args) && copy_names(graph, &desc->kwarg_names, desc->n_kwargs) &&
           copy_array(graph, &desc->kwarg_values, desc->n_kwargs) &&
           find_source(graph, desc->stack_trace, &row->source);
}

/* Makes room for the node of a name in the table by string id. */
static bool make_name_room(fxtap_graph *graph, uint32_t id)
{
    size_t before = graph->node_of_string_capacity;
    if (!fx_grow((void **)&graph->node_of_string, &graph->node_of_string_capacity, (size_t)id + 1, sizeof(uint32_t))) {
        return false;
    }
    memset(graph->node_of_string + before, 0, (graph->node_of_string_capacity - before) * sizeof(uint32_t));
    return true;
}

fxtap_status fxtap_graph_add_node(fxtap_graph *graph, const fxtap_node_desc *desc, fxtap_node *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(desc);
    FX_REQUIRE(out);
    fx_node_row row = {.n_values = (uint32_t)graph->n_values};
    cost sum = {.weight = graph->weight, .entered = graph->entered};
    fxtap_status status = take_struct(&row.desc, sizeof row.desc, desc, desc->struct_size, sizeof row.desc);
    if (status == FXTAP_OK) {
        status = check_node(graph, &row.desc, &sum);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    sum.weight += node_text_weight(graph, &row.desc);
    uint64_t most = fx_graph_weight_max(graph);
    if (sum.entered > most) {
        return fx_error(FXTAP_E_INVALID, "%s: subgraphs named too often for a graph record", desc->name);
    }
    if (sum.weight > most) { /* also limits the number of nodes: each weighs at least 1 */
        return fx_error(FXTAP_E_INVALID, "%s: values named too often for a graph record", desc->name);
    }
    if (!copy_node(graph, &row) ||
        !fx_grow((void **)&graph->nodes, &graph->nodes_capacity, graph->n_nodes + 1, sizeof *graph->nodes)) {
        return FXTAP_E_NOMEM;
    }
    uint32_t id = fx_texts_entry_of(row.desc.name)->id;
    if (!make_name_room(graph, id)) {
        return FXTAP_E_NOMEM;
    }
    if (graph->node_of_string[id] != 0) {
        return fx_error(FXTAP_E_INVALID, "two nodes named %s", row.desc.name);
    }
    graph->nodes[graph->n_nodes] = row;
    graph->node_of_string[id] = (uint32_t)graph->n_nodes + 1;
    graph->size += desc->n_args + desc->n_kwargs;
    graph->weight = sum.weight;
    graph->entered = sum.entered;
    *out = (fxtap_node)graph->n_nodes++;
    return FXTAP_OK;
}
