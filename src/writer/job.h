/*
 * job.h - values and jobs. A *value* is the contents of one tensor, submitted once in a call. A *job* saves one value
 * under one name. The first job of a value also computes its statistics and its hash.
 */
#ifndef FX_WRITER_JOB_H
#define FX_WRITER_JOB_H

#include <stdatomic.h>

#include "fxtap/dump.h"
#include "fxtap/stats.h"
#include "index/file_names.h"

struct fx_capture_slot;

/* The layout and the device of most tensors. Values point at these very objects, so that addresses can be compared. */
extern const char FX_DEFAULT_LAYOUT[]; /* "torch.strided" */
extern const char FX_DEFAULT_DEVICE[]; /* "cpu" */

typedef struct fx_job fx_job;
typedef struct fx_value fx_value;

typedef enum fx_value_state { FX_VALUE_PENDING = 0, FX_VALUE_DONE = 1, FX_VALUE_FAILED = 2 } fx_value_state;

struct fx_value {
    fxtap_view view; /* shape and strides (or NULL) in the call's arena; data must not be read once the value is done */
    fxtap_dtype original_dtype;
    fxtap_order order;
    const char *layout;
    const char *device;
    const int64_t *original_strides; /* NULL: those of `view` */
    fx_value *source;                /* a value with the same bytes in another shape; NULL: none */
    bool is_unreadable;              /* the bytes are those of `source`'s file, not of the view */
    uint64_t saved_bytes;
    const fxtap_undefined_range *undefined; /* in the call's arena; stats and defined_hash cover the other elements */
    size_t n_undefined;
    fxtap_hash128 defined_hash;
    fxtap_stats stats;
    fxtap_hash128 hash;
    fxtap_hash128 key; /* of hash, dtype, order and shape: equal keys, equal files */
    atomic_int state;  /* fx_value_state; set under queue.lock */
    bool has_stats;    /* only the first job accesses it until the value is done */
    atomic_bool has_aliases;
    bool is_read_only;                 /* its file is read-only. contents.lock */
    struct fx_capture_slot *file_slot; /* names its file in the call's folder, once done. contents.lock */
    uint64_t file_stamp_us;
    int64_t row; /* in the index, valid while `transaction` equals the index's. index.lock */
    uint64_t transaction;
    fx_job *waiters; /* jobs submitted before the value was done. queue.lock */
    fx_job *last_waiter;
};

struct fx_job {
    fx_job *next;         /* in the queue, a batch, a list of waiters or the list of finished jobs: one at a time */
    fx_job *pending_next; /* list of all jobs that read the caller's memory. queue.lock */
    fx_job *pending_previous;
    fxtap_call *call;
    fx_value *value;
    struct fx_capture_slot *slot;
    uint64_t stamp_us;
    uint64_t reserved_bytes;
    const void *first; /* the memory that it reads, [first, end); NULL: none of the caller's */
    const void *end;
    fx_job *content_waiters; /* first jobs of equal values, which wait for this job's file. contents.lock */
    fxtap_release release;
    void *context;
    bool is_first;
    bool is_written; /* read by the call's owner once the job is finished */
};

/* Runs the job and the jobs that waited for its file. Prepends all finished jobs to *finished. */
void fx_job_run(fx_job *job, void **scratch, fx_job **finished);

/* The file name of a slot's value; returns its length. */
size_t fx_slot_file_name(const struct fx_capture_slot *slot, uint64_t stamp_us, char dst[FX_NAME_MAX + 1]);

/* The dtype as the file's header states it: "<f4", "<U5". */
void fx_value_descr(const fx_value *value, char dst[32]);

#endif
