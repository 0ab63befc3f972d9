/*
 * fxtap/reader.h - reading a dump, with or without an index.
 *
 * What may be opened: a dump root, a rank, graph or step folder (also partial and failed ones), a plain folder of
 * .npy files, one .npy file. Where there is an index (fxtap.db) it says everything; without one (TorchAir's own
 * dumps) the names do. Nothing is trusted: names and index rows are checked, paths never leave the folder. The path
 * that is opened may itself be a symbolic link; links inside it are not followed, each is named by a warning.
 *
 * Everything an accessor returns is borrowed and lives as long as the reader (lists: as long as the list).
 * Thread rule: one thread uses a reader; finished lists may be read by any number of threads.
 */
#ifndef FXTAP_READER_H
#define FXTAP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/dump.h"
#include "fxtap/graph.h"
#include "fxtap/npy.h"
#include "fxtap/stats.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_reader fxtap_reader;

typedef enum fxtap_origin_kind {
    FXTAP_READ_INDEXED = 1, /* an fxtap dump */
    FXTAP_READ_NAMED = 2,   /* no index: TorchAir's tree, read by its names */
    FXTAP_READ_PLAIN = 3,   /* a folder of .npy files with other names: each is one tensor, by relative path */
    FXTAP_READ_FILE = 4     /* one .npy file */
} fxtap_origin_kind;

/*
 * FXTAP_E_IO; FXTAP_E_NOT_FOUND if there is nothing to read; FXTAP_E_UNSUPPORTED if all indexes have a later version
 * (if only some have, their ranks are read by file names, with a warning).
 *
 * Indexes are opened when they are needed. If one is foreign, damaged or not readable for this user, its rank is read
 * by file names, with a warning. If an error may be temporary (locked by another process for over 2 s: errno EBUSY; a
 * device error; no descriptors or memory left), the function fails with FXTAP_E_IO or FXTAP_E_NOMEM, the reader is
 * unchanged, and the call may be repeated.
 */
FXTAP_API fxtap_status fxtap_reader_open(const char *path, fxtap_reader **out);
/* The same with FXTAP_READ_ flags of fxtap/npy.h, which hold for every file that is read through it. */
FXTAP_API fxtap_status fxtap_reader_open_with(const char *path, uint32_t flags, fxtap_reader **out);
FXTAP_API void fxtap_reader_close(fxtap_reader *reader);

FXTAP_API fxtap_origin_kind fxtap_reader_kind(const fxtap_reader *reader);
FXTAP_API const char *fxtap_reader_path(const fxtap_reader *reader); /* absolute */
FXTAP_API uint32_t fxtap_reader_flags(const fxtap_reader *reader);   /* as given to fxtap_reader_open_with() */
/* One line for each thing that could not be read as it should (an unreadable index, ...). */
FXTAP_API size_t fxtap_reader_warning_count(const fxtap_reader *reader);
FXTAP_API const char *fxtap_reader_warning(const fxtap_reader *reader, size_t i);
/*
 * FXTAP_OK, or FXTAP_E_IO with the message and errno of the first folder that exists but could not be read: it was left
 * out, with a warning, so that what was returned is only a part of the dump.
 */
FXTAP_API fxtap_status fxtap_reader_left_out(const fxtap_reader *reader);

/* ---- ranks, runs, graphs, steps, nodes: in order, loaded when first asked for ---- */

typedef struct fxtap_rank_info {
    int32_t world_size; /* 0 where not known (a plain folder) */
    int32_t rank;
    const char *path;
    bool has_index;
} fxtap_rank_info;

FXTAP_API size_t fxtap_reader_rank_count(const fxtap_reader *reader);
FXTAP_API const fxtap_rank_info *fxtap_reader_rank(const fxtap_reader *reader, size_t i);

typedef struct fxtap_run_info {
    int64_t run; /* its id in the index, from 1 */
    int64_t pid;
    const char *host;
    const char *versions;
    const char *command;
    const char *type; /* "npy", "stats", "verify" */
    uint64_t started_us;
    uint64_t ended_us; /* 0: still running, or killed */
} fxtap_run_info;

/* Runs of a rank, in order of their start; 0 without an index. fxtap_reader_run is NULL past the end. */
FXTAP_API size_t fxtap_reader_run_count(fxtap_reader *reader, size_t rank_i);
FXTAP_API const fxtap_run_info *fxtap_reader_run(fxtap_reader *reader, size_t rank_i, size_t i);

