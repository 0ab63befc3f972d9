/* test_compare_pairing.c - pairing the operators of two programs that compute the same. */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fxtap/dump.h"
#include "fxtap/npy.h"
#include "pair/map.h"
#include "pair/traits.h"
#include "support_compare.h"
#include "support_graph.h"
#include "support_tree.h"

#define MAX_OPS 16
#define ROWS 4

/* An operator of a program: the names that it reads, and its result of ROWS x width numbers, generated from `seed`. */
typedef struct op {
    const char *name, *target, *code, *module;
    const char *reads[2]; /* "x" and "w" are the graph's inputs */
    int64_t width;
    double seed; /* equal seeds give equal numbers, nearly equal seeds nearly equal ones, other seeds unrelated ones */
} op;

typedef struct program {
    const char *root;
    const op *ops;
    size_t n_ops;
    size_t cut;               /* number of the first operator of a second graph; 0: one graph */
    int32_t rank, world_size; /* 0: there is one rank */
} program;

static void fill(double seed, int64_t width, float *out)
{
    for (int64_t i = 0; i < ROWS * width; i++) {
        double whole = floor(seed), part = seed - whole; /* the part counts as an error */
        out[i] = (float)(sin(whole * 1.7 + (double)i * (1.0 + whole * 0.37)) * (2.0 + cos(whole)) + part);
    }
}

