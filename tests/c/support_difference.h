/* support_difference.h - comparing two arrays at every vector level, and numbers to compare. */
#ifndef SUPPORT_DIFFERENCE_H
#define SUPPORT_DIFFERENCE_H

#include "tensor/difference.h"

uint64_t random_u64(void);
double random_unit(void); /* in [-1, 1) */

extern const fx_difference_options usual;

/* Whether two doubles have the same bits, or are both NaN. */
bool same_double(double a, double b);

void assert_near(double actual, long double expected, long double tolerance);
void assert_same_result(const fx_difference_result *a, const fx_difference_result *b);

/* At the current level. */
fx_difference_result compare_at_level(const fxtap_view *golden, const fxtap_view *target,
                                      const fx_difference_options *options);
/* The scalar result, after checking that every other level gives the same. */
fx_difference_result compare_views(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options);
fx_difference_result compare(fxtap_dtype golden_dtype, const void *golden, fxtap_dtype target_dtype, const void *target,
                             size_t n, const fx_difference_options *options);

#endif
