/*
 * fxtap/compare.h - comparing two dumps: what pairs with what, how far each pair is apart, and where it began.
 *
 * GOLDEN is taken as right, TARGET is judged. Nothing that either side holds is dropped: every tensor ends in exactly
 * one pair, or in a pair of its own with the other side missing. Files are memory-mapped and streamed; identical
 * contents with recorded hashes are settled without reading.
 *
 * The origin of an error is an operator whose inputs agree and whose output does not, or an input that differs though
 * nothing before it was found to (see fxtap_origin_reason). Operators whose inputs differ already only carry the error
 * on (or damp it, or let it grow: see `growth`). Origins stand in order of execution: by rank, then by call. An input
 * of a graph that is, by both sides' hashes, what an earlier call put out is no origin.
 *
 * Thread rule: one thread calls fxtap_compare(), which uses as many as it is told; a finished report may be read by
 * any number of threads. What accessors return is borrowed and lives as long as the report; the report borrows
 * nothing from the readers after fxtap_compare() returned.
 */
#ifndef FXTAP_COMPARE_H
#define FXTAP_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/output.h"
#include "fxtap/reader.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_report fxtap_report;

/* Pinned: the names of these stand in JSON and CSV. */
typedef enum fxtap_verdict {
    FXTAP_SAME = 0,            /* identical bits, or equal in value */
    FXTAP_CLOSE = 1,           /* within the tolerance */
    FXTAP_DIFFERENT = 2,       /* outside it */
    FXTAP_SHAPE_MISMATCH = 3,
    FXTAP_DTYPE_MISMATCH = 4,  /* dtypes of different classes: an integer against a float */
    FXTAP_UNREADABLE = 5,      /* a file of either side cannot be read */
    FXTAP_ONLY_GOLDEN = 6,
    FXTAP_ONLY_TARGET = 7,
    FXTAP_SKIPPED = 8,         /* not saved at capture, on both sides or on one */
    FXTAP_UNDEFINED = 9,       /* uninitialised memory: never judged */
    FXTAP_NOT_COMPARED = 10,   /* the comparison was stopped before (fail_fast) */
    FXTAP_REWRITTEN = 11,      /* a number in the code that differs: another program, which shows in results or does not matter */
    FXTAP_VERDICT_COUNT = 12
} fxtap_verdict;

typedef enum fxtap_pairing {
    FXTAP_PAIR_NONE = 0,
    FXTAP_PAIR_EXACT = 1,  /* equal graphs, or equal names and targets */
    FXTAP_PAIR_MAPPED = 2, /* by the map that was given */
    FXTAP_PAIR_SOURCE = 3, /* by operator, source line or module */
    FXTAP_PAIR_ORDER = 4,  /* by operator and order of execution */
    FXTAP_PAIR_WIRING = 5, /* by what feeds the two, and what reads them */
    FXTAP_PAIR_REGION = 6, /* operators that are not one, as in another decomposition: their results are one quantity */
    FXTAP_PAIR_COUNT = 7
} fxtap_pairing;

/* One rule; a later rule that matches wins over an earlier one. Negative numbers mean "not set". */
typedef struct fxtap_rule {
    const char *dtype;    /* torch's name, "float16"; NULL: any */
    const char *target;   /* glob on the operator; NULL: any */
    const char *node;     /* glob on node or tensor name; NULL: any */
    double rtol;
    double atol;
    double min_cosine;    /* --cosine */
    double max_abs;       /* --max-abs */
    double max_rel_l2;
    double max_ulp;       /* --max-ulp */
} fxtap_rule;

/* Sets every field to "any" or "not set": what {0} would not do. */
FXTAP_API void fxtap_rule_init(fxtap_rule *rule);

/*
 * Rules from a file, a subset of TOML: tables [[rule]] with dtype, target, node (strings), rtol, atol, cosine, max_abs,
 * rel_l2, max_ulp (numbers). The caller frees *out with fxtap_rules_free().
 * FXTAP_E_IO; FXTAP_E_INVALID for anything else that stands in it: the message names the line.
 */
FXTAP_API fxtap_status fxtap_rules_load(const char *path, fxtap_rule **out, size_t *n_out);
FXTAP_API void fxtap_rules_free(fxtap_rule *rules, size_t n_rules);

