/*
 * The model of block.py in C, dumped under PyTorch's names: all tensors pair, and the first operator with a different
 * result is named. Three bugs can be switched on for demonstration.
 *
 *     python examples/block.py OUT          # the weights OUT/weights, the golden dump OUT/golden
 *     example_block OUT/weights OUT/c [--bug eps|gelu|transpose]
 *     fxtap compare OUT/golden OUT/c
 *
 * Exit status: 0, or 2 on failure.
 */
#include "engine.h"

typedef struct block {
    tensor x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias; /* loaded */
    tensor normal, mean, rstd, up_t, up, active, down_t, down, out;
    fxtap_node n_norm, n_up_t, n_up, n_gelu, n_down_t, n_down, n_add;
    fxtap_capture *capture;
} block;

static void make_block(block *b, const char *weights)
{
    b->x = load(weights, "x", 2, BATCH, WIDTH);
    b->norm_weight = load(weights, "norm.weight", 1, 1, WIDTH);
    b->norm_bias = load(weights, "norm.bias", 1, 1, WIDTH);
    b->up_weight = load(weights, "up.weight", 2, HIDDEN, WIDTH);
    b->up_bias = load(weights, "up.bias", 1, 1, HIDDEN);
    b->down_weight = load(weights, "down.weight", 2, WIDTH, HIDDEN);
    b->down_bias = load(weights, "down.bias", 1, 1, WIDTH);
    b->normal = new_tensor(2, BATCH, WIDTH);
    b->mean = new_tensor(2, BATCH, 1);
    b->rstd = new_tensor(2, BATCH, 1);
    b->up = new_tensor(2, BATCH, HIDDEN);
    b->active = new_tensor(2, BATCH, HIDDEN);
    b->down = new_tensor(2, BATCH, WIDTH);
    b->out = new_tensor(2, BATCH, WIDTH);
    b->up_t = transposed(&b->up_weight);
    b->down_t = transposed(&b->down_weight);
}

/* The graph as printed by `fxtap graph OUT/golden`: names, targets, the order of arguments, and the wiring. */
static fxtap_graph *make_graph(block *b)
{
    fxtap_graph *graph;
    fxtap_value width, shape, eps, zero;
    tensor normalised = b->normal; /* the first element of the node's result, a tuple of three */
    check(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph));
    check(fxtap_graph_add_int(graph, WIDTH, &width));
    check(fxtap_graph_add_items(graph, FXTAP_V_LIST, &width, 1, &shape));
    check(fxtap_graph_add_float(graph, 1e-5, &eps));
    check(fxtap_graph_add_int(graph, 0, &zero));
    add_input(graph, "arg0_1", &b->norm_weight);
    add_input(graph, "arg1_1", &b->norm_bias);
    add_input(graph, "arg2_1", &b->x);
    add_input(graph, "arg3_1", &b->up_weight);
    add_input(graph, "arg4_1", &b->up_bias);
    add_input(graph, "arg5_1", &b->down_weight);
    add_input(graph, "arg6_1", &b->down_bias);
    fxtap_value norm[] = {b->x.result, shape, b->norm_weight.result, b->norm_bias.result, eps};
    b->n_norm = add_call(graph, "native_layer_norm", "aten.native_layer_norm.default", norm, 5, &normalised);
    fxtap_value item[] = {normalised.result, zero};
    add_call(graph, "getitem", "operator.getitem", item, 2, &b->normal);
    b->n_up_t = add_call(graph, "t", "aten.t.default", &b->up_weight.result, 1, &b->up_t);
    fxtap_value up[] = {b->up_bias.result, b->normal.result, b->up_t.result};
    b->n_up = add_call(graph, "addmm", "aten.addmm.default", up, 3, &b->up);
    b->n_gelu = add_call(graph, "gelu", "aten.gelu.default", &b->up.result, 1, &b->active);
    b->n_down_t = add_call(graph, "t_1", "aten.t.default", &b->down_weight.result, 1, &b->down_t);
    fxtap_value down[] = {b->down_bias.result, b->active.result, b->down_t.result};
    b->n_down = add_call(graph, "addmm_1", "aten.addmm.default", down, 3, &b->down);
    fxtap_value sum[] = {b->x.result, b->down.result};
    b->n_add = add_call(graph, "add", "aten.add.Tensor", sum, 2, &b->out);
    add_node_at(HERE, graph, FXTAP_OP_OUTPUT, "output", "output", &b->out.result, 1, NULL);
    return graph;
}

