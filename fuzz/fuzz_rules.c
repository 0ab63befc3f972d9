/* fuzz_rules.c - rules and maps written by hand: results are valid, errors have a message with the line. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "compare/rules.h"
#include "pair/map.h"

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_number(double value, double largest)
{
    check(value == -1.0 || (value >= 0.0 && value <= largest));
}

static void check_rules(const char *text, size_t size)
{
    fxtap_rule *rules = NULL;
    size_t n = 0;
    fxtap_status status = fx_rules_parse("rules", text, size, &rules, &n);
    if (status != FXTAP_OK) {
        check(status == FXTAP_E_INVALID && rules == NULL);
        check(strncmp(fxtap_error_message(), "rules: ", 7) == 0);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        check_number(rules[i].rtol, DBL_MAX);
        check_number(rules[i].atol, DBL_MAX);
        check_number(rules[i].min_cosine, 1.0);
        check_number(rules[i].max_abs, DBL_MAX);
        check_number(rules[i].max_rel_l2, DBL_MAX);
        check_number(rules[i].max_ulp, DBL_MAX);
        check(rules[i].dtype == NULL || fxtap_dtype_from_name(rules[i].dtype) != FXTAP_DTYPE_NONE);
    }
    fxtap_rules_free(rules, n);
}

/* The text is also read as a map; names in it fit their buffer. */
static void check_map(const char *text, size_t size)
{
    fx_arena arena;
    fx_arena_init(&arena);
    const fx_map *map = NULL;
    if (fx_map_parse(&arena, "map", text, size, &map) == FXTAP_OK) {
        static const char *const names[] = {"", "add", "add_1", "a*b", "layers.0.attention.softmax"};
        char small[16], large[4096];
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            bool fits_small = fx_map_apply(map, names[i], small, sizeof small);
            bool fits_large = fx_map_apply(map, names[i], large, sizeof large);
            check(!fits_small || (fits_large && strcmp(small, large) == 0));
        }
    }
    fx_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    char *exact = realloc(text, size > 0 ? size : 1); /* no NUL after it, which would hide an overrun */
    text = exact != NULL ? exact : text;
    check_rules(text, size);
    check_map(text, size);
    free(text);
    return 0;
}
