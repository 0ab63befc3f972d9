/*
 * hash.h - XXH3-128 (xxHash 0.8: a fixed algorithm, seed 0) of saved data bytes. The result does not depend on the
 * vector width, on how the bytes are split, or on the byte order of the machine.
 */
#ifndef FX_TENSOR_HASH_H
#define FX_TENSOR_HASH_H

#include <stddef.h>

#include "fxtap/stats.h"

#define FX_HASHER_BYTES 640 /* holds XXH3_state_t; checked where it is used */

/* Caller storage; nothing to free. */
typedef struct fx_hasher {
    _Alignas(64) unsigned char state[FX_HASHER_BYTES];
} fx_hasher;

/* The hash of contiguous bytes. `bytes` may be NULL when n_bytes is 0. */
fxtap_hash128 fx_hash_bytes(const void *bytes, size_t n_bytes);

void fx_hasher_init(fx_hasher *hasher);
void fx_hasher_update(fx_hasher *hasher, const void *bytes, size_t n_bytes);
fxtap_hash128 fx_hasher_finish(const fx_hasher *hasher);

#endif