static void run_norm(fxtap_call *call, block *b, double eps)
{
    const int64_t normalised[] = {WIDTH};
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, b->n_norm, FXTAP_INPUT, "0", stamp, &b->x);
    save_ints(call, b->n_norm, "1", stamp, normalised, 1);
    save(call, b->n_norm, FXTAP_INPUT, "2", stamp, &b->norm_weight);
    save(call, b->n_norm, FXTAP_INPUT, "3", stamp, &b->norm_bias);
    save_float(call, b->n_norm, "4", stamp, eps);
    layer_norm(&b->normal, &b->mean, &b->rstd, &b->x, &b->norm_weight, &b->norm_bias, eps);
    save(call, b->n_norm, FXTAP_OUTPUT, "0", stamp, &b->normal);
    save(call, b->n_norm, FXTAP_OUTPUT, "1", stamp, &b->mean);
    save(call, b->n_norm, FXTAP_OUTPUT, "2", stamp, &b->rstd);
}

static void run_block(block *b, const char *bug)
{
    fxtap_call *call;
    check(fxtap_call_begin(b->capture, &call));
    run_norm(call, b, strcmp(bug, "eps") == 0 ? 1e-3 : 1e-5);
    if (strcmp(bug, "transpose") == 0) { /* reads the weight's bytes as if they were already transposed */
        b->up_t.strides[0] = b->up_t.shape[1];
        b->up_t.strides[1] = 1;
    }
    run_transpose(call, b->n_up_t, &b->up_weight, &b->up_t);
    run_addmm(call, b->n_up, &b->up_bias, &b->normal, &b->up_t, &b->up);
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, b->n_gelu, FXTAP_INPUT, "0", stamp, &b->up);
    gelu(&b->active, &b->up, strcmp(bug, "gelu") == 0);
    save(call, b->n_gelu, FXTAP_OUTPUT, "0", stamp, &b->active);
    run_transpose(call, b->n_down_t, &b->down_weight, &b->down_t);
    run_addmm(call, b->n_down, &b->down_bias, &b->active, &b->down_t, &b->down);
    stamp = fxtap_call_stamp(call);
    save(call, b->n_add, FXTAP_INPUT, "0", stamp, &b->x);
    save(call, b->n_add, FXTAP_INPUT, "1", stamp, &b->down);
    add(&b->out, &b->x, &b->down);
    save(call, b->n_add, FXTAP_OUTPUT, "0", stamp, &b->out);
    check(fxtap_call_end(call, NULL));
}

static void free_block(block *b)
{
    tensor *const owners[] = {&b->x,           &b->norm_weight, &b->norm_bias, &b->up_weight, &b->up_bias,
                              &b->down_weight, &b->down_bias,   &b->normal,    &b->mean,      &b->rstd,
                              &b->up,          &b->active,      &b->down,      &b->out};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        free(owners[i]->values);
    }
}

int main(int argc, char **argv)
{
    const char *bug = argc == 5 && strcmp(argv[3], "--bug") == 0 ? argv[4] : "";
    bool is_known = strcmp(bug, "eps") == 0 || strcmp(bug, "gelu") == 0 || strcmp(bug, "transpose") == 0;
    if (argc != 3 && !is_known) {
        fprintf(stderr, "usage: example_block WEIGHTS DUMP [--bug eps|gelu|transpose]\n");
        return 2;
    }
    block b = {0};
    make_block(&b, argv[1]);
    fxtap_dump *dump = open_dump(argv[2]);
    fxtap_graph *graph = make_graph(&b);
    check(fxtap_dump_add_graph(dump, graph, 1, NULL, &b.capture));
    fxtap_graph_free(graph);
    run_block(&b, bug);
    printf("Wrote %s\n", fxtap_dump_rank_path(dump));
    fxtap_dump_close(dump);
    free_block(&b);
    return 0;
}
