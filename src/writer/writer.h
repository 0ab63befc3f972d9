/*
 * writer.h - what the parts of the writer share: the dump, its captures, calls, values and jobs.
 *
 * A *value* is the contents of one tensor, submitted once in a call; an *entry* is one place (slot) of the call with
 * the value that stands there; a *job* puts one value under one name. The first job of a value also computes its
 * statistics and its hash.
 *
 * Locks, none of which is held while another of them is taken, except as said:
 *   dump->rank_lock   the rank folder; held while it is looked at or made
 *   dump->lock        captures, slots, calls and their steps; never held while a file or another process is waited for
 *   index.lock        the database; the longest held, for the end of a call. dump->lock and the two below may be taken
 *                     inside it
 *   contents.move     held while a step's folder moves into place; contents.lock may be taken inside it
 *   contents.lock     the table of contents, folders' reference counts and paths
 *   queue.lock        jobs waiting and pending, the byte budget, counts of open jobs, values' states
 */
#ifndef FX_WRITER_WRITER_H
#define FX_WRITER_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "fxtap/dump.h"
#include "fxtap/stats.h"
#include "index/file_names.h"
#include "writer/steps.h"
#include "util/table.h"
#include "util/arena.h"
#include "util/error.h"

typedef struct fx_job fx_job;
typedef struct fx_value fx_value;

/* A rank's folder, open. Freed with its last user; a root that vanished and was made again is another one. */
typedef struct fx_rank {
    int fd;
    uint64_t number; /* the how many-th folder of this dump */
    dev_t device;
    ino_t inode;
    unsigned n_users; /* dump->rank_lock */
} fx_rank;

/* The folder of one step. Its path changes when it moves into place. contents.lock. */
typedef struct fx_folder {
    unsigned n_users;
    uint64_t ended_ns; /* CLOCK_REALTIME when it was moved; 0 before */
    uint64_t rank_number;
    char path[96];     /* relative to the rank's folder */
} fx_folder;

typedef struct fx_slot {
    fxtap_node node;
    fxtap_io io;
    uint16_t prefix_length;
    const char *prefix; /* "add_1-aten.add.Tensor.INPUT.0." */
    const char *position;
    const char *arg_name;
    atomic_bool was_linked; /* a file of it has got another name: the next one will, too */
    int64_t row; /* in the index; 0: not there yet. index.lock */
} fx_slot;

typedef enum fx_value_state { FX_VALUE_PENDING = 0, FX_VALUE_DONE = 1, FX_VALUE_FAILED = 2 } fx_value_state;

/* Where nothing else is said. Constants, to be compared by address. */
extern const char FX_USUAL_LAYOUT[]; /* "torch.strided" */
extern const char FX_USUAL_DEVICE[]; /* "cpu" */

struct fx_value {
    fxtap_view view; /* shape, strides (or NULL) in the call's arena; data not to be read once done */
    fxtap_dtype original_dtype;
    fxtap_order order;
    const char *layout;
    const char *device;
    const int64_t *original_strides; /* NULL: the view's */
    fx_value *source;                /* that value's bytes in another shape; NULL */
    uint64_t saved_bytes;
    const fxtap_undefined_range *undefined; /* in the call's arena; then stats and defined_hash are of the others */
    size_t n_undefined;
    fxtap_hash128 defined_hash;
    fxtap_stats stats;
    fxtap_hash128 hash;
    fxtap_hash128 key; /* of hash, dtype, order and shape: equal files */
    atomic_int state;  /* fx_value_state; set under queue.lock */
    bool has_stats;    /* the first job's alone until done */
    atomic_bool has_aliases;
    bool is_read_only; /* its file has been made so. contents.lock */
    fx_slot *file_slot; /* its file in the call's folder, once done. contents.lock */
    uint64_t file_stamp_us;
    int64_t row;           /* in the index, where `transaction` is the index's. index.lock */
    uint64_t transaction;
    fx_job *waiters;      /* names asked for before it was done. queue.lock */
    fx_job *last_waiter;
};

