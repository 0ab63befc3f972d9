/*
 * fxtap/dump.h - writing a dump: sessions, graphs, calls, tensors.
 *
 *   fxtap_dump      one rank of one dump root, open for writing (one run)
 *   fxtap_capture   one graph of it, with the names of everything it will write already formatted
 *   fxtap_call      one call of that graph: becomes a step when it ends well
 *
 * A dump root that is a link is followed, ".." in it is resolved once, at open. A rank, graph or step folder (or index)
 * that is a link to elsewhere is refused: FXTAP_E_IO with ELOOP or ENOTDIR.
 *
 * Directories are made when the first tensor is submitted, not before; where every operator of a graph has a reason not
 * to be dumped, at the end of its first call, so that the index tells the reasons. Files are written by other threads
 * into a partial folder that is renamed to the step's at the end of the call. See docs/format.md for the tree.
 *
 * Thread rule: a dump and a capture may be used by any threads at once; a call belongs to one thread at a time.
 * Workers own C memory only: `release` callbacks run in the thread that makes a later fxtap_call_ function on the
 * same call, never in a worker.
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
    FXTAP_DUMP_NPY = 1,  /* files and index */
    FXTAP_DUMP_STATS = 2 /* index rows alone */
} fxtap_dump_type;

/*
 * Threads that the caller keeps anyway, as torch's OpenMP team, and lends to the dump. Such a team spins between the
 * model's operators: a worker of ours on one of its processors would hold up every operator. So there are workers only
 * on processors that the team leaves free; where it leaves none, what is queued is worked off by the whole team, when
 * some MiB have gathered and at the end of the call.
 */
typedef struct fxtap_team {
    int (*size)(void); /* threads that run() would use now, the calling one among them; >= 1 */
    /* Calls work(argument) once in each of them, the calling one among them; returns when all have returned. */
    void (*run)(void (*work)(void *), void *argument);
} fxtap_team;

typedef struct fxtap_dump_options {
    size_t struct_size;
    const char *path;       /* the dump root; made when it is not there */
    int32_t world_size;     /* >= 1 */
    int32_t rank;           /* 0 .. world_size-1 */
    fxtap_dump_type type;
    bool sync;              /* each file is on its way to the disk (closed, under its name) before submit returns */
    bool no_dedup;          /* write equal contents again instead of linking */
    uint64_t queue_bytes;   /* bound on bytes of queued tensors; 0 means 1 GiB */
    int32_t n_threads;      /* worker threads; 0 means as many as processors that no team uses, 4 at most */
    const fxtap_team *team; /* copied; NULL: none. Not used in a forked child, nor where n_threads is not 0 */
    const char *versions;   /* one line for the index's run row, as "torch 2.13.0, numpy 2.4.6"; may be NULL */
    const char *command;    /* the command line, for the run row; may be NULL */
    uint64_t (*clock_us)(void); /* microseconds since 1970 UTC; NULL means the system's */
} fxtap_dump_options;

/* Checks the options; touches no disk. The caller owns *out. FXTAP_E_INVALID, FXTAP_E_NOMEM. */
FXTAP_API fxtap_status fxtap_dump_open(const fxtap_dump_options *options, fxtap_dump **out);

/*
 * Waits for what is pending, closes the index and the workers. NULL is allowed. Captures of it are freed with it. No
 * other thread may be in a function of the dump or of its calls.
 *
 * A call that was begun and not ended is ended as failed ("the dump was closed before the call ended"): its releases
 * run here, and what it wrote is kept. Its handle stays valid for fxtap_call_end() or fxtap_call_fail(), which free it
 * and return FXTAP_E_CANCELLED; any other function returns FXTAP_E_INVALID, 0 or false, or does nothing.
 */
FXTAP_API void fxtap_dump_close(fxtap_dump *dump);

/*
 * After fork() in the child: forgets the parent's database handle and workers without touching the parent's files
 * or locks; the next call starts a run row of its own. Optional: fxtap_call_begin() and fxtap_dump_close() notice a
 * fork by themselves. A call begun before the fork belongs to the parent: in the child it only releases what it holds,
 * and its end gives FXTAP_E_CANCELLED.
 */
FXTAP_API void fxtap_dump_after_fork(fxtap_dump *dump);

/* The absolute path of the rank's folder. Borrowed. */
FXTAP_API const char *fxtap_dump_rank_path(const fxtap_dump *dump);

/*
 * One line about what is not as it should be although the dump goes on: the file system has no locks, so the index is
 * written without. NULL: nothing. It may appear at any call; print it once. Borrowed, as long as the dump.
 */
