/* open.c - determines what a path is: a root, a rank, a graph, a step, a plain folder or a file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/schema.h"
#include "reader/folder.h"
#include "reader/index.h"
#include "reader/reader.h"
#include "util/error.h"
#include "util/file.h"
#include "util/memory.h"

#define MAX_PLAIN_DEPTH 32

static const char *parent_of(fxtap_reader *reader, const char *path)
{
    const char *base = fx_path_base(path);
    size_t length = base > path + 1 ? (size_t)(base - path - 1) : 1;
    return fx_texts_keep(&reader->texts, path, length);
}

static bool is_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    size_t folder_length = strlen(folder), name_length = strlen(name);
    if (folder_length + name_length + 2 > sizeof path) {
        return false;
    }
    memcpy(path, folder, folder_length);
    path[folder_length] = '/';
    memcpy(path + folder_length + 1, name, name_length + 1);
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool is_rank_folder(const char *path)
{
    int32_t world_size, rank;
    return fx_rank_folder_parse(fx_path_base(path), &world_size, &rank) || is_file(path, FX_INDEX_FILE);
}

/* On failure the rank exists, but without an index. */
static fxtap_status add_rank(fxtap_reader *reader, const char *path)
{
    if (!fx_grow((void **)&reader->ranks, &reader->ranks_capacity, reader->n_ranks + 1, sizeof *reader->ranks)) {
        return FXTAP_E_NOMEM;
    }
    fx_rank *rank = fx_arena_calloc(&reader->arena, 1, sizeof *rank);
    if (rank == NULL) {
        return FXTAP_E_NOMEM;
    }
    rank->info.path = path;
    fx_rank_folder_parse(fx_path_base(path), &rank->info.world_size, &rank->info.rank);
    reader->ranks[reader->n_ranks++] = rank;
    fxtap_status status = fx_index_probe(reader, path, &rank->info.has_index);
    if (rank->info.has_index) {
        reader->kind = FXTAP_READ_INDEXED;
    }
    return status;
}

static int compare_ranks(const void *a, const void *b)
{
    const fxtap_rank_info *x = &(*(fx_rank *const *)a)->info, *y = &(*(fx_rank *const *)b)->info;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->world_size < y->world_size ? -1 : x->world_size > y->world_size;
}

/* If only some indexes have an unsupported version, their ranks are read by file names; if all have, it is an error. */
static fxtap_status add_one_of_ranks(fxtap_reader *reader, const char *path, size_t *n_unsupported)
{
    fxtap_status status = add_rank(reader, path);
    if (status != FXTAP_E_UNSUPPORTED) {
        return status;
    }
    ++*n_unsupported;
    return fx_reader_warn(reader, "%s; reading by file names instead", fxtap_error_message());
}

/* Adds the ranks of a root, possibly none. */
static fxtap_status add_ranks(fxtap_reader *reader, const fx_listing *listing)
{
    size_t n_unsupported = 0;
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < listing->count && status == FXTAP_OK; i++) {
        const fx_entry *entry = &listing->entries[i];
        int32_t world_size, rank;
        if (!fx_rank_folder_parse(entry->name, &world_size, &rank)) {
            continue;
        }
        const char *path = fx_reader_join(reader, reader->path, entry->name);
        if (path == NULL) {
            return FXTAP_E_NOMEM;
        }
        if (entry->type == DT_LNK) {
            status = fx_reader_warn(reader, "%s: a symbolic link, not followed", path);
        } else if (entry->type == DT_DIR) {
            status = add_one_of_ranks(reader, path, &n_unsupported);
        }
    }
    if (status == FXTAP_OK && n_unsupported > 0 && n_unsupported == reader->n_ranks) {
        return fx_index_probe(reader, reader->ranks[0]->info.path, &reader->ranks[0]->info.has_index);
    }
    if (status == FXTAP_OK && reader->n_ranks > 1) {
        qsort(reader->ranks, reader->n_ranks, sizeof(fx_rank *), compare_ranks);
    }
    return status;
}

/* ---- a single graph or step ---- */

