/* cmd_compare.c - fxtap compare: finds the first operator that went wrong, and reports every pair. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fxtap/compare.h"
#include "fxtap/graph.h"
#include "options.h"
#include "python.h"
#include "reports.h"

typedef struct request {
    fxtap_compare_options options;
    fxtap_rule rule; /* from the command line */
    const char *rules_path;
    report_files reports;
    const char *shard; /* "K/N" */
    int64_t n_threads; /* -1: not given */
    bool across_ranks;
    bool verify;
    const char *python;
    const char *merge_path; /* a folder of shards 0, 1, 2 ... to merge instead of comparing */
    const char *out_path;   /* where to write a shard */
    char **inputs;
    size_t n_inputs;
} request;

static bool names_two(const fxtap_compare_options *o)
{
    return o->golden_step != o->target_step || o->golden_run != o->target_run || o->golden_graph != o->target_graph ||
           o->golden_rank != o->target_rank;
}

/* Checks that paths and options go together; EXIT_SAME, or EXIT_TROUBLE after an error message. */
static int check_request(request *r)
{
    if (r->n_threads == 0 || r->n_threads > 1024) {
        return usage_error("compare", "--threads takes a number from 1 to 1024, not %" PRId64, r->n_threads);
    }
    if (r->rule.min_cosine > 1.0) {
        return usage_error("compare", "--cosine takes a number from 0 to 1, not %g", r->rule.min_cosine);
    }
    if (r->shard != NULL && !read_shard("compare", r->shard, &r->options.shard, &r->options.n_shards)) {
        return EXIT_TROUBLE;
    }
    r->options.n_threads = r->n_threads > 0 ? (int32_t)r->n_threads : 0;
    size_t wanted = r->across_ranks || names_two(&r->options) ? 1 : 2;
    if (r->merge_path != NULL && r->out_path != NULL) {
        return usage_error("compare", "--merge and --out do not go together");
    }
    if ((r->options.n_shards > 0) != (r->out_path != NULL)) {
        return usage_error("compare", "--shard and --out go together");
    }
    if (r->n_inputs == 0) {
        return usage_error("compare", "no dump given");
    }
    if (r->n_inputs > 2 || (r->across_ranks && r->n_inputs > 1)) {
        return usage_error("compare", "too many paths: '%s'", r->inputs[r->across_ranks ? 1 : 2]);
    }
    if (r->verify && r->across_ranks) {
        return usage_error("compare", "--verify and --across-ranks do not go together");
    }
    if (r->n_inputs < wanted) {
        return usage_error(
            "compare", "'%s' alone cannot be compared; give a second path, or two parts of this one with --step A:B",
            r->inputs[0]);
    }
    return EXIT_SAME;
}

/* The command line's rule comes first: a later rule that matches wins. */
static fxtap_status gather_rules(request *r, fxtap_rule **out, size_t *n_out)
{
    fxtap_rule *loaded = NULL;
    size_t n = 0;
    fxtap_status status = r->rules_path == NULL ? FXTAP_OK : fxtap_rules_load(r->rules_path, &loaded, &n);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_rule none;
    fxtap_rule_init(&none);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): at worst an unset rule is added, which has no effect */
    bool is_given = memcmp(&none, &r->rule, sizeof none) != 0;
    fxtap_rule *all = calloc(n + 1, sizeof *all);
    if (all == NULL) {
        fxtap_rules_free(loaded, n);
        return FXTAP_E_NOMEM;
    }
    all[0] = r->rule;
    if (n > 0) {
        memcpy(all + is_given, loaded, n * sizeof *all);
    }
    r->options.rules = all;
    r->options.n_rules = n + is_given;
    *out = loaded; /* its strings are borrowed by `all` */
    *n_out = n;
    return FXTAP_OK;
}

static fxtap_status compare_dumps(const request *r, fxtap_report **out)
{
    fxtap_reader *golden = NULL, *target = NULL;
    fxtap_status status = fxtap_reader_open(r->inputs[0], &golden);
    if (status == FXTAP_OK && r->n_inputs > 1) {
        status = fxtap_reader_open(r->inputs[1], &target);
    }
    if (status == FXTAP_OK) {
        status = r->across_ranks ? fxtap_compare_ranks(golden, &r->options, out)
                                 : fxtap_compare(golden, target == NULL ? golden : target, &r->options, out);
    }
    fxtap_reader_close(golden);
    fxtap_reader_close(target);
    return status;
}

/* ---- verifying ---- */

typedef struct answers {
    fxtap_report *report;
    fxtap_verification *verification; /* NULL: not requested */
} answers;

/* A descriptor that Python inherits, from which it reads the report; -1 after an error message. */
static int pass_report(const fxtap_report *report)
{
    void *bytes;
    size_t n_bytes;
    if (fxtap_report_serialise(report, &bytes, &n_bytes) != FXTAP_OK) {
        report_library_error();
        return -1;
    }
    FILE *file = tmpfile();
    bool is_written = file != NULL && fwrite(bytes, 1, n_bytes, file) == n_bytes && fflush(file) == 0;
    int fd = is_written && fseek(file, 0, SEEK_SET) == 0 ? dup(fileno(file)) : -1;
    if (fd < 0) {
        report_error("cannot write a temporary file: %s", strerror(errno));
    }
    if (file != NULL) {
        fclose(file);
    }
    fxtap_free(bytes);
    return fd;
}

