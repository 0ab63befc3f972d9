/*
 * describe.h - prints a tensor's shape, layout and statistics as text and JSON, the same way in every command.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "fxtap/reader.h"
#include "fxtap/stats.h"
#include "util/output.h"

/* Lines of numbers; each begins with `indent`. */
void describe_stats(fxtap_buffer *out, const char *indent, const fxtap_stats *stats);

/* "3 nan, 1 +inf"; "" if all values are finite. */
void describe_non_finite(fxtap_buffer *out, const fxtap_stats *stats);

/* min and max: exact for integers. */
void describe_bound(fxtap_buffer *out, const fxtap_stats *stats, bool is_max, int digits);

/* The members dtype, shape, ... of the open object. */
void describe_stats_json(fxtap_json *json, const fxtap_stats *stats);
void describe_tensor_json(fxtap_json *json, const fxtap_tensor_info *info);
void describe_hash(char out[33], fxtap_hash128 hash);

#endif
