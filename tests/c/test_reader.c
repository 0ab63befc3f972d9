/* Dumps without an index: TorchAir's own dumps, and folders built by hand. */
#include "support_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/reader.h"
#include "support_reader.h"
#include "support_tree.h"
#include "util/memory.h"

/* ---- TorchAir's dumps ---- */

static void unpack(const char *model)
{
    char archive[512];
    snprintf(archive, sizeof archive, "%s/torchair/dumps/%s.tar.gz", FXTAP_TEST_DATA, model);
    tree_unpack(archive, tree_root);
}

static void test_reads_a_torchair_dump(void **state)
{
    (void)state;
    unpack("toy");
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_NAMED);
    assert_string_equal(fxtap_reader_path(reader), tree_root);
    assert_int_equal(fxtap_reader_warning_count(reader), 0);
    assert_int_equal(fxtap_reader_rank_count(reader), 1);
    const fxtap_rank_info *rank = fxtap_reader_rank(reader, 0);
    assert_int_equal(rank->world_size, 1);
    assert_int_equal(rank->rank, 0);
    assert_false(rank->has_index);
    assert_int_equal(fxtap_reader_run_count(reader, 0), 0);

    const fxtap_graph_info *const *graphs;
    size_t n_graphs, n_steps, n_nodes;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n_graphs), FXTAP_OK);
    assert_int_equal(n_graphs, 1);
    assert_int_equal(graphs[0]->graph, 1);
    assert_int_equal(graphs[0]->n_nodes, 4);
    assert_int_equal(graphs[0]->n_steps, 2);
    assert_false(graphs[0]->has_keys);
    const fxtap_step_info *const *steps;
    assert_int_equal(fxtap_reader_steps(reader, graphs[0], &steps, &n_steps), FXTAP_OK);
    assert_int_equal(n_steps, 2);
    assert_int_equal(steps[1]->step, 1);
    assert_ptr_equal(steps[1]->graph, graphs[0]);
    const fxtap_node_info *const *nodes;
    assert_int_equal(fxtap_reader_nodes(reader, graphs[0], &nodes, &n_nodes), FXTAP_OK);
    static const char *const names[] = {"add", "mul_2", "add_7", "sub_6"};
    assert_int_equal(n_nodes, 4);
    for (size_t i = 0; i < n_nodes; i++) {
        assert_string_equal(nodes[i]->name, names[i]); /* in order of their time stamps */
        assert_int_equal(nodes[i]->order, i);
    }
    assert_string_equal(nodes[1]->target, "aten.mul.Tensor");
    const fxtap_graph *record = NULL;
    assert_int_equal(fxtap_reader_record(reader, graphs[0], &record), FXTAP_E_NOT_FOUND);
    fxtap_reader_close(reader);
}

static void test_tensors_come_in_order(void **state)
{
    (void)state;
    unpack("toy");
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 24);
    static const char *const names[] = {
        "add-aten.add.Tensor.INPUT.0",   "add-aten.add.Tensor.INPUT.1",   "add-aten.add.Tensor.OUTPUT.0",
        "mul_2-aten.mul.Tensor.INPUT.0", "mul_2-aten.mul.Tensor.INPUT.1", "mul_2-aten.mul.Tensor.OUTPUT.0",
        "add_7-aten.add.Tensor.INPUT.0", "add_7-aten.add.Tensor.INPUT.1", "add_7-aten.add.Tensor.OUTPUT.0",
        "sub_6-aten.sub.Tensor.INPUT.0", "sub_6-aten.sub.Tensor.INPUT.1", "sub_6-aten.sub.Tensor.OUTPUT.0",
    };
    for (size_t i = 0; i < 24; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, i);
        assert_string_equal(tensor->name, names[i % 12]);
        assert_int_equal(tensor->step->step, i / 12);
        assert_string_equal(tensor->node->graph->path, tree_path(tree_root, "worldsize1_global_rank0/graph_1"));
        assert_int_equal(access(tensor->path, R_OK), 0);
        assert_false(tensor->has_meta);
        assert_int_equal(fxtap_tensor_load_meta(list, i), FXTAP_OK);
        assert_true(tensor->has_meta);
        assert_false(tensor->has_stats);
        assert_int_equal(fxtap_tensor_load_stats(list, i), FXTAP_OK);
        assert_true(tensor->has_stats && tensor->has_hash);
        assert_int_equal(tensor->stats.count * fxtap_dtype_size(tensor->dtype), tensor->bytes);
    }
    assert_null(fxtap_tensor_list_at(list, 24));
    assert_int_equal(fxtap_tensor_load_meta(list, 24), FXTAP_E_NOT_FOUND);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

