/* fuzz_number.c - arbitrary text as a number: the result is that of C's own functions; no read past the end. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/dtype.h"
#include "util/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_integers(const char *text)
{
    int64_t i = 7;
    uint64_t u = 7;
    char *end;
    size_t n = fx_read_i64(text, &i);
    if (n > 0) {
        errno = 0;
        check(strtoll(text, &end, 10) == i && end == text + n && errno == 0);
    } else {
        check(i == 7);
    }
    n = fx_read_u64(text, &u);
    if (n > 0) {
        errno = 0;
        check(strtoull(text, &end, 10) == u && end == text + n && errno == 0);
    } else {
        check(u == 7);
    }
}

static void check_double(const char *text)
{
    double value = 7;
    char again[FX_NUMBER_BYTES], *end;
    size_t n = fx_read_double(text, &value);
    if (n == 0) {
        check(value == 7);
        return;
    }
    char *copy = malloc(n + 1); /* strtod would parse all of "0x1" */
    check(n <= strlen(text) && copy != NULL);
    memcpy(copy, text, n);
    copy[n] = '\0';
    double expected = strtod(copy, &end);
    check(end == copy + n && memcmp(&expected, &value, sizeof value) == 0);
    check(fx_double_text(value, again) < sizeof again);
    if (isfinite(value)) {
        check(fx_read_double(again, &expected) == strlen(again) && memcmp(&expected, &value, sizeof value) == 0);
    }
    free(copy);
}

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
    check_integers(text);
    check_double(text);
    (void)fxtap_dtype_from_name(text);
    free(text);
    return 0;
}
