/*
 * values.h - single values of a tensor, by position or as a picture: what fxtap show prints.
 */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>

#include "fxtap/npy.h"
#include "fxtap/output.h"

/* The corners of an array, as NumPy shows it: lines begun by `indent`. FXTAP_E_NOMEM, ... */
fxtap_status values_append_corners(fxtap_buffer *out, const char *indent, const fxtap_npy *npy);

/* Where the largest magnitude, the first NaN and the first infinity are. Nothing for text and empty arrays. */
fxtap_status values_append_places(fxtap_buffer *out, const char *indent, const fxtap_npy *npy);

/* Bars of the finite values' distribution, at most `width` columns wide. Nothing where they are few. */
fxtap_status values_append_histogram(fxtap_buffer *out, const char *indent, const fxtap_npy *npy, size_t width);

/*
 * " = [1, 1]": every value of a list of a few that fits behind what stands in the line. False, with nothing appended,
 * for all others and where it cannot be read.
 */
bool values_append_list(fxtap_buffer *out, const fxtap_npy *npy);

/* One value of an array with one element. */
fxtap_status values_append_scalar(fxtap_buffer *out, const fxtap_npy *npy);

#endif
