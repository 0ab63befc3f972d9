/* folder.h - a cached folder handle for opening many tensor files, most of them in the same folder. */
#ifndef FX_COMPARE_FOLDER_H
#define FX_COMPARE_FOLDER_H

#include <limits.h>

#include "fxtap/reader.h"

/* The most recently opened folder: its files are opened without resolving the path again. For one thread. */
typedef struct fx_folder_cache {
    int fd; /* or AT_FDCWD */
    size_t length;
    char path[PATH_MAX]; /* with the last slash */
} fx_folder_cache;

void fx_folder_cache_init(fx_folder_cache *folder);
void fx_folder_cache_clear(fx_folder_cache *folder); /* as after init */

/* As fxtap_tensor_open(). `flags`: FXTAP_READ_. */
fxtap_status fx_folder_open_tensor(fx_folder_cache *folder, const fxtap_tensor_info *info, uint32_t flags,
                                   fxtap_npy **out);

#endif
