/* main.c - fxtap COMMAND: one table of commands, each in a file of its own. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "fxtap/status.h"

static const command commands[] = {
    {"compare", cmd_compare, "find the first operator that went wrong between two dumps"},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *out)
{
    fputs("Usage: fxtap COMMAND [OPTION]... [PATH]...\n\n"
          "Every operator's inputs and outputs of a compiled PyTorch model: look at them, compare them.\n\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n'fxtap COMMAND --help' tells more of each.\n", out);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* what can be shown; numbers stay as they are everywhere */
    if (argc < 2) {
        print_help(stderr);
        return EXIT_TROUBLE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_SAME;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("fxtap %s\n", fxtap_version());
        return EXIT_SAME;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    trouble("'%s' is no command", argv[1]);
    fputs("Try 'fxtap --help'.\n", stderr);
    return EXIT_TROUBLE;
}
