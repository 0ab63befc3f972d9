/* npy_file.h - opening an .npy file that a folder holds. */
#ifndef FX_TENSOR_NPY_FILE_H
#define FX_TENSOR_NPY_FILE_H

#include "fxtap/npy.h"

/*
 * fxtap_npy_open() of `name` in the folder that `folder_fd` stands for (AT_FDCWD: `name` is a path), except for a symbolic
 * link, which is refused: FXTAP_E_FORMAT. `path` is for messages, `flags` are FXTAP_READ_ ones.
 */
fxtap_status fx_npy_open_at(int folder_fd, const char *name, const char *path, uint32_t flags, fxtap_npy **out);

#endif
