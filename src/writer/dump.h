/*
 * dump.h - a dump session, and the order of its locks.
 *
 * No lock is held while another is taken, except as stated:
 *   dump->rank_lock   the rank folder; held while it is looked up or made. contents.lock may be taken inside it
 *   dump->lock        captures, slots, calls and their steps; never held during I/O
 *   index.lock        the database; held for the whole end of a call. All other locks may be taken inside it
 *   contents.move     held while a step's folder moves into place. contents.lock may be taken inside it
 *   contents.lock     the table of contents, the folders' reference counts and paths
 *   queue.lock        queued and pending jobs, room, counts of unfinished jobs, states of values
 */
#ifndef FX_WRITER_DUMP_H
#define FX_WRITER_DUMP_H

#include <pthread.h>

#include "writer/call.h"
#include "writer/contents.h"
#include "writer/index.h"
#include "writer/queue.h"

struct fxtap_dump {
    fxtap_dump *next; /* list of all open dumps, for fork */
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
    fx_rank_folder *open_rank; /* rank_lock */
    uint64_t n_ranks;          /* folders opened so far. rank_lock */
    pthread_mutex_t lock;
    fxtap_capture *captures;
    fxtap_call *calls; /* that have not ended. lock */
    atomic_uint_fast64_t next_call;
    unsigned generation;
    atomic_uint_fast64_t indexed_rank; /* number of the rank folder whose index is open */
    atomic_bool has_no_links;
    _Atomic(char *) warning; /* NULL: none */
    fx_call_memory spare;    /* lock */
    fx_queue queue;
    fx_contents contents;
    fx_index index;
};

uint64_t fx_dump_now_us(const fxtap_dump *dump);
/* How many forks lie between this process and the one that opened the first dump. */
unsigned fx_fork_count(void);

/* As in the index; NULL if the type is not known. */
const char *fx_dump_type_name(fxtap_dump_type type);

#endif
