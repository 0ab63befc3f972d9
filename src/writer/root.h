/*
 * root.h - the dump root as an absolute path.
 */
#ifndef FX_WRITER_ROOT_H
#define FX_WRITER_ROOT_H

#include "fxtap/status.h"

/* Links and ".." are resolved in the part that exists, "." and ".." in the rest. The caller frees *out. */
fxtap_status fx_root_resolve(const char *path, char **out);

#endif
