/* json and dot: every value is printed, and no text escapes from its quotes; parts of graphs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fxtap/print.h"
#include "graph/modules.h"
#include "graph/record.h"
#include "graph/support.h"
#include "support_graph.h"
#include "util/memory.h"

static void print(const fxtap_graph *g, fxtap_print_format format, fxtap_buffer *out)
{
    fxtap_print_options options = {.struct_size = sizeof options, .format = format, .title = "a \"title\"\\"};
    fxtap_buffer_init(out);
    assert_int_equal(fxtap_graph_print(g, &options, out), FXTAP_OK);
}

static void check_contains(const fxtap_buffer *text, const char *part)
{
    if (strstr(text->bytes, part) == NULL) {
        fail_msg("no %s in:\n%s", part, text->bytes);
    }
}

static fxtap_node call(fxtap_graph *g, const char *name, const char *target, const char *module, size_t n_inputs,
                       const fxtap_node *inputs)
{
    fxtap_value args[8];
    for (size_t i = 0; i < n_inputs; i++) {
        args[i] = sg_ref(g, inputs[i]);
    }
    fxtap_node_desc d = {.struct_size = sizeof d,
                         .op = FXTAP_OP_CALL_FUNCTION,
                         .name = name,
                         .target = target,
                         .args = args,
                         .n_args = n_inputs,
                         .module_path = module,
                         .module_type = "a.b.Linear"};
    d.meta = sg_tensor(g, FXTAP_FLOAT32, "cpu", "s1,4");
    return sg_add(g, &d);
}

/* x, y -> a = add(x, y) -> b = relu(a), c = mul(b, a) -> d = sin(c); output (d, b) */
static fxtap_graph *small(void)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_FORWARD);
    fxtap_node x = sg_node(g, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", "s1,4"));
    fxtap_node y = sg_node(g, FXTAP_OP_PLACEHOLDER, "y", "y", 0, NULL, 0);
    fxtap_node a = call(g, "a", "aten.add.Tensor", "L['self'].fc", 2, (fxtap_node[]){x, y});
    fxtap_node b = call(g, "b", "aten.relu.default", "L['self'].fc.act", 1, &a);
    fxtap_node c = call(g, "c", "aten.mul.Tensor", "L['self'].fc", 2, (fxtap_node[]){b, a});
    fxtap_node d = call(g, "d", "aten.sin.default", NULL, 1, &c);
    fxtap_value results[] = {sg_ref(g, d), sg_ref(g, b)};
    fxtap_value tuple = sg_list(g, FXTAP_V_TUPLE, 2, results);
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &tuple, 0);
    return g;
}

