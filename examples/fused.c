/*
 * An engine whose operators are not PyTorch's: the model of block.py as two fused operators. A map pairs their results
 * with PyTorch's; the inputs of a fused operator have no counterpart and are named by keywords, so that their positions
 * do not pair by accident.
 *
 *     python examples/block.py OUT          # the weights OUT/weights, the golden dump OUT/golden
 *     example_fused OUT/weights OUT/fused [--bug eps|gelu]
 *     fxtap compare OUT/golden OUT/fused --map examples/fused.map
 *
 * Exit status: 0, or 2 on failure.
 */
#include "engine.h"

typedef struct model {
    tensor x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias; /* loaded */
    tensor normal, up, active, down, out;                                         /* normal, active, down: not saved */
    fxtap_node n_norm_up, n_gelu_down;
    fxtap_capture *capture;
} model;

static void make_model(model *m, const char *weights)
{
    m->x = load(weights, "x", 2, BATCH, WIDTH);
    m->norm_weight = load(weights, "norm.weight", 1, 1, WIDTH);
    m->norm_bias = load(weights, "norm.bias", 1, 1, WIDTH);
    m->up_weight = load(weights, "up.weight", 2, HIDDEN, WIDTH);
    m->up_bias = load(weights, "up.bias", 1, 1, HIDDEN);
    m->down_weight = load(weights, "down.weight", 2, WIDTH, HIDDEN);
    m->down_bias = load(weights, "down.bias", 1, 1, WIDTH);
    m->normal = new_tensor(2, BATCH, WIDTH);
    m->up = new_tensor(2, BATCH, HIDDEN);
    m->active = new_tensor(2, BATCH, HIDDEN);
    m->down = new_tensor(2, BATCH, WIDTH);
    m->out = new_tensor(2, BATCH, WIDTH);
}

/* Wiring is useful for fused operators too: errors are followed along it. */
static fxtap_graph *make_graph(model *m)
{
    fxtap_graph *graph;
    check(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph));
    add_input(graph, "x", &m->x);
    add_input(graph, "norm_weight", &m->norm_weight);
    add_input(graph, "norm_bias", &m->norm_bias);
    add_input(graph, "up_weight", &m->up_weight);
    add_input(graph, "up_bias", &m->up_bias);
    add_input(graph, "down_weight", &m->down_weight);
    add_input(graph, "down_bias", &m->down_bias);
    fxtap_value up[] = {m->x.result, m->norm_weight.result, m->norm_bias.result, m->up_weight.result,
                        m->up_bias.result};
    m->n_norm_up = add_call(graph, "norm_up", "engine.norm_linear", up, 5, &m->up);
    fxtap_value down[] = {m->up.result, m->down_weight.result, m->down_bias.result, m->x.result};
    m->n_gelu_down = add_call(graph, "gelu_down", "engine.gelu_linear_add", down, 4, &m->out);
    add_node_at(HERE, graph, FXTAP_OP_OUTPUT, "output", "output", &m->out.result, 1, NULL);
    return graph;
}

static void run_model(model *m, const char *bug)
{
    fxtap_call *call;
    tensor up_t = transposed(&m->up_weight), down_t = transposed(&m->down_weight);
    check(fxtap_call_begin(m->capture, &call));
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, m->n_norm_up, FXTAP_INPUT, "x", stamp, &m->x);
    save(call, m->n_norm_up, FXTAP_INPUT, "up_weight", stamp, &m->up_weight);
    layer_norm(&m->normal, NULL, NULL, &m->x, &m->norm_weight, &m->norm_bias, strcmp(bug, "eps") == 0 ? 1e-3 : 1e-5);
    addmm(&m->up, &m->up_bias, &m->normal, &up_t);
    save(call, m->n_norm_up, FXTAP_OUTPUT, "0", stamp, &m->up);
    stamp = fxtap_call_stamp(call);
    save(call, m->n_gelu_down, FXTAP_INPUT, "up", stamp, &m->up);
    save(call, m->n_gelu_down, FXTAP_INPUT, "x", stamp, &m->x);
    save(call, m->n_gelu_down, FXTAP_INPUT, "down_weight", stamp, &m->down_weight);
    gelu(&m->active, &m->up, strcmp(bug, "gelu") == 0);
    addmm(&m->down, &m->down_bias, &m->active, &down_t);
    add(&m->out, &m->x, &m->down);
    save(call, m->n_gelu_down, FXTAP_OUTPUT, "0", stamp, &m->out);
    check(fxtap_call_end(call, NULL));
}

static void free_model(model *m)
{
    tensor *const owners[] = {&m->x,       &m->norm_weight, &m->norm_bias, &m->up_weight,
                              &m->up_bias, &m->down_weight, &m->down_bias, &m->normal,
                              &m->up,      &m->active,      &m->down,      &m->out};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        free(owners[i]->values);
    }
}

int main(int argc, char **argv)
{
    const char *bug = argc == 5 && strcmp(argv[3], "--bug") == 0 ? argv[4] : "";
    if (argc != 3 && strcmp(bug, "eps") != 0 && strcmp(bug, "gelu") != 0) {
        fprintf(stderr, "usage: example_fused WEIGHTS DUMP [--bug eps|gelu]\n");
        return 2;
    }
    model m = {0};
    make_model(&m, argv[1]);
    fxtap_dump *dump = open_dump(argv[2]);
    fxtap_graph *graph = make_graph(&m);
    check(fxtap_dump_add_graph(dump, graph, 1, NULL, &m.capture));
    fxtap_graph_free(graph);
    run_model(&m, bug);
    printf("Wrote %s\n", fxtap_dump_rank_path(dump));
    fxtap_dump_close(dump);
    free_model(&m);
    return 0;
}
