/* cmd_compare.c - fxtap compare: which operator went wrong first, and every pair that was looked at. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fxtap/compare.h"
#include "fxtap/graph.h"
#include "options.h"

enum option_id {
    OPT_RUN = 256, OPT_RANK, OPT_GRAPH, OPT_STEP, OPT_OP, OPT_MAP, OPT_RULES,
    OPT_RTOL, OPT_ATOL, OPT_COSINE, OPT_MAX_ABS, OPT_REL_L2, OPT_MAX_ULP,
    OPT_FAIL_FAST, OPT_READ_ALL, OPT_STRICT, OPT_STEP_OF, OPT_EXPLAIN,
    OPT_THREADS, OPT_ACROSS_RANKS,
    OPT_JSON, OPT_CSV, OPT_HTML, OPT_FORCE, OPT_SHARD, OPT_OUT, OPT_MERGE,
};

static const struct option long_options[] = {
    {"run", required_argument, NULL, OPT_RUN},
    {"rank", required_argument, NULL, OPT_RANK},
    {"graph", required_argument, NULL, OPT_GRAPH},
    {"step", required_argument, NULL, OPT_STEP},
    {"op", required_argument, NULL, OPT_OP},
    {"map", required_argument, NULL, OPT_MAP},
    {"rules", required_argument, NULL, OPT_RULES},
    {"rtol", required_argument, NULL, OPT_RTOL},
    {"atol", required_argument, NULL, OPT_ATOL},
    {"cosine", required_argument, NULL, OPT_COSINE},
    {"max-abs", required_argument, NULL, OPT_MAX_ABS},
    {"rel-l2", required_argument, NULL, OPT_REL_L2},
    {"max-ulp", required_argument, NULL, OPT_MAX_ULP},
    {"fail-fast", no_argument, NULL, OPT_FAIL_FAST},
    {"read-all", no_argument, NULL, OPT_READ_ALL},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"step-of", required_argument, NULL, OPT_STEP_OF},
    {"explain", required_argument, NULL, OPT_EXPLAIN},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"across-ranks", no_argument, NULL, OPT_ACROSS_RANKS},
    {"json", required_argument, NULL, OPT_JSON},
    {"csv", required_argument, NULL, OPT_CSV},
    {"html", required_argument, NULL, OPT_HTML},
    {"force", no_argument, NULL, OPT_FORCE},
    {"shard", required_argument, NULL, OPT_SHARD},
    {"out", required_argument, NULL, OPT_OUT},
    {"merge", required_argument, NULL, OPT_MERGE},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: fxtap compare [options] GOLDEN TARGET\n"
    "       fxtap compare [options] --step A:B DUMP    (or --run, --graph, --rank)\n"
    "       fxtap compare [options] --across-ranks DUMP\n"
    "\n"
    "Find the first operator that went wrong. GOLDEN is taken as right, TARGET is\n"
    "judged. Each is a dump, a rank, graph or step folder of one, any folder of .npy\n"
    "files, or one .npy file.\n"
    "\n"
    "What is compared (A is GOLDEN's, B is TARGET's; one number stands for both):\n"
    "  --run A[:B]       these runs (default: the latest)\n"
    "  --rank A[:B]      these ranks (default: all, by number)\n"
    "  --graph A[:B]     these graphs (default: all, by what they compute)\n"
    "  --step A[:B]      golden's step A, target's step A or B; no range\n"
    "  --op GLOB         only operators that match (man fxtap: PATTERNS)\n"
    "  --step-of GLOB    an iteration begins with the first graph that has a node\n"
    "                    which matches (default: found by what repeats)\n"
    "  --map FILE        pair what has other names: lines \"GOLDEN-NAME TARGET-NAME\",\n"
    "                    in which * matches anything\n"
    "  --across-ranks    tensors that should be replicas, each rank against the first\n"
    "\n"
    "What counts as close (default: as torch.testing.assert_close, by dtype):\n"
    "  --rtol X          relative tolerance\n"
    "  --atol X          absolute tolerance\n"
    "  --cosine X        least cosine similarity\n"
    "  --max-abs X       largest absolute error\n"
    "  --rel-l2 X        largest relative L2 error\n"
    "  --max-ulp N       largest distance in units of the last place\n"
    "  --strict          also what one side alone has, and numbers in the code,\n"
    "                    though the programs are written differently\n"
    "  --rules FILE      a TOML file of rules by dtype, operator or node; they win\n"
    "                    over the options above\n"
    "\n"
    "How, and where to:\n"
    "  --fail-fast       stop at the first tensor that differs\n"
    "  --read-all        read every file, also where recorded hashes are equal\n"
    "  --threads N       default: as many as there are processors\n"
    "  --explain NODE    say why it is paired as it is, and which others were close\n"
    "  -q, --quiet       the verdict's line alone\n"
    "  --json FILE       all of it, as JSON (- for standard output)\n"
    "  --csv FILE        one row a pair\n"
    "  --html FILE       a page to look at, in one file\n"
    "  --force           write over reports that are there\n"
    "  -h, --help        this text\n"
    "\n"
    "Exit status: 0 the same, or close; 1 different; 2 trouble (also where a file\n"
    "could not be read).\n";

#define N_FORMATS 3

typedef struct request {
    fxtap_compare_options options;
    fxtap_rule rule; /* of the command line */
    const char *rules_path;
    const char *paths[N_FORMATS]; /* NULL: not asked for */
    bool across_ranks;
    bool force;
    bool quiet;
    const char *merge_path; /* a folder of shards, 0, 1, 2 ..., which are put together instead of comparing */
    const char *out_path;   /* of a shard */
    char **inputs;
    size_t n_inputs;
} request;

