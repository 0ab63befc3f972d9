/* The graph record: values are preserved, invalid handles are rejected, and serialised records read back equal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fxtap/graph.h"
#include "graph/record.h"
#include "support_graph.h"
#include "util/memory.h"

/* A graph that contains every kind of value. */
static fxtap_status build_all(fxtap_graph **out)
{
    fxtap_graph *g = NULL;
    fxtap_graph *sub = NULL;
    fxtap_value v[32] = {0};
    size_t n = 0;
    double hint = 6;
    char long_text[10000];
    memset(long_text, 'x', sizeof long_text);
    fxtap_node node;
    fxtap_value shape[2];
    fxtap_status status;
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != FXTAP_OK)                                                                                        \
            goto failed;                                                                                               \
    } while (0)
    TRY(fxtap_graph_create(FXTAP_GRAPH_FORWARD, &g));
    TRY(fxtap_graph_add_symbol(g, FXTAP_V_SYMINT, "s77 + 2", &hint, &shape[0]));
    TRY(fxtap_graph_add_int(g, 4, &shape[1]));
    static const float constant[2] = {0.9f, -0.0f};
    fxtap_tensor_meta meta = {.struct_size = sizeof meta,
                              .dtype = FXTAP_FLOAT32,
                              .device = "npu:1",
                              .is_fake = true,
                              .shape = shape,
                              .strides = shape,
                              .n_dims = 2,
                              .requires_grad = true};
    fxtap_value tensor;
    TRY(fxtap_graph_add_tensor(g, &meta, &tensor));
    fxtap_node_desc in = {
        .struct_size = sizeof in, .op = FXTAP_OP_PLACEHOLDER, .name = "arg0_1", .target = "arg0_1", .meta = tensor};
    TRY(fxtap_graph_add_node(g, &in, &node));
    meta = (fxtap_tensor_meta){.struct_size = sizeof meta,
                               .dtype = FXTAP_FLOAT32,
                               .device = "cpu",
                               .layout = "torch.strided",
                               .shape = shape + 1,
                               .n_dims = 1,
                               .bytes = constant,
                               .n_bytes = sizeof constant};
    TRY(fxtap_graph_add_tensor(g, &meta, &v[n++]));
    TRY(fxtap_graph_add_none(g, &v[n++]));
    TRY(fxtap_graph_add_bool(g, true, &v[n++]));
    TRY(fxtap_graph_add_int(g, INT64_MIN, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_BIGINT, "-170141183460469231731687303715884105728", 40, &v[n++]));
    TRY(fxtap_graph_add_float(g, -0.0, &v[n++]));
    TRY(fxtap_graph_add_float(g, (double)INFINITY, &v[n++]));
    TRY(fxtap_graph_add_float(g, (double)NAN, &v[n++]));
    TRY(fxtap_graph_add_complex(g, 1.5, -0.0, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_STRING, "\xff\"\n\0z", 5, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_STRING, long_text, sizeof long_text, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_BYTES, NULL, 0, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_DTYPE, "torch.bfloat16", 14, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_DEVICE, "npu:0", 5, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_LAYOUT, "torch.strided", 13, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_MEMORY_FORMAT, "torch.channels_last", 19, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_ELLIPSIS, NULL, 0, &v[n++]));
    TRY(fxtap_graph_add_text(g, FXTAP_V_OTHER, "<object>", 8, &v[n++]));
    TRY(fxtap_graph_add_node_ref(g, node, &v[n++]));
    TRY(fxtap_graph_add_symbol(g, FXTAP_V_SYMFLOAT, "zf1", NULL, &v[n++]));
    TRY(fxtap_graph_add_symbol(g, FXTAP_V_SYMBOOL, "s77 > 2", NULL, &v[n++]));
    TRY(fxtap_graph_add_items(g, FXTAP_V_LIST, v, 3, &v[n]));
    TRY(fxtap_graph_add_items(g, FXTAP_V_TUPLE, &v[n], 1, &v[n + 1]));
    n += 2;
    TRY(fxtap_graph_add_items(g, FXTAP_V_DICT, v, 2, &v[n++]));
    TRY(fxtap_graph_add_items(g, FXTAP_V_SLICE, v, 3, &v[n++]));
    TRY(fxtap_graph_add_items(g, FXTAP_V_LIST, NULL, 0, &v[n++]));
    TRY(fxtap_graph_create(FXTAP_GRAPH_SUBGRAPH, &sub));
    TRY(fxtap_graph_add_node(
        sub, &(fxtap_node_desc){.struct_size = sizeof in, .op = FXTAP_OP_OUTPUT, .name = "output", .target = "output"},
        &node));
    TRY(fxtap_graph_add_subgraph(g, sub, &v[n]));
    sub = NULL;
    n++;
    const char *arg_names[32] = {"self", NULL, "other"};
    const char *kwarg_names[] = {"alpha", "out"};
    fxtap_node_desc call = {.struct_size = sizeof call,
                            .op = FXTAP_OP_CALL_FUNCTION,
                            .name = "add_1",
                            .target = "aten.add.Tensor",
                            .target_python = "torch.ops.aten.add.Tensor",
                            .args = v,
                            .n_args = n,
                            .arg_names = arg_names,
                            .kwarg_names = kwarg_names,
                            .kwarg_values = v,
                            .n_kwargs = 2,
                            .meta = tensor,
                            .module_path = "L['self'].fc",
                            .module_type = "torch.nn.modules.linear.Linear",
                            .flags = FXTAP_NODE_VIEW};
    call.stack_trace = "  File \"/m.py\", line 12, in forward\n    return self.fc(x)\n";
    TRY(fxtap_graph_add_node(g, &call, &node));
    TRY(fxtap_graph_add_int(g, 7, &v[0])); /* a value after the last node */
    *out = g;
    return FXTAP_OK;
