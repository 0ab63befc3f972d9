/* The runnable text of a graph: literals round-trip exactly, and no name escapes from its context. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fxtap/print.h"
#include "graph/python.h"
#include "support_graph.h"
#include "util/memory.h"

static void print(const fxtap_graph *g, fxtap_buffer *out)
{
    fxtap_print_options options = {.struct_size = sizeof options, .format = FXTAP_PRINT_FX, .title = "a\ntitle"};
    fxtap_buffer_init(out);
    assert_int_equal(fxtap_graph_print(g, &options, out), FXTAP_OK);
}

static void check_contains(const fxtap_buffer *text, const char *part)
{
    if (strstr(text->bytes, part) == NULL) {
        fail_msg("no %s in:\n%s", part, text->bytes);
    }
}

static void check_string(const char *bytes, size_t length, const char *expected)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fx_python_string(&out, bytes, length);
    assert_string_equal(out.bytes, expected);
    fxtap_buffer_clear(&out);
}

static void test_strings(void **state)
{
    (void)state;
    check_string("", 0, "''");
    check_string("abc", 3, "'abc'");
    check_string("it's", 4, "\"it's\"");
    check_string("'\"", 2, "'\\'\"'");
    check_string("a\\b", 3, "'a\\\\b'");
    check_string("a\n\t\r\0\x1b", 6, "'a\\n\\t\\r\\x00\\x1b'");
    check_string("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 9, "'\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80'");
    check_string("\xe2\x80\xa8", 3, "'\\u2028'");
    check_string("\xff\"\n", 3, "'\\udcff\"\\n'");   /* as os.fsdecode() */
    check_string("\xed\xa0\x80", 3, "'\\ud800'");    /* a lone surrogate */
    check_string("\xed\xa0", 2, "'\\udced\\udca0'"); /* half of one */
    check_string("\xc0\x80", 2, "'\\udcc0\\udc80'"); /* an overlong form */
}

static void test_numbers(void **state)
{
    (void)state;
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    static const double values[] = {0.9, (double)0.9f, -0.0, 1e16, 1e-5, 5e-324};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fx_python_float(&out, values[i]);
        fxtap_buffer_text(&out, " ");
    }
    fx_python_float(&out, (double)INFINITY);
    fx_python_float(&out, -(double)INFINITY);
    fx_python_float(&out, (double)NAN);
    fx_python_complex(&out, -0.0, (double)NAN);
    assert_string_equal(out.bytes,
                        "0.9 0.8999999761581421 -0.0 1e+16 1e-05 5e-324 float('inf')float('-inf')float('nan')"
                        "complex(-0.0, float('nan'))");
    fxtap_buffer_clear(&out);
    fx_python_bytes(&out, "\xff\"\n\0'z", 6);
    assert_string_equal(out.bytes, "b'\\xff\"\\n\\x00\\'z'");
    fxtap_buffer_clear(&out);
    fx_python_bigint(&out, "-0012");
    assert_string_equal(out.bytes, "-12");
    fxtap_buffer_clear(&out);
    char digits[9002];
    memset(digits, '7', sizeof digits);
    memset(digits + 1001, '0', 4000);
    digits[9001] = '\0';
    fx_python_bigint(&out, digits);
    assert_non_null(strstr(out.bytes, " * 10**8000 + 0 * 10**4000 + 7"));
    fxtap_buffer_clear(&out);
}

