/*
 * dlpack.h - the part of DLPack's C ABI (version 1.3) that the bridge uses: tensors, and the exchange table, an
 * attribute of torch's tensor type, `__dlpack_c_exchange_api__` (a capsule named "dlpack_exchange_api").
 * Source: the DLPack specification, https://dmlc.github.io/dlpack/latest/c_api.html.
 */
#ifndef FX_EXT_DLPACK_H
#define FX_EXT_DLPACK_H

#include <stdint.h>

#define FX_DLPACK_MAJOR 1

/* Device types whose memory the host can read. */
#define FX_DLPACK_CPU 1
#define FX_DLPACK_CUDA_HOST 3
#define FX_DLPACK_ROCM_HOST 11

typedef struct fx_dlpack_version {
    uint32_t major;
    uint32_t minor;
} fx_dlpack_version;

typedef struct fx_dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL means row-major contiguous */
    uint64_t byte_offset;
} fx_dlpack_tensor;

/* The contents of a capsule named "dltensor". */
typedef struct fx_dlpack_managed {
    fx_dlpack_tensor tensor;
    void *manager;
    void (*deleter)(struct fx_dlpack_managed *self);
} fx_dlpack_managed;

/* The contents of a capsule named "dltensor_versioned". */
typedef struct fx_dlpack_versioned {
    fx_dlpack_version version;
    void *manager;
    void (*deleter)(struct fx_dlpack_versioned *self);
    uint64_t flags;
    fx_dlpack_tensor tensor;
} fx_dlpack_versioned;

typedef struct fx_dlpack_api_header {
    fx_dlpack_version version;
    struct fx_dlpack_api_header *previous;
} fx_dlpack_api_header;

typedef struct fx_dlpack_api {
    fx_dlpack_api_header header;
    void (*managed_tensor_allocator)(void);
    /* An owning view: it stays valid after the object is freed. 0, or -1 with an exception. */
    int (*managed_tensor_from_py_object_no_sync)(void *object, fx_dlpack_versioned **out);
    void (*managed_tensor_to_py_object_no_sync)(void);
    /* A borrowed view, valid as long as the object lives. 0, or -1 with an exception. */
    int (*dltensor_from_py_object_no_sync)(void *object, fx_dlpack_tensor *out);
    void (*current_work_stream)(void);
} fx_dlpack_api;

#endif
