/* test_compare_pairing.c - which operator of one graph is held against which of another that computes the same. */
#include "support_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/pair_nodes.h"

#define MAX_NODES 16

/* A side: operators with a line of code, the shape of the result (4 x width) and its root mean square. */
typedef struct graph {
    fxtap_node_info infos[MAX_NODES];
    fxtap_tensor_info outputs[MAX_NODES];
    int64_t shapes[MAX_NODES][2];
    fx_node_entry entries[MAX_NODES];
    fx_node_list list;
} graph;

static size_t add(graph *g, const char *name, const char *target, const char *code, int64_t width, double rms)
{
    size_t i = g->list.n_items++;
    g->shapes[i][0] = 4;
    g->shapes[i][1] = width;
    g->infos[i] = (fxtap_node_info){.order = i, .name = name, .target = target, .source_file = "model.py", .source_code = code,
                                    .source_function = "forward", .module_path = "block"};
    g->outputs[i] = (fxtap_tensor_info){.node = &g->infos[i], .io = FXTAP_OUTPUT, .has_meta = true, .ndim = 2,
                                        .shape = g->shapes[i], .has_stats = true};
    g->outputs[i].stats = (fxtap_stats){.count = (uint64_t)(4 * width), .rms = rms, .abs_max = 2 * rms, .min = -rms,
                                        .max = 2 * rms, .mean = rms / 3};
    g->entries[i] = (fx_node_entry){.info = &g->infos[i], .name = name, .target = target, .output = &g->outputs[i],
                                    .n_alike = 1, .partner = FX_MISSING};
    g->list.items = g->entries;
    return i;
}

/* Two empty ones. */
static int make_graphs(void **state)
{
    static graph both[2];
    memset(both, 0, sizeof both);
    *state = both;
    return 0;
}

#define ON_GRAPHS(test) cmocka_unit_test_setup(test, make_graphs)

static void match(graph *golden, graph *target)
{
    assert_int_equal(fx_match_nodes(NULL, false, &golden->list, &target->list), FXTAP_OK);
    for (size_t i = 0; i < golden->list.n_items; i++) { /* partners know each other */
        size_t partner = golden->entries[i].partner;
        assert_true(partner == FX_MISSING || target->entries[partner].partner == i);
    }
}

/* gelu against mul, erf, add, mul: the last one is what the line computes. */
static void the_end_of_a_line_is_what_it_computes(void **state)
{
    graph *golden = *state, *target = golden + 1;
    size_t before = add(golden, "mm", "aten.mm", "h = x @ w", 8, 1);
    size_t gelu = add(golden, "gelu", "aten.gelu", "h = gelu(h)", 8, 0.5);
    add(target, "mm", "aten.mm", "h = x @ w", 8, 1);
    add(target, "mul", "aten.mul", "h = gelu(h)", 8, 0.4);
    add(target, "erf", "aten.erf", "h = gelu(h)", 8, 0.3);
    size_t last = add(target, "mul_1", "aten.mul", "h = gelu(h)", 8, 0.9); /* wrong, and paired all the same */
    match(golden, target);
    assert_int_equal(golden->entries[before].partner, 0);
    assert_int_equal(golden->entries[before].pairing, FXTAP_PAIR_EXACT);
    assert_int_equal(golden->entries[gelu].partner, last);
    assert_int_equal(golden->entries[gelu].pairing, FXTAP_PAIR_SOURCE);
    assert_true(golden->entries[gelu].confidence < 1.0);
}

/* What autograd saves it detaches, behind the operator: not the other side's counterpart. */
static void what_passes_a_value_on_is_no_end(void **state)
{
    static const char *const targets[] = {"aten.detach.default", "aten.alias.default", "aten.clone.default",
                                          "aten.view.default",   "operator.getitem",   "aten.detach"};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        assert_int_equal(make_graphs(state), 0);
        graph *golden = *state, *target = golden + 1;
        size_t gelu = add(golden, "gelu", "aten.gelu.default", "h = act(h)", 8, 0.5);
        add(golden, "mm", "aten.mm.default", "h = h @ w", 8, 1);
        size_t relu = add(target, "relu", "aten.relu.default", "h = act(h)", 8, 0.9);
        for (size_t n = 0; n < 2; n++) { /* one behind the other */
            size_t passed_on = add(target, "passed_on", targets[i], "h = act(h)", 8, 0.9);
            target->entries[passed_on].input = &target->outputs[relu];
        }
        add(target, "mm", "aten.mm.default", "h = h @ w", 8, 1);
        match(golden, target);
        assert_int_equal(golden->entries[gelu].partner, relu);
        assert_int_equal(target->entries[relu + 1].partner, FX_MISSING);
        assert_int_equal(target->entries[relu + 2].partner, FX_MISSING);
    }
}

