/* Records whose walks would be far larger or deeper than the records themselves: work and stack stay bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fxtap/print.h"
#include "graph/record.h"
#include "graph/symbols.h"
#include "pair/wiring.h"
#include "support_graph.h"

#define CHAIN 1000000
#define SECONDS_MAX 300 /* for the whole program, also with sanitisers; unbounded work would take years */

static fxtap_status summarise(const fxtap_graph *g, fxtap_buffer *text)
{
    fxtap_summary_options options = {.struct_size = sizeof options, .english = true, .no_mark = true};
    fxtap_buffer_init(text);
    return fxtap_graph_summary(g, &options, text);
}

static fxtap_status print(const fxtap_graph *g, fxtap_print_format format, fxtap_buffer *text)
{
    fxtap_print_options options = {.struct_size = sizeof options, .format = format};
    fxtap_buffer_init(text);
    return fxtap_graph_print(g, &options, text);
}

/* Every walk ends, and reports what it cannot do. */
static void use(const fxtap_graph *g)
{
    fxtap_buffer text;
    fxtap_hash128 key = fxtap_graph_strict_key(g), structural = fxtap_graph_structural_key(g);
    assert_true(key.high != 0 && structural.high != 0);
    for (int format = FXTAP_PRINT_FX; format <= FXTAP_PRINT_PBTXT; format++) {
        fxtap_status status = print(g, (fxtap_print_format)format, &text);
        assert_true(status == FXTAP_OK || (status == FXTAP_E_UNSUPPORTED && format >= FXTAP_PRINT_PY));
        if (status == FXTAP_E_UNSUPPORTED) {
            assert_non_null(strstr(fxtap_error_message(), "too large to lower"));
        }
        fxtap_buffer_clear(&text);
    }
    fx_wiring *wiring = NULL;
    assert_int_equal(fx_wiring_create(&(fx_wiring_part){g, fxtap_graph_node_count(g)}, 1, &wiring), FXTAP_OK);
    fx_wiring_free(wiring);
    fxtap_graph *part = NULL;
    fxtap_select_options options = {.struct_size = sizeof options, .around = "n0", .hops = UINT32_MAX};
    assert_int_equal(fxtap_graph_select(g, &options, &part), FXTAP_OK);
    fxtap_graph_free(part);
    void *bytes = NULL;
    size_t n_bytes = 0;
    fxtap_graph *copy = NULL;
    assert_int_equal(fxtap_graph_serialise(g, &bytes, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_graph_deserialise(bytes, n_bytes, &copy), FXTAP_OK);
    fxtap_graph_free(copy);
    fxtap_free(bytes);
}

/* n0, and nodes that take their predecessor, and return it, `times` times. */
static fxtap_graph *chain(fxtap_node_op op, size_t n, size_t times)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_node last = sg_node(g, op, "n0", "aten.sin.default", 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", "4"));
    for (size_t i = 1; i < n; i++) {
        char name[24];
        fxtap_value refs[2];
        snprintf(name, sizeof name, "n%zu", i);
        for (size_t j = 0; j < times; j++) {
            refs[j] = sg_ref(g, last);
        }
        fxtap_value meta = times == 1 ? refs[0] : sg_list(g, FXTAP_V_LIST, times, refs);
        last = sg_node(g, op, name, "aten.sin.default", 1, refs, meta);
    }
    return g;
}

static void test_doubling(void **state)
{
    (void)state;
    static const fxtap_node_op ops[] = {FXTAP_OP_CALL_FUNCTION, FXTAP_OP_PLACEHOLDER, FXTAP_OP_GET_ATTR};
    for (size_t i = 0; i < 3; i++) {
        fxtap_graph *g = chain(ops[i], 60, 2);
        fxtap_buffer text;
        assert_int_equal(summarise(g, &text), FXTAP_OK);
        fxtap_buffer_clear(&text);
        use(g);
        fxtap_graph_free(g);
    }
}

static void test_doubling_text(void **state)
{
    (void)state;
    fxtap_graph *g = chain(FXTAP_OP_CALL_FUNCTION, 4, 2);
    fxtap_buffer text;
    assert_int_equal(summarise(g, &text), FXTAP_OK);
    assert_string_equal(text.bytes, "target,kind,support,calls,inputs,outputs\r\n"
                                    "aten.sin.default,aten,supported,4,\"1x: ()\n1x: (float32(4,),)\n"
                                    "1x: ([n0, n0],)\n1x: ([n1, n1],)\",\"1x: float32(4,)\n1x: [n0, n0]\n"
                                    "1x: [n1, n1]\n1x: [n2, n2]\"\r\n");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_chain(void **state)
{
    (void)state;
    fxtap_graph *g = chain(FXTAP_OP_CALL_FUNCTION, CHAIN, 1);
    fxtap_buffer text;
    assert_int_equal(summarise(g, &text), FXTAP_OK);
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
    static const fxtap_node_op ops[] = {FXTAP_OP_CALL_FUNCTION, FXTAP_OP_PLACEHOLDER, FXTAP_OP_GET_ATTR};
    for (size_t i = 0; i < 3; i++) {
        g = chain(ops[i], CHAIN / 50, 1);
        use(g);
        fxtap_graph_free(g);
    }
}

/* Lists that contain the previous list twice, nested over many levels, as an argument: it represents 2^levels items. */
static fxtap_status add_twice(size_t n_levels)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value value = sg_int(g, 7);
    for (size_t i = 0; i < n_levels; i++) {
        value = sg_list(g, FXTAP_V_LIST, 2, (fxtap_value[]){value, value});
    }
    fxtap_node_desc desc = {.struct_size = sizeof desc,
                            .op = FXTAP_OP_CALL_FUNCTION,
                            .name = "n0",
                            .target = "mine.f",
                            .args = &value,
                            .n_args = 1};
    fxtap_node node = 0;
    fxtap_status status = fxtap_graph_add_node(g, &desc, &node);
    if (status == FXTAP_OK) {
        use(g);
    }
    fxtap_graph_free(g);
    return status;
}

/* The limit is in proportion to the record: an empty one's is 2^16, and each level adds 3 * 256. */
static void test_twice_a_level(void **state)
{
    (void)state;
    assert_int_equal(add_twice(15), FXTAP_OK);
    for (size_t n_levels = 17; n_levels < 23; n_levels++) {
        assert_int_equal(add_twice(n_levels), FXTAP_E_INVALID);
        assert_string_equal(fxtap_error_message(), "n0: values named too often for a graph record");
    }
}

/* A tuple of many items, used as many times: every use would write all of it. */
static void test_wide_results(void **state)
{
    (void)state;
    enum { ITEMS = 20000 };
    static const fxtap_node_op ops[] = {FXTAP_OP_CALL_FUNCTION, FXTAP_OP_PLACEHOLDER, FXTAP_OP_GET_ATTR};
    static fxtap_value row[ITEMS];
    for (size_t k = 0; k < 3; k++) {
        fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
        row[0] = sg_int(g, 7);
        for (size_t i = 1; i < ITEMS; i++) {
            row[i] = row[0];
        }
        fxtap_node wide = sg_node(g, ops[k], "n0", "aten.sin.default", 0, NULL, sg_list(g, FXTAP_V_TUPLE, ITEMS, row));
        for (size_t i = 0; i < ITEMS; i++) {
            row[i] = sg_ref(g, wide);
        }
        sg_node(g, FXTAP_OP_CALL_FUNCTION, "take", "aten.cat.default", ITEMS, row, 0);
        fxtap_buffer text;
        assert_int_equal(summarise(g, &text), FXTAP_E_UNSUPPORTED);
        assert_non_null(strstr(fxtap_error_message(), "too large for a summary"));
        assert_int_equal(text.length, 0);
        if (ops[k] == FXTAP_OP_PLACEHOLDER) { /* a call yields one tensor for each item */
            assert_int_equal(print(g, FXTAP_PRINT_PY, &text), FXTAP_E_UNSUPPORTED);
            fxtap_buffer_clear(&text);
        }
        fxtap_graph_free(g);
    }
}

/* Optimisers produce hundreds of results of one operator, each used separately. These are accepted. */
static void test_many_items(void **state)
{
    (void)state;
    enum { ITEMS = 2000 };
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value *metas = calloc(ITEMS, sizeof *metas), *inputs = calloc(ITEMS, sizeof *inputs);
    assert_true(metas != NULL && inputs != NULL);
    for (size_t i = 0; i < ITEMS; i++) {
        char name[24];
        snprintf(name, sizeof name, "p%zu", i);
        metas[i] = sg_tensor(g, FXTAP_FLOAT32, "cpu", "64,128");
        inputs[i] = sg_ref(g, sg_node(g, FXTAP_OP_PLACEHOLDER, name, name, 0, NULL, metas[i]));
    }
    fxtap_value list = sg_list(g, FXTAP_V_LIST, ITEMS, inputs);
    fxtap_node all = sg_node(g, FXTAP_OP_CALL_FUNCTION, "all", "mine.foreach.default", 1, &list,
                             sg_list(g, FXTAP_V_LIST, ITEMS, metas));
    for (size_t i = 0; i < ITEMS; i++) {
        char name[24];
        snprintf(name, sizeof name, "getitem_%zu", i);
        fxtap_value args[] = {sg_ref(g, all), sg_int(g, (int64_t)i)};
        sg_node(g, FXTAP_OP_CALL_FUNCTION, name, "operator.getitem", 2, args, metas[i]);
    }
    fxtap_buffer text;
    assert_int_equal(summarise(g, &text), FXTAP_OK);
    fxtap_buffer_clear(&text);
    for (int format = FXTAP_PRINT_FX; format <= FXTAP_PRINT_PBTXT; format++) {
        assert_int_equal(print(g, (fxtap_print_format)format, &text), FXTAP_OK);
        if (format == FXTAP_PRINT_TXT) { /* every tensor is an input */
            assert_non_null(strstr(text.bytes, "input: \"p1999:0\""));
        }
        fxtap_buffer_clear(&text);
    }
    free(metas);
    free(inputs);
    fxtap_graph_free(g);
}

/* Nested subgraphs, each referring to the next one four times: 4^14 walks, by value or by node. */
static void test_subgraphs(void **state)
{
    (void)state;
    for (int by_node = 0; by_node < 2; by_node++) {
        fxtap_graph *inner = sg_graph(FXTAP_GRAPH_SUBGRAPH);
        sg_node(inner, FXTAP_OP_PLACEHOLDER, "n0", "n0", 0, NULL, 0);
        fxtap_status status = FXTAP_OK;
        for (int level = 0; level < FX_GRAPH_DEPTH_MAX - 2 && status == FXTAP_OK; level++) {
            fxtap_graph *outer = sg_graph(FXTAP_GRAPH_SUBGRAPH);
            fxtap_value body = 0, names[4];
            fxtap_node node = 0;
            assert_int_equal(fxtap_graph_add_subgraph(outer, inner, &body), FXTAP_OK);
            fxtap_node_desc desc = {.struct_size = sizeof desc, .op = FXTAP_OP_GET_ATTR, .name = "n0", .target = "n0"};
            desc.meta = body;
            status = fxtap_graph_add_node(outer, &desc, &node);
            for (size_t i = 0; i < 4 && status == FXTAP_OK; i++) {
                names[i] = by_node ? sg_ref(outer, node) : body;
            }
            desc = (fxtap_node_desc){.struct_size = sizeof desc,
                                     .op = FXTAP_OP_CALL_FUNCTION,
                                     .name = "cond",
                                     .target = "higher_order.cond",
                                     .args = names,
                                     .n_args = 4};
            status = status == FXTAP_OK ? fxtap_graph_add_node(outer, &desc, &node) : status;
            inner = outer;
        }
        assert_int_equal(status, FXTAP_E_INVALID);
        assert_non_null(strstr(fxtap_error_message(), "subgraphs named too often"));
        fxtap_graph_free(inner);
    }
}

/* Three levels, such as control flow within control flow within a region, are accepted. */
static void test_few_subgraphs(void **state)
{
    (void)state;
    fxtap_graph *inner = sg_graph(FXTAP_GRAPH_SUBGRAPH);
    sg_node(inner, FXTAP_OP_PLACEHOLDER, "n0", "n0", 0, NULL, 0);
    for (int level = 0; level < 3; level++) {
        fxtap_graph *outer = sg_graph(FXTAP_GRAPH_SUBGRAPH);
        fxtap_value body = 0;
        assert_int_equal(fxtap_graph_add_subgraph(outer, inner, &body), FXTAP_OK);
        fxtap_node node = sg_node(outer, FXTAP_OP_GET_ATTR, "n0", "n0", 0, NULL, body);
        fxtap_value names[] = {sg_ref(outer, node), sg_ref(outer, node)};
        sg_node(outer, FXTAP_OP_CALL_FUNCTION, "cond", "higher_order.cond", 2, names, 0);
        inner = outer;
    }
    use(inner);
    fxtap_graph *part = NULL;
    fxtap_select_options options = {.struct_size = sizeof options, .op = "*cond*"};
    assert_int_equal(fxtap_graph_select(inner, &options, &part), FXTAP_OK);
    assert_int_equal(fxtap_graph_subgraph_count(part), 1);
    fxtap_graph_free(part);
    fxtap_graph_free(inner);
}

/* Names that one reference after another writes out are part of what a record may weigh. */
static void test_long_names(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *name = malloc(LENGTH + 1);
    assert_non_null(name);
    memset(name, 'n', LENGTH);
    name[LENGTH] = '\0';
    for (int way = 0; way < 4; way++) {
        fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
        fxtap_node node = sg_node(g, FXTAP_OP_PLACEHOLDER, way == 0 ? name : "x", "x", 0, NULL, 0);
        fxtap_value refs[10000], list;
        const char *names[10000];
        fxtap_tensor_meta meta = {
            .struct_size = sizeof meta, .dtype = FXTAP_FLOAT32, .device = way == 3 ? name : "cpu"};
        fxtap_value tensor = 0;
        assert_int_equal(fxtap_graph_add_tensor(g, &meta, &tensor), FXTAP_OK);
        for (size_t i = 0; i < 10000; i++) {
            refs[i] = way == 3 ? tensor : sg_ref(g, node);
            names[i] = name;
        }
        fxtap_node_desc desc = {.struct_size = sizeof desc,
                                .op = FXTAP_OP_CALL_FUNCTION,
                                .name = "y",
                                .target = "y",
                                .args = refs,
                                .n_args = 10000};
        if (way == 1) {
            desc.arg_names = names;
        }
        if (way == 2) {
            list = sg_list(g, FXTAP_V_LIST, 10000, refs);
            desc.n_args = 0;
            desc.kwarg_names = names;
            desc.kwarg_values = &list;
            desc.n_kwargs = 1;
        }
        assert_int_equal(fxtap_graph_add_node(g, &desc, &node), FXTAP_E_INVALID);
        assert_non_null(strstr(fxtap_error_message(), "values named too often for a graph record"));
        fxtap_graph_free(g);
    }
    free(name);
}

/* Values nest as deep as a record allows, and the wires are found at the bottom. */
static void test_deep_wires(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value value = sg_ref(g, sg_node(g, FXTAP_OP_PLACEHOLDER, "n0", "n0", 0, NULL, 0));
    char position[2 * FX_VALUE_DEPTH_MAX + 8] = "0";
    for (int i = 0; i < FX_VALUE_DEPTH_MAX; i++) {
        value = sg_list(g, FXTAP_V_LIST, 1, &value);
        strcat(position, ".0");
    }
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "f", "mine.f.default", 1, &value, 0);
    fx_wiring *wiring = NULL;
    size_t producer = 9;
    assert_int_equal(fx_wiring_create(&(fx_wiring_part){g, fxtap_graph_node_count(g)}, 1, &wiring), FXTAP_OK);
    assert_true(fx_wiring_producer(wiring, 1, position, &producer));
    assert_int_equal(producer, 0);
    fx_wiring_free(wiring);
    use(g);
    fxtap_graph_free(g);
}