FXTAP_API const char *fxtap_dump_warning(const fxtap_dump *dump);

/* ---- graphs ---- */

/*
 * Registers a graph under number `graph_id` (>= 1, unique in the process). The record is copied.
 * `skip_reasons`, one entry a node, says why a call_function node is not dumped ("filter", "non aten target", ...);
 * NULL entries are dumped. *out belongs to the dump.
 */
FXTAP_API fxtap_status fxtap_dump_add_graph(fxtap_dump *dump, const fxtap_graph *graph, uint32_t graph_id,
                                            const char *const *skip_reasons, fxtap_capture **out);

typedef enum fxtap_io { /* pinned: stored in the index */
    FXTAP_INPUT = 0,
    FXTAP_OUTPUT = 1,
    FXTAP_INOUT = 2 /* what a node mutated without returning it, saved afterwards */
} fxtap_io;

typedef uint32_t fxtap_slot; /* one place of one node: an input, an output */

/*
 * The slot of a place. `position` is the text between INPUT and the time stamp: "0", "1.2", a keyword, "kw.0".
 * `arg_name` is the schema's name, or NULL. Asking twice gives the same slot. Callable while calls are running.
 */
FXTAP_API fxtap_status fxtap_capture_slot(fxtap_capture *capture, fxtap_node node, fxtap_io io, const char *position,
                                          const char *arg_name, fxtap_slot *out);

/* ---- calls ---- */

/*
 * Begins a call. FXTAP_E_NOMEM. The caller owns *out and gives it back to exactly one of end and fail.
 *
 * The call takes its step number here: the one after all that are taken in this graph, so that concurrent calls count in
 * the order in which they began, whichever ends first. A call that fails gives its number back: the next call to begin
 * has it again, unless a later one has begun meanwhile; then there is no such step, only STEP.failed-{n}.
 */
FXTAP_API fxtap_status fxtap_call_begin(fxtap_capture *capture, fxtap_call **out);

/*
 * The same with the step's number given, as a server's request number: two runs of a threaded program then agree
 * whichever thread comes first. Numbers may leave gaps and come in any order, up to 2^63 - 2; fxtap_call_begin() goes on
 * after the highest. FXTAP_E_EXISTS when a call of this graph and dump that has not failed has the number.
 */
FXTAP_API fxtap_status fxtap_call_begin_step(fxtap_capture *capture, uint64_t step, fxtap_call **out);

/*
 * Begins a node's run: the time stamp that all its files will have (microseconds since 1970, UTC). Within a call stamps
 * rise, also when the clock does not: each run of a node has its own. Stamps of the caller's may be used instead; in one
 * slot each has to be later than the one before (FXTAP_E_EXISTS for the same stamp again, FXTAP_E_INVALID for an earlier
 * one, 0, or one beyond the year 9999).
 */
FXTAP_API uint64_t fxtap_call_stamp(fxtap_call *call);

/*
 * Takes `bytes` of the queue's bound for the next submit (a tensor larger than the bound is let in alone). Needed only
 * by callers who must not block in submit, or who make a copy first. Asked again before the submit, it adds to what
 * the call has. Without `wait`: FXTAP_E_AGAIN when there is no room now. With it: blocks until there is, so
 * no other call may be waited for between this and the submit. Runs due releases first.
 */
FXTAP_API fxtap_status fxtap_call_reserve(fxtap_call *call, uint64_t bytes, bool wait);

typedef void (*fxtap_release)(void *context);

typedef uint64_t fxtap_ticket; /* a value submitted in this call; 0 is none */

typedef struct fxtap_submission {
    size_t struct_size;
    fxtap_slot slot;
    uint64_t stamp_us;
    fxtap_view view;            /* shape and strides are copied; data is borrowed until `release` */
    fxtap_dtype original_dtype; /* when the view holds a converted copy (dequantised, ...); NONE: the view's dtype */
    const char *original_layout; /* "torch.sparse_coo" where it was converted; NULL: strided */
    const char *device;         /* where the tensor lived; NULL: "cpu" */
    const int64_t *original_strides; /* as the tensor had them, view.ndim entries; NULL: the view's */
    fxtap_release release;      /* may be NULL: the data then outlives the call */
    void *context;
    fxtap_ticket same_bytes_as; /* an earlier value of this call whose dense bytes the view shows in another shape or
                                   order: they are not looked at again. 0: none */
    const fxtap_undefined_range *undefined; /* elements that hold nothing, ascending; copied. Statistics are of the others */
    size_t n_undefined;
} fxtap_submission;

