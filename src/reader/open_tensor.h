/* open_tensor.h - opening one tensor after the other, most of them in the folder that the one before lay in. */
#ifndef FX_READER_OPEN_TENSOR_H
#define FX_READER_OPEN_TENSOR_H

#include <limits.h>

#include "fxtap/reader.h"

/* The folder that was opened last: its files are reached without walking the path again. One thread uses it. */
typedef struct fx_folder {
    int fd; /* or AT_FDCWD */
    size_t length;
    char path[PATH_MAX]; /* with the last slash */
} fx_folder;

void fx_folder_init(fx_folder *folder);
void fx_folder_close(fx_folder *folder); /* as after init */

/* fxtap_tensor_open(), by way of `folder` where it is not NULL. */
fxtap_status fx_tensor_open_in(const fxtap_tensor_list *list, size_t i, fx_folder *folder, fxtap_npy **out);

#endif
