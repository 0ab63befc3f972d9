/* test_compare_rules.c - rules from a file: their values, and the line that an error reports. */
#include "support_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "compare/report.h"
#include "compare/rules.h"
#include "util/memory.h"

static fxtap_rule *rules;
static size_t n_rules;

static fxtap_status parse(const char *text)
{
    fxtap_rules_free(rules, n_rules);
    rules = NULL;
    n_rules = 0;
    return fx_rules_parse("rules.toml", text, strlen(text), &rules, &n_rules);
}

static int forget(void **state)
{
    (void)state;
    return parse("") != FXTAP_OK;
}

static void every_key_is_read(void **state)
{
    (void)state;
    assert_int_equal(parse("# all of them\r\n[[rule]] # one\ndtype = \"torch.float16\"\n  target = 'aten.*\\d'\r\n"
                           "node = \"a\\u00e9\\t\\\"\" # text\nrtol = 1e-3\natol=0.5\ncosine = 0.99\nmax_abs = 1_000\n"
                           "rel_l2 = 2.5E+1\nmax_ulp = 4\n\n[[rule]]\nrtol = 0"),
                     FXTAP_OK);
    assert_int_equal(n_rules, 2);
    assert_string_equal(rules[0].dtype, "torch.float16");
    assert_string_equal(rules[0].operator_name, "aten.*\\d");
    assert_string_equal(rules[0].node, "a\xc3\xa9\t\"");
    assert_true(rules[0].rtol == 1e-3 && rules[0].atol == 0.5 && rules[0].min_cosine == 0.99);
    assert_true(rules[0].max_abs == 1000 && rules[0].max_rel_l2 == 25 && rules[0].max_ulp == 4);
    assert_true(rules[1].rtol == 0.0 && rules[1].atol < 0 && rules[1].dtype == NULL);
}

static void numbers_read_as_they_are_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"0.1", 0.1},       {"1.3e-6", 1.3e-6}, {"+1e22", 1e22},          {"123456789.125", 123456789.125},
                 {"1e-320", 1e-320}, {"0e5", 0},         {"6.02_2e2_3", 6.022e23}, {"-0.0", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[64];
        snprintf(text, sizeof text, "[[rule]]\nrtol = %s\n", cases[i].text);
        assert_int_equal(parse(text), FXTAP_OK);
        assert_true(rules[0].rtol == cases[i].value);
    }
}

static void nothing_is_no_rule(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# only\r\n", "\xef\xbb\xbf# marked\n", "   \t"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(parse(texts[i]), FXTAP_OK);
        assert_int_equal(n_rules, 0);
    }
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"rtol = 1\n", "line 1: rtol precedes"},
        {"\n[rule]\n", "line 2: only tables called [[rule]]"},
        {"[[rules]]\n", "line 1: only tables"},
        {"[[rule]] rtol = 1\n", "line 1: nothing but a comment"},
        {"[[rule]]\nrtol 1\n", "line 2: expected = after rtol"},
        {"[[rule]]\nrtol = \n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = \"1\"\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 0x10\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = .5\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 5.\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 1__0\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 01\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 1e\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = 1,5\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = nan\n", "line 2: rtol takes a decimal"},
        {"[[rule]]\nrtol = -1\n", "line 2: rtol cannot be -1"},
        {"[[rule]]\nrtol = 1e999\n", "line 2: rtol cannot be 1e999"},
        {"[[rule]]\ncosine = 1.5\n", "line 2: cosine must be between 0 and 1"},
        {"[[rule]]\nrtol = 1\nrtol = 2\n", "line 3: rtol is given twice"},
        {"[[rule]]\nnode = 5\n", "line 2: node takes a string"},
        {"[[rule]]\nnode = \"a\n", "line 2: unterminated string: no closing \""},
        {"[[rule]]\nnode = \"\\q\"\n", "line 2: invalid escape"},
        {"[[rule]]\nnode = \"\\ud800\"\n", "line 2: invalid code point d800"},
        {"[[rule]]\nnode = \"\\u12\"\n", "line 2: \\u needs four"},
        {"[[rule]]\nnode = \"\"\nrtol = 1\n", "line 2: node is empty"},
        {"[[rule]]\nnode = \"a\x01\"\n", "line 2: a control character"},
        {"[[rule]]\ndtype = \"flaot32\"\n", "line 2: unknown dtype 'flaot32'"},
        {"[[rule]]\nnode = 'a'\n\n[[rule]]\nrtol = 1\n", "line 1: a rule without a tolerance"},
        {"[[rule]]\nrtol = 1\n[[rule]]\n", "line 3: a rule without a tolerance"},
        {"[[rule]]\ntolerance = 1\n", "line 2: unknown key 'tolerance'"},
        {"[[rule]]\n= 1\n", "line 2: expected [[rule]] or KEY"},
        {"[[rule]]\nrtol = 1 2\n", "line 2: nothing but a comment"},
        {"[[rule]]\r\r\n", "line 1: nothing but a comment"},
        {"[[rule]]\nnode = '\xff'\n", "not UTF-8"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fxtap_status status = parse(cases[i].text);
        if (status != FXTAP_E_INVALID || strstr(fxtap_error_message(), cases[i].message) == NULL ||
            strncmp(fxtap_error_message(), "rules.toml: ", 12) != 0) {
            fail_msg("case %zu: %s", i, status == FXTAP_OK ? "accepted" : fxtap_error_message());
        }
    }
}

static void a_file_that_is_not_there(void **state)
{
    (void)state;
    assert_int_equal(fxtap_rules_load("no/such/rules.toml", &rules, &n_rules), FXTAP_E_IO);
    assert_non_null(strstr(fxtap_error_message(), "cannot open no/such/rules.toml: No such file or directory"));
    assert_int_equal(fxtap_rules_load("/dev/zero", &rules, &n_rules), FXTAP_E_INVALID);
    assert_null(rules);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] = "[[rule]]\nnode = \"abc\"\nrtol = 1\n[[rule]]\ntarget='x'\ndtype='bool'\natol=1\n";
    fxtap_status status = FXTAP_E_NOMEM;
    int n_failed = -1;
    for (long long n = 0; status != FXTAP_OK; n++, n_failed++) {
        fx_memory_fail_after(n);
        status = fx_rules_parse("rules.toml", text, sizeof text - 1, &rules, &n_rules);
        fx_memory_fail_after(-1);
        assert_true(status == FXTAP_OK || status == FXTAP_E_NOMEM);
    }
    assert_true(n_failed >= 4);
}

#define CASE(test) cmocka_unit_test_teardown(test, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_key_is_read),        CASE(numbers_read_as_they_are_written),
        CASE(nothing_is_no_rule),       CASE(what_is_wrong_is_named_with_its_line),
        CASE(a_file_that_is_not_there), CASE(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