static const fxtap_report_format formats[N_FORMATS] = {FXTAP_REPORT_JSON, FXTAP_REPORT_CSV, FXTAP_REPORT_HTML};

static const char *option_name(int id)
{
    for (size_t i = 0; long_options[i].name != NULL; i++) {
        if (long_options[i].val == id) {
            return long_options[i].name;
        }
    }
    return "";
}

static bool read_pair(int id, int64_t low, int64_t high, int64_t *golden, int64_t *target)
{
    if (!parse_pair(optarg, low, high, golden, target)) {
        misused("compare", "--%s takes A or A:B (golden's and target's, no range), numbers from %" PRId64 " on, not '%s'",
                option_name(id), low, optarg);
        return false;
    }
    return true;
}

static bool read_amount(int id, double *out)
{
    if (!parse_amount(optarg, out)) {
        misused("compare", "--%s takes a number that is not negative, not '%s'", option_name(id), optarg);
        return false;
    }
    if (id == OPT_COSINE && *out > 1.0) {
        misused("compare", "--cosine takes a number from 0 to 1, not '%s'", optarg);
        return false;
    }
    return true;
}

static bool read_threads(request *r)
{
    int64_t n;
    if (!parse_int64(optarg, 1, 1024, &n)) {
        misused("compare", "--threads takes a number from 1 to 1024, not '%s'", optarg);
        return false;
    }
    r->options.n_threads = (int32_t)n;
    return true;
}

/* K/N: the K-th of N parts, from 0. */
static bool read_shard(request *r)
{
    int64_t k, n;
    char text[32];
    const char *slash = strchr(optarg, '/');
    size_t length = slash == NULL ? sizeof text : (size_t)(slash - optarg);
    if (length < sizeof text) {
        memcpy(text, optarg, length);
        text[length] = '\0';
        if (parse_int64(slash + 1, 1, INT32_MAX, &n) && parse_int64(text, 0, n - 1, &k)) {
            r->options.shard = (uint32_t)k;
            r->options.n_shards = (uint32_t)n;
            return true;
        }
    }
    misused("compare", "--shard takes K/N with K from 0 to N-1, not '%s'", optarg);
    return false;
}

static bool take_selection(request *r, int id)
{
    fxtap_compare_options *o = &r->options;
    switch (id) {
    case OPT_RUN: return read_pair(id, 1, INT64_MAX, &o->golden_run, &o->target_run);
    case OPT_RANK: return read_pair(id, 0, INT32_MAX, &o->golden_rank, &o->target_rank);
    case OPT_GRAPH: return read_pair(id, 1, UINT32_MAX, &o->golden_graph, &o->target_graph);
    case OPT_STEP: return read_pair(id, 0, INT64_MAX, &o->golden_step, &o->target_step);
    case OPT_OP: o->pattern = optarg; return true;
    case OPT_MAP: o->map_path = optarg; return true;
    case OPT_RULES: r->rules_path = optarg; return true;
    default: return false;
    }
}

