/* The folders of a dump: made when they are needed; a step's folder is moved into place as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/memory.h"
#include "util/system.h"
#include "writer/dump.h"

#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define MAX_TRIES 100000 /* suffixes for a name that is taken */

fxtap_status fx_tree_error(const fxtap_call *call, int error_number, const char *action, const char *name)
{
    char path[2 * PATH_MAX];
    const char *folder = call->partial[0] != '\0' ? call->partial : "";
    snprintf(path, sizeof path, "%s/%s%s%s", call->dump->rank_path, folder, name[0] != '\0' ? "/" : "", name);
    return fx_error_errno(error_number, action, path);
}

static fxtap_status error_in_rank(const fxtap_dump *dump, int error_number, const char *action, const char *relative)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dump->rank_path, relative);
    return fx_error_errno(error_number, action, path);
}

/* mkdir -p of an absolute path. Symbolic links in it are followed: the user chose the root. */
static fxtap_status make_root(const char *root)
{
    if (fx_system.mkdirat(AT_FDCWD, root, 0777) == 0 || errno == EEXIST) {
        return FXTAP_OK;
    }
    char *path = errno == ENOENT ? fx_strdup(root) : NULL;
    if (path == NULL) {
        return errno == ENOENT ? FXTAP_E_NOMEM : fx_error_errno(errno, "make the folder", root);
    }
    fxtap_status status = FXTAP_OK;
    for (char *slash = strchr(path + 1, '/'); status == FXTAP_OK; slash = strchr(slash + 1, '/')) {
        if (slash != NULL) {
            *slash = '\0';
        }
        if (fx_system.mkdirat(AT_FDCWD, path, 0777) != 0 && errno != EEXIST) {
            status = fx_error_errno(errno, "make the folder", path);
        }
        if (slash == NULL) {
            break;
        }
        *slash = '/';
    }
    fx_free(path);
    return status;
}

/* Opens a folder inside the tree, made if it does not exist. A symbolic link is an error. */
static int enter_folder(int parent_fd, const char *name)
{
    if (fx_system.mkdirat(parent_fd, name, 0777) != 0 && errno != EEXIST) {
        return -1;
    }
    return fx_system.openat(parent_fd, name, OPEN_FOLDER | O_NOFOLLOW, 0);
}

static fxtap_status open_rank(const fxtap_dump *dump, fx_rank_folder **out)
{
    fxtap_status status = make_root(dump->root_path);
    if (status != FXTAP_OK) {
        return status;
    }
    int root_fd = fx_system.openat(AT_FDCWD, dump->root_path, OPEN_FOLDER, 0);
    if (root_fd < 0) {
        return fx_error_errno(errno, "open the folder", dump->root_path);
    }
    fx_rank_folder *rank = fx_calloc(1, sizeof *rank);
    struct stat info;
    if (rank == NULL) {
        status = FXTAP_E_NOMEM;
        goto done;
    }
    rank->fd = enter_folder(root_fd, dump->rank_name);
    if (rank->fd < 0 || fstat(rank->fd, &info) != 0) {
        status = fx_error_errno(errno, "open the folder", dump->rank_path);
        goto done;
    }
    rank->device = info.st_dev;
    rank->inode = info.st_ino;
    *out = rank;
done:
    if (status != FXTAP_OK && rank != NULL) {
        if (rank->fd >= 0) {
            fx_system.close(rank->fd);
        }
        fx_free(rank);
    }
    fx_system.close(root_fd);
    return status;
}

static bool is_current(const fxtap_dump *dump, const fx_rank_folder *rank)
{
    struct stat info;
    return rank != NULL && stat(dump->rank_path, &info) == 0 && info.st_dev == rank->device &&
           info.st_ino == rank->inode;
}

static void drop_user(fx_rank_folder *rank)
{
    if (rank != NULL && --rank->n_users == 0) {
        fx_system.close(rank->fd);
        fx_free(rank);
    }
}

fxtap_status fx_tree_acquire_rank(fxtap_dump *dump, fx_rank_folder **out)
{
    fxtap_status status = FXTAP_OK;
    pthread_mutex_lock(&dump->rank_lock);
    if (!is_current(dump, dump->open_rank)) {
        fx_rank_folder *fresh = NULL;
        status = open_rank(dump, &fresh);
        if (status == FXTAP_OK) {
            drop_user(dump->open_rank);
            dump->open_rank = fresh;
            fresh->n_users = 1;
            fresh->number = ++dump->n_ranks;
            /* The files known so far were in a folder that is gone. Under the lock: then no call has added new ones. */
            fx_contents_forget(&dump->contents);
        }
    }
    if (status == FXTAP_OK) {
        dump->open_rank->n_users++;
        *out = dump->open_rank;
    }
    pthread_mutex_unlock(&dump->rank_lock);
    return status;
}

