/*
 * support_difference.h - what the tests of the difference kernels share: a plain long double reference, and comparison
 * at every vector level. Values of a test are the same in every run.
 */
#ifndef SUPPORT_DIFFERENCE_H
#define SUPPORT_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/difference.h"

/* rtol 1e-3, atol 1e-5, float32, five worst. */
extern const fx_difference_options usual;

uint64_t random_u64(void);
double random_unit(void);          /* -1 .. 1 */
double perturbed(double value);    /* the value, or one near it */
double half_value(uint16_t bits);  /* of a float16 */

bool same_double(double a, double b); /* bits, or both NaN */
void assert_near(double actual, long double expected, long double tolerance);
void assert_same_result(const fx_difference_result *a, const fx_difference_result *b);

/* At the level in use. */
fx_difference_result compare_at_level(const fxtap_view *golden, const fxtap_view *target,
                                      const fx_difference_options *options);

/* The scalar answer, after every other level has given the same. */
fx_difference_result compare_views(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options);

/* The same for `n` elements in one dimension. */
fx_difference_result compare(fxtap_dtype golden_dtype, const void *golden, fxtap_dtype target_dtype, const void *target,
                             size_t n, const fx_difference_options *options);

/* Every metric against the definitions in difference.h, over values that are doubles. */
void assert_reference(const fx_difference_result *actual, const double *golden, const double *target, size_t n,
                      const fx_difference_options *options);

#endif
