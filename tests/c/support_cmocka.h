/* cmocka with the headers that it needs, and helpers shared by several tests. */
#ifndef SUPPORT_CMOCKA_H
#define SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Skips a test, and says why where scripts/test looks for it. */
#define SKIP(reason)                                                                                                   \
    do {                                                                                                               \
        print_message("skipped: %s: %s\n", __func__, reason);                                                          \
        skip();                                                                                                        \
    } while (0)

#endif
