#include "compare/folder.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tensor/npy_file.h"
#include "util/error.h"

void fx_folder_cache_init(fx_folder_cache *folder)
{
    folder->fd = AT_FDCWD;
    folder->length = 0;
}

void fx_folder_cache_clear(fx_folder_cache *folder)
{
    if (folder->fd >= 0) {
        close(folder->fd);
    }
    fx_folder_cache_init(folder);
}

/* Opens the folder of `path` unless it is the cached one; returns the name relative to it. */
static const char *enter_folder(fx_folder_cache *folder, const char *path)
{
    bool is_same = folder->fd >= 0 && strncmp(folder->path, path, folder->length) == 0;
    if (is_same && strchr(path + folder->length, '/') == NULL) {
        return path + folder->length;
    }
    fx_folder_cache_clear(folder);
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (length == 0 || length >= sizeof folder->path) {
        return path;
    }
    memcpy(folder->path, path, length);
    folder->path[length] = '\0';
    folder->length = length;
    int fd = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    folder->fd = fd < 0 ? AT_FDCWD : fd;
    return fd < 0 ? path : path + length;
}

fxtap_status fx_folder_open_tensor(fx_folder_cache *folder, const fxtap_tensor_info *info, uint32_t flags,
                                   fxtap_npy **out)
{
    if (info->path == NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "%s has no file", info->name);
    }
    const char *name = enter_folder(folder, info->path);
    return fx_npy_open_at(folder->fd, name, info->path, flags, out);
}