static size_t find(const program *p, const char *name)
{
    for (size_t i = 0; i < p->n_ops; i++) {
        if (strcmp(p->ops[i].name, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static double seed_of(const program *p, const char *name, int64_t *width)
{
    size_t i = find(p, name);
    *width = i == SIZE_MAX ? 8 : p->ops[i].width;
    return i == SIZE_MAX ? (strcmp(name, "x") == 0 ? 101 : 102) : p->ops[i].seed;
}

typedef struct graph_names { /* the value that each name has in one graph */
    const char *names[MAX_OPS + 4];
    fxtap_node nodes[MAX_OPS + 4];
    size_t n;
} graph_names;

static fxtap_node node_for(fxtap_graph *graph, graph_names *known, const char *name)
{
    for (size_t i = 0; i < known->n; i++) {
        if (strcmp(known->names[i], name) == 0) {
            return known->nodes[i];
        }
    }
    char placeholder[64];
    snprintf(placeholder, sizeof placeholder, "arg_%s", name);
    known->names[known->n] = name;
    return known->nodes[known->n++] = sg_node(graph, FXTAP_OP_PLACEHOLDER, placeholder, placeholder, 0, NULL, 0);
}

/* A graph of the operators [first, end): names that these read but do not define are its inputs. */
static fxtap_capture *add_graph(fxtap_dump *dump, const program *p, size_t first, size_t end, uint32_t number,
                                fxtap_node *nodes)
{
    fxtap_graph *graph = sg_graph(FXTAP_GRAPH_INFERENCE);
    graph_names known = {.n = 0};
    const char *reasons[2 * MAX_OPS + 8] = {NULL};
    for (size_t i = first; i < end; i++) {
        for (size_t k = 0; k < 2 && p->ops[i].reads[k] != NULL; k++) {
            size_t from = find(p, p->ops[i].reads[k]);
            if (from == SIZE_MAX || from < first) {
                node_for(graph, &known, p->ops[i].reads[k]);
            }
        }
    }
    for (size_t i = first; i < end; i++) {
        const op *o = &p->ops[i];
        fxtap_value args[2];
        size_t n_args = 0;
        for (; n_args < 2 && o->reads[n_args] != NULL; n_args++) {
            args[n_args] = sg_ref(graph, node_for(graph, &known, o->reads[n_args]));
        }
        char stack[256];
        snprintf(stack, sizeof stack, "  File \"model.py\", line %zu, in forward\n    %s\n", i + 1, o->code);
        nodes[i] = sg_add(graph, &(fxtap_node_desc){.struct_size = sizeof(fxtap_node_desc),
                                                    .op = FXTAP_OP_CALL_FUNCTION,
                                                    .name = o->name,
                                                    .target = o->target,
                                                    .args = args,
                                                    .n_args = n_args,
                                                    .stack_trace = stack,
                                                    .module_path = o->module,
                                                    .module_type = "torch.nn.Module"});
        known.names[known.n] = o->name;
        known.nodes[known.n++] = nodes[i];
    }
    fxtap_capture *capture;
    assert_int_equal(fxtap_dump_add_graph(dump, graph, number, reasons, &capture), FXTAP_OK);
    fxtap_graph_free(graph);
    return capture;
}

static void submit(fxtap_call *call, fxtap_capture *capture, fxtap_node node, fxtap_io io, const char *position,
                   double seed, int64_t width, uint64_t stamp)
{
    float values[ROWS * 64];
    int64_t shape[] = {ROWS, width};
    fill(seed, width, values);
    fxtap_slot slot;
    assert_int_equal(fxtap_capture_slot(capture, node, io, position, NULL, &slot), FXTAP_OK);
    fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
    assert_int_equal(fxtap_call_submit_small(call, slot, stamp, &view, NULL, 0), FXTAP_OK);
}

static void run(fxtap_capture *capture, const program *p, size_t first, size_t end, const fxtap_node *nodes)
{
    fxtap_call *call;
    assert_int_equal(fxtap_call_begin(capture, &call), FXTAP_OK);
    for (size_t i = first; i < end; i++) {
        const op *o = &p->ops[i];
        uint64_t stamp = fxtap_call_stamp(call);
        for (size_t k = 0; k < 2 && o->reads[k] != NULL; k++) {
            int64_t width;
            double seed = seed_of(p, o->reads[k], &width);
            submit(call, capture, nodes[i], FXTAP_INPUT, k == 0 ? "0" : "1", seed, width, stamp);
        }
        submit(call, capture, nodes[i], FXTAP_OUTPUT, "0", o->seed, o->width, stamp);
    }
    uint64_t step;
    assert_int_equal(fxtap_call_end(call, &step), FXTAP_OK);
}

static void write(const program *p)
{
    fxtap_dump_options options = {.struct_size = sizeof options,
                                  .path = p->root,
                                  .rank = p->rank,
                                  .world_size = p->world_size > 0 ? p->world_size : 1,
                                  .type = FXTAP_DUMP_NPY};
    fxtap_dump *dump;
    fxtap_node nodes[MAX_OPS];
    assert_int_equal(fxtap_dump_open(&options, &dump), FXTAP_OK);
    size_t cut = p->cut > 0 ? p->cut : p->n_ops;
    run(add_graph(dump, p, 0, cut, 1, nodes), p, 0, cut, nodes);
    if (cut < p->n_ops) {
        run(add_graph(dump, p, cut, p->n_ops, 2, nodes), p, cut, p->n_ops, nodes);
    }
    fxtap_dump_close(dump);
}

static fxtap_report *compare(const sides *both, const op *golden, size_t n_golden, const op *target, size_t n_target,
                             size_t cut)
{
    write(&(program){.root = both->golden, .ops = golden, .n_ops = n_golden});
    write(&(program){.root = both->target, .ops = target, .n_ops = n_target, .cut = cut});
    return sc_compare(both->golden, both->target, NULL);
}

#define COMPARE(both, golden, target) compare(both, golden, COUNT_OF(golden), target, COUNT_OF(target), 0)

/* The node of target whose result is compared with that of golden's node; NULL: none. */
static const char *partner(const fxtap_report *report, const char *node)
{
    static char name[64];
    for (size_t i = 0; i < fxtap_report_pair_count(report); i++) {
        const fxtap_pair *pair = fxtap_report_pair(report, i);
        if (pair->io == FXTAP_OUTPUT && strcmp(pair->node, node) == 0 && pair->verdict != FXTAP_ONLY_TARGET) {
            const char *other = pair->target_name != NULL ? pair->target_name : pair->name;
            snprintf(name, sizeof name, "%.*s", (int)strcspn(other, "-"), other);
            return pair->verdict == FXTAP_ONLY_GOLDEN ? NULL : name;
        }
    }
    return NULL;
}

/* gelu against mul, erf, mul: the last one computes the line's result, and is named if it is wrong. */
static void a_region_stands_for_one_operator(void **state)
{
    const sides *both = *state;
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        assert_int_equal(sc_remove_sides(state), 0);
        assert_int_equal(sc_make_sides(state), 0);
        const op golden[] = {{"mm", "aten.mm.default", "h = x @ w", "a", {"x", "w"}, 8, 1},
                             {"gelu", "aten.gelu.default", "h = gelu(h)", "b", {"mm"}, 8, 2},
                             {"tanh", "aten.tanh.default", "h = tanh(h)", "c", {"gelu"}, 8, 3}};
        const op target[] = {{"mm", "aten.mm.default", "h = x @ w", "a", {"x", "w"}, 8, 1},
                             {"mul", "aten.mul.Tensor", "h = gelu(h)", "b", {"mm", "mm"}, 8, 4},
                             {"erf", "aten.erf.default", "h = gelu(h)", "b", {"mul"}, 8, 5},
                             {"mul_1", "aten.mul.Tensor", "h = gelu(h)", "b", {"erf", "mm"}, 8, is_wrong ? 9 : 2},
                             {"tanh", "aten.tanh.default", "h = tanh(h)", "c", {"mul_1"}, 8, is_wrong ? 10 : 3}};
        fxtap_report *report = COMPARE(both, golden, target);
        assert_string_equal(partner(report, "gelu"), "mul_1");
        assert_int_equal(sc_find(report, "gelu-aten.gelu.default.OUTPUT.0")->pairing, FXTAP_PAIR_REGION);
        assert_int_equal(sc_find(report, "gelu-aten.gelu.default.INPUT.0")->verdict, FXTAP_SAME); /* with mul's */
        assert_int_equal(fxtap_report_origin_count(report), is_wrong);
        assert_int_equal(fxtap_report_verdict(report), is_wrong ? FXTAP_DIFFERENT : FXTAP_SAME);
        if (is_wrong) {
            const fxtap_origin *origin = fxtap_report_origin(report, 0);
            assert_string_equal(origin->pair->node, "gelu");
            assert_string_equal(origin->other_operator, "aten.mul.Tensor");
            assert_non_null(strstr(origin->between, "erf"));
        }
        fxtap_report_free(report);
    }
}

/* The numbers in names continue over operators that a rewritten line adds: mul_1 is another product on each side. */
static void names_alone_prove_nothing(void **state)
{
    const op golden[] = {{"sin", "aten.sin.default", "h = sin(x)", "", {"x"}, 8, 1},
                         {"mul", "aten.mul.Tensor", "h = h * s", "", {"sin", "w"}, 8, 2},
                         {"silu", "aten.silu.default", "h = silu(h) * g", "", {"mul"}, 8, 3},
                         {"mul_1", "aten.mul.Tensor", "h = silu(h) * g", "", {"silu", "w"}, 8, 4},
                         {"tanh", "aten.tanh.default", "return tanh(h)", "", {"mul_1"}, 8, 5}};
    const op target[] = {{"sin", "aten.sin.default", "h = sin(x)", "", {"x"}, 8, 1},
                         {"mul", "aten.mul.Tensor", "h = h * s", "", {"sin", "w"}, 8, 2},
                         {"sigmoid", "aten.sigmoid.default", "h = h * sigmoid(h) * g", "", {"mul"}, 8, 6},
                         {"mul_1", "aten.mul.Tensor", "h = h * sigmoid(h) * g", "", {"mul", "sigmoid"}, 8, 3.0000001},
                         {"mul_2", "aten.mul.Tensor", "h = h * sigmoid(h) * g", "", {"mul_1", "w"}, 8, 4.0000001},
                         {"tanh", "aten.tanh.default", "return tanh(h)", "", {"mul_2"}, 8, 5.0000001}};
    fxtap_report *report = COMPARE(*state, golden, target);
    assert_string_equal(partner(report, "mul_1"), "mul_2");
    assert_string_equal(partner(report, "silu"), "mul_1");
    assert_int_equal(fxtap_report_origin_count(report), 0);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_CLOSE);
    fxtap_report_free(report);
}

/* One side's graph is split in two: the second graph's input is the first one's result. */
static void a_cut_graph_pairs_in_full(void **state)
{
    const sides *both = *state;
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        assert_int_equal(sc_remove_sides(state), 0);
        assert_int_equal(sc_make_sides(state), 0);
        const op golden[] = {{"sin", "aten.sin.default", "y = sin(x)", "", {"x"}, 8, 1},
                             {"mul", "aten.mul.Tensor", "y = y * w", "", {"sin", "w"}, 8, 2},
                             {"cos", "aten.cos.default", "z = cos(y)", "", {"mul"}, 8, 3},
                             {"tanh", "aten.tanh.default", "return tanh(z)", "", {"cos"}, 8, 4}};
        op target[COUNT_OF(golden)];
        memcpy(target, golden, sizeof golden);
        target[2].seed = is_wrong ? 9 : 3;
        target[3].seed = is_wrong ? 10 : 4;
        fxtap_report *report = compare(both, golden, COUNT_OF(golden), target, COUNT_OF(target), 2);
        assert_int_equal(fxtap_report_count(report, FXTAP_ONLY_GOLDEN) + fxtap_report_count(report, FXTAP_ONLY_TARGET),
                         0);
        assert_non_null(fxtap_report_steps(report));
        assert_int_equal(fxtap_report_verdict(report), is_wrong ? FXTAP_DIFFERENT : FXTAP_SAME);
        assert_int_equal(fxtap_report_origin_count(report), is_wrong);
        if (is_wrong) {
            assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "cos");
            assert_int_equal(fxtap_report_origin(report, 0)->reason, FXTAP_ORIGIN_OPERATOR);
        }
        fxtap_report_free(report);
    }
}