/* An object saved by np.save is a pickle; this one would run a command. */
static void test_pickled_files_are_reported(void **state)
{
    (void)state;
    unpack("toy");
    char bytes[128] = "\x93NUMPY\x01\x00\x36\x00{'descr': '|O', 'fortran_order': False, 'shape': (), }";
    static const char pickle[] = "cos\nsystem\n(S'touch marker'\ntR.";
    memcpy(bytes + 64, pickle, sizeof pickle);
    tree_write(tree_path(tree_root, "worldsize1_global_rank0/graph_1/0/"
                                    "none-aten.op.default.INPUT.1.20261129141540900000.npy"),
               bytes, 64 + sizeof pickle);
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 25);
    for (size_t i = 0; i < 25; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, i);
        bool is_pickle = strcmp(tensor->node->name, "none") == 0;
        assert_int_equal(fxtap_tensor_load_stats(list, i), is_pickle ? FXTAP_E_UNSUPPORTED : FXTAP_OK);
        assert_true(tensor->has_meta != is_pickle);
        assert_true(!is_pickle || strstr(fxtap_error_message(), tensor->path) != NULL);
    }
    assert_int_not_equal(access("marker", F_OK), 0);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_list_positions_and_text(void **state)
{
    (void)state;
    unpack("misc");
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_query query = sr_query_all();
    query.pattern = "cat";
    fxtap_tensor_list *list = sr_list(reader, &query);
    static const char *const positions[] = {"0.0", "0.1", "0.2", "0.3", "1", "0"};
    assert_int_equal(fxtap_tensor_list_count(list), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(fxtap_tensor_list_at(list, i)->position, positions[i]);
    }
    fxtap_tensor_list_free(list);
    query.pattern = "index-aten.index.Tensor.INPUT.1"; /* a list that TorchAir converted to text */
    list = sr_list(reader, &query);
    assert_int_equal(fxtap_tensor_list_count(list), 1);
    assert_int_equal(fxtap_tensor_load_stats(list, 0), FXTAP_E_UNSUPPORTED);
    assert_int_equal(fxtap_tensor_list_at(list, 0)->dtype, FXTAP_STRING);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_opens_at_any_level(void **state)
{
    (void)state;
    unpack("toy");
    static const struct {
        const char *path;
        fxtap_origin_kind kind;
        size_t n_tensors;
    } cases[] = {
        {"worldsize1_global_rank0", FXTAP_READ_NAMED, 24},
        {"worldsize1_global_rank0/graph_1", FXTAP_READ_NAMED, 24},
        {"worldsize1_global_rank0/graph_1/", FXTAP_READ_NAMED, 24},
        {"worldsize1_global_rank0/graph_1/1", FXTAP_READ_NAMED, 12},
        {"worldsize1_global_rank0/../worldsize1_global_rank0/graph_1/0", FXTAP_READ_NAMED, 12},
        {"worldsize1_global_rank0/graph_1/0/add-aten.add.Tensor.INPUT.0.20261129141540878525.npy", FXTAP_READ_FILE, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fxtap_reader *reader = sr_open(tree_path(tree_root, "%s", cases[i].path));
        assert_int_equal(fxtap_reader_kind(reader), cases[i].kind);
        assert_int_equal(sr_count(reader, NULL), cases[i].n_tensors);
        fxtap_reader_close(reader);
    }
}

static void test_moved_folders_are_known_by_their_files(void **state)
{
    (void)state;
    unpack("toy");
    const char *graph = tree_path(tree_root, "worldsize1_global_rank0/graph_1");
    tree_copy(graph, tree_path(tree_root, "good"));
    tree_copy(tree_path(tree_root, "good/1"), tree_path(tree_root, "late"));
    fxtap_reader *reader = sr_open(tree_path(tree_root, "good"));
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_NAMED);
    assert_int_equal(sr_count(reader, NULL), 24);
    fxtap_reader_close(reader);
    reader = sr_open(tree_path(tree_root, "late"));
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 12);
    assert_string_equal(fxtap_tensor_list_at(list, 0)->step->folder, tree_path(tree_root, "late"));
    assert_int_equal(fxtap_tensor_list_at(list, 0)->step->state, FXTAP_STEP_WHOLE);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_queries(void **state)
{
    (void)state;
    unpack("mlp");
    fxtap_reader *reader = sr_open(tree_root);
    size_t n_all = sr_count(reader, NULL);
    fxtap_tensor_query query = sr_query_all();
    size_t n_parts = 0;
    for (query.io = FXTAP_INPUT; query.io <= FXTAP_INOUT; query.io++) {
        n_parts += sr_count(reader, &query);
    }
    assert_int_equal(n_parts, n_all);
    query = sr_query_all();
    n_parts = 0;
    for (query.graph = 0; query.graph < 20; query.graph++) {
        n_parts += sr_count(reader, &query);
    }
    assert_int_equal(n_parts, n_all);
    query = sr_query_all();
    query.rank = 1;
    assert_int_equal(sr_count(reader, &query), 0);
    query.rank = 0;
    assert_int_equal(sr_count(reader, &query), n_all);
    query.pattern = "aten.*";
    assert_int_equal(sr_count(reader, &query), n_all);
    query.pattern = "no such operator";
    assert_int_equal(sr_count(reader, &query), 0);
    query.struct_size = 1;
    fxtap_tensor_list *list = NULL;
    assert_int_equal(fxtap_reader_tensors(reader, &query, &list), FXTAP_E_INVALID);
    assert_null(list);
    fxtap_reader_close(reader);
}

/* ---- folders built by hand ---- */

static const float one[] = {1.0f};

/* A file of node `node`, which ran at second `second`. */
static const char *add_file(const char *folder, const char *node, const char *place, unsigned second)
{
    const char *path =
        tree_path(tree_root, "%s/%s-aten.op.default.%s.202510170712%02u000000.npy", folder, node, place, second);
    tree_write_floats(path, one, 1);
    return path;
}

#define GRAPH "worldsize1_global_rank0/graph_1"

static void test_numbers_are_ordered_as_numbers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        char place[32], folder[64];
        snprintf(place, sizeof place, "INPUT.%u", i);
        add_file(GRAPH "/0", "n", place, 1);
        snprintf(folder, sizeof folder, GRAPH "/%u", i);
        add_file(folder, "m", "OUTPUT.0", 2);
        snprintf(folder, sizeof folder, "worldsize12_global_rank%u/graph_%u/0", i, i);
        add_file(folder, "m", "OUTPUT.0", 2);
    }
    add_file(GRAPH "/0", "n", "INPUT.alpha", 1);
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(fxtap_reader_rank_count(reader), 13);
    for (size_t i = 1; i < 13; i++) {
        assert_int_equal(fxtap_reader_rank(reader, i)->rank, i - 1);
    }
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 13 + 12 + 12);
    for (size_t i = 0; i < 12; i++) {
        char position[16];
        snprintf(position, sizeof position, "%zu", i);
        assert_string_equal(fxtap_tensor_list_at(list, i)->position, position);
        assert_int_equal(fxtap_tensor_list_at(list, 13 + i)->step->step, i);
    }
    assert_string_equal(fxtap_tensor_list_at(list, 12)->position, "alpha");
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_a_node_of_a_later_step_keeps_its_place(void **state)
{
    (void)state;
    add_file(GRAPH "/0", "b", "OUTPUT.0", 2);
    add_file(GRAPH "/0", "d", "OUTPUT.0", 4);
    add_file(GRAPH "/1", "a", "OUTPUT.0", 11);
    add_file(GRAPH "/1", "b", "OUTPUT.0", 12);
    add_file(GRAPH "/1", "c", "OUTPUT.0", 13);
    add_file(GRAPH "/1", "d", "OUTPUT.0", 14);
    fxtap_reader *reader = sr_open(tree_root);
    const fxtap_graph_info *const *graphs;
    const fxtap_node_info *const *nodes;
    size_t n;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n), FXTAP_OK);
    assert_int_equal(fxtap_reader_nodes(reader, graphs[0], &nodes, &n), FXTAP_OK);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(nodes[i]->name[0], "abcd"[i]);
    }
    fxtap_reader_close(reader);
}

