/*
 * fxtap/print.h - prints a graph record: for people, for programs, for TensorBoard and Netron.
 *
 * Everything is printed from the record. A part of a graph (a neighbourhood, the nodes of a module) is a new record,
 * made by fxtap_graph_select(), so every format can print it.
 */
#ifndef FXTAP_PRINT_H
#define FXTAP_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/buffer.h"
#include "fxtap/graph.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fxtap_print_format {
    FXTAP_PRINT_FX = 1,   /* runnable Python: a module with a function `forward` */
    FXTAP_PRINT_JSON = 2, /* docs/graph-json.md */
    FXTAP_PRINT_DOT = 3,  /* Graphviz */
    FXTAP_PRINT_HTML = 4, /* one page: picture, search, source lines, statistics */
    FXTAP_PRINT_PY = 5,   /* TorchAir's graph dump: FX lines and lowered GE calls */
    FXTAP_PRINT_TXT = 6,  /* the lowered graph as GE's protobuf text */
    FXTAP_PRINT_PBTXT = 7 /* the lowered graph as a TensorFlow GraphDef in text */
} fxtap_print_format;

/* The format of a name ("fx", "json", "dot", "html", "py", "txt", "pbtxt"). FXTAP_E_INVALID lists all names. */
FXTAP_API fxtap_status fxtap_print_format_from_name(const char *name, fxtap_print_format *out);

/* One saved tensor of a node: a line of the page. Strings are borrowed during the call. */
typedef struct fxtap_print_stat {
    const char *place; /* "INPUT.0", "OUTPUT.1" */
    const char *shape; /* "2, 3" */
    const char *path;  /* the file; NULL if there is none */
    fxtap_stats stats;
    bool has_stats;
} fxtap_print_stat;

/* Returns the saved tensors of a node in *out, and their number. *out is valid until the next call. */
typedef size_t (*fxtap_print_stats)(void *context, const char *node, const fxtap_print_stat **out);

typedef struct fxtap_print_options {
    size_t struct_size;
    fxtap_print_format format;
    const char *title;       /* shown on the page, in dot and as a comment; NULL: none */
    bool optimised;          /* py, txt, pbtxt: the graph as TorchAir writes it before the first call */
    fxtap_print_stats stats; /* html: statistics of a node; NULL: none */
    void *context;
} fxtap_print_options;

/* Appends the text of the graph. FXTAP_E_INVALID, FXTAP_E_NOMEM. `options` is borrowed during the call. */
FXTAP_API fxtap_status fxtap_graph_print(const fxtap_graph *graph, const fxtap_print_options *options,
                                         fxtap_buffer *out);

/* ---- a part of a graph ---- */

typedef struct fxtap_select_options {
    size_t struct_size;
    const char *around; /* a node's name: selects it and nodes at most `hops` edges away; NULL: all */
    uint32_t hops;
    const char *op;     /* selects operators as fxtap_node_matches() of reader.h; NULL: all */
    const char *module; /* glob on the module path, as written or without its root; NULL: all */
} fxtap_select_options;

/*
 * A record of the nodes that satisfy all conditions, with the same order and names. An outside node whose result is
 * used inside becomes a placeholder of that name; results used outside (or nowhere) are returned. `op` and `module`
 * select among operators. The caller frees *out. FXTAP_E_NOT_FOUND: no node `around`, or no operator that `op` and
 * `module` match. FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_graph_select(const fxtap_graph *graph, const fxtap_select_options *options,
                                          fxtap_graph **out);

/* ---- the summary ---- */

typedef struct fxtap_summary_options {
    size_t struct_size;
    bool english; /* column names, support status and counts in English; else in Chinese, as in TorchAir */
    bool no_mark; /* without the byte order mark that spreadsheets need for UTF-8 */
} fxtap_summary_options;

/*
 * Appends a CSV (RFC 4180, UTF-8) with one row per target, in order of first use: target, kind, whether it has a
 * lowering, calls, input and output signatures with their counts. FXTAP_E_NOMEM.
 */
FXTAP_API fxtap_status fxtap_graph_summary(const fxtap_graph *graph, const fxtap_summary_options *options,
                                           fxtap_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
