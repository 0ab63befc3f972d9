/* The keys ignore names, paths and the order in which SymPy prints, but depend on all that a graph computes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fxtap/graph.h"
#include "graph/symbols.h"
#include "support_graph.h"
#include "util/memory.h"

/* ---- canonical forms ---- */

static void check_canonical(const char *expression, const char *expected)
{
    fx_symbols symbols;
    fx_symbols_init(&symbols);
    assert_true(fx_symbols_see(&symbols, "s77") && fx_symbols_see(&symbols, "s5"));
    assert_string_equal(fx_symbols_canonical(&symbols, expression), expected);
    fx_symbols_clear(&symbols);
}

static void test_canonical(void **state)
{
    (void)state;
    check_canonical("s77", "s#0");
    check_canonical("u3", "u#2");
    check_canonical("s77 + 2", "(+ 2 s#0)");
    check_canonical("s5 + s77", "(+ s#0 s#1)");
    check_canonical("s5*s77", "(* s#0 s#1)");
    check_canonical("s5 + s77 - 1", "(+ (neg 1) s#0 s#1)");
    check_canonical("-s5 + s77", "(+ (neg s#1) s#0)");
    check_canonical("s77 - s5", "(+ (neg s#1) s#0)");
    check_canonical("-(s5 - s77)", "(+ (neg s#1) s#0)");
    check_canonical("-2*s77*s5 + 1", "(+ (neg (* 2 s#0 s#1)) 1)");
    check_canonical("((s77 + 1)//2)", "(// (+ 1 s#0) 2)");
    check_canonical("(s77//s5)", "(// s#0 s#1)");
    check_canonical("Max(1, s77)", "(Max 1 s#0)");
    check_canonical("Max(s77, 1)", "(Max 1 s#0)");
    check_canonical("Mod(s77, 8)", "(Mod s#0 8)");
    check_canonical("Mod(8, s77)", "(Mod 8 s#0)");
    check_canonical("s77**2", "(** s#0 2)");
    check_canonical("2**-s77", "(** 2 (neg s#0))");
    check_canonical("s77/2", "(* (inv 2) s#0)");
    check_canonical("1.5*s77", "(* 1.5 s#0)");
    check_canonical("1e-05*s77", "(* 1e-05 s#0)");
    check_canonical("s77 > s5", "(< s#1 s#0)");
    check_canonical("s5 < s77", "(< s#1 s#0)");
    check_canonical("Eq(s5, s77)", "(Eq s#0 s#1)");
    check_canonical("(s77 >= 2) & (s5 < 3)", "(& (< s#1 3) (<= 2 s#0))");
    check_canonical("Piecewise((1, s77 > 2), (0, True))", "(Piecewise (tuple 1 (< 2 s#0)) (tuple 0 True))");
    check_canonical("log2(s77)", "(log2 s#0)");
    check_canonical("zuf0 + ToFloat(s77)", "(+ (ToFloat s#0) zuf#2)");
    /* not expressions: compared as tokens */
    check_canonical("s77 ? s5 : xs5", "s#0?s#1:xs#2");
    check_canonical("s77 +", "s#0+");
    check_canonical("f(s77", "f(s#0");
    check_canonical("", "");
    check_canonical("\xff s77", "\xff"
                                "s#0");
}

static void test_canonical_bounds(void **state)
{
    (void)state;
    fx_symbols symbols;
    fx_symbols_init(&symbols);
    char *deep = malloc(200001);
    assert_non_null(deep);
    memset(deep, '(', 200000);
    deep[200000] = '\0';
    assert_non_null(fx_symbols_canonical(&symbols, deep));
    memset(deep, '-', 200000);
    assert_non_null(fx_symbols_canonical(&symbols, deep));
    for (size_t i = 0; i < 4000; i += 2) {
        memcpy(deep + i, "1+", 2);
    }
    memcpy(deep + 4000, "1", 2);
    assert_non_null(fx_symbols_canonical(&symbols, deep));
    for (size_t i = 0; i < 4000; i += 2) {
        memcpy(deep + i, "1%", 2);
    }
    assert_non_null(fx_symbols_canonical(&symbols, deep));
    free(deep);
    fx_symbols_clear(&symbols);
}

