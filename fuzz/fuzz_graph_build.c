/*
 * fuzz_graph_build.c - interprets bytes as calls that build a graph: values of every kind, nested values, nodes,
 * subgraphs.
 *
 * Bytes alone rarely make a record that has nodes of known operators with arguments of the right kinds; calls do. One
 * byte selects each value and name from the existing ones or from a table, so lists of lists and chains of nodes take a
 * few bytes. The graph is printed in every format, selected from, serialised and read back.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/print.h"
#include "graph_use.h"

#define MAX_VALUES 256
#define MAX_NODES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

typedef struct builder {
    fxtap_graph *graph;
    fxtap_value values[MAX_VALUES];
    size_t n_values;
    size_t n_nodes;
    char text[64]; /* the most recently selected one */
} builder;

static const char *const targets[] = {"aten.add.Tensor",
                                      "aten.mul.Tensor",
                                      "aten.view.default",
                                      "aten.permute.default",
                                      "aten.cat.default",
                                      "aten.split.Tensor",
                                      "aten.sum.dim_IntList",
                                      "aten.slice.Tensor",
                                      "aten.select.int",
                                      "aten.index.Tensor",
                                      "aten.convolution.default",
                                      "aten.native_layer_norm.default",
                                      "aten._softmax.default",
                                      "aten.addmm.default",
                                      "aten.expand.default",
                                      "aten._to_copy.default",
                                      "aten.arange.start_step",
                                      "aten.full.default",
                                      "aten.where.self",
                                      "aten.copy_.default",
                                      "aten.embedding.default",
                                      "aten.gelu.default",
                                      "aten.mean.dim",
                                      "aten.native_dropout.default",
                                      "aten.sym_size.int",
                                      "aten.unbind.int",
                                      "aten.stack.default",
                                      "aten.constant_pad_nd.default",
                                      "aten.bmm.default",
                                      "operator.getitem",
                                      "operator.add",
                                      "operator.mul",
                                      "higher_order.cond",
                                      "aten.topk.default",
                                      "aten.sort.default",
                                      "aten.scatter.src",
                                      "aten.gather.default",
                                      "aten.var.correction",
                                      "aten.squeeze.dims",
                                      "aten.unsqueeze.default"};

static const char *const texts[] = {"",
                                    "x",
                                    "n0",
                                    "self",
                                    "s0",
                                    "s77 + 2",
                                    "s0*s1//2",
                                    "Max(1, s0)",
                                    "cpu",
                                    "npu:0",
                                    "torch.float32",
                                    "torch.int64",
                                    "torch.bfloat16",
                                    "torch.strided",
                                    "torch.channels_last",
                                    "none",
                                    "tanh",
                                    "L['self'].blocks.0.fc",
                                    "torch.nn.modules.linear.Linear",
                                    "  File \"model.py\", line 12, in forward\n    return self.fc(x)\n",
                                    "\xff\"'\\\n"};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static uint8_t next(cursor *c)
{
    if (c->left == 0) {
        return 0;
    }
    c->left--;
    return *c->at++;
}

/* A text from the table, or bytes of the input, preceded by their length. */
static const char *draw_text(builder *b, cursor *c)
{
    uint8_t which = next(c);
    if (which < 0x80) {
        return texts[which % COUNT_OF(texts)];
    }
    size_t length = which & 0x1f;
    for (size_t i = 0; i < length; i++) {
        b->text[i] = (char)next(c);
    }
    b->text[length] = '\0';
    return b->text;
}

static fxtap_value draw_value(const builder *b, cursor *c)
{
    uint8_t back = next(c); /* the newest first, so that mutations keep their meaning */
    return b->n_values == 0 ? 0 : b->values[b->n_values - 1 - back % b->n_values];
}

static size_t draw_values(const builder *b, cursor *c, fxtap_value *out)
{
    size_t n = next(c) % 9;
    for (size_t i = 0; i < n; i++) {
        out[i] = draw_value(b, c);
    }
    return b->n_values == 0 ? 0 : n;
}

static int64_t draw_int(cursor *c)
{
    uint8_t head = next(c);
    uint64_t value = head & 0x7f;
    for (int i = 0; head == 0xff && i < 8; i++) {
        value = value << 8 | next(c);
    }
    return (head & 0x80) != 0 && head != 0xff ? -(int64_t)value : (int64_t)value;
}