typedef struct fxtap_compare_options {
    size_t struct_size;
    int64_t golden_run, target_run;     /* 0: the latest */
    int64_t golden_rank, target_rank;   /* -1: all, paired by number */
    int64_t golden_graph, target_graph; /* -1: all, paired by key */
    int64_t golden_step, target_step;   /* -1: all, paired by number */
    const char *pattern;                /* as a tensor query's; NULL: all */
    const char *step_of;                /* glob: an iteration begins with each call of the first graph that has a node which
                                           matches; NULL: iterations are found */
    const char *explain;                /* name of a node whose pair is explained in the report; NULL: none */
    const char *map_path;               /* file of lines "GOLDEN-NAME TARGET-NAME" (with `*`); NULL: none */
    const fxtap_rule *rules;
    size_t n_rules;
    bool read_all;        /* read the files even where hashes settle the pair */
    bool fail_fast;       /* stop at the first pair that differs */
    bool strict;          /* a literal that differs, and whatever has no counterpart, is a difference too */
    int32_t n_threads;    /* 0: as many as there are processors */
    uint32_t shard, n_shards; /* compare only pairs of (rank, graph, step) groups number shard mod n_shards; 0, 0: all */
    size_t n_worst;       /* worst coordinates kept a differing pair; 0: 5 */
    fxtap_progress progress; /* may be NULL */
    void *context;
} fxtap_compare_options;

/* Sets every field to "not given": what {0} would not do. */
FXTAP_API void fxtap_compare_options_init(fxtap_compare_options *options);

typedef struct fxtap_coordinate {
    uint64_t index; /* flat, row-major */
    double golden;
    double target;
} fxtap_coordinate;

/* How the values of both sides are spread: for the pairs that a reader will look at first. */
typedef struct fxtap_histograms {
    double low; /* the bins divide [low, high] equally; finite values only */
    double high;
    size_t n_bins;
    const uint64_t *golden;
    const uint64_t *target;
} fxtap_histograms;

typedef struct fxtap_pair {
    fxtap_verdict verdict;
    fxtap_pairing pairing;
    double confidence;         /* 0 .. 1 */
    uint32_t evidence;         /* what the pair rests on: bits, named by fxtap_evidence_name() */
    uint32_t n_golden_operators, n_target_operators; /* of a region's result: how many operators of either side make it; else 0 */
    bool is_literal;           /* written in the code, as an epsilon or a size is: compared by value, whatever the dtype */
    bool is_missing;           /* without a counterpart, though the other side ought to have it: the graphs are equal, or its
                                  operator is there. Else the two programs are written differently */
    const char *name;          /* tensor name: golden's, or target's where golden has none */
    const char *target_name;   /* the other side's name where it differs, else NULL */
    const char *node;
    const char *target;        /* operator */
    int32_t rank;
    uint32_t graph;            /* golden's number, or target's where golden has none */
    uint32_t target_graph;
    int64_t step;
    int64_t target_step;
    size_t order;              /* execution order of the node in its graph */
    fxtap_io io;
    const char *position;
    const char *source_file;   /* "" where not known */
    int32_t source_line;
    const char *source_code;
    const char *module_path;
    const char *golden_path;   /* NULL where there is no file */
    const char *target_path;
    fxtap_dtype golden_dtype;
    fxtap_dtype target_dtype;
    int32_t ndim;
    const int64_t *shape;      /* golden's */
    int32_t target_ndim;
    const int64_t *target_shape;
    bool golden_recorded, target_recorded; /* dtype and shape stand in the side's index: known without its file */
    const char *detail;        /* one line: why unreadable, what mismatched; "" */
    bool measured;             /* the metrics below mean something */
    bool identical_bits;
    uint64_t count;            /* elements that were compared */
    uint64_t undefined_count;  /* elements that were left out: memory that nobody had written, or that depends on such */
    double rtol, atol;         /* the tolerance that was applied */
    double max_abs_err, max_rel_err, mean_abs_err, rmse, cosine, rel_l2, euclidean, within_1e3, within_5e3;
    double max_ulp;            /* NaN where the dtype has none */
    uint64_t max_abs_index, max_rel_index; /* flat, row-major */
    uint64_t mismatched;       /* elements outside the tolerance */
    uint64_t nan_mismatched, inf_mismatched;
    double input_error;        /* results: the largest rel_l2 of the node's inputs; NaN where not known */
    double growth;             /* results: rel_l2 / input_error; NaN where either is not known or both are 0 */
    const fxtap_coordinate *worst; /* what is NaN or infinite on one side alone stands first */
    size_t n_worst;
    bool has_hashes;           /* of both sides' contents, as recorded */
    fxtap_hash128 golden_hash, target_hash;
    const fxtap_stats *golden_stats, *target_stats; /* both NULL: not recorded, and nothing is wrong */
    const fxtap_histograms *histograms; /* NULL but for origins and the worst pairs */
} fxtap_pair;

