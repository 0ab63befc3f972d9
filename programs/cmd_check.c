/* cmd_check.c - fxtap check: is a dump whole, and where did the first NaN or infinity come from? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "describe.h"
#include "select.h"
#include "text.h"

typedef struct check_options {
    bool no_data;
    bool strict;
    bool all;
    bool json;
} check_options;

#define MAX_LINES 10 /* of one kind, unless --all */

/* ---- names ---- */

static const char *kind_text(fxtap_problem_kind kind)
{
    switch (kind) {
    case FXTAP_PROBLEM_MISSING_FILE:
        return "missing";
    case FXTAP_PROBLEM_BAD_FILE:
        return "damaged";
    case FXTAP_PROBLEM_UNINDEXED:
        return "unknown";
    case FXTAP_PROBLEM_HASH:
        return "changed";
    case FXTAP_PROBLEM_PARTIAL_STEP:
        return "partial step";
    case FXTAP_PROBLEM_FAILED_STEP:
        return "failed step";
    case FXTAP_PROBLEM_NON_FINITE:
        return "non-finite";
    case FXTAP_PROBLEM_TRAILING:
        return "trailing bytes";
    case FXTAP_PROBLEM_INDEX:
        return "index";
    case FXTAP_PROBLEM_UNDECLARED_WRITE:
        return "undeclared write";
    case FXTAP_PROBLEM_UNWRITTEN_READ:
        return "unwritten read";
    }
    return "";
}

/* Paths are told from the dump's own folder on. */
static const char *relative_path(const fxtap_reader *reader, const char *path)
{
    const char *root = fxtap_reader_path(reader);
    size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

/* ---- problems of files ---- */

static size_t count_kind(const fxtap_check *check, fxtap_problem_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        n += fxtap_check_problem(check, i)->kind == kind;
    }
    return n;
}

static void append_problem(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_problem *problem)
{
    fxtap_buffer_text(out, "  ");
    text_append_fitted(out, STYLE_PLAIN, relative_path(reader, problem->path), KEEPS_TAIL, 0);
    fxtap_buffer_text(out, "\n      ");
    text_append_styled(out, STYLE_DIM, problem->detail);
    fxtap_buffer_text(out, "\n");
}

static void append_kind(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check,
                        fxtap_problem_kind kind, bool all)
{
    size_t n = count_kind(check, kind), n_shown = 0;
    if (n == 0) {
        return;
    }
    fxtap_buffer_printf(out, "\n%s%s%s", text_begin(STYLE_BAD), kind_text(kind), text_end(STYLE_BAD));
    fxtap_buffer_printf(out, n > 1 ? " (%zu)\n" : "\n", n);
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        const fxtap_problem *problem = fxtap_check_problem(check, i);
        if (problem->kind == kind && (all || n_shown < MAX_LINES)) {
            append_problem(out, reader, problem);
            n_shown++;
        }
    }
    if (n_shown < n) {
        fxtap_buffer_printf(out, "  ... and %zu more (--all)\n", n - n_shown);
    }
}

/* ---- values that are not finite ---- */

static void append_where(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_problem *problem)
{
    if (problem->node == NULL) {
        text_append(out, problem->tensor->name);
        return;
    }
    const fxtap_graph_info *graph = problem->node->graph;
    if (fxtap_reader_rank_count(reader) > 1) {
        fxtap_buffer_printf(out, "rank %d, ", fxtap_reader_rank(reader, graph->rank_i)->rank);
    }
    fxtap_buffer_printf(out, "graph %u, ", (unsigned)graph->graph);
    append_step(out, problem->step);
}

static void append_tensor_line(fxtap_buffer *out, const fxtap_problem *problem)
{
    static const char *const io_names[] = {"INPUT", "OUTPUT", "INOUT"};
    const fxtap_tensor_info *info = problem->tensor;
    if (info->node != NULL) {
        text_append_styled(out, problem->is_origin ? STYLE_BAD : STYLE_PLAIN, info->node->name);
        fxtap_buffer_text(out, "  ");
        text_append(out, info->node->target);
        fxtap_buffer_printf(out, "  %s.", io_names[info->io]);
        text_append(out, info->position);
        fxtap_buffer_text(out, ": ");
    } else {
        text_append(out, info->name);
        fxtap_buffer_text(out, ": ");
    }
    text_append(out, problem->detail);
    fxtap_buffer_text(out, "\n");
}

/* Graph and step, and the line of the model. */
static void append_place(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_problem *problem)
{
    const fxtap_node_info *node = problem->node;
    fxtap_buffer_text(out, "      ");
    append_where(out, reader, problem);
    if (node->source_file[0] != '\0') {
        fxtap_buffer_text(out, "  ");
        text_append_source(out, node->source_file, node->source_line);
        fxtap_buffer_text(out, "  ");
        text_append_fitted(out, STYLE_DIM, node->source_code, KEEPS_HEAD, 0);
    }
    fxtap_buffer_text(out, "\n");
}

