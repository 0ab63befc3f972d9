/*
 * reader.h - what the reader's files share. Structs begin with their public part, so that a pointer to it is a
 * pointer to them. All that has no other owner lives in the reader's arena.
 */
#ifndef FX_READER_READER_H
#define FX_READER_READER_H

#include <pthread.h>

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
    int64_t id; /* in the index; 0: known by file names alone */
    fx_node *next; /* in order of execution */
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
    const char *name; /* {stem of the full name}.{IO}.{position} */
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
    unsigned n_runs;   /* that lie in the folder */
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
    fx_id_range node_ids;          /* in the index: of its nodes, and of its slots; other graphs' may lie between */
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
    const char *only_step; /* its folder's name, or NULL */
    const char **plain_files; /* PLAIN and FILE: relative paths, sorted */
    size_t n_plain_files;
    size_t plain_files_capacity;
    struct sqlite3 *database; /* the one index that is open now, or NULL */
    int database_folder_fd;   /* what it is reached through, or -1; of no meaning without a database */
    fx_rank *database_rank;
    uint64_t database_bytes;
    bool has_undefined; /* the open index has a table of undefined elements */
};

/* ---- folders (reader_folder.c) ---- */

typedef struct fx_entry {
    const char *name; /* in the listing's arena */
    unsigned char type; /* DT_REG, DT_DIR, DT_LNK, ... never DT_UNKNOWN */
} fx_entry;

typedef struct fx_listing {
    fx_arena arena;
    fx_entry *entries; /* owned, sorted by fx_natural_compare */
    size_t count;
    size_t capacity;
} fx_listing;

/* All entries but "." and "..". FXTAP_E_IO. */
fxtap_status fx_listing_read(const char *path, fx_listing *out);
void fx_listing_clear(fx_listing *listing);

/* Whether this thread's last error may be gone at the next try: no descriptors or no memory left. */
bool fx_error_may_pass(void);
/* After FXTAP_E_IO: the folder is left out with a warning; where the error may pass, it is the caller's. */
fxtap_status fx_reader_leave_out(fxtap_reader *reader);

/* "a/b" in the reader's arena; NULL: no memory. */
const char *fx_reader_join(fxtap_reader *reader, const char *folder, const char *name);
/* Interned. */
const char *fx_reader_text(fxtap_reader *reader, const char *text);
const char *fx_path_base(const char *path);
bool fx_has_suffix(const char *name, const char *suffix);