/* ---- random graphs, built twice with different names ---- */

enum { N_SYMBOLS = 5, N_CHANGES = 10 };

/* The differences between two builds of the same graph. */
typedef struct disguise {
    unsigned symbol[N_SYMBOLS]; /* torch's numbers */
    const char *prefix;         /* of node names */
    const char *path;           /* of module paths and files */
    const char *device;
    double hint;
    int change; /* 0: none; otherwise what is different in the node at `changed` */
    unsigned changed;
} disguise;

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A sum or product of symbols as SymPy prints it: ordered by name. */
static void expression_of(const disguise *d, uint32_t *seed, char *out, size_t size)
{
    char names[3][16];
    size_t n = 1 + next_random(seed) % 3;
    uint32_t first = next_random(seed);
    bool product = next_random(seed) % 2 == 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "s%u", d->symbol[(first + i) % N_SYMBOLS]);
    }
    qsort(names, n, sizeof names[0], by_name);
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        length += (size_t)snprintf(out + length, size - length, "%s%s", i == 0 ? "" : product ? "*" : " + ", names[i]);
    }
    uint32_t form = next_random(seed) % 4;
    char inner[64];
    memcpy(inner, out, length + 1);
    if (form == 1) {
        snprintf(out, size, "%s + %u", inner, 1 + next_random(seed) % 9);
    } else if (form == 2) {
        snprintf(out, size, "((%s)//2)", inner);
    } else if (form == 3) {
        snprintf(out, size, "Max(1, %s)", inner);
    }
}

static fxtap_value meta_of(fxtap_graph *g, const disguise *d, uint32_t *seed, int change)
{
    static const fxtap_dtype dtypes[] = {FXTAP_FLOAT32, FXTAP_BFLOAT16, FXTAP_INT64};
    fxtap_value dims[3];
    size_t n_dims = 1 + next_random(seed) % 3;
    for (size_t i = 0; i < n_dims; i++) {
        char text[160];
        expression_of(d, seed, text, sizeof text);
        uint32_t extent = 2 + next_random(seed) % 9;
        bool is_symbol = next_random(seed) % 2 == 0;
        if (change == 1 && i == 0) {
            is_symbol = false; /* a different size */
            extent = 1234;
        }
        if (is_symbol) {
            assert_int_equal(fxtap_graph_add_symbol(g, FXTAP_V_SYMINT, text, &d->hint, &dims[i]), FXTAP_OK);
        } else {
            dims[i] = sg_int(g, extent);
        }
    }
    fxtap_tensor_meta meta = {.struct_size = sizeof meta, .device = d->device, .shape = dims, .n_dims = n_dims};
    uint32_t dtype = next_random(seed) % 3;
    meta.dtype = change == 2 ? FXTAP_FLOAT64 : dtypes[dtype];
    fxtap_value value;
    assert_int_equal(fxtap_graph_add_tensor(g, &meta, &value), FXTAP_OK);
    return value;
}

static fxtap_value constant_of(fxtap_graph *g, uint32_t *seed, int change)
{
    switch (next_random(seed) % 3) {
    case 0:
        return sg_int(g, (int64_t)(next_random(seed) % 100) + (change == 3 ? 1000 : 0));
    case 1:
        return sg_float(g, 1.5 * next_random(seed) + (change == 3 ? 0.25 : 0));
    default:
        return sg_text(g, FXTAP_V_STRING, change == 3 ? "sum" : "mean");
    }
}

