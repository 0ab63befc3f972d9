/*
 * file_names.h - building the names of files: NODE-TARGET.IO.POSITION.STAMP.npy.
 *
 * A name stays as it is when a file system takes it. Else it is changed as little as needed and made unique by `~` and
 * 16 hexadecimal digits of the XXH3-64 of the whole original: bytes that are `/`, control characters or no UTF-8
 * become `_`, so does a leading dot; what is too long is cut, never inside a UTF-8 sequence.
 *
 * Names of one graph differ on every file system, also on those that ignore letter case or composition (é as one code
 * point or two): a dump may be copied to one.
 */
#ifndef FX_INDEX_FILE_NAMES_H
#define FX_INDEX_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dump.h"

#define FX_NAME_MAX 255                               /* bytes of one name that every usual file system takes */
#define FX_LAST_STAMP_US UINT64_C(253402300799999999) /* the end of the year 9999 */
#define FX_STAMP_DIGITS 20                            /* YYYYMMDDHHMMSSffffff */
#define FX_PREFIX_MAX (FX_NAME_MAX - FX_STAMP_DIGITS - 4)
#define FX_STEM_MAX (FX_PREFIX_MAX - 10) /* room for ".OUTPUT.0." */

/*
 * The stem of a node into `dst`, at most FX_STEM_MAX bytes. `twin` not NULL: another node's stem is the same (or is
 * when folded); the text goes into the hash and makes the two differ. FXTAP_E_NOMEM.
 */
fxtap_status fx_name_stem(const char *node, const char *target, const char *twin, char dst[FX_STEM_MAX + 1]);

/*
 * "STEM.IO.POSITION." into `dst`, its length into *length_out. Any stem and position give a name that fits. `twin` as
 * above, for another slot's prefix.
 */
void fx_name_prefix(const char *stem, fxtap_io io, const char *position, const char *twin, char dst[FX_PREFIX_MAX + 1],
                    size_t *length_out);

/* The 20 digits of a time stamp, UTC. Years past 9999 are held at the last microsecond of 9999. */
void fx_name_stamp(uint64_t stamp_us, char dst[FX_STAMP_DIGITS]);

/* PREFIX + stamp + ".npy" and NUL into `dst`; the length. */
size_t fx_name_file(const char *prefix, size_t prefix_length, uint64_t stamp_us, char dst[FX_NAME_MAX + 1]);

/*
 * A key of a name, in `dst` of its length + 1 bytes: equal for names that any file system takes for one, by full case
 * folding and canonical decomposition (Unicode's CaseFolding.txt, UAX #15). No tables: beyond ASCII it only keeps what
 * such a name shares with an ASCII one, so that it may be equal for different names, too.
 */
void fx_name_fold(const char *name, char *dst);

#endif