static void append_origins(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check, bool all)
{
    size_t n_origins = 0;
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        const fxtap_problem *problem = fxtap_check_problem(check, i);
        if (problem->kind != FXTAP_PROBLEM_NON_FINITE || !problem->is_origin) {
            continue;
        }
        if (n_origins == 0) {
            fxtap_buffer_printf(out, "\n%snot finite, from finite inputs%s (the first comes first)\n",
                                text_begin(STYLE_BOLD), text_end(STYLE_BOLD));
        }
        if (all || n_origins < MAX_LINES) {
            fxtap_buffer_text(out, "  ");
            append_tensor_line(out, problem);
            append_place(out, reader, problem);
        }
        n_origins++;
    }
    if (!all && n_origins > MAX_LINES) {
        fxtap_buffer_printf(out, "  ... and %zu more (--all)\n", n_origins - MAX_LINES);
    }
}

static void append_carried(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check, bool all)
{
    size_t n_carried = 0;
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        const fxtap_problem *problem = fxtap_check_problem(check, i);
        if (problem->kind != FXTAP_PROBLEM_NON_FINITE || problem->is_origin) {
            continue;
        }
        if (n_carried++ == 0) {
            fxtap_buffer_printf(out, "\n%snot finite, came in or carried on%s\n", text_begin(STYLE_BOLD),
                                text_end(STYLE_BOLD));
        }
        if (all || n_carried <= MAX_LINES / 2) {
            fxtap_buffer_text(out, "  ");
            append_tensor_line(out, problem);
            if (n_carried == 1 && problem->node != NULL) {
                fxtap_buffer_text(out, "      ");
                append_where(out, reader, problem);
                fxtap_buffer_text(out, "\n");
            }
        }
    }
    if (!all && n_carried > MAX_LINES / 2) {
        fxtap_buffer_printf(out, "  ... and %zu more (--all)\n", n_carried - MAX_LINES / 2);
    }
}

/* ---- operators that use memory as they must not ---- */

static bool is_finding(fxtap_problem_kind kind)
{
    return kind == FXTAP_PROBLEM_UNDECLARED_WRITE || kind == FXTAP_PROBLEM_UNWRITTEN_READ;
}

static size_t count_findings(const fxtap_check *check)
{
    return count_kind(check, FXTAP_PROBLEM_UNDECLARED_WRITE) + count_kind(check, FXTAP_PROBLEM_UNWRITTEN_READ);
}

static void append_findings(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check, bool all)
{
    size_t n = 0;
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        const fxtap_problem *problem = fxtap_check_problem(check, i);
        if (!is_finding(problem->kind)) {
            continue;
        }
        if (n == 0) {
            fxtap_buffer_printf(out, "\n%soperators that misuse memory%s\n", text_begin(STYLE_BAD),
                                text_end(STYLE_BAD));
        }
        if (all || n < MAX_LINES) {
            fxtap_buffer_text(out, "  ");
            text_append_styled(out, STYLE_BAD, problem->node->name);
            fxtap_buffer_text(out, "  ");
            text_append(out, problem->node->target);
            fxtap_buffer_text(out, "\n      ");
            text_append(out, problem->detail);
            fxtap_buffer_text(out, "\n");
            append_place(out, reader, problem);
        }
        n++;
    }
    if (!all && n > MAX_LINES) {
        fxtap_buffer_printf(out, "  ... and %zu more (--all)\n", n - MAX_LINES);
    }
}

/* ---- the report ---- */

static void append_summary(fxtap_buffer *out, const fxtap_check *check, size_t n_faults, size_t n_non_finite,
                           bool no_data)
{
    uint64_t n_files = fxtap_check_file_count(check);
    if (n_files == 0) {
        fxtap_buffer_text(out, "no files to check"); /* statistics alone, or nothing at all */
    } else {
        text_append_count(out, n_files);
        fxtap_buffer_printf(out, " file%s checked%s", n_files == 1 ? "" : "s", no_data ? " (headers alone)" : "");
    }
    fxtap_buffer_text(out, n_files > 0 || n_faults > 0 ? ": " : "");
    if (n_faults == 0 && n_files > 0) {
        text_append_styled(out, STYLE_GOOD, "all whole");
    } else if (n_faults > 0) {
        text_append_count(out, n_faults);
        fxtap_buffer_text(out, n_faults == 1 ? " problem" : " problems");
    }
    if (n_non_finite > 0) {
        fxtap_buffer_text(out, ", ");
        text_append_count(out, n_non_finite);
        fxtap_buffer_text(out, n_non_finite == 1 ? " tensor not finite" : " tensors not finite");
    }
    if (count_findings(check) > 0) {
        fxtap_buffer_text(out, ", ");
        text_append_count(out, count_findings(check));
        fxtap_buffer_text(out, count_findings(check) == 1 ? " misuse of memory" : " misuses of memory");
    }
    fxtap_buffer_text(out, "\n");
}

