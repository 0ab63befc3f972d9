/* reader_load.c - what only a tensor's file can tell: its header, its statistics. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "store/reader_parts.h"
#include "util/error.h"
#include "util/memory.h"

fxtap_status fxtap_tensor_open(const fxtap_tensor_list *list, size_t i, fxtap_npy **out)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    if (info == NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "no tensor %zu in a list of %zu", i, list->count);
    }
    if (info->path == NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "%s has no file", info->name);
    }
    struct stat file;
    if (lstat(info->path, &file) != 0) {
        return fx_error_errno(errno, "open", info->path);
    }
    if (!S_ISREG(file.st_mode)) {
        return fx_error_at(FXTAP_E_FORMAT, info->path, "%s",
                           S_ISLNK(file.st_mode) ? "a symbolic link, not followed" : "not a regular file");
    }
    return fxtap_npy_open(info->path, out);
}

fxtap_status fx_tensor_take_meta(fxtap_tensor_list *list, fxtap_tensor_info *info, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    size_t n_bytes = (size_t)view->ndim * sizeof *view->shape;
    pthread_mutex_lock(&list->lock);
    int64_t *shape = fx_arena_calloc(&list->arena, 1, n_bytes);
    pthread_mutex_unlock(&list->lock);
    if (shape == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (n_bytes > 0) {
        memcpy(shape, view->shape, n_bytes);
    }
    info->dtype = info->saved_dtype = view->dtype;
    info->ndim = view->ndim;
    info->shape = shape;
    info->fortran_order = fxtap_npy_fortran_order(npy);
    info->bytes = fxtap_npy_data_bytes(npy);
    info->has_meta = true;
    return FXTAP_OK;
}

fxtap_status fxtap_tensor_load_meta(fxtap_tensor_list *list, size_t i)
{
    if (i < list->count && list->items[i]->info.has_meta) {
        return FXTAP_OK;
    }
    fxtap_npy *npy = NULL;
    fxtap_status status = fxtap_tensor_open(list, i, &npy);
    if (status == FXTAP_OK) {
        status = fx_tensor_take_meta(list, &list->items[i]->info, npy);
    }
    fxtap_npy_close(npy);
    return status;
}

static fxtap_status take_stats(fxtap_tensor_info *info, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    if (view->dtype == FXTAP_STRING) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, info->path, "text has no statistics");
    }
    fxtap_status status = fxtap_stats_compute(view, &info->stats, &info->hash);
    info->has_stats = info->has_hash = status == FXTAP_OK;
    return status;
}

fxtap_status fxtap_tensor_load_stats(fxtap_tensor_list *list, size_t i)
{
    if (i < list->count && list->items[i]->info.has_stats) {
        return FXTAP_OK;
    }
    fxtap_npy *npy = NULL;
    fxtap_status status = fxtap_tensor_open(list, i, &npy);
    if (status == FXTAP_OK && !list->items[i]->info.has_meta) {
        status = fx_tensor_take_meta(list, &list->items[i]->info, npy);
    }
    if (status == FXTAP_OK) {
        status = take_stats(&list->items[i]->info, npy);
    }
    fxtap_npy_close(npy);
    return status;
}