static fxtap_status add_only_graph(fxtap_reader *reader, const char *graph_path)
{
    reader->has_only_graph = true;
    reader->only_graph_path = graph_path;
    const char *rank_path = parent_of(reader, graph_path);
    if (rank_path == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (fx_graph_folder_parse(fx_path_base(graph_path), &reader->only_graph) && is_rank_folder(rank_path)) {
        return add_rank(reader, rank_path);
    }
    /* Outside a rank's folder: only this graph is read. */
    if (!fx_grow((void **)&reader->ranks, &reader->ranks_capacity, 1, sizeof *reader->ranks)) {
        return FXTAP_E_NOMEM;
    }
    fx_rank *rank = fx_arena_calloc(&reader->arena, 1, sizeof *rank);
    if (rank == NULL) {
        return FXTAP_E_NOMEM;
    }
    rank->info.path = rank_path;
    reader->ranks[reader->n_ranks++] = rank;
    return FXTAP_OK;
}

static fxtap_status add_only_step(fxtap_reader *reader)
{
    const char *graph_path = parent_of(reader, reader->path);
    if (graph_path == NULL) {
        return FXTAP_E_NOMEM;
    }
    reader->only_step = fx_path_base(reader->path);
    return add_only_graph(reader, graph_path);
}

/* ---- plain folders ---- */

static fxtap_status add_plain_file(fxtap_reader *reader, const char *name)
{
    if (!fx_grow((void **)&reader->plain_files, &reader->plain_files_capacity, reader->n_plain_files + 1,
                 sizeof *reader->plain_files)) {
        return FXTAP_E_NOMEM;
    }
    reader->plain_files[reader->n_plain_files++] = name;
    return FXTAP_OK;
}

static fxtap_status add_plain_folder(fxtap_reader *reader, const char *relative, int depth);

static fxtap_status add_plain_entry(fxtap_reader *reader, const char *relative, const fx_entry *entry, int depth)
{
    const char *name =
        relative[0] != '\0' ? fx_reader_join(reader, relative, entry->name) : fx_reader_text(reader, entry->name);
    if (name == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (entry->type == DT_LNK) {
        return fx_reader_warn(reader, "%s/%s: a symbolic link, not followed", reader->path, name);
    }
    if (entry->type == DT_REG && fx_has_suffix(name, ".npy")) {
        return add_plain_file(reader, name);
    }
    if (entry->type != DT_DIR) {
        return FXTAP_OK;
    }
    int32_t world_size, rank;
    if (fx_rank_folder_parse(entry->name, &world_size, &rank)) {
        fxtap_status status =
            fx_reader_warn(reader, "%s/%s contains a dump of its own, which is not read", reader->path, relative);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return add_plain_folder(reader, name, depth + 1);
}

static fxtap_status add_plain_folder(fxtap_reader *reader, const char *relative, int depth)
{
    if (depth > MAX_PLAIN_DEPTH) {
        return fx_reader_warn(reader, "%s/%s: more than %d folders deep, skipped", reader->path, relative,
                              MAX_PLAIN_DEPTH);
    }
    const char *path = fx_reader_join(reader, reader->path, relative);
    if (path == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(path, &listing);
    if (status == FXTAP_E_IO) {
        return depth == 0 ? status : fx_reader_leave_out(reader);
    }
    for (size_t i = 0; i < listing.count && status == FXTAP_OK; i++) {
        status = add_plain_entry(reader, relative, &listing.entries[i], depth);
    }
    fx_listing_clear(&listing);
    return status;
}

static fxtap_status find_plain(fxtap_reader *reader)
{
    reader->kind = FXTAP_READ_PLAIN;
    fxtap_status status = add_plain_folder(reader, "", 0);
    if (status == FXTAP_OK && reader->n_plain_files == 0) {
        return fx_error_at(FXTAP_E_NOT_FOUND, reader->path, "contains neither a dump nor an .npy file");
    }
    return status;
}

/* ---- classification ---- */

typedef struct contents {
    bool has_ranks, has_graphs, has_index, has_steps, has_files;
} contents;

static contents contents_of(const fx_listing *listing)
{
    contents found = {0};
    for (size_t i = 0; i < listing->count; i++) {
        const fx_entry *entry = &listing->entries[i];
        int32_t world_size, rank;
        uint32_t graph;
        fxtap_step_state state;
        int64_t number;
        fx_name name;
        if (entry->type == DT_REG) {
            found.has_index |= strcmp(entry->name, FX_INDEX_FILE) == 0;
            found.has_files = found.has_files || fx_name_parse(entry->name, strlen(entry->name), &name);
        } else if (entry->type == DT_DIR || entry->type == DT_LNK) {
            found.has_ranks |= fx_rank_folder_parse(entry->name, &world_size, &rank);
            found.has_graphs |= fx_graph_folder_parse(entry->name, &graph);
            found.has_steps |= fx_step_folder_parse(entry->name, &state, &number);
        }
    }
    return found;
}

/* Folders named by numbers are steps if one of them contains a file named like an operator's tensor. */
static fxtap_status has_named_step(fxtap_reader *reader, const fx_listing *listing, bool *out)
{
    fxtap_status status = FXTAP_OK;
    *out = false;
    for (size_t i = 0; i < listing->count && status == FXTAP_OK && !*out; i++) {
        const fx_entry *entry = &listing->entries[i];
        fxtap_step_state state;
        int64_t number;
        if (entry->type != DT_DIR || !fx_step_folder_parse(entry->name, &state, &number)) {
            continue;
        }
        const char *path = fx_reader_join(reader, reader->path, entry->name);
        fx_listing inner = {0};
        status = path != NULL ? fx_listing_read(path, &inner) : FXTAP_E_NOMEM;
        *out = status == FXTAP_OK && contents_of(&inner).has_files;
        status = status == FXTAP_E_IO && !fx_error_may_pass() ? FXTAP_OK : status;
        fx_listing_clear(&inner);
    }
    return status;
}

static fxtap_status find_in_folder(fxtap_reader *reader, const fx_listing *listing)
{
    contents found = contents_of(listing);
    const char *base = fx_path_base(reader->path);
    uint32_t graph;
    int32_t world_size, rank;
    reader->kind = FXTAP_READ_NAMED;
    if (found.has_ranks) {
        return add_ranks(reader, listing);
    }
    if (found.has_index || found.has_graphs || fx_rank_folder_parse(base, &world_size, &rank)) {
        return add_rank(reader, reader->path);
    }
    if (found.has_files) {
        return add_only_step(reader);
    }
    bool is_graph = fx_graph_folder_parse(base, &graph);
    if (!is_graph && found.has_steps) {
        fxtap_status status = has_named_step(reader, listing, &is_graph);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    return is_graph ? add_only_graph(reader, reader->path) : find_plain(reader);
}

/* A step that has no files, or not yet, is recognised by its place in the tree. */
static bool is_step_by_place(fxtap_reader *reader)
{
    fxtap_step_state state;
    int64_t number;
    uint32_t graph;
    const char *parent = parent_of(reader, reader->path);
    return parent != NULL && fx_step_folder_parse(fx_path_base(reader->path), &state, &number) &&
           fx_graph_folder_parse(fx_path_base(parent), &graph);
}

/* By its name, so that a damaged file is accepted, or else by its first bytes. */
static fxtap_status check_file(const char *path)
{
    static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
    char first[sizeof magic];
    if (fx_has_suffix(path, ".npy")) {
        return FXTAP_OK;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fx_error_errno(errno, "open", path);
    }
    bool is_npy = fx_pread_all(fd, first, sizeof first, 0, path) == FXTAP_OK && memcmp(first, magic, sizeof magic) == 0;
    close(fd);
    return is_npy ? FXTAP_OK : fx_error_at(FXTAP_E_FORMAT, path, "neither a dump nor an .npy file");
}

fxtap_status fx_reader_find(fxtap_reader *reader)
{
    struct stat info;
    if (stat(reader->path, &info) != 0) {
        return fx_error_errno(errno, "open", reader->path);
    }
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
        return fx_error_at(FXTAP_E_FORMAT, reader->path, "neither a folder nor a file");
    }
    if (S_ISREG(info.st_mode)) {
        reader->kind = FXTAP_READ_FILE;
        fxtap_status status = check_file(reader->path);
        return status == FXTAP_OK ? add_plain_file(reader, fx_path_base(reader->path)) : status;
    }
    if (is_step_by_place(reader)) {
        reader->kind = FXTAP_READ_NAMED;
        return add_only_step(reader);
    }
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(reader->path, &listing);
    if (status == FXTAP_OK) {
        status = find_in_folder(reader, &listing);
    }
    fx_listing_clear(&listing);
    return status;
}
