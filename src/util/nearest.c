/* nearest.c - finds the most similar name. */
#include "fxtap/output.h"

#include <string.h>

#define MAX_NAME ((size_t)63)

/* Edit distance (insert, delete, replace, swap of neighbours); both strings have at most MAX_NAME bytes. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][MAX_NAME + 2];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[strlen(a) % 3][n];
}

const char *fxtap_nearest_name(const char *typed, const char *const *names, size_t n_names)
{
    size_t typed_length = strlen(typed);
    size_t best = typed_length / 3 + 2;
    best = typed_length < best ? typed_length : best; /* this many edits, or every letter: a different word */
    const char *nearest = NULL;
    if (typed_length > MAX_NAME) {
        return NULL;
    }
    for (size_t i = 0; i < n_names; i++) {
        size_t length = strlen(names[i]);
        bool is_begun = typed_length > 1 && strncmp(names[i], typed, typed_length) == 0;
        size_t edits = length > MAX_NAME ? best : is_begun ? 1 : distance(typed, names[i]);
        if (edits < best) {
            best = edits;
            nearest = names[i];
        }
    }
    return nearest;
}
