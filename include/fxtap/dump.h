/*
 * fxtap/dump.h - writing a dump: sessions, graphs, calls, tensors.
 *
 *   fxtap_dump      one rank of one dump root, open for writing (one run)
 *   fxtap_capture   one graph of it, with its file names already formatted
 *   fxtap_call      one call of that graph; becomes a step when it ends without an error
 *
 * A dump root that is a symbolic link is followed, and ".." in it is resolved once, at open. A rank, graph or step
 * folder (or an index) that is a symbolic link is an error: FXTAP_E_IO with ELOOP or ENOTDIR.
 *
 * Folders are made when the first tensor is submitted; where every operator of a graph has a skip reason, at the end of
 * its first call, so that the index contains the reasons. Files are written by other threads into a partial folder,
 * which is renamed to the step's at the end of the call. docs/format.md describes the tree.
 *
 * Thread rule: a dump and a capture may be used by any threads at once; a call belongs to one thread at a time. Workers
 * own C memory only: `release` callbacks run in the thread that makes a later fxtap_call_ function on the same call,
 * never in a worker.
 */
#ifndef FXTAP_DUMP_H
#define FXTAP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/graph.h"
#include "fxtap/status.h"
#include "fxtap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_dump fxtap_dump;
typedef struct fxtap_capture fxtap_capture;
typedef struct fxtap_call fxtap_call;

typedef enum fxtap_dump_type {
    FXTAP_DUMP_NPY = 1,   /* files and index */
    FXTAP_DUMP_STATS = 2, /* index rows alone */
    FXTAP_DUMP_VERIFY = 3 /* as NPY for a caller that submits few calls' tensors: a step without any has no folder */
} fxtap_dump_type;

/*
 * Threads of the caller, such as torch's OpenMP team, that may run the dump's jobs. Such a team spins between the
 * model's operators, and a worker on one of its processors would delay every operator. So workers run only on
 * processors that the team leaves free; where it leaves none, the whole team runs the queued jobs, whenever some MiB
 * are queued and at the end of the call.
 */
typedef struct fxtap_team {
    int (*size)(void); /* threads that run() would use now, including the calling one; >= 1 */
    /* Calls work(argument) once in each of them, including the calling one; returns when all have returned. */
    void (*run)(void (*work)(void *), void *argument);
} fxtap_team;

typedef struct fxtap_dump_options {
    size_t struct_size;
    const char *path;   /* the dump root; made if it does not exist */
    int32_t world_size; /* >= 1 */
    int32_t rank;       /* 0 .. world_size-1 */
    fxtap_dump_type type;
    bool sync;                  /* each file is written and closed before submit returns */
    bool no_dedup;              /* write equal contents again instead of linking */
    uint64_t queue_bytes;       /* limit on the bytes of queued tensors; 0 means 1 GiB */
    int32_t n_threads;          /* worker threads; 0 means one for each processor that no team uses, at most 4 */
    const fxtap_team *team;     /* copied; NULL: none. Ignored in a forked child, and where n_threads is not 0 */
    const char *versions;       /* one line for the index's run row: "torch 2.13.0, numpy 2.4.6"; may be NULL */
    const char *command;        /* the command line, for the run row; may be NULL */
    uint64_t (*clock_us)(void); /* microseconds since 1970 UTC; NULL means the system's */
} fxtap_dump_options;

/* Checks the options; touches no disk. The caller owns *out. FXTAP_E_INVALID, FXTAP_E_NOMEM. */
FXTAP_API fxtap_status fxtap_dump_open(const fxtap_dump_options *options, fxtap_dump **out);

/*
 * Waits for pending jobs, ends the workers and closes the index. NULL is allowed. Frees the dump's captures. No other
 * thread may be in a function of the dump or of its calls.
 *
 * A call that has not been ended is ended as failed ("the dump was closed before the call ended"): its releases run
 * here, and its files are kept. Its handle stays valid for fxtap_call_end() or fxtap_call_fail(), which free it
 * and return FXTAP_E_CANCELLED; any other function returns FXTAP_E_INVALID, 0 or false, or does nothing.
 */
FXTAP_API void fxtap_dump_close(fxtap_dump *dump);

/*
 * In the child after fork(): forgets the parent's database handle and workers without touching the parent's files or
 * locks; the next call inserts a run row of its own. Optional: fxtap_call_begin() and fxtap_dump_close() detect a fork.
 * A call begun before the fork belongs to the parent: in the child it only runs its releases, and ending it returns
 * FXTAP_E_CANCELLED.
 */
FXTAP_API void fxtap_dump_after_fork(fxtap_dump *dump);

/* The absolute path of the rank's folder. Borrowed. */
FXTAP_API const char *fxtap_dump_rank_path(const fxtap_dump *dump);

