/*
 * map.h - names of the target side that a file pairs with those of the golden side.
 */
#ifndef FX_PAIR_MAP_H
#define FX_PAIR_MAP_H

#include "fxtap/compare.h"
#include "util/arena.h"

typedef struct fx_map fx_map;

fxtap_status fx_map_load(fx_arena *arena, const char *path, const fx_map **out);
/* The same from the file's text; `path` is for messages. */
fxtap_status fx_map_parse(fx_arena *arena, const char *path, const char *text, size_t length, const fx_map **out);
/*
 * Writes the target-side name that a golden name maps to into `buffer`; returns its entry's number, from 1, or 0: none.
 */
size_t fx_map_apply(const fx_map *map, const char *golden_name, char *buffer, size_t buffer_bytes);
/* Notes that an entry was used. Only called by the thread that makes pairs. */
void fx_map_note_use(const fx_map *map, size_t entry);
/* Lists warnings, in the arena, of entries that were never used or that an earlier entry hides. */
fxtap_status fx_map_warnings(const fx_map *map, const char *path, fx_arena *arena, const char ***out, size_t *n_out);

#endif