static void test_several_runs_in_one_folder(void **state)
{
    (void)state;
    for (unsigned second = 1; second < 4; second++) {
        for (unsigned run = 0; run < 3; run++) {
            char node[] = {(char)('a' + second), '\0'};
            add_file(GRAPH "/0", node, "INPUT.0", second + 10 * run);
            add_file(GRAPH "/0", node, "OUTPUT.0", second + 10 * run);
        }
    }
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_query query = sr_query_all();
    fxtap_tensor_list *list = sr_list(reader, &query);
    assert_int_equal(fxtap_tensor_list_count(list), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_non_null(strstr(fxtap_tensor_list_at(list, i)->path, ".2025101707122"));
    }
    fxtap_tensor_list_free(list);
    query.run = -1;
    assert_int_equal(sr_count(reader, &query), 18);
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), "3 runs"));
    fxtap_reader_close(reader);
}

static void test_failed_and_partial_steps(void **state)
{
    (void)state;
    add_file(GRAPH "/0", "n", "OUTPUT.0", 1);
    add_file(GRAPH "/1.failed-1", "n", "OUTPUT.0", 2);
    add_file(GRAPH "/1.failed-2", "n", "OUTPUT.0", 3);
    add_file(GRAPH "/1", "n", "OUTPUT.0", 4);
    add_file(GRAPH "/.9.partial", "n", "OUTPUT.0", 5);
    add_file(GRAPH "/elsewhere", "n", "OUTPUT.0", 5);
    fxtap_reader *reader = sr_open(tree_root);
    const fxtap_graph_info *const *graphs;
    const fxtap_step_info *const *steps;
    size_t n;
    assert_int_equal(fxtap_reader_graphs(reader, 0, &graphs, &n), FXTAP_OK);
    assert_int_equal(graphs[0]->n_steps, 2);
    assert_int_equal(fxtap_reader_steps(reader, graphs[0], &steps, &n), FXTAP_OK);
    assert_int_equal(n, 5);
    static const fxtap_step_state states[] = {FXTAP_STEP_WHOLE, FXTAP_STEP_WHOLE, FXTAP_STEP_FAILED, FXTAP_STEP_FAILED,
                                              FXTAP_STEP_PARTIAL};
    static const int64_t numbers[] = {0, 1, 1, 1, -1};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(steps[i]->state, states[i]);
        assert_int_equal(steps[i]->step, numbers[i]);
    }
    fxtap_tensor_query query = sr_query_all();
    assert_int_equal(sr_count(reader, &query), 2);
    query.with_incomplete = true;
    assert_int_equal(sr_count(reader, &query), 5);
    fxtap_reader_close(reader);
    static const char *const paths[] = {"1.failed-2", ".9.partial"};
    for (size_t i = 0; i < 2; i++) {
        reader = sr_open(tree_path(tree_root, GRAPH "/%s", paths[i]));
        assert_int_equal(sr_count(reader, &query), 1);
        fxtap_reader_close(reader);
    }
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    add_file(GRAPH "/0", "n", "OUTPUT.0", 1);
    add_file("elsewhere/1", "n", "OUTPUT.0", 2);
    const char *file = add_file("elsewhere/1", "m", "OUTPUT.0", 2);
    assert_int_equal(symlink("../../elsewhere/1", tree_path(tree_root, GRAPH "/1")), 0);
    assert_int_equal(symlink("../elsewhere", tree_path(tree_root, "worldsize1_global_rank0/graph_2")), 0);
    assert_int_equal(symlink("worldsize1_global_rank0", tree_path(tree_root, "worldsize2_global_rank1")), 0);
    assert_int_equal(symlink(file, tree_path(tree_root, GRAPH "/0/%s", strrchr(file, '/') + 1)), 0);
    assert_int_equal(symlink(".", tree_path(tree_root, "link")), 0);
    fxtap_reader *reader = sr_open(tree_path(tree_root, "link")); /* the root itself may be one */
    assert_string_equal(fxtap_reader_path(reader), tree_root);
    assert_int_equal(sr_count(reader, NULL), 1);
    assert_int_equal(fxtap_reader_warning_count(reader), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(strstr(fxtap_reader_warning(reader, i), "symbolic link"));
        assert_non_null(strstr(fxtap_reader_warning(reader, i), "not followed"));
    }
    fxtap_reader_close(reader);
}