static bool take_option(request *r, int id)
{
    switch (id) {
    case OPT_RTOL: return read_amount(id, &r->rule.rtol);
    case OPT_ATOL: return read_amount(id, &r->rule.atol);
    case OPT_COSINE: return read_amount(id, &r->rule.min_cosine);
    case OPT_MAX_ABS: return read_amount(id, &r->rule.max_abs);
    case OPT_REL_L2: return read_amount(id, &r->rule.max_rel_l2);
    case OPT_MAX_ULP: return read_amount(id, &r->rule.max_ulp);
    case OPT_FAIL_FAST: r->options.fail_fast = true; return true;
    case OPT_READ_ALL: r->options.read_all = true; return true;
    case OPT_STRICT: r->options.strict = true; return true;
    case OPT_STEP_OF: r->options.step_of = optarg; return true;
    case OPT_EXPLAIN: r->options.explain = optarg; return true;
    case OPT_THREADS: return read_threads(r);
    case OPT_ACROSS_RANKS: r->across_ranks = true; return true;
    case OPT_JSON: r->paths[0] = optarg; return true;
    case OPT_CSV: r->paths[1] = optarg; return true;
    case OPT_HTML: r->paths[2] = optarg; return true;
    case OPT_FORCE: r->force = true; return true;
    case OPT_SHARD: return read_shard(r);
    case OPT_OUT: r->out_path = optarg; return true;
    case OPT_MERGE: r->merge_path = optarg; return true;
    case 'q': r->quiet = true; return true;
    default: return take_selection(r, id);
    }
}

static bool names_two(const fxtap_compare_options *o)
{
    return o->golden_step != o->target_step || o->golden_run != o->target_run || o->golden_graph != o->target_graph ||
           o->golden_rank != o->target_rank;
}

/* What the paths and options ask for fits together; EXIT_SAME, or EXIT_TROUBLE after saying why not. */
static int check_request(const request *r)
{
    size_t wanted = r->across_ranks || names_two(&r->options) ? 1 : 2;
    if (r->merge_path != NULL && r->out_path != NULL) {
        return misused("compare", "--merge and --out do not go together");
    }
    if ((r->options.n_shards > 0) != (r->out_path != NULL)) {
        return misused("compare", "--shard and --out go together");
    }
    if (r->n_inputs == 0) {
        return misused("compare", "which dumps?");
    }
    if (r->n_inputs > 2 || (r->across_ranks && r->n_inputs > 1)) {
        return misused("compare", "too many paths: '%s'", r->inputs[r->across_ranks ? 1 : 2]);
    }
    if (r->n_inputs < wanted) {
        return misused("compare", "what is '%s' to be compared with? (A second path, or two parts of this one: --step A:B)",
                       r->inputs[0]);
    }
    size_t n_stdout = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        n_stdout += r->paths[i] != NULL && strcmp(r->paths[i], "-") == 0;
    }
    return n_stdout > 1 ? misused("compare", "only one report can go to standard output") : EXIT_SAME;
}

/* A file that may not be written over is found before the work, not after it. */
static int check_outputs(const request *r)
{
    const char *all[N_FORMATS + 1] = {r->paths[0], r->paths[1], r->paths[2], r->out_path};
    for (size_t i = 0; i < N_FORMATS + 1; i++) {
        if (all[i] != NULL && strcmp(all[i], "-") != 0 && !may_write(all[i], r->force)) {
            return EXIT_TROUBLE;
        }
    }
    return EXIT_SAME;
}

/* The rule of the command line first: a later one that matches wins. */
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

static fxtap_status read_whole(const char *path, fxtap_buffer *out)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return FXTAP_E_IO;
    }
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        fxtap_buffer_append(out, block, n);
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? FXTAP_E_IO : fxtap_buffer_status(out);
}

/* The files 0, 1, 2 ... of a folder, as far as they go; EXIT_SAME, or EXIT_TROUBLE after saying why. */
static int read_shards(const char *folder, fxtap_buffer **out, size_t *n_out)
{
    for (size_t n = 0;; n++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%zu", folder, n);
        if ((size_t)length >= sizeof path) {
            return trouble("cannot read '%s': %s", folder, strerror(ENAMETOOLONG));
        }
        if (access(path, F_OK) != 0) {
            return n > 0 ? EXIT_SAME : trouble("no shards in '%s'", folder);
        }
        *out = must_realloc(*out, n + 1, sizeof **out);
        fxtap_buffer_init(&(*out)[n]);
        *n_out = n + 1;
        if (read_whole(path, &(*out)[n]) != FXTAP_OK) {
            return trouble("cannot read '%s': %s", path, strerror(errno));
        }
    }
}

