/*
 * map.c - the override file: one pairing a line, "GOLDEN TARGET", names or globs. A `*` on the right stands for what
 * the `*` of the same number on the left matched. Blank lines and lines that begin with # are passed over.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compare/report.h"
#include "util/error.h"
#include "util/memory.h"

#define MAX_STARS 8
#define MAX_LINE 8192

typedef struct map_entry {
    const char *golden;
    const char *target;
} map_entry;

struct fx_map {
    map_entry *entries;
    size_t n_entries;
};

static fxtap_status parse_line(fx_arena *arena, const char *path, size_t number, char *line, map_entry *out)
{
    char *rest = NULL;
    const char *golden = strtok_r(line, " \t\r\n", &rest);
    const char *target = strtok_r(NULL, " \t\r\n", &rest);
    out->golden = NULL;
    if (golden == NULL || golden[0] == '#') {
        return FXTAP_OK;
    }
    if (target == NULL || strtok_r(NULL, " \t\r\n", &rest) != NULL) {
        return fx_error_at(FXTAP_E_INVALID, path, "line %zu is not \"GOLDEN TARGET\"", number);
    }
    out->golden = fx_arena_strdup(arena, golden);
    out->target = fx_arena_strdup(arena, target);
    return out->golden == NULL || out->target == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status read_entries(fx_arena *arena, const char *path, FILE *file, map_entry **entries, size_t *n_entries)
{
    char line[MAX_LINE];
    size_t capacity = 0;
    for (size_t number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        if (strlen(line) == sizeof line - 1) {
            return fx_error_at(FXTAP_E_INVALID, path, "line %zu is over %d bytes", number, MAX_LINE - 2);
        }
        map_entry entry;
        fxtap_status status = parse_line(arena, path, number, line, &entry);
        if (status != FXTAP_OK) {
            return status;
        }
        if (entry.golden == NULL) {
            continue;
        }
        if (!fx_grow((void **)entries, &capacity, *n_entries + 1, sizeof **entries)) {
            return FXTAP_E_NOMEM;
        }
        (*entries)[(*n_entries)++] = entry;
    }
    return FXTAP_OK;
}

fxtap_status fx_map_load(fx_arena *arena, const char *path, const fx_map **out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return fx_error_errno(errno, "open", path);
    }
    map_entry *entries = NULL;
    size_t n_entries = 0;
    fxtap_status status = read_entries(arena, path, file, &entries, &n_entries);
    fclose(file);
    if (status == FXTAP_OK) {
        fx_map *map = fx_arena_alloc(arena, sizeof *map);
        map_entry *kept = fx_arena_memdup(arena, entries, n_entries * sizeof *entries);
        if (map == NULL || kept == NULL) {
            status = FXTAP_E_NOMEM;
        } else {
            *map = (fx_map){kept, n_entries};
            *out = map;
        }
    }
    fx_free(entries);
    return status;
}

typedef struct star {
    const char *text;
    size_t length;
} star;

/* Matches `text` against literal characters and stars, noting what each star took (shortest first). */
static bool match_stars(const char *pattern, const char *text, star *stars, size_t n_stars)
{
    while (*pattern != '\0' && *pattern != '*') {
        if (*pattern != *text) {
            return false;
        }
        pattern++;
        text++;
    }
    if (*pattern == '\0') {
        return *text == '\0';
    }
    if (n_stars == MAX_STARS) {
        return false;
    }
    for (size_t length = 0;; length++) {
        stars[n_stars] = (star){text, length};
        if (match_stars(pattern + 1, text + length, stars, n_stars + 1)) {
            return true;
        }
        if (text[length] == '\0') {
            return false;
        }
    }
}

static bool substitute(const char *pattern, const star *stars, char *buffer, size_t buffer_bytes)
{
    size_t used = 0, n_stars = 0;
    for (; *pattern != '\0'; pattern++) {
        star piece = {pattern, 1};
        if (*pattern == '*') {
            piece = n_stars < MAX_STARS ? stars[n_stars] : (star){"", 0};
            n_stars++;
        }
        if (piece.length >= buffer_bytes - used) {
            return false;
        }
        if (piece.length > 0) {
            memcpy(buffer + used, piece.text, piece.length);
        }
        used += piece.length;
    }
    buffer[used] = '\0';
    return true;
}

bool fx_map_apply(const fx_map *map, const char *golden_name, char *buffer, size_t buffer_bytes)
{
    for (size_t i = 0; map != NULL && i < map->n_entries; i++) {
        star stars[MAX_STARS];
        memset(stars, 0, sizeof stars);
        if (match_stars(map->entries[i].golden, golden_name, stars, 0)) {
            return substitute(map->entries[i].target, stars, buffer, buffer_bytes);
        }
    }
    return false;
}