void fx_tree_release_rank(fxtap_dump *dump, fx_rank_folder *rank)
{
    pthread_mutex_lock(&dump->rank_lock);
    drop_user(rank);
    pthread_mutex_unlock(&dump->rank_lock);
}

/* The partial folder's name contains the run's number, so that no other step ever had it. */
static fxtap_status make_partial(fxtap_call *call, int graph_fd)
{
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        char name[64];
        int length = snprintf(name, sizeof name, ".%llu-%lld", (unsigned long long)call->number,
                              (long long)atomic_load(&call->dump->index.run));
        snprintf(name + length, sizeof name - (size_t)length, i == 0 ? ".partial" : "-%u.partial", i);
        if (fx_system.mkdirat(graph_fd, name, 0777) == 0) {
            snprintf(call->partial, sizeof call->partial, "graph_%u/%s", call->capture->graph_id, name);
            call->dir_fd = fx_system.openat(graph_fd, name, OPEN_FOLDER | O_NOFOLLOW, 0);
            return call->dir_fd >= 0 ? FXTAP_OK : fx_tree_error(call, errno, "open the folder", "");
        }
        if (errno != EEXIST) {
            break;
        }
    }
    char graph[32];
    snprintf(graph, sizeof graph, "graph_%u", call->capture->graph_id);
    return error_in_rank(call->dump, errno, "make a folder in", graph);
}

