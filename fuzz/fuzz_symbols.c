/* fuzz_symbols.c - arbitrary text as a symbolic size: its canonical form is stable and of proportional length. */
#include <stdlib.h>
#include <string.h>

#include "graph/symbols.h"

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
    text[size] = '\0';
    fx_symbols symbols;
    fx_symbols_init(&symbols);
    fx_symbols_see(&symbols, "s0");
    const char *canonical = fx_symbols_canonical(&symbols, text);
    if (canonical != NULL) { /* "-a" is "(neg a)": each byte may become a few bytes */
        if (strlen(canonical) > 32 * (size + 1) || fx_symbols_canonical(&symbols, text) != canonical) {
            abort();
        }
    }
    fx_symbols_clear(&symbols);
    free(text);
    return 0;
}
