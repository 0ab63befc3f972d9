/* cmd_run.c - fxtap run: hands a script to Python, with fxtap as torch.compile's default backend. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "options.h"

typedef struct run_options {
    const char *type;
    const char *path;
    text_list filters;
    bool sync;
    const char *python;
} run_options;

/* ---- finding Python ---- */

/* python3 in the folder of this program, into whose environment it was installed, or "". */
static void find_neighbour(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 16);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        path[0] = '\0';
        return;
    }
    strcpy(slash + 1, "python3");
    if (access(path, X_OK) != 0) {
        path[0] = '\0';
    }
}

static const char *find_python(const run_options *chosen, char buffer[PATH_MAX])
{
    const char *named = chosen->python != NULL ? chosen->python : getenv("FXTAP_PYTHON");
    const char *home = getenv("HOME");
    if (named != NULL && named[0] != '\0') {
        bool is_at_home = strncmp(named, "~/", 2) == 0 && home != NULL; /* for --python=~/venv/bin/python3 */
        return is_at_home && snprintf(buffer, PATH_MAX, "%s%s", home, named + 1) < PATH_MAX ? buffer : named;
    }
    find_neighbour(buffer);
    return buffer[0] != '\0' ? buffer : "python3";
}

/*
 * Whether that Python lacks the package. A folder with that name, such as a clone beside the script, does not count.
 * Python itself reports any other problem when it runs.
 */
static bool lacks_fxtap(const char *python)
{
    static const char code[] = "import sys, importlib.util as u; s = u.find_spec('fxtap'); "
                               "sys.exit(77 if s is None or s.origin is None else 0)";
    char *line[] = {strdup(python), strdup("-c"), strdup(code), NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&child, python, &actions, NULL, line, environ) == 0) {
        while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; line[i] != NULL; i++) {
        free(line[i]);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

/* ---- the environment ---- */

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
    static const char *const begin[] = {"-m", "fxtap", "run-script"};
    enum { N_BEGIN = 3 };
    char buffer[PATH_MAX];
    const char *python = find_python(chosen, buffer);
    if (lacks_fxtap(python)) {
        return report_error(
            "%s has no module fxtap: install it there (%s -m pip install ., in fxtap's sources), or name "
            "another Python by --python or FXTAP_PYTHON",
            python, python);
    }
    if (!set_environment(chosen)) {
        report_error("out of memory");
        return EXIT_TROUBLE;
    }
    char **line = must_realloc(NULL, (size_t)n_arguments + N_BEGIN + 2, sizeof *line);
    line[0] = strdup(python);
    for (size_t i = 0; i < N_BEGIN; i++) {
        line[1 + i] = strdup(begin[i]);
    }
    for (int i = 0; i < n_arguments; i++) {
        line[1 + N_BEGIN + i] = arguments[i];
    }
    line[1 + N_BEGIN + n_arguments] = NULL;
    execvp(python, line);
    report_error("cannot run %s: %s", python, strerror(errno));
    for (size_t i = 0; i <= N_BEGIN; i++) {
        free(line[i]);
    }
    free(line);
    return EXIT_TROUBLE;
}

int cmd_run(int argc, char **argv)
{
    run_options chosen = {0};
    const option_spec options[] = {
        {'t', "type", OPTION_TEXT, &chosen.type, "TYPE", "npy: files (the default); stats: statistics only"},
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
    if (chosen.type != NULL && strcmp(chosen.type, "npy") != 0 && strcmp(chosen.type, "stats") != 0) {
        return usage_error(usage.command, "--type takes npy or stats, not \"%s\"", chosen.type);
    }
    status = execute(&chosen, argv + first, argc - first);
    free(chosen.filters.texts);
    return status;
}
