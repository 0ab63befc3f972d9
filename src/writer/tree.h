/*
 * tree.h - the folders of a dump: made when they are needed; a step's folder is moved into place as a whole.
 */
#ifndef FX_WRITER_TREE_H
#define FX_WRITER_TREE_H

#include <sys/types.h>

#include "fxtap/dump.h"

/* A rank's open folder. A root that was removed and made again is a new one. */
typedef struct fx_rank_folder {
    int fd;
    uint64_t number; /* counts the rank folders of this dump, from 1 */
    dev_t device;
    ino_t inode;
    unsigned n_users; /* freed with the last one. dump->rank_lock */
} fx_rank_folder;

/* The rank's folder as it is now, made where it does not exist. The caller becomes one of its users. */
fxtap_status fx_tree_acquire_rank(fxtap_dump *dump, fx_rank_folder **out);
void fx_tree_release_rank(fxtap_dump *dump, fx_rank_folder *rank);
/* Makes the call's partial folder: sets its dir_fd, folder and partial. */
fxtap_status fx_tree_begin(fxtap_call *call);
/*
 * Moves the partial folder to GRAPH/STEP, or its files into that folder where it exists already; stamps that are taken
 * there rise, and *restamped_out is set.
 */
fxtap_status fx_tree_publish(fxtap_call *call, uint64_t step, bool *restamped_out);
/* Moves it to GRAPH/STEP.failed-{n}, and sets the folder's path. */
fxtap_status fx_tree_fail(fxtap_call *call, uint64_t step);
/* GRAPH/STEP, relative to the rank's folder. */
void fx_tree_step_path(const fxtap_call *call, uint64_t step, char *dst, size_t capacity);
/* Closes the call's folders. */
void fx_tree_end(fxtap_call *call);
/* An error about the file `name` in the call's folder; "": about the folder itself. */
fxtap_status fx_tree_error(const fxtap_call *call, int error_number, const char *action, const char *name);

#endif
