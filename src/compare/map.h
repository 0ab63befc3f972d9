/*
 * map.h - names of the target side that a file pairs with those of the golden side.
 */
#ifndef FX_COMPARE_MAP_H
#define FX_COMPARE_MAP_H

#include "fxtap/compare.h"
#include "util/arena.h"

typedef struct fx_map fx_map;

fxtap_status fx_map_load(fx_arena *arena, const char *path, const fx_map **out);
/* What that does with the file's text; `path` is for messages. */
fxtap_status fx_map_parse(fx_arena *arena, const char *path, const char *text, size_t length, const fx_map **out);
/* The target-side name that the map gives to a golden name, in `buffer`; the number of its entry from 1, 0 where it gives none. */
size_t fx_map_apply(const fx_map *map, const char *golden_name, char *buffer, size_t buffer_bytes);
/* What that entry stands for is there. One thread pairs. */
void fx_map_note_use(const fx_map *map, size_t entry);
/* Entries that never were of use, or that an earlier one hides, become warnings. */
fxtap_status fx_map_warn(const fx_map *map, const char *path, fxtap_report *report);

#endif