/* A constant of many dimensions, and one whose number of elements wraps around to match its bytes. */
static void test_constants(void **state)
{
    (void)state;
    static const char *const dims[] = {"3,6148914691236517206", "4294967296,4294967296,4", "0,9223372036854775807,4"};
    enum { DIMS = 20000 };
    for (size_t k = 0; k < 4; k++) {
        fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
        static const float data[4] = {1, 2, 3, 4};
        fxtap_value *shape = calloc(DIMS, sizeof *shape), value = 0;
        assert_non_null(shape);
        fxtap_tensor_meta meta = {.struct_size = sizeof meta, .dtype = FXTAP_FLOAT32, .bytes = data, .n_bytes = 8};
        if (k < 3) {
            char text[64];
            strcpy(text, dims[k]);
            for (char *at = strtok(text, ","); at != NULL; at = strtok(NULL, ",")) {
                shape[meta.n_dims++] = sg_int(g, strtoll(at, NULL, 10));
            }
        } else {
            for (meta.n_dims = 0; meta.n_dims < DIMS; meta.n_dims++) {
                shape[meta.n_dims] = sg_int(g, 1);
            }
        }
        meta.shape = shape;
        assert_int_equal(fxtap_graph_add_tensor(g, &meta, &value), FXTAP_OK);
        fxtap_node node = sg_node(g, FXTAP_OP_GET_ATTR, "n0", "n0", 0, NULL, value);
        fxtap_value refs[] = {sg_ref(g, node), sg_ref(g, node)};
        sg_node(g, FXTAP_OP_CALL_FUNCTION, "add", "aten.add.Tensor", 2, refs, value);
        use(g);
        free(shape);
        fxtap_graph_free(g);
    }
}

