/*
 * engine.h - the small inference engine of the examples: tensors of float32, four operators, and helpers that
 * add them to a graph and to a dump.
 */
#ifndef EXAMPLE_ENGINE_H
#define EXAMPLE_ENGINE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/dump.h"
#include "fxtap/graph.h"
#include "fxtap/npy.h"

enum { BATCH = 4, WIDTH = 16, HIDDEN = 32 }; /* as in block.py */

static inline void check(fxtap_status status)
{
    if (status != FXTAP_OK) {
        fprintf(stderr, "%s\n", fxtap_error_message());
        exit(2);
    }
}

typedef struct tensor {
    float *values;
    int32_t ndim;
    int64_t shape[2];
    int64_t strides[2];
    fxtap_ticket ticket; /* in the current call */
    fxtap_value result;  /* in the graph: the node that computes it */
} tensor;

static inline tensor new_tensor(int32_t ndim, int64_t rows, int64_t columns)
{
    tensor made = {.ndim = ndim, .shape = {rows, columns}, .strides = {columns, 1}};
    if (ndim == 1) {
        made.shape[0] = columns;
        made.strides[0] = 1;
    }
    made.values = calloc((size_t)(rows * columns), sizeof(float));
    if (made.values == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return made;
}

/* Loads a weight saved by block.py: FOLDER/NAME.npy, contiguous float32. */
static inline tensor load(const char *folder, const char *name, int32_t ndim, int64_t rows, int64_t columns)
{
    char path[4096];
    fxtap_npy *npy;
    tensor made = new_tensor(ndim, rows, columns);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    check(fxtap_npy_open(path, &npy));
    const fxtap_view *view = fxtap_npy_view(npy);
    uint64_t count = 0;
    check(fxtap_view_count(view, &count));
    if (view->dtype != FXTAP_FLOAT32 || count != (uint64_t)(rows * columns)) {
        fprintf(stderr, "%s: not %lld float32\n", path, (long long)(rows * columns));
        exit(2);
    }
    check(fxtap_view_gather(view, 0, count, made.values));
    fxtap_npy_close(npy);
    return made;
}

/* A view of the same memory, which `of` owns. */
static inline tensor transposed(const tensor *of)
{
    return (tensor){.values = of->values,
                    .ndim = 2,
                    .shape = {of->shape[1], of->shape[0]},
                    .strides = {of->strides[1], of->strides[0]}};
}

/* ---- arithmetic ---- */

/* `mean_out` and `rstd_out`, one value per row, may be NULL. */
static inline void layer_norm(tensor *out, tensor *mean_out, tensor *rstd_out, const tensor *x, const tensor *weight,
                              const tensor *bias, double eps)
{
    int64_t n = x->shape[1];
    for (int64_t i = 0; i < x->shape[0]; i++) {
        const float *row = x->values + i * n;
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; j++) {
            mean += (double)row[j] / (double)n;
        }
        for (int64_t j = 0; j < n; j++) {
            variance += ((double)row[j] - mean) * ((double)row[j] - mean) / (double)n;
        }
        double rstd = 1.0 / sqrt(variance + eps);
        if (mean_out != NULL) {
            mean_out->values[i] = (float)mean;
            rstd_out->values[i] = (float)rstd;
        }
        for (int64_t j = 0; j < n; j++) {
            double normal = ((double)row[j] - mean) * rstd;
            out->values[i * n + j] = (float)(normal * (double)weight->values[j] + (double)bias->values[j]);
        }
    }
}

/* out = bias + x @ w, w with any strides */
static inline void addmm(tensor *out, const tensor *bias, const tensor *x, const tensor *w)
{
    for (int64_t i = 0; i < out->shape[0]; i++) {
        for (int64_t j = 0; j < out->shape[1]; j++) {
            double sum = (double)bias->values[j];
            for (int64_t k = 0; k < x->shape[1]; k++) {
                sum +=
                    (double)x->values[i * x->shape[1] + k] * (double)w->values[k * w->strides[0] + j * w->strides[1]];
            }
            out->values[i * out->shape[1] + j] = (float)sum;
        }
    }
}

static inline void gelu(tensor *out, const tensor *x, bool approximate)
{
    for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++) {
        double v = (double)x->values[i];
        double gate = approximate ? tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)) : erf(v / sqrt(2.0));
        out->values[i] = (float)(0.5 * v * (1.0 + gate));
    }
}

static inline void add(tensor *out, const tensor *x, const tensor *y)
{
    for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++) {
        out->values[i] = x->values[i] + y->values[i];
    }
}

/* ---- the graph ---- */

