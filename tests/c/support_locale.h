/* support_locale.h - a locale with a decimal comma, whatever is installed. */
#ifndef SUPPORT_LOCALE_H
#define SUPPORT_LOCALE_H

#include <stdbool.h>

/*
 * Makes it this process's LC_NUMERIC; false where the C library knows no such locale. Every test program does so before
 * main() where FXTAP_TEST_LOCALE is set.
 */
bool sl_use_comma(void);

#endif
