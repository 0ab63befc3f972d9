/*
 * call.h - one call of a graph. An *entry* is one slot of the call with the value that was submitted for it.
 */
#ifndef FX_WRITER_CALL_H
#define FX_WRITER_CALL_H

#include "util/arena.h"
#include "util/error.h"
#include "writer/capture.h"
#include "writer/contents.h"
#include "writer/tree.h"

typedef struct fx_call_entry {
    fxtap_slot slot_number;
    fx_capture_slot *slot;
    uint64_t stamp_us;
    fx_job *job;         /* NULL: nothing is saved here */
    const char *skipped; /* why */
} fx_call_entry;

/* A finding about a node; texts in the call's arena. */
typedef struct fx_call_note {
    struct fx_call_note *next;
    fxtap_note note;
} fx_call_note;

/* Memory that a call leaves to the next one: fresh memory costs as much as filling it. */
typedef struct fx_call_memory {
    fx_arena arena;
    fx_call_entry *entries;
    size_t entry_capacity;
    fx_value **values;
    size_t value_capacity;
} fx_call_memory;

struct fxtap_call {
    fxtap_call *next; /* list of the dump's calls that have not ended. dump->lock */
    fxtap_call *previous;
    fxtap_capture *capture;
    fxtap_dump *dump;    /* NULL: the dump was closed, and the call is only to be freed */
    unsigned generation; /* of the process that began it: another one after a fork */
    uint64_t number;
    uint64_t step;
    uint64_t started_us;
    bool has_begun; /* the index was opened, or opening it failed */
    fx_rank_folder *rank;
    fx_step_folder *folder;
    int dir_fd; /* -1: none */
    char partial[96];
    size_t path_bytes;       /* of the rank's folder, the call's and two slashes */
    uint64_t reserved_bytes; /* room that no job has been given yet */
    fx_call_entry *entries;
    size_t n_entries;
    size_t entry_capacity;
    fx_value **values;
    size_t n_values;
    size_t value_capacity;
    uint64_t stamped_us; /* the latest stamp given out */
    uint64_t *last_us;   /* by slot: its latest stamp in this call */
    size_t n_last;
    fx_arena arena;
    fx_call_note *notes; /* in order */
    fx_call_note *last_note;
    const char *last_text; /* the latest copy of a device or layout: they repeat */
    size_t n_unfinished;   /* jobs. queue.lock */
    fx_job *finished;      /* jobs whose release is due. queue.lock */
    atomic_bool has_finished;
    atomic_bool has_failed;
    fx_error_copy error; /* the first one. queue.lock */
};

/* Keeps the thread's last error as the call's, unless the call has one. */
void fx_call_set_error(fxtap_call *call, fxtap_status status);
/* Gives back room that no job has been given. */
void fx_call_unreserve(fxtap_call *call);
/* Nothing more is written for the call. */
bool fx_call_is_dead(const fxtap_call *call);
/* It was begun by another process, before a fork. */
bool fx_call_is_stale(const fxtap_call *call);
/* FXTAP_E_INVALID for NULL and for a call whose dump is closed. Each public function checks this first. */
fxtap_status fx_call_check(const fxtap_call *call);
/*
 * Makes the folders and opens the index; `has_file`: a file follows. False: nothing is to be written; a failure becomes
 * the call's.
 */
bool fx_call_ensure_begun(fxtap_call *call, bool has_file);
void fx_call_memory_clear(fx_call_memory *memory);
/* Ends the calls that the user did not end, as failed ones, before their dump is closed. */
void fx_calls_abandon(fxtap_dump *dump);
/* In a forked child: frees the step numbers of the calls that its parent began. */
void fx_calls_forget_steps(fxtap_dump *dump, unsigned generation);

#endif
