/*
 * fxtap/compare.h - comparing two dumps: which tensors form pairs, how large the errors are, and where they begin.
 *
 * GOLDEN is the reference, TARGET is judged. Every tensor of either side is in exactly one pair; a tensor without a
 * counterpart has a pair with the other side missing. Files are memory-mapped and streamed; identical contents with
 * recorded hashes are settled without reading.
 *
 * The origin of an error is an operator whose inputs agree and whose output does not, or an input that differs though
 * nothing before it was found to differ (see fxtap_origin_reason). Operators whose inputs already differ only propagate
 * the error (or reduce or amplify it: see `growth`). Origins are in order of execution: by rank, then by call. A graph
 * input that, by both sides' hashes, is the output of an earlier call is not an origin.
 *
 * Thread rule: one thread calls fxtap_compare(), which uses `n_threads` threads; a finished report may be read by any
 * number of threads. What accessors return is borrowed and lives as long as the report; the report borrows nothing
 * from the readers after fxtap_compare() has returned.
 */
#ifndef FXTAP_COMPARE_H
#define FXTAP_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fxtap/buffer.h"
#include "fxtap/reader.h"
#include "fxtap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fxtap_report fxtap_report;

/* Pinned: JSON and CSV contain their names. */
typedef enum fxtap_verdict {
    FXTAP_SAME = 0,      /* identical bits, or equal in value */
    FXTAP_CLOSE = 1,     /* within the tolerance */
    FXTAP_DIFFERENT = 2, /* outside the tolerance */
    FXTAP_SHAPE_MISMATCH = 3,
    FXTAP_DTYPE_MISMATCH = 4, /* dtypes of different classes: an integer against a float */
    FXTAP_UNREADABLE = 5,     /* a file of either side cannot be read */
    FXTAP_ONLY_GOLDEN = 6,
    FXTAP_ONLY_TARGET = 7,
    FXTAP_SKIPPED = 8,       /* not saved at capture, on one side or both */
    FXTAP_UNDEFINED = 9,     /* uninitialised memory: never judged */
    FXTAP_NOT_COMPARED = 10, /* the comparison stopped earlier (fail_fast) */
    FXTAP_REWRITTEN = 11,    /* a literal in the code that differs: if it matters, results differ too */
    FXTAP_VERDICT_COUNT = 12
} fxtap_verdict;

/* Pinned: JSON, CSV and HTML contain their names. */
typedef enum fxtap_pairing {
    FXTAP_PAIR_NONE = 0,
    FXTAP_PAIR_EXACT = 1,  /* equal graphs, or equal names and operators */
    FXTAP_PAIR_MAPPED = 2, /* by the given map */
    FXTAP_PAIR_SOURCE = 3, /* by operator, source line or module */
    FXTAP_PAIR_ORDER = 4,  /* by operator and order of execution */
    FXTAP_PAIR_WIRING = 5, /* by producers and consumers */
    FXTAP_PAIR_REGION = 6, /* different operators, as after a decomposition, whose results are the same quantity */
    FXTAP_PAIR_COUNT = 7
} fxtap_pairing;

/* One rule; a later rule that matches wins over an earlier one. Negative numbers mean "not set". */
typedef struct fxtap_rule {
    size_t struct_size;
    const char *dtype;         /* torch's name, "float16"; NULL: any */
    const char *operator_name; /* glob; NULL: any */
    const char *node;          /* glob on node or tensor name; NULL: any */
    double rtol;
    double atol;
    double min_cosine; /* --cosine */
    double max_abs;    /* --max-abs */
    double max_rel_l2;
    double max_ulp; /* --max-ulp */
} fxtap_rule;

/* Sets struct_size, and every field to "any" or "not set"; {0} does not. */
FXTAP_API void fxtap_rule_init(fxtap_rule *rule);

/*
 * Rules from a file, a subset of TOML: tables [[rule]] with dtype, target, node (strings), rtol, atol, cosine, max_abs,
 * rel_l2, max_ulp (numbers). The caller frees *out with fxtap_rules_free().
 * FXTAP_E_IO; FXTAP_E_INVALID if the file contains anything else: the message names the line.
 */
