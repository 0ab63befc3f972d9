/* test_glob_node.c - patterns that select operators: what they match, and the hint if they match nothing. */
#include <string.h>

#include "fxtap/output.h"
#include "fxtap/reader.h"
#include "support_cmocka.h"
#include "util/glob.h"

static fxtap_node_info node(const char *module_path)
{
    return (fxtap_node_info){.name = "add_1",
                             .target = "aten.add.Tensor",
                             .module_path = module_path,
                             .source_file = "/home/me/linear/model.py",
                             .source_line = 12};
}

static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        bool matches;
    } cases[] = {
        {"add_1", true},
        {"add", false},
        {"aten.add.*", true},
        {"*blocks.1*", true},
        {"blocks.1.fc1*", true},
        {"module.blocks.1.fc1", true},
        {"_orig_mod.module.blocks.1.fc1", true},
        {"L?'self'?._orig_mod.module.blocks.1.fc1", true},
        {"fc1", false}, /* a suffix of the module path, not its root */
        {"model.py:12", true},
        {"model.py:*", true},
        {"*model.py*", true},
        {"/home/me/linear/model.py:12", true},
        {"*/linear/*", true},
        {"*linear*", false}, /* a folder's name does not match an operator */
        {"model.py:1", false},
        {"odel.py:12", false},
    };
    fxtap_node_info info = node("L['self']._orig_mod.module.blocks.1.fc1");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (fxtap_node_matches(cases[i].pattern, &info) != cases[i].matches) {
            fail_msg("%s", cases[i].pattern);
        }
    }
}

static void test_roots(void **state)
{
    (void)state;
    static const struct {
        const char *path, *rest;
    } cases[] = {
        {"L['self'].fc", "fc"}, {"G['model'].fc", "fc"}, {"L['self']", ""},   {"L['self'][0].fc", "[0].fc"},
        {"self.fc", "fc"},      {"_orig_mod.fc", "fc"},  {"module.fc", "fc"}, {"module", NULL},
        {"modules.fc", NULL},   {"L['self", NULL},       {"", NULL},          {"encoder.module.fc", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *rest = fx_glob_after_root(cases[i].path);
        if (cases[i].rest == NULL ? rest != NULL : rest == NULL || strcmp(rest, cases[i].rest) != 0) {
            fail_msg("%s: %s", cases[i].path, rest == NULL ? "none" : rest);
        }
    }
}

static void test_what_is_not_known_matches_nothing(void **state)
{
    (void)state;
    fxtap_node_info bare = {.name = "x", .target = "t", .module_path = "", .source_file = ""};
    assert_true(fxtap_node_matches("*", &bare));
    assert_false(fxtap_node_matches("*:0", &bare));
    char path[6000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    bare.source_file = path;
    assert_false(fxtap_node_matches("*:b", &bare));
    fx_glob_node nothing = {0};
    assert_false(fx_glob_node_match("*", &nothing));
}

static void check_hint(const char *pattern, const char *const *names, size_t n_names, const char *expected)
{
    fxtap_buffer hint;
    fxtap_buffer_init(&hint);
    fx_glob_hint(pattern, names, n_names, &hint);
    assert_string_equal(hint.bytes == NULL ? "" : hint.bytes, expected);
    fxtap_buffer_clear(&hint);
}

static void test_hints(void **state)
{
    (void)state;
    static const char *const names[] = {"blocks.0.fc1", "add", "add", "blocks.1.fc1", "mul", "relu", "sin"};
    check_hint("blocks.1.fc2*", names, COUNT_OF(names), ", did you mean blocks.1.fc1?");
    check_hint("*reul*", names, COUNT_OF(names), ", did you mean relu?");
    check_hint("nonsense", names, COUNT_OF(names), ", which has blocks.0.fc1, add, blocks.1.fc1, mul, ...");
    check_hint("nonsense", names, 4, ", which has blocks.0.fc1, add, blocks.1.fc1");
    check_hint("nonsense", names, 0, "");
    check_hint("***", names, 3, ", which has blocks.0.fc1, add");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_what_is_not_known_matches_nothing),
        cmocka_unit_test(test_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
