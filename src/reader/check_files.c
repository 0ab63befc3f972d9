/*
 * check_files.c - checks each file of a dump against its name and its index rows. Hard links to one file are grouped so
 * that it is read once; two threads share the files.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reader/check.h"
#include "reader/tensors.h"
#include "tensor/hash.h"
#include "util/error.h"
#include "util/memory.h"

#define DETAIL_BYTES 600

/* One name of a file, and the result. */
typedef struct name_item {
    dev_t device;
    ino_t inode;
    size_t tensor;
    fxtap_problem_kind kind; /* 0: no problem */
    const char *detail;
} name_item;

typedef struct file_check {
    fxtap_check *check;
    bool read_data;
    name_item *items; /* sorted by file */
    size_t n_items;
    size_t *starts; /* index of each file's first name; the last element is n_items */
    size_t n_files;
    atomic_size_t next_file;
    atomic_size_t n_done; /* names */
    atomic_bool is_cancelled;
    atomic_bool has_no_memory;
} file_check;

/* The contents of a file. */
typedef struct file_facts {
    fxtap_problem_kind kind;
    char detail[DETAIL_BYTES];
    fxtap_npy *npy; /* NULL: unreadable */
    bool has_hash;
    fxtap_hash128 hash;
    bool has_stats;
    fxtap_stats stats;
} file_facts;

/* Details are in the check's arena; the list's lock protects it. */
static void set_problem(file_check *work, name_item *item, fxtap_problem_kind kind, const char *detail)
{
    fxtap_check *check = work->check;
    pthread_mutex_lock(&check->list->lock);
    item->detail = fx_text_copy(&check->arena, detail, strlen(detail));
    pthread_mutex_unlock(&check->list->lock);
    item->kind = kind;
    if (item->detail == NULL) {
        atomic_store(&work->has_no_memory, true);
    }
}

/* ---- grouping names by file ---- */