static fxtap_value size_list(fxtap_graph *g, size_t n, const int64_t *sizes)
{
    fxtap_value items[8];
    for (size_t i = 0; i < n; i++) {
        items[i] = sg_int(g, sizes[i]);
    }
    return sg_list(g, FXTAP_V_LIST, n, items);
}

static fxtap_value tensor_of(fxtap_graph *g, size_t n, const int64_t *sizes)
{
    fxtap_value items[8], value = 0;
    for (size_t i = 0; i < n; i++) {
        items[i] = sg_int(g, sizes[i]);
    }
    fxtap_tensor_meta meta = {.struct_size = sizeof meta, .dtype = FXTAP_FLOAT32, .shape = items, .n_dims = n};
    assert_int_equal(fxtap_graph_add_tensor(g, &meta, &value), FXTAP_OK);
    return value;
}

/* Sizes whose products overflow: a reshape of a transposed tensor, which is regrouped, and a count of elements. */
static void test_huge_sizes(void **state)
{
    (void)state;
    const int64_t before[] = {7, (int64_t)1 << 32, (int64_t)1 << 33},
                  turned[] = {(int64_t)1 << 32, (int64_t)1 << 33, 7};
    const int64_t after[] = {(int64_t)1 << 62, 4, 7};
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_node x = sg_node(g, FXTAP_OP_PLACEHOLDER, "n0", "n0", 0, NULL, tensor_of(g, 3, before));
    fxtap_value permute[] = {sg_ref(g, x), size_list(g, 3, (const int64_t[]){1, 2, 0})};
    fxtap_node y = sg_node(g, FXTAP_OP_CALL_FUNCTION, "p", "aten.permute.default", 2, permute, tensor_of(g, 3, turned));
    fxtap_value reshape[] = {sg_ref(g, y), size_list(g, 3, after)};
    fxtap_node z = sg_node(g, FXTAP_OP_CALL_FUNCTION, "r", "aten.view.default", 2, reshape, tensor_of(g, 3, after));
    fxtap_value ref = sg_ref(g, z);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "s", "aten.sin.default", 1, &ref, tensor_of(g, 3, after));
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "m", "aten.mean.default", 1, &ref, tensor_of(g, 0, after));
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &ref, 0);
    fxtap_buffer text;
    assert_int_equal(print(g, FXTAP_PRINT_PY, &text), FXTAP_OK);
    const char *first = strstr(text.bytes, "ge.Transpose("); /* made before the reshape: they are not one view */
    assert_true(first != NULL && strstr(first, "ge.Reshape(") != NULL);
    fxtap_buffer_clear(&text);
    use(g);
    fxtap_graph_free(g);
}

