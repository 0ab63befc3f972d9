/*
 * A C program without Python that writes a dump: a two-layer perceptron with its own arithmetic runs for a few steps,
 * and each operator's inputs and outputs are written as by `torch.compile(model, backend="fxtap")`.
 *
 *     example_mlp DUMP [STEPS [BATCH [--stats]]]
 *     fxtap ls DUMP
 *     fxtap compare DUMP OTHER_DUMP
 *
 * Every tensor here lives as long as the program, so no release callbacks are needed. Exit status: 0, or 2 on failure.
 */
#include "engine.h"

enum { N_INPUTS = 64, N_HIDDEN = 128, N_CLASSES = 10, MAX_BATCH = 4096 };

static uint32_t random_state = 12345;

static void fill(tensor *t, float scale)
{
    int64_t n = t->ndim == 1 ? t->shape[0] : t->shape[0] * t->shape[1];
    for (int64_t i = 0; i < n; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        t->values[i] = scale * ((float)(random_state >> 8) / 8388608.0f - 1.0f);
    }
}

/* ---- arithmetic ---- */

static void relu(tensor *out, const tensor *x)
{
    for (int64_t i = 0; i < x->shape[0] * x->shape[1]; i++) {
        out->values[i] = x->values[i] > 0.0f ? x->values[i] : 0.0f;
    }
}

static void softmax(tensor *out, const tensor *x)
{
    int64_t n = x->shape[1];
    for (int64_t i = 0; i < x->shape[0]; i++) {
        const float *row = x->values + i * n;
        double largest = row[0];
        double sum = 0.0;
        for (int64_t j = 1; j < n; j++) {
            largest = fmax(largest, (double)row[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            sum += exp((double)row[j] - largest);
        }
        for (int64_t j = 0; j < n; j++) {
            out->values[i * n + j] = (float)(exp((double)row[j] - largest) / sum);
        }
    }
}

typedef struct mlp {
    tensor x, w1, b1, w2, b2;
    tensor t, hidden, active, t_1, logits, scores;
    fxtap_node n_t, n_addmm, n_relu, n_t_1, n_addmm_1, n_softmax;
    fxtap_capture *capture;
} mlp;

static void make_model(mlp *m, int64_t batch)
{
    m->x = new_tensor(2, batch, N_INPUTS);
    m->w1 = new_tensor(2, N_HIDDEN, N_INPUTS);
    m->b1 = new_tensor(1, 1, N_HIDDEN);
    m->w2 = new_tensor(2, N_CLASSES, N_HIDDEN);
    m->b2 = new_tensor(1, 1, N_CLASSES);
    m->hidden = new_tensor(2, batch, N_HIDDEN);
    m->active = new_tensor(2, batch, N_HIDDEN);
    m->logits = new_tensor(2, batch, N_CLASSES);
    m->scores = new_tensor(2, batch, N_CLASSES);
    m->t = transposed(&m->w1);
    m->t_1 = transposed(&m->w2);
    fill(&m->w1, 0.125f);
    fill(&m->b1, 0.125f);
    fill(&m->w2, 0.0884f);
    fill(&m->b2, 0.0884f);
}

static fxtap_graph *make_graph(mlp *m)
{
    fxtap_graph *graph;
    fxtap_value one, no;
    check(fxtap_graph_create(FXTAP_GRAPH_INFERENCE, &graph));
    check(fxtap_graph_add_int(graph, 1, &one));
    check(fxtap_graph_add_bool(graph, false, &no));
    add_input(graph, "x", &m->x);
    add_input(graph, "w1", &m->w1);
    add_input(graph, "b1", &m->b1);
    add_input(graph, "w2", &m->w2);
    add_input(graph, "b2", &m->b2);
    m->n_t = add_call(graph, "t", "aten.t.default", &m->w1.result, 1, &m->t);
    fxtap_value first[] = {m->b1.result, m->x.result, m->t.result};
    m->n_addmm = add_call(graph, "addmm", "aten.addmm.default", first, 3, &m->hidden);
    m->n_relu = add_call(graph, "relu", "aten.relu.default", &m->hidden.result, 1, &m->active);
    m->n_t_1 = add_call(graph, "t_1", "aten.t.default", &m->w2.result, 1, &m->t_1);
    fxtap_value second[] = {m->b2.result, m->active.result, m->t_1.result};
    m->n_addmm_1 = add_call(graph, "addmm_1", "aten.addmm.default", second, 3, &m->logits);
    fxtap_value third[] = {m->logits.result, one, no};
    m->n_softmax = add_call(graph, "_softmax", "aten._softmax.default", third, 3, &m->scores);
    add_node_at(HERE, graph, FXTAP_OP_OUTPUT, "output", "output", &m->scores.result, 1, NULL);
    return graph;
}

/* ---- dumping ---- */

/* Saves a number argument. */
static void save_int(fxtap_call *call, fxtap_node at, const char *position, uint64_t stamp, int64_t number)
{
    fxtap_view view = {.data = &number, .dtype = FXTAP_INT64};
    check(fxtap_call_save_copy(call, at, FXTAP_INPUT, position, stamp, &view));
}

static void run_relu(fxtap_call *call, fxtap_node at, tensor *x, tensor *out)
{
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, at, FXTAP_INPUT, "0", stamp, x);
    relu(out, x);
    save(call, at, FXTAP_OUTPUT, "0", stamp, out);
}

static void run_softmax(fxtap_call *call, fxtap_node at, tensor *x, tensor *out)
{
    uint64_t stamp = fxtap_call_stamp(call);
    save(call, at, FXTAP_INPUT, "0", stamp, x);
    save_int(call, at, "1", stamp, 1);
    softmax(out, x);
    save(call, at, FXTAP_OUTPUT, "0", stamp, out);
}

static void run_step(mlp *m)
{
    fxtap_call *call;
    uint64_t step;
    tensor *all[] = {&m->x,      &m->w1,     &m->b1,  &m->w2,     &m->b2,    &m->t,
                     &m->hidden, &m->active, &m->t_1, &m->logits, &m->scores};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->ticket = 0;
    }
    fill(&m->x, 1.0f);
    check(fxtap_call_begin(m->capture, &call));
    run_transpose(call, m->n_t, &m->w1, &m->t);
    run_addmm(call, m->n_addmm, &m->b1, &m->x, &m->t, &m->hidden);
    run_relu(call, m->n_relu, &m->hidden, &m->active);
    run_transpose(call, m->n_t_1, &m->w2, &m->t_1);
    run_addmm(call, m->n_addmm_1, &m->b2, &m->active, &m->t_1, &m->logits);
    run_softmax(call, m->n_softmax, &m->logits, &m->scores);
    check(fxtap_call_end(call, &step));
}