static void look_at_name(file_check *work, size_t tensor)
{
    const char *path = fxtap_tensor_list_at(work->check->list, tensor)->path;
    if (path == NULL) {
        return;
    }
    name_item *item = &work->items[work->n_items++];
    *item = (name_item){.tensor = tensor};
    struct stat info;
    if (lstat(path, &info) != 0) {
        bool is_missing = errno == ENOENT || errno == ENOTDIR;
        set_problem(work, item, is_missing ? FXTAP_PROBLEM_MISSING_FILE : FXTAP_PROBLEM_BAD_FILE,
                    is_missing ? "in the index, but missing" : strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        set_problem(work, item, FXTAP_PROBLEM_BAD_FILE,
                    S_ISLNK(info.st_mode) ? "a symbolic link, not followed" : "not a regular file");
    } else {
        item->device = info.st_dev;
        item->inode = info.st_ino;
    }
}

static int compare_items(const void *a, const void *b)
{
    const name_item *x = a, *y = b;
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    if (x->inode != y->inode) {
        return x->inode < y->inode ? -1 : 1;
    }
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static int compare_tensors(const void *a, const void *b)
{
    const name_item *x = a, *y = b;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static bool is_same_file(const name_item *a, const name_item *b)
{
    return a->kind == 0 && b->kind == 0 && a->device == b->device && a->inode == b->inode;
}

static fxtap_status collect(file_check *work)
{
    size_t n = fxtap_tensor_list_count(work->check->list);
    work->items = fx_calloc(n, sizeof *work->items);
    work->starts = fx_calloc(n + 1, sizeof *work->starts);
    if (work->items == NULL || work->starts == NULL) {
        return FXTAP_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        look_at_name(work, i);
    }
    if (work->n_items > 1) {
        qsort(work->items, work->n_items, sizeof *work->items, compare_items);
    }
    for (size_t i = 0; i < work->n_items; i++) {
        if (i == 0 || !is_same_file(&work->items[i - 1], &work->items[i])) {
            work->starts[work->n_files++] = i;
        }
    }
    work->starts[work->n_files] = work->n_items;
    return atomic_load(&work->has_no_memory) ? fx_error_nomem() : FXTAP_OK;
}

/* ---- one file ---- */

/* The thread's error message without the path, which is reported separately. */
static void keep_message(file_facts *facts, const char *path)
{
    const char *message = fxtap_error_message();
    size_t length = strlen(path);
    if (strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0) {
        message += length + 2;
    }
    facts->kind = FXTAP_PROBLEM_BAD_FILE;
    snprintf(facts->detail, sizeof facts->detail, "%s", message);
}

static bool any_needs_stats(const file_check *work, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        if (!fxtap_tensor_list_at(work->check->list, work->items[i].tensor)->has_stats) {
            return true;
        }
    }
    return false;
}

/* The hash is of the saved bytes, as they are in the file. */
static void read_file(file_check *work, size_t first, size_t end, const char *path, file_facts *facts)
{
    fxtap_status status = fxtap_tensor_open(work->check->list, work->items[first].tensor, &facts->npy);
    if (status != FXTAP_OK) {
        keep_message(facts, path);
        return;
    }
    if (fxtap_npy_trailing_bytes(facts->npy) > 0) {
        facts->kind = FXTAP_PROBLEM_TRAILING;
        snprintf(facts->detail, sizeof facts->detail, "%llu bytes follow the data",
                 (unsigned long long)fxtap_npy_trailing_bytes(facts->npy));
    }
    if (!work->read_data) {
        return;
    }
    const fxtap_view *view = fxtap_npy_view(facts->npy);
    facts->hash = fx_hash_bytes(view->data, (size_t)fxtap_npy_data_bytes(facts->npy));
    facts->has_hash = true;
    if (view->dtype != FXTAP_STRING && any_needs_stats(work, first, end)) {
        facts->has_stats = fxtap_stats_compute(view, &facts->stats, NULL) == FXTAP_OK;
    }
}

static void append_shape(char *text, size_t capacity, const int64_t *shape, int32_t ndim)
{
    size_t length = strlen(text);
    for (int32_t i = 0; i < ndim && length < capacity; i++) {
        int n = snprintf(text + length, capacity - length, "%s%lld", i > 0 ? "x" : " ", (long long)shape[i]);
        length += n > 0 ? (size_t)n : 0;
    }
}

static bool has_other_header(const fxtap_tensor_info *info, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    return view->dtype != info->saved_dtype || view->ndim != info->ndim || fxtap_npy_data_bytes(npy) != info->bytes ||
           fxtap_npy_fortran_order(npy) != info->fortran_order ||
           (info->ndim > 0 && memcmp(view->shape, info->shape, (size_t)info->ndim * sizeof *info->shape) != 0);
}

static void report_header(file_check *work, name_item *item, const fxtap_tensor_info *info, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    char own[DETAIL_BYTES / 3] = "", indexed[DETAIL_BYTES / 3] = "", detail[DETAIL_BYTES];
    append_shape(own, sizeof own, view->shape, view->ndim);
    append_shape(indexed, sizeof indexed, info->shape, info->ndim);
    snprintf(detail, sizeof detail, "the file has %s%s%s, the index has %s%s%s", fxtap_dtype_name(view->dtype), own,
             fxtap_npy_fortran_order(npy) ? " column-major" : "", fxtap_dtype_name(info->saved_dtype), indexed,
             info->fortran_order ? " column-major" : "");
    set_problem(work, item, FXTAP_PROBLEM_BAD_FILE, detail);
}

static bool is_same_hash(fxtap_hash128 a, fxtap_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

/* Checks one name against the file, and fills in what was unknown without the file. */
static void judge_name(file_check *work, name_item *item, const file_facts *facts)
{
    fxtap_tensor_info *info = &work->check->list->items[item->tensor]->info;
    if (facts->npy == NULL) {
        set_problem(work, item, facts->kind, facts->detail);
        return;
    }
    if (!info->has_meta && fx_tensor_take_meta(work->check->list, info, facts->npy) != FXTAP_OK) {
        atomic_store(&work->has_no_memory, true);
        return;
    }
    if (has_other_header(info, facts->npy)) {
        report_header(work, item, info, facts->npy);
    } else if (info->has_hash && facts->has_hash && !is_same_hash(info->hash, facts->hash)) {
        set_problem(work, item, FXTAP_PROBLEM_HASH, "contents differ from what was written");
    } else if (facts->kind != 0) {
        set_problem(work, item, facts->kind, facts->detail);
    }
    if (!info->has_stats && facts->has_stats) {
        info->stats = facts->stats;
        info->has_stats = true;
    }
}

static void check_file(file_check *work, size_t file)
{
    size_t first = work->starts[file], end = work->starts[file + 1];
    if (work->items[first].kind == 0) {
        file_facts facts = {0};
        const char *path = fxtap_tensor_list_at(work->check->list, work->items[first].tensor)->path;
        read_file(work, first, end, path, &facts);
        for (size_t i = first; i < end; i++) {
            judge_name(work, &work->items[i], &facts);
        }
        fxtap_npy_close(facts.npy);
    }
    atomic_fetch_add(&work->n_done, end - first);
}

/* ---- all files ---- */

static bool take_file(file_check *work)
{
    if (atomic_load(&work->is_cancelled) || atomic_load(&work->has_no_memory)) {
        return false;
    }
    size_t file = atomic_fetch_add(&work->next_file, 1);
    if (file >= work->n_files) {
        return false;
    }
    check_file(work, file);
    return true;
}

static void *help(void *context)
{
    while (take_file(context)) {
    }
    return NULL;
}

static void run_threads(file_check *work, fxtap_progress progress, void *context)
{
    pthread_t helper;
    bool has_helper = work->n_files > 1 && pthread_create(&helper, NULL, help, work) == 0;
    while (take_file(work)) {
        if (progress != NULL && !progress(context, atomic_load(&work->n_done), work->n_items)) {
            atomic_store(&work->is_cancelled, true);
        }
    }
    if (has_helper) {
        pthread_join(helper, NULL);
    }
    if (progress != NULL && !atomic_load(&work->is_cancelled) &&
        !progress(context, atomic_load(&work->n_done), work->n_items)) {
        atomic_store(&work->is_cancelled, true);
    }
}

static fxtap_status report(file_check *work)
{
    if (work->n_items > 1) {
        qsort(work->items, work->n_items, sizeof *work->items, compare_tensors);
    }
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < work->n_items && status == FXTAP_OK; i++) {
        const name_item *item = &work->items[i];
        const fxtap_tensor_info *info = fxtap_tensor_list_at(work->check->list, item->tensor);
        if (item->kind != 0) {
            fxtap_problem problem = {.kind = item->kind, .path = info->path, .detail = item->detail, .tensor = info};
            status = fx_check_add(work->check, &problem);
        }
    }
    work->check->n_files += work->n_items;
    return status;
}

fxtap_status fx_check_files(fxtap_check *check, bool read_data, fxtap_progress progress, void *context)
{
    file_check work = {.check = check, .read_data = read_data};
    fxtap_status status = collect(&work);
    if (status == FXTAP_OK) {
        run_threads(&work, progress, context);
        if (atomic_load(&work.has_no_memory)) {
            status = fx_error_nomem();
        } else if (atomic_load(&work.is_cancelled)) {
            status = fx_error(FXTAP_E_CANCELLED, "stopped");
        } else {
            status = report(&work);
        }
    }
    fx_free(work.items);
    fx_free(work.starts);
    return status;
}