typedef struct fxtap_graph_info {
    size_t rank_i;
    int64_t run;
    uint32_t graph;        /* the number G of graph_{G} */
    fxtap_graph_kind kind; /* 0 where not known */
    bool has_keys;
    fxtap_hash128 strict_key;
    fxtap_hash128 structural_key;
    uint32_t occurrence; /* among equal strict keys of the run, from 0, in order of compilation */
    size_t n_nodes;
    size_t n_dumped;  /* nodes that are dumped */
    size_t n_steps;   /* whole ones */
    const char *path; /* of graph_{G} */
} fxtap_graph_info;

/*
 * Graphs of all ranks. `run` 0: the latest run of each rank (that has a graph); -1: all runs; else that one.
 * Without an index a folder's files may stem from several runs: 0 means each step's latest, -1 every file.
 */
FXTAP_API fxtap_status fxtap_reader_graphs(fxtap_reader *reader, int64_t run, const fxtap_graph_info *const **out,
                                           size_t *n_out);

/* The graph's record, deserialised at first use; FXTAP_E_NOT_FOUND without an index. */
FXTAP_API fxtap_status fxtap_reader_record(fxtap_reader *reader, const fxtap_graph_info *graph,
                                           const fxtap_graph **out);

typedef enum fxtap_step_state {
    FXTAP_STEP_WHOLE = 1,
    FXTAP_STEP_FAILED = 2, /* STEP.failed-{n} */
    FXTAP_STEP_PARTIAL = 3 /* .{CALL}.partial: the process was killed, or is still writing it */
} fxtap_step_state;

typedef struct fxtap_step_info {
    const fxtap_graph_info *graph;
    fxtap_step_state state;
    int64_t step;       /* -1 for a partial one */
    int64_t call;       /* number over the whole process, from 0; -1 where not known */
    const char *folder; /* absolute */
    const char *reason; /* why it failed; "" */
    uint64_t started_us;
    uint64_t ended_us;
} fxtap_step_info;

FXTAP_API fxtap_status fxtap_reader_steps(fxtap_reader *reader, const fxtap_graph_info *graph,
                                          const fxtap_step_info *const **out, size_t *n_out);

typedef struct fxtap_node_info {
    const fxtap_graph_info *graph;
    size_t order; /* execution order in the graph, from 0; without an index by first time stamp */
    const char *name;
    const char *target;
    const char *source_file; /* "" where not known */
    int32_t source_line;
    const char *source_function;
    const char *source_code;
    const char *stack;
    const char *module_path;
    const char *module_type;
    const char *skipped; /* why it is not dumped; NULL when it is */
    uint32_t flags;      /* FXTAP_NODE_ bits */
} fxtap_node_info;

FXTAP_API fxtap_status fxtap_reader_nodes(fxtap_reader *reader, const fxtap_graph_info *graph,
                                          const fxtap_node_info *const **out, size_t *n_out);

/*
 * Whether a pattern (fxtap_glob_match) chooses a node: it matches the name, the target, the module path, as written or
 * without its root ("L['self'].module.fc", "module.fc", "fc"), or, where the pattern has '/', ':' or ".py" in it, the
 * source line ("/home/me/model.py:12", "model.py:12").
 */
FXTAP_API bool fxtap_node_matches(const char *pattern, const fxtap_node_info *node);

/*
 * FXTAP_E_NOT_FOUND where a pattern chooses no operator and no tensor of a run (0 latest, -1 all): the message names
 * the nearest. Operators that were not dumped count with `with_skipped` alone; else the message says why they were not.
 */
FXTAP_API fxtap_status fxtap_reader_check_pattern(fxtap_reader *reader, int64_t run, const char *pattern,
                                                  bool with_skipped);

/* ---- tensors ---- */