FXTAP_API fxtap_status fxtap_rules_load(const char *path, fxtap_rule **out, size_t *n_out);
FXTAP_API void fxtap_rules_free(fxtap_rule *rules, size_t n_rules);

typedef struct fxtap_compare_options {
    size_t struct_size;
    int64_t golden_run, target_run;     /* 0: the latest */
    int64_t golden_rank, target_rank;   /* -1: all, paired by number */
    int64_t golden_graph, target_graph; /* -1: all, paired by key */
    int64_t golden_step, target_step;   /* -1: all, paired by number */
    const char *pattern;                /* as in a tensor query; NULL: all */
    const char *step_of;  /* glob: an iteration begins with each call of the first graph that has a matching
                            node; NULL: iterations are detected */
    const char *explain;  /* name of a node whose pairing the report explains; NULL: none */
    const char *map_path; /* file of lines "GOLDEN-NAME TARGET-NAME" (with `*`); NULL: none */
    const fxtap_rule *rules;
    size_t n_rules;
    bool read_all;            /* read the files even if hashes settle the pair */
    bool fail_fast;           /* stop at the first pair that differs */
    bool strict;              /* literals that differ and tensors without a counterpart are differences too */
    int32_t n_threads;        /* 0: one per processor */
    uint32_t shard, n_shards; /* compare only groups whose number is shard mod n_shards; 0, 0: all */
    size_t n_worst;           /* worst coordinates kept per differing pair; 0: 5 */
    fxtap_progress progress;  /* may be NULL */
    void *context;
} fxtap_compare_options;

/* Sets every field to "not given"; {0} does not. */
FXTAP_API void fxtap_compare_options_init(fxtap_compare_options *options);

typedef struct fxtap_coordinate {
    uint64_t index; /* flat, row-major */
    double golden;
    double target;
} fxtap_coordinate;

/* Distribution of both sides' values, for origins and the worst pairs. */
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
    double confidence;                               /* 0 .. 1 */
    uint32_t evidence;                               /* evidence for the pair: bits, named by fxtap_evidence_name() */
    uint32_t n_golden_operators, n_target_operators; /* result of a region: number of operators on each side; else 0 */
    bool is_literal;  /* written in the code, such as an epsilon: compared by value, whatever the dtype */
    bool is_missing;  /* no counterpart although the other side should have one: the graphs are equal, or the other
                        side has its operator. Otherwise the programs are written differently */
    const char *name; /* tensor name: golden's, or target's if golden has none */
    const char *target_name; /* the target side's name if it differs, else NULL */
    const char *node;
    const char *operator_name;
    int32_t rank;
    uint32_t graph; /* golden's number, or target's if golden has none */
    uint32_t target_graph;
    int64_t step;
    int64_t target_step;
    size_t order; /* execution order of the node in its graph */
    fxtap_io io;
    const char *position;
    const char *source_file; /* "" if unknown */
    int32_t source_line;
    const char *source_code;
    const char *module_path;
    const char *golden_path; /* NULL if there is no file */
    const char *target_path;
    fxtap_dtype golden_dtype;
    fxtap_dtype target_dtype;
    int32_t ndim;
    const int64_t *shape; /* golden's */
    int32_t target_ndim;
    const int64_t *target_shape;
    bool golden_recorded, target_recorded; /* the side's index has dtype and shape: they are known without the file */
    const char *detail;                    /* one line: why it is unreadable or what does not match; or "" */
    const char *verified; /* results, after fxtap_report_verify(): the verdict on target's result; else NULL */
    bool measured;        /* the metrics below are valid */
    bool identical_bits;
    uint64_t count;           /* elements that were compared */
    uint64_t undefined_count; /* elements that were left out: uninitialised memory, or computed from it */
    double rtol, atol;        /* the tolerance that was applied */
    double max_abs_err, max_rel_err, mean_abs_err, rmse, cosine, rel_l2, euclidean, within_1e3, within_5e3;
    double max_ulp;                        /* NaN if not defined for the dtype */
    uint64_t max_abs_index, max_rel_index; /* flat, row-major */
    uint64_t mismatched;                   /* elements outside the tolerance */
    uint64_t nan_mismatched, inf_mismatched;
    double input_error;            /* results: the largest rel_l2 of the node's inputs; NaN if unknown */
    double growth;                 /* results: rel_l2 / input_error; NaN if either is unknown or both are 0 */
    const fxtap_coordinate *worst; /* elements that are NaN or infinite on one side only come first */
    size_t n_worst;
    bool has_hashes; /* both sides recorded a hash of the contents */
    fxtap_hash128 golden_hash, target_hash;
    const fxtap_stats *golden_stats, *target_stats; /* both NULL: not recorded, or not needed because the pair agrees */
    const fxtap_histograms *histograms;             /* NULL except for origins and the worst pairs */
} fxtap_pair;