/*
 * Queues a value. Where fewer bytes have been reserved than it has (fxtap_view_saved_bytes), it waits for room first.
 * With `sync` it is written before this returns. After a first failure in this call it only releases: fxtap_call_end()
 * tells. FXTAP_E_INVALID for a view, slot, stamp or ticket that cannot be, FXTAP_E_EXISTS for a stamp that the slot has
 * had; then `release` has been called already (not so for a NULL submission or a wrong struct_size). `out` may be NULL.
 */
FXTAP_API fxtap_status fxtap_call_submit(fxtap_call *call, const fxtap_submission *submission, fxtap_ticket *out);

/* The value of an earlier submit, unchanged since, under one more name. No data is read again. */
FXTAP_API fxtap_status fxtap_call_alias(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, fxtap_ticket ticket);

/*
 * A number, list of numbers or string: bytes are copied. `text` makes a <U array and `view` is then NULL; FXTAP_E_INVALID
 * for text that is not UTF-8.
 */
FXTAP_API fxtap_status fxtap_call_submit_small(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us,
                                               const fxtap_view *view, const char *text, size_t text_length);

/*
 * The usual way for an engine: the slot of `position`, room in the queue, and the submit, in one call. The data stays as
 * it is until the call ends, or until fxtap_call_settle() on it returns. `ticket` belongs to the tensor: 0 before it is
 * saved in this call, set then; with what is set already the value, unchanged since, gets one more name and no data is
 * read. NULL: it is looked at each time. Engines that count microseconds keep slots, and know releases.
 */
FXTAP_API fxtap_status fxtap_call_save(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position,
                                       uint64_t stamp_us, const fxtap_view *view, fxtap_ticket *ticket);

/* The same for a number or a few of them, whose bytes are copied: what is on the stack. */
FXTAP_API fxtap_status fxtap_call_save_copy(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position,
                                            uint64_t stamp_us, const fxtap_view *view);

/* Records a place that has no file, and why or what: "meta tensor", "None", "torch.float32". */
FXTAP_API fxtap_status fxtap_call_skip(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const char *what);

/* What capture found wrong with the way in which an operator uses memory. */
typedef enum fxtap_finding_kind { /* pinned: stored in the index */
    FXTAP_FINDING_UNDECLARED_WRITE = 1, /* changed an argument that its schema does not say it writes to */
    FXTAP_FINDING_UNWRITTEN_READ = 2    /* computed with elements that nothing had written */
} fxtap_finding_kind;

typedef struct fxtap_note {
    size_t struct_size;
    fxtap_finding_kind kind;
    fxtap_node node;
    uint64_t stamp_us;    /* of the node's run */
    const char *position; /* of the argument: "0", "1.2", a keyword */
    const char *arg_name; /* from the schema; NULL where not known */
    uint64_t count;       /* UNWRITTEN_READ: such elements among `total` of the argument; else 0 */
    uint64_t total;
} fxtap_note;

/* Records a finding about an argument of a node, dumped or not, with the step. Texts are copied. FXTAP_E_INVALID. */
FXTAP_API fxtap_status fxtap_call_note(fxtap_call *call, const fxtap_note *note);

/*
 * Whether the memory of an earlier value of this call holds something else now; `view` is as it was submitted. Waits
 * for the value's hash, and reads the memory. False where nothing is written for the call any more.
 */
FXTAP_API fxtap_status fxtap_call_has_changed(fxtap_call *call, fxtap_ticket ticket, const fxtap_view *view, bool *out);

/* True when a pending job reads memory in [first, end): settle before changing it. */
FXTAP_API bool fxtap_call_is_pending(fxtap_call *call, const void *first, const void *end);
/* Blocks until no pending job of the dump reads memory in [first, end). */
FXTAP_API void fxtap_call_settle(fxtap_call *call, const void *first, const void *end);

/* Runs the releases that are due. Cheap when there are none. */
FXTAP_API void fxtap_call_release_done(fxtap_call *call);

/*
 * Ends a call that succeeded: waits for its files, gives it its step number, moves its folder into place, commits its
 * index rows, checkpoints the log. On failure (the first error of any of its jobs: FXTAP_E_IO with errno and path)
 * the folder is kept as STEP.failed-{n}. Either way `call` is gone. `step_out` may be
 * NULL. A call that is never ended keeps what its submissions hold until the dump is closed.
 */
FXTAP_API fxtap_status fxtap_call_end(fxtap_call *call, uint64_t *step_out);

/* Ends a call that failed for a reason of the caller's (may be NULL); what was written is kept as STEP.failed-{n}. */
FXTAP_API fxtap_status fxtap_call_fail(fxtap_call *call, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
