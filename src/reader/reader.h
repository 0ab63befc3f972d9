/*
 * reader.h - ranks, graphs, steps, nodes and slots of a dump. Each structure begins with its public part, so that a
 * pointer to one is also a pointer to the other. Memory is in the reader's arena unless noted.
 */
#ifndef FX_READER_READER_H
#define FX_READER_READER_H

#include "fxtap/reader.h"
#include "index/parse_file_name.h"
#include "util/error.h"
#include "util/texts.h"

struct sqlite3;

typedef struct fx_rank fx_rank;
typedef struct fx_node fx_node;

/* A file of a step without index rows. There may be very many. */
typedef struct fx_file {
    const char *name;
    fx_node *node;
    unsigned run; /* index of its run within the folder */
} fx_file;

struct fx_node {
    fxtap_node_info info;
    const char *stem; /* file names up to ".INPUT" */
    size_t stem_length;
    int64_t id;                    /* in the index; 0: known only by file names */
    fx_node *next;                 /* in order of execution */
    const struct fx_step *seen_in; /* while a folder is read by file names: the step, run and time of its last file */
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
    const char *name;   /* {stem with the full names}.{IO}.{position} */
    const char *prefix; /* the file name up to the time stamp, including the dot */
    size_t prefix_length;
    size_t order; /* index among the graph's slots */
} fx_slot;

typedef struct fx_step {
    fxtap_step_info info;
    int64_t id;        /* in the index; 0: known only by its folder */
    const char *final; /* of a partial step with rows: its final folder; else NULL */
    bool is_link;      /* the path contains a symbolic link: its files are not read */
    bool is_read;      /* `files` has been read */
    fx_file *files;    /* of a step without index rows: one block, followed by the names, in order; owned */
    size_t n_files;
    unsigned n_runs; /* in the folder */
} fx_step;

typedef struct fx_graph {
    fxtap_graph_info info;
    int64_t id; /* in the index; 0: known only by its folder */
    fxtap_graph *record;
    fx_node *first_node;           /* in order of execution */
    const fxtap_node_info **nodes; /* the same as an array, once all are loaded; each is an fx_node */
    size_t n_nodes;
    fx_texts stems;                /* stem -> fx_node */
    const fxtap_step_info **steps; /* each is an fx_step */
    size_t n_steps;
    size_t steps_capacity;
    fx_id_range node_ids; /* ids of its nodes and slots in the index; ids of other graphs may lie between */
    fx_id_range slot_ids;
    fx_slot *slots; /* ascending id */
    size_t n_slots;
    bool has_nodes;
    bool has_slots;
    fx_rank *rank;
} fx_graph;

struct fx_rank {
    fxtap_rank_info info;
    bool is_loaded; /* graphs and steps are loaded */
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
    fx_texts texts; /* interned texts */
    uint32_t flags; /* FXTAP_READ_ flags for tensor files */
    fxtap_origin_kind kind;
    const char *path;
    fx_rank **ranks;
    size_t n_ranks;
    size_t ranks_capacity;
    const char **warnings;
    size_t n_warnings;
    size_t warnings_capacity;
    fx_error_copy left_out; /* the first folder that could not be read; FXTAP_OK: none */
    fx_graph_list *lists;   /* handed out by fxtap_reader_graphs() */
    bool has_only_graph;    /* opened at a graph or step folder: only that is read */
    uint32_t only_graph;
    const char *only_graph_path; /* the folder's path, even if its name is not a graph's */
    const char *only_step;       /* the step folder's name, or NULL */
    const char **plain_files;    /* of a plain folder or file: relative paths, sorted */
    size_t n_plain_files;
    size_t plain_files_capacity;
    struct sqlite3 *database; /* the index that is currently open, or NULL */
    int database_folder_fd;   /* descriptor of its folder, or -1; undefined without a database */
    fx_rank *database_rank;
    const char *database_path;
    bool database_is_copy; /* a private copy: a killed process left the index with a log */
    uint64_t database_bytes;
    bool has_undefined; /* the open index has the table of undefined elements */
};

/* Determines what the path is, and lists its ranks (open.c). */
fxtap_status fx_reader_find(fxtap_reader *reader);

/* Whether a query for `run` (0: the latest, -1: all) selects this graph. */
bool fx_graph_is_of_run(const fx_graph *graph, int64_t run, int64_t latest);

#endif