static inline fxtap_value meta_of(fxtap_graph *graph, const tensor *t)
{
    fxtap_value shape[2], strides[2], meta;
    for (int32_t i = 0; i < t->ndim; i++) {
        check(fxtap_graph_add_int(graph, t->shape[i], &shape[i]));
        check(fxtap_graph_add_int(graph, t->strides[i], &strides[i]));
    }
    fxtap_tensor_meta description = {.struct_size = sizeof description,
                                     .dtype = FXTAP_FLOAT32,
                                     .device = "cpu",
                                     .shape = shape,
                                     .strides = strides,
                                     .n_dims = (size_t)t->ndim};
    check(fxtap_graph_add_tensor(graph, &description, &meta));
    return meta;
}

/* Adds a node with its source, `stack_trace`; its result can then be the argument of another node. */
static inline fxtap_node add_node_at(const char *stack_trace, fxtap_graph *graph, fxtap_node_op op, const char *name,
                                     const char *target, const fxtap_value *args, size_t n_args, tensor *yields)
{
    bool is_aten = strncmp(target, "aten.", 5) == 0;
    fxtap_node_desc description = {.struct_size = sizeof description,
                                   .op = op,
                                   .name = name,
                                   .target = target,
                                   .args = args,
                                   .n_args = n_args,
                                   .stack_trace = stack_trace,
                                   .flags = is_aten ? FXTAP_NODE_TARGET_ATEN : 0};
    fxtap_node node;
    description.meta = yields != NULL ? meta_of(graph, yields) : 0;
    check(fxtap_graph_add_node(graph, &description, &node));
    if (yields != NULL) {
        check(fxtap_graph_add_node_ref(graph, node, &yields->result));
    }
    return node;
}

/* Reports show the line of this macro's use. */
#define TEXT_OF(x) #x
#define LINE_TEXT(line) TEXT_OF(line)
#define HERE "  File \"" __FILE__ "\", line " LINE_TEXT(__LINE__) ", in make_graph\n"
#define add_input(graph, name, t) add_node_at(HERE, graph, FXTAP_OP_PLACEHOLDER, name, name, NULL, 0, t)
#define add_call(graph, name, target, args, n_args, t)                                                                 \
    add_node_at(HERE, graph, FXTAP_OP_CALL_FUNCTION, name, target, args, n_args, t)

/* ---- the dump ---- */

/* Saves a tensor under a name: its bytes the first time in a call, then only a further name. */
static inline void save(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position, uint64_t stamp, tensor *t)
{
    fxtap_view view = {
        .data = t->values, .dtype = FXTAP_FLOAT32, .ndim = t->ndim, .shape = t->shape, .strides = t->strides};
    check(fxtap_call_save(call, node, io, position, stamp, &view, &t->ticket));
}

/* Saves a number argument as a Python float. */
static inline void save_float(fxtap_call *call, fxtap_node node, const char *position, uint64_t stamp, double number)
{
    fxtap_view view = {.data = &number, .dtype = FXTAP_FLOAT64};
    check(fxtap_call_save_copy(call, node, FXTAP_INPUT, position, stamp, &view));
}

/* Saves a list of integers, such as a shape, as one array. */
static inline void save_ints(fxtap_call *call, fxtap_node node, const char *position, uint64_t stamp,
                             const int64_t *numbers, int64_t n)
{
    fxtap_view view = {.data = numbers, .dtype = FXTAP_INT64, .ndim = 1, .shape = &n};
    check(fxtap_call_save_copy(call, node, FXTAP_INPUT, position, stamp, &view));
}

/* Waits until memory that is about to be overwritten has been saved. */
static inline void settle(fxtap_call *call, const tensor *t)
{
    const float *end = t->values + t->shape[0] * (t->ndim == 1 ? 1 : t->shape[1]);
    fxtap_call_settle(call, t->values, end);
}

static inline void run_transpose(fxtap_call *call, fxtap_node node, tensor *weight, tensor *view)
{
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, node, FXTAP_INPUT, "0", stamp, weight);
    save(call, node, FXTAP_OUTPUT, "0", stamp, view);
}

static inline void run_addmm(fxtap_call *call, fxtap_node node, tensor *bias, tensor *x, tensor *w, tensor *out)
{
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, node, FXTAP_INPUT, "0", stamp, bias);
    save(call, node, FXTAP_INPUT, "1", stamp, x);
    save(call, node, FXTAP_INPUT, "2", stamp, w);
    settle(call, out);
    addmm(out, bias, x, w);
    save(call, node, FXTAP_OUTPUT, "0", stamp, out);
}

static inline fxtap_dump *open_dump(const char *path)
{
    fxtap_dump *dump;
    fxtap_dump_options options = {
        .struct_size = sizeof options, .path = path, .world_size = 1, .type = FXTAP_DUMP_NPY, .command = "example"};
    check(fxtap_dump_open(&options, &dump));
    return dump;
}

#endif