/* After a fault all values differ: operators pair by their producers, whatever their lines and names. */
static void wiring_carries_pairs_below_a_fault(void **state)
{
    const op golden[] = {{"mm", "aten.mm.default", "h = x @ w", "", {"x", "w"}, 8, 1},
                         {"relu", "aten.relu.default", "h = relu(h)", "", {"mm"}, 8, 2},
                         {"mul", "aten.mul.Tensor", "h = h * w", "", {"relu", "w"}, 8, 3},
                         {"exp", "aten.exp.default", "h = exp(h)", "", {"mul"}, 8, 4}};
    const op target[] = {{"neg", "aten.neg.default", "unused = -x", "", {"x"}, 8, 20},
                         {"mm_7", "aten.mm.default", "t = x.matmul(w)", "", {"x", "w"}, 8, 11},
                         {"relu_7", "aten.relu.default", "t = t.relu()", "", {"mm_7"}, 8, 12},
                         {"mul_7", "aten.mul.Tensor", "t = w * t", "", {"w", "relu_7"}, 8, 13},
                         {"exp_7", "aten.exp.default", "t = t.exp()", "", {"mul_7"}, 8, 14}};
    fxtap_report *report = COMPARE(*state, golden, target);
    assert_string_equal(partner(report, "mm"), "mm_7");
    assert_string_equal(partner(report, "relu"), "relu_7");
    assert_string_equal(partner(report, "mul"), "mul_7"); /* its arguments are swapped, which is not a difference */
    assert_string_equal(partner(report, "exp"), "exp_7");
    assert_int_equal(fxtap_report_origin_count(report), 1);
    assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "mm");
    assert_int_equal(fxtap_report_origin(report, 0)->n_carried, 3);
    assert_int_equal(sc_find(report, "neg-aten.neg.default.OUTPUT.0")->is_missing, false);
    fxtap_report_free(report);
}