static void make_line(const request *r, int report_fd, python_line *line)
{
    const fxtap_compare_options *o = &r->options;
    python_begin(line, r->python);
    python_add_command(line, "verify-shard");
    python_add_number(line, "--report-fd", report_fd);
    python_add_number(line, "--golden-run", o->golden_run);
    python_add_number(line, "--run", o->target_run);
    python_add_number(line, "--rank", o->target_rank);
    python_add_number(line, "--graph", o->target_graph);
    python_add_number(line, "--step", o->target_step);
    python_add_text(line, "--op", o->pattern);
    python_add_number(line, "--jobs", r->n_threads);
    python_add_text(line, "--against", r->inputs[0]);
    python_add_text(line, "--target", r->inputs[r->n_inputs - 1]);
}

/* Verifies the target against golden with the report's pairs. EXIT_SAME, or EXIT_TROUBLE after an error message. */
static int verify(const request *r, answers *a)
{
    shard_list shards = {0};
    int fd = pass_report(a->report);
    int result = EXIT_TROUBLE;
    if (fd >= 0) {
        python_line line;
        make_line(r, fd, &line);
        result = python_verify(&line, &shards);
        python_clear(&line);
        close(fd);
    }
    if (result == EXIT_SAME && !shards_verification(&shards, &a->verification)) {
        result = EXIT_TROUBLE;
    }
    if (result == EXIT_SAME && fxtap_report_verify(a->report, a->verification) != FXTAP_OK) {
        result = report_library_error();
    }
    shards_clear(&shards);
    return result;
}

static fxtap_status print_answers(const void *context, const fxtap_report_options *options, fxtap_buffer *out)
{
    const answers *a = context;
    return a->verification == NULL ? fxtap_report_print(a->report, options, out)
                                   : fxtap_report_print_verified(a->report, a->verification, options, out);
}

/* 0: nothing is wrong, also if all that differs is rounding. */
static int exit_status(const answers *a)
{
    int verified = a->verification == NULL ? EXIT_SAME : verification_status(a->verification);
    if (fxtap_report_count(a->report, FXTAP_UNREADABLE) > 0 || verified == EXIT_TROUBLE) {
        return EXIT_TROUBLE;
    }
    bool differs = fxtap_report_verdict(a->report) == FXTAP_DIFFERENT && !fxtap_report_is_rounding(a->report);
    return differs || verified != EXIT_SAME ? EXIT_DIFFERENT : EXIT_SAME;
}

static int write_reports(const request *r, fxtap_report *report)
{
    answers a = {.report = report};
    int result = r->verify ? verify(r, &a) : EXIT_SAME;
    if (result == EXIT_SAME) {
        result = reports_write(&r->reports, print_answers, &a);
        result = result == EXIT_TROUBLE ? result : exit_status(&a);
    }
    fxtap_verification_free(a.verification);
    return result;
}

static int write_shard(const request *r, const fxtap_report *report)
{
    void *bytes;
    size_t n_bytes;
    if (fxtap_report_serialise(report, &bytes, &n_bytes) != FXTAP_OK) {
        return report_library_error();
    }
    bool written = write_file(r->out_path, bytes, n_bytes, r->reports.force);
    fxtap_free(bytes);
    return written ? EXIT_SAME : EXIT_TROUBLE;
}

static int run(request *r)
{
    fxtap_report *report = NULL;
    fxtap_rule *loaded = NULL;
    size_t n_loaded = 0;
    int result = EXIT_SAME;
    if (r->merge_path != NULL) {
        shard_list shards;
        result = shards_read(r->merge_path, &shards);
        if (result == EXIT_SAME &&
            fxtap_report_merge(shards.bytes, shards.n_bytes, shards.count, &report) != FXTAP_OK) {
            result = report_library_error();
        }
        shards_clear(&shards);
    } else if (gather_rules(r, &loaded, &n_loaded) != FXTAP_OK) {
        result = report_library_error();
    } else {
        r->options.progress = progress_show;
        progress_begin("comparing");
        fxtap_status status = compare_dumps(r, &report);
        progress_end();
        if (status != FXTAP_OK && !was_interrupted()) {
            result = report_library_error();
        }
    }
    if (report != NULL && !was_interrupted()) {
        result = r->options.n_shards > 0 ? write_shard(r, report) : write_reports(r, report);
    }
    fxtap_report_free(report);
    free((void *)(uintptr_t)r->options.rules);
    fxtap_rules_free(loaded, n_loaded);
    return was_interrupted() ? end_interrupted() : result;
}

