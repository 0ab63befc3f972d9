/*
 * describe.h - a tensor's shape, layout and statistics in words and in JSON, the same in every command.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "fxtap/output.h"
#include "fxtap/reader.h"
#include "fxtap/stats.h"

/* Lines of numbers, each begun by `indent`. */
void describe_stats(fxtap_buffer *out, const char *indent, const fxtap_stats *stats);

/* "3 nan, 1 +inf"; "" where all is finite. */
void describe_non_finite(fxtap_buffer *out, const fxtap_stats *stats);

/* min and max: integers exactly. */
void describe_bound(fxtap_buffer *out, const fxtap_stats *stats, bool is_max, int digits);

/* The members dtype, shape, ... of an object that is open. */
void describe_stats_json(fxtap_json *json, const fxtap_stats *stats);
void describe_tensor_json(fxtap_json *json, const fxtap_tensor_info *info);
void describe_hash(char out[33], fxtap_hash128 hash);

#endif
