/*
 * The lowering: py, txt and pbtxt of small, hostile and empty graphs, allocation failures, and the recipes themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fxtap/print.h"
#include "ge/lower.h"
#include "ge/recipe.h"
#include "support_cmocka.h"
#include "support_graph.h"
#include "util/memory.h"

static const fx_recipe_table *const TABLES[] = {
    &fx_recipes_elementwise, &fx_recipes_compare, &fx_recipes_reduce,  &fx_recipes_views,   &fx_recipes_matmul,
    &fx_recipes_convolution, &fx_recipes_norm,    &fx_recipes_index,   &fx_recipes_pooling, &fx_recipes_creation,
    &fx_recipes_random,      &fx_recipes_symbol,  &fx_recipes_foreach, &fx_recipes_loss,    &fx_recipes_misc,
};
static const fxtap_print_format FORMATS[] = {FXTAP_PRINT_PY, FXTAP_PRINT_TXT, FXTAP_PRINT_PBTXT};

#define HEADER                                                                                                         \
    "# -*- coding: utf-8 -*-\nfrom torch import tensor\nfrom torchair._ge_concrete_graph import ge_apis as ge\n"       \
    "from torchair.ge._ge_graph import get_default_ge_graph\n\n"
#define TRACE "  File \"m.py\", line 3, in forward\n    y = x + 1\n"

static fxtap_status print(const fxtap_graph *g, fxtap_print_format format, bool optimised, fxtap_buffer *out)
{
    fxtap_print_options options = {.struct_size = sizeof options, .format = format, .optimised = optimised};
    fxtap_buffer_init(out);
    return fxtap_graph_print(g, &options, out);
}

static void check_py(const fxtap_graph *g, const char *expected)
{
    fxtap_buffer text;
    assert_int_equal(print(g, FXTAP_PRINT_PY, false, &text), FXTAP_OK);
    assert_int_equal(strncmp(text.bytes, HEADER, strlen(HEADER)), 0);
    assert_string_equal(text.bytes + strlen(HEADER), expected);
    fxtap_buffer_clear(&text);
}

static void print_all(const fxtap_graph *g)
{
    for (size_t i = 0; i < 2 * COUNT_OF(FORMATS); i++) {
        fxtap_buffer text;
        assert_int_equal(print(g, FORMATS[i / 2], i % 2 != 0, &text), FXTAP_OK);
        fxtap_buffer_clear(&text);
    }
}

static fxtap_node input(fxtap_graph *g, const char *name, const char *dims)
{
    return sg_node(g, FXTAP_OP_PLACEHOLDER, name, name, 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", dims));
}

static fxtap_node call(fxtap_graph *g, const char *name, const char *target, size_t n, const fxtap_value *args,
                       const char *dims)
{
    fxtap_node_desc d = {.struct_size = sizeof d,
                         .op = FXTAP_OP_CALL_FUNCTION,
                         .name = name,
                         .target = target,
                         .args = args,
                         .n_args = n,
                         .stack_trace = TRACE};
    d.meta = dims == NULL ? 0 : sg_tensor(g, FXTAP_FLOAT32, "cpu", dims);
    return sg_add(g, &d);
}

static void finish(fxtap_graph *g, size_t n, const fxtap_value *results)
{
    fxtap_value tuple = sg_list(g, FXTAP_V_TUPLE, n, results);
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &tuple, 0);
}

/* x -> add(x, 1.5) -> reshape to (s0, 2) -> relu, with a symbolic size */
static fxtap_graph *sample(void)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    sg_node(g, FXTAP_OP_PLACEHOLDER, "s", "s", 0, NULL, sg_sym(g, "s0"));
    fxtap_value args[2] = {sg_ref(g, input(g, "x", "s0,2"))};
    args[1] = sg_float(g, 1.5);
    args[0] = sg_ref(g, call(g, "add", "aten.add.Tensor", 2, args, "s0,2"));
    fxtap_value sizes[] = {sg_int(g, 2), sg_int(g, -1)};
    args[1] = sg_list(g, FXTAP_V_LIST, 2, sizes);
    args[0] = sg_ref(g, call(g, "view", "aten.view.default", 2, args, "2,s0"));
    args[0] = sg_ref(g, call(g, "relu", "aten.relu.default", 1, args, "2,s0"));
    finish(g, 1, args);
    return g;
}