/* The pair is reported with the line of its reader; the position of the first operator in between is reported too. */
static void what_came_between_is_placed(void **state)
{
    const sides *both = *state;
    const op golden[] = {{"relu", "aten.relu.default", "h = relu(x)", "layers.first", {"x"}, 8, 1},
                         {"tanh", "aten.tanh.default", "y = tanh(h)", "layers.reader", {"relu"}, 8, 2}};
    const op target[] = {{"relu", "aten.relu.default", "h = relu(x)", "layers.first", {"x"}, 8, 1},
                         {"half", "aten._to_copy.default", "h = cast(h)", "layers.cast", {"relu"}, 8, 3},
                         {"back", "aten._to_copy.default", "h = cast(h)", "layers.cast", {"half"}, 8, 3},
                         {"tanh", "aten.tanh.default", "y = tanh(h)", "layers.reader", {"back"}, 8, 4}};
    fxtap_report_free(COMPARE(both, golden, target));
    for (int turn = 0; turn < 2; turn++) {
        fxtap_report *report =
            turn == 0 ? sc_compare(both->golden, both->target, NULL) : sc_compare(both->target, both->golden, NULL);
        assert_int_equal(fxtap_report_origin_count(report), 1);
        const fxtap_origin *origin = fxtap_report_origin(report, 0);
        assert_int_equal(origin->reason, FXTAP_ORIGIN_BEFORE);
        assert_string_equal(origin->pair->node, "tanh");
        assert_string_equal(origin->between, turn == 0 ? "half, back, only in target" : "half, back, only in golden");
        assert_string_equal(origin->between_source, "model.py:2");
        assert_string_equal(origin->between_code, "h = cast(h)");
        assert_string_equal(origin->between_module, "layers.cast");
        fxtap_report_free(report);
    }
}