static void add_placeholders(fxtap_graph *g, const disguise *d, uint32_t *seed, int shift)
{
    char name[64], symbol[16];
    for (unsigned i = 0; i < N_SYMBOLS; i++) {
        snprintf(name, sizeof name, "%sarg%u", d->prefix, i);
        snprintf(symbol, sizeof symbol, "s%u", d->symbol[(i + (unsigned)shift) % N_SYMBOLS]);
        fxtap_value value;
        assert_int_equal(fxtap_graph_add_symbol(g, FXTAP_V_SYMINT, symbol, &d->hint, &value), FXTAP_OK);
        sg_node(g, FXTAP_OP_PLACEHOLDER, name, name, 0, NULL, value);
    }
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%stensor%u", d->prefix, i);
        sg_node(g, FXTAP_OP_PLACEHOLDER, name, name, 0, NULL, meta_of(g, d, seed, 0));
    }
}

static void add_call(fxtap_graph *g, const disguise *d, uint32_t *seed, unsigned i)
{
    static const char *const targets[] = {"aten.add.Tensor", "aten.mul.Tensor", "aten.cat.default"};
    int change = d->changed == i ? d->change : 0;
    uint32_t n_nodes = (uint32_t)fxtap_graph_node_count(g);
    char name[64], trace[128];
    snprintf(name, sizeof name, "%sop_%u", d->prefix, i);
    snprintf(trace, sizeof trace, "  File \"%s/m.py\", line %u, in forward\n    x\n", d->path, i);
    fxtap_node a = next_random(seed) % n_nodes;
    fxtap_node b = next_random(seed) % n_nodes;
    const char *target = targets[next_random(seed) % 3];
    fxtap_value list[2] = {sg_ref(g, change == 4 ? (a + 1) % n_nodes : a), sg_ref(g, b)};
    fxtap_value args[3] = {sg_list(g, FXTAP_V_LIST, 2, list), sg_ref(g, b), constant_of(g, seed, change)};
    fxtap_value value = constant_of(g, seed, 0);
    fxtap_value wired = sg_ref(g, change == 5 ? (b + 1) % n_nodes : b);
    const char *names[2] = {change == 6 ? "other" : "alpha", "out"};
    fxtap_value values[2] = {change == 7 ? list[0] : value, wired};
    fxtap_node_desc desc = {.struct_size = sizeof desc,
                            .op = FXTAP_OP_CALL_FUNCTION,
                            .name = name,
                            .target = target,
                            .args = args,
                            .n_args = 3,
                            .kwarg_names = names,
                            .kwarg_values = values,
                            .n_kwargs = 2,
                            .stack_trace = trace,
                            .module_path = d->path};
    desc.target = change == 8 ? "aten.sub.Tensor" : target;
    desc.meta = meta_of(g, d, seed, change);
    sg_add(g, &desc);
}

static fxtap_graph *build(uint32_t seed, const disguise *d)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    add_placeholders(g, d, &seed, 0);
    for (unsigned i = 0; i < 12; i++) {
        add_call(g, d, &seed, i);
    }
    uint32_t n_nodes = (uint32_t)fxtap_graph_node_count(g);
    fxtap_value results[2] = {sg_ref(g, n_nodes - 1), sg_ref(g, n_nodes - (d->change == 9 ? 3 : 2))};
    fxtap_value tuple = sg_list(g, FXTAP_V_TUPLE, 2, results);
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &tuple, 0);
    return g;
}

static bool same(fxtap_hash128 a, fxtap_hash128 b)
{
    assert_true((a.high | a.low) != 0 && (b.high | b.low) != 0);
    return a.high == b.high && a.low == b.low;
}

static const disguise PLAIN = {.symbol = {77, 27, 3, 50, 12}, .prefix = "", .path = "/a", .device = "cpu", .hint = 5};

