/* support_compare.h - compares two folders. */
#ifndef SUPPORT_COMPARE_H
#define SUPPORT_COMPARE_H

#include "fxtap/compare.h"

typedef struct sides {
    char *golden;
    char *target;
} sides;

/* cmocka fixtures: *state is a `sides` of two empty folders. */
int sc_make_sides(void **state);
int sc_remove_sides(void **state);

#define SIDED(test) cmocka_unit_test_setup_teardown(test, sc_make_sides, sc_remove_sides)

/* fxtap_compare() of two paths. */
fxtap_status sc_try(const char *golden, const char *target, const fxtap_compare_options *options, fxtap_report **out);
/* The same with default options (NULL) or others; a failure fails the test. The caller frees the report. */
fxtap_report *sc_compare(const char *golden, const char *target, const fxtap_compare_options *options);
/* The pair of that name; a missing one fails the test. */
const fxtap_pair *sc_find(const fxtap_report *report, const char *name);

#endif