struct fx_job {
    fx_job *next; /* the queue, a batch, a list of waiters or the list of the done: one at a time */
    fx_job *pending_next; /* all that read tensor memory, while they do. queue.lock */
    fx_job *pending_previous;
    fxtap_call *call;
    fx_value *value;
    fx_slot *slot;
    uint64_t stamp_us;
    uint64_t reserved_bytes;
    const void *first; /* what memory it reads; NULL: none of the caller's */
    const void *end;
    fx_job *content_waiters; /* first jobs of equal values, waiting for this one's file. contents.lock */
    fxtap_release release;
    void *context;
    bool is_first;
    bool is_written; /* read by the call's owner after the job is done */
};

typedef struct fx_entry {
    fxtap_slot slot_number;
    fx_slot *slot;
    uint64_t stamp_us;
    fx_job *job;        /* NULL: nothing is saved here */
    const char *skipped;
} fx_entry;

/* A finding about a node of the call; texts in the call's arena. */
typedef struct fx_note {
    struct fx_note *next;
    fxtap_note note;
} fx_note;

/* What one call leaves to the next: fresh memory costs as much as filling it. */
typedef struct fx_call_memory {
    fx_arena arena;
    fx_entry *entries;
    size_t entry_capacity;
    fx_value **values;
    size_t value_capacity;
} fx_call_memory;

struct fxtap_call {
    fxtap_call *next; /* all of the dump that have not ended. dump->lock */
    fxtap_call *previous;
    fxtap_capture *capture;
    fxtap_dump *dump;    /* NULL: it was closed, and there is nothing left but to free the call */
    unsigned generation; /* of the process that began it: another one after a fork */
    uint64_t number;
    uint64_t step; /* taken when it began */
    uint64_t started_us;
    bool has_begun; /* the folder was made, or tried */
    fx_rank *rank;
    fx_folder *folder;
    int dir_fd; /* -1: none */
    char partial[96];
    size_t path_bytes; /* of the rank's folder, the call's and two slashes */
    uint64_t reserved_bytes; /* taken, and not yet given to a job */
    fx_entry *entries;
    size_t n_entries;
    size_t entry_capacity;
    fx_value **values;
    size_t n_values;
    size_t value_capacity;
    uint64_t stamped_us; /* the latest stamp given out */
    uint64_t *last_us;  /* by slot: its latest stamp in this call */
    size_t n_last;
    fx_arena arena;
    fx_note *notes;        /* in order */
    fx_note *last_note;
    const char *last_text; /* the latest copy of a device or layout: they repeat */
    size_t n_open;         /* jobs not done. queue.lock */
    fx_job *done;          /* with a release due. queue.lock */
    atomic_bool has_done;
    atomic_bool has_failed;
    fx_error_copy error; /* the first one. queue.lock */
};

typedef struct fx_node_names {
    char *stem;
    char *skip_reason;
    bool is_operator;
    bool has_slots;
} fx_node_names;

#define FX_SLOT_BLOCKS 26
#define FX_SLOT_FIRST_BLOCK 64 /* each block is twice as long as the one before it */

struct fxtap_capture {
    fxtap_capture *next;
    fxtap_dump *dump;
    uint32_t graph_id;
    uint32_t occurrence;
    fxtap_graph_kind kind;
    fxtap_hash128 strict_key;
    fxtap_hash128 structural_key;
    void *record;
    size_t record_bytes;
    fx_node_names *nodes;
    size_t n_nodes;
    bool is_skipped; /* there are operators, each with a reason why it is not dumped */
    fx_slot *blocks[FX_SLOT_BLOCKS];
    atomic_uint n_slots;
    fx_table slot_places; /* key of (node, io, position) -> number. dump->lock */
    fx_table prefixes;    /* folded, of all slots. dump->lock */
    fx_arena arena;       /* dump->lock */
    fx_steps steps;       /* dump->lock */
    int64_t row;          /* index.lock */
    int64_t *node_rows;   /* index.lock */
};

fx_slot *fx_capture_slot_at(const fxtap_capture *capture, fxtap_slot slot); /* NULL: there is none */
void fx_capture_free(fxtap_capture *capture);

typedef struct fx_queue {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers wait here */
    pthread_cond_t done;  /* callers wait here */
    fx_job *head;
    fx_job *tail;
    size_t n_queued;
    uint64_t queued_bytes;
    fx_job *pending; /* newest first */
    atomic_size_t n_pending;
    atomic_uint_fast64_t used_bytes; /* given back under the lock, so that no waiting caller misses it */
    uint64_t limit_bytes;
    atomic_uint_fast64_t room_bytes; /* what may be queued now: the limit, or less where a team must help soon */
    fxtap_team team;                 /* run is NULL: there is none */
    unsigned n_team;                 /* its size, when it was last asked; 0 */
    unsigned n_processors;           /* 0: the number of workers is the caller's choice */
    unsigned n_idle;
    unsigned n_waiting; /* callers in `done` */
    bool is_stopping;
    pthread_t *threads;
    unsigned n_threads; /* running */
    unsigned n_wanted;
} fx_queue;