fxtap_status fx_tree_begin(fxtap_call *call)
{
    call->folder = fx_calloc(1, sizeof *call->folder);
    if (call->folder == NULL) {
        return FXTAP_E_NOMEM;
    }
    call->folder->n_users = 1;
    call->folder->rank_number = call->rank->number;
    char graph[32];
    snprintf(graph, sizeof graph, "graph_%u", call->capture->graph_id);
    int graph_fd = enter_folder(call->rank->fd, graph);
    if (graph_fd < 0) {
        return error_in_rank(call->dump, errno, "open the folder", graph);
    }
    fxtap_status status = make_partial(call, graph_fd);
    fx_system.close(graph_fd);
    memcpy(call->folder->path, call->partial, sizeof call->partial);
    call->path_bytes = strlen(call->dump->rank_path) + strlen(call->partial) + 2;
    return status;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fx_contents_set_path(fx_contents *contents, fx_step_folder *folder, const char *path)
{
    pthread_mutex_lock(&contents->lock);
    snprintf(folder->path, sizeof folder->path, "%s", path);
    folder->ended_ns = now_ns();
    pthread_mutex_unlock(&contents->lock);
}

static bool cannot_noreplace(int error_number)
{
    return error_number == EINVAL || error_number == ENOSYS || error_number == ENOTSUP;
}

/* Moves a file without overwriting, even if the file system has no such rename. 0, or -1 and errno. */
static int move_file(int from_fd, const char *from, int to_fd, const char *to)
{
    if (fx_system.rename(from_fd, from, to_fd, to, 1) == 0) {
        return 0;
    }
    if (!cannot_noreplace(errno)) {
        return -1;
    }
    if (fx_system.linkat(from_fd, from, to_fd, to, 0) == 0) {
        return unlinkat(from_fd, from, 0);
    }
    if (errno == EEXIST) {
        return -1;
    }
    struct stat info; /* no hard links, or too many: check, then rename */
    if (fstatat(to_fd, to, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return fx_system.rename(from_fd, from, to_fd, to, 0);
}

/* The end of one run of a node, which begins at entry `first`: entries with the same node and stamp. */
static size_t run_end(const fxtap_call *call, size_t first)
{
    const fx_call_entry *entries = call->entries;
    size_t end = first + 1;
    while (end < call->n_entries && entries[end].slot->node == entries[first].slot->node &&
           entries[end].stamp_us == entries[first].stamp_us) {
        end++;
    }
    return end;
}

static bool has_file(const fx_call_entry *entry)
{
    return entry->job != NULL && entry->job->is_written;
}

/* Moves the files of entries [first, end) to the stamp `stamp_us`: all or none. */
static int move_run(fxtap_call *call, int step_fd, size_t first, size_t end, uint64_t stamp_us)
{
    char from[FX_NAME_MAX + 1];
    char to[FX_NAME_MAX + 1];
    for (size_t i = first; i < end; i++) {
        const fx_call_entry *entry = &call->entries[i];
        fx_slot_file_name(entry->slot, entry->stamp_us, from);
        fx_slot_file_name(entry->slot, stamp_us, to);
        if (!has_file(entry) || move_file(call->dir_fd, from, step_fd, to) == 0) {
            continue;
        }
        int error_number = errno;
        while (i-- > first) {
            entry = &call->entries[i];
            fx_slot_file_name(entry->slot, entry->stamp_us, from);
            fx_slot_file_name(entry->slot, stamp_us, to);
            if (has_file(entry)) {
                move_file(step_fd, to, call->dir_fd, from);
            }
        }
        errno = error_number;
        return -1;
    }
    return 0;
}

static fxtap_status merge_run(fxtap_call *call, int step_fd, size_t first, size_t end, bool *restamped_out)
{
    uint64_t given = call->entries[first].stamp_us;
    uint64_t stamp = given;
    while (move_run(call, step_fd, first, end, stamp) != 0) {
        if (errno != EEXIST || stamp - given >= MAX_TRIES * 10u) {
            char name[FX_NAME_MAX + 1];
            fx_slot_file_name(call->entries[first].slot, stamp, name);
            return fx_tree_error(call, errno, "move into the step", name);
        }
        stamp++;
    }
    for (size_t i = first; stamp != given && i < end; i++) {
        if (call->entries[i].job != NULL) {
            fx_contents_restamp(&call->dump->contents, call->entries[i].job, stamp);
        }
        call->entries[i].stamp_us = stamp;
        *restamped_out = true;
    }
    return FXTAP_OK;
}

static fxtap_status merge(fxtap_call *call, const char *final, bool *restamped_out)
{
    int step_fd = fx_system.openat(call->rank->fd, final, OPEN_FOLDER | O_NOFOLLOW, 0);
    if (step_fd < 0) {
        return error_in_rank(call->dump, errno, "open the step's folder", final);
    }
    fxtap_status status = FXTAP_OK;
    for (size_t first = 0; status == FXTAP_OK && first < call->n_entries;) {
        size_t end = run_end(call, first);
        status = merge_run(call, step_fd, first, end, restamped_out);
        first = end;
    }
    if (status == FXTAP_OK && unlinkat(call->rank->fd, call->partial, AT_REMOVEDIR) != 0) {
        status = fx_tree_error(call, errno, "remove the folder", "");
    }
    fx_system.close(step_fd);
    return status;
}

static int move_folder(fxtap_call *call, const char *final)
{
    int fd = call->rank->fd;
    if (fx_system.rename(fd, call->partial, fd, final, 1) == 0) {
        return 0;
    }
    if (cannot_noreplace(errno)) { /* a plain rename replaces nothing but an empty folder */
        return fx_system.rename(fd, call->partial, fd, final, 0);
    }
    return -1;
}

void fx_tree_step_path(const fxtap_call *call, uint64_t step, char *dst, size_t capacity)
{
    snprintf(dst, capacity, "graph_%u/%llu", call->capture->graph_id, (unsigned long long)step);
}

fxtap_status fx_tree_publish(fxtap_call *call, uint64_t step, bool *restamped_out)
{
    fxtap_dump *dump = call->dump;
    char final[sizeof call->partial];
    fx_tree_step_path(call, step, final, sizeof final);
    fxtap_status status = FXTAP_OK;
    pthread_mutex_lock(&dump->contents.move);
    if (move_folder(call, final) != 0) {
        bool is_taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
        status = is_taken ? merge(call, final, restamped_out) : fx_tree_error(call, errno, "move into place", "");
    }
    if (status == FXTAP_OK) {
        fx_contents_set_path(&dump->contents, call->folder, final);
    }
    pthread_mutex_unlock(&dump->contents.move);
    return status;
}

fxtap_status fx_tree_fail(fxtap_call *call, uint64_t step)
{
    fxtap_dump *dump = call->dump;
    fxtap_status status = FXTAP_OK;
    pthread_mutex_lock(&dump->contents.move);
    for (unsigned n = 0;; n++) {
        char final[sizeof call->partial];
        snprintf(final, sizeof final, "graph_%u/%llu.failed-%u", call->capture->graph_id, (unsigned long long)step, n);
        struct stat info;
        bool is_taken = fstatat(call->rank->fd, final, &info, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_taken && move_folder(call, final) == 0) {
            fx_contents_set_path(&dump->contents, call->folder, final);
            break;
        }
        if (n == MAX_TRIES || (!is_taken && errno != EEXIST && errno != ENOTEMPTY)) {
            status = fx_tree_error(call, errno, "move into place", "");
            break;
        }
    }
    pthread_mutex_unlock(&dump->contents.move);
    return status;
}

void fx_tree_end(fxtap_call *call)
{
    if (call->dir_fd >= 0) {
        fx_system.close(call->dir_fd);
        call->dir_fd = -1;
    }
    if (call->folder != NULL) {
        fx_contents_release_folder(&call->dump->contents, call->folder);
        call->folder = NULL;
    }
    if (call->rank != NULL) {
        fx_tree_release_rank(call->dump, call->rank);
        call->rank = NULL;
    }
}
