/*
 * select.h - selects a part of a dump: --run, --rank, --graph, --step, --op; opens the dump.
 */
#ifndef SELECT_H
#define SELECT_H

#include "fxtap/output.h"
#include "fxtap/reader.h"
#include "options.h"

typedef struct selection {
    int64_t run;  /* 0: the latest */
    int64_t rank; /* -1: not given; also below */
    int64_t graph;
    int64_t step;
    const char *pattern; /* NULL: all */
} selection;

#define SELECTION_NONE                                                                                                 \
    {                                                                                                                  \
        .run = 0, .rank = -1, .graph = -1, .step = -1                                                                  \
    }

/* Entries of an option table; `s` is a selection. */
#define SELECTION_OPTIONS(s)                                                                                           \
    {'g', "graph", OPTION_INT, &(s).graph, "G", "only graph_G"},                                                       \
        {'s', "step", OPTION_INT, &(s).step, "N", "only that step"},                                                   \
        {'r', "rank", OPTION_INT, &(s).rank, "R", "only that rank"},                                                   \
    {                                                                                                                  \
        0, "run", OPTION_INT, &(s).run, "N", "only that run (a process that wrote here), from 1;\nelse the latest"     \
    }

/* Returns an open reader, or NULL after printing an error. */
fxtap_reader *open_dump(const char *path);

/*
 * Prints the reader's warnings to stderr, each once, and closes it. Returns `result`, or EXIT_TROUBLE in place of
 * EXIT_SUCCESS if a part of the dump could not be read.
 */
int close_dump(fxtap_reader *reader, int result);

fxtap_tensor_query query_of(const selection *chosen);

/* The selected graphs, freed by the caller. False: an error was printed. */
bool select_graphs(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info ***out, size_t *n_out);

/*
 * Whether one of the graphs has the requested step, and the pattern matches an operator; else prints an error that
 * names what exists. `with_skipped`: operators that were not dumped count too.
 */
bool check_selection(fxtap_reader *reader, const selection *chosen, bool with_skipped,
                     const fxtap_graph_info *const *graphs, size_t n_graphs);

/* The node with exactly this name, or NULL. */
const fxtap_node_info *find_in_graph(fxtap_reader *reader, const fxtap_graph_info *graph, const char *name);

/* Prints that none of these graphs has such a node, with a suggestion; `graph` is the requested one, or -1. */
void complain_of_node(fxtap_reader *reader, const fxtap_graph_info *const *graphs, size_t n_graphs, int64_t graph,
                      const char *name);

/* The selected step: the requested one, else the latest whole one, else the latest; NULL without steps. */
const fxtap_step_info *select_step(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info *graph);

/* Tensors of one step, in order; NULL after printing an error. Those of a partial step may include other steps'. */
fxtap_tensor_list *list_step(fxtap_reader *reader, const selection *chosen, const fxtap_step_info *step);

const char *graph_kind_name(fxtap_graph_kind kind);
/* "step 3", "step 3 (failed)", "a partial step" */
void append_step(fxtap_buffer *out, const fxtap_step_info *step);

#endif