static void test_hostile_names(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    const char *names[] = {"\");import os;(\"", "torch", "class", "x\ny", "_graph_0", "forward", "", "\xc3\xa9", "a.b"};
    fxtap_value ref = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i][0] != '\0') {
            ref = sg_ref(g, sg_node(g, FXTAP_OP_PLACEHOLDER, names[i], names[i], 0, NULL, 0));
        }
    }
    fxtap_node_desc d = {.struct_size = sizeof d, .op = FXTAP_OP_CALL_FUNCTION, .name = "f", .args = &ref, .n_args = 1};
    d.target = "os.system('x')";
    d.stack_trace = "  File \"/a\x1b\\n.py\", line 3, in f\n    x = 1\r import os\n";
    const char *kwargs[] = {"from", "ok", "a=1, b"};
    fxtap_value values[] = {ref, ref, ref};
    d.kwarg_names = kwargs;
    d.kwarg_values = values;
    d.n_kwargs = 3;
    sg_add(g, &d);
    fxtap_buffer text;
    print(g, &text);
    check_contains(&text, "    ____import_os_____0,\n");
    check_contains(&text,
                   "    _torch__1,\n    _class__2,\n    _x_y__3,\n    __graph_0__4,\n    _forward__5,\n    _____6,\n");
    check_contains(&text, "    _a_b__7,\n");
    check_contains(&text, "_unrecorded(\"os.system('x')\")  # os.system('x')(_a_b__7, **{'from': _a_b__7}, ok=_a_b__7, "
                          "**{'a=1, b': _a_b__7})");
    check_contains(&text, "# a\\x0atitle\n");
    check_contains(&text, "# File \"/a\\x1b\\n.py\", line 3, in f: x = 1\\x0d import os\n");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_symbols(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    sg_node(g, FXTAP_OP_PLACEHOLDER, "x", "x", 0, NULL, sg_tensor(g, FXTAP_FLOAT32, "cpu", "s1,s2"));
    sg_node(g, FXTAP_OP_PLACEHOLDER, "n", "n", 0, NULL, sg_sym(g, "s1"));
    fxtap_value args[] = {sg_sym(g, "s1 + s2"),          sg_sym(g, "Max(1, (s2//2))"), sg_sym(g, "s9"),
                          sg_sym(g, "__import__('os')"), sg_sym(g, "exec(s1)"),        sg_sym(g, "u0")};
    fxtap_node item =
        sg_node(g, FXTAP_OP_CALL_FUNCTION, "item", "aten._local_scalar_dense.default", 0, NULL, sg_sym(g, "u0"));
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "f", "operator.add", 6, args, 0);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "a", "aten.relu.default", 0, NULL, 0); /* not torch's: has no Python text */
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "m", "mine.ops.f", 0, NULL, 0);
    fxtap_value result = sg_ref(g, item);
    sg_node(g, FXTAP_OP_OUTPUT, "output", "output", 1, &result, 0);
    fxtap_buffer text;
    print(g, &text);
    check_contains(&text, "f = operator.add((n + x.size(1)), (Max(1, (x.size(1)//2))), _unrecorded('s9'), "
                          "_unrecorded(\"__import__('os')\"), _unrecorded('exec(s1)'), (item))\n");
    check_contains(&text, "    a = torch.ops.aten.relu.default()\n    m = _unrecorded('mine.ops.f')  # mine.ops.f()\n");
    assert_null(strstr(text.bytes, "import mine"));
    check_contains(&text, "    return item\n");
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_what_may_be_called(void **state)
{
    (void)state;
    static const char *const good[] = {"torch.ops.aten.add.Tensor",
                                       "torch.ops.prims.convert_element_type.default",
                                       "torch.ops._c10d_functional.all_reduce.default",
                                       "torch.ops.aten.__and__.Tensor",
                                       "torch.ops.higher_order.cond",
                                       "torch.ops.mine.f",
                                       "operator.getitem",
                                       "operator.mul",
                                       "math.floor",
                                       "builtins.max",
                                       "torch.sym_max",
                                       "torch._sym_sqrt"};
    static const char *const bad[] = {"os.system",
                                      "subprocess.run",
                                      "builtins.eval",
                                      "builtins.exec",
                                      "builtins.__import__",
                                      "builtins.getattr",
                                      "builtins.open",
                                      "operator.call",
                                      "operator.attrgetter",
                                      "operator.methodcaller",
                                      "operator.setitem",
                                      "torch.load",
                                      "torch.save",
                                      "torch.hub.load",
                                      "torch.ops.load_library",
                                      "torch.ops.load_library.x",
                                      "torch.ops.import_module.x",
                                      "torch.ops.aten",
                                      "torch.ops.aten.add.Tensor.x",
                                      "torch.ops.aten.__class__",
                                      "torch.ops.__class__.mro",
                                      "torch.ops.aten.__init__.Tensor",
                                      "torch.ops.aten.add.__globals__",
                                      "torch.ops.aten.add.",
                                      "torch.ops..add",
                                      "torch.ops.aten.a b",
                                      "torch.ops.aten.f().g",
                                      "math.__loader__",
                                      "math",
                                      "operator",
                                      "",
                                      "mine.ops.f",
                                      "aten.add.Tensor",
                                      "torch.ops.aten.add\nimport os",
                                      "operator.add\n",
                                      "torch.sym_max.x",
                                      "ops.aten.add"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!fx_python_may_call(good[i])) {
            fail_msg("%s", good[i]);
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (fx_python_may_call(bad[i])) {
            fail_msg("%s", bad[i]);
        }
    }
}