/*
 * A warning of one line: the file system has no locks, so the index is written without them. NULL: none. It may appear
 * at any call; print it once. Borrowed; valid as long as the dump.
 */
FXTAP_API const char *fxtap_dump_warning(const fxtap_dump *dump);

/* ---- graphs ---- */

/*
 * Registers a graph under number `graph_id` (>= 1, unique in the process). The record is copied.
 * `skip_reasons`, one entry a node, says why a call_function node is not dumped ("filter", "non aten target", ...);
 * Nodes with a NULL entry are dumped. *out belongs to the dump.
 */
FXTAP_API fxtap_status fxtap_dump_add_graph(fxtap_dump *dump, const fxtap_graph *graph, uint32_t graph_id,
                                            const char *const *skip_reasons, fxtap_capture **out);

/* Values are pinned: the index stores them. */
typedef enum fxtap_io {
    FXTAP_INPUT = 0,
    FXTAP_OUTPUT = 1,
    FXTAP_INOUT = 2 /* mutated by the node but not returned; saved afterwards */
} fxtap_io;

typedef uint32_t fxtap_slot; /* an input or output of a node */

/*
 * The slot of an input or output. `position` is the text between INPUT and the time stamp: "0", "1.2", a keyword,
 * "kw.0". `arg_name` is the schema's name, or NULL. The same position gives the same slot. May be called while calls
 * are running.
 */
FXTAP_API fxtap_status fxtap_capture_slot(fxtap_capture *capture, fxtap_node node, fxtap_io io, const char *position,
                                          const char *arg_name, fxtap_slot *out);

/* ---- calls ---- */

/*
 * Begins a call. FXTAP_E_NOMEM. The caller owns *out and passes it to either fxtap_call_end() or fxtap_call_fail().
 *
 * The call takes its step number here: one more than the highest taken in this graph, so that steps are numbered in the
 * order in which calls began. A call that fails returns its number: the next call to begin takes it, unless a later one
 * has begun meanwhile; then there is no such step, only STEP.failed-{n}.
 */
FXTAP_API fxtap_status fxtap_call_begin(fxtap_capture *capture, fxtap_call **out);

/*
 * The same with a given step number, such as a server's request number, so that two runs of a threaded program number
 * their steps alike. Numbers may leave gaps and come in any order, up to 2^63 - 2; fxtap_call_begin() continues after
 * the highest. FXTAP_E_EXISTS if another call of this graph, which has not failed, has the number.
 */
FXTAP_API fxtap_status fxtap_call_begin_step(fxtap_capture *capture, uint64_t step, fxtap_call **out);

/* The step number that the call has taken; the number of the call among those of its dump, in the order they began. */
FXTAP_API uint64_t fxtap_call_step(const fxtap_call *call);
FXTAP_API uint64_t fxtap_call_number(const fxtap_call *call);

/*
 * The time stamp for all files of one run of a node (microseconds since 1970, UTC). Stamps rise within a call, even if
 * the clock does not, so that each run of a node has its own. The caller may use stamps of its own instead; within a
 * slot they must rise (FXTAP_E_EXISTS for an equal stamp, FXTAP_E_INVALID for an earlier one, 0, or one after the year
 * 9999).
 */
FXTAP_API uint64_t fxtap_call_stamp(fxtap_call *call);

/*
 * Reserves `bytes` of the queue's limit for the next submit (a tensor larger than the limit is queued alone). Needed
 * only by callers that must not block in submit, or that make a copy first. Several reservations before a submit add
 * up. Without `wait`: FXTAP_E_AGAIN if there is no room now. With it: blocks until there is room. A thread that has a
 * reservation must not wait for another call before it submits. Runs due releases first.
 */
FXTAP_API fxtap_status fxtap_call_reserve(fxtap_call *call, uint64_t bytes, bool wait);

typedef void (*fxtap_release)(void *context);

typedef uint64_t fxtap_ticket; /* a value submitted in this call; 0 is none */

typedef struct fxtap_submission {
    size_t struct_size;
    fxtap_slot slot;
    uint64_t stamp_us;
    fxtap_view view;                 /* shape and strides are copied; data is borrowed until `release` */
    fxtap_dtype original_dtype;      /* if the view is a converted copy (dequantised, ...); NONE: the view's dtype */
    const char *original_layout;     /* "torch.sparse_coo" if it was converted; NULL: strided */
    const char *device;              /* where the tensor lived; NULL: "cpu" */
    const int64_t *original_strides; /* the tensor's, view.ndim entries; NULL: the view's */
    fxtap_release release;           /* may be NULL: the data then outlives the call */
    void *context;
    fxtap_ticket same_bytes_as; /* an earlier value of this call with the same dense bytes in another shape or order:
                                   they are not read again. 0: none */
    const fxtap_undefined_range *undefined; /* undefined elements, ascending; copied. Statistics cover the others */
    size_t n_undefined;
    bool is_unreadable; /* the view's data is memory of a device: its address is not read, and the bytes are copied from
                           the file of `same_bytes_as`, which must have no undefined elements */
} fxtap_submission;