/* Layers in another order, below another root: they are identified by module and value, not by order. */
static void order_is_the_last_resort(void **state)
{
    const op golden[] = {{"mm", "aten.mm.default", "return x @ self.w", "L['self'].left", {"x", "w"}, 8, 1},
                         {"mm_1", "aten.mm.default", "return x @ self.w", "L['self'].right", {"x", "w"}, 8, 2},
                         {"add", "aten.add.Tensor", "return a + b", "L['self']", {"mm", "mm_1"}, 8, 3}};
    const op target[] = {
        {"mm", "aten.mm.default", "return x @ self.w", "L['model']._orig_mod.net.right", {"x", "w"}, 8, 2},
        {"mm_1", "aten.mm.default", "return x @ self.w", "L['model']._orig_mod.net.left", {"x", "w"}, 8, 7},
        {"add", "aten.add.Tensor", "return a + b", "L['model']._orig_mod.net", {"mm_1", "mm"}, 8, 9},
        {"clone", "aten.clone.default", "return y.clone()", "", {"add"}, 8, 9}};
    fxtap_report *report = COMPARE(*state, golden, target);
    assert_string_equal(partner(report, "mm"), "mm_1");
    assert_string_equal(partner(report, "mm_1"), "mm");
    assert_int_equal(fxtap_report_origin_count(report), 1);
    assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "mm");
    fxtap_report_free(report);
}

/* Nodes missing from the other program are listed, and are not a difference; equal graphs must have all nodes. */
static void only_what_should_be_there_is_missing(void **state)
{
    const sides *both = *state;
    const op golden[] = {{"mm", "aten.mm.default", "h = x @ w", "", {"x", "w"}, 8, 1},
                         {"sum", "aten.sum.default", "log(h.sum())", "", {"mm"}, 1, 2},
                         {"relu", "aten.relu.default", "h = relu(h)", "", {"mm"}, 8, 3}};
    const op target[] = {{"mm", "aten.mm.default", "h = x @ w", "", {"x", "w"}, 8, 1},
                         {"relu", "aten.relu.default", "h = relu(h)", "", {"mm"}, 8, 3}};
    fxtap_report *report = COMPARE(both, golden, target);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    assert_int_equal(fxtap_report_count(report, FXTAP_ONLY_GOLDEN), 2);
    assert_int_equal(fxtap_report_missing_count(report), 0);
    fxtap_report_free(report);
    fxtap_compare_options strict;
    fxtap_compare_options_init(&strict);
    strict.strict = true;
    report = sc_compare(both->golden, both->target, &strict);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_DIFFERENT);
    assert_int_equal(fxtap_report_missing_count(report), 2);
    fxtap_report_free(report);
}

