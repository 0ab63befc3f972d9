/* load.c - a tensor's header and statistics, read from its file if the index does not have them. */
#include <fcntl.h>
#include <string.h>

#include "reader/tensors.h"
#include "tensor/npy_file.h"
#include "util/error.h"
#include "util/memory.h"

fxtap_status fxtap_tensor_open(const fxtap_tensor_list *list, size_t i, fxtap_npy **out)
{
    FX_REQUIRE(list);
    FX_REQUIRE(out);
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    if (info == NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "tensor %zu is out of range (list of %zu)", i, list->count);
    }
    if (info->path == NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "%s has no file", info->name);
    }
    return fx_npy_open_at(AT_FDCWD, info->path, info->path, list->flags, out);
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
    pthread_mutex_lock(&list->lock);
    info->dtype = info->saved_dtype = view->dtype;
    info->ndim = view->ndim;
    info->shape = shape;
    info->fortran_order = fxtap_npy_fortran_order(npy);
    info->bytes = fxtap_npy_data_bytes(npy);
    info->has_meta = true;
    pthread_mutex_unlock(&list->lock);
    return FXTAP_OK;
}

fxtap_status fxtap_tensor_list_get(fxtap_tensor_list *list, size_t i, fxtap_tensor_info *out)
{
    if (i >= list->count) {
        return fx_error(FXTAP_E_NOT_FOUND, "tensor %zu is out of range (list of %zu)", i, list->count);
    }
    pthread_mutex_lock(&list->lock);
    *out = list->items[i]->info;
    pthread_mutex_unlock(&list->lock);
    return FXTAP_OK;
}

/* Computed without the lock, since it takes long, then stored. */
static fxtap_status take_stats(fxtap_tensor_list *list, fxtap_tensor_info *info, const fxtap_npy *npy)
{
    const fxtap_view *view = fxtap_npy_view(npy);
    fxtap_stats stats;
    fxtap_hash128 hash;
    if (view->dtype == FXTAP_STRING) {
        return fx_error_at(FXTAP_E_UNSUPPORTED, info->path, "statistics are not defined for strings");
    }
    fxtap_status status = fxtap_stats_compute(view, &stats, &hash);
    if (status != FXTAP_OK) {
        return status;
    }
    pthread_mutex_lock(&list->lock);
    info->stats = stats;
    info->hash = hash;
    info->has_stats = info->has_hash = true;
    pthread_mutex_unlock(&list->lock);
    return FXTAP_OK;
}

static fxtap_status load(fxtap_tensor_list *list, size_t i, bool with_stats)
{
    fxtap_tensor_info known;
    fxtap_status status = fxtap_tensor_list_get(list, i, &known);
    if (status != FXTAP_OK || (with_stats ? known.has_stats : known.has_meta)) {
        return status;
    }
    fxtap_npy *npy = NULL;
    status = fxtap_tensor_open(list, i, &npy);
    if (status == FXTAP_OK && !known.has_meta) {
        status = fx_tensor_take_meta(list, &list->items[i]->info, npy);
    }
    if (status == FXTAP_OK && with_stats) {
        status = take_stats(list, &list->items[i]->info, npy);
    }
    fxtap_npy_close(npy);
    return status;
}

fxtap_status fxtap_tensor_load_meta(fxtap_tensor_list *list, size_t i)
{
    FX_REQUIRE(list);
    return load(list, i, false);
}

fxtap_status fxtap_tensor_load_stats(fxtap_tensor_list *list, size_t i)
{
    FX_REQUIRE(list);
    return load(list, i, true);
}