typedef struct fx_contents {
    pthread_mutex_t lock;
    pthread_mutex_t move;
    fx_table table;
} fx_contents;

/* Prepared once, kept with the database. */
enum {
    FX_SQL_BEGIN,
    FX_SQL_COMMIT,
    FX_SQL_RUN,
    FX_SQL_RUN_END,
    FX_SQL_GRAPH,
    FX_SQL_NODE,
    FX_SQL_SLOT,
    FX_SQL_VALUE,
    FX_SQL_TENSOR,
    FX_SQL_LAST_STEP,
    FX_SQL_STEP,
    FX_SQL_RESTAMP,
    FX_SQL_FINDING,
    FX_SQL_UNDEFINED,
    FX_STATEMENTS
};

typedef struct fx_index {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *statements[FX_STATEMENTS];
    char *path;
    int folder_fd; /* -1, or what the database is reached through */
    bool has_journal; /* in the place of the write-ahead log */
    dev_t device;
    ino_t inode;
    uint64_t n_bytes; /* of the file, when last looked at */
    int busy_ms;      /* how long to wait for another process */
    bool was_busy;    /* in vain: the next wait is short */
    bool has_locks;   /* of the file system */
    bool has_lost_locks; /* since it was opened: it is to be opened anew */
    atomic_int_fast64_t run;
    bool in_transaction;
    uint64_t transaction; /* the how many-th */
    fx_table values; /* rows of this run by all that makes a value */
    int64_t **fresh; /* row numbers given in this transaction: zeroed when it is undone */
    size_t n_fresh;
    size_t fresh_capacity;
} fx_index;

struct fxtap_dump {
    fxtap_dump *next; /* all open dumps, for fork */
    char *rank_path;
    char *root_path;
    const char *rank_name; /* the tail of rank_path */
    char *versions;
    char *command;
    int32_t world_size;
    int32_t rank;
    fxtap_dump_type type;
    bool sync;
    bool no_dedup;
    uint64_t (*clock_us)(void);
    uint64_t started_us;
    pthread_mutex_t rank_lock;
    fx_rank *open_rank; /* rank_lock */
    uint64_t n_ranks;   /* folders opened so far. rank_lock */
    pthread_mutex_t lock;
    fxtap_capture *captures;
    fxtap_call *calls; /* that have not ended. lock */
    atomic_uint_fast64_t next_call;
    unsigned generation;
    atomic_uint_fast64_t indexed_rank; /* number of the rank folder whose index is open */
    atomic_bool has_no_links;
    _Atomic(char *) warning; /* NULL: none */
    fx_call_memory spare; /* lock */
    fx_queue queue;
    fx_contents contents;
    fx_index index;
};

/* ---- tree.c: folders ---- */

/* The rank's folder as it is now, made when it is not there; one more user. */
fxtap_status fx_tree_enter(fxtap_dump *dump, fx_rank **out);
void fx_tree_leave(fxtap_dump *dump, fx_rank *rank);
/* Makes the call's partial folder: dir_fd, folder, partial. */
fxtap_status fx_tree_begin(fxtap_call *call);
/* Moves it to GRAPH/STEP, or its files into the folder that is there. Entries' stamps may change: *moved_out. */
fxtap_status fx_tree_publish(fxtap_call *call, uint64_t step, bool *bumped_out);
/* Moves it to GRAPH/STEP.failed-{n}; the new path is the folder's. */
fxtap_status fx_tree_fail(fxtap_call *call, uint64_t step);
/* GRAPH/STEP, relative to the rank's folder. */
void fx_tree_step_path(const fxtap_call *call, uint64_t step, char *dst, size_t capacity);
void fx_tree_end(fxtap_call *call);
/* An error about `name` in the call's folder ("" for the folder itself). */
fxtap_status fx_tree_error(const fxtap_call *call, int error_number, const char *action, const char *name);

/* ---- content.c: which file has which contents ---- */