/* A view to another shape, a transposition, an operator whose name only begins like one: these are ends. */
static void what_changes_a_value_is_an_end(void **state)
{
    static const char *const targets[] = {"aten.view.default", "aten.t.default", "aten.view.dtype", "aten.detach_and_add"};
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        assert_int_equal(make_graphs(state), 0);
        graph *golden = *state, *target = golden + 1;
        size_t linear = add(golden, "linear", "aten.linear.default", "h = fc(h)", 8, 0.5);
        size_t addmm = add(target, "addmm", "aten.addmm.default", "h = fc(h)", i == 0 ? 16 : 8, 0.9);
        size_t end = add(target, "end", targets[i], "h = fc(h)", 8, 0.9);
        target->entries[end].input = &target->outputs[addmm];
        target->outputs[addmm].dtype = FXTAP_FLOAT32;
        target->outputs[end].dtype = i == 2 ? FXTAP_INT32 : FXTAP_FLOAT32;
        match(golden, target);
        assert_int_equal(golden->entries[linear].partner, end);
    }
}

/* In inference a dropout is a clone, the whole line. A detach that stands apart from its operator is no second end. */
static void a_line_that_computes_nothing_ends_all_the_same(void **state)
{
    graph *golden = *state, *target = golden + 1;
    size_t dropout = add(golden, "dropout", "aten.native_dropout.default", "h = drop(h)", 8, 0.5);
    size_t gelu = add(golden, "gelu", "aten.gelu.default", "h = act(h)", 8, 0.5);
    size_t clone = add(target, "clone", "aten.clone.default", "h = drop(h)", 8, 0.9);
    size_t relu = add(target, "relu", "aten.relu.default", "h = act(h)", 8, 0.9);
    add(target, "neg", "aten.neg.default", "y = -h", 8, 0.9);
    size_t detach = add(target, "detach", "aten.detach.default", "h = act(h)", 8, 0.9);
    match(golden, target);
    assert_int_equal(golden->entries[dropout].partner, clone);
    assert_int_equal(golden->entries[gelu].partner, relu);
    assert_int_equal(target->entries[detach].partner, FX_MISSING);
}

/* On edited lines, two copies at one place may be of two values. */
static void copies_pair_by_no_neighbours(void **state)
{
    graph *golden = *state, *target = golden + 1;
    add(golden, "mm", "aten.mm.default", "h = x @ w", 8, 1);
    size_t copy = add(golden, "detach", "aten.detach.default", "h = softmax(h)", 8, 1);
    size_t sum = add(golden, "sum", "aten.sum.default", "h = total(h)", 8, 1);
    add(target, "mm", "aten.mm.default", "h = x @ w", 8, 1);
    add(target, "detach_3", "aten.detach.default", "h = exp(h)", 8, 1);
    add(target, "sum_1", "aten.sum.default", "h = h.sum()", 8, 1);
    match(golden, target);
    assert_int_equal(golden->entries[copy].partner, FX_MISSING);
    assert_int_equal(golden->entries[sum].partner, 2);
}

/* view_1 is another view on either side: names count on with the operators that a decomposition adds. */
static void names_alone_prove_nothing(void **state)
{
    graph *golden = *state, *target = golden + 1;
    size_t first = add(golden, "view", "aten.view", "a = f(x)", 8, 1);
    size_t second = add(golden, "view_1", "aten.view", "a = f(x)", 16, 2);
    add(golden, "add", "aten.add", "a = f(x)", 16, 3);
    add(target, "view", "aten.view", "a = f(x)", 32, 5);
    add(target, "view_1", "aten.view", "a = f(x)", 8, 1);
    add(target, "view_2", "aten.view", "a = f(x)", 16, 2);
    add(target, "add", "aten.add", "a = f(x)", 16, 3);
    match(golden, target);
    assert_int_equal(golden->entries[first].partner, 1);
    assert_int_equal(golden->entries[second].partner, 2);
    assert_int_equal(target->entries[0].partner, FX_MISSING);
}