static int merge_shards(const request *r, fxtap_report **out)
{
    fxtap_buffer *shards = NULL;
    size_t n = 0;
    int result = read_shards(r->merge_path, &shards, &n);
    const void **bytes = must_realloc(NULL, n + 1, sizeof *bytes);
    size_t *n_bytes = must_realloc(NULL, n + 1, sizeof *n_bytes);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = shards[i].bytes;
        n_bytes[i] = shards[i].length;
    }
    if (result == EXIT_SAME && fxtap_report_merge(bytes, n_bytes, n, out) != FXTAP_OK) {
        result = trouble_of_library();
    }
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer_clear(&shards[i]);
    }
    free(shards);
    free(bytes);
    free(n_bytes);
    return result;
}

/* Prints one form of the report into a file, or to standard output. */
static int write_report(const request *r, const fxtap_report *report, fxtap_report_format format, const char *path,
                        FILE *notes)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_report_options options = {.struct_size = sizeof options, .format = format};
    int result = EXIT_SAME;
    if (fxtap_report_print(report, &options, &text) != FXTAP_OK) {
        result = trouble_of_library();
    } else if (strcmp(path, "-") == 0) {
        result = write_stdout(text.bytes, text.length) ? EXIT_SAME : EXIT_TROUBLE;
    } else if (!write_file(path, text.bytes, text.length, r->force)) {
        result = EXIT_TROUBLE;
    } else {
        fprintf(notes, "Wrote %s\n", path);
    }
    fxtap_buffer_clear(&text);
    return result;
}

static int write_text(const request *r, const fxtap_report *report)
{
    terminal screen = terminal_of_stdout();
    fxtap_report_options options = {.struct_size = sizeof options,
                                    .format = FXTAP_REPORT_TEXT,
                                    .width = screen.width,
                                    .colour = screen.colour,
                                    .ascii = screen.ascii,
                                    .quiet = r->quiet};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    int result = EXIT_SAME;
    if (fxtap_report_print(report, &options, &text) != FXTAP_OK) {
        result = trouble_of_library();
    } else if (!write_stdout(text.bytes, text.length)) {
        result = EXIT_TROUBLE;
    }
    fxtap_buffer_clear(&text);
    return result;
}

static int write_reports(const request *r, const fxtap_report *report)
{
    bool takes_stdout = false;
    for (size_t i = 0; i < N_FORMATS; i++) {
        takes_stdout |= r->paths[i] != NULL && strcmp(r->paths[i], "-") == 0;
    }
    int result = takes_stdout ? EXIT_SAME : write_text(r, report);
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (r->paths[i] != NULL) {
            int written = write_report(r, report, formats[i], r->paths[i], takes_stdout ? stderr : stdout);
            result = written > result ? written : result;
        }
    }
    if (result == EXIT_TROUBLE || fxtap_report_count(report, FXTAP_UNREADABLE) > 0) {
        return EXIT_TROUBLE;
    }
    return fxtap_report_verdict(report) == FXTAP_DIFFERENT ? EXIT_DIFFERENT : EXIT_SAME;
}

static int write_shard(const request *r, const fxtap_report *report)
{
    void *bytes;
    size_t n_bytes;
    if (fxtap_report_serialise(report, &bytes, &n_bytes) != FXTAP_OK) {
        return trouble_of_library();
    }
    bool written = write_file(r->out_path, bytes, n_bytes, r->force);
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
        result = merge_shards(r, &report);
    } else if (gather_rules(r, &loaded, &n_loaded) != FXTAP_OK) {
        result = trouble_of_library();
    } else {
        r->options.progress = progress_show;
        progress_begin("comparing");
        fxtap_status status = compare_dumps(r, &report);
        progress_end();
        if (status != FXTAP_OK && !was_interrupted()) {
            result = trouble_of_library();
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
    request r = {.merge_path = NULL};
    fxtap_compare_options_init(&r.options);
    fxtap_rule_init(&r.rule);
    opterr = 0;
    int id;
    while ((id = getopt_long(argc, argv, ":hq", long_options, NULL)) != -1) {
        if (id == 'h') {
            return write_stdout(help, sizeof help - 1) ? EXIT_SAME : EXIT_TROUBLE;
        }
        if (id == '?') {
            return options_unknown("compare", long_options, optopt == 0 ? argv[optind - 1] : "-");
        }
        if (id == ':') {
            return misused("compare", "'%s' needs a value", argv[optind - 1]);
        }
        if (!take_option(&r, id)) {
            return EXIT_TROUBLE;
        }
    }
    r.inputs = argv + optind;
    r.n_inputs = (size_t)(argc - optind);
    int result = check_request(&r);
    if (result == EXIT_SAME) {
        result = check_outputs(&r);
    }
    return result == EXIT_SAME ? run(&r) : result;
}