typedef struct fx_content { /* a record of the table */
    fxtap_hash128 key;
    fx_folder *folder; /* NULL while the first file of these contents is being written */
    fx_slot *slot;
    uint64_t stamp_us;
    fx_job *writer;
    bool is_read_only;
} fx_content;

/* A file to link to, as it was when it was asked for. */
typedef struct fx_source {
    const fx_folder *folder; /* only to be compared */
    fx_slot *slot;
    uint64_t stamp_us;
    uint64_t ended_ns;
    uint64_t rank_number;
    bool is_read_only;
    char path[96];
} fx_source;

void fx_contents_init(fx_contents *contents);
void fx_contents_clear(fx_contents *contents);
/* Forgets all: the root is another one. */
void fx_contents_forget(fx_contents *contents);

typedef enum fx_claim { FX_CLAIM_WRITE, FX_CLAIM_LINK, FX_CLAIM_WAIT } fx_claim;

/*
 * Whose turn it is to write a value of this key: the job's (WRITE: fx_contents_settle() must follow), nobody's
 * (LINK: *out has these contents), or another's that is at it (WAIT: the job is among that one's content_waiters).
 */
fx_claim fx_contents_claim(fx_contents *contents, fx_job *job, fx_source *out);
/* Where a file with the contents of `job` is now; false: not known. */
bool fx_contents_find(fx_contents *contents, const fx_job *job, fx_source *out);
/* The job's file is there (or not), as its value's: the jobs that waited for it. */
fx_job *fx_contents_settle(fx_contents *contents, fx_job *job, bool is_written, bool is_read_only);
/* The job's file takes the place of one that could not be linked. */
void fx_contents_replace(fx_contents *contents, fx_job *job);
/* The file of `source` has become read-only. */
void fx_contents_set_read_only(fx_contents *contents, const fx_job *job, const fx_source *source);
/* A file of a call has got another stamp. */
void fx_contents_restamp(fx_contents *contents, const fx_job *job, uint64_t stamp_us);
/* The value's own file in its call's folder. */
void fx_contents_set_file(fx_contents *contents, fx_job *job, bool is_read_only);
void fx_contents_get_file(fx_contents *contents, const fxtap_call *call, const fx_value *value, fx_source *out);
void fx_folder_release(fx_contents *contents, fx_folder *folder);
void fx_folder_set_path(fx_contents *contents, fx_folder *folder, const char *path);

/* ---- job.c: one value under one name ---- */

/* Runs the job and those that waited for its file. Prepends all that are done to *done. */
void fx_job_run(fx_job *job, void **scratch, fx_job **done);
size_t fx_job_name(const fx_job *job, char dst[FX_NAME_MAX + 1]);
size_t fx_slot_file(const fx_slot *slot, uint64_t stamp_us, char dst[FX_NAME_MAX + 1]);
/* What the file's header calls the type, as "<f4", "<U5". */
void fx_value_descr(const fx_value *value, char dst[32]);

/* ---- queue.c ---- */

/* `n_threads` workers; 0: as many as the team (NULL: none) leaves processors, see fx_queue_adapt(). */
fxtap_status fx_queue_init(fx_queue *queue, uint64_t limit_bytes, unsigned n_threads, const fxtap_team *team);
/* Asks the team again how many it is, in a thread that is about to queue jobs. */
void fx_queue_adapt(fx_queue *queue);
/*
 * Calls work(argument) in each thread of the team, which may help with what is queued; in the calling thread alone
 * where there is no team, or nothing for it to do.
 */
void fx_queue_lend(fx_queue *queue, void (*work)(void *), void *argument);
void fx_queue_stop(fx_queue *queue);
void fx_queue_destroy(fx_queue *queue);
void fx_queue_after_fork(fx_queue *queue);
/* Queues a job; or, where it stands on another job's value that is not done yet, keeps it with that value. */
void fx_queue_add(fx_queue *queue, fx_job *job);
/* Helps and waits until the value's first job is done. */
void fx_queue_wait_value(fx_queue *queue, fx_value *value);
/* Helps and waits until no job of the call is open. In any thread. */
void fx_queue_drain(fx_queue *queue, fxtap_call *call);
bool fx_queue_reserve(fx_queue *queue, uint64_t n_bytes, bool wait);
void fx_queue_unreserve(fx_queue *queue, uint64_t n_bytes);
bool fx_queue_overlaps(fx_queue *queue, const void *first, const void *end);
void fx_queue_settle(fx_queue *queue, const void *first, const void *end);
/* Takes the done jobs of a call whose releases are due. */
fx_job *fx_queue_take_done(fx_queue *queue, fxtap_call *call);
/* Runs a job in the calling thread, with all the accounts. */
void fx_queue_run_now(fx_queue *queue, fx_job *job);