static void test_json(void **state)
{
    (void)state;
    fxtap_graph *g = small();
    fxtap_value args[] = {sg_int(g, INT64_MAX),
                          sg_int(g, -5),
                          sg_float(g, -0.0),
                          sg_float(g, (double)NAN),
                          sg_none(g),
                          sg_bool(g, true),
                          sg_text(g, FXTAP_V_STRING, "\"\n\x01"),
                          sg_text(g, FXTAP_V_STRING, "\xff"),
                          sg_text(g, FXTAP_V_BYTES, "ab"),
                          sg_sym(g, "s1 + 1"),
                          sg_text(g, FXTAP_V_DTYPE, "torch.int8")};
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "e\xff", "aten.e.default", sizeof args / sizeof *args, args, 0);
    fxtap_buffer text;
    print(g, FXTAP_PRINT_JSON, &text);
    check_contains(&text, "\"title\": \"a \\\"title\\\"\\\\\", \"kind\": \"forward\"");
    check_contains(&text,
                   "[{\"int\": \"9223372036854775807\"}, -5, {\"float\": -0.0}, {\"float\": \"nan\"}, null, true, "
                   "{\"string\": \"\\\"\\n\\u0001\"}, {\"string_base64\": \"/w==\"}, {\"bytes\": \"YWI=\"}, "
                   "{\"symint\": \"s1 + 1\", \"hint\": null}, {\"dtype\": \"torch.int8\"}]");
    check_contains(&text,
                   "\"args\": [{\"node\": 0}, {\"node\": 1}], \"kwargs\": [], \"yields\": {\"tensor\": {\"dtype\": "
                   "\"float32\", \"device\": \"cpu\", \"layout\": \"torch.strided\", \"shape\": [{\"symint\": \"s1\", "
                   "\"hint\": null}, 4], \"strides\": null, \"requires_grad\": false}}");
    check_contains(&text, "\"name\": \"e\xef\xbf\xbd\"");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_dot(void **state)
{
    (void)state;
    fxtap_graph *g = small();
    call(g, "\"];x[\"\n\\", "t\"", "a[\".\"].b", 0, NULL);
    fxtap_buffer text;
    print(g, FXTAP_PRINT_DOT, &text);
    check_contains(&text, "digraph \"a \\\"title\\\"\\\\\" {");
    check_contains(&text,
                   "subgraph cluster_0 {\nstyle=\"rounded\"; label=\"fc Linear\";\nn2 [label=\"a\\naten.add.Tensor\\n"
                   "float32[s1, 4] cpu\"");
    check_contains(&text, "subgraph cluster_1 {\nstyle=\"rounded\"; label=\"act Linear\";\nn3 ");
    check_contains(&text, "label=\"a[\\\".\\\"]\";\n");
    check_contains(&text, "n7 [label=\"\\\"];x[\\\"\\\\x0a\\\\\\nt\\\"");
    check_contains(&text, "n3 -> n4;\nn2 -> n4;\n");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static size_t some_stats(void *context, const char *node, const fxtap_print_stat **out)
{
    static const fxtap_print_stat stats[] = {
        {.place = "OUTPUT.0",
         .shape = "2, 3",
         .path = "/a<b.npy",
         .has_stats = true,
         .stats = {.dtype = FXTAP_INT64,
                   .has_range = true,
                   .min_int = INT64_MIN,
                   .max_int = INT64_MAX,
                   .count = 6,
                   .nan_count = 0,
                   .mean = (double)NAN,
                   .std = 0.5}},
        {.place = "INPUT.0", .shape = "", .stats = {.dtype = FXTAP_FLOAT32}},
    };
    *out = stats;
    *(int *)context += strcmp(node, "a") == 0;
    return strcmp(node, "a") == 0 ? 2 : 0;
}

/* The page's data is JSON that no name can break out of; the page loads nothing from elsewhere. */
static void test_html(void **state)
{
    (void)state;
    fxtap_graph *g = small();
    call(g, "</script><img src=x onerror=alert(1)>&", "t<b>", "m<i>", 0, NULL);
    int n_calls = 0;
    fxtap_print_options options = {.struct_size = sizeof options,
                                   .format = FXTAP_PRINT_HTML,
                                   .title = "<t>",
                                   .stats = some_stats,
                                   .context = &n_calls};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    assert_int_equal(fxtap_graph_print(g, &options, &text), FXTAP_OK);
    assert_int_equal(n_calls, 1);
    const char *data = strstr(text.bytes, "id=\"data\">");
    assert_non_null(data);
    const char *end = strstr(data, "</script>");
    assert_non_null(end);
    for (const char *at = data + strlen("id=\"data\">"); at < end; at++) {
        assert_true(*at != '<' && *at != '>' && *at != '&');
    }
    check_contains(&text, "\"name\":\"\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)\\u003e\\u0026\"");
    check_contains(&text, "[\"OUTPUT.0\",\"int64\",\"2, 3\",\"/a\\u003cb.npy\",6,0,0,0,\"-9223372036854775808\","
                          "\"9223372036854775807\",\"NaN\",\"0.5\",\"0\",\"0\"],[\"INPUT.0\",\"float32\",\"\",null]");
    assert_null(strstr(text.bytes, "http://"));
    assert_null(strstr(text.bytes, "https://"));
    assert_null(strstr(text.bytes, "innerHTML"));
    assert_string_equal(text.bytes + text.length - 8, "</html>\n");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_modules(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    call(g, "a", "t", "L['self'].layers.0.fc", 0, NULL);
    call(g, "b", "t", "L['self'].layers.1", 0, NULL);
    call(g, "c", "t", "L['self'].layers.0.fc", 0, NULL);
    call(g, "d", "t", "L['self']", 0, NULL);
    call(g, "e", "t", "L['x.y'].z", 0, NULL);
    call(g, "f", "t", "a..b.", 0, NULL);
    call(g, "g", "t", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", 0, NULL);
    fx_modules m;
    assert_true(fx_modules_init(&m, g));
    const fx_module *module = &m.modules[m.of_node[0]];
    assert_memory_equal(module->name, "fc", 2);
    assert_int_equal(module->path_length, strlen("L['self'].layers.0.fc"));
    assert_memory_equal(m.modules[module->parent].name, "0", 1);
    assert_int_equal(m.of_node[2], m.of_node[0]);
    assert_int_equal(m.modules[m.of_node[1]].parent, m.modules[module->parent].parent);
    assert_int_equal(m.of_node[3], 0);
    module = &m.modules[m.of_node[4]];
    assert_memory_equal(m.modules[module->parent].name, "L['x.y']", 8);
    unsigned depth = 0;
    for (uint32_t i = m.of_node[6]; i != 0; i = m.modules[i].parent) {
        depth++;
    }
    assert_int_equal(depth, FX_MODULE_DEPTH_MAX);
    fx_modules_clear(&m);
    fxtap_graph_free(g);
}

/* "x? y? a b" - the names of a part, with "?" at those that became placeholders and "!" at those returned. */
static void check_part(const fxtap_graph *g, const fxtap_select_options *options, const char *expected)
{
    fxtap_graph *part = NULL;
    assert_int_equal(fxtap_graph_select(g, options, &part), FXTAP_OK);
    char text[512] = "";
    size_t n_nodes = fxtap_graph_node_count(part);
    fxtap_node_desc output = {.struct_size = sizeof output};
    assert_int_equal(fxtap_graph_node(part, (fxtap_node)n_nodes - 1, &output), FXTAP_OK);
    assert_int_equal(output.op, FXTAP_OP_OUTPUT);
    size_t n_results;
    const fxtap_value *results = fxtap_value_items(part, output.args[0], &n_results);
    for (size_t i = 0; i + 1 < n_nodes; i++) {
        fxtap_node_desc d = {.struct_size = sizeof d};
        assert_int_equal(fxtap_graph_node(part, (fxtap_node)i, &d), FXTAP_OK);
        strcat(strcat(text, i == 0 ? "" : " "), d.name);
        strcat(text, d.op == FXTAP_OP_PLACEHOLDER ? "?" : "");
        for (size_t j = 0; j < n_results; j++) {
            strcat(text, fxtap_value_node(part, results[j]) == i ? "!" : "");
        }
    }
    assert_string_equal(text, expected);
    fxtap_graph_free(part);
}

static void test_select(void **state)
{
    (void)state;
    fxtap_graph *g = small();
    fxtap_select_options o = {.struct_size = sizeof o};
    check_part(g, &o, "x? y? a b! c d!");
    o.around = "b";
    check_part(g, &o, "a? b!");
    o.hops = 1;
    check_part(g, &o, "x? y? a b! c!");
    o.hops = UINT32_MAX;
    check_part(g, &o, "x? y? a b! c d!");
    o.hops = 2;
    o.op = "aten.*.Tensor";
    check_part(g, &o, "x? y? b? a! c!");
    o.around = NULL;
    o.op = NULL;
    o.module = "*.fc*";
    check_part(g, &o, "x? y? a b! c!");
    o.module = "*.act";
    check_part(g, &o, "a? b!");
    o.around = NULL;
    o.op = NULL;
    o.module = "fc"; /* without the root */
    check_part(g, &o, "x? y? b? a! c!");
    o.module = NULL;
    o.op = "b"; /* a name, as in a list */
    check_part(g, &o, "a? b!");
    o.op = "fc.act";
    check_part(g, &o, "a? b!");
    fxtap_graph *part = NULL;
    o.op = "aten.reul.default*";
    assert_int_equal(fxtap_graph_select(g, &o, &part), FXTAP_E_NOT_FOUND);
    assert_string_equal(fxtap_error_message(), "no operator matches \"aten.reul.default*\" in the graph, did you mean "
                                               "aten.relu.default?");
    o.module = "*.act";
    assert_int_equal(fxtap_graph_select(g, &o, &part), FXTAP_E_NOT_FOUND);
    o.around = "zz";
    assert_int_equal(fxtap_graph_select(g, &o, &part), FXTAP_E_NOT_FOUND);
    assert_null(part);
    fxtap_graph_free(g);
}

/* A part contains everything that its nodes use: constants, subgraphs, keywords. */
static void test_select_values(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_graph *inner = small();
    fxtap_value v[8];
    double hint = 3;
    assert_int_equal(fxtap_graph_add_subgraph(g, inner, &v[0]), FXTAP_OK);
    v[1] = sg_float(g, 0.5);
    assert_int_equal(fxtap_graph_add_symbol(g, FXTAP_V_SYMINT, "s1", &hint, &v[2]), FXTAP_OK);
    fxtap_tensor_meta meta = {
        .struct_size = sizeof meta, .dtype = FXTAP_UINT8, .shape = NULL, .bytes = "x", .n_bytes = 1};
    assert_int_equal(fxtap_graph_add_tensor(g, &meta, &v[3]), FXTAP_OK);
    v[4] = sg_ref(g, sg_node(g, FXTAP_OP_GET_ATTR, "constant", "constant", 0, NULL, v[3]));
    v[5] = sg_list(g, FXTAP_V_DICT, 2, v + 1);
    v[6] = sg_text(g, FXTAP_V_STRING, "s");
    const char *name = "k";
    fxtap_node_desc d = {.struct_size = sizeof d,
                         .op = FXTAP_OP_CALL_FUNCTION,
                         .name = "f",
                         .target = "aten.f.default",
                         .args = v,
                         .n_args = 7,
                         .kwarg_names = &name,
                         .kwarg_values = v + 1,
                         .n_kwargs = 1};
    sg_add(g, &d);
    fxtap_value result = sg_ref(g, 1);
    fxtap_value tuple = sg_list(g, FXTAP_V_TUPLE, 1, &result);
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &tuple, 0);
    fxtap_graph *part = NULL;
    fxtap_select_options o = {.struct_size = sizeof o, .op = "aten.f*"};
    assert_int_equal(fxtap_graph_select(g, &o, &part), FXTAP_OK);
    fxtap_hash128 a = fxtap_graph_strict_key(g);
    fxtap_hash128 b = fxtap_graph_strict_key(part);
    assert_true(a.high == b.high && a.low == b.low);
    fxtap_graph_free(part);
    bool done = false;
    for (long long n = 0; !done; n++) {
        assert_true(n < 1000);
        fx_memory_fail_after(n);
        part = NULL;
        fxtap_status status = fxtap_graph_select(g, &o, &part);
        fx_memory_fail_after(-1);
        done = status == FXTAP_OK;
        assert_true(done || (status == FXTAP_E_NOMEM && part == NULL));
        fxtap_graph_free(part);
    }
    for (int format = FXTAP_PRINT_FX; format <= FXTAP_PRINT_HTML; format++) {
        done = false;
        for (long long n = 0; !done; n++) {
            fxtap_print_options options = {.struct_size = sizeof options, .format = (fxtap_print_format)format};
            fxtap_buffer out;
            fxtap_buffer_init(&out);
            fx_memory_fail_after(n);
            fxtap_status status = fxtap_graph_print(g, &options, &out);
            fx_memory_fail_after(-1);
            done = status == FXTAP_OK;
            assert_true(done || status == FXTAP_E_NOMEM);
            assert_true(n < 1000);
            fxtap_buffer_clear(&out);
        }
    }
    fxtap_graph_free(g);
}

static void check_summary(const fxtap_graph *g, bool english, const char *expected)
{
    fxtap_summary_options o = {.struct_size = sizeof o, .english = english, .no_mark = english};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    assert_int_equal(fxtap_graph_summary(g, &o, &text), FXTAP_OK);
    assert_string_equal(text.bytes, expected);
    fxtap_buffer_clear(&text);
}

static void test_summary(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value meta = sg_tensor(g, FXTAP_FLOAT32, "cpu", "s1,4");
    fxtap_node x = sg_node(g, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, meta);
    fxtap_value list[] = {sg_ref(g, x), sg_none(g)};
    fxtap_value v[] = {sg_ref(g, x), sg_float(g, -(double)INFINITY), sg_text(g, FXTAP_V_STRING, "a\"b"),
                       sg_list(g, FXTAP_V_LIST, 2, list)};
    fxtap_value device = sg_text(g, FXTAP_V_DEVICE, "npu:1");
    const char *name = "device";
    fxtap_node_desc d = {.struct_size = sizeof d,
                         .op = FXTAP_OP_CALL_FUNCTION,
                         .name = "a",
                         .target = "aten.add.Tensor",
                         .args = v,
                         .n_args = 2,
                         .meta = meta};
    sg_add(g, &d);
    d.name = "b";
    d.n_args = 1;
    sg_add(g, &d);
    d.name = "c";
    sg_add(g, &d);
    d.name = "d";
    d.target = "operator.mul";
    d.args = v + 2;
    d.n_args = 2;
    d.kwarg_names = &name;
    d.kwarg_values = &device;
    d.n_kwargs = 1;
    d.meta = sg_list(g, FXTAP_V_TUPLE, 1, &meta);
    sg_add(g, &d);
    d.name = "e";
    d.target = "mine.op.default";
    d.n_args = d.n_kwargs = 0;
    d.meta = sg_tensor(g, FXTAP_BOOL, "cpu", "");
    sg_add(g, &d);
    check_summary(g, true,
                  "target,kind,support,calls,inputs,outputs\r\n"
                  "aten.add.Tensor,aten,supported,3,\"2x: (float32(s1, 4),)\n1x: (float32(s1, 4), -inf)\","
                  "\"3x: float32(s1, 4)\"\r\n"
                  "<built-in function mul>,builtin,supported,1,\"1x: ('a\"\"b', [float32(s1, 4), None]), "
                  "{'device': device(type='npu', index=1)}\",\"1x: (float32(s1, 4),)\"\r\n"
                  "mine.op.default,mine,not registered,1,1x: (),1x: bool()\r\n");
    fxtap_graph_free(g);
    g = sg_graph(FXTAP_GRAPH_INFERENCE);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "a", "aten.embedding.default", 0, NULL, 0);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "b", "aten.index_put.default", 0, NULL, 0);
    check_summary(g, false,
                  "\xef\xbb\xbf目标函数,函数类型,支持状态,调用次数,输入统计,输出统计\r\n"
                  "aten.embedding.default,aten,部分支持,1,1次：(),1次：None\r\n"
                  "aten.index_put.default,aten,未实现,1,1次：(),1次：None\r\n");
    fxtap_graph_free(g);
}

