/*
 * reader.h - ranks, graphs, steps, nodes and slots of a dump. Structures begin with their public part, so that a
 * pointer to one is a pointer to the other. What has no other owner is in the reader's arena.
 */
#ifndef FX_READER_READER_H
#define FX_READER_READER_H

#include "fxtap/reader.h"
#include "index/parse_file_name.h"
#include "util/texts.h"

struct sqlite3;

typedef struct fx_rank fx_rank;
typedef struct fx_node fx_node;

/* A file of a step, read by its name: there may be very many. */
typedef struct fx_file {
    const char *name;
    fx_node *node;
    unsigned run; /* which of the runs that lie in one folder, from 0 */
} fx_file;

struct fx_node {
    fxtap_node_info info;
    const char *stem; /* file names up to ".INPUT" */
    size_t stem_length;
    int64_t id;                    /* in the index; 0: known by file names alone */
    fx_node *next;                 /* in order of execution */
    const struct fx_step *seen_in; /* while a folder is read by its names: where, in which of its runs, and when */
    unsigned seen_run;
    uint64_t seen_us;
};

typedef struct fx_id_range {
    int64_t first;
    int64_t last; /* 0: empty */
} fx_id_range;

typedef struct fx_slot {
    int64_t id;
    fx_node *node;
    fxtap_io io;
    const char *position;
    const char *arg_name;
    const char *name;   /* {stem of the full name}.{IO}.{position} */
    const char *prefix; /* what the file's name has before the time stamp, with the last dot */
    size_t prefix_length;
    size_t order; /* place among the graph's slots */
} fx_slot;

typedef struct fx_step {
    fxtap_step_info info;
    int64_t id;        /* in the index; 0: known by its folder alone */
    const char *final; /* of a partial step with rows: the folder it is being moved into, or NULL */
    bool is_link;      /* a symbolic link is on the way: its files are not touched */
    bool is_read;      /* files, below, are there */
    fx_file *files;    /* of a step without index rows: one block with their names behind it, in order; owned */
    size_t n_files;
    unsigned n_runs; /* that lie in the folder */
} fx_step;

typedef struct fx_graph {
    fxtap_graph_info info;
    int64_t id; /* in the index; 0: known by its folder alone */
    fxtap_graph *record;
    fx_node *first_node;           /* in order of execution */
    const fxtap_node_info **nodes; /* the same as an array, once all are known; each is an fx_node */
    size_t n_nodes;
    fx_texts stems;                /* stem -> fx_node */
    const fxtap_step_info **steps; /* each is an fx_step */
    size_t n_steps;
    size_t steps_capacity;
    fx_id_range node_ids; /* in the index: of its nodes, and of its slots; other graphs' may lie between */
    fx_id_range slot_ids;
    fx_slot *slots; /* ascending id */
    size_t n_slots;
    bool has_nodes;
    bool has_slots;
    fx_rank *rank;
} fx_graph;

struct fx_rank {
    fxtap_rank_info info;
    bool is_loaded; /* graphs and steps */
    bool has_runs;
    bool has_slot_ids; /* of its graphs */
    fxtap_run_info *runs;
    size_t n_runs;
    fx_graph **graphs; /* of all runs */
    size_t n_graphs;
    size_t graphs_capacity;
};

typedef struct fx_graph_list {
    struct fx_graph_list *next;
    int64_t run;
    const fxtap_graph_info **graphs;
    size_t count;
} fx_graph_list;

struct fxtap_reader {
    fx_arena arena;
    fx_texts texts; /* interned */
    uint32_t flags; /* FXTAP_READ_, of the tensors' files */
    fxtap_origin_kind kind;
    const char *path;
    fx_rank **ranks;
    size_t n_ranks;
    size_t ranks_capacity;
    const char **warnings;
    size_t n_warnings;
    size_t warnings_capacity;
    fx_graph_list *lists; /* handed out by fxtap_reader_graphs() */
    bool has_only_graph;  /* opened at a graph or step folder: nothing else is looked at */
    uint32_t only_graph;
    const char *only_graph_path; /* as the folder lies, also where its name is no graph's */
    const char *only_step;       /* its folder's name, or NULL */
    const char **plain_files;    /* PLAIN and FILE: relative paths, sorted */
    size_t n_plain_files;
    size_t plain_files_capacity;
    struct sqlite3 *database; /* the one index that is open now, or NULL */
    int database_folder_fd;   /* what it is reached through, or -1; of no meaning without a database */
    fx_rank *database_rank;
    const char *database_path;
    bool database_is_copy; /* a private copy: a killed process left the index with a log */
    uint64_t database_bytes;
    bool has_undefined; /* the open index has a table of undefined elements */
};

/* Finds out what the path is, and its ranks (open.c). */
fxtap_status fx_reader_find(fxtap_reader *reader);

/* Whether a query for `run` (0: the latest, -1: all) selects this graph. */
bool fx_graph_is_of_run(const fx_graph *graph, int64_t run, int64_t latest);

#endif