/* More instructions than a recipe may have: reported, not omitted. */
static void test_many_pieces(void **state)
{
    (void)state;
    enum { PIECES = 5000 };
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value *metas = calloc(PIECES, sizeof *metas);
    assert_non_null(metas);
    for (size_t i = 0; i < PIECES; i++) {
        metas[i] = sg_tensor(g, FXTAP_FLOAT32, "cpu", "1");
    }
    fxtap_node x = sg_node(g, FXTAP_OP_PLACEHOLDER, "n0", "n0", 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", "5000"));
    fxtap_value args[] = {sg_ref(g, x), sg_int(g, 1)};
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "s", "aten.split.Tensor", 2, args, sg_list(g, FXTAP_V_LIST, PIECES, metas));
    free(metas);
    fxtap_buffer text;
    assert_int_equal(print(g, FXTAP_PRINT_TXT, &text), FXTAP_OK);
    assert_non_null(strstr(text.bytes, "range of 4096 or more numbers"));
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

/* Quotients nest in loops of the parser: the texts of all levels together are many times the expression. */
static void test_symbol_memory(void **state)
{
    (void)state;
    fx_symbols symbols;
    char expression[4000] = "s1";
    fx_symbols_init(&symbols);
    for (size_t length = 2; length + 5 < sizeof expression; length += 4) {
        strcpy(expression + length, "//s1");
    }
    assert_non_null(fx_symbols_canonical(&symbols, expression));
    assert_null(symbols.scratch.chunk);
    const char *text = fx_symbols_canonical(&symbols, "s7 + s1");
    assert_string_equal(text, "(+ s#0 s#1)");
    assert_ptr_equal(text, fx_symbols_canonical(&symbols, "s7 + s1"));
    fx_symbols_clear(&symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubling),      cmocka_unit_test(test_doubling_text), cmocka_unit_test(test_chain),
        cmocka_unit_test(test_wide_results),  cmocka_unit_test(test_many_items),    cmocka_unit_test(test_subgraphs),
        cmocka_unit_test(test_few_subgraphs), cmocka_unit_test(test_long_names),    cmocka_unit_test(test_deep_wires),
        cmocka_unit_test(test_constants),     cmocka_unit_test(test_symbol_memory), cmocka_unit_test(test_huge_sizes),
        cmocka_unit_test(test_many_pieces),   cmocka_unit_test(test_twice_a_level),
    };
    alarm(SECONDS_MAX);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
