/* check.h - declarations shared by check.c and check_files.c. */
#ifndef FX_READER_CHECK_H
#define FX_READER_CHECK_H

#include "reader/tensors.h"

struct fxtap_check {
    fxtap_reader *reader; /* borrowed */
    fx_arena arena;
    fxtap_tensor_list *list; /* all tensors, of all runs and steps */
    fx_texts paths;          /* of the tensors' files */
    uint64_t n_files;
    fxtap_problem *problems;
    size_t n_problems;
    size_t problems_capacity;
};

/* Path and detail are copied. */
fxtap_status fx_check_add(fxtap_check *check, const fxtap_problem *problem);

/* Checks each file of the list once, regardless of its number of names, with two threads. */
fxtap_status fx_check_files(fxtap_check *check, bool read_data, fxtap_progress progress, void *context);

#endif