failed:
    fxtap_graph_free(sub);
    fxtap_graph_free(g);
    return status;
#undef TRY
}

static void check_all(const fxtap_graph *g)
{
    assert_int_equal(fxtap_graph_kind_of(g), FXTAP_GRAPH_FORWARD);
    assert_int_equal(fxtap_graph_node_count(g), 2);
    assert_int_equal(fxtap_graph_subgraph_count(g), 1);
    assert_int_equal(fxtap_graph_node_count(fxtap_graph_subgraph(g, 0)), 1);
    assert_null(fxtap_graph_subgraph(g, 1));
    fxtap_node node = 9;
    assert_int_equal(fxtap_graph_find_node(g, "add_1", &node), FXTAP_OK);
    assert_int_equal(node, 1);
    fxtap_node_desc d = {.struct_size = sizeof d};
    assert_int_equal(fxtap_graph_node(g, node, &d), FXTAP_OK);
    assert_string_equal(d.target_python, "torch.ops.aten.add.Tensor");
    assert_string_equal(d.arg_names[2], "other");
    assert_null(d.arg_names[1]);
    assert_string_equal(d.kwarg_names[1], "out");
    assert_string_equal(d.module_path, "L['self'].fc");
    assert_int_equal(d.flags, FXTAP_NODE_VIEW);
    const fxtap_value *v = d.args;
    fxtap_tensor_meta meta = {.struct_size = sizeof meta};
    assert_int_equal(fxtap_value_tensor(g, v[0], &meta), FXTAP_OK);
    float constant[2];
    assert_int_equal(meta.n_bytes, sizeof constant);
    memcpy(constant, meta.bytes, sizeof constant);
    assert_true(constant[0] == 0.9f && signbit(constant[1]) && meta.strides == NULL);
    assert_string_equal(meta.device, "cpu");
    assert_int_equal(fxtap_value_kind_of(g, v[1]), FXTAP_V_NONE);
    assert_true(fxtap_value_bool(g, v[2]));
    assert_true(fxtap_value_int(g, v[3]) == INT64_MIN);
    assert_string_equal(fxtap_value_text(g, v[4], NULL), "-170141183460469231731687303715884105728");
    double imag;
    assert_true(signbit(fxtap_value_float(g, v[5], NULL)) && isinf(fxtap_value_float(g, v[6], NULL)));
    assert_true(isnan(fxtap_value_float(g, v[7], NULL)));
    assert_true(fxtap_value_float(g, v[8], &imag) == 1.5 && signbit(imag));
    size_t length;
    assert_memory_equal(fxtap_value_text(g, v[9], &length), "\xff\"\n\0z", 6);
    assert_int_equal(length, 5);
    fxtap_value_text(g, v[10], &length);
    assert_int_equal(length, 10000);
    assert_int_equal(fxtap_value_kind_of(g, v[16]), FXTAP_V_ELLIPSIS);
    assert_int_equal(fxtap_value_node(g, v[18]), 0);
    const fxtap_value *items = fxtap_value_items(g, v[21], &length);
    assert_int_equal(length, 3);
    assert_int_equal(items[1], v[1]);
    assert_int_equal(fxtap_value_subgraph(g, v[26]), 0);
    assert_int_equal(fxtap_value_tensor(g, d.meta, &meta), FXTAP_OK);
    assert_true(meta.is_fake && meta.requires_grad && meta.strides != NULL && meta.bytes == NULL);
    double hint = 0;
    assert_true(fxtap_value_hint(g, meta.shape[0], &hint) && hint == 6);
    assert_false(fxtap_value_hint(g, v[19], &hint));
    const char *file, *function, *code;
    int32_t line;
    fxtap_graph_source(g, node, &file, &line, &function, &code);
    assert_string_equal(file, "/m.py");
    assert_string_equal(function, "forward");
    assert_string_equal(code, "return self.fc(x)");
    assert_int_equal(line, 12);
}

