/* tensors.h - lists of tensors (tensors.c), whose files are read on demand (load.c). */
#ifndef FX_READER_TENSORS_H
#define FX_READER_TENSORS_H

#include <pthread.h>

#include "reader/reader.h"

typedef struct fx_tensor {
    fxtap_tensor_info info;
    size_t order; /* order of its slot within the graph */
    size_t place; /* in the list; set by fxtap_check */
} fx_tensor;

typedef struct fx_shape {
    int32_t ndim;
    int64_t extents[];
} fx_shape;

struct fxtap_tensor_list {
    pthread_mutex_t lock; /* protects arena, texts and what fxtap_tensor_load_...() loads, in any thread */
    fx_arena arena;
    fx_tensor **items;
    size_t count;
    size_t capacity;
    uint32_t flags;  /* owned by the reader */
    fx_texts shapes; /* "2,3" -> fx_shape */
};

/* Whether a query selects a tensor. */
bool fx_query_has(const fxtap_tensor_query *query, const fxtap_node_info *node, const char *tensor_name, fxtap_io io);

/* Sets dtype, shape, order and size from the file's header. FXTAP_E_NOMEM. */
fxtap_status fx_tensor_take_meta(fxtap_tensor_list *list, fxtap_tensor_info *info, const fxtap_npy *npy);

/* Appends a zeroed tensor; NULL: no memory. */
fx_tensor *fx_tensor_list_add(fxtap_tensor_list *list);
/* Returns "folder/name" in the list's arena; NULL: no memory. */
const char *fx_tensor_list_path(fxtap_tensor_list *list, const char *folder, const char *name, size_t name_length);

#endif
