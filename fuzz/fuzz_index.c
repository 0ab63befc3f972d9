/* fuzz_index.c - an index of any bytes: opened, listed and checked; no path that it names leaves the dump. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/reader.h"

#define RANK "worldsize1_global_rank0"

static char root[64], rank_path[128], index_path[160];

static void remove_folder(void)
{
    unlink(index_path);
    rmdir(rank_path);
    rmdir(root);
}

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void make_folder(void)
{
    if (root[0] != '\0') {
        return;
    }
    strcpy(root, access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz_index.XXXXXX" : "/tmp/fuzz_index.XXXXXX");
    check(mkdtemp(root) != NULL);
    snprintf(rank_path, sizeof rank_path, "%s/" RANK, root);
    snprintf(index_path, sizeof index_path, "%s/fxtap.db", rank_path);
    check(mkdir(rank_path, 0700) == 0);
    atexit(remove_folder);
}

static void write_index(const uint8_t *data, size_t size)
{
    int fd = open(index_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0);
    check(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void look_at_graphs(fxtap_reader *reader)
{
    const fxtap_graph_info *const *graphs;
    size_t n_graphs, n;
    check(fxtap_reader_graphs(reader, -1, &graphs, &n_graphs) == FXTAP_OK);
    for (size_t i = 0; i < n_graphs; i++) {
        const fxtap_node_info *const *nodes;
        const fxtap_step_info *const *steps;
        const fxtap_graph *record;
        check(fxtap_reader_nodes(reader, graphs[i], &nodes, &n) == FXTAP_OK);
        for (size_t j = 0; j < n; j++) {
            check(nodes[j]->order == j && nodes[j]->name != NULL && nodes[j]->stack != NULL);
        }
        check(fxtap_reader_steps(reader, graphs[i], &steps, &n) == FXTAP_OK);
        (void)fxtap_reader_record(reader, graphs[i], &record);
    }
}

static void look_at_tensors(fxtap_reader *reader)
{
    fxtap_tensor_query query = {.struct_size = sizeof query, .run = -1, .rank = -1, .graph = -1, .step = -1,
                                .with_incomplete = true, .io = -1};
    fxtap_tensor_list *list = NULL;
    check(fxtap_reader_tensors(reader, &query, &list) == FXTAP_OK);
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        check(info->name != NULL && info->position != NULL && info->node != NULL && info->step != NULL);
        check(info->path == NULL || strncmp(info->path, rank_path, strlen(rank_path)) == 0);
        check(info->path == NULL || strstr(info->path, "/../") == NULL);
        check(!info->has_meta || info->ndim <= FXTAP_MAX_DIMS);
    }
    fxtap_tensor_list_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fxtap_reader *reader = NULL;
    fxtap_check *checked = NULL;
    make_folder();
    write_index(data, size);
    if (fxtap_reader_open(root, &reader) != FXTAP_OK) {
        return 0;
    }
    look_at_graphs(reader);
    look_at_tensors(reader);
    check(fxtap_reader_check(reader, true, NULL, NULL, &checked) == FXTAP_OK);
    fxtap_check_free(checked);
    fxtap_reader_close(reader);
    return 0;
}