static void test_round_trip(void **state)
{
    (void)state;
    fxtap_graph *graph = NULL, *copy = NULL;
    assert_int_equal(build_all(&graph), FXTAP_OK);
    check_all(graph);
    void *bytes = NULL, *again = NULL;
    size_t n_bytes = 0, n_again = 0;
    assert_int_equal(fxtap_graph_serialise(graph, &bytes, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_graph_deserialise(bytes, n_bytes, &copy), FXTAP_OK);
    check_all(copy);
    assert_int_equal(fxtap_graph_serialise(copy, &again, &n_again), FXTAP_OK);
    assert_int_equal(n_bytes, n_again);
    assert_memory_equal(bytes, again, n_bytes);
    fxtap_free(bytes);
    fxtap_free(again);
    fxtap_graph_free(copy);
    fxtap_graph_free(graph);
}

static void test_wrong_handles(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value v = 77;
    fxtap_node node = 77;
    const fxtap_value bad[] = {5, 0, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fxtap_graph_add_items(g, FXTAP_V_LIST, &bad[i], 1, &v), FXTAP_E_INVALID);
        fxtap_tensor_meta meta = {.struct_size = sizeof meta, .shape = &bad[i], .n_dims = 1};
        assert_int_equal(fxtap_graph_add_tensor(g, &meta, &v), FXTAP_E_INVALID);
        fxtap_node_desc d = {.struct_size = sizeof d,
                             .op = FXTAP_OP_CALL_FUNCTION,
                             .name = "n",
                             .target = "t",
                             .args = &bad[i],
                             .n_args = 1};
        assert_int_equal(fxtap_graph_add_node(g, &d, &node), FXTAP_E_INVALID);
        assert_int_equal(fxtap_value_kind_of(g, bad[i]), 0);
        assert_string_equal(fxtap_value_text(g, bad[i], NULL), "");
        assert_int_equal(fxtap_value_int(g, bad[i]), 0);
        assert_false(fxtap_value_bool(g, bad[i]));
        size_t n = 7;
        assert_non_null(fxtap_value_items(g, bad[i], &n));
        assert_int_equal(n, 0);
        assert_int_equal(fxtap_value_tensor(g, bad[i], &meta), FXTAP_E_INVALID);
        assert_true(fxtap_value_subgraph(g, bad[i]) == SIZE_MAX);
        assert_int_equal(fxtap_value_node(g, bad[i]), UINT32_MAX);
    }
    assert_int_equal(fxtap_graph_add_node_ref(g, 0, &v), FXTAP_E_INVALID);
    assert_int_equal(fxtap_graph_add_text(g, FXTAP_V_INT, "1", 1, &v), FXTAP_E_INVALID);
    assert_int_equal(fxtap_graph_add_text(g, FXTAP_V_BIGINT, "1e5", 3, &v), FXTAP_E_INVALID);
    assert_int_equal(fxtap_graph_add_items(g, FXTAP_V_SLICE, NULL, 0, &v), FXTAP_E_INVALID);
    assert_int_equal(fxtap_graph_add_subgraph(g, g, &v), FXTAP_E_INVALID);
    assert_int_equal(v, 77);
    assert_int_equal(node, 77);
    sg_node(g, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, 0);
    fxtap_node_desc twice = {.struct_size = sizeof twice, .op = FXTAP_OP_PLACEHOLDER, .name = "x", .target = "x"};
    assert_int_equal(fxtap_graph_add_node(g, &twice, &node), FXTAP_E_INVALID);
    twice.name = "";
    assert_int_equal(fxtap_graph_add_node(g, &twice, &node), FXTAP_E_INVALID);
    twice.struct_size = 3;
    assert_int_equal(fxtap_graph_add_node(g, &twice, &node), FXTAP_E_INVALID);
    assert_int_equal(fxtap_graph_find_node(g, "y", &node), FXTAP_E_NOT_FOUND);
    assert_int_equal(fxtap_graph_node_count(g), 1);
    fxtap_graph_free(g);
    fxtap_graph_free(NULL);
}

