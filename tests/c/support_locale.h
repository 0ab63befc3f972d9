/* support_locale.h - a locale with a decimal comma, independent of the installed ones. */
#ifndef SUPPORT_LOCALE_H
#define SUPPORT_LOCALE_H

#include <stdbool.h>

/*
 * Sets it as LC_NUMERIC of this process; false if the C library does not support it. Every test program does this
 * before main() if FXTAP_TEST_LOCALE is set.
 */
bool sl_use_comma(void);

#endif