static void test_py(void **state)
{
    (void)state;
    fxtap_graph *g = sample();
    check_py(g,
             "s_0 = ge.Data(index=0, dtype=9, shape=[], placement=\"CPU\", node_name=\"s\")\n"
             "x_0 = ge.Data(index=1, dtype=0, shape=[-1, 2], placement=\"CPU\", node_name=\"x\")\n"
             "\n# File \"m.py\", line 3, in forward    y = x + 1\n"
             "## FX Code: add: torch.float32[s0, 2]cpu = torch.ops.aten.add.Tensor(x: torch.float32[s0, 2]cpu, 1.5)\n"
             "Add_0 = ge.Add(x_0, ge.Const(1.5, dtype=0), node_name=\"Add\")\n"
             "## FX Code: view: torch.float32[2, s0]cpu = "
             "torch.ops.aten.reshape.default(add: torch.float32[s0, 2]cpu, [2, -1])\n"
             "Reshape_0 = ge.Reshape(Add_0, ge.Const([2, -1], dtype=9), node_name=\"Reshape\")\n"
             "## FX Code: relu: torch.float32[2, s0]cpu = torch.ops.aten.relu.default(view: torch.float32[2, s0]cpu)\n"
             "Relu_0 = ge.Relu(Reshape_0, node_name=\"Relu\")\n"
             "\n_ = ge.NetOutput([Relu_0], dependencies=[])\n");
    print_all(g);
    fxtap_graph_free(g);
}

/* A node without a lowering, or whose arguments have none, keeps its line; later nodes are lowered. */
static void test_without_lowering(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value arg = sg_ref(g, input(g, "x", "2"));
    arg = sg_ref(g, call(g, "lgamma", "aten.lgamma.default", 1, &arg, "2"));
    arg = sg_ref(g, call(g, "relu", "aten.relu.default", 1, &arg, "2"));
    finish(g, 1, &arg);
    check_py(g, "x_0 = ge.Data(index=0, dtype=0, shape=[2], placement=\"CPU\", node_name=\"x\")\n"
                "\n# File \"m.py\", line 3, in forward    y = x + 1\n"
                "## FX Code: lgamma: torch.float32[2]cpu = torch.ops.aten.lgamma.default(x: torch.float32[2]cpu)\n"
                "# no lowering: TorchAir has no lowering for it\n"
                "## FX Code: relu: torch.float32[2]cpu = torch.ops.aten.relu.default(lgamma: torch.float32[2]cpu)\n"
                "Relu_0 = ge.Relu(lgamma_0, node_name=\"Relu\")\n"
                "\n_ = ge.NetOutput([Relu_0], dependencies=[])\n");
    print_all(g);
    fxtap_graph_free(g);
}

/* Missing arguments, wrong kinds, too many, no metas: every operator in the tables handles them. */
static void test_wrong_arguments(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(TABLES); t++) {
        for (size_t i = 0; i < TABLES[t]->n; i++) {
            fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
            fxtap_value x = sg_ref(g, input(g, "x", "2,3")), y = sg_ref(g, input(g, "y", "s0,3"));
            fxtap_value list[] = {x, sg_int(g, -7), y}, body;
            assert_int_equal(fxtap_graph_add_subgraph(g, sample(), &body), FXTAP_OK);
            fxtap_value wrong[][12] = {
                {0},
                {x},
                {x, y, x, y, x, y, x, y, x, y, x, y},
                {sg_none(g), sg_none(g), sg_none(g), sg_none(g), sg_none(g), sg_none(g)},
                {x, sg_int(g, INT64_MAX), sg_int(g, INT64_MIN), sg_int(g, -1), sg_int(g, 0), sg_int(g, 1)},
                {sg_text(g, FXTAP_V_STRING, "text"), sg_float(g, 1e300), sg_bool(g, true), sg_float(g, -1)},
                {sg_list(g, FXTAP_V_LIST, 3, list), sg_list(g, FXTAP_V_LIST, 2, list),
                 sg_list(g, FXTAP_V_TUPLE, 0, NULL)},
                {x, sg_list(g, FXTAP_V_LIST, 0, NULL), sg_list(g, FXTAP_V_LIST, 1, list + 1),
                 sg_list(g, FXTAP_V_LIST, 3, list)},
                {body, body, sg_list(g, FXTAP_V_LIST, 1, &body)},
            };
            static const size_t COUNTS[] = {0, 1, 12, 6, 6, 4, 3, 4, 3};
            static const char *const DIMS[] = {"2,3", NULL, "", "s0,0", "2,3", "s1", "1", "2,3", "2"};
            fxtap_value results[COUNT_OF(COUNTS)];
            for (size_t k = 0; k < COUNT_OF(COUNTS); k++) {
                char name[16];
                snprintf(name, sizeof name, "n%zu", k);
                results[k] = sg_ref(g, call(g, name, TABLES[t]->recipes[i].target, COUNTS[k], wrong[k], DIMS[k]));
            }
            finish(g, COUNT_OF(COUNTS), results);
            print_all(g);
            fxtap_graph_free(g);
        }
    }
}