static double draw_double(cursor *c)
{
    uint64_t bits = 0;
    double value;
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | next(c);
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static fxtap_status add_tensor(builder *b, cursor *c, fxtap_value *out)
{
    fxtap_value shape[8], strides[8];
    size_t n_dims = draw_values(b, c, shape), n_strides = draw_values(b, c, strides);
    uint8_t flags = next(c);
    fxtap_tensor_meta meta = {.struct_size = sizeof meta, .dtype = (fxtap_dtype)(next(c) % 24), .device = "cpu"};
    meta.shape = shape;
    meta.n_dims = n_dims;
    meta.strides = n_strides >= n_dims ? strides : NULL;
    meta.requires_grad = flags & 1;
    meta.is_fake = flags & 2;
    if (flags & 4) {
        meta.n_bytes = flags >> 3 < c->left ? flags >> 3 : c->left;
        meta.bytes = c->at;
    }
    return fxtap_graph_add_tensor(b->graph, &meta, out);
}

static fxtap_status add_value(builder *b, cursor *c, fxtap_value *out)
{
    fxtap_value items[8];
    fxtap_value_kind kind = (fxtap_value_kind)(1 + next(c) % FXTAP_V_OTHER);
    switch (kind) {
    case FXTAP_V_NONE:
        return fxtap_graph_add_none(b->graph, out);
    case FXTAP_V_BOOL:
        return fxtap_graph_add_bool(b->graph, next(c) & 1, out);
    case FXTAP_V_INT:
        return fxtap_graph_add_int(b->graph, draw_int(c), out);
    case FXTAP_V_FLOAT:
        return fxtap_graph_add_float(b->graph, draw_double(c), out);
    case FXTAP_V_COMPLEX:
        return fxtap_graph_add_complex(b->graph, draw_double(c), draw_double(c), out);
    case FXTAP_V_NODE:
        return fxtap_graph_add_node_ref(b->graph, b->n_nodes == 0 ? 0 : (fxtap_node)(next(c) % b->n_nodes), out);
    case FXTAP_V_SYMINT:
    case FXTAP_V_SYMFLOAT:
    case FXTAP_V_SYMBOOL: {
        double hint = draw_double(c);
        return fxtap_graph_add_symbol(b->graph, kind, draw_text(b, c), next(c) & 1 ? &hint : NULL, out);
    }
    case FXTAP_V_LIST:
    case FXTAP_V_TUPLE:
    case FXTAP_V_DICT:
    case FXTAP_V_SLICE: {
        size_t n = draw_values(b, c, items);
        return fxtap_graph_add_items(b->graph, kind, items, n, out);
    }
    case FXTAP_V_TENSOR:
        return add_tensor(b, c, out);
    default: {
        const char *text = draw_text(b, c);
        return fxtap_graph_add_text(b->graph, kind, text, strlen(text), out);
    }
    }
}

static void add_node(builder *b, cursor *c)
{
    fxtap_value args[8], kwargs[8];
    char name[16];
    uint8_t flags = next(c);
    snprintf(name, sizeof name, "n%zu", b->n_nodes);
    fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_CALL_FUNCTION, .name = name};
    desc.target = targets[next(c) % COUNT_OF(targets)];
    desc.args = args;
    desc.n_args = draw_values(b, c, args);
    if (flags & 1) {
        static const char *const names[8] = {"dim",     "dtype",       "alpha",  "memory_format",
                                             "keepdim", "approximate", "device", "pin"};
        desc.kwarg_names = names;
        desc.kwarg_values = kwargs;
        desc.n_kwargs = draw_values(b, c, kwargs);
    }
    if (flags & 2) {
        desc.op = (fxtap_node_op)(1 + next(c) % 6);
        desc.target = draw_text(b, c);
    }
    desc.meta = flags & 4 ? draw_value(b, c) : 0;
    desc.flags = flags >> 3;
    desc.stack_trace = flags & 8 ? texts[19] : NULL;
    desc.module_path = flags & 16 ? texts[17] : NULL;
    desc.module_type = flags & 16 ? texts[18] : NULL;
    fxtap_node node;
    fxtap_value value;
    if (fxtap_graph_add_node(b->graph, &desc, &node) == FXTAP_OK) {
        b->n_nodes++;
        if (b->n_values < MAX_VALUES && fxtap_graph_add_node_ref(b->graph, node, &value) == FXTAP_OK) {
            b->values[b->n_values++] = value;
        }
    }
}

/* Ends with the input, or at an end byte; NULL: out of memory. */
static fxtap_graph *build(cursor *c, unsigned depth)
{
    builder *b = calloc(1, sizeof *b);
    if (b == NULL || fxtap_graph_create((fxtap_graph_kind)(1 + next(c) % 4), &b->graph) != FXTAP_OK) {
        free(b);
        return NULL;
    }
    while (c->left > 0) {
        uint8_t what = next(c);
        fxtap_value value;
        if (what < 0x60 && b->n_nodes < MAX_NODES) {
            add_node(b, c);
        } else if (what >= 0xfe) {
            break;
        } else if (what >= 0xf8 && depth < 3) {
            fxtap_graph *inner = build(c, depth + 1);
            if (inner != NULL && fxtap_graph_add_subgraph(b->graph, inner, &value) != FXTAP_OK) {
                fxtap_graph_free(inner);
            } else if (inner != NULL && b->n_values < MAX_VALUES) {
                b->values[b->n_values++] = value;
            }
        } else if (b->n_values < MAX_VALUES && add_value(b, c, &value) == FXTAP_OK) {
            b->values[b->n_values++] = value;
        }
    }
    fxtap_graph *graph = b->graph;
    free(b);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cursor c = {data, size};
    uint8_t hops = next(&c);
    fxtap_graph *graph = build(&c, 0);
    if (graph != NULL) {
        use_graph(graph, hops);
        fxtap_graph_free(graph);
    }
    return 0;
}
