/*
 * select.h - which part of a dump a command is about: --run, --rank, --graph, --step, --op; opening it.
 */
#ifndef SELECT_H
#define SELECT_H

#include "fxtap/output.h"
#include "fxtap/reader.h"
#include "options.h"

typedef struct selection {
    int64_t run;   /* 0: the latest */
    int64_t rank;  /* -1: not said, as below */
    int64_t graph;
    int64_t step;
    const char *pattern; /* NULL: all */
} selection;

#define SELECTION_NONE {.run = 0, .rank = -1, .graph = -1, .step = -1}

/* Entries of an option table; `s` is a selection. */
#define SELECTION_OPTIONS(s)                                                                                           \
    {'g', "graph", OPTION_INT, &(s).graph, "G", "of graph_G alone"},                                                   \
        {'s', "step", OPTION_INT, &(s).step, "N", "of that step"},                                                     \
        {'r', "rank", OPTION_INT, &(s).rank, "R", "of that rank alone"},                                               \
        {0, "run", OPTION_INT, &(s).run, "N", "of that run (a process that wrote here), from 1;\nelse the latest"}

/* Says what is wrong and returns NULL, or an open reader. */
fxtap_reader *open_dump(const char *path);

/* Whatever the reader could not read as it should, on stderr, each once: to be called before the program ends. */
void print_warnings(const fxtap_reader *reader);

fxtap_tensor_query query_of(const selection *chosen);

/* The graphs that are meant, owned by the caller (free). False: said what is wrong. */
bool select_graphs(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info ***out, size_t *n_out);

/*
 * Whether the step that was asked for is there in one of the graphs, and the pattern matches something: else says what is
 * there. `with_skipped`: an operator that was not dumped is something.
 */
bool check_selection(fxtap_reader *reader, const selection *chosen, bool with_skipped,
                     const fxtap_graph_info *const *graphs, size_t n_graphs);

/* The node of exactly that name, or NULL. */
const fxtap_node_info *find_in_graph(fxtap_reader *reader, const fxtap_graph_info *graph, const char *name);

/* That no graph among these has such a node, and which may have been meant; `graph` is the one asked for, or -1. */
void complain_of_node(fxtap_reader *reader, const fxtap_graph_info *const *graphs, size_t n_graphs, int64_t graph,
                      const char *name);

/* The step that is meant: the one asked for, else the latest whole one, else the latest; NULL without steps. */
const fxtap_step_info *select_step(fxtap_reader *reader, const selection *chosen, const fxtap_graph_info *graph);

/* Tensors of one step, in order; complains and returns NULL on failure. May hold other steps' too where it is partial. */
fxtap_tensor_list *list_step(fxtap_reader *reader, const selection *chosen, const fxtap_step_info *step);

const char *graph_kind_name(fxtap_graph_kind kind);
/* "step 3", "step 3 (failed)", "a partial step" */
void append_step(fxtap_buffer *out, const fxtap_step_info *step);

#endif