static void append_report(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check,
                          const check_options *options)
{
    static const fxtap_problem_kind kinds[] = {
        FXTAP_PROBLEM_INDEX,    FXTAP_PROBLEM_PARTIAL_STEP, FXTAP_PROBLEM_FAILED_STEP, FXTAP_PROBLEM_MISSING_FILE,
        FXTAP_PROBLEM_BAD_FILE, FXTAP_PROBLEM_HASH,         FXTAP_PROBLEM_TRAILING,    FXTAP_PROBLEM_UNINDEXED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        append_kind(out, reader, check, kinds[i], options->all);
    }
    append_findings(out, reader, check, options->all);
    append_origins(out, reader, check, options->all);
    append_carried(out, reader, check, options->all);
}

static void json_problem(fxtap_json *json, const fxtap_problem *problem)
{
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "kind", kind_text(problem->kind));
    fxtap_json_string(json, "path", problem->path);
    fxtap_json_string(json, "detail", problem->detail);
    if (problem->tensor != NULL) {
        const fxtap_tensor_info *info = problem->tensor;
        fxtap_json_string(json, "tensor", info->name);
    }
    if (problem->node != NULL) {
        fxtap_json_string(json, "node", problem->node->name);
        fxtap_json_string(json, "target", problem->node->target);
        fxtap_json_uint(json, "graph", problem->node->graph->graph);
        fxtap_json_int(json, "step", problem->step->step);
        fxtap_json_string(json, "source_file", problem->node->source_file);
        fxtap_json_int(json, "source_line", problem->node->source_line);
    }
    if (problem->kind == FXTAP_PROBLEM_NON_FINITE) {
        fxtap_json_bool(json, "is_origin", problem->is_origin);
    }
    fxtap_json_end_object(json);
}

static void append_json(fxtap_buffer *out, const fxtap_reader *reader, const fxtap_check *check, size_t n_faults)
{
    fxtap_json json;
    fxtap_json_init(&json, out, true);
    fxtap_json_begin_object(&json, NULL);
    fxtap_json_string(&json, "path", fxtap_reader_path(reader));
    fxtap_json_uint(&json, "files", fxtap_check_file_count(check));
    fxtap_json_bool(&json, "is_whole", n_faults == 0);
    fxtap_json_begin_array(&json, "problems");
    for (size_t i = 0; i < fxtap_check_problem_count(check); i++) {
        json_problem(&json, fxtap_check_problem(check, i));
    }
    fxtap_json_end_array(&json);
    fxtap_json_end_object(&json);
    fxtap_buffer_text(out, "\n");
}

static int report(const fxtap_reader *reader, const fxtap_check *check, const check_options *options)
{
    fxtap_buffer out;
    size_t n_non_finite = count_kind(check, FXTAP_PROBLEM_NON_FINITE);
    size_t n_findings = count_findings(check);
    size_t n_faults = fxtap_check_problem_count(check) - n_non_finite - n_findings;
    fxtap_buffer_init(&out);
    if (options->json) {
        append_json(&out, reader, check, n_faults);
    } else {
        append_summary(&out, check, n_faults, n_non_finite, options->no_data);
        append_report(&out, reader, check, options);
    }
    if (!flush_buffer(&out)) {
        return EXIT_TROUBLE;
    }
    return n_faults > 0 || n_findings > 0 || (options->strict && n_non_finite > 0) ? EXIT_FOUND : EXIT_SUCCESS;
}

static int check_dump(const char *path, const check_options *options)
{
    fxtap_reader *reader = open_dump(path);
    fxtap_check *check = NULL;
    if (reader == NULL) {
        return EXIT_TROUBLE;
    }
    progress_begin("files checked:");
    fxtap_status status = fxtap_reader_check(reader, !options->no_data, progress_show, NULL, &check);
    progress_end();
    if (was_interrupted()) {
        return end_interrupted();
    }
    int result = status == FXTAP_OK ? report(reader, check, options) : report_library_error();
    fxtap_check_free(check);
    return close_dump(reader, result);
}

int cmd_check(int argc, char **argv)
{
    check_options chosen = {0};
    const option_spec options[] = {
        {0, "no-data", OPTION_FLAG, &chosen.no_data, NULL, "look at names, sizes and headers alone"},
        {0, "strict", OPTION_FLAG, &chosen.strict, NULL, "values that are not finite count as a problem"},
        {'a', "all", OPTION_FLAG, &chosen.all, NULL, "every line, not the first few of each kind"},
        {0, "json", OPTION_FLAG, &chosen.json, NULL, "as one JSON object"},
    };
    const command_usage usage = {
        .command = "check",
        .operands = "DUMP",
        .about = "Checks every file of a dump, of all its runs: there, whole, of the type and\n"
                 "contents that the index says; names failed and unfinished steps and files that\n"
                 "nothing knows. Then operators that misuse memory: that compute with elements\n"
                 "nothing had written, or write to an argument without declaring it. Then values\n"
                 "that are NaN or infinite: first the operators that made one out of finite\n"
                 "inputs, in order of execution. Memory never written is not among these.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Exit status: 0 all whole; 1 problems; 2 trouble. Values that are not finite are\n"
                "no problem of the dump unless --strict is given.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (argc - first != 1) {
        return usage_error(usage.command, first == argc ? "expected a DUMP" : "one DUMP at a time");
    }
    return check_dump(argv[first], &chosen);
}