static void test_a_file_swapped_for_a_link_is_not_opened(void **state)
{
    (void)state;
    const char *path = add_file(GRAPH "/0", "n", "OUTPUT.0", 1);
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fxtap_tensor_load_meta(list, 0), FXTAP_E_IO);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_int_equal(fxtap_tensor_load_meta(list, 0), FXTAP_E_FORMAT);
    assert_int_equal(fxtap_tensor_load_stats(list, 0), FXTAP_E_FORMAT);
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_tensor_open(list, 0, &npy), FXTAP_E_FORMAT);
    assert_null(npy);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(fxtap_tensor_load_meta(list, 0), FXTAP_E_FORMAT);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_other_names_are_counted(void **state)
{
    (void)state;
    add_file(GRAPH "/0", "n", "OUTPUT.0", 1);
    tree_write_floats(tree_path(tree_root, GRAPH "/0/weights.npy"), one, 1);
    tree_write_floats(tree_path(tree_root, GRAPH "/0/bias.npy"), one, 1);
    tree_write(tree_path(tree_root, GRAPH "/0/notes.txt"), "hello", 5);
    fxtap_reader *reader = sr_open(tree_root);
    assert_int_equal(sr_count(reader, NULL), 1);
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), "2 .npy files"));
    fxtap_reader_close(reader);
}

