/*
 * support_dump.h - a small dump written by the library itself: graph 1 is x -> double (aten.mul.Scalar) -> total
 * (aten.sum.default) and a skipped node between them. The clock is a counter that starts at a given value for each
 * dump.
 */
#ifndef SUPPORT_DUMP_H
#define SUPPORT_DUMP_H

#include "fxtap/dump.h"

#define SD_N_VALUES 6

typedef struct small_dump {
    fxtap_dump *dump;
    fxtap_capture *capture;
    fxtap_node twice, total;
} small_dump;

/* First time stamp of the next dump: 2026-01-01 plus `seconds`. */
void sd_set_clock(unsigned seconds);
small_dump sd_open(const char *root, fxtap_dump_type type);
/* One call on these values: 5 tensors, one None and one string. */
void sd_step(small_dump *small, const float values[SD_N_VALUES], bool fails);
void sd_close(small_dump *small);
/* Writes a dump of `n_steps` steps with values 1, 2, 3 ... */
void sd_write(const char *root, unsigned seconds, unsigned n_steps);

#endif