/* Pinned: JSON and HTML contain their names. */
typedef enum fxtap_origin_reason {
    FXTAP_ORIGIN_OPERATOR = 1, /* inputs agree, output differs */
    FXTAP_ORIGIN_INPUT = 2,    /* a graph input already differs */
    FXTAP_ORIGIN_WEIGHT = 3,   /* a parameter or buffer already differs */
    FXTAP_ORIGIN_RANDOM = 4,   /* a random operator drew different numbers: the seeds differ */
    FXTAP_ORIGIN_REGION = 5,   /* some inputs could not be compared: the error began here or just before */
    FXTAP_ORIGIN_DRIFT = 6,    /* inputs agree within the tolerance; a small error grew slightly and exceeded it here */
    FXTAP_ORIGIN_BEFORE = 7, /* an input already differs although nothing that feeds it was found to: the error began in
                               between, in an operator that only one side has or that was not dumped, or in place */
    FXTAP_ORIGIN_ROUNDING = 8 /* in place of OPERATOR, REGION and DRIFT after fxtap_report_verify(): target's operator
                                 does what golden's does, and rounding explains the difference */
} fxtap_origin_reason;

/* One node near an origin. */
typedef struct fxtap_neighbour {
    const char *node;
    const char *operator_name;
    int32_t depth; /* distance in edges from the origin: negative before it, positive after it */
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
    double growth;          /* output_error / input_error; infinite if the inputs are identical */
    size_t n_carried;       /* later operators that only propagate the error */
    const char *input;      /* INPUT, WEIGHT: the graph input that differs; NULL if unknown */
    bool follows;        /* INPUT, WEIGHT, DRIFT, BEFORE: an earlier call already went wrong, which may be the cause */
    const char *literal; /* a literal argument that differs, as text: "eps: golden 1e-05, target 0.1"; NULL if none */
    const char *between; /* BEFORE: operators that feed the input and that only one side has: "mul, only in target" */
    const char *between_source; /* the line that called the first of these, "model.py:12"; this and the next two are
                                   NULL if unknown */
    const char *between_code;   /* its text */
    const char *between_module; /* path of its module */
    const char *other_source; /* location of target's operator, "model.py:12"; NULL: the same as golden's, or unknown */
    const char *other_code;   /* the text of that line */
    const char *other_operator;        /* the target side's operator if the two sides call different ones, else NULL */
    const fxtap_neighbourhood *around; /* the graph within two edges; NULL without a record, or after the first few */
} fxtap_origin;

typedef struct fxtap_group { /* one pair of steps of one pair of graphs */
    int32_t rank;
    uint32_t graph, target_graph;
    int64_t step, target_step;
    fxtap_pairing pairing;
    uint64_t unit;              /* groups with the same number were aligned together: the calls of one iteration */
    int64_t call;               /* golden's call number in the whole process; -1 if unknown */
    size_t first_pair, n_pairs; /* its pairs are contiguous in the report */
    size_t n_different;
} fxtap_group;