static void test_empty(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    check_py(g, "");
    print_all(g);
    finish(g, 0, NULL);
    check_py(g, "\n_ = ge.NetOutput([], dependencies=[])\n");
    print_all(g);
    fxtap_graph_free(g);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"\");import os;(\"", "a\nb", "\xff\xfe", "op {", "x'\"\\"};
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
        fxtap_value arg = sg_ref(g, input(g, NAMES[i], "2"));
        fxtap_node_desc d = {.struct_size = sizeof d,
                             .op = FXTAP_OP_CALL_FUNCTION,
                             .name = "n",
                             .target = NAMES[i],
                             .args = &arg,
                             .n_args = 1,
                             .kwarg_names = &NAMES[i],
                             .kwarg_values = &arg,
                             .n_kwargs = 1,
                             .stack_trace = NAMES[i],
                             .module_path = NAMES[i]};
        d.meta = sg_text(g, FXTAP_V_STRING, NAMES[i]);
        fxtap_value result = sg_ref(g, sg_add(g, &d));
        finish(g, 1, &result);
        fxtap_buffer text;
        assert_int_equal(print(g, FXTAP_PRINT_PY, false, &text), FXTAP_OK);
        for (const char *line = text.bytes; line != NULL && *line != 0; line = strchr(line, '\n')) {
            line += *line == '\n';
            assert_int_not_equal(strncmp(line, "import", 6), 0);
            assert_int_not_equal(strncmp(line, "b", 1), 0);
        }
        fxtap_buffer_clear(&text);
        print_all(g);
        fxtap_graph_free(g);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value arguments[] = {sg_ref(g, input(g, "x", "s0,2")), 0};
    assert_int_equal(fxtap_graph_add_subgraph(g, sample(), &arguments[1]), FXTAP_OK);
    fxtap_value result = sg_ref(g, call(g, "map", "higher_order.map_impl", 2, arguments, "s0,2"));
    finish(g, 1, &result);
    for (size_t i = 0; i < 2 * COUNT_OF(FORMATS); i++) {
        fxtap_buffer text;
        fxtap_status status = FXTAP_E_NOMEM;
        long n = 0;
        for (; status == FXTAP_E_NOMEM && n < 100000; n++) {
            fx_memory_fail_after(n);
            status = print(g, FORMATS[i / 2], i % 2 != 0, &text);
            fx_memory_fail_after(-1);
            fxtap_buffer_clear(&text);
        }
        assert_int_equal(status, FXTAP_OK);
        assert_true(n > 3);
    }
    fxtap_graph_free(g);
}

/* ---- recipes ---- */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Targets are unique, and each program is parsed to its end. */
static void test_tables(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t t = 0; t < COUNT_OF(TABLES); t++) {
        for (size_t i = 0; i < TABLES[t]->n; i++) {
            const fx_recipe *recipe = &TABLES[t]->recipes[i];
            assert_true(has_prefix(recipe->target, "aten.") || has_prefix(recipe->target, "prims.") ||
                        has_prefix(recipe->target, "operator.") || has_prefix(recipe->target, "math.") ||
                        has_prefix(recipe->target, "torch."));
            for (size_t u = 0; u <= t; u++) {
                for (size_t k = 0; k < (u == t ? i : TABLES[u]->n); k++) {
                    assert_string_not_equal(TABLES[u]->recipes[k].target, recipe->target);
                }
            }
            fx_lower lower = {.status = FXTAP_OK};
            fx_scope scope = {.n = 0};
            lower.ge = fx_ge_graph_new();
            fx_reader reader = {
                .lower = &lower, .scope = &scope, .at = recipe->body == NULL ? "" : recipe->body, .skip = true};
            fx_read_program(&reader);
            if (*reader.at != 0 || lower.raised != NULL) {
                fail_msg("%s: %s at %s", recipe->target, lower.raised, reader.at);
            }
            fx_ge_graph_free(lower.ge);
            n++;
        }
    }
    assert_true(n > 300);
}