typedef enum fxtap_origin_reason {
    FXTAP_ORIGIN_OPERATOR = 1,  /* inputs agree, output differs */
    FXTAP_ORIGIN_INPUT = 2,     /* an input of the whole graph differs already */
    FXTAP_ORIGIN_WEIGHT = 3,    /* a parameter or buffer differs already */
    FXTAP_ORIGIN_RANDOM = 4,    /* a random operator drew other numbers: seeds */
    FXTAP_ORIGIN_REGION = 5,    /* inputs of it could not be compared: the error began here or just above */
    FXTAP_ORIGIN_DRIFT = 6,     /* inputs agree within the tolerance; a small error grew a little and left it here */
    FXTAP_ORIGIN_BEFORE = 7     /* an input differs already, and nothing that feeds it was found to: it began in between,
                                   in an operator that one side alone has or that was not dumped, or in place */
} fxtap_origin_reason;

/* One node near an origin. */
typedef struct fxtap_neighbour {
    const char *node;
    const char *target;
    int32_t depth; /* hops above (negative) or below the origin, which is 0 */
    bool is_judged;
    bool is_bad;
    double rel_l2; /* largest of its outputs */
} fxtap_neighbour;

typedef struct fxtap_neighbourhood {
    const fxtap_neighbour *nodes; /* in execution order */
    size_t n_nodes;
    const uint32_t *edges; /* producer, consumer, producer, consumer ...: indices into nodes */
    size_t n_edges;
} fxtap_neighbourhood;

typedef struct fxtap_origin {
    fxtap_origin_reason reason;
    const fxtap_pair *pair; /* the worst output (or the input) that differs */
    double input_error;     /* largest rel_l2 of its inputs */
    double output_error;    /* largest rel_l2 of its outputs */
    double growth;          /* output_error / input_error; infinite where the inputs are identical */
    size_t n_carried;       /* operators after it that only carry the error on */
    const char *input;      /* INPUT, WEIGHT: the graph's input that differs; NULL where not known */
    bool follows;           /* INPUT, WEIGHT, DRIFT, BEFORE: an earlier call went wrong before, which may be why */
    const char *literal; /* a literal argument that differs, in words: "eps: golden 1e-05, target 0.1"; NULL if none */
    const char *between; /* BEFORE: operators above the input that one side alone has, in words: "mul, only in target" */
    const char *between_source; /* the line that called the first of these, "model.py:12"; this and the next two NULL
                                   where not known */
    const char *between_code;   /* its text */
    const char *between_module; /* path of its module */
    const char *other_source; /* where target's operator stands, "model.py:12", if it is another place; NULL: the same, or not known */
    const char *other_code;   /* the text of that line */
    const char *other_target; /* target side's operator, where the two sides call different ones */
    const fxtap_neighbourhood *around; /* the graph two hops around it; NULL without a record, and after the first few */
} fxtap_origin;

typedef struct fxtap_group { /* one pair of steps of one pair of graphs */
    int32_t rank;
    uint32_t graph, target_graph;
    int64_t step, target_step;
    fxtap_pairing pairing;
    uint64_t unit;              /* groups of one number were aligned together: the calls of one iteration */
    int64_t call;               /* golden's number over the whole process; -1 where not known */
    size_t first_pair, n_pairs; /* its pairs lie together in the report */
    size_t n_different;
} fxtap_group;

/*
 * FXTAP_E_INVALID (options, map file), FXTAP_E_NOT_FOUND (neither side has a tensor, or one has none of the run, rank, graph
 * or step that was asked for), FXTAP_E_CANCELLED, ...
 */
FXTAP_API fxtap_status fxtap_compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                                     fxtap_report **out);