/* Of one shape there are two on one side and three on the other: statistics decide, and what they do not, stays alone. */
static void statistics_confirm_where_numbers_differ(void **state)
{
    graph *golden = *state, *target = golden + 1;
    size_t one = add(golden, "mul", "aten.mul", "a = f(x)", 8, 1);
    size_t two = add(golden, "mul_1", "aten.mul", "a = f(x)", 8, 7);
    add(golden, "sum", "aten.sum", "a = f(x)", 1, 3);
    add(target, "mul", "aten.mul", "a = f(x)", 8, 4);
    add(target, "mul_1", "aten.mul", "a = f(x)", 8, 1.001);
    add(target, "mul_2", "aten.mul", "a = f(x)", 8, 9);
    add(target, "sum", "aten.sum", "a = f(x)", 1, 3);
    match(golden, target);
    assert_int_equal(golden->entries[one].partner, 1);
    assert_int_equal(golden->entries[one].pairing, FXTAP_PAIR_SOURCE);
    assert_int_equal(golden->entries[two].partner, FX_MISSING);
}

/* The line was edited: name, operator and shape have to do. */
static void an_edited_line_pairs_by_name(void **state)
{
    graph *golden = *state, *target = golden + 1;
    size_t edited = add(golden, "mm", "aten.mm", "h = x @ w", 8, 1);
    size_t same = add(golden, "relu", "aten.relu", "h = relu(h)", 8, 1);
    size_t renamed = add(golden, "mm_1", "aten.mm", "y = h @ v", 8, 1);
    add(target, "mm", "aten.mm", "h = torch.mm(x, w)", 8, 50);
    add(target, "relu", "aten.relu", "h = relu(h)", 8, 50);
    add(target, "mm_7", "aten.mm", "y = torch.mm(h, v)", 8, 50);
    match(golden, target);
    assert_int_equal(golden->entries[edited].partner, 0);
    assert_int_equal(golden->entries[same].partner, 1);
    assert_int_equal(golden->entries[same].pairing, FXTAP_PAIR_EXACT);
    assert_int_equal(golden->entries[renamed].partner, 2);
    assert_int_equal(golden->entries[renamed].pairing, FXTAP_PAIR_ORDER);
}

static void graphs_of_equal_structure_pair_by_position(void **state)
{
    graph *golden = *state, *target = golden + 1;
    for (size_t i = 0; i < 3; i++) {
        add(golden, "mm", "aten.mm", "a", 8, 1);
        add(target, i == 0 ? "mm_2" : "mm", "aten.mm", "b", 9, 2);
    }
    assert_int_equal(fx_match_nodes(NULL, true, &golden->list, &target->list), FXTAP_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(golden->entries[i].partner, i);
        assert_int_equal(golden->entries[i].pairing, FXTAP_PAIR_EXACT);
    }
}

static const char *applied(const char *text, const char *name)
{
    static char buffer[64];
    static fx_arena arena;
    fx_arena_clear(&arena);
    const fx_map *map;
    assert_int_equal(fx_map_parse(&arena, "map", text, strlen(text), &map), FXTAP_OK);
    return fx_map_apply(map, name, buffer, sizeof buffer) ? buffer : NULL;
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
    assert_null(applied("*a*a*a*a*a*a*a*b x", long_name)); /* in no time */
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
        ON_GRAPHS(the_end_of_a_line_is_what_it_computes),
        ON_GRAPHS(what_passes_a_value_on_is_no_end),
        ON_GRAPHS(what_changes_a_value_is_an_end),
        ON_GRAPHS(a_line_that_computes_nothing_ends_all_the_same),
        ON_GRAPHS(copies_pair_by_no_neighbours),
        ON_GRAPHS(names_alone_prove_nothing),
        ON_GRAPHS(statistics_confirm_where_numbers_differ),
        ON_GRAPHS(an_edited_line_pairs_by_name),
        ON_GRAPHS(graphs_of_equal_structure_pair_by_position),
        cmocka_unit_test(a_map_carries_over_what_stars_took),
        cmocka_unit_test(a_map_that_is_none_names_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
