#include "support_locale.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LC_NUMERIC in glibc's binary form. */
static bool write_category(const char *path)
{
    const struct {
        uint32_t magic, n_items, offsets[6];
        char decimal_point[4], thousands_sep[4];
        uint32_t decimal_point_wide, thousands_sep_wide;
        char codeset[8];
    } category = {0x20031115 ^ LC_NUMERIC, 6, {32, 36, 37, 40, 44, 48}, ",", "", ',', 0, "UTF-8"};
    FILE *file = fopen(path, "wb");
    bool is_written = file != NULL && fwrite(&category, sizeof category, 1, file) == 1;
    return file != NULL && fclose(file) == 0 && is_written;
}

bool sl_use_comma(void)
{
    char folder[] = "/tmp/fxtap-test-locale-XXXXXX", inner[64], path[80];
    if (mkdtemp(folder) == NULL) {
        return false;
    }
    snprintf(inner, sizeof inner, "%s/xx", folder);
    snprintf(path, sizeof path, "%s/LC_NUMERIC", inner);
    bool is_set = mkdir(inner, 0700) == 0 && write_category(path) && setenv("LOCPATH", folder, 1) == 0 &&
                  setlocale(LC_NUMERIC, "xx") != NULL && strcmp(nl_langinfo(RADIXCHAR), ",") == 0;
    unsetenv("LOCPATH");
    unlink(path);
    rmdir(inner);
    rmdir(folder);
    return is_set;
}

__attribute__((constructor)) static void use_wanted(void)
{
    if (getenv("FXTAP_TEST_LOCALE") != NULL && !sl_use_comma()) {
        fprintf(stderr, "no locale with a decimal comma: the tests run without\n");
    }
}
