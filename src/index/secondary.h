/*
 * secondary.h - the indexes inside the index (in SQL's sense) that reading wants and writing does not pay for.
 */
#ifndef FX_INDEX_SECONDARY_H
#define FX_INDEX_SECONDARY_H

#include <stdbool.h>

struct sqlite3;

/* They are not there, the file is large enough to need them, and it may be written. */
bool fx_index_wants_secondary(struct sqlite3 *database, const char *path);

/* Makes them. Where somebody else is writing, or the disk is full, nothing happens. */
void fx_index_make_secondary(const char *path);

#endif