static void test_support(void **state)
{
    (void)state;
    assert_int_equal(fx_support_of("aten.add.Tensor"), FX_SUPPORT_WHOLE);
    assert_int_equal(fx_support_of("aten.embedding.default"), FX_SUPPORT_PARTIAL);
    assert_int_equal(fx_support_of("aten.index_copy.default"), FX_SUPPORT_NONE);
    assert_int_equal(fx_support_of("_c10d_functional.all_gather_into_tensor.default"), FX_SUPPORT_WHOLE);
    assert_int_equal(fx_support_of("torchvision.deform_conv2d.default"), FX_SUPPORT_UNKNOWN);
    const char *absent[] = {"", "a", "aten.add", "aten.add.Tensor ", "zzzz", "~", "aten.add.Tensor\twhole"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(fx_support_of(absent[i]), FX_SUPPORT_UNKNOWN);
    }
}

static void test_format_names(void **state)
{
    (void)state;
    fxtap_print_format format = 0;
    assert_int_equal(fxtap_print_format_from_name("dot", &format), FXTAP_OK);
    assert_int_equal(format, FXTAP_PRINT_DOT);
    assert_int_equal(fxtap_print_format_from_name("svg", &format), FXTAP_E_INVALID);
    assert_non_null(strstr(fxtap_error_message(), "fx, json, dot"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),    cmocka_unit_test(test_dot),           cmocka_unit_test(test_modules),
        cmocka_unit_test(test_select),  cmocka_unit_test(test_select_values), cmocka_unit_test(test_format_names),
        cmocka_unit_test(test_summary), cmocka_unit_test(test_support),       cmocka_unit_test(test_html),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