static void test_names_do_not_count(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++) {
        uint32_t shuffle = seed;
        disguise d = {.prefix = "renamed_", .path = "/b\"c", .device = "cpu:1", .hint = 9};
        for (unsigned i = 0; i < N_SYMBOLS; i++) {
            d.symbol[i] = next_random(&shuffle) % 50 + i * 50;
        }
        for (unsigned i = 0; i < N_SYMBOLS; i++) { /* in any order of the names */
            unsigned j = next_random(&shuffle) % N_SYMBOLS;
            unsigned symbol = d.symbol[i];
            d.symbol[i] = d.symbol[j];
            d.symbol[j] = symbol;
        }
        fxtap_graph *a = build(seed, &PLAIN);
        fxtap_graph *b = build(seed, &d);
        assert_true(same(fxtap_graph_strict_key(a), fxtap_graph_strict_key(b)));
        assert_true(same(fxtap_graph_structural_key(a), fxtap_graph_structural_key(b)));
        assert_false(same(fxtap_graph_structural_key(a), fxtap_graph_strict_key(a)));
        fxtap_graph_free(a);
        fxtap_graph_free(b);
    }
}

static void test_changes_count(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        fxtap_graph *a = build(seed, &PLAIN);
        for (int change = 1; change < N_CHANGES; change++) {
            disguise d = PLAIN;
            d.change = change;
            d.changed = seed % 12;
            fxtap_graph *b = build(seed, &d);
            assert_false(same(fxtap_graph_strict_key(a), fxtap_graph_strict_key(b)));
            /*
             * shapes (1), dtypes (2) and constants (3) are not part of the structure; wiring, wired keywords and
             * targets are; 6 renames the keyword of a constant
             */
            bool structural = change > 3 && change != 6;
            assert_int_equal(same(fxtap_graph_structural_key(a), fxtap_graph_structural_key(b)), !structural);
            fxtap_graph_free(b);
        }
        disguise device = PLAIN;
        device.device = "npu:0";
        fxtap_graph *b = build(seed, &device);
        assert_false(same(fxtap_graph_strict_key(a), fxtap_graph_strict_key(b)));
        assert_true(same(fxtap_graph_structural_key(a), fxtap_graph_structural_key(b)));
        fxtap_graph_free(b);
        fxtap_graph_free(a);
    }
}

/* One symbol twice differs from two symbols; the same sizes at another position are different sizes. */
static void test_symbol_structure(void **state)
{
    (void)state;
    const char *shapes[] = {"s1,s1", "s1,s2", "s1,s1 + 1", "s1,4", "4,s1", "s1", "u1,u1"};
    const size_t n = sizeof shapes / sizeof *shapes;
    fxtap_hash128 keys[16];
    for (size_t i = 0; i < n; i++) {
        fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
        sg_node(g, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", shapes[i]));
        keys[i] = fxtap_graph_strict_key(g);
        fxtap_graph_free(g);
        for (size_t j = 0; j < i; j++) {
            assert_false(same(keys[i], keys[j]));
        }
    }
}

static fxtap_graph *with_branch(const char *target, const char *attribute, fxtap_node_op op)
{
    fxtap_graph *branch = sg_graph(FXTAP_GRAPH_SUBGRAPH);
    sg_node(branch, FXTAP_OP_PLACEHOLDER, "a", "a", 0, NULL, 0);
    fxtap_value ref = sg_ref(branch, 0);
    sg_node(branch, FXTAP_OP_CALL_FUNCTION, "f", target, 1, &ref, 0);
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value value;
    assert_int_equal(fxtap_graph_add_subgraph(g, branch, &value), FXTAP_OK);
    if (op == FXTAP_OP_GET_ATTR) {
        sg_node(g, op, attribute, attribute, 0, NULL, value);
    } else {
        sg_node(g, op, attribute, "cond", 1, &value, 0);
    }
    return g;
}

static void test_subgraphs_count(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fxtap_node_op op = i == 0 ? FXTAP_OP_GET_ATTR : FXTAP_OP_CALL_FUNCTION;
        fxtap_graph *a = with_branch("aten.sin.default", "true_graph_0", op);
        fxtap_graph *b = with_branch("aten.sin.default", "true_graph_7", op);
        fxtap_graph *c = with_branch("aten.cos.default", "true_graph_0", op);
        assert_true(same(fxtap_graph_strict_key(a), fxtap_graph_strict_key(b)));
        assert_true(same(fxtap_graph_structural_key(a), fxtap_graph_structural_key(b)));
        assert_false(same(fxtap_graph_strict_key(a), fxtap_graph_strict_key(c)));
        assert_false(same(fxtap_graph_structural_key(a), fxtap_graph_structural_key(c)));
        fxtap_graph_free(a);
        fxtap_graph_free(b);
        fxtap_graph_free(c);
    }
}

