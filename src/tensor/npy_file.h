/* npy_file.h - opens an .npy file in a folder. */
#ifndef FX_TENSOR_NPY_FILE_H
#define FX_TENSOR_NPY_FILE_H

#include "fxtap/npy.h"

/*
 * fxtap_npy_open() of `name` in the folder `folder_fd` (AT_FDCWD: `name` is a path); rejects a symbolic link with
 * FXTAP_E_FORMAT. `path` is for messages, `flags` are FXTAP_READ_ bits.
 */
fxtap_status fx_npy_open_at(int folder_fd, const char *name, const char *path, uint32_t flags, fxtap_npy **out);

#endif