int cmd_compare(int argc, char **argv)
{
    request r = {.n_threads = -1};
    fxtap_compare_options *o = &r.options;
    fxtap_compare_options_init(o);
    fxtap_rule_init(&r.rule);
    option_pair run_pair = {1, INT64_MAX, &o->golden_run, &o->target_run};
    option_pair rank_pair = {0, INT32_MAX, &o->golden_rank, &o->target_rank};
    option_pair graph_pair = {1, UINT32_MAX, &o->golden_graph, &o->target_graph};
    option_pair step_pair = {0, INT64_MAX, &o->golden_step, &o->target_step};
    const option_spec options[] = {
        {0, NULL, OPTION_HEADING, NULL, NULL,
         "What is compared (A is GOLDEN's, B is TARGET's; one number stands for both):"},
        {0, "run", OPTION_PAIR, &run_pair, "A[:B]", "these runs (default: the latest)"},
        {0, "rank", OPTION_PAIR, &rank_pair, "A[:B]", "these ranks (default: all, by number)"},
        {0, "graph", OPTION_PAIR, &graph_pair, "A[:B]", "these graphs (default: all, by what they compute)"},
        {0, "step", OPTION_PAIR, &step_pair, "A[:B]", "golden's step A, target's step A or B; no range"},
        {0, "op", OPTION_TEXT, &o->pattern, "GLOB", "only operators that match (man fxtap: PATTERNS)"},
        {0, "step-of", OPTION_TEXT, &o->step_of, "GLOB",
         "an iteration begins with the first graph that has\n"
         "a matching node (default: found by what repeats)"},
        {0, "map", OPTION_TEXT, &o->map_path, "FILE",
         "pair other names: lines \"GOLDEN-NAME TARGET-NAME\",\n"
         "in which * matches anything"},
        {0, "across-ranks", OPTION_FLAG, &r.across_ranks, NULL,
         "tensors that should be replicas, each rank against\n"
         "the first"},
        {0, NULL, OPTION_HEADING, NULL, NULL,
         "What counts as close (default: as torch.testing.assert_close, by dtype):"},
        {0, "rtol", OPTION_AMOUNT, &r.rule.rtol, "X", "relative tolerance"},
        {0, "atol", OPTION_AMOUNT, &r.rule.atol, "X", "absolute tolerance"},
        {0, "cosine", OPTION_AMOUNT, &r.rule.min_cosine, "X", "least cosine similarity"},
        {0, "max-abs", OPTION_AMOUNT, &r.rule.max_abs, "X", "largest absolute error"},
        {0, "rel-l2", OPTION_AMOUNT, &r.rule.max_rel_l2, "X", "largest relative L2 error"},
        {0, "max-ulp", OPTION_AMOUNT, &r.rule.max_ulp, "N", "largest distance in units of the last place"},
        {0, "strict", OPTION_FLAG, &o->strict, NULL,
         "also what one side alone has, and numbers in the\n"
         "code, though the programs are written differently"},
        {0, "rules", OPTION_TEXT, &r.rules_path, "FILE",
         "a TOML file of rules by dtype, operator or node;\n"
         "they win over the options above"},
        {0, NULL, OPTION_HEADING, NULL, NULL, "How, and where to:"},
        {0, "fail-fast", OPTION_FLAG, &o->fail_fast, NULL, "stop at the first tensor that differs"},
        {0, "read-all", OPTION_FLAG, &o->read_all, NULL, "read every file, also where recorded hashes agree"},
        {0, "threads", OPTION_INT, &r.n_threads, "N", "default: as many as there are processors"},
        {0, "verify", OPTION_FLAG, &r.verify, NULL,
         "also run TARGET's operators again: is one wrong, or\n"
         "is it rounding? (man fxtap-verify)"},
        {0, "python", OPTION_TEXT, &r.python, "FILE", "for --verify: the interpreter; as for fxtap run"},
        {0, "explain", OPTION_TEXT, &o->explain, "NODE",
         "say why it is paired as it is, and which others\n"
         "were close"},
        REPORT_OPTIONS(r.reports, "one row a pair"),
        {0, "shard", OPTION_TEXT, &r.shard, "K/N", NULL}, /* used by fxtap.compare between its processes */
        {0, "out", OPTION_TEXT, &r.out_path, "FILE", NULL},
        {0, "merge", OPTION_TEXT, &r.merge_path, "FOLDER", NULL},
    };
    const command_usage usage = {
        .command = "compare",
        .operands = "GOLDEN TARGET\n"
                    "       fxtap compare [options] --step A:B DUMP    (or --run, --graph, --rank)\n"
                    "       fxtap compare [options] --across-ranks DUMP",
        .about = "Find the first operator that went wrong. GOLDEN is taken as right, TARGET is\n"
                 "judged. Each is a dump, a rank, graph or step folder of one, any folder of .npy\n"
                 "files, or one .npy file.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Exit status: 0 the same, or close; 1 different; 2 trouble (also where a file\n"
                "could not be read). With --verify 0 also if all that differs is rounding, 1 also\n"
                "if an operator is wrong, 2 also if nothing could be run again.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    r.inputs = argv + first;
    r.n_inputs = (size_t)(argc - first);
    int result = check_request(&r);
    if (result == EXIT_SAME) {
        result = reports_check("compare", &r.reports, r.out_path);
    }
    return result == EXIT_SAME ? run(&r) : result;
}
