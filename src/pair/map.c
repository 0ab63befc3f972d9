/*
 * map.c - the map file: one pair of names or globs per line, "GOLDEN TARGET". The n-th `*` on the right is replaced by
 * what the n-th `*` on the left matched. Blank lines and lines that begin with # are ignored.
 */
#include <string.h>

#include "pair/map.h"
#include "util/error.h"
#include "util/memory.h"
#include "util/text_file.h"

#define MAX_STARS 8
#define MAX_NAME 4096

typedef struct map_entry {
    const char *golden;
    const char *target;
    size_t line;
    bool is_used; /* a name of golden matched, and target has the name it maps to; set while pairs are made */
} map_entry;

struct fx_map {
    map_entry *entries;
    size_t n_entries;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of [*at, end); false if none is left. */
static bool next_word(const char **at, const char *end, const char **word_out, size_t *length_out)
{
    while (*at < end && is_blank(**at)) {
        (*at)++;
    }
    *word_out = *at;
    while (*at < end && !is_blank(**at)) {
        (*at)++;
    }
    *length_out = (size_t)(*at - *word_out);
    return *length_out > 0;
}

static char *copy_word(fx_arena *arena, const char *word, size_t length)
{
    char *copy = fx_arena_alloc(arena, length + 1);
    if (copy != NULL) {
        memcpy(copy, word, length);
        copy[length] = '\0';
    }
    return copy;
}

static size_t count_stars(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '*';
    }
    return n;
}

/* Parses an entry; out->golden is NULL for a line without one. */
static fxtap_status parse_line(fx_arena *arena, const char *path, size_t number, const char *line, const char *end,
                               map_entry *out)
{
    const char *golden, *target, *more;
    size_t n_golden, n_target, n_more;
    *out = (map_entry){.line = number};
    if (!next_word(&line, end, &golden, &n_golden) || golden[0] == '#') {
        return FXTAP_OK;
    }
    if (!next_word(&line, end, &target, &n_target) || next_word(&line, end, &more, &n_more)) {
        return fx_error_at(FXTAP_E_INVALID, path, "line %zu is not \"GOLDEN TARGET\"", number);
    }
    if (n_golden >= MAX_NAME || n_target >= MAX_NAME || memchr(golden, '\0', n_golden) != NULL ||
        memchr(target, '\0', n_target) != NULL) {
        return fx_error_at(FXTAP_E_INVALID, path, "line %zu has an invalid name", number);
    }
    out->golden = copy_word(arena, golden, n_golden);
    out->target = copy_word(arena, target, n_target);
    if (out->golden == NULL || out->target == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (count_stars(out->golden) > MAX_STARS || count_stars(out->target) > count_stars(out->golden)) {
        return fx_error_at(FXTAP_E_INVALID, path, "line %zu: at most %d `*` a name, and no more on the right", number,
                           MAX_STARS);
    }
    return FXTAP_OK;
}

fxtap_status fx_map_parse(fx_arena *arena, const char *path, const char *text, size_t length, const fx_map **out)
{
    const char *end = text + length;
    map_entry *entries = NULL;
    size_t n_entries = 0, capacity = 0, number = 1;
    fxtap_status status = FXTAP_OK;
    for (; text < end && status == FXTAP_OK; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline == NULL ? end : newline;
        map_entry entry;
        status = parse_line(arena, path, number, text, line_end, &entry);
        text = newline == NULL ? end : newline + 1;
        if (status != FXTAP_OK || entry.golden == NULL) {
            continue;
        }
        if (!fx_grow((void **)&entries, &capacity, n_entries + 1, sizeof *entries)) {
            status = FXTAP_E_NOMEM;
            break;
        }
        entries[n_entries++] = entry;
    }
    if (status == FXTAP_OK) {
        fx_map *map = fx_arena_alloc(arena, sizeof *map);
        map_entry *kept = fx_arena_memdup(arena, entries, n_entries * sizeof *entries);
        status = map == NULL || kept == NULL ? FXTAP_E_NOMEM : FXTAP_OK;
        if (status == FXTAP_OK) {
            *map = (fx_map){kept, n_entries};
            *out = map;
        }
    }
    fx_free(entries);
    return status;
}

fxtap_status fx_map_load(fx_arena *arena, const char *path, const fx_map **out)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_status status = fx_text_file_read(path, &text);
    if (status == FXTAP_OK) {
        status = fx_map_parse(arena, path, text.bytes, text.length, out);
    }
    fxtap_buffer_clear(&text);
    return status;
}

typedef struct star {
    const char *text;
    size_t length;
} star;

/* The first occurrence of the `length` bytes of `piece` in `text`, or NULL. */
static const char *find_piece(const char *text, const char *piece, size_t length)
{
    return length == 0 ? text : memmem(text, strlen(text), piece, length);
}

/* Matches `text` against the literal pieces between stars and notes what each star matched: the shortest, from the
 * left. */
static bool match_stars(const char *pattern, const char *text, star stars[MAX_STARS])
{
    size_t length = strcspn(pattern, "*");
    if (strncmp(pattern, text, length) != 0) {
        return false;
    }
    pattern += length;
    text += length;
    for (size_t n = 0; *pattern == '*'; n++) {
        pattern++;
        length = strcspn(pattern, "*");
        const char *found;
        if (pattern[length] == '\0') { /* the last piece must be at the end */
            size_t left = strlen(text);
            found = left >= length && memcmp(text + left - length, pattern, length) == 0 ? text + left - length : NULL;
        } else {
            found = find_piece(text, pattern, length);
        }
        if (found == NULL || n == MAX_STARS) {
            return false;
        }
        stars[n] = (star){text, (size_t)(found - text)};
        text = found + length;
        pattern += length;
    }
    return *text == '\0';
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

size_t fx_map_apply(const fx_map *map, const char *golden_name, char *buffer, size_t buffer_bytes)
{
    for (size_t i = 0; map != NULL && i < map->n_entries; i++) {
        star stars[MAX_STARS];
        memset(stars, 0, sizeof stars);
        if (match_stars(map->entries[i].golden, golden_name, stars)) {
            return substitute(map->entries[i].target, stars, buffer, buffer_bytes) ? i + 1 : 0;
        }
    }
    return 0;
}

void fx_map_note_use(const fx_map *map, size_t entry)
{
    map->entries[entry - 1].is_used = true;
}

fxtap_status fx_map_warnings(const fx_map *map, const char *path, fx_arena *arena, const char ***out, size_t *n_out)
{
    const char **lines = fx_arena_calloc(arena, map->n_entries + 1, sizeof *lines);
    if (lines == NULL) {
        return FXTAP_E_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < map->n_entries; i++) {
        const map_entry *entry = &map->entries[i];
        size_t same = 0;
        while (same < i && strcmp(map->entries[same].golden, entry->golden) != 0) {
            same++;
        }
        if (entry->is_used && same == i) {
            continue;
        }
        lines[n] = same < i ? fx_arena_printf(arena, "%s: line %zu: line %zu already maps %s", path, entry->line,
                                              map->entries[same].line, entry->golden)
                            : fx_arena_printf(arena, "%s: line %zu matches nothing: no %s, or no %s for it", path,
                                              entry->line, entry->golden, entry->target);
        if (lines[n++] == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    *out = lines;
    *n_out = n;
    return FXTAP_OK;
}
