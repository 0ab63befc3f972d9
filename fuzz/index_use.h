/*
 * index_use.h - a dump whose only file is its index, and all uses of it by the reader; for the harnesses of the index.
 */
#ifndef FUZZ_INDEX_USE_H
#define FUZZ_INDEX_USE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fxtap/reader.h"

#define RANK "worldsize1_global_rank0"

typedef struct index_folder {
    char root[64], rank_path[128], index_path[160];
} index_folder;

static index_folder *folder_to_remove;

static inline void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static inline void make_temporary(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", name);
    check(mkdtemp(path) != NULL);
}

static inline void remove_folder(void)
{
    unlink(folder_to_remove->index_path);
    rmdir(folder_to_remove->rank_path);
    rmdir(folder_to_remove->root);
}

/* Removed when the process ends. */
static inline void make_index_folder(index_folder *folder)
{
    make_temporary(folder->root, "fuzz_index");
    snprintf(folder->rank_path, sizeof folder->rank_path, "%s/" RANK, folder->root);
    snprintf(folder->index_path, sizeof folder->index_path, "%s/fxtap.db", folder->rank_path);
    check(mkdir(folder->rank_path, 0700) == 0);
    folder_to_remove = folder;
    atexit(remove_folder);
}

static inline void write_index(const index_folder *folder, const void *data, size_t size)
{
    int fd = open(folder->index_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0);
    check(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static inline void look_at_graphs(fxtap_reader *reader)
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

static inline void look_at_tensors(fxtap_reader *reader, const index_folder *folder)
{
    fxtap_tensor_query query = {
        .struct_size = sizeof query, .run = -1, .rank = -1, .graph = -1, .step = -1, .with_incomplete = true, .io = -1};
    fxtap_tensor_list *list = NULL;
    check(fxtap_reader_tensors(reader, &query, &list) == FXTAP_OK);
    for (size_t i = 0; i < fxtap_tensor_list_count(list); i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        check(info->name != NULL && info->position != NULL && info->node != NULL && info->step != NULL);
        check(info->path == NULL || strncmp(info->path, folder->rank_path, strlen(folder->rank_path)) == 0);
        check(info->path == NULL || strstr(info->path, "/../") == NULL);
        check(!info->has_meta || info->ndim <= FXTAP_MAX_DIMS);
    }
    fxtap_tensor_list_free(list);
}

static inline void use_reader(fxtap_reader *reader, const index_folder *folder)
{
    fxtap_check *checked = NULL;
    look_at_graphs(reader);
    look_at_tensors(reader, folder);
    check(fxtap_reader_check(reader, true, NULL, NULL, &checked) == FXTAP_OK);
    fxtap_check_free(checked);
}

#endif
