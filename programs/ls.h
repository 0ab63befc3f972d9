/* ls.h - what the files of fxtap ls share. */
#ifndef LS_H
#define LS_H

#include "select.h"
#include "table.h"

typedef struct ls_options {
    selection chosen;
    bool is_long; /* every tensor */
    bool all;     /* nodes that were not dumped, with the reason; incomplete steps in JSON and CSV */
    bool nodes;   /* JSON and CSV: a row a node */
    bool json;
    bool csv;
    bool no_stats; /* do not read files for statistics */
    const char *sort;
    bool reverse;
} ls_options;

/* One operator of a step: its tensors are [first, end) of the list. */
typedef struct ls_row {
    const fxtap_node_info *node;
    size_t first, end;
    const fxtap_tensor_info *output; /* the first, or what was mutated; NULL where there is none */
    size_t n_outputs;
    uint64_t bytes;
    uint64_t n_non_finite; /* over all outputs */
    double key;            /* what it is sorted by; NaN goes last */
} ls_row;

/* Rows of a step, sorted as asked; to be freed. The list's tensors get meta and statistics where that is wanted. */
ls_row *ls_collect(const ls_options *options, fxtap_tensor_list *list, const fxtap_step_info *step, size_t *n_out);
bool ls_sort_is_known(const char *key);
extern const char ls_sort_keys[]; /* for messages */

/* Fills what the index does not tell; unreadable files keep has_meta false. */
void ls_load(const ls_options *options, fxtap_tensor_list *list, size_t i);

int ls_print_json(fxtap_reader *reader, const ls_options *options);
int ls_print_csv(fxtap_reader *reader, const ls_options *options);

#endif