static void test_plain_folders(void **state)
{
    (void)state;
    static const char *const names[] = {"a_2.npy", "a_10.npy", "layers/b.npy"};
    for (size_t i = 0; i < 3; i++) {
        tree_write_floats(tree_path(tree_root, "plain/%s", names[i]), one, 1);
    }
    tree_write(tree_path(tree_root, "plain/readme.txt"), "x", 1);
    assert_int_equal(symlink("..", tree_path(tree_root, "plain/loop")), 0);
    fxtap_reader *reader = sr_open(tree_path(tree_root, "plain"));
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_PLAIN);
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const fxtap_tensor_info *tensor = fxtap_tensor_list_at(list, i);
        assert_string_equal(tensor->name, names[i]);
        assert_null(tensor->node);
        assert_null(tensor->step);
        assert_int_equal(fxtap_tensor_load_stats(list, i), FXTAP_OK);
        assert_int_equal(tensor->shape[0], 1);
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

static void test_nothing_to_read(void **state)
{
    (void)state;
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open(tree_root, &reader), FXTAP_E_NOT_FOUND);
    assert_int_equal(fxtap_reader_open(tree_path(tree_root, "absent"), &reader), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), 2);
    assert_int_equal(fxtap_reader_open("/dev/null", &reader), FXTAP_E_FORMAT);
    assert_null(reader);
    tree_mkdir(tree_path(tree_root, GRAPH));
    reader = sr_open(tree_root); /* an empty dump */
    assert_int_equal(sr_count(reader, NULL), 0);
    fxtap_reader_close(reader);
    fxtap_reader_close(NULL);
    fxtap_tensor_list_free(NULL);
}