/* ---- index.c, index_rows.c: the database. All with index.lock held. ---- */

void fx_index_init(fx_index *index);
/* Opens it in the rank's folder and inserts the run's row, unless it is open and still the file of that name. */
fxtap_status fx_index_open(fxtap_dump *dump, const fx_rank *rank);
/* `abandon`: without touching the disk (after a fork, or when the file is gone). */
void fx_index_close(fx_index *index, bool abandon);
/* The open database still is the file of its name. */
bool fx_index_is_there(fx_index *index);
void fx_index_destroy(fx_index *index);
fxtap_status fx_index_begin(fx_index *index);
fxtap_status fx_index_commit(fx_index *index);
void fx_index_rollback(fx_index *index);
void fx_index_checkpoint(fx_index *index);
fxtap_status fx_index_error(fx_index *index, int code, const char *action);
fxtap_status fx_index_statement(fx_index *index, int which, const char *sql, sqlite3_stmt **out);
fxtap_status fx_index_step(fx_index *index, sqlite3_stmt *statement);
/* Makes a table that only some dumps need. */
fxtap_status fx_index_make_table(fx_index *index, const char *sql);
/* Remembers that *row was given in this transaction. */
fxtap_status fx_index_fresh(fx_index *index, int64_t *row);

/* The row of a value of this run; 0: there is none. */
int64_t fx_index_find_value(const fx_index *index, fxtap_hash128 key);
void fx_index_remember_value(fx_index *index, fxtap_hash128 key, int64_t row);

fxtap_status fx_rows_run(fxtap_dump *dump);
void fx_rows_run_end(fxtap_dump *dump);
/* The graph's rows, unless they are there; the id that the call's step will have. */
fxtap_status fx_rows_begin_step(fxtap_call *call, int64_t *step_id_out);
fxtap_status fx_rows_entry(fxtap_call *call, int64_t step_id, const fx_entry *entry);
fxtap_status fx_rows_step(fxtap_call *call, int64_t step_id, uint64_t step, const char *folder, const char *reason);
/* The call's findings. */
fxtap_status fx_rows_notes(fxtap_call *call, int64_t step_id);
/* The step's rows after its files got other stamps: `given_us[i]` is what the row of entry i says. */
fxtap_status fx_rows_restamp(fxtap_call *call, int64_t step_id, const uint64_t *given_us);
/* All row numbers are void: another database. */
void fx_rows_forget(fxtap_dump *dump);

/* ---- call.c ---- */

/* Keeps the thread's last error as the call's, unless it has one. */
void fx_call_set_error(fxtap_call *call, fxtap_status status);
void fx_call_unreserve(fxtap_call *call);
/* Nothing more is written for it. */
bool fx_call_is_dead(const fxtap_call *call);
/* FXTAP_E_INVALID for NULL, and for a call whose dump is closed: what each public function begins with. */
fxtap_status fx_call_check(const fxtap_call *call);
/* Makes the folders and opens the index; false where that failed, which is the call's failure. */
bool fx_call_ensure_begun(fxtap_call *call);
void fx_call_memory_clear(fx_call_memory *memory);
/* Begun by another process, before a fork. */
bool fx_call_is_stale(const fxtap_call *call);
/* Ends the calls that the caller did not, before their dump is closed: as failed ones. No job is left. */
void fx_calls_abandon(fxtap_dump *dump);
/* In a forked child: the steps of the calls that its parent began are nobody's. */
void fx_calls_forget_steps(fxtap_dump *dump, unsigned generation);

/* ---- dump.c, root.c ---- */

/* The absolute path: what exists of it with links and ".." resolved, the rest by its parts. The caller frees *out. */
fxtap_status fx_root_resolve(const char *path, char **out);

uint64_t fx_dump_now_us(const fxtap_dump *dump);
/* How many forks lie between this process and the one that opened the first dump. */
unsigned fx_fork_count(void);

#endif
