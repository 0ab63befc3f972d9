/* File names stay different on file systems that ignore case or Unicode composition. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/reader.h"
#include "index/file_names.h"
#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The folder has n files, and no two names are equal when case-folded. */
static void expect_folded_apart(const char *path, size_t n)
{
    char(*folded)[256] = calloc(n, sizeof *folded);
    DIR *folder = opendir(path);
    size_t count = 0;
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            assert_true(count < n);
            fx_name_fold(entry->d_name, folded[count++]);
        }
    }
    closedir(folder);
    assert_int_equal(count, n);
    qsort(folded, n, sizeof *folded, compare_texts);
    for (size_t i = 1; i < n; i++) {
        assert_string_not_equal(folded[i - 1], folded[i]);
    }
    free(folded);
}

/*
 * Under full folding, as on file systems that ignore case and composition, names are distinct and map back to their
 * nodes.
 */
static void test_names_on_any_file_system(void **state)
{
    (void)state;
    const char *const names[] = {"Relu",
                                 "relu",
                                 "RELU",
                                 "\xc3\xa9",
                                 "\xc3\x89",
                                 "e\xcc\x81",
                                 "Stra\xc3\x9f"
                                 "e",
                                 "STRASSE",
                                 "\xe2\x84\xaa",
                                 "k",
                                 "relu-aten.relu.default.INPUT.0",
                                 "a/b",
                                 "A/B"};
    const char *const positions[] = {"0", "alpha", "Alpha", "ALPHA.0", "alpha.0", "\xc3\xa9", "\xc3\x89", "a/b", "A/b"};
    const size_t n = COUNT_OF(names), n_positions = COUNT_OF(positions);
    static float values[COUNT_OF(names) * COUNT_OF(positions)];
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_named(dump, 1, n, names);
    fxtap_call *call = ss_begin(capture);
    for (size_t i = 0; i < n * n_positions; i++) {
        values[i] = (float)i;
        ss_floats(call, ss_slot(capture, i / n_positions, FXTAP_INPUT, positions[i % n_positions]), 5, &values[i], 1);
    }
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), n * n_positions);
    expect_folded_apart(tree_path(root, RANK "/graph_1/0"), n * n_positions);
    fxtap_reader *reader = NULL;
    fxtap_tensor_list *list = NULL;
    fxtap_tensor_query query = {.struct_size = sizeof query, .rank = -1, .graph = -1, .step = -1, .io = -1};
    assert_int_equal(fxtap_reader_open(root, &reader), FXTAP_OK);
    assert_int_equal(fxtap_reader_tensors(reader, &query, &list), FXTAP_OK);
    assert_int_equal(fxtap_tensor_list_count(list), n * n_positions);
    for (size_t i = 0; i < n * n_positions; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, i);
        size_t number = (size_t)tensor->stats.max;
        assert_string_equal(tensor->node->name, names[number / n_positions]);
        assert_string_equal(tensor->position, positions[number % n_positions]);
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
    /* The first of several equal names is not changed. */
    const char *const usual[] = {"Relu-aten.relu.default.INPUT.0.1970", "Relu-aten.relu.default.INPUT.alpha.1970",
                                 "\xc3\xa9-aten.relu.default.INPUT.0.1970"};
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        assert_int_equal(ss_count_names(tree_path(root, RANK "/graph_1/0"), usual[i]), 1);
    }
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_on_any_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
