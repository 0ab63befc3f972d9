#include "util/output.h"

#include <string.h>

#include "util/utf8.h"

/* One character of pattern or text; an invalid UTF-8 byte is a character above all code points. */
static uint32_t next_character(const char **at)
{
    size_t used;
    uint32_t c = fx_utf8_decode(*at, strnlen(*at, 4), &used);
    if (used == 0) {
        c = 0x110000u + (unsigned char)**at;
        used = 1;
    }
    *at += used;
    return c;
}

/* A character of a class, with or without a backslash. */
static uint32_t class_character(const char **at)
{
    if (**at == '\\' && (*at)[1] != '\0') {
        (*at)++;
    }
    return next_character(at);
}

/*
 * Matches `c` with the class whose text begins after '['. *at moves past the ']', or becomes NULL without a ']': then
 * the '[' is a plain character.
 */
static bool class_match(const char **at, uint32_t c)
{
    const char *p = *at;
    bool negated = *p == '!' || *p == '^';
    bool found = false;
    p += negated;
    for (bool first = true; *p != ']' || first; first = false) {
        if (*p == '\0') {
            *at = NULL;
            return false;
        }
        uint32_t low = class_character(&p);
        uint32_t high = low;
        if (*p == '-' && p[1] != ']' && p[1] != '\0') {
            p++;
            high = class_character(&p);
        }
        found |= c >= low && c <= high;
    }
    *at = p + 1;
    return found != negated;
}

/* Matches one pattern element other than a star with one character; on success both advance. */
static bool match_one(const char **pattern, const char **text)
{
    if (**text == '\0') {
        return false;
    }
    uint32_t c = next_character(text);
    switch (**pattern) {
    case '\0':
        return false;
    case '?':
        (*pattern)++;
        return true;
    case '[': {
        const char *p = *pattern + 1;
        bool found = class_match(&p, c);
        if (p != NULL) {
            *pattern = p;
            return found;
        }
        (*pattern)++;
        return c == '[';
    }
    default:
        return class_character(pattern) == c;
    }
}

/* After a mismatch only the last star takes one more character, so the time is at most pattern times text. */
bool fxtap_glob_match(const char *pattern, const char *text)
{
    const char *star_pattern = NULL;
    const char *star_text = NULL;
    for (;;) {
        if (*pattern == '*') {
            star_pattern = ++pattern;
            star_text = text;
            continue;
        }
        if (*text == '\0' && *pattern == '\0') {
            return true;
        }
        if (match_one(&pattern, &text)) {
            continue;
        }
        if (star_pattern == NULL || *star_text == '\0') {
            return false;
        }
        next_character(&star_text);
        pattern = star_pattern;
        text = star_text;
    }
}
