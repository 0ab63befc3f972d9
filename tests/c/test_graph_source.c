/* The frame of a stack trace that a node is attributed to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/record.h"
#include "support_graph.h"

static void check(const char *trace, const char *file, int32_t line, const char *function, const char *code)
{
    fxtap_graph *g = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_node_desc d = {.struct_size = sizeof d, .op = FXTAP_OP_CALL_FUNCTION, .name = "n", .target = "t"};
    d.stack_trace = trace;
    fxtap_node node = sg_add(g, &d);
    const char *got_file, *got_function, *got_code;
    int32_t got_line;
    fxtap_graph_source(g, node, &got_file, &got_line, &got_function, &got_code);
    assert_string_equal(got_file, file);
    assert_int_equal(got_line, line);
    assert_string_equal(got_function, function);
    assert_string_equal(got_code, code);
    fxtap_graph_source(g, node, NULL, NULL, NULL, NULL);
    fxtap_graph_source(g, 99, &got_file, &got_line, NULL, NULL);
    assert_string_equal(got_file, "");
    assert_int_equal(got_line, 0);
    fxtap_graph_free(g);
}

static void test_frames(void **state)
{
    (void)state;
    check(NULL, "", 0, "", "");
    check("", "", 0, "", "");
    check("no frame here\n", "", 0, "", "");
    check("  File \"/a.py\", line 3, in f\n    x = 1\n", "/a.py", 3, "f", "x = 1");
    check("  File \"/a.py\", line 3, in f", "/a.py", 3, "f", "");
    check("  File \"/a.py\", line 3\n", "/a.py", 3, "", "");
    check("  File \"/a.py\", line 3, in f\n    x = 1\n  File \"/b.py\", line 4, in g\n    y = 2\n", "/b.py", 4, "g",
          "y = 2");
}

static void test_markers(void **state)
{
    (void)state;
    check("  File \"/a.py\", line 3, in f\n    return x + y\n           ~~^~~\n", "/a.py", 3, "f", "return x + y");
    check("  File \"/a.py\", line 3, in f\n           ^^^^^\n    return x\n", "/a.py", 3, "f", "return x");
    check("Traceback (most recent call last):\n  File \"/a.py\", line 3, in f\n    x\n\n", "/a.py", 3, "f", "x");
}

/* Code without a file is used only if no frame has a file. */
static void test_generated_code(void **state)
{
    (void)state;
    check("  File \"/a.py\", line 3, in f\n    x\n  File \"<eval_with_key>.7\", line 9, in forward\n    y\n", "/a.py",
          3, "f", "x");
    check("  File \"<string>\", line 1, in <module>\n    x\n", "<string>", 1, "<module>", "x");
    check("  File \"<a>\", line 1, in f\n  File \"<b>\", line 2, in g\n    y\n", "<b>", 2, "g", "y");
    check("  File \"<a>\", line 1, in f\n    q\n  File \"/c.py\", line 2, in g\n    y\n", "/c.py", 2, "g", "y");
}

static void test_hostile_names(void **state)
{
    (void)state;
    check("  File \"/a\", line 7, in x.py\", line 12, in f\n    c\n", "/a\", line 7, in x.py", 12, "f", "c");
    check("  File \"/\xc3\xa9\xe4\xb8\xad \"q\":1.py\", line 12, in <lambda>\n    c\n",
          "/\xc3\xa9\xe4\xb8\xad \"q\":1.py", 12, "<lambda>", "c");
    check("  File \"/a.py\", line 99999999999, in f\n    c\n", "", 0, "", "");
    check("  File \"/a.py\", line , in f\n    c\n", "", 0, "", "");
    check("  File \"/a.py\", line 3 in f\n    c\n", "", 0, "", "");
    check("  File \"\", line 3, in f\n    c\n", "", 3, "f", "c");
    check("  File \"", "", 0, "", "");
    check("  File \"/a.py\", line 3, in f\r\n    x\r\n", "/a.py", 3, "f", "x");
    check("  File \"/a.py\", line 2147483647, in f\n    File \"x\n", "/a.py", INT32_MAX, "f", "File \"x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_markers),
        cmocka_unit_test(test_generated_code),
        cmocka_unit_test(test_hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