static void free_model(mlp *m)
{
    tensor *owners[] = {&m->x, &m->w1, &m->b1, &m->w2, &m->b2, &m->hidden, &m->active, &m->logits, &m->scores};
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        free(owners[i]->values);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: example_mlp DUMP [STEPS [BATCH [--stats]]]\n");
        return 2;
    }
    int n_steps = argc > 2 ? atoi(argv[2]) : 3;
    int batch = argc > 3 ? atoi(argv[3]) : 4;
    if (n_steps < 1 || batch < 1 || batch > MAX_BATCH) {
        fprintf(stderr, "example_mlp: at least one step, a batch of 1 to %d\n", MAX_BATCH);
        return 2;
    }
    bool stats_only = argc > 4 && strcmp(argv[4], "--stats") == 0;
    fxtap_dump_options options = {.struct_size = sizeof options,
                                  .path = argv[1],
                                  .world_size = 1,
                                  .type = stats_only ? FXTAP_DUMP_STATS : FXTAP_DUMP_NPY,
                                  .command = "example_mlp"};
    fxtap_dump *dump;
    mlp model;
    make_model(&model, batch);
    check(fxtap_dump_open(&options, &dump));
    fxtap_graph *graph = make_graph(&model);
    check(fxtap_dump_add_graph(dump, graph, 1, NULL, &model.capture));
    fxtap_graph_free(graph);
    for (int i = 0; i < n_steps; i++) {
        run_step(&model);
    }
    printf("Wrote %d steps to %s\n", n_steps, fxtap_dump_rank_path(dump));
    fxtap_dump_close(dump);
    free_model(&model);
    return 0;
}