typedef struct fxtap_tensor_info {
    const fxtap_step_info *step; /* NULL for plain folders and single files */
    const fxtap_node_info *node; /* NULL for plain folders and single files */
    fxtap_io io;
    const char *position; /* "0", "1.2", "alpha" */
    const char *arg_name; /* from the schema; "" where not known */
    const char *name;     /* the file's name without folder and time stamp, in full: "add-aten.add.Tensor.INPUT.0" */
    const char *path;     /* absolute; NULL when there is no file (stats, skipped) */
    const char *skipped;  /* what was recorded in place of a value: "None", "meta tensor"; NULL when it is a tensor */
    uint64_t stamp_us;
    bool has_meta;     /* dtype, shape, bytes are known (from the index, or after fxtap_tensor_load_meta) */
    fxtap_dtype dtype; /* original */
    fxtap_dtype saved_dtype;
    int32_t ndim;
    const int64_t *shape;   /* as saved */
    const int64_t *strides; /* original strides; NULL where not known */
    const char *layout;     /* "torch.strided", ... */
    const char *device;
    bool fortran_order;
    uint64_t bytes; /* of data, as saved */
    bool has_hash;
    fxtap_hash128 hash; /* XXH3-128 of the data bytes */
    bool has_stats;
    fxtap_stats stats;                      /* of the defined elements */
    const fxtap_undefined_range *undefined; /* elements that hold nothing, where the index knows of some */
    size_t n_undefined;
    uint64_t undefined_count;   /* elements of all these */
    fxtap_hash128 defined_hash; /* of the bytes of the others, where there are some */
} fxtap_tensor_info;

typedef struct fxtap_tensor_query {
    size_t struct_size;
    int64_t run;          /* 0 latest, -1 all */
    int64_t rank;         /* -1: all */
    int64_t graph;        /* -1: all */
    int64_t step;         /* -1: all whole steps */
    bool with_incomplete; /* failed and partial steps too */
    const char *pattern;  /* as fxtap_node_matches(), or on the tensor's name; NULL: all */
    int io;               /* -1: all, else an fxtap_io */
} fxtap_tensor_query;

typedef struct fxtap_tensor_list fxtap_tensor_list;

/* In order of rank, graph, step, execution, INPUT before OUTPUT before INOUT, position compared numerically. */
FXTAP_API fxtap_status fxtap_reader_tensors(fxtap_reader *reader, const fxtap_tensor_query *query,
                                            fxtap_tensor_list **out);

/*
 * The same step by step, so that not all tensors need be in memory at once: the steps that a query selects and that
 * contain a tensor, in order (the caller frees *out with fxtap_free()); an empty list; and what the query selects of
 * one step (NULL: of the files that belong to no step), appended to a list. The index stays open from call to call:
 * fxtap_reader_release() closes it until it is needed again. Errors as fxtap_reader_open().
 */
FXTAP_API fxtap_status fxtap_reader_query_steps(fxtap_reader *reader, const fxtap_tensor_query *query,
                                                const fxtap_step_info ***out, size_t *n_out);
FXTAP_API fxtap_status fxtap_tensor_list_create(fxtap_tensor_list **out);
FXTAP_API fxtap_status fxtap_reader_list_step(fxtap_reader *reader, const fxtap_step_info *step,
                                              const fxtap_tensor_query *query, fxtap_tensor_list *list);
FXTAP_API void fxtap_reader_release(fxtap_reader *reader);

/*
 * The recorded hash of one input of a node in each of n steps of the node's graph: far less to read than lists of these
 * steps. 0 where the index has no such value, or where there is no index that can be read. FXTAP_E_IO, FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_reader_input_hashes(fxtap_reader *reader, const fxtap_node_info *node,
                                                 const char *position, const fxtap_step_info *const *steps, size_t n,
                                                 fxtap_hash128 *out);

FXTAP_API void fxtap_tensor_list_free(fxtap_tensor_list *list);
FXTAP_API size_t fxtap_tensor_list_count(const fxtap_tensor_list *list);
FXTAP_API const fxtap_tensor_info *fxtap_tensor_list_at(const fxtap_tensor_list *list, size_t i);
/*
 * A copy of what is known of a tensor, by any thread. What it points at lives as long as the list. FXTAP_E_NOT_FOUND.
 */
FXTAP_API fxtap_status fxtap_tensor_list_get(fxtap_tensor_list *list, size_t i, fxtap_tensor_info *out);

/*
 * Opens a tensor's file: regular files only, symbolic links are refused. FXTAP_E_NOT_FOUND where there is no file,
 * else as fxtap_npy_open(). The caller closes *out. Any number of threads at once.
 */
FXTAP_API fxtap_status fxtap_tensor_open(const fxtap_tensor_list *list, size_t i, fxtap_npy **out);

/*
 * Fills has_meta's fields from the file's header, where the index did not. Errors as fxtap_tensor_open().
 * Any number of threads may load tensors of one list, the same ones too. Who looks at a tensor that another thread may
 * be loading takes a copy with fxtap_tensor_list_get(), and not what fxtap_tensor_list_at() points at.
 */
