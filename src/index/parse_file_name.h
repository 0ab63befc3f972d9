/*
 * parse_file_name.h - parsing the names in a dump. Input is not trusted; a name that does not match its format exactly
 * is rejected. Texts in results point into the given name.
 */
#ifndef FX_INDEX_PARSE_FILE_NAME_H
#define FX_INDEX_PARSE_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dump.h"
#include "fxtap/reader.h"

/* {NODE}-{TARGET}.{INPUT|OUTPUT|INOUT}.{POSITION}.{YYYYMMDDHHMMSSffffff}.npy */
typedef struct fx_name {
    size_t node_length;   /* up to the first '-'; the whole stem if it has none */
    size_t target_offset; /* after that '-' */
    size_t target_length;
    size_t stem_length; /* up to ".INPUT" */
    fxtap_io io;
    size_t position_offset;
    size_t position_length;
    size_t name_length; /* up to the time stamp's '.' */
    uint64_t stamp_us;  /* since 1970, UTC */
} fx_name;

bool fx_name_parse(const char *name, size_t length, fx_name *out);

/* Converts twenty digits (fx_name_stamp) to microseconds since 1970; false if they are not a valid date and time. */
bool fx_stamp_parse(const char *digits, uint64_t *out);

/* "INPUT", "OUTPUT", "INOUT"; "" for another value. */
const char *fx_io_text(fxtap_io io);

/* worldsize{W}_global_rank{R} */
bool fx_rank_folder_parse(const char *name, int32_t *world_size_out, int32_t *rank_out);

/* graph_{G} */
bool fx_graph_folder_parse(const char *name, uint32_t *graph_out);

/* {STEP}, {STEP}.failed-{n}, .{CALL}-{RUN}.partial (more numbers may follow): `number_out` is STEP or CALL. */
bool fx_step_folder_parse(const char *name, fxtap_step_state *state_out, int64_t *number_out);

/* Compares two texts, taking runs of digits as numbers: "add_2" before "add_10". */
int fx_natural_compare(const char *a, const char *b);

/* Compares two positions: "2" before "10" before "alpha". */
int fx_position_compare(const char *a, const char *b);

#endif