/* The value of a program without arguments, as a Python literal; NULL if it raises. */
static const char *run(const char *program)
{
    static char result[256];
    fx_lower lower = {.status = FXTAP_OK};
    fx_scope scope = {.n = 0};
    lower.ge = fx_ge_graph_new();
    fx_reader reader = {.lower = &lower, .scope = &scope, .at = program};
    fx_read_program(&reader);
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fx_val_source(&text, &reader.result);
    snprintf(result, sizeof result, "%s", text.bytes == NULL ? "" : text.bytes);
    fxtap_buffer_clear(&text);
    bool failed = lower.raised != NULL;
    fx_ge_graph_free(lower.ge);
    return failed ? NULL : result;
}

static void test_language(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"1 + 2 * 3", "7"},
        {"-7 // 2", NULL},
        {"x = 3; y = [x, 2.5, 'a', True, None]; y", "[3, 2.5, \"a\", True, None]"},
        {"x, y = [1, 2]; y - x", "1"},
        {"x = 0; for i in range(4) { if i % 2 == 0 { x = x + i } else { x = x + 10 } } x", "22"},
        {"if 1 > 2 { return 'no' } return 'yes'; 3", "\"yes\""},
        {"[1, 2, 3, 4][1:3]", "[2, 3]"},
        {"[1, 2, 3][-1]", "3"},
        {"n = 2; [1, 2, 3][:n] + [1, 2, 3][n:] + [[1][0]]", "[1, 2, 3, 1]"},
        {"if False { n = 1; x = [1][n:n] } 4", "4"},
        {"2 in [1, 2] and not (3 in (1,))", "True"},
        {"None == None ? inf : nan", "float('inf')"},
        {"len([1, 2]) + len([])", "2"},
        {"dim(-1, 4)", "3"},
        {"isint(3) and isfloat(1.5) and isnum(2) and not isbool(1)", "True"},
        {"raise('why')", NULL},
        {"nothing(1)", NULL},
        {"unknown_name", NULL},
        {"[1][5]", NULL},
        {"1 + 'a'", NULL},
        {"'unfinished", NULL},
        {"(1", NULL},
        {"for", NULL},
        {"NoSuchOperator(1)", NULL},
        {"9223372036854775807 + 1", NULL},
        {"1 % 0", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const char *value = run(CASES[i][0]);
        if (CASES[i][1] == NULL ? value != NULL : value == NULL || strcmp(value, CASES[i][1]) != 0) {
            fail_msg("%s gave %s", CASES[i][0], value == NULL ? "an error" : value);
        }
    }
}

/* ---- size ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void test_large(void **state)
{
    (void)state;
    static const char *const TARGETS[] = {"aten.add.Tensor", "aten.mm.default", "aten.t.default", "aten.add.Tensor"};
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value args[2];
    for (size_t i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%zu", i);
        args[0] = sg_ref(g, input(g, name, "8,8"));
    }
    for (size_t i = 0; i < 5000; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%zu", i);
        args[1] = args[0];
        args[0] = sg_ref(g, call(g, name, TARGETS[i % 4], i % 4 == 2 ? 1 : 2, args, "8,8"));
    }
    finish(g, 1, args);
    for (size_t i = 0; i < 2 * COUNT_OF(FORMATS); i++) {
        fxtap_buffer text;
        double start = seconds();
        assert_int_equal(print(g, FORMATS[i / 2], i % 2 != 0, &text), FXTAP_OK);
        double took = seconds() - start;
        print_message("format %d: %.1f ms, %zu bytes\n", (int)FORMATS[i / 2], 1e3 * took, text.length);
        assert_true(took < 2);
        fxtap_buffer_clear(&text);
    }
    fxtap_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_py),     cmocka_unit_test(test_without_lowering), cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_empty),  cmocka_unit_test(test_hostile),          cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_tables), cmocka_unit_test(test_language),         cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