FXTAP_API fxtap_status fxtap_tensor_load_meta(fxtap_tensor_list *list, size_t i);
/* The same for statistics and hash: reads the data. FXTAP_E_UNSUPPORTED for text, which has no statistics. */
FXTAP_API fxtap_status fxtap_tensor_load_stats(fxtap_tensor_list *list, size_t i);

/* ---- findings ---- */

typedef struct fxtap_finding { /* what capture found wrong with an operator's use of memory */
    fxtap_finding_kind kind;
    const fxtap_step_info *step;
    const fxtap_node_info *node;
    const char *position; /* of the argument */
    const char *arg_name; /* from the schema; "" where not known */
    uint64_t stamp_us;
    uint64_t count; /* UNWRITTEN_READ: elements among `total` of the argument */
    uint64_t total;
} fxtap_finding;

/*
 * Findings of the steps that a query means (its pattern and io do not count), in order of steps, then of execution. The
 * caller frees *out with fxtap_free(); what it points to is the reader's. None without an index.
 */
FXTAP_API fxtap_status fxtap_reader_findings(fxtap_reader *reader, const fxtap_tensor_query *query, fxtap_finding **out,
                                             size_t *n_out);
/* One line: "writes to its argument x without declaring it". */
FXTAP_API void fxtap_finding_text(const fxtap_finding *finding, char *dst, size_t capacity);

/* ---- checking ---- */

typedef enum fxtap_problem_kind {
    FXTAP_PROBLEM_MISSING_FILE = 1, /* in the index, not on disk */
    FXTAP_PROBLEM_BAD_FILE = 2,     /* truncated, foreign, unreadable */
    FXTAP_PROBLEM_UNINDEXED = 3,    /* on disk, not in the index */
    FXTAP_PROBLEM_HASH = 4,         /* contents differ from the recorded hash */
    FXTAP_PROBLEM_PARTIAL_STEP = 5,
    FXTAP_PROBLEM_FAILED_STEP = 6,
    FXTAP_PROBLEM_NON_FINITE = 7,        /* NaN or Inf among the values */
    FXTAP_PROBLEM_TRAILING = 8,          /* bytes after the data */
    FXTAP_PROBLEM_INDEX = 9,             /* the index itself cannot be read */
    FXTAP_PROBLEM_UNDECLARED_WRITE = 10, /* findings: an operator changed an argument that it does not declare */
    FXTAP_PROBLEM_UNWRITTEN_READ = 11    /* an operator computed with memory that nothing had written */
} fxtap_problem_kind;

typedef struct fxtap_problem {
    fxtap_problem_kind kind;
    const char *path;
    const char *detail;              /* one line */
    const fxtap_tensor_info *tensor; /* NULL where it is about no tensor */
    const fxtap_node_info *node;     /* with its step: of the tensor, or that a finding is about; NULL: neither */
    const fxtap_step_info *step;
    bool is_origin; /* NON_FINITE: an output (or INOUT) of a node whose saved inputs are all finite */
} fxtap_problem;

typedef struct fxtap_check fxtap_check;

/*
 * Checks every file of the dump (of all runs) against header, size and (with `read_data`) recorded hash; finds
 * non-finite values, partial and failed steps, missing and unindexed files. Problems of the files come first, in order
 * of the tree; then the non-finite values, in order of execution, the operators that produced one (is_origin) before
 * those that only carry it on. Elements that are undefined are not judged, nor are outputs of FXTAP_NODE_UNDEFINED
 * where the index does not tell these. Findings of capture come between files and values. Without an index,
 * non-finite values are found only with `read_data`. A file with several names is read once. `progress` (may be
 * NULL) is called in the calling thread.
 */
FXTAP_API fxtap_status fxtap_reader_check(fxtap_reader *reader, bool read_data, fxtap_progress progress, void *context,
                                          fxtap_check **out);
FXTAP_API void fxtap_check_free(fxtap_check *check);
FXTAP_API uint64_t fxtap_check_file_count(const fxtap_check *check);
FXTAP_API size_t fxtap_check_problem_count(const fxtap_check *check);
FXTAP_API const fxtap_problem *fxtap_check_problem(const fxtap_check *check, size_t i);

#ifdef __cplusplus
}
#endif
#endif
