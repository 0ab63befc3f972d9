/*
 * values.h - prints values of a tensor for fxtap show: corners, positions, a histogram.
 */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>

#include "fxtap/npy.h"
#include "util/output.h"

/* The corners of an array, as NumPy prints it; each line begins with `indent`. FXTAP_E_NOMEM, ... */
fxtap_status values_append_corners(fxtap_buffer *out, const char *indent, const fxtap_npy *npy);

/* The positions of the largest magnitude, the first NaN and the first infinity. Nothing for text and empty arrays. */
fxtap_status values_append_places(fxtap_buffer *out, const char *indent, const fxtap_npy *npy);

/* A histogram of the finite values, at most `width` columns wide. Nothing if there are few. */
fxtap_status values_append_histogram(fxtap_buffer *out, const char *indent, const fxtap_npy *npy, size_t width);

/*
 * " = [1, 1]": all values of a short list, if they fit the rest of the line. False, with nothing appended, if not, or
 * if they cannot be read.
 */
bool values_append_list(fxtap_buffer *out, const fxtap_npy *npy);

/* One value of an array with one element. */
fxtap_status values_append_scalar(fxtap_buffer *out, const fxtap_npy *npy);

#endif
