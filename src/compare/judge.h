/*
 * judge.h - one pair while it is judged: judge.c settles pairs without files, judge_files.c opens and measures files.
 */
#ifndef FX_COMPARE_JUDGE_H
#define FX_COMPARE_JUDGE_H

#include "compare/batch.h"
#include "compare/rules.h"
#include "fxtap/npy.h"

typedef struct fx_pair_job {
    const fx_batch *batch;
    const fx_comparison *comparison;
    fxtap_pair *pair;
    const fxtap_tensor_info *golden;
    const fxtap_tensor_info *target;
    fx_arena *arena;
    fxtap_npy *golden_file; /* NULL: not opened */
    fxtap_npy *target_file;
} fx_pair_job;

/* These fail only with FXTAP_E_NOMEM; file errors become a verdict. */

/* ---- judge.c ---- */

/* Sets the verdict and a copy of `text` as its detail. */
fxtap_status fx_job_detail(fx_pair_job *job, fxtap_verdict verdict, const char *text);
bool fx_job_same_shape(const fxtap_pair *pair);
/* Sets the verdict if shapes or classes of dtypes do not match; otherwise leaves the pair unchanged. */
fxtap_status fx_judge_shapes(fx_pair_job *job);
fxtap_status fx_judge_classes(fx_pair_job *job);
/* fxtap_dtype_class, with one class for signed and unsigned integers. */
int fx_dtype_class(fxtap_dtype dtype);
/* The tolerance of the pair, also reported if none is needed: how a pair was settled does not change the report. */
fx_tolerance fx_job_apply_tolerance(fx_pair_job *job);
/* Sets the metrics of equal values. */
void fx_job_take_equal(fx_pair_job *job);
/* Records how many of the elements are undefined and were not compared. */
fxtap_status fx_job_note_left_out(fx_pair_job *job, uint64_t n_left_out, uint64_t n_elems);

/* ---- judge_files.c ---- */

/* Opens both files; if one cannot be read, sets that verdict and *done_out. */
fxtap_status fx_job_open_files(fx_pair_job *job, fx_judge_memory *memory, bool *done_out);
/* Compares the values of the open files. */
fxtap_status fx_judge_values(fx_pair_job *job);

/* ---- literal.c ---- */

/*
 * Sets the detail of two literals that differ to "eps: golden 1e-05, target 0.001" or "dim: golden [1], target [1, 2]".
 * Leaves it unchanged if they are not numbers, or too many.
 */
fxtap_status fx_describe_literal(fx_pair_job *job);

#endif