/*
 * Replicas: tensors of one dump with the same graph key, node and place on different ranks. The first rank is golden;
 * pairs are reported under the other's number. Of the options golden's selection counts for both.
 * FXTAP_E_NOT_FOUND where there is but one rank; else as fxtap_compare().
 */
FXTAP_API fxtap_status fxtap_compare_ranks(fxtap_reader *reader, const fxtap_compare_options *options,
                                           fxtap_report **out);

FXTAP_API void fxtap_report_free(fxtap_report *report);

/*
 * The worst of all verdicts: FXTAP_SAME, FXTAP_CLOSE or FXTAP_DIFFERENT (also where a tensor is missing that should be there,
 * where one does not match or cannot be read, and where nothing of one side was found on the other). What one side alone has
 * because the programs are written differently is no difference.
 */
FXTAP_API fxtap_verdict fxtap_report_verdict(const fxtap_report *report);
FXTAP_API uint64_t fxtap_report_count(const fxtap_report *report, fxtap_verdict verdict);
/* Tensors that one side alone has although the other should (see fxtap_pair.is_missing). */
FXTAP_API uint64_t fxtap_report_missing_count(const fxtap_report *report);
/* What was aligned as an iteration, in words: "3 iterations, of 1 call and 2 calls"; NULL where graphs are equal. */
FXTAP_API const char *fxtap_report_steps(const fxtap_report *report);
/* Lines that say why the node that was asked for is paired as it is, and which others were close; NULL: none was asked for. */
FXTAP_API const char *fxtap_report_explanation(const fxtap_report *report);
FXTAP_API uint64_t fxtap_report_pairing_count(const fxtap_report *report, fxtap_pairing pairing);
FXTAP_API size_t fxtap_report_pair_count(const fxtap_report *report);
FXTAP_API const fxtap_pair *fxtap_report_pair(const fxtap_report *report, size_t i);
FXTAP_API size_t fxtap_report_origin_count(const fxtap_report *report);
FXTAP_API const fxtap_origin *fxtap_report_origin(const fxtap_report *report, size_t i);
FXTAP_API size_t fxtap_report_group_count(const fxtap_report *report);
FXTAP_API const fxtap_group *fxtap_report_group(const fxtap_report *report, size_t i);
/* The first pair in execution order whose target side has a NaN or Inf where golden has none; NULL if none. */
FXTAP_API const fxtap_pair *fxtap_report_first_non_finite(const fxtap_report *report);
FXTAP_API size_t fxtap_report_warning_count(const fxtap_report *report);
FXTAP_API const char *fxtap_report_warning(const fxtap_report *report, size_t i);
FXTAP_API const char *fxtap_verdict_name(fxtap_verdict verdict); /* "same", "close", "different", "shape mismatch", ... */
FXTAP_API const char *fxtap_pairing_name(fxtap_pairing pairing);
/* What the i-th bit of fxtap_pair.evidence says: "value", "operator", "module", "inputs", ...; NULL past the last. */
FXTAP_API const char *fxtap_evidence_name(size_t i);
/* "operator", "graph input", "weight", "random", "region", "drift", "before" */
FXTAP_API const char *fxtap_origin_reason_name(fxtap_origin_reason reason);

/* Shards of one comparison, compared elsewhere: as bytes, and put together again in the order of the groups. */
FXTAP_API fxtap_status fxtap_report_serialise(const fxtap_report *report, void **out, size_t *n_bytes_out);
FXTAP_API fxtap_status fxtap_report_merge(const void *const *shards, const size_t *n_bytes, size_t n_shards,
                                          fxtap_report **out);

typedef enum fxtap_report_format {
    FXTAP_REPORT_TEXT = 1,
    FXTAP_REPORT_JSON = 2,
    FXTAP_REPORT_CSV = 3,
    FXTAP_REPORT_HTML = 4
} fxtap_report_format;

typedef struct fxtap_report_options {
    size_t struct_size;
    fxtap_report_format format;
    int32_t width; /* columns of the terminal; 0: 80 */
    bool colour;
    bool ascii;    /* no characters outside ASCII */
    bool quiet;    /* the verdict's line alone */
} fxtap_report_options;

FXTAP_API fxtap_status fxtap_report_print(const fxtap_report *report, const fxtap_report_options *options,
                                          fxtap_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
