#include "tensor/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= FX_HASHER_BYTES, "the hasher holds XXH3's state");

static fxtap_hash128 result_of(XXH128_hash_t hash)
{
    return (fxtap_hash128){.high = hash.high64, .low = hash.low64};
}

fxtap_hash128 fx_hash_bytes(const void *bytes, size_t n_bytes)
{
    return result_of(XXH3_128bits(bytes, n_bytes));
}

void fx_hasher_init(fx_hasher *hasher)
{
    XXH3_128bits_reset((XXH3_state_t *)(void *)hasher->state);
}

void fx_hasher_update(fx_hasher *hasher, const void *bytes, size_t n_bytes)
{
    XXH3_128bits_update((XXH3_state_t *)(void *)hasher->state, bytes, n_bytes);
}

fxtap_hash128 fx_hasher_finish(const fx_hasher *hasher)
{
    return result_of(XXH3_128bits_digest((const XXH3_state_t *)(const void *)hasher->state));
}