/* A replica that took another branch has a different graph, but pairs nevertheless. */
static void replicas_whose_graphs_differ_are_aligned(void **state)
{
    const sides *both = *state;
    const op first[] = {{"sin", "aten.sin.default", "y = sin(x)", "", {"x"}, 8, 1},
                        {"tanh", "aten.tanh.default", "return tanh(y)", "", {"sin"}, 8, 2}};
    const op second[] = {{"sin", "aten.sin.default", "y = sin(x)", "", {"x"}, 8, 1},
                         {"mul", "aten.mul.Tensor", "y = y * w", "", {"sin", "w"}, 8, 7},
                         {"tanh", "aten.tanh.default", "return tanh(y)", "", {"mul"}, 8, 8}};
    write(&(program){.root = both->golden, .ops = first, .n_ops = COUNT_OF(first), .world_size = 2});
    write(&(program){.root = both->golden, .ops = second, .n_ops = COUNT_OF(second), .rank = 1, .world_size = 2});
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    fxtap_reader *reader = NULL;
    fxtap_report *report = NULL;
    assert_int_equal(fxtap_reader_open(both->golden, &reader), FXTAP_OK);
    assert_int_equal(fxtap_compare_ranks(reader, &options, &report), FXTAP_OK);
    fxtap_reader_close(reader);
    assert_int_equal(sc_find(report, "sin-aten.sin.default.OUTPUT.0")->verdict, FXTAP_SAME);
    assert_int_equal(fxtap_report_origin_count(report), 1);
    assert_string_equal(fxtap_report_origin(report, 0)->pair->node, "tanh");
    assert_string_equal(fxtap_report_origin(report, 0)->between, "mul, only in target");
    fxtap_report_free(report);
}

static bool has_warning(const fxtap_report *report, const char *part)
{
    for (size_t i = 0; i < fxtap_report_warning_count(report); i++) {
        if (strstr(fxtap_report_warning(report, i), part) != NULL) {
            return true;
        }
    }
    return false;
}

/* A map may name nodes and their tensors; unused lines are reported. */
static void a_map_pairs_nodes_and_tensors(void **state)
{
    const sides *both = *state;
    const op golden[] = {{"mm", "aten.mm.default", "h = x @ w", "", {"x", "w"}, 8, 1},
                         {"relu", "aten.relu.default", "h = relu(h)", "", {"mm"}, 8, 2}};
    const op target[] = {{"fc", "engine.fc", "fc(w, x)", "", {"w", "x"}, 8, 1},
                         {"act", "engine.act", "act(h)", "", {"fc"}, 8, 2}};
    write(&(program){.root = both->golden, .ops = golden, .n_ops = COUNT_OF(golden)});
    write(&(program){.root = both->target, .ops = target, .n_ops = COUNT_OF(target)});
    static const char lines[] = "mm fc\nrelu act\n"
                                "mm-aten.mm.default.INPUT.0 fc-engine.fc.INPUT.1\n"
                                "mm-aten.mm.default.INPUT.1 fc-engine.fc.INPUT.0\n"
                                "gelu act\nmm other\n";
    char path[256];
    snprintf(path, sizeof path, "%s.map", both->golden);
    tree_write(path, lines, sizeof lines - 1);
    fxtap_compare_options options;
    fxtap_compare_options_init(&options);
    options.map_path = path;
    fxtap_report *report = sc_compare(both->golden, both->target, &options);
    assert_int_equal(remove(path), 0);
    assert_int_equal(fxtap_report_verdict(report), FXTAP_SAME);
    assert_string_equal(sc_find(report, "mm-aten.mm.default.INPUT.0")->target_name, "fc-engine.fc.INPUT.1");
    assert_int_equal(sc_find(report, "mm-aten.mm.default.INPUT.0")->pairing, FXTAP_PAIR_MAPPED);
    assert_int_equal(fxtap_report_warning_count(report), 2);
    assert_true(has_warning(report, "line 5 matches nothing"));
    assert_true(has_warning(report, "line 6: line 1 already maps mm"));
    fxtap_report_free(report);
}

