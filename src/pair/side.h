/* side.h - one side of a comparison: a reader and the requested steps. */
#ifndef FX_PAIR_SIDE_H
#define FX_PAIR_SIDE_H

#include "fxtap/compare.h"
#include "fxtap/reader.h"

typedef struct fx_side {
    fxtap_reader *reader;
    fxtap_tensor_query query;
    const fxtap_step_info **steps; /* those with tensors; NULL: the plain files. Owned */
    size_t n_steps;
} fx_side;

/* Opens both sides, in two threads if they have separate readers. The caller closes both in any case. */
fxtap_status fx_sides_open(const fxtap_compare_options *options, fxtap_reader *golden, fxtap_reader *target,
                           fx_side *golden_out, fx_side *target_out);
/*
 * FXTAP_E_NOT_FOUND if the side has nothing of the requested run, rank, graph or step; FXTAP_E_IO if a folder of it could
 * not be read.
 */
fxtap_status fx_side_check(const fxtap_compare_options *options, const fx_side *side);
void fx_side_close(fx_side *side);

#endif