/*
 * Queues a value. If fewer bytes are reserved than it has (fxtap_view_saved_bytes), waits for room first. With `sync`
 * the value is written before this returns. After a failure in this call it only calls `release`, and fxtap_call_end()
 * returns the failure. FXTAP_E_INVALID for an invalid view, slot, stamp or ticket, FXTAP_E_EXISTS for a stamp that the
 * slot has had: `release` has then been called (but not for a NULL submission or a wrong struct_size). `out` may be
 * NULL.
 */
FXTAP_API fxtap_status fxtap_call_submit(fxtap_call *call, const fxtap_submission *submission, fxtap_ticket *out);

/* Saves the value of an earlier submit, unchanged since, under another name. No data is read. */
FXTAP_API fxtap_status fxtap_call_alias(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, fxtap_ticket ticket);

/*
 * Saves a number, a list of numbers or a string; the bytes are copied. `text` becomes a <U array, and `view` is then
 * NULL; FXTAP_E_INVALID for text that is not UTF-8.
 */
FXTAP_API fxtap_status fxtap_call_submit_small(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us,
                                               const fxtap_view *view, const char *text, size_t text_length);

/*
 * The simple way for an engine: finds the slot of `position`, reserves room and submits. The data must not change until
 * the call ends, or until fxtap_call_settle() on it returns. `ticket` belongs to the tensor: initially 0 in each call,
 * it is set here; while it is set, the value, unchanged since, only gets another name and no data is read. NULL: the
 * data is read each time. Engines that count microseconds look slots up once and use fxtap_call_submit().
 */
FXTAP_API fxtap_status fxtap_call_save(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position,
                                       uint64_t stamp_us, const fxtap_view *view, fxtap_ticket *ticket);

/* The same for a few numbers, for example on the stack: their bytes are copied. */
FXTAP_API fxtap_status fxtap_call_save_copy(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position,
                                            uint64_t stamp_us, const fxtap_view *view);

/* Records that a slot has no file, and why: "meta tensor", "None", "torch.float32". */
FXTAP_API fxtap_status fxtap_call_skip(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const char *what);

/* What is wrong with an operator's use of memory. Values are pinned: the index stores them. */
typedef enum fxtap_finding_kind {
    FXTAP_FINDING_UNDECLARED_WRITE = 1, /* wrote to an argument that its schema does not declare as mutated */
    FXTAP_FINDING_UNWRITTEN_READ = 2    /* read elements that nothing had written */
} fxtap_finding_kind;

typedef struct fxtap_note {
    size_t struct_size;
    fxtap_finding_kind kind;
    fxtap_node node;
    uint64_t stamp_us;    /* of the node's run */
    const char *position; /* of the argument: "0", "1.2", a keyword */
    const char *arg_name; /* from the schema; NULL: unknown */
    uint64_t count;       /* UNWRITTEN_READ: such elements, out of the argument's `total`; else 0 */
    uint64_t total;
} fxtap_note;

/* Records a finding about an argument of a node, dumped or not, with the step. Texts are copied. FXTAP_E_INVALID. */
FXTAP_API fxtap_status fxtap_call_note(fxtap_call *call, const fxtap_note *note);

/*
 * Whether the memory of an earlier value of this call has changed; `view` is the submitted one. Waits for the value's
 * hash, and reads the memory. Sets false after a failure in this call.
 */
FXTAP_API fxtap_status fxtap_call_has_changed(fxtap_call *call, fxtap_ticket ticket, const fxtap_view *view, bool *out);

/* Whether a pending job reads memory in [first, end): settle it before changing it. */
FXTAP_API bool fxtap_call_is_pending(fxtap_call *call, const void *first, const void *end);
/* Blocks until no pending job of the dump reads memory in [first, end). */
FXTAP_API void fxtap_call_settle(fxtap_call *call, const void *first, const void *end);

/* Runs the releases that are due. Cheap when there are none. */
FXTAP_API void fxtap_call_release_done(fxtap_call *call);

/*
 * Ends a call that succeeded: waits for its files, commits its index rows, moves its folder into place, checkpoints the
 * log. On failure (the first error of any of its jobs: FXTAP_E_IO with errno and path) the folder is kept as
 * STEP.failed-{n}. Frees `call` in either case. `step_out` may be NULL. A call that is never ended keeps its
 * submissions' memory until the dump is closed.
 */
FXTAP_API fxtap_status fxtap_call_end(fxtap_call *call, uint64_t *step_out);

/* Ends a call that failed in the caller; `reason` may be NULL. Its files are kept as STEP.failed-{n}. */
FXTAP_API fxtap_status fxtap_call_fail(fxtap_call *call, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