static void test_a_nested_dump_is_pointed_out(void **state)
{
    (void)state;
    add_file("runs/good/" GRAPH "/0", "n", "OUTPUT.0", 1);
    fxtap_reader *reader = sr_open(tree_path(tree_root, "runs"));
    assert_int_equal(fxtap_reader_kind(reader), FXTAP_READ_PLAIN);
    assert_int_equal(fxtap_reader_warning_count(reader), 1);
    assert_non_null(strstr(fxtap_reader_warning(reader, 0), "runs/good contains a dump of its own"));
    fxtap_reader_close(reader);
}

static fxtap_status open_and_list(const char *path)
{
    fxtap_reader *reader = NULL;
    fxtap_tensor_list *list = NULL;
    fxtap_tensor_query query = sr_query_all();
    const fxtap_graph_info *const *graphs;
    size_t n_graphs;
    fxtap_status status = fxtap_reader_open(path, &reader);
    if (status == FXTAP_OK) {
        status = fxtap_reader_graphs(reader, 0, &graphs, &n_graphs);
    }
    if (status == FXTAP_OK) {
        status = fxtap_reader_tensors(reader, &query, &list);
    }
    for (size_t i = 0; status == FXTAP_OK && i < fxtap_tensor_list_count(list); i++) {
        status = fxtap_tensor_load_stats(list, i);
        status = status == FXTAP_E_UNSUPPORTED ? FXTAP_OK : status;
    }
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    unpack("toy");
    tree_write_floats(tree_path(tree_root, "plain/a.npy"), one, 1);
    const char *paths[] = {tree_root, tree_path(tree_root, "plain")};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        fxtap_status status = FXTAP_E_NOMEM;
        for (long long n = 0; status == FXTAP_E_NOMEM; n++) {
            assert_true(n < 100000);
            fx_memory_fail_after(n);
            status = open_and_list(paths[i]);
            fx_memory_fail_after(-1);
        }
        assert_int_equal(status, FXTAP_OK);
    }
}

/* A reader that copies files reads them completely when it opens them. */
static void test_copies(void **state)
{
    (void)state;
    enum { N = 100000 };
    static float values[N];
    values[N - 1] = 7;
    const char *path = tree_path(tree_root, "a.npy");
    tree_write_floats(path, values, N);
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open_with(tree_root, 4, &reader), FXTAP_E_INVALID);
    assert_int_equal(fxtap_reader_open_with(tree_root, FXTAP_READ_COPY, &reader), FXTAP_OK);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_tensor_open(list, 0, &npy), FXTAP_OK);
    assert_int_equal(truncate(path, 4096), 0);
    float last = 0;
    assert_int_equal(fxtap_view_gather(fxtap_npy_view(npy), N - 1, 1, &last), FXTAP_OK);
    assert_true(last == 7);
    fxtap_npy_close(npy);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make_root, tree_remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_copies),
        TEST(test_reads_a_torchair_dump),
        TEST(test_tensors_come_in_order),
        TEST(test_pickled_files_are_reported),
        TEST(test_list_positions_and_text),
        TEST(test_opens_at_any_level),
        TEST(test_moved_folders_are_known_by_their_files),
        TEST(test_queries),
        TEST(test_numbers_are_ordered_as_numbers),
        TEST(test_a_node_of_a_later_step_keeps_its_place),
        TEST(test_several_runs_in_one_folder),
        TEST(test_failed_and_partial_steps),
        TEST(test_links_are_not_followed),
        TEST(test_a_file_swapped_for_a_link_is_not_opened),
        TEST(test_other_names_are_counted),
        TEST(test_plain_folders),
        TEST(test_nothing_to_read),
        TEST(test_a_nested_dump_is_pointed_out),
        TEST(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