/* Nested lists that share their items: a few bytes that would take forever to walk. */
static void test_bounds(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value items[16];
    for (size_t i = 0; i < 16; i++) {
        items[i] = sg_int(g, 1);
    }
    fxtap_status status = FXTAP_OK;
    size_t n_levels = 0;
    while (status == FXTAP_OK && n_levels < 100) {
        fxtap_value list = 0;
        status = fxtap_graph_add_items(g, FXTAP_V_LIST, items, 16, &list);
        for (size_t i = 0; i < 16; i++) {
            items[i] = list;
        }
        n_levels++;
    }
    assert_int_equal(status, FXTAP_E_INVALID);
    assert_true(n_levels < 10);
    fxtap_value deep = sg_int(g, 1);
    for (n_levels = 0; n_levels < 200; n_levels++) {
        status = fxtap_graph_add_items(g, FXTAP_V_LIST, &deep, 1, &deep);
        if (status != FXTAP_OK) {
            break;
        }
    }
    assert_int_equal(n_levels, FX_VALUE_DEPTH_MAX);
    fxtap_graph *inner = g;
    for (n_levels = 1; n_levels < 200; n_levels++) {
        fxtap_graph *outer = sg_graph(FXTAP_GRAPH_SUBGRAPH);
        fxtap_value v;
        if (fxtap_graph_add_subgraph(outer, inner, &v) != FXTAP_OK) {
            fxtap_graph_free(outer);
            break;
        }
        inner = outer;
    }
    assert_int_equal(n_levels, FX_GRAPH_DEPTH_MAX);
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_graph *copy = NULL;
    assert_int_equal(fxtap_graph_serialise(inner, &bytes, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_graph_deserialise(bytes, n_bytes, &copy), FXTAP_OK);
    fxtap_graph_free(copy);
    fxtap_free(bytes);
    fxtap_graph_free(inner);
}

static void test_every_allocation(void **state)
{
    (void)state;
    bool done = false;
    for (long long n = 0; !done; n++) {
        assert_true(n < 1000);
        fxtap_graph *graph = NULL, *copy = NULL;
        void *bytes = NULL;
        size_t n_bytes = 0;
        fx_memory_fail_after(n);
        fxtap_status status = build_all(&graph);
        if (status == FXTAP_OK) {
            status = fxtap_graph_serialise(graph, &bytes, &n_bytes);
        }
        if (status == FXTAP_OK) {
            status = fxtap_graph_deserialise(bytes, n_bytes, &copy);
        }
        fx_memory_fail_after(-1);
        done = status == FXTAP_OK;
        if (!done) {
            assert_int_equal(status, FXTAP_E_NOMEM);
            assert_null(copy);
        }
        fxtap_graph_free(copy);
        fxtap_graph_free(graph);
        fxtap_free(bytes);
    }
}

static void test_damaged_bytes(void **state)
{
    (void)state;
    fxtap_graph *graph = NULL, *copy = NULL;
    unsigned char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(build_all(&graph), FXTAP_OK);
    assert_int_equal(fxtap_graph_serialise(graph, (void **)&bytes, &n_bytes), FXTAP_OK);
    for (size_t i = 0; i < n_bytes; i += i < 2000 ? 1 : 97) {
        assert_int_equal(fxtap_graph_deserialise(bytes, i, &copy), FXTAP_E_FORMAT);
        unsigned char was = bytes[i];
        bytes[i] ^= 0x5a;
        fxtap_status status = fxtap_graph_deserialise(bytes, n_bytes, &copy);
        if (i >= 8 && i < 12) {
            assert_int_equal(status, FXTAP_E_UNSUPPORTED);
        } else {
            assert_int_equal(status, FXTAP_E_FORMAT);
        }
        bytes[i] = was;
    }
    assert_null(copy);
    fxtap_free(bytes);
    fxtap_graph_free(graph);
}

static void test_many_nodes(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    char name[32];
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "mul_%u", i);
        sg_node(g, FXTAP_OP_CALL_FUNCTION, name, "aten.mul.Tensor", 0, NULL, 0);
    }
    fxtap_node_desc first = {.struct_size = sizeof first};
    assert_int_equal(fxtap_graph_node(g, 0, &first), FXTAP_OK);
    for (unsigned i = 0; i < 20000; i += 7) {
        fxtap_node node = 0;
        snprintf(name, sizeof name, "mul_%u", i);
        assert_int_equal(fxtap_graph_find_node(g, name, &node), FXTAP_OK);
        assert_int_equal(node, i);
    }
    assert_string_equal(first.name, "mul_0");
    fxtap_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_wrong_handles),
        cmocka_unit_test(test_bounds),        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_damaged_bytes), cmocka_unit_test(test_many_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