/* A call that must not run is a comment, which no text can end, behind a call of the function that raises. */
static void test_hostile_targets(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value command = sg_text(g, FXTAP_V_STRING, "touch\n x\r");
    fxtap_node_desc d = {.struct_size = sizeof d,
                         .op = FXTAP_OP_CALL_FUNCTION,
                         .name = "a",
                         .target = "aten.add.Tensor",
                         .target_python = "os.system",
                         .args = &command,
                         .n_args = 1};
    fxtap_node node;
    assert_int_equal(fxtap_graph_add_node(g, &d, &node), FXTAP_OK);
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "b", "os\n.system", 1, &command, 0);
    sg_node(g, FXTAP_OP_CALL_METHOD, "c", "__reduce_ex__", 1, &command, 0);
    sg_node(g, FXTAP_OP_CALL_METHOD, "d", "tofile", 1, &command, 0);
    sg_node(g, FXTAP_OP_CALL_METHOD, "e", "size", 1, &command, 0);
    fxtap_buffer text;
    print(g, &text);
    check_contains(&text, "    a = _unrecorded('os.system')  # os.system('touch\\n x\\r')\n"
                          "    b = _unrecorded('os\\n.system')  # os\\x0a.system('touch\\n x\\r')\n"
                          "    c = _unrecorded('__reduce_ex__')  # __reduce_ex__('touch\\n x\\r')\n"
                          "    d = _unrecorded('tofile')  # tofile('touch\\n x\\r')\n"
                          "    e = ('touch\\n x\\r').size()\n");
    assert_null(strstr(text.bytes, "import os"));
    fxtap_buffer_clear(&text);
    fxtap_graph_free(g);
}

static void test_without_memory(void **state)
{
    (void)state;
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_graph *inner = sg_graph(FXTAP_GRAPH_SUBGRAPH);
    sg_node(inner, FXTAP_OP_PLACEHOLDER, "x y", "x", 0, NULL, sg_tensor(inner, FXTAP_FLOAT32, "cpu", "s1,s2"));
    fxtap_value args[2];
    assert_int_equal(fxtap_graph_add_subgraph(g, inner, &args[0]), FXTAP_OK);
    sg_node(g, FXTAP_OP_PLACEHOLDER, "n", "n", 0, NULL, sg_sym(g, "s1"));
    args[1] = sg_sym(g, "s1 + 1");
    sg_node(g, FXTAP_OP_CALL_FUNCTION, "f", "mine.f", 2, args, 0);
    fxtap_print_options options = {.struct_size = sizeof options, .format = FXTAP_PRINT_FX};
    bool done = false;
    for (long long n = 0; !done; n++) {
        assert_true(n < 500);
        fxtap_buffer out;
        fxtap_buffer_init(&out);
        fx_memory_fail_after(n);
        fxtap_status status = fxtap_graph_print(g, &options, &out);
        fx_memory_fail_after(-1);
        done = status == FXTAP_OK;
        assert_true(done || status == FXTAP_E_NOMEM);
        fxtap_buffer_clear(&out);
    }
    fxtap_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),         cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_hostile_names),   cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_without_memory),  cmocka_unit_test(test_what_may_be_called),
        cmocka_unit_test(test_hostile_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
