/* cmd_verify.c - fxtap verify: runs every operator again in float64 (in Python), and reports what rounding explains. */
#include "fxtap/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "python.h"
#include "reports.h"
#include "select.h"

typedef struct request {
    selection chosen;
    const char *against;
    const char *graph_from;
    bool exact;
    int64_t n_jobs, n_threads; /* -1: not given */
    const char *python;
    report_files reports;
    const char *shard; /* "K/N" */
    const char *out_path;
    const char *merge_path;
    const char *target;
} request;

static int check_request(const request *r)
{
    uint32_t shard, n_shards;
    if (r->n_jobs == 0 || r->n_jobs > 1024) {
        return usage_error("verify", "--jobs takes a number from 1 to 1024, not %" PRId64, r->n_jobs);
    }
    if (r->n_threads == 0 || r->n_threads > 1024) {
        return usage_error("verify", "--threads takes a number from 1 to 1024, not %" PRId64, r->n_threads);
    }
    if (r->shard != NULL && !read_shard("verify", r->shard, &shard, &n_shards)) {
        return EXIT_TROUBLE;
    }
    if (r->merge_path != NULL && r->out_path != NULL) {
        return usage_error("verify", "--merge and --out do not go together");
    }
    if ((r->shard != NULL) != (r->out_path != NULL)) {
        return usage_error("verify", "--shard and --out go together");
    }
    if (r->exact && r->against == NULL) {
        return usage_error("verify", "--exact needs --against GOLDEN");
    }
    return reports_check("verify", &r->reports, r->out_path);
}

static void make_line(const request *r, python_line *line)
{
    python_begin(line, r->python);
    python_add_command(line, "verify-shard");
    python_add_text(line, "--shard", r->shard);
    python_add_number(line, "--run", r->chosen.run);
    python_add_number(line, "--rank", r->chosen.rank);
    python_add_number(line, "--graph", r->chosen.graph);
    python_add_number(line, "--step", r->chosen.step);
    python_add_text(line, "--op", r->chosen.pattern);
    python_add_text(line, "--against", r->against);
    python_add_text(line, "--graph-from", r->graph_from);
    python_add_number(line, "--jobs", r->n_jobs);
    python_add_number(line, "--threads", r->n_threads);
    if (r->exact) {
        python_add(line, "--exact");
    }
    python_add_text(line, "--target", r->target);
}

static fxtap_status print_verification(const void *verification, const fxtap_report_options *options, fxtap_buffer *out)
{
    return fxtap_verification_print(verification, options, out);
}

static int report(const request *r, const shard_list *shards)
{
    fxtap_verification *verification = NULL;
    if (!shards_verification(shards, &verification)) {
        return EXIT_TROUBLE;
    }
    int result = reports_write(&r->reports, print_verification, verification);
    result = result == EXIT_SAME ? verification_status(verification) : result;
    fxtap_verification_free(verification);
    return result;
}

static int run(const request *r)
{
    shard_list shards = {0};
    int result;
    if (r->merge_path != NULL) {
        result = shards_read(r->merge_path, &shards);
    } else {
        python_line line;
        make_line(r, &line);
        result = python_verify(&line, &shards);
        python_clear(&line);
    }
    if (result == EXIT_SAME) {
        result = r->out_path == NULL                                                             ? report(r, &shards)
                 : write_file(r->out_path, shards.bytes[0], shards.n_bytes[0], r->reports.force) ? EXIT_SAME
                                                                                                 : EXIT_TROUBLE;
    }
    shards_clear(&shards);
    return was_interrupted() ? end_interrupted() : result;
}

int cmd_verify(int argc, char **argv)
{
    request r = {.chosen = SELECTION_NONE, .n_jobs = -1, .n_threads = -1};
    const option_spec options[] = {
        {0, NULL, OPTION_HEADING, NULL, NULL, "What is verified:"},
        SELECTION_OPTIONS(r.chosen),
        {0, "op", OPTION_TEXT, &r.chosen.pattern, "GLOB", "only operators that match (man fxtap: PATTERNS)"},
        {0, "against", OPTION_TEXT, &r.against, "GOLDEN",
         "GOLDEN's operators, on TARGET's inputs: is the\n"
         "program right, not only each kernel?"},
        {0, "exact", OPTION_FLAG, &r.exact, NULL,
         "with --against: also run the whole graph in\n"
         "float64; which side is nearer to the truth?"},
        {0, "graph-from", OPTION_TEXT, &r.graph_from, "DUMP",
         "for a TARGET without an index (TorchAir's own): a\n"
         "dump with one of the same model, for what the\n"
         "files do not tell"},
        {0, NULL, OPTION_HEADING, NULL, NULL, "How, and where to:"},
        {'j', "jobs", OPTION_INT, &r.n_jobs, "N", "processes (default: as many as processors)"},
        {0, "threads", OPTION_INT, &r.n_threads, "N", "threads of each process (default: 1)"},
        {0, "python", OPTION_TEXT, &r.python, "FILE", "the interpreter; as for fxtap run"},
        REPORT_OPTIONS(r.reports, "one row a result"),
        {0, "shard", OPTION_TEXT, &r.shard, "K/N", NULL}, /* used between the processes of torchrun */
        {0, "out", OPTION_TEXT, &r.out_path, "FILE", NULL},
        {0, "merge", OPTION_TEXT, &r.merge_path, "FOLDER", NULL},
    };
    const command_usage usage = {
        .command = "verify",
        .operands = "TARGET",
        .about = "Find wrong operators. Each operator of a dump is run again in float64 on its own\n"
                 "saved inputs, and its result must be what rounding makes of that. Errors that\n"
                 "came in with the inputs play no part, whatever the precision.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Exit status: 0 nothing wrong; 1 something wrong; 2 trouble, or nothing could be\n"
                "run again.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (argc - first != 1) {
        return argc == first ? usage_error("verify", "no dump given")
                             : usage_error("verify", "too many paths: '%s'", argv[first + 1]);
    }
    r.target = argv[first];
    status = check_request(&r);
    return status == EXIT_SAME ? run(&r) : status;
}
