/* text_file.h - reads a small file that a user wrote. */
#ifndef FX_UTIL_TEXT_FILE_H
#define FX_UTIL_TEXT_FILE_H

#include "fxtap/output.h"

/* Reads a whole file of at most 4 MiB, or a pipe; on success out->bytes is never NULL. */
fxtap_status fx_text_file_read(const char *path, fxtap_buffer *out);

#endif
