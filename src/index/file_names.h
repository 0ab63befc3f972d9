/*
 * file_names.h - composing file names: NODE-TARGET.IO.POSITION.STAMP.npy.
 *
 * A name that is valid on common file systems is kept. Any other is changed as little as needed and made unique by `~`
 * and 16 hexadecimal digits of the XXH3-64 of the original: `/`, control characters, bytes that are not UTF-8 and a
 * leading dot become `_`; a name that is too long is truncated between UTF-8 sequences.
 *
 * Names within one graph are distinct even on file systems that ignore letter case or Unicode composition (é as one
 * code point or two), since a dump may be copied to one.
 */
#ifndef FX_INDEX_FILE_NAMES_H
#define FX_INDEX_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dump.h"

#define FX_NAME_MAX 255                               /* bytes; the limit of common file systems */
#define FX_LAST_STAMP_US UINT64_C(253402300799999999) /* the end of the year 9999 */
#define FX_STAMP_DIGITS 20                            /* YYYYMMDDHHMMSSffffff */
#define FX_PREFIX_MAX (FX_NAME_MAX - FX_STAMP_DIGITS - 4)
#define FX_STEM_MAX (FX_PREFIX_MAX - 10) /* room for ".OUTPUT.0." */

/*
 * Writes the stem of a node to `dst`, at most FX_STEM_MAX bytes. If another node has the same stem, possibly after
 * folding, `twin` is a text that distinguishes this one: it is hashed as well. FXTAP_E_NOMEM.
 */
fxtap_status fx_name_stem(const char *node, const char *target, const char *twin, char dst[FX_STEM_MAX + 1]);

/*
 * Writes "STEM.IO.POSITION." to `dst` and its length to *length_out. Any stem and position give a name that fits.
 * `twin` as above, for another slot's prefix.
 */
void fx_name_prefix(const char *stem, fxtap_io io, const char *position, const char *twin, char dst[FX_PREFIX_MAX + 1],
                    size_t *length_out);

/* Writes the 20 digits of a UTC time stamp. Later times are clamped to FX_LAST_STAMP_US. */
void fx_name_stamp(uint64_t stamp_us, char dst[FX_STAMP_DIGITS]);

/* Writes PREFIX, stamp, ".npy" and NUL to `dst`; returns the length. */
size_t fx_name_file(const char *prefix, size_t prefix_length, uint64_t stamp_us, char dst[FX_NAME_MAX + 1]);

/*
 * Writes a key of a name to `dst`, which has space for strlen(name) + 1 bytes. Names that some file system treats as
 * equal have equal keys (full case folding and canonical decomposition: Unicode's CaseFolding.txt, UAX #15). To do
 * without tables, the key drops characters beyond ASCII unless they fold to ASCII, so different names may have equal
 * keys.
 */
void fx_name_fold(const char *name, char *dst);

#endif