/* Keeps a line; repeated ones are kept once. FXTAP_E_NOMEM. */
fxtap_status fx_reader_warn(fxtap_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- finding what a path is (reader_open.c) ---- */

fxtap_status fx_reader_find(fxtap_reader *reader);

/* ---- the tree (reader_tree.c) ---- */

/* Graphs and steps of a rank, from the index and the folders. */
fxtap_status fx_rank_load(fxtap_reader *reader, fx_rank *rank);
void fx_rank_clear(fx_rank *rank);
fxtap_status fx_graph_create(fxtap_reader *reader, fx_rank *rank, uint32_t number, fx_graph **out);
fxtap_status fx_graph_add_step(fxtap_reader *reader, fx_graph *graph, const fx_step *step);
/* Nodes, and the files of steps that the index does not have. */
fxtap_status fx_graph_load_nodes(fxtap_reader *reader, fx_graph *graph);
/* Orders and the array of nodes, from the chain. */
fxtap_status fx_graph_number_nodes(fxtap_reader *reader, fx_graph *graph);
/* The run that is meant by 0; 0 where there is none. */
int64_t fx_rank_latest_run(const fxtap_reader *reader, const fx_rank *rank);
/* Whether a query for `run` (0 latest, -1 all) means this graph. */
bool fx_graph_is_of_run(const fx_graph *graph, int64_t run, int64_t latest);

/* ---- names (reader_names.c) ---- */

/* Reads a step's folder by the names in it and adds the nodes that the graph does not have yet. */
fxtap_status fx_step_read_files(fxtap_reader *reader, fx_graph *graph, fx_step *step);
/* Forgets the files, until they are read again. */
void fx_step_drop_files(fx_step *step);

/* ---- the index: opening it (reader_index.c), its rows (reader_rows.c, reader_values.c) ---- */

struct sqlite3_stmt;

/* A query. Rows are counted: a sound index has no more of them than its file has bytes. */
typedef struct fx_rows {
    fxtap_reader *reader;
    struct sqlite3_stmt *statement;
    uint64_t n_left;
} fx_rows;

/*
 * FXTAP_E_DATABASE where the index is not what it should be: it is read by names instead. FXTAP_E_IO (locked by somebody,
 * a device that failed, no descriptors left), FXTAP_E_NOMEM: nothing is known of it, and the caller may try again.
 */
fxtap_status fx_rows_begin(fxtap_reader *reader, fx_rank *rank, const char *sql, const int64_t *parameters,
                           fx_rows *out);
/* False in *more_out behind the last row. Errors as above. */
fxtap_status fx_rows_next(fx_rows *rows, bool *more_out);
void fx_rows_end(fx_rows *rows);
int64_t fx_rows_int(const fx_rows *rows, int column);
/* Interned in the reader; "" for NULL. NULL: no memory. */
const char *fx_rows_text(const fx_rows *rows, int column);
bool fx_rows_is_null(const fx_rows *rows, int column);
/* 16 bytes; zero where there are not that many. */
fxtap_hash128 fx_rows_hash(const fx_rows *rows, int column);


/* FXTAP_E_UNSUPPORTED for an index from the future; false in *usable_out, with a warning, where it is none. */
fxtap_status fx_index_probe(fxtap_reader *reader, const char *rank_path, bool *usable_out);
/* Opens the rank's index, unless it is open. Freed by fx_index_release(), at the end of each public function. */
fxtap_status fx_index_use(fxtap_reader *reader, fx_rank *rank);
void fx_index_release(fxtap_reader *reader);
fxtap_status fx_index_load_runs(fxtap_reader *reader, fx_rank *rank);
fxtap_status fx_index_load_graphs(fxtap_reader *reader, fx_rank *rank);
fxtap_status fx_index_load_steps(fxtap_reader *reader, fx_rank *rank, fx_texts *folders);
fxtap_status fx_index_load_nodes(fxtap_reader *reader, fx_graph *graph);
fxtap_status fx_index_load_slots(fxtap_reader *reader, fx_graph *graph);
fxtap_status fx_index_load_record(fxtap_reader *reader, fx_graph *graph);
/* Whether the rank's index has a plain table of that name, which some have. */
fxtap_status fx_index_has_table(fxtap_reader *reader, fx_rank *rank, const char *name, bool *out);
/* SQLite's own check of its pages; where it is not sound, what was found first is in `detail`. */
fxtap_status fx_index_is_sound(fxtap_reader *reader, fx_rank *rank, bool *out, char *detail, size_t capacity);

/* ---- tensors (reader_tensors.c) ---- */

typedef struct fx_tensor {
    fxtap_tensor_info info;
    size_t order; /* of its slot, within the graph */
    size_t place; /* in the list; set where a check needs it */
} fx_tensor;

typedef struct fx_shape {
    int32_t ndim;
    int64_t extents[];
} fx_shape;

struct fxtap_tensor_list {
    pthread_mutex_t lock; /* arena, texts, what is loaded of a tensor: fxtap_tensor_load_ functions run in any thread */
    fx_arena arena;
    fx_tensor **items;
    size_t count;
    size_t capacity;
    uint32_t flags; /* the reader's */
    fx_texts shapes; /* "2,3" -> fx_shape */
};

/* What a query lets through: decided once for a node and a slot. */
bool fx_query_has(const fxtap_tensor_query *query, const fxtap_node_info *node, const char *tensor_name, fxtap_io io);

/* dtype, shape, order and bytes as the file's header has them. FXTAP_E_NOMEM. */
fxtap_status fx_tensor_take_meta(fxtap_tensor_list *list, fxtap_tensor_info *info, const fxtap_npy *npy);

/* A zeroed tensor at the end of the list; NULL: no memory. */
fx_tensor *fx_tensor_list_add(fxtap_tensor_list *list);
/* "folder/name" in the list's arena; NULL: no memory. */
const char *fx_tensor_list_path(fxtap_tensor_list *list, const char *folder, const char *name, size_t name_length);
/* Whether the index has a row of the step; true also where it cannot tell. FXTAP_E_NOMEM and the like. */
fxtap_status fx_index_has_tensors(fxtap_reader *reader, const fx_graph *graph, const fx_step *step, bool *out);
/* The rows of one step, from the index. */
fxtap_status fx_index_load_tensors(fxtap_reader *reader, fx_graph *graph, const fx_step *step,
                                   const fxtap_tensor_query *query, fxtap_tensor_list *list);

#endif
