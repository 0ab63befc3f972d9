/* cmd_repro.c - fxtap repro: writes a folder in which one operator call runs by itself; Python does the work. */
#include "command.h"
#include "options.h"
#include "python.h"
#include "select.h"

typedef struct request {
    selection chosen;
    const char *folder; /* NULL: named after the node */
    const char *python;
    bool force;
} request;

static int execute(const request *r, const char *dump, const char *node)
{
    python_line line;
    python_begin(&line, r->python);
    python_add_command(&line, "write-repro");
    python_add_number(&line, "--run", r->chosen.run);
    python_add_number(&line, "--rank", r->chosen.rank);
    python_add_number(&line, "--graph", r->chosen.graph);
    python_add_number(&line, "--step", r->chosen.step);
    python_add_text(&line, "--folder", r->folder);
    if (r->force) {
        python_add(&line, "--force");
    }
    python_add(&line, "--");
    python_add(&line, dump);
    python_add(&line, node);
    int result = EXIT_TROUBLE;
    if (python_has(&line, "fxtap") && python_has(&line, "torch")) {
        result = python_execute(&line);
    }
    python_clear(&line);
    return result;
}

int cmd_repro(int argc, char **argv)
{
    request r = {.chosen = SELECTION_NONE};
    const option_spec options[] = {
        SELECTION_OPTIONS(r.chosen),
        {'o', "output", OPTION_TEXT, &r.folder, "FOLDER", "where to write (default: repro-NODE)"},
        {0, "force", OPTION_FLAG, &r.force, NULL, "write into a folder that is there"},
        {0, "python", OPTION_TEXT, &r.python, "FILE", "the interpreter; as for fxtap run"},
    };
    const command_usage usage = {
        .command = "repro",
        .operands = "DUMP NODE",
        .about = "Writes a folder in which one operator call of a dump runs by itself: a script\n"
                 "that needs only torch and NumPy, the inputs and the results as .npy. Attach it\n"
                 "to a bug report. The script says whether the result is right:\n\n"
                 "    python FOLDER/repro.py                  the recorded result\n"
                 "    python FOLDER/repro.py --device npu:0   what another device computes\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Without --graph and --step: the first graph that has the node, and its latest\n"
                "step. Exit status: 0 written, 2 trouble. The script's: 0 right, 1 wrong.\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (argc - first != 2) {
        return argc - first < 2 ? usage_error("repro", "expected a DUMP and a NODE")
                                : usage_error("repro", "too many operands: '%s'", argv[first + 2]);
    }
    return execute(&r, argv[first], argv[first + 1]);
}