/*
 * FXTAP_E_INVALID (options, map file), FXTAP_E_NOT_FOUND (neither side has a tensor, or one has no tensor of the
 * requested run, rank, graph or step), FXTAP_E_IO (a folder of the requested part cannot be read),
 * FXTAP_E_CANCELLED, ...
 */
FXTAP_API fxtap_status fxtap_compare(fxtap_reader *golden, fxtap_reader *target, const fxtap_compare_options *options,
                                     fxtap_report **out);

/*
 * Compares replicas: tensors of one dump with the same graph key, node and position on different ranks. The first rank
 * is golden; pairs have the other rank's number. Golden's selection in the options applies to both sides.
 * FXTAP_E_NOT_FOUND if there is only one rank; else as fxtap_compare().
 */
FXTAP_API fxtap_status fxtap_compare_ranks(fxtap_reader *reader, const fxtap_compare_options *options,
                                           fxtap_report **out);

FXTAP_API void fxtap_report_free(fxtap_report *report);

/*
 * The overall verdict: FXTAP_SAME, FXTAP_CLOSE or FXTAP_DIFFERENT (also if an expected tensor is missing, if one does
 * not match or cannot be read, or if the sides have nothing in common). Tensors that only one side has because the
 * programs are written differently are not differences.
 */
FXTAP_API fxtap_verdict fxtap_report_verdict(const fxtap_report *report);
FXTAP_API uint64_t fxtap_report_count(const fxtap_report *report, fxtap_verdict verdict);
/* Tensors that only one side has although the other should (see fxtap_pair.is_missing). */
FXTAP_API uint64_t fxtap_report_missing_count(const fxtap_report *report);
/* What was aligned as an iteration: "3 iterations, of 1 call and 2 calls"; NULL if the graphs are equal. */
FXTAP_API const char *fxtap_report_steps(const fxtap_report *report);
/* Lines that explain the pairing of the requested node and list the next best candidates; NULL: none was requested. */
FXTAP_API const char *fxtap_report_explanation(const fxtap_report *report);
FXTAP_API uint64_t fxtap_report_pairing_count(const fxtap_report *report, fxtap_pairing pairing);
FXTAP_API size_t fxtap_report_pair_count(const fxtap_report *report);
FXTAP_API const fxtap_pair *fxtap_report_pair(const fxtap_report *report, size_t i);
FXTAP_API size_t fxtap_report_origin_count(const fxtap_report *report);
FXTAP_API const fxtap_origin *fxtap_report_origin(const fxtap_report *report, size_t i);
FXTAP_API size_t fxtap_report_group_count(const fxtap_report *report);
FXTAP_API const fxtap_group *fxtap_report_group(const fxtap_report *report, size_t i);
/* The first pair in execution order whose target side has a NaN or Inf where golden is finite; NULL if none. */
FXTAP_API const fxtap_pair *fxtap_report_first_non_finite(const fxtap_report *report);
FXTAP_API size_t fxtap_report_warning_count(const fxtap_report *report);
FXTAP_API const char *fxtap_report_warning(const fxtap_report *report, size_t i);
FXTAP_API const char *
fxtap_verdict_name(fxtap_verdict verdict); /* "same", "close", "different", "shape mismatch", ... */
FXTAP_API const char *fxtap_pairing_name(fxtap_pairing pairing);
/* Name of the i-th bit of fxtap_pair.evidence: "value", "operator", "module", "inputs", ...; NULL past the last. */
FXTAP_API const char *fxtap_evidence_name(size_t i);
/* "operator", "graph input", "weight", "random", "region", "drift", "before", "rounding" */
FXTAP_API const char *fxtap_origin_reason_name(fxtap_origin_reason reason);

/* The shards of one comparison: serialised as bytes, and merged in the order of the groups. */
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
    bool ascii; /* no characters outside ASCII */
    bool quiet; /* only the line with the verdict */
} fxtap_report_options;

FXTAP_API fxtap_status fxtap_report_print(const fxtap_report *report, const fxtap_report_options *options,
                                          fxtap_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
