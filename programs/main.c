/* main.c - the fxtap command: one table of commands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "text.h"

static const command commands[] = {
    {"ls", cmd_ls, "list the operators and tensors of a dump"},
    {"show", cmd_show, "show one operator: source line, arguments, statistics, values"},
    {"check", cmd_check, "check a dump: damaged and missing files, the first NaN or infinity"},
    {"compare", cmd_compare, "find the first operator that went wrong between two dumps"},
    {"verify", cmd_verify, "find wrong operators without a second run, whatever the precision"},
    {"repro", cmd_repro, "write one operator call as a script that runs by itself"},
    {"graph", cmd_graph, "print a captured graph: Python, a picture, TorchAir's files, CSV"},
    {"stat", cmd_stat, "statistics of any .npy files"},
    {"run", cmd_run, "run a Python script with every torch.compile'd model dumped"},
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

static int show_help(void)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_buffer_text(&out, "usage: fxtap COMMAND ...\n\n"
                            "Every operator's inputs and outputs of a torch.compile'd PyTorch model, and\n"
                            "the first operator that went wrong.\n\ncommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        fxtap_buffer_printf(&out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    }
    fxtap_buffer_text(&out, "\noptions:\n  -h, --help     show this help; fxtap COMMAND --help shows a command's\n"
                            "      --version  show the version\n");
    return flush_buffer(&out) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

static int show_version(void)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_buffer_printf(&out, "fxtap %s\n", fxtap_version());
    return flush_buffer(&out) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

static int refuse(const char *name)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
    }
    const char *what = name[0] == '-' ? "option" : "command";
    const char *nearest = name[0] == '-' ? NULL : fxtap_nearest_name(name, names, N_COMMANDS);
    if (nearest != NULL) {
        report_error("unknown %s \"%s\", did you mean %s? (see fxtap --help)", what, name, nearest);
    } else {
        report_error("unknown %s \"%s\" (see fxtap --help)", what, name);
    }
    return EXIT_TROUBLE;
}

/* Files are mapped: if another program truncates one while it is read, the system sends a signal. */
static void file_was_cut(int number, siginfo_t *info, void *context)
{
    static const char line[] = "fxtap: a file was truncated, or could not be read, while it was open\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    ssize_t n_written = write(STDERR_FILENO, line, sizeof line - 1);
    (void)n_written;
    _exit(EXIT_TROUBLE);
}

static void expect_cut_files(void)
{
    struct sigaction action = {.sa_sigaction = file_was_cut, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

int main(int argc, char **argv)
{
    text_setup();
    expect_cut_files();
    if (argc < 2) {
        report_error("expected a command (see fxtap --help)");
        return EXIT_TROUBLE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 && argc > 2) {
        static char wants_help[] = "--help";
        argv[1] = argv[2]; /* fxtap help ls: fxtap ls --help */
        argv[2] = wants_help;
        name = argv[1];
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        return show_help();
    }
    if (strcmp(name, "--version") == 0) {
        return show_version();
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return refuse(name);
}
