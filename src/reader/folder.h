/* folder.h - folders, paths, interned texts and warnings (folder.c). */
#ifndef FX_READER_FOLDER_H
#define FX_READER_FOLDER_H

#include "reader/reader.h"

typedef struct fx_entry {
    const char *name;   /* in the listing's arena */
    unsigned char type; /* DT_REG, DT_DIR, DT_LNK, ... never DT_UNKNOWN */
} fx_entry;

typedef struct fx_listing {
    fx_arena arena;
    fx_entry *entries; /* owned, sorted by fx_natural_compare */
    size_t count;
    size_t capacity;
} fx_listing;

/* Reads all entries except "." and "..". FXTAP_E_IO. */
fxtap_status fx_listing_read(const char *path, fx_listing *out);
void fx_listing_clear(fx_listing *listing);

/* Whether this thread's last error may be temporary: out of descriptors or memory. */
bool fx_error_may_pass(void);
/* After FXTAP_E_IO: skips the folder with a warning. An error that may be temporary is returned instead. */
fxtap_status fx_reader_leave_out(fxtap_reader *reader);

/* Returns "a/b" in the reader's arena; NULL: no memory. */
const char *fx_reader_join(fxtap_reader *reader, const char *folder, const char *name);
/* Interns a text; NULL: no memory. */
const char *fx_reader_text(fxtap_reader *reader, const char *text);
const char *fx_path_base(const char *path);
bool fx_has_suffix(const char *name, const char *suffix);

/* Adds a warning, unless the reader already has the same. FXTAP_E_NOMEM. */
fxtap_status fx_reader_warn(fxtap_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