/* The key of one argument; addresses in a repr depend on the process. */
static fxtap_hash128 key_of_argument(fxtap_value_kind kind, double number, const char *text)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value value = kind == FXTAP_V_FLOAT ? sg_float(g, number)
                        : kind == FXTAP_V_INT ? sg_int(g, (int64_t)number)
                                              : sg_text(g, kind, text);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "f", "aten.f.default", 1, &value, 0);
    fxtap_hash128 key = fxtap_graph_strict_key(g);
    fxtap_graph_free(g);
    return key;
}

static void test_constants(void **state)
{
    (void)state;
    fxtap_hash128 plus = key_of_argument(FXTAP_V_FLOAT, 0.0, NULL);
    assert_false(same(plus, key_of_argument(FXTAP_V_FLOAT, -0.0, NULL)));
    assert_false(same(plus, key_of_argument(FXTAP_V_INT, 0, NULL)));
    assert_true(
        same(key_of_argument(FXTAP_V_FLOAT, (double)NAN, NULL), key_of_argument(FXTAP_V_FLOAT, -(double)NAN, NULL)));
    assert_true(
        same(key_of_argument(FXTAP_V_OTHER, 0, "<f at 0x7f00>"), key_of_argument(FXTAP_V_OTHER, 0, "<f at 0x12ab>")));
    assert_false(
        same(key_of_argument(FXTAP_V_OTHER, 0, "<f at 0x7f00>"), key_of_argument(FXTAP_V_OTHER, 0, "<g at 0x7f00>")));
    assert_false(same(key_of_argument(FXTAP_V_STRING, 0, " at 0x7"), key_of_argument(FXTAP_V_STRING, 0, " at 0x8")));
    assert_true(same(key_of_argument(FXTAP_V_DEVICE, 0, "npu:0"), key_of_argument(FXTAP_V_DEVICE, 0, "npu:7")));
    assert_false(same(key_of_argument(FXTAP_V_DEVICE, 0, "npu:0"), key_of_argument(FXTAP_V_DEVICE, 0, "cpu")));
    assert_false(same(key_of_argument(FXTAP_V_DTYPE, 0, "cpu"), key_of_argument(FXTAP_V_DEVICE, 0, "cpu")));
}

static void test_without_memory(void **state)
{
    (void)state;
    fxtap_graph *g = build(1, &PLAIN);
    fxtap_hash128 whole = fxtap_graph_strict_key(g);
    bool done = false;
    for (long long n = 0; !done; n++) {
        fx_memory_fail_after(n);
        fxtap_hash128 key = fxtap_graph_strict_key(g);
        fx_memory_fail_after(-1);
        done = key.high == whole.high && key.low == whole.low;
        assert_true(done || (key.high == 0 && key.low == 0));
        assert_true(n < 1000);
    }
    fxtap_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),          cmocka_unit_test(test_canonical_bounds),
        cmocka_unit_test(test_names_do_not_count), cmocka_unit_test(test_changes_count),
        cmocka_unit_test(test_symbol_structure),   cmocka_unit_test(test_subgraphs_count),
        cmocka_unit_test(test_constants),          cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
