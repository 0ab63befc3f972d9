/*
 * hash_kernel.h - XXH3 compiled for the level of the including file (xxhash.h chooses its vector width by the compiler
 * flags). The state is the same at all levels.
 */
#include "tensor/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= FX_HASHER_BYTES, "the hasher holds XXH3's state");

typedef struct fx_hash_kernels {
    fxtap_hash128 (*bytes)(const void *bytes, size_t n_bytes);
    void (*update)(void *state, const void *bytes, size_t n_bytes);
} fx_hash_kernels;

extern const fx_hash_kernels fx_hash_scalar;
#if defined(__x86_64__)
extern const fx_hash_kernels fx_hash_avx2;
extern const fx_hash_kernels fx_hash_avx512;
#endif

static inline fxtap_hash128 hash_result(XXH128_hash_t hash)
{
    return (fxtap_hash128){.high = hash.high64, .low = hash.low64};
}

static fxtap_hash128 hash_bytes(const void *bytes, size_t n_bytes)
{
    return hash_result(XXH3_128bits(bytes, n_bytes));
}

static void hash_update(void *state, const void *bytes, size_t n_bytes)
{
    XXH3_128bits_update(state, bytes, n_bytes);
}

#define HASH_KERNELS                                                                                                   \
    {                                                                                                                  \
        .bytes = hash_bytes, .update = hash_update                                                                     \
    }
