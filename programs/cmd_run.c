/* cmd_run.c - fxtap run: hands a script to Python, with fxtap as torch.compile's default backend. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "python.h"

typedef struct run_options {
    const char *type;
    const char *path;
    text_list filters;
    bool sync;
    const char *python;
} run_options;

/* Joins patterns with commas, as in FXTAP_FILTER. */
static char *join_filters(const text_list *filters)
{
    size_t length = 1;
    for (size_t i = 0; i < filters->count; i++) {
        length += strlen(filters->texts[i]) + 1;
    }
    char *joined = must_realloc(NULL, length, 1);
    joined[0] = '\0';
    for (size_t i = 0; i < filters->count; i++) {
        strcat(joined, i > 0 ? "," : "");
        strcat(joined, filters->texts[i]);
    }
    return joined;
}

static bool set_environment(const run_options *chosen)
{
    char *filter = join_filters(&chosen->filters);
    bool is_set = (chosen->type == NULL || setenv("FXTAP_TYPE", chosen->type, 1) == 0);
    is_set = is_set && (chosen->type != NULL || setenv("FXTAP_TYPE", "npy", 0) == 0);
    is_set = is_set && (chosen->path == NULL || setenv("FXTAP_PATH", chosen->path, 1) == 0);
    is_set = is_set && (filter[0] == '\0' || setenv("FXTAP_FILTER", filter, 1) == 0);
    is_set = is_set && (!chosen->sync || setenv("FXTAP_SYNC", "1", 1) == 0);
    free(filter);
    return is_set;
}

static int execute(const run_options *chosen, char **arguments, int n_arguments)
{
    python_line line;
    python_begin(&line, chosen->python);
    python_add(&line, "-m");
    python_add(&line, "fxtap");
    python_add(&line, "run-script");
    for (int i = 0; i < n_arguments; i++) {
        python_add(&line, arguments[i]);
    }
    int result = EXIT_TROUBLE;
    if (python_has(&line, "fxtap")) {
        result = set_environment(chosen) ? python_execute(&line) : report_error("out of memory");
    }
    python_clear(&line);
    return result;
}

int cmd_run(int argc, char **argv)
{
    run_options chosen = {0};
    const option_spec options[] = {
        {'t', "type", OPTION_TEXT, &chosen.type, "TYPE",
         "npy: files (the default); stats: statistics only;\nverify: judge operators, save the wrong ones"},
        {'p', "path", OPTION_TEXT, &chosen.path, "DIR",
         "the dump's root; else $FXTAP_PATH, else the\nworking directory"},
        {'f', "filter", OPTION_TEXTS, &chosen.filters, "GLOB",
         "dump operators that match (man fxtap: PATTERNS);\nmay be given several times"},
        {0, "sync", OPTION_FLAG, &chosen.sync, NULL, "each file is on disk before its operator runs"},
        {0, "python", OPTION_TEXT, &chosen.python, "FILE",
         "the interpreter; else $FXTAP_PYTHON, else python3\nbeside this program, else python3 in $PATH"},
        {'m', "module", OPTION_REST, NULL, "MODULE", "run a module instead of a script"},
    };
    const command_usage usage = {
        .command = "run",
        .operands = "SCRIPT [ARGS...]",
        .about = "Runs a Python script, or a module after -m, unedited, with fxtap as\n"
                 "torch.compile's default backend, so that every compiled model is dumped:\n"
                 "also in Python processes that the script starts. SCRIPT may be a command\n"
                 "that starts them, such as torchrun.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Arguments after SCRIPT are passed to the script. Exit status: the script's.\n",
        .stops_at_operand = true,
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (first == argc) {
        return usage_error(usage.command, "expected a SCRIPT");
    }
    if (strcmp(argv[first], "--module") == 0) {
        strcpy(argv[first], "-m"); /* python only accepts the letter */
    }
    if (chosen.type != NULL && strcmp(chosen.type, "npy") != 0 && strcmp(chosen.type, "stats") != 0 &&
        strcmp(chosen.type, "verify") != 0) {
        return usage_error(usage.command, "--type takes npy, stats or verify, not \"%s\"", chosen.type);
    }
    status = execute(&chosen, argv + first, argc - first);
    free(chosen.filters.texts);
    return status;
}
