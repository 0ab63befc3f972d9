#include "tensor/hash.h"

#include "tensor/cpu.h"
#include "tensor/hash_kernel.h"

const fx_hash_kernels fx_hash_scalar = HASH_KERNELS;

static const fx_hash_kernels *kernels(void)
{
#if defined(__x86_64__)
    static const fx_hash_kernels *const levels[] = {&fx_hash_scalar, &fx_hash_avx2, &fx_hash_avx512};
    return levels[fx_cpu()];
#else
    return &fx_hash_scalar;
#endif
}

fxtap_hash128 fx_hash_bytes(const void *bytes, size_t n_bytes)
{
    return kernels()->bytes(bytes, n_bytes);
}

void fx_hasher_init(fx_hasher *hasher)
{
    XXH3_128bits_reset((XXH3_state_t *)(void *)hasher->state);
}

void fx_hasher_update(fx_hasher *hasher, const void *bytes, size_t n_bytes)
{
    kernels()->update(hasher->state, bytes, n_bytes);
}

fxtap_hash128 fx_hasher_finish(const fx_hasher *hasher)
{
    return hash_result(XXH3_128bits_digest((const XXH3_state_t *)(const void *)hasher->state));
}