static fx_sampling sample(const sides *both, const float *golden, const float *target, int64_t n)
{
    const float *values[] = {golden, target};
    const char *roots[] = {both->golden, both->target};
    char paths[2][256];
    fxtap_tensor_info infos[2] = {{0}};
    fx_trait traits[2] = {{0}};
    fx_arena arena;
    fx_arena_init(&arena);
    for (int side = 0; side < 2; side++) {
        snprintf(paths[side], sizeof paths[side], "%s/a.npy", roots[side]);
        const fxtap_view view = {.data = values[side], .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = &n};
        remove(paths[side]);
        assert_int_equal(fxtap_npy_save(paths[side], &view), FXTAP_OK);
        infos[side].path = paths[side];
        infos[side].stats.abs_max = 4.0;
        traits[side].value = &infos[side];
    }
    fx_sampling found = fx_compare_samples(&arena, &traits[0], &traits[1]);
    fx_arena_clear(&arena);
    return found;
}

/* The same elements in another order have equal statistics: a NaN at another position is the difference. */
static void samples_that_are_not_finite_count(void **state)
{
    assert_int_equal(sample(*state, (float[]){NAN, 4, 4}, (float[]){NAN, 4, 4}, 3), FX_SAMPLES_AGREE);
    assert_int_equal(sample(*state, (float[]){NAN, 4, 4}, (float[]){4, 4, NAN}, 3), FX_SAMPLES_DIFFER);
    assert_int_equal(sample(*state, (float[]){INFINITY, 4}, (float[]){INFINITY, 4}, 2), FX_SAMPLES_AGREE);
    assert_int_equal(sample(*state, (float[]){INFINITY, 4}, (float[]){-INFINITY, 4}, 2), FX_SAMPLES_DIFFER);
    assert_int_equal(sample(*state, (float[]){1, 4}, (float[]){1.01f, 4}, 2), FX_SAMPLES_AGREE);
}

static const char *applied(const char *text, const char *name)
{
    static char buffer[64];
    static fx_arena arena;
    fx_arena_clear(&arena);
    const fx_map *map;
    assert_int_equal(fx_map_parse(&arena, "map", text, strlen(text), &map), FXTAP_OK);
    return fx_map_apply(map, name, buffer, sizeof buffer) > 0 ? buffer : NULL;
}

static void a_map_carries_over_what_stars_took(void **state)
{
    (void)state;
    assert_string_equal(applied("a b", "a"), "b");
    assert_null(applied("a b", "ab"));
    assert_string_equal(applied("x*y*z *-*", "x1yy2z"), "1-y2");
    assert_string_equal(applied("*.w *", "layers.0.w"), "layers.0");
    assert_string_equal(applied("# a b\n\n a* first\r\nab* second", "abc"), "first");
    assert_string_equal(applied("** *", "abc"), "");
    char long_name[4096];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_null(applied("*a*a*a*a*a*a*a*b x", long_name)); /* without measurable time */
}

static void a_map_that_is_none_names_the_line(void **state)
{
    (void)state;
    static const char *const texts[] = {"a b\none", "a b\na b c", "a b\n* **", "a b\n********* x", "\n* *\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        fx_arena arena;
        fx_arena_init(&arena);
        const fx_map *map;
        fxtap_status status = fx_map_parse(&arena, "map", texts[i], strlen(texts[i]), &map);
        assert_int_equal(status, i == 4 ? FXTAP_OK : FXTAP_E_INVALID);
        assert_true(status == FXTAP_OK || strstr(fxtap_error_message(), "map: line 2") != NULL);
        fx_arena_clear(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIDED(a_region_stands_for_one_operator),
        SIDED(names_alone_prove_nothing),
        SIDED(a_cut_graph_pairs_in_full),
        SIDED(wiring_carries_pairs_below_a_fault),
        SIDED(what_came_between_is_placed),
        SIDED(order_is_the_last_resort),
        SIDED(only_what_should_be_there_is_missing),
        SIDED(replicas_whose_graphs_differ_are_aligned),
        SIDED(a_map_pairs_nodes_and_tensors),
        SIDED(samples_that_are_not_finite_count),
        cmocka_unit_test(a_map_carries_over_what_stars_took),
        cmocka_unit_test(a_map_that_is_none_names_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
